from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenarios import ConditionVerdict, Context, Done, Expectation, Scenario, ScenarioOutcome, Table
from scenarios.conformance import check_scenario


def _report(context: Context, done: list[Done]) -> ScenarioOutcome:
    rows = [{"seed": d.value} for d in done]
    return ScenarioOutcome(
        [ConditionVerdict.of("few", len(rows) < 9, f"{len(rows)}")], tables=[Table.of("seeds", rows)]
    )


OURS = Scenario(
    name="somebody-elses",
    question="Does a scenario of somebody else's join?",
    full={"seeds": 3},
    quick={"seeds": 2},
    expected=(Expectation("few", "fewer than nine"),),
    parts=lambda context: [{"seed": seed} for seed in range(context["seeds"])],
    run=lambda context, part: part["seed"],
    report=_report,  # type: ignore[arg-type]
)


def test_a_third_partys_scenario_joins(tmp_path: Path) -> None:
    check_scenario(OURS, tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Not plain"}, "no plain name"),
        ({"question": "It works."}, "question mark"),
        ({"expected": ()}, "at least one condition"),
    ],
)
def test_one_that_breaks_a_promise_is_told_which(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_scenario(replace(OURS, **change), tmp_path)


def test_a_report_without_a_table(tmp_path: Path) -> None:
    bare = replace(OURS, report=lambda context, done: ScenarioOutcome([ConditionVerdict.of("few", True, "")]))
    with pytest.raises(AssertionError, match="without a table"):
        check_scenario(bare, tmp_path)
