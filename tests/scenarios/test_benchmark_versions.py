"""Two versions held against each other: what is compared, and what is judged."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from rrf_design.errors import InputError
from scenarios import version_works
from scenarios.base import ConditionStatus, Context, Done
from scenarios.benchmark_versions import ROOMS, SCENARIO, report, run


def done(work: str, *, now: float, before: float, same: bool = True) -> Done:
    value = {
        "work": work,
        "versions": ["0.2.0", "0.1.0"],
        "found": ["1", "1" if same else "2"],
        "now": [now] * 3,
        "before": [before] * 3,
    }
    return Done({"work": work}, value, 1.0)


def judged(before: str, *parts: Done) -> dict[str, ConditionStatus]:
    context = Context({"before": before, "rounds": 3}, quick=False, directory=Path())
    outcome = report(context, parts)
    SCENARIO.check(outcome)
    return {verdict.key: verdict.status for verdict in outcome.verdicts}


def test_a_work_that_became_slower_is_a_violation_of_its_room() -> None:
    parts = [done(f"{room}, some", now=1.0, before=1.0) for room in ROOMS]
    assert set(judged("there", *parts).values()) == {ConditionStatus.MET}
    slower = judged("there", *parts, done("plan, other", now=1.2, before=1.0))
    assert [key for key, status in slower.items() if status is ConditionStatus.VIOLATED] == ["plan"]


def test_another_answer_is_a_violation() -> None:
    parts = [done(f"{room}, some", now=1.0, before=1.0, same=room != "repair") for room in ROOMS]
    assert judged("there", *parts)["same"] is ConditionStatus.VIOLATED


def test_nothing_is_judged_of_a_version_beside_itself() -> None:
    parts = [done(f"{room}, some", now=2.0, before=1.0) for room in ROOMS]
    assert {status for key, status in judged("", *parts).items() if key != "same"} == {ConditionStatus.NOT_JUDGED}


def test_a_folder_without_the_package_is_named(tmp_path: Path) -> None:
    context = Context({"before": str(tmp_path), "rounds": 1}, quick=True, directory=tmp_path)
    with pytest.raises(InputError, match="no checkout of the package"):
        run(context, {"work": next(iter(version_works.QUICK))})


def test_every_room_has_its_works() -> None:
    for room in ROOMS:
        assert any(name.startswith(room) for name in version_works.FULL)


def test_a_worker_tells_its_version_and_then_a_line_for_every_round() -> None:
    out = io.StringIO()
    version_works.serve("margin, dense 16, k = 2", ["again", "again"], out)
    first, *rounds = [json.loads(line) for line in out.getvalue().splitlines()]
    assert set(first) == {"version"}
    assert [round_["found"] for round_ in rounds] == [rounds[0]["found"]] * 2
