"""JUnit XML for CI systems: one suite, one case per thing that was asked, a failure with its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
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


def verdict_case(name: str, verdict: str, reason: str, *, seconds: float = 0.0) -> Case:
    """What is certified passes; anything else fails, with its verdict and its reason."""
    if verdict == "certified":
        return name, seconds, None
    return name, seconds, f"{verdict}: {reason}" if reason else verdict


def run_cases(run: Mapping[str, Any]) -> list[Case]:
    """One case per field of an `rrf-run`; its time is that between its first and its last purchase."""
    moments: dict[str, list[float]] = defaultdict(list)
    for purchase in run["purchases"]:
        moments[purchase["item"]].append(float(purchase.get("at") or 0.0))
    cases = []
    for item in run["items"]:
        reason = (item.get("repair") or {}).get("reason") or item.get("detail") or item["stopped_because"]
        times = moments[item["item"]] or [0.0]
        name = str(item["item"] or item["name"])
        cases.append(verdict_case(name, item["verdict"], str(reason), seconds=max(times) - min(times)))
    return cases


def repair_cases(repair: Mapping[str, Any], name: str) -> list[Case]:
    """One case for an `rrf-repair`; for an `rrf-repair-batch` one per field."""
    fields = repair.get("items", [{"field": name, **repair}])
    return [
        verdict_case(
            str(entry["field"]),
            str(entry["verdict"]),
            str(entry["reason"]),
            seconds=float((entry.get("diagnostics") or {}).get("seconds") or 0.0),
        )
        for entry in fields
    ]


def delivery_cases(delivery: Mapping[str, Any]) -> list[Case]:
    """One case per row of an `rrf-item-table`."""
    columns = list(delivery["columns"])
    verdict, reason = columns.index("verdict"), columns.index("reason") if "reason" in columns else None
    return [
        verdict_case(str(row[0]), str(row[verdict]), "" if reason is None else str(row[reason] or ""))
        for row in delivery["rows"]
    ]


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\t\n" else "?" for c in text)
