"""JUnit XML for CI systems: one suite, one case per thing that was asked, a failure with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from rrf_design.files import write_text

Case = tuple[str, float, str | None]
"""Name, seconds, and what failed (None: passed)."""


def write_junit(path: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write the report; control characters, which XML can't hold, become question marks."""
    failures = sum(fault is not None for _, _, fault in cases)
    seconds = sum(time for _, time, _ in cases)
    attributes = {"name": _plain(suite), "tests": str(len(cases)), "failures": str(failures), "errors": "0"}
    root = ElementTree.Element("testsuites", attributes)
    group = ElementTree.SubElement(root, "testsuite", {**attributes, "time": f"{seconds:.3f}"})
    for name, time, fault in cases:
        case = ElementTree.SubElement(
            group, "testcase", {"classname": _plain(suite), "name": _plain(name), "time": f"{time:.3f}"}
        )
        if fault is not None:
            ElementTree.SubElement(case, "failure", {"message": _plain(fault)}).text = _plain(fault)
    write_text(path, '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n")


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\t\n" else "?" for c in text)
