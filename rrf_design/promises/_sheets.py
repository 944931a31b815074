"""Answers about many items side by side: what each node's answer says of the delivered value, and
what it cost.

A node is a voice where relations carry its answer to the delivered one: by the identity, a scale, a
permutation, an offset, along any path. Two voices agree when they say the same delivered value. A
node that says only part of it (parts of a sum) is no voice; verdicts use it, votes do not.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rrf_design.acquisition.classes import open_nodes, with_room
from rrf_design.blocks import Relation
from rrf_design.checks import cheapest_first, is_person, known_value, rows_of
from rrf_design.errors import InputError
from rrf_design.field import Node
from rrf_design.goal import Goal
from rrf_design.noise import Noise, radius_of
from rrf_design.problem import Problem
from rrf_design.promises._checks import is_known, machine_checks, shown_to
from rrf_design.promises._truths import Said, same, shown
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.questions.datasets import DataItem, Dataset
from rrf_design.questions.filling import Numbers
from rrf_design.repairing import ResponseField
from rrf_design.responses.parsed import Parser
from rrf_design.risk import UNREADABLE
from rrf_design.tables.items import ItemTemplate, read_answer

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Step = tuple[Relation, bool]
"""A relation, and whether it is walked from its head to its tail."""


class PolicyTemplate(ItemTemplate):
    """What a policy looks at of every item of one structure, too: how each node's answer is carried
    to the delivered one, and which checks there are.
    """

    def __init__(self, example: Problem) -> None:
        super().__init__(example, open_nodes(example))
        unpriced = [anchor for name, anchor in self.anchors.items() if name in self.owned_anchors and is_person(anchor)]
        if unpriced:
            raise InputError(f"check {unpriced[0].id!r}: a person's time has a price; give the check a cost")
        self.ways = _ways(example, self.node)
        self.prices = {node.id: self.spent((node.id,)) for node in example.nodes}
        """Of asking each node that the structure has."""
        stating = (a for a in self.anchors.values() if is_person(a) and a.nodes == (self.node,) and a.rows is None)
        self.person = next(iter(cheapest_first(stating)), None)
        """The check by a person that states the delivered value."""
        self.checks = {check.id: check for check in machine_checks(example)}
        """Those on sale that machines make, the cheapest first."""
        self.shown = {name: frozenset(shown_to(example, check)) for name, check in self.checks.items()}
        """The answers that each of these is made from."""
        self.room = max((with_room(example).node_by_id[name].dim for name in open_nodes(example)), default=0)
        """How many classes an item can have, where its answers are classes: each is a coordinate of
        its own.
        """

    @cached_property
    def identity(self) -> bool:
        """Every node is a voice, there is no noise and no check: an explanation is a camp, and
        camps decide as verdicts do.
        """
        problem = self.problem
        held = [block for block in problem.blocks if block.cost is None]
        plain = all(isinstance(block, Relation) and block.pair and not block.uncertainty for block in held)
        silent = radius_of(problem, problem.whole, Noise()).epsilon == 0.0
        alone = all(node.unit is None for node in problem.nodes) and not problem.whole.premise.wrong_checks
        tree = len(self.ways) == len(problem.nodes) == len(held) + 1
        return plain and silent and tree and alone and Goal.of(problem).target is None

    def implied(self, node: str, said: Said | None, offsets: Mapping[str, Numbers]) -> Said | None:
        """The delivered value that an answer of this node means; None where it means none."""
        if node not in self.ways:
            return None
        for relation, backwards in self.ways[node]:
            said = relation.carry(said, offsets.get(relation.id), back=backwards)
        return said


def _ways(problem: Problem, goal: str) -> dict[str, tuple[Step, ...]]:
    """From every node that can be carried to the delivered one: the steps, nearest path first."""
    touching: dict[str, list[Relation]] = {}
    for block in problem.blocks:
        if isinstance(block, Relation) and block.pair and block.cost is None and block.transport.invertible:
            for end in block.pair:
                touching.setdefault(end, []).append(block)
    found: dict[str, tuple[Step, ...]] = {goal: ()}
    waiting = deque([goal])
    while waiting:
        here = waiting.popleft()
        for relation in touching.get(here, ()):
            other = relation.head if relation.tail == here else relation.tail
            if other is not None and other not in found:
                found[other] = ((relation, other == relation.head), *found[here])
                waiting.append(other)
    return found


@dataclass(frozen=True, slots=True)
class ItemAnswers:
    """One item: what was said at each node, what that means, and the response field that a repair
    takes.
    """

    id: str
    template: PolicyTemplate
    said: Mapping[str, Said | None]
    implied: Mapping[str, Said | None]
    cost: Mapping[str, float]
    invalid: Mapping[str, str]
    values: Mapping[str, Numbers]
    """Of the checks that the row knows."""
    offsets: Mapping[str, Numbers]
    raw: str
    parser: Parser | None
    item: DataItem = field(repr=False)
    checked: Mapping[str, Said] = field(default_factory=dict)
    """What machines' checks say that are known or were fetched; one that failed is not there."""
    absent: frozenset[str] = frozenset()
    """Answers and checks that nobody asked for: nothing is known about what they would have
    been.
    """
    lost: frozenset[str] = frozenset()
    """Those that were asked for in vain, because the call failed: a run goes on without them, a
    pilot can't count on them.
    """

    @property
    def votes(self) -> dict[str, Any]:
        """What each node's answer means of the delivered value, as it would be delivered."""
        return {node: shown(said, self.parser) for node, said in self.implied.items() if said is not None}

    def price(self, step: str) -> float:
        """Of an answer, or of a check that the item has."""
        return self.spent([step])

    def spent(self, steps: Iterable[str]) -> float:
        """What answers and checks of the item cost together."""
        return float(self.template.problem.structure.market.spent(steps, self.cost))

    def answers(self, nodes: Iterable[str]) -> ResponseField:
        """The responses of these nodes; all others are not asked."""
        asked = {name: self.said[name] for name in nodes if name in self.said}
        values = {name: self.numbers(value) for name, value in asked.items() if value is not None}
        others = {n.id: "missing" for n in self.template.problem.nodes if n.id not in values}
        unread = {name: why for name, why in self.invalid.items() if name in asked}
        return ResponseField(values, {**others, **unread}, name=self.id)

    @property
    def classes(self) -> tuple[str, ...]:
        """Of answers that are classes, those that the item's answers and checks name, in that order
        whatever is held of them.
        """
        heard = [said for said in self.said.values() if isinstance(said, str)]
        return tuple(dict.fromkeys([*heard, *self.item.labels.values()]))

    def numbers(self, said: Said) -> tuple[float, ...]:
        """As a repair takes it: a class is one at its own coordinate."""
        if not isinstance(said, str):
            return said
        place = self.classes.index(said)
        return tuple(float(at == place) for at in range(self.template.room))

    def stated(self, bought: Iterable[str]) -> dict[str, Numbers]:
        """Offsets of relations, and values of the checks that are there or were bought."""
        template = self.template
        owned = [name for name in template.computed if name in template.owned_anchors]
        computed = template.computed_values(self.item.problem, owned) if owned else {}
        labels = self.item.labels if template.room else {}
        named = {name: self.numbers(label) for name, label in labels.items() if name in template.owned_anchors}
        fetched = {name: self.numbers(self.checked[name]) for name in bought}
        return {**self.offsets, **computed, **self.values, **named, **fetched}

    def words(self, value: tuple[float, ...] | None) -> Said | None:
        """What a repaired value of the delivered node says; None where it is no class."""
        if value is None or self.template.room == 0:
            return value
        named = [name for name, part in zip(self.classes, value, strict=False) if part > 0.5]
        return named[0] if len(named) == 1 else None


class AnswerSheet:
    """Items beside nodes: codes (items, nodes) name the first node that says the same delivered
    value, UNREADABLE where none is said.
    """

    def __init__(self, rows: Sequence[ItemAnswers], nodes: Sequence[str]) -> None:
        self.rows, self.nodes = tuple(rows), tuple(nodes)
        self.templates = tuple(row.template for row in rows)
        self.codes: Codes = np.array([_codes(row, self.nodes) for row in rows], dtype=np.int64).reshape(
            len(rows), len(nodes)
        )
        self.costs: Floats = np.array(
            [[row.cost.get(node, 0.0) for node in self.nodes] for row in rows], dtype=np.float64
        ).reshape(len(rows), len(nodes))
        for told in (self.codes, self.costs):
            told.setflags(write=False)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(row.id for row in self.rows)

    @property
    def identity(self) -> bool:
        """Whether camps decide as verdicts do, in every item."""
        return all(row.template.identity for row in self.rows)

    def only(self, places: Sequence[int]) -> AnswerSheet:
        return AnswerSheet([self.rows[place] for place in places], self.nodes)


@dataclass(frozen=True, slots=True)
class TableSheet:
    """All items of a table, by place: what each costs and shares with others, and the answers of
    those that are wanted.
    """

    nodes: tuple[str, ...]
    templates: tuple[PolicyTemplate, ...]
    costs: Floats
    """What each answer costs (items, nodes)."""
    rows: Mapping[int, ItemAnswers]

    def __len__(self) -> int:
        return len(self.templates)

    def only(self, places: Iterable[int]) -> AnswerSheet:
        """The answers of items that are wanted."""
        return AnswerSheet([self.rows[place] for place in places], self.nodes)


class AnswersByItem(Protocol):
    """Recorded or bought answers, looked up by item."""

    def of(self, item: str, /) -> Mapping[str, RecordedAnswer]: ...


def read_sheet(dataset: Dataset, answers: AnswersByItem, nodes: Sequence[str]) -> AnswerSheet:
    """Every item of the data set with its recorded answers, in the order of the table."""
    found = read_table(dataset, answers, nodes)
    return found.only(range(len(found)))


def read_table(
    dataset: Dataset,
    answers: AnswersByItem,
    nodes: Sequence[str],
    *,
    wanted: Container[int] | None = None,
    priced: bool = True,
) -> TableSheet:
    """The same, but of items in places that are not wanted no answer is read, only its price;
    `priced`: answers may say what they cost.
    """
    dataset.refuse_several("a tested promise")
    templates: dict[str, PolicyTemplate] = {}
    plain: dict[str, list[float]] = {}
    rows: dict[int, ItemAnswers] = {}
    every: list[PolicyTemplate] = []
    costs = array("d")
    for place, item in enumerate(dataset.items_in_order()):
        if item.structure not in templates:
            made = templates[item.structure] = PolicyTemplate(item.problem)
            plain[item.structure] = [made.prices.get(node, 0.0) for node in nodes]
        template = templates[item.structure]
        every.append(template)
        if wanted is None or place in wanted:
            rows[place] = _row(item, template, answers.of(item.id))
            costs.extend(rows[place].cost.get(node, 0.0) for node in nodes)
        elif not priced:
            costs.extend(plain[item.structure])
        else:
            said = answers.of(item.id)
            paid = ((said[node].cost if node in said and node in template.prices else None) for node in nodes)
            costs.extend(p if c is None else c for p, c in zip(plain[item.structure], paid, strict=True))
    table = np.array(costs).reshape(len(every), len(nodes))
    table.setflags(write=False)
    return TableSheet(tuple(nodes), tuple(every), table, rows)


def _row(item: DataItem, template: PolicyTemplate, answered: Mapping[str, RecordedAnswer]) -> ItemAnswers:
    parsers, offsets = item.parsers, item.offsets
    said: dict[str, Said | None] = {}
    invalid: dict[str, str] = {}
    cost: dict[str, float] = {}
    for node in template.prices:
        answer = answered.get(node)
        value, why = (
            (None, "missing")
            if answer is None
            else _said(answer, parsers.get(node), template.problem.node_by_id[node], item.id)
        )
        said[node] = value
        cost[node] = template.prices[node] if answer is None or answer.cost is None else answer.cost
        if value is None:
            invalid[node] = why
    implied = {node: template.implied(node, value, offsets) for node, value in said.items()}
    first = answered.get(template.node)
    raw = "" if first is None or first.text is None else first.text
    values = item.values
    checked = _checked(item, template, values, answered)
    paid = {name: answered[name].cost for name in template.checks if name in answered}
    cost |= {name: price for name, price in paid.items() if price is not None}
    absent = {name for name in template.prices if name not in answered}
    absent |= {name for name in template.checks if name not in answered and name not in checked}
    return ItemAnswers(
        item.id,
        template,
        said,
        implied,
        cost,
        invalid,
        values,
        offsets,
        raw,
        parsers.get(template.node),
        item,
        checked,
        frozenset(absent),
        frozenset(name for name, answer in answered.items() if answer.lost),
    )


def _checked(
    item: DataItem, template: PolicyTemplate, values: Mapping[str, Numbers], answered: Mapping[str, RecordedAnswer]
) -> dict[str, Said]:
    """What the checks of an item say: what was fetched, the row's own class or value, else what
    arithmetic gives.
    """
    labels = item.labels if template.room else {}
    found: dict[str, Said] = {name: labels[name] for name in template.checks if name in labels}
    for name, check in template.checks.items():
        if name in found:
            continue
        rows, known = rows_of(template.problem, check), None
        if name in answered:
            known = answered[name].value
            if known is not None and len(known) != rows:
                raise InputError(f"item {item.id!r}, check {name!r}: {len(known)} numbers where {rows} are needed")
        elif name in values:
            own = values[name]
            known = own if isinstance(own, tuple) else (float(own),) * rows
        elif is_known(template.problem, check):
            problem = item.problem
            exact = known_value(problem, next(anchor for anchor in problem.anchors if anchor.id == name))
            known = None if exact is None else tuple(float(number) for number in exact)
        if known is not None:
            found[name] = known
    return found


def _said(answer: RecordedAnswer, parser: Parser | None, node: Node, item: str) -> tuple[Said | None, str]:
    try:
        found = read_answer(answer, parser, node.dim)
    except InputError as error:
        raise InputError(f"item {item!r}, node {node.id!r}: {error}") from None
    if found.parsed is None:
        return None, found.status or "missing"
    return (found.parsed.label if found.parsed.label is not None else found.parsed.value), ""


def _codes(row: ItemAnswers, nodes: Sequence[str]) -> list[int]:
    """The first node that says the same.

    Without noise "the same" means up to rounding, as it does in a repair.
    """
    values = [row.implied.get(node) for node in nodes]
    found: list[int] = []
    for place, said in enumerate(values):
        found.append(code_among(said, values, found, new=place))
    return found


def code_among(value: Said | None, values: Sequence[Said | None], codes: Sequence[int], *, new: int) -> int:
    """The code of those who said the same, or a new one; UNREADABLE for nothing.

    Codes are places in `values`.
    """
    if value is None:
        return UNREADABLE
    for code in dict.fromkeys(codes):
        other = values[code] if code >= 0 else None
        if other is not None and same(value, other):
            return code
    return new
