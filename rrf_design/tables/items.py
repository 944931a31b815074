"""Recorded answers of one item, read: numbers, or classes that mean something beside the item's
other answers only; and the template that all items of one structure share.

An answer that can't be read is never a value: it carries the reason. Open answers (labels,
literals, calls) become one-hot vectors over the classes that this item's answers and checks name,
so that "the same" is compared like any other relation.

With a template an item is a response and a right-hand side (docs/algorithms.md, fact 21): no
problem is built for it. `rrf_design.repairing` on the item's own problem is the slow and obvious
way, and gives the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rrf_design.blocks import Anchor
from rrf_design.checks import (
    cheapest_first,
    decides,
    delivered_node,
    expression_of,
    is_person,
    known_value,
)
from rrf_design.derive import with_classes
from rrf_design.errors import InputError
from rrf_design.models import opens_as_refusal
from rrf_design.noise import Noise
from rrf_design.problem import Problem
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.repairing import Numbers, RepairEngine, ResponseField, SharedDesign
from rrf_design.responses.open_text import Classes
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, labelled, parse_each
from rrf_design.transforms import VETOED, vetoed

Values = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer: what it says, and the text that said it; `status` where it says nothing."""

    parsed: Parsed | None
    status: str | None
    text: str | None
    cost: float | None

    @property
    def raw(self) -> Any:
        """What was answered, as it was answered: a text, else numbers."""
        if self.text is not None:
            return self.text
        value = None if self.parsed is None else self.parsed.value
        return None if value is None else plain(value)

    @property
    def said(self) -> Any:
        """What was answered about one field of a document: its own part of the text, where that
        could be read.
        """
        if self.parsed is None or self.text is None:
            return self.raw
        found = self.parsed.canonical if self.parsed.label is None else self.parsed.label
        return found or self.raw


Asked = tuple[RecordedAnswer, Parser | None, int]
"""An answer, what reads it, and the dimension of its node."""


def read_answer(answer: RecordedAnswer, parser: Parser | None, dim: int) -> Reading:
    """The reading of one recorded answer; InputError for one that can't belong to its node."""
    (found,) = read_answers([(answer, parser, dim)])
    if isinstance(found, InputError):
        raise found
    return found


def read_answers(asked: Sequence[Asked]) -> list[Reading | InputError]:
    """The readings of many recorded answers; in place of one that can't belong to its node its
    fault.
    """
    texts = [
        (parser, answer.text or "")
        for answer, parser, _ in asked
        if answer.status is None and answer.value is None and parser is not None
    ]
    parsed = iter(parse_each(texts))
    found: list[Reading | InputError] = []
    for answer, parser, dim in asked:
        try:
            found.append(_read(answer, parser, dim, parsed))
        except InputError as error:
            found.append(error)
    return found


def _read(answer: RecordedAnswer, parser: Parser | None, dim: int, parsed: Iterator[Parsed]) -> Reading:
    if answer.status is not None:
        return Reading(None, answer.status, answer.text, answer.cost)
    if answer.value is not None:
        return Reading(_numbers(answer.value, parser, dim), None, answer.text, answer.cost)
    if parser is None:
        raise InputError("the answer is text, but the node names no parser; give numbers, or a parser")
    text, found = answer.text or "", next(parsed)
    if found.status is ParseStatus.PARSED and not (found.label is not None and opens_as_refusal(text)):
        return Reading(found, None, text, answer.cost)  # any words may be a class; a refusal is none
    return Reading(None, "refusal" if opens_as_refusal(text) else found.status.value, text, answer.cost)


def _numbers(value: Values, parser: Parser | None, dim: int) -> Parsed:
    if parser is not None and parser.dim == 0:
        raise InputError("the answer is a number, but its node reads classes; give its text")
    if len(value) != dim:
        raise InputError(f"the answer has {len(value)} numbers, but its node has dimension {dim}")
    if not all(math.isfinite(number) for number in value):
        raise InputError("the answer is not finite; where there is none, give a status instead")
    return Parsed(ParseStatus.PARSED, tuple(value), True)


def without_vetoed(
    rules: Mapping[str, Sequence[Mapping[str, Any]]], readings: Mapping[str, Reading]
) -> tuple[dict[str, Reading], dict[str, str]]:
    """The readings, where those that break what is said of their node are unread; and what they
    break, by node.
    """
    if not rules:
        return dict(readings), {}
    broken = vetoed(rules, {name: one.parsed for name, one in readings.items() if one.parsed is not None})
    kept = {name: replace(one, parsed=None, status=VETOED) if name in broken else one for name, one in readings.items()}
    return kept, broken


_NUMBERS = Classes(())


def classes_of(readings: Iterable[Reading], labels: Collection[str]) -> Classes:
    """The classes of an item: those of its answers in order, then those that only its checks
    name.
    """
    answered = [
        reading.parsed for reading in readings if reading.parsed is not None and reading.parsed.label is not None
    ]
    if not answered and not labels:
        return _NUMBERS
    return Classes.of([*answered, *(labelled(label, strict=True) for label in labels)])


def field_of(readings: Mapping[str, Reading], nodes: Iterable[str], classes: Classes) -> ResponseField:
    """The responses of the nodes of a design; nodes without a row are missing."""
    values: dict[str, Values] = {}
    invalid: dict[str, str] = {}
    for node in nodes:
        reading = readings.get(node)
        if reading is None or reading.parsed is None:
            invalid[node] = "missing" if reading is None else reading.status or "missing"
            continue
        found = reading.parsed.value if reading.parsed.label is None else classes.vector(reading.parsed)
        assert found is not None
        values[node] = found
    return ResponseField(values, invalid)


def plain(value: Values) -> Any:
    """Numbers as people write them: one, or a list; what rounding left of a repair is not shown,
    and no digit that was answered is lost.
    """
    shown = [_plain(number) for number in value]
    return shown[0] if len(shown) == 1 else shown


def _plain(number: float) -> float | int:
    if not math.isfinite(number):
        return number
    whole = round(number)
    if abs(whole) < 2**53 and abs(number - whole) <= _last_bits(number):
        return whole
    before = len(str(abs(int(number))))
    near = float(f"{number:.{min(17, max(12, before + 3))}g}")
    return int(near) if near.is_integer() and abs(near) < 2**53 else near


def rounding(number: float) -> float:
    """How far two numbers of this size may be apart that are the same, written or computed in two
    ways: a billionth, and above a thousand no more than a millionth, or what the last bits are
    worth. So codes of 13 digits differ in their last one.
    """
    return max(min(1e-9 * abs(number), 1e-6), _last_bits(number))


def _last_bits(number: float) -> float:
    """What a repair may leave wrong of a number of this size; never so much that it could be the
    next whole one.
    """
    return min(64 * math.ulp(number), 0.49)


class ItemTemplate:
    """What all items of one structure share: what is delivered, what could decide it, prices.

    The example's own texts and values mean nothing here. `open_nodes` are those whose answers are
    classes.
    """

    def __init__(self, example: Problem, open_nodes: frozenset[str] = frozenset()) -> None:
        self.problem, self.node = example, delivered_node(example)
        self.on_sale = frozenset(node.id for node in example.nodes if node.cost is not None)
        self.anchors = {anchor.id: anchor for anchor in example.anchors}
        self.owned_anchors = tuple(anchor.id for anchor in example.anchors if anchor.owned)
        self.computed = tuple(anchor.id for anchor in example.anchors if expression_of(anchor) is not None)
        self.deciding_people = cheapest_first(
            a for a in example.anchors if is_person(a) and decides(example, a, self.node)
        )
        self._open, self._classed = open_nodes, dict[int, Problem]()
        self._prices = dict[tuple[str, ...], float]()

    def anchor(self, name: str) -> Anchor:
        if name not in self.anchors:
            raise InputError(f"there is no check {name!r} of this item")
        return self.anchors[name]

    def spent(self, names: tuple[str, ...], paid: Mapping[str, float | None] | None = None) -> float:
        """What these cost together; `paid` are prices that were recorded."""
        market = self.problem.structure.market
        if paid and any(cost is not None for cost in paid.values()):
            return float(market.spent(names, paid))
        if names not in self._prices:
            self._prices[names] = float(market.spent(names))
        return self._prices[names]

    def design(
        self,
        engine: RepairEngine,
        held: frozenset[str],
        *,
        absent: frozenset[str] = frozenset(),
        classes: int = 1,
        noise: Noise | None = None,
    ) -> SharedDesign:
        """What items share that hold the same; `classes` is how many their answers name."""

        def made() -> SharedDesign:
            if classes not in self._classed:
                self._classed[classes] = with_classes(self.problem, self._open, classes)
            problem = self._classed[classes]
            return SharedDesign(problem, problem.structure.holding(held, absent), noise=noise)

        return engine.shared((self, classes, held, absent), made)

    def computed_values(self, problem: Problem, names: Iterable[str]) -> dict[str, Numbers]:
        """What expressions give for an item, exactly; its own problem has the row's cells filled
        in.
        """
        found: dict[str, Numbers] = {}
        for name in names:
            exact = known_value(problem, next(anchor for anchor in problem.anchors if anchor.id == name))
            assert exact is not None
            found[name] = tuple(float(number) for number in exact)
        return found
