"""What a scenario found, put together from top to bottom: an answer, verdicts, figures, tables and
notes. The runner writes the pages from it.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenarios.kit.timing import Benchmark

Cell = str | int | float | bool | None
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]


class ConditionStatus(StrEnum):
    MET = "met"
    VIOLATED = "violated"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class ConditionVerdict:
    """What became of an expectation; `seen` holds the numbers that decided it."""

    key: str
    status: ConditionStatus
    seen: str

    @classmethod
    def of(cls, key: str, met: bool, seen: str) -> ConditionVerdict:
        return cls(key, ConditionStatus.MET if met else ConditionStatus.VIOLATED, seen)

    @classmethod
    def open(cls, key: str, reason: str) -> ConditionVerdict:
        return cls(key, ConditionStatus.NOT_JUDGED, reason)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for a CSV file (full precision) and for the pages; `shown` rows appear there, None for
    all.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    shown: int | None = 60

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name!r}, row {number}: {len(row)} cells for {len(self.columns)} columns")

    @classmethod
    def of(
        cls,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        caption: str = "",
        shown: int | None = 60,
        columns: Sequence[str] = (),
    ) -> Table:
        """From one mapping per row, all with the same keys; `columns`: those of a table without
        rows.
        """
        columns = tuple(rows[0]) if rows else tuple(columns)
        for number, row in enumerate(rows, start=1):
            if tuple(row) != columns:
                raise ValueError(f"table {name!r}, row {number}: columns {list(row)} differ from {list(columns)}")
        return cls(name, columns, tuple(tuple(row.values()) for row in rows), caption, shown)


def compressed(text: str) -> bytes:
    """A text as gzip bytes that do not depend on the time: equal data give equal files."""
    return gzip.compress(text.encode(), 9, mtime=0)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture as SVG text; the table it was drawn from stands beside it."""

    name: str
    svg: str
    caption: str = ""


@dataclass(slots=True)
class Report:
    """All that a scenario found, added to as `report` goes through it.

        page = Report(answer="Yes: on all 40 fields ...")
        page.check("transition", before == 0 < after, f"{before} before, {after} after")
        page.table("summary", rows, "By number of anchors.")
        page.lines("margin", {"median": (anchors, medians)}, x="anchors", y="margin")
        return page

    `notes` are paragraphs whose numbers come from the data; `files` are extra raw files. Captions
    that are not given, and notes without numbers, stand in the scenario's protocol.
    """

    verdicts: list[ConditionVerdict] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    quick: bool = False
    """The quick size, which decides nothing about speed."""
    answer: str = ""
    """One sentence with figures that the page begins with, beside the first picture: what came of
    the question.
    """

    @property
    def violated(self) -> tuple[str, ...]:
        return tuple(v.key for v in self.verdicts if v.status is ConditionStatus.VIOLATED)

    @property
    def met(self) -> int:
        """How many of the conditions judged so far are met."""
        return sum(v.status is ConditionStatus.MET for v in self.verdicts)

    def check(self, key: str, met: bool, seen: str, *, unless: str | bool | None = None) -> None:
        """The verdict on a condition; `unless`: the reason why this run can't judge it, if it
        can't.
        """
        self.verdicts.append(ConditionVerdict.open(key, str(unless)) if unless else ConditionVerdict.of(key, met, seen))

    def open(self, keys: Sequence[str], reason: str) -> None:
        """Conditions that this run can't judge."""
        self.verdicts += [ConditionVerdict.open(key, reason) for key in keys]

    def none(self, key: str, bad: int, rest: str, *, unless: str | bool | None = None) -> None:
        """A condition that nothing breaks: `bad` is how often it was, `rest` of how many what."""
        self.check(key, bad == 0, f"{bad} {rest}", unless=unless)

    def at_full(self, key: str, met: bool, seen: str) -> None:
        """A condition that the quick size can't decide."""
        self.check(key, met, seen, unless=self.quick and f"{seen} (quick size)")

    def benchmark(self, figures: Sequence[Benchmark], *, judged: Sequence[str] | None = None) -> None:
        """Measured figures: their verdicts (of those in `judged`, or all), picture and table."""
        from scenarios.kit.timing import benchmark_figure, benchmark_table

        self.verdicts += [f.verdict(quick=self.quick) for f in figures if judged is None or f.key in judged]
        self.figures.append(benchmark_figure(figures))
        self.tables.append(benchmark_table(figures))

    def table(self, name: str, rows: Sequence[Mapping[str, Any]], caption: str = "", *, shown: int | None = 60) -> None:
        """A table from one mapping per row, all with the same keys; `shown` rows are on the
        page.
        """
        self.tables.append(Table.of(name, rows, caption=caption, shown=shown))

    def lines(self, name: str, series: Series, **options: Any) -> None:
        """A figure with one line per series; see `scenarios.kit.plots.lines`."""
        self._draw("lines", name, series, **options)

    def points(self, name: str, series: Series, **options: Any) -> None:
        """A figure with one cloud of points per series; see `scenarios.kit.plots.points`."""
        self._draw("points", name, series, **options)

    def bars(self, name: str, heights: Mapping[str, float], **options: Any) -> None:
        """A figure with one horizontal bar per label; see `scenarios.kit.plots.bars`."""
        self._draw("bars", name, heights, **options)

    def draw(self, name: str, paint: Callable[[Any], None], **options: Any) -> None:
        """A figure painted on one matplotlib axes; see `scenarios.kit.plots.draw`."""
        self._draw("draw", name, paint, **options)

    def _draw(self, kind: str, *given: Any, **options: Any) -> None:
        from scenarios.kit import plots

        self.figures.append(getattr(plots, kind)(*given, **options))
