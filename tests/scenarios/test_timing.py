from __future__ import annotations

import itertools
import time

import pytest

from scenarios.base import ConditionStatus
from scenarios.timing import Benchmark, benchmark_table, side_by_side


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves only when the work says so."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_ratio_is_the_median_of_rounds(clock: list[float]) -> None:
    spikes = itertools.chain([3.0, 3.0, 30.0], itertools.repeat(3.0))

    def work() -> None:
        clock[0] += 1.0

    def baseline() -> None:
        clock[0] += next(spikes)

    ratio = side_by_side(work, baseline, rounds=5, baseline_scale=2.0)
    assert ratio.median == 6.0
    assert ratio.highest == 60.0
    assert ratio.work_seconds == 1.0


def test_short_work_is_repeated(clock: list[float]) -> None:
    calls = [0]

    def work() -> None:
        calls[0] += 1
        clock[0] += 0.001

    ratio = side_by_side(work, work, rounds=1, at_least=0.1, warm=False)
    assert ratio.median == pytest.approx(1.0)
    assert calls[0] >= 200


def test_verdicts_of_figures() -> None:
    fast = Benchmark("fast", "ours", "theirs", 30.0, required=20.0)
    slow = Benchmark("slow", "ours", "theirs", 3.0, required=2.3, at_most=True)
    assert fast.verdict().status is ConditionStatus.MET
    assert slow.verdict().status is ConditionStatus.VIOLATED
    assert slow.verdict(quick=True).status is ConditionStatus.NOT_JUDGED
    table = benchmark_table([fast, slow])
    assert [row[table.columns.index("met")] for row in table.rows] == ["yes", "no"]
