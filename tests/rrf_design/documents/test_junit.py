"""JUnit XML that CI systems can read."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from rrf_design.documents.junit import delivery_cases, repair_cases, run_cases, verdict_case, write_junit


def test_counts_and_awkward_text(tmp_path: Path) -> None:
    write_junit(tmp_path / "x.xml", "suite", [("ok", 0.5, None), ("<bad> & \x00", 0.25, 'not "this"\x1b')])
    root = ElementTree.parse(tmp_path / "x.xml").getroot()
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("time")) == ("2", "1", "0.750")
    assert [case.get("name") for case in suite] == ["ok", "<bad> & ?"]


def test_only_what_is_certified_passes() -> None:
    assert verdict_case("a", "certified", "all agree") == ("a", 0.0, None)
    for verdict in ("ambiguous", "incomplete", "contradicted"):
        assert verdict_case("a", verdict, "why") == ("a", 0.0, f"{verdict}: why")
    assert verdict_case("a", "incomplete", "") == ("a", 0.0, "incomplete")


def test_every_field_of_a_run_is_a_case() -> None:
    items = [
        {"item": "x", "name": "p", "verdict": "certified", "stopped_because": "done", "repair": {"reason": "fine"}},
        {"item": "y", "name": "p", "verdict": "incomplete", "stopped_because": "paused", "repair": None, "detail": ""},
    ]
    purchases = [{"item": "x", "at": 10.0}, {"item": "x", "at": 12.5}]
    cases = run_cases({"items": items, "purchases": purchases})
    assert cases == [("x", 2.5, None), ("y", 0.0, "incomplete: paused")]


def test_repairs_and_delivered_rows_are_cases() -> None:
    one = {"verdict": "contradicted", "reason": "nothing fits", "diagnostics": {"seconds": 0.5}}
    assert repair_cases(one, "p") == [("p", 0.5, "contradicted: nothing fits")]
    batch = {"items": [{"field": "a", **one}, {"field": "b", "verdict": "certified", "reason": "fine"}]}
    assert repair_cases(batch, "p") == [("a", 0.5, "contradicted: nothing fits"), ("b", 0.0, None)]
    table = {"columns": ["no", "verdict", "reason"], "rows": [[7, "certified", None], [8, "ambiguous", "two fit"]]}
    assert delivery_cases(table) == [("7", 0.0, None), ("8", 0.0, "ambiguous: two fit")]
