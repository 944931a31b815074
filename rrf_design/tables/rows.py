"""One delivered row: what may be handed over of an item, and why, what it cost, and who should look
at it first. Delivered columns are declared here and nowhere else.

`answer` is empty unless it may be believed: its verdict is checked or consistent, or ambiguous
where every explanation has the same value, or a policy delivers it. A person who is trusted and
whose check states the delivered value decides the item: what they said is the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rrf_design.blocks import Anchor
from rrf_design.checks import decided_premise, decided_verdict
from rrf_design.responses.open_text import Classes
from rrf_design.responses.parsed import Parser
from rrf_design.responses.worded import ChoiceParser, YesNoParser
from rrf_design.tables.items import Reading, plain
from rrf_design.verdict import Verdict, dispute, worst


@dataclass(frozen=True, slots=True)
class Value:
    """What one delivered field of an item came to."""

    verdict: Verdict
    assumes: str = ""
    answer: Any = None
    raw: Any = None
    """What was answered, whatever may be believed of it."""
    bound: float | None = None
    changed: bool | None = None
    reason: str = ""
    field: str = ""
    """Its name, where a recipe delivers several fields."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one item came to: a value for each delivered field, and what is said of all of it.

    What is said of a value (`answer`, `reason`, ...) is that of the first field, `verdict` the
    worst of all. `rank` is not here: it compares items.
    """

    id: str
    values: tuple[Value, ...]
    cost: float = 0.0
    """What its answers and checks cost (`rrf_design.market.Market.spent`)."""
    wrong: tuple[str, ...] = ()
    """Nodes whose answers are found wrong."""
    unread: tuple[str, ...] = ()
    """Nodes without an answer that could be read."""
    gamma: float = 0.0
    structure: str = ""
    misfit: float = 0.0
    """How far the answers are from agreeing with any explanation."""
    check: str | None = None
    """The cheapest check by a person that would decide the item; None where there is none."""
    worth: float = 0.0
    """Items that this check decides per cost of it: what the order of the review list is made
    from.
    """
    settled: bool = field(default=False, compare=False)
    """A policy hands its answer over, whatever the verdict is: nobody has to look at it."""

    @property
    def verdict(self) -> Verdict:
        if len(self.values) == 1:
            return self.values[0].verdict
        return worst(value.verdict for value in self.values) or Verdict.INCOMPLETE

    @property
    def assumes(self) -> str:
        return self.values[0].assumes

    @property
    def answer(self) -> Any:
        return self.values[0].answer

    @property
    def raw(self) -> Any:
        return self.values[0].raw

    @property
    def bound(self) -> float | None:
        return self.values[0].bound

    @property
    def changed(self) -> bool | None:
        return self.values[0].changed

    @property
    def reason(self) -> str:
        return self.values[0].reason

    @property
    def open(self) -> bool:
        """Whether people should look at it."""
        unanswered = any(value.answer is None for value in self.values)
        return unanswered or not (self.settled or self.verdict.passes)

    def with_value(self, **changes: Any) -> Row:
        """The same with something else said of its first value."""
        return replace(self, values=(replace(self.values[0], **changes), *self.values[1:]))

    def cells(self, rank: int | None) -> dict[str, Any]:
        """The delivered columns."""
        return {name: cell(self, self.values[0], rank) for name, cell in COLUMNS.items()}

    def to_json(self) -> dict[str, Any]:
        """A value of the only field stands in the row itself; several stand under `values`."""
        found = {name: getattr(self, name) for name in _KEYS}
        found |= {"verdict": self.verdict.value, "wrong": list(self.wrong), "unread": list(self.unread)}
        if len(self.values) > 1:
            found["values"] = [{name: getattr(value, name) for name in _OF_VALUE} for value in self.values]
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        said = [{name: entry[name] for name in _OF_VALUE if name in entry} for entry in data.get("values", [data])]
        values = tuple(Value(**{**entry, "verdict": Verdict(entry["verdict"])}) for entry in said)
        own = {name: data[name] for name in _KEYS if name not in _OF_VALUE}
        return cls(**{**own, "values": values, "wrong": tuple(data["wrong"]), "unread": tuple(data["unread"])})


_OF_VALUE = tuple(Value.__slots__)
_KEYS = (
    *("id", "verdict", "assumes", "answer", "raw", "bound", "changed", "cost", "reason"),
    *("wrong", "unread", "gamma", "structure", "misfit", "check", "worth"),
)

COLUMNS: Mapping[str, Callable[[Row, Value, int | None], Any]] = {
    "answer": lambda row, value, rank: value.answer,
    "raw": lambda row, value, rank: value.raw,
    "verdict": lambda row, value, rank: row.verdict.value,
    "assumes": lambda row, value, rank: value.assumes,
    "bound": lambda row, value, rank: value.bound,
    "changed": lambda row, value, rank: value.changed,
    "cost": lambda row, value, rank: row.cost,
    "reason": lambda row, value, rank: value.reason,
    "rank": lambda row, value, rank: rank,
}
"""The columns that a delivered table has beside the input's, in this order, and what each holds."""

WORDS = ("answer", "raw", "assumes", "reason")
"""Columns with the words of models and people: in a spreadsheet they are no formulas."""


def delivered_names(columns: Iterable[str]) -> dict[str, str]:
    """What each delivered column is called: its own name, with `rrf_` before it where the input has
    that already.
    """
    taken, found = set(columns), {}
    for name in COLUMNS:
        free = name
        while free in taken:
            free = f"rrf_{free}"
        taken.add(free)
        found[name] = free
    return found


def review_ranks(rows: Iterable[Row]) -> dict[int, int]:
    """By position: 1 for the row that people should look at first; rows that nobody has to look at
    have none.

    Rows without an answer come first; then those that a person settles for the least money; then
    as `rrf_design.verdict.dispute` orders them; then in the order of the table.
    """
    waiting = [
        (row.answer is not None, -row.worth, dispute(row.verdict, row.misfit, len(row.wrong)), position)
        for position, row in enumerate(rows)
        if row.open
    ]
    return {entry[-1]: rank for rank, entry in enumerate(sorted(waiting), start=1)}


class RepairLike(Protocol):
    """What a repair says of an item, as an object or read back from its document."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def assumes(self) -> str: ...
    @property
    def repaired(self) -> Mapping[str, tuple[float, ...] | None]: ...
    @property
    def bounds(self) -> Mapping[str, float | None]: ...
    @property
    def support(self) -> tuple[str, ...]: ...
    @property
    def erased(self) -> tuple[str, ...] | Any: ...
    @property
    def reason(self) -> str: ...
    @property
    def gamma(self) -> float: ...
    @property
    def residual(self) -> float: ...


def shown_value(value: tuple[float, ...], parser: Parser | None, classes: Classes) -> Any:
    """A value in the words of its parser: a class, a choice, yes or no, else numbers."""
    if parser is not None and parser.dim == 0:
        return _only(classes.labels, value)
    inner = getattr(parser, "of", parser)
    if isinstance(inner, ChoiceParser):
        return _only(inner.options, value)
    if isinstance(inner, YesNoParser) and all(min(abs(x), abs(x - 1)) < 0.5 for x in value):
        return " ".join("yes" if x > 0.5 else "no" for x in value)
    return plain(value)


def _only(names: tuple[str, ...], value: tuple[float, ...]) -> Any:
    """The name whose coordinate is the one that is one; the numbers themselves where they are near
    no name.
    """
    chosen = [name for name, x in zip(names, value, strict=True) if x > 0.5]
    return chosen[0] if len(chosen) == 1 else plain(value)


def repaired_row(name: str, found: RepairLike, *, node: str, parser: Parser | None, classes: Classes, raw: Any) -> Row:
    """The row of an item that was repaired."""
    value = found.repaired.get(node) if found.verdict.passes or found.verdict is Verdict.AMBIGUOUS else None
    said = Value(found.verdict, found.assumes, raw=raw, reason=found.reason)
    if value is not None:
        changed = node in found.support or node in found.erased
        answer = shown_value(value, parser, classes)
        said = replace(said, answer=answer, bound=found.bounds.get(node), changed=changed)
    return Row(
        name,
        (said,),
        wrong=tuple(found.support),
        unread=tuple(found.erased),
        gamma=found.gamma,
        misfit=found.residual,
    )


def reviewed_row(name: str, check: Anchor, value: Any, *, said: Any, reading: Reading | None) -> Row:
    """The row of an item that a trusted check decides: its value is the value, whatever was
    answered.
    """
    parsed = None if reading is None else reading.parsed
    same = parsed is not None and value in (parsed.value, parsed.label)
    decided = Value(
        decided_verdict(check),
        decided_premise(check),
        answer=said,
        raw=None if reading is None else reading.raw,
        bound=0.0,
        changed=not same,
        reason=f"{check.id} states the value.",
    )
    return Row(name, (decided,))


def unusable_row(name: str, reason: str, *, unread: tuple[str, ...] = (), raw: Any = None) -> Row:
    """The row of an item that nothing can be said about."""
    return Row(name, (Value(Verdict.INCOMPLETE, reason=reason, raw=raw),), unread=unread)
