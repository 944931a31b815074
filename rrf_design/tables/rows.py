"""One delivered row: what may be handed over of an item, and why, what it cost, and who should look
at it first. Delivered columns are declared here and nowhere else.

`answer` is empty unless it may be believed: its verdict is checked or consistent, or ambiguous
where every explanation has the same value, or a policy delivers it. A person who is trusted and
whose check states the delivered value decides the item: what they said is the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rrf_design.blocks import Anchor
from rrf_design.checks import decided_premise, decided_verdict
from rrf_design.responses.open_text import ChoiceParser, Classes, YesNoParser
from rrf_design.responses.parsed import Parser
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
    check: str | None = None
    """The cheapest check by a person that would decide this one of several fields."""

    @property
    def open(self) -> bool:
        """Whether people should look at it, as far as it is not settled otherwise."""
        return self.answer is None or not self.verdict.passes


@dataclass(frozen=True, slots=True)
class Row:
    """What one item came to: a value for each delivered field, and what is said of all of it.

    What is said of a value (`answer`, `reason`, ...) is that of the only field, or of all
    together; `verdict` is the worst of them. `rank` is not here: it compares items.
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
    def fields(self) -> tuple[str, ...]:
        """The names of its values, where there are several."""
        return tuple(value.field for value in self.values) if len(self.values) > 1 else ()

    @property
    def verdict(self) -> Verdict:
        if len(self.values) == 1:
            return self.values[0].verdict
        return worst(value.verdict for value in self.values) or Verdict.INCOMPLETE

    @property
    def assumes(self) -> str:
        return "; ".join(dict.fromkeys(value.assumes for value in self.values if value.assumes))

    @property
    def answer(self) -> Any:
        """What may be handed over; of several fields a mapping, without those that are open."""
        if len(self.values) == 1:
            return self.values[0].answer
        return {value.field: value.answer for value in self.values if value.answer is not None} or None

    @property
    def raw(self) -> Any:
        if len(self.values) == 1:
            return self.values[0].raw
        return {value.field: value.raw for value in self.values if value.raw is not None} or None

    @property
    def bound(self) -> float | None:
        """None where there are several fields: each has its own unit."""
        return self.values[0].bound if len(self.values) == 1 else None

    @property
    def changed(self) -> bool | None:
        told = [value.changed for value in self.values if value.changed is not None]
        return any(told) if told else None

    @property
    def reason(self) -> str:
        """Of several fields that of the worst."""
        if len(self.values) == 1:
            return self.values[0].reason
        value = max(self.values, key=lambda value: value.verdict.rank)
        return f"{value.field}: {value.reason}"

    @property
    def open(self) -> bool:
        """Whether people should look at it."""
        if self.settled:
            return any(value.answer is None for value in self.values)
        return any(value.open for value in self.values)

    def with_value(self, **changes: Any) -> Row:
        """The same with something else said of its first value."""
        return replace(self, values=(replace(self.values[0], **changes), *self.values[1:]))

    def cells(self, rank: int | None) -> dict[Key, Any]:
        """The delivered columns, by the keys of `delivered_names`."""
        if len(self.values) == 1:
            return {name: one.cell(self, self.values[0], rank) for name, one in COLUMNS.items()}
        own: dict[Key, Any] = {
            (value.field, name): value.verdict.value if name == "verdict" else COLUMNS[name].cell(self, value, rank)
            for value in self.values
            for name in OF_FIELD
        }
        return own | {name: COLUMNS[name].cell(self, self.values[0], rank) for name in OF_ROW}

    def to_json(self) -> dict[str, Any]:
        """A value of the only field stands in the row itself; several stand under `values`."""
        several = len(self.values) > 1
        found = {name: getattr(self, name) for name in _KEYS}
        found |= {"verdict": self.verdict.value, "wrong": list(self.wrong), "unread": list(self.unread)}
        if several:
            found["values"] = [{name: getattr(value, name) for name in _OF_VALUE} for value in self.values]
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        told = _OF_VALUE if "values" in data else _SAID
        said = [{name: entry[name] for name in told if name in entry} for entry in data.get("values", [data])]
        values = tuple(Value(**{**entry, "verdict": Verdict(entry["verdict"])}) for entry in said)
        own = {name: data[name] for name in _KEYS if name not in _SAID}
        return cls(**{**own, "values": values, "wrong": tuple(data["wrong"]), "unread": tuple(data["unread"])})


_OF_VALUE = tuple(Value.__slots__)
_SAID = ("verdict", "assumes", "answer", "raw", "bound", "changed", "reason")
"""What is said of a value, and of a row with one."""
_KEYS = (
    *("id", "verdict", "assumes", "answer", "raw", "bound", "changed", "cost", "reason"),
    *("wrong", "unread", "gamma", "structure", "misfit", "check", "worth"),
)


@dataclass(frozen=True, slots=True)
class _Column:
    """A delivered column: what its cells hold, and all that others have to know of them."""

    cell: Callable[[Row, Value, int | None], Any]
    kind: str = "string"
    """Its type in Arrow."""
    words: bool = False
    """Words of models and people: in a spreadsheet they are no formulas."""
    of_row: bool = False
    """Of the whole row, where a row has several fields; the others each field has for itself."""


COLUMNS: Mapping[str, _Column] = {
    "answer": _Column(lambda row, value, rank: value.answer, words=True),
    "raw": _Column(lambda row, value, rank: value.raw, words=True),
    "verdict": _Column(lambda row, value, rank: row.verdict.value),
    "assumes": _Column(lambda row, value, rank: value.assumes, words=True),
    "bound": _Column(lambda row, value, rank: value.bound, "float64"),
    "changed": _Column(lambda row, value, rank: value.changed, "bool_"),
    "cost": _Column(lambda row, value, rank: row.cost, "float64", of_row=True),
    "reason": _Column(lambda row, value, rank: value.reason, words=True),
    "rank": _Column(lambda row, value, rank: rank, "int64", of_row=True),
}
"""The columns that a delivered table has beside the input's, in this order: a new one is a line
here.
"""

WORDS = tuple(name for name, column in COLUMNS.items() if column.words)
_PROMISED = ("answer", "raw", "verdict", "reason", "bound", "assumes", "changed")
OF_FIELD = (*_PROMISED, *(name for name, one in COLUMNS.items() if not one.of_row and name not in _PROMISED))
"""Columns that each of several fields has, in this order; the first is called like the field."""
OF_ROW = ("verdict", *(name for name, one in COLUMNS.items() if one.of_row))
"""Columns of the whole row beside them."""
Key = str | tuple[str, str]
"""A delivered column: its name, or field and name where a row has several."""


def delivered_names(columns: Iterable[str], fields: Sequence[str] = ()) -> dict[Key, str]:
    """What each delivered column is called: its own name, with `rrf_` before it where the input has
    that already.

    Of several fields each is called like the last part of its name (`a.total`: total), or like all
    of it where two would be the same.
    """
    taken, found = set(columns), dict[Key, str]()
    keys: list[tuple[Key, str]] = [(name, name) for name in COLUMNS]
    if fields:
        called = _field_titles(fields)
        each = ((field, name) for field in fields for name in OF_FIELD)
        keys = [(key, called[key[0]] if key[1] == "answer" else f"{called[key[0]]}_{key[1]}") for key in each]
        keys += [(name, name) for name in OF_ROW]
    for key, name in keys:
        free = name
        while free in taken:
            free = f"rrf_{free}"
        taken.add(free)
        found[key] = free
    return found


def _field_titles(fields: Sequence[str]) -> dict[str, str]:
    """What several fields are called, by node."""
    short = {field: field.rpartition(".")[2] for field in fields}
    often = Counter(short.values())
    return {field: name if often[name] == 1 else field for field, name in short.items()}


def joined_row(fields: Sequence[tuple[str, Row]]) -> Row:
    """The row of an item from those of its fields, each under its name; the only one as it is."""
    first = fields[0][1]
    if len(fields) == 1:
        return first
    rows = [row for _, row in fields]
    waits = next((row for row in rows if row.check is not None), first)
    return replace(
        first,
        values=tuple(replace(row.values[0], field=name, check=row.check) for name, row in fields),
        wrong=tuple(dict.fromkeys(name for row in rows for name in row.wrong)),
        unread=tuple(dict.fromkeys(name for row in rows for name in row.unread)),
        gamma=min(row.gamma for row in rows),
        misfit=max(row.misfit for row in rows),
        check=waits.check,
        worth=waits.worth,
    )


ReviewKey = tuple[bool, float, int, float, int]


def review_key(row: Row) -> ReviewKey | None:
    """What the order of the review list is made from, smallest first; None for a row that nobody
    has to look at.

    Rows without an answer come first; then those that a person settles for the least money; then
    as `rrf_design.verdict.dispute` orders them.
    """
    if not row.open:
        return None
    answered = all(value.answer is not None for value in row.values)
    return answered, -row.worth, *dispute(row.verdict, row.misfit, len(row.wrong))


def review_ranks(rows: Iterable[Row]) -> dict[int, int]:
    """By position: 1 for the row that people should look at first, of equal ones the first of the
    table; rows that nobody has to look at have none.
    """
    waiting = sorted((key, position) for position, row in enumerate(rows) if (key := review_key(row)) is not None)
    return {position: rank for rank, (_, position) in enumerate(waiting, start=1)}


class _RepairLike(Protocol):
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


def repaired_row(
    name: str,
    found: _RepairLike,
    *,
    node: str,
    parser: Parser | None,
    classes: Classes,
    raw: Any,
    cost: float = 0.0,
    structure: str = "",
) -> Row:
    """The row of an item that was repaired."""
    value = found.repaired.get(node) if found.verdict.passes or found.verdict is Verdict.AMBIGUOUS else None
    answer, bound, changed = None, None, None
    if value is not None:
        answer, bound = shown_value(value, parser, classes), found.bounds.get(node)
        changed = node in found.support or node in found.erased
    return Row(
        name,
        (Value(found.verdict, found.assumes, answer, raw, bound, changed, found.reason),),
        cost,
        tuple(found.support),
        tuple(found.erased),
        found.gamma,
        structure,
        found.residual,
    )


def reviewed_row(
    name: str, check: Anchor, value: Any, *, said: Any, reading: Reading | None, within: float = 0.0
) -> Row:
    """The row of an item that a trusted check decides: its value is the value, whatever was
    answered, up to noise of `within`.
    """
    parsed = None if reading is None else reading.parsed
    same = parsed is not None and value in (parsed.value, parsed.label)
    decided = Value(
        decided_verdict(check),
        decided_premise(check, within),
        answer=said,
        raw=None if reading is None else reading.raw,
        bound=within,
        changed=not same,
        reason=f"{check.id} states the value.",
    )
    return Row(name, (decided,))


def unusable_row(name: str, reason: str, *, unread: tuple[str, ...] = (), raw: Any = None) -> Row:
    """The row of an item that nothing can be said about."""
    return Row(name, (Value(Verdict.INCOMPLETE, reason=reason, raw=raw),), unread=unread)
