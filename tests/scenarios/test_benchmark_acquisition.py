"""The acquisition benchmark: its runs do what they time, and its verdicts follow from the
figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.benchmark_acquisition import SCENARIO, report, run, sandbox, scripted_run
from scenarios.benchmark_acquisition.live_runs import throughput
from scenarios.kit.report import ConditionStatus
from scenarios.kit.scenario import Context, Done

ROUGH = {
    "items": 5,
    "seconds": 1.0,
    "settled": 20,
    "once": True,
    "unanswered": 0,
    "stopped": "target",
    "booked": 30,
    "counted": 29,
    "doubtful": 2,
    "balanced": True,
    "faults": {"good": 20, "cut": 2},
    "memory": [100, 110],
}


def context(*, quick: bool) -> Context:
    return Context(SCENARIO.parameters(quick=quick), quick, Path())


@pytest.mark.parametrize("schedule", ["witness", "planned", "adaptive"])
def test_the_timed_run_buys_and_repairs(tmp_path: Path, schedule: str) -> None:
    found = scripted_run(2, schedule, tmp_path)
    assert found["repaired"] == found["fields"] == 2
    assert found["purchases"] > 12
    assert found["cpu"] > 0


def test_parts_are_small_documents() -> None:
    found = run(context(quick=True), {"what": "sandbox"})
    assert found["right"] == found["programs"]


def done(**changes: Any) -> list[Done]:
    rounds = [{"purchases": 400, "wall": 2.0, "cpu": 1.0, "repaired": 4, "fields": 4}]
    values: dict[str, Any] = {what: {"rounds": rounds} for what in ("witness", "planned", "adaptive")}
    values["embedded"] = {"total": 10.0, "asking": 9.8, "answers": 20, "purchases": 30}
    values["sandbox"] = {"rate": 150.0, "right": 9, "programs": 9, "workers": 2, "isolation": "seccomp"}
    live: dict[str, Any] = {
        "calls": 100,
        "seconds": 1.0,
        "share": 0.9,
        "cpu": 0.05,
        "between": 0.02,
        "loop": 0.2,
        "right": True,
    }
    live["bare"] = {"share": 0.95, "cpu": 0.02}
    values |= {"64 at once": live, "512 at once": live}
    values["rough"] = ROUGH
    return [Done({"what": what}, value, 1.0) for what, value in (values | changes).items()]


def statuses(entries: list[Done], *, quick: bool = False) -> dict[str, ConditionStatus]:
    outcome = report(context(quick=quick), entries)
    SCENARIO.check(outcome)
    return {verdict.key: verdict.status for verdict in outcome.verdicts}


def test_verdicts() -> None:
    assert set(statuses(done()).values()) == {ConditionStatus.MET}
    assert set(statuses(done(), quick=True).values()) == {ConditionStatus.NOT_JUDGED}
    slow = {"rounds": [{"purchases": 200, "wall": 1.0, "cpu": 1.0, "repaired": 4, "fields": 4}]}
    wrong = {"rounds": [{"purchases": 900, "wall": 1.0, "cpu": 1.0, "repaired": 3, "fields": 4}]}
    found = statuses(done(witness=slow, adaptive=wrong, embedded={"missing": "no weights"}))
    assert found["witness"] is found["adaptive"] is ConditionStatus.VIOLATED
    assert found["share"] is ConditionStatus.NOT_JUDGED
    lost = statuses(done(rough={**ROUGH, "balanced": False, "memory": [100, 200]}))
    assert lost["books"] is lost["memory"] is ConditionStatus.VIOLATED


def test_the_rough_server_is_outlived_and_the_books_agree() -> None:
    found = run(context(quick=True), {"what": "rough"})
    assert found["once"]
    assert found["balanced"]
    assert found["settled"] == 160
    assert found["booked"] - found["doubtful"] <= found["counted"] <= found["booked"]


def test_throughput_is_counted_by_the_server_too(tmp_path: Path) -> None:
    found = throughput(8, 32, tmp_path)
    assert found["right"]
    assert found["calls"] == found["at_once"] == 32


def test_every_program_of_the_sandbox_is_right() -> None:
    found = sandbox(6, workers=1, tests=3)
    assert (found["programs"], found["right"], found["workers"]) == (6, 6, 1)
    assert found["rate"] > 0.0
