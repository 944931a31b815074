"""Benchmarks that travel: ratios of two pieces of work done side by side in one process, never bare
seconds.

Absolute times differ from machine to machine and from minute to minute on a busy one; a ratio of
alternating runs does much less so. The spread is published beside the median.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from scenarios.kit.report import ConditionVerdict, Figure, Table

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times longer `baseline` takes than `work`: median over rounds, with the extremes."""

    median: float
    lowest: float
    highest: float
    work_seconds: float
    baseline_seconds: float
    rounds: int

    def document(self) -> dict[str, Any]:
        return asdict(self)


def seconds(work: Callable[[], object], *, at_least: float = 0.0) -> float:
    """Wall time of one call; short work is repeated until `at_least` seconds have passed, and
    divided.
    """
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            work()
        spent = time.perf_counter() - start
        if spent >= at_least:
            return spent / calls
        calls = max(calls * 2, int(calls * at_least / max(spent, 1e-9)) + 1)


def side_by_side(
    work: Callable[[], object],
    baseline: Callable[[], object],
    *,
    rounds: int = 5,
    baseline_scale: float = 1.0,
    at_least: float = 0.0,
    warm: bool = True,
) -> Ratio:
    """Time `work` and `baseline` in turns.

    `baseline_scale` extrapolates a baseline that did only a sample of its work.
    """
    if warm:
        work()
    ratios, mine, theirs = [], [], []
    for round_ in range(rounds):
        # Who goes first changes from round to round: a machine that warms up or gets busy favours
        # neither.
        if round_ % 2:
            theirs.append(seconds(baseline, at_least=at_least) * baseline_scale)
        mine.append(seconds(work, at_least=at_least))
        if not round_ % 2:
            theirs.append(seconds(baseline, at_least=at_least) * baseline_scale)
        ratios.append(theirs[-1] / max(mine[-1], 1e-9))
    return Ratio(
        statistics.median(ratios), min(ratios), max(ratios), statistics.median(mine), statistics.median(theirs), rounds
    )


def single_threaded(work: Callable[..., T], *given: Any) -> T:
    """What the work returns, done on one thread of this process."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return work(*given)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One measured figure beside what it was measured against, and what it must reach."""

    key: str
    work: str
    against: str
    value: float
    unit: str = "×"
    at_most: float | None = None
    at_least: float | None = None
    detail: str = ""

    @property
    def required(self) -> float | None:
        return self.at_least if self.at_most is None else self.at_most

    @property
    def met(self) -> bool | None:
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    def verdict(self, *, quick: bool = False) -> ConditionVerdict:
        """The verdict on the expectation of the same key; a quick size decides nothing about
        speed.
        """
        bound = f", at {'least' if self.at_most is None else 'most'} {self.required:g} wanted" if self.required else ""
        seen = f"{self.value:.4g} {self.unit}{bound}"
        if quick or self.met is None:
            return ConditionVerdict.open(self.key, f"{seen} ({'quick size' if quick else 'published only'})")
        return ConditionVerdict.of(self.key, self.met, seen)


def benchmark_table(figures: Sequence[Benchmark], *, name: str = "figures", caption: str = "") -> Table:
    """The figures of a benchmark scenario; the columns are the same in every report."""
    rows = [
        {
            "work": figure.work,
            "against": figure.against,
            "value": figure.value,
            "unit": figure.unit,
            "required": figure.required and f"{'≥' if figure.at_most is None else '≤'} {figure.required:g}",
            "met": None if figure.met is None else ("yes" if figure.met else "no"),
            "detail": figure.detail,
        }
        for figure in figures
    ]
    return Table.of(name, rows, caption=caption)


def benchmark_figure(figures: Sequence[Benchmark]) -> Figure:
    """How far every required figure lies beyond (right of 1) or short of what is required, on a
    logarithmic axis.
    """
    from scenarios.kit.plots import COLOURS, draw

    required = [figure for figure in figures if figure.required]
    beyond = [_beyond(figure) for figure in required]

    def paint(axes: Any) -> None:
        places = list(range(len(required)))[::-1]
        for place, figure, times in zip(places, required, beyond, strict=True):
            met = bool(figure.met)
            axes.plot([1.0, times], [place, place], color=COLOURS[0 if met else 1], linewidth=2)
            axes.plot(times, place, marker="o" if met else "X", color=COLOURS[0 if met else 1], markersize=7)
            axes.annotate(
                f"{times:.3g}", (times, place), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8
            )
        axes.axvline(1.0, color=COLOURS[6], linewidth=1)
        axes.set_xscale("log")
        axes.margins(x=0.15, y=0.15)
        axes.set_yticks(places, [figure.key for figure in required])
        axes.set_xlabel("times what is required (right of 1: better, circle; left: missed, cross)")

    caption = "Every figure relative to what is required of it; the table has the figures themselves."
    return draw("required", paint, caption=caption, size=(6.4, 1.1 + 0.4 * len(required)))


def _beyond(figure: Benchmark) -> float:
    required = figure.required or 1.0
    value = max(figure.value, 1e-12)
    return value / required if figure.at_most is None else required / value
