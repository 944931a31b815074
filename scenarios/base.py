"""What a scenario is, what it returns, and nothing about how it is run or shown.

The acceptance conditions are data that exist before the run (`Scenario.expected`); the run can only add a verdict to each. One that was changed after a
first result had been seen says so (`Expectation.revised`).
A condition that a run can't decide (a quick size, too few items) is `not judged`, with the reason, and never `met`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any

Cell = str | int | float | bool | None
Part = Mapping[str, Any]


def public(value: Any) -> Any:
    """A parameter as it is published: a file or folder by its name, never by where it lies on a machine.

    `gguf:/somewhere/x.gguf`, `/somewhere/x.gguf` and `x.gguf` name the same weights, asked in the same way; their hash stands in the answer log. What else
    asks them (`transformers:/somewhere/x.gguf`) is part of the name: another backend gives other answers.
    """
    if not isinstance(value, str):
        return value
    kind, colon, rest = value.partition(":")
    if value.endswith(".gguf"):
        other = f"{kind}:" if colon and kind != "gguf" and "/" not in kind else ""
        return other + PurePath(rest if other else value.removeprefix("gguf:")).name
    if colon and Path(rest).is_absolute():
        return f"{kind}:{PurePath(rest).name}"
    return PurePath(value).name if Path(value).is_absolute() else value


class ConditionStatus(StrEnum):
    MET = "met"
    VIOLATED = "violated"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One prespecified acceptance condition; `paper` is the published figure it stands beside, where there is one."""

    key: str
    text: str
    paper: str = ""
    revised: str = ""
    """What was changed about it after a first result had been seen, and why; such a condition is weaker evidence, and pages say so."""


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
    """Rows for a CSV file (full precision) and for the pages; `shown` rows appear there, None for all."""

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
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]], *, caption: str = "", shown: int | None = 60) -> Table:
        """From one mapping per row, all with the same keys."""
        columns = tuple(rows[0]) if rows else ()
        for number, row in enumerate(rows, start=1):
            if tuple(row) != columns:
                raise ValueError(f"table {name!r}, row {number}: columns {list(row)} differ from {list(columns)}")
        return cls(name, columns, tuple(tuple(row.values()) for row in rows), caption, shown)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture as SVG text; the table it was drawn from stands beside it."""

    name: str
    svg: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """All that a scenario found. `notes` are paragraphs whose numbers come from the data; `files` are extra raw files."""

    verdicts: Sequence[ConditionVerdict]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    answer: str = ""
    """One sentence with figures that the page begins with, beside the first picture: what came of the question."""

    @property
    def violated(self) -> tuple[str, ...]:
        return tuple(v.key for v in self.verdicts if v.status is ConditionStatus.VIOLATED)


@dataclass(frozen=True, slots=True)
class Context:
    """What a run knows: its parameters, whether it is the quick size, and its own directory."""

    parameters: Mapping[str, Any]
    quick: bool
    directory: Path

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished part: its description and what `run` returned for it, after a trip through JSON."""

    part: Part
    value: Any
    seconds: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment; see the package's docstring for the life cycle."""

    name: str
    question: str
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    expected: tuple[Expectation, ...]
    parts: Callable[[Context], Sequence[Part]]
    run: Callable[[Context, Part], Any]
    report: Callable[[Context, Sequence[Done]], ScenarioOutcome]
    title: str = ""
    about: str = ""
    """A paragraph or two: the protocol in words, and where in the paper it stands."""
    serial: bool = False
    """True: the parts are never run side by side (they measure time, or share a model)."""

    def __post_init__(self) -> None:
        unknown = set(self.quick) - set(self.full)
        if unknown:
            raise ValueError(f"scenario {self.name!r}: quick changes unknown parameters {sorted(unknown)}")
        keys = [expectation.key for expectation in self.expected]
        if len(set(keys)) != len(keys):
            raise ValueError(f"scenario {self.name!r}: an expectation stands twice")

    def parameters(self, *, quick: bool = False, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Full parameters, with the quick ones and then the caller's on top; InputError for an unknown name."""
        from rrf_design.errors import InputError

        result = {**self.full, **(self.quick if quick else {})}
        for name, value in (changes or {}).items():
            if name not in result:
                raise InputError(f"scenario {self.name!r} has no parameter {name!r}; it has {', '.join(result)}")
            result[name] = value
        return result

    def check(self, outcome: ScenarioOutcome) -> None:
        """Every expectation has exactly one verdict, and there is no verdict on anything else."""
        wanted = [expectation.key for expectation in self.expected]
        given = [verdict.key for verdict in outcome.verdicts]
        if sorted(wanted) != sorted(given):
            raise ValueError(f"scenario {self.name!r}: expectations {wanted} but verdicts {given}")
