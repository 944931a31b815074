"""JUnit XML that CI systems can read."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from rrf_design.cli.junit import write_junit


def test_counts_and_awkward_text(tmp_path: Path) -> None:
    write_junit(tmp_path / "x.xml", "suite", [("ok", 0.5, None), ("<bad> & \x00", 0.25, 'not "this"\x1b')])
    root = ElementTree.parse(tmp_path / "x.xml").getroot()
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("time")) == ("2", "1", "0.750")
    assert [case.get("name") for case in suite] == ["ok", "<bad> & ?"]
