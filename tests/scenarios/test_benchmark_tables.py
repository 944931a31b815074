"""The benchmark of large tables: what its conditions are judged by, and that every one of them can
fail.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from scenarios.benchmark_tables import SCENARIO, report
from scenarios.benchmark_tables.works import CHECKS, PATTERNS, PLANNED, cells, delivered, planned, write
from scenarios.kit.report import ConditionStatus
from scenarios.kit.scenario import Context, Done

WORKED = {"ended": 0, "cpu": 100.0, "wall": 120.0, "memory": 400 * 2**20}
REPAIRED = WORKED | {"digest": "abc", "bytes": 5, "verdicts": {"consistent": 1000}}


def judged(plan: Any = None, repair: Any = None, workers: Any = None) -> dict[str, ConditionStatus]:
    """The verdicts of a full run in which everything went well, but for what is given."""
    context = Context(SCENARIO.parameters(), quick=False, directory=Path())
    parts = {
        "plan": WORKED
        | {"status": "optimal", "value": 9.0, "plain": 9, "structures": 7, "planning": 3.0, "cpu": 5.0}
        | (plan or {}),
        "repair": {
            "items": 1_000_000,
            "small": 100_000,
            "full": REPAIRED,
            "tenth": REPAIRED,
            "killed": {"ended": -9, "kept": 500_000},
            "resumed": REPAIRED,
        }
        | (repair or {}),
        "workers": {"items": 20, "digests": {"0": "abc", "1": "abc", "2": "abc", "8": "abc"}} | (workers or {}),
    }
    outcome = report(context, [Done({"what": what}, value, 1.0) for what, value in parts.items()])
    SCENARIO.check(outcome)
    assert outcome.answer
    return {verdict.key: verdict.status for verdict in outcome.verdicts}


def test_a_good_run_meets_every_condition() -> None:
    assert set(judged().values()) == {ConditionStatus.MET}


@pytest.mark.parametrize(
    ("given", "violated"),
    [
        ({"plan": {"cpu": 31.0}}, {"plan-seconds"}),
        ({"plan": {"memory": 4 * 2**30}}, {"plan-memory"}),
        ({"plan": {"status": "feasible"}}, {"optimal"}),
        ({"plan": {"plain": 10}}, {"optimal"}),
        ({"repair": {"full": REPAIRED | {"cpu": 1000.0}}}, {"item"}),
        ({"repair": {"full": REPAIRED | {"memory": 4 * REPAIRED["memory"]}}}, {"memory"}),
        ({"repair": {"resumed": REPAIRED | {"digest": "other"}}}, {"resumed"}),
        ({"repair": {"killed": {"ended": 0, "kept": 1_000_000}}}, {"resumed"}),
        ({"workers": {"digests": {"0": "abc", "1": "abc", "2": "abc", "8": "other"}}}, {"workers"}),
    ],
)
def test_every_condition_can_fail(given: dict[str, Any], violated: set[str]) -> None:
    assert {key for key, status in judged(**given).items() if status is ConditionStatus.VIOLATED} == violated


def test_a_process_that_ended_early_is_no_success() -> None:
    seen = judged(plan={"ended": 1}, repair={"full": {"ended": -9}})
    assert {key for key, status in seen.items() if status is ConditionStatus.MET} == {"workers"}


def test_a_cluster_that_is_not_installed_is_not_judged() -> None:
    assert judged(workers={"missing": "Dask is not installed"})["workers"] is ConditionStatus.NOT_JUDGED


def test_the_planned_table_has_seven_structures() -> None:
    found = rrf.dataset(PLANNED, list(cells(70)))
    assert [one.count for one in found.structures.values()] == [10] * 7
    assert {check for has in PATTERNS for check in has} == set(CHECKS)


def test_the_plan_does_as_well_as_the_plain_rule_and_money_is_short() -> None:
    found = planned(70, 70.0)
    assert (found["status"], found["value"]) == ("optimal", found["plain"])
    assert found["value"] < 70


def test_the_written_table_is_repaired(tmp_path: Path) -> None:
    wrong = write(tmp_path, 60, seed=0)["wrong"]
    found = delivered(tmp_path, "out")
    assert found["verdicts"]["consistent"] == 60
    rows = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 61
    assert wrong > 0
