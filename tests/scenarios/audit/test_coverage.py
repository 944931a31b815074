from __future__ import annotations

import json
from pathlib import Path

import scenarios
from scenarios import registry
from scenarios.audit import coverage
from scenarios.worked_examples import EXAMPLES

REPORTS = Path(__file__).parents[3] / "reports"


def problem_of(place: str) -> str | None:
    """What is wrong with a place that an item names, if anything."""
    page, kind, name = place.split(" ", 2)
    if page not in scenarios.names():
        return f"{place}: no such scenario"
    if kind == "condition":
        known = {expectation.key for expectation in registry.get(page).expected}
    elif kind == "example":
        known = set(EXAMPLES)
    else:
        document = json.loads((REPORTS / page / "result.json").read_text(encoding="utf-8"))
        known = {table["name"] for table in document["tables"]}
    return None if name in known else f"{place}: not there; there are {sorted(known)}"


def test_every_place_exists() -> None:
    found = [problem_of(place) for item in coverage.ITEMS for place in item.where]
    assert [problem for problem in found if problem] == []


def test_a_wrong_place_would_be_noticed() -> None:
    wrong = ("no-such-page table x", "paper-audit condition x", "worked-examples example x", "real-model table x")
    assert all(problem_of(place) for place in wrong)


def test_items_stand_once_and_have_a_place() -> None:
    assert all(item.where for item in coverage.ITEMS)
    named = [(item.section, item.item) for item in coverage.ITEMS]
    assert len(set(named)) == len(named)


def test_every_example_and_every_finding_belongs_to_something_in_the_paper() -> None:
    places = {place for item in coverage.ITEMS for place in item.where}
    assert {f"worked-examples example {name}" for name in EXAMPLES} <= places
    findings = {f"paper-audit condition {e.key}" for e in registry.get("paper-audit").expected}
    assert findings - places == {"paper-audit condition small-example"}
