"""The acquisition benchmark: its runs do what they time, and its verdicts follow from the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.base import Context, Done, Status
from scenarios.benchmark_acquisition import SCENARIO, report, run, scripted_run


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
    return [Done({"what": what}, value, 1.0) for what, value in (values | changes).items()]


def statuses(entries: list[Done], *, quick: bool = False) -> dict[str, Status]:
    outcome = report(context(quick=quick), entries)
    SCENARIO.check(outcome)
    return {verdict.key: verdict.status for verdict in outcome.verdicts}


def test_verdicts() -> None:
    assert set(statuses(done()).values()) == {Status.MET}
    assert set(statuses(done(), quick=True).values()) == {Status.NOT_JUDGED}
    slow = {"rounds": [{"purchases": 200, "wall": 1.0, "cpu": 1.0, "repaired": 4, "fields": 4}]}
    wrong = {"rounds": [{"purchases": 900, "wall": 1.0, "cpu": 1.0, "repaired": 3, "fields": 4}]}
    found = statuses(done(witness=slow, adaptive=wrong, embedded={"missing": "no weights"}))
    assert found["witness"] is found["adaptive"] is Status.VIOLATED
    assert found["share"] is Status.NOT_JUDGED
