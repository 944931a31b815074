"""Where items are repaired, a chunk at a time: read, cast in the mould of their structure, decoded together, delivered.

Everything that depends on a structure alone (margins, factorisations, null spaces, tables of supports) is made once and kept for
the chunks that follow. One item that can't be used is one row that says so, never the end of the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rrf_design.blocks import Anchor
from rrf_design.bundles import Backend
from rrf_design.decisive import cheapest_first, decides, delivered_node, is_person, worth_of
from rrf_design.derive import with_classes
from rrf_design.errors import InputError
from rrf_design.handover.moulds import Mould, Numbers
from rrf_design.handover.readings import Reading, classes_of, field_of, read_answer
from rrf_design.handover.rows import (
    DeliveredRow,
    repaired_row,
    reviewed_row,
    shown_value,
    unusable_row,
)
from rrf_design.known import expression_of, known_value, rows_of
from rrf_design.noise import Noise
from rrf_design.problem import Problem
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.questions.filling import Filler
from rrf_design.questions.recipe import Recipe
from rrf_design.repairing.batch import Prepared, repair_prepared
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.responses_file import ResponseField
from rrf_design.responses.open_text import Classes
from rrf_design.responses.parsed import Parser, labelled
from rrf_design.responses.reviewed import reviewed_value
from rrf_design.verdict import Verdict

MOULDS = 4096
"""Most moulds that are kept: answers may be missing in very many patterns."""


@dataclass(frozen=True, slots=True)
class RawItem:
    """One item before anything is read: its row without the truth, what was answered, what people said."""

    id: str
    cells: Mapping[str, Any]
    structure: str
    answers: Mapping[str, RecordedAnswer]
    reviews: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How items are repaired: as `rrf_design.repairing` is told."""

    select: tuple[str, ...] | str | None = None
    method: str = "auto"
    k: int | None = None
    noise: Noise | None = None
    backend: Backend = field(default_factory=Backend)


@dataclass(frozen=True, slots=True)
class _Cast:
    """An item on its way: what was read of it, and its task."""

    item: RawItem
    readings: Mapping[str, Reading]
    node: str
    parser: Parser | None
    classes: Classes
    selected: tuple[str, ...]
    place: int
    """Of its task among those of the chunk: items with equal answers and checks share one."""


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The tasks of a chunk, and which of them each kind of item has."""

    prepared: list[Prepared] = field(default_factory=list)
    places: dict[Hashable, int] = field(default_factory=dict)


class _Shape:
    """What of a structure is looked at for every one of its items."""

    def __init__(self, example: Problem, select: tuple[str, ...] | str | None) -> None:
        self.example, self.node = example, delivered_node(example)
        self.nodes_on_sale = frozenset(node.id for node in example.nodes if node.cost is not None)
        self.chosen = frozenset(() if select is None else example.resolve(select)) - self.nodes_on_sale
        self.owned_anchors = tuple(anchor.id for anchor in example.anchors if anchor.owned)
        self.anchors = frozenset(anchor.id for anchor in example.anchors)
        self.computed = tuple(a.id for a in example.anchors if expression_of(a) is not None and self._used(a.id))
        people = [anchor for anchor in example.anchors if is_person(anchor) and decides(example, anchor, self.node)]
        self.people = cheapest_first(people)
        prices = {node.id: (node.cost or 0.0) + (node.price or 0.0) for node in example.nodes}
        self.prices = prices | {block.id: block.cost or 0.0 for block in example.blocks}

    def _used(self, anchor: str) -> bool:
        return anchor in self.owned_anchors or anchor in self.chosen


class Bench:
    """Repairs items of one recipe. `examples` has one problem for each structure. Not thread-safe."""

    def __init__(self, recipe: Recipe, examples: Mapping[str, Problem], settings: BenchSettings) -> None:
        self.settings = settings
        self._filler = Filler(recipe)
        self._shapes = {key: _Shape(example, settings.select) for key, example in examples.items()}
        self._open = self._filler.open_nodes
        self._moulds: dict[tuple[str, int, frozenset[str], frozenset[str]], Mould] = {}
        self._classed: dict[tuple[str, int], Problem] = {}
        self._designs: dict[str, Decoding] = {}
        for example in examples.values():  # what no item of a structure can have is said at once, not a million times
            _ = example.structure
            with_classes(example, self._open, 1)

    def rows(self, items: Sequence[RawItem]) -> list[DeliveredRow]:
        """One row for each item, in order. What is equal within the chunk is repaired once; never what an earlier chunk had, so
        that a row does not depend on where and after what it is worked on."""
        tasks = _Tasks()
        made: list[DeliveredRow | _Cast] = [self._made(item, tasks) for item in items]
        repairs = repair_prepared(tasks.prepared, self._designs, method=self.settings.method).items
        found = []
        for item, one in zip(items, made, strict=True):
            if isinstance(one, _Cast):
                repair = repairs[one.place]
                row = repaired_row(
                    item.id, repair, node=one.node, parser=one.parser, classes=one.classes, readings=one.readings
                )
                cost = self._cost(item, one.readings, one.selected)
            else:
                row, cost = one, one.cost
            found.append(replace(row, structure=item.structure, cost=cost, **self._help(item, row)))
        return found

    def _made(self, item: RawItem, tasks: _Tasks) -> DeliveredRow | _Cast:
        try:
            return self._cast(item, tasks)
        except InputError as error:
            return unusable_row(item.id, str(error))

    def _cast(self, item: RawItem, tasks: _Tasks) -> DeliveredRow | _Cast:
        shape = self._shapes[item.structure]
        example, node = shape.example, shape.node
        parsers = self._filler.parsers(item.cells)
        readings = {name: self._read(example, name, answer, parsers) for name, answer in item.answers.items()}
        decided = self._decided(item, example, node, parsers.get(node), readings)
        if decided is not None:
            return decided
        if not any(reading.parsed is not None for reading in readings.values()):
            unread = tuple(dict.fromkeys((*readings, *(n.id for n in example.nodes if n.cost is None))))
            raw = readings[node].raw if node in readings else None
            return unusable_row(item.id, _nothing_read(readings), unread=unread, raw=raw)
        labels, values = self._known(item, shape, parsers)
        classes = classes_of(readings.values(), labels.values())
        mould = self._mould(item, shape, {*values, *labels}, max(1, len(classes.labels)))
        for name, label in labels.items():
            vector = classes.vector(labelled(label, strict=True))
            assert vector is not None
            values[name] = vector
        answered = field_of(readings, mould.operator.node_ids, classes)
        same = (mould, frozenset(values.items()), *answered.values.items(), None, *answered.invalid.items())
        if same not in tasks.places:
            tasks.prepared.append(self._prepared(mould, values, answered))
            tasks.places[same] = len(tasks.prepared) - 1
        return _Cast(item, readings, node, parsers.get(node), classes, mould.selected, tasks.places[same])

    def _prepared(self, mould: Mould, values: Mapping[str, Numbers], answered: ResponseField) -> Prepared:
        task, answered = make_task(
            mould.problem,
            mould.aimed(values),
            answered,
            k=self.settings.k,
            noise=self.settings.noise,
            backend=self.settings.backend,
            radius=mould.radius,
        )
        return Prepared(task, answered, mould.key, "", mould.selected)

    def _read(self, example: Problem, name: str, answer: RecordedAnswer, parsers: Mapping[str, Parser]) -> Reading:
        node = example.node_by_id.get(name)
        if node is None:
            raise InputError(f"there is an answer of {name!r}, which this item does not ask")
        try:
            return read_answer(answer, parsers.get(name), node.dim)
        except InputError as error:
            raise InputError(f"node {name!r}: {error}") from None

    def _known(
        self, item: RawItem, shape: _Shape, parsers: Mapping[str, Parser]
    ) -> tuple[dict[str, str], dict[str, Numbers]]:
        """The classes and the numbers that checks and relations of this item state, people's included."""
        labels, values = self._filler.labels(item.cells), self._filler.values(item.cells)
        for name, said in item.reviews.items():
            value = self._reviewed(shape.example, name, said, parsers)
            if isinstance(value, str):
                labels[name] = value
            else:
                values[name] = value
        if shape.computed:  # exact arithmetic over the row's cells: the item's own problem has them filled in
            problem = self._filler.problem(item.cells, name=item.id)
            for name in shape.computed:
                exact = known_value(problem, _anchor(problem, name))
                assert exact is not None
                values[name] = tuple(float(number) for number in exact)
        values.update(self._filler.offsets(item.cells))
        return labels, values

    def _reviewed(self, example: Problem, name: str, said: str, parsers: Mapping[str, Parser]) -> str | Numbers:
        """What a person said, as a class or as numbers."""
        anchor = _anchor(example, name)
        parser = parsers.get(anchor.nodes[0]) if len(anchor.nodes) == 1 else None
        return reviewed_value(name, said, parser, rows=rows_of(example, anchor))

    def _decided(
        self,
        item: RawItem,
        example: Problem,
        node: str,
        parser: Parser | None,
        readings: Mapping[str, Reading],
    ) -> DeliveredRow | None:
        """The row of an item about whose delivered value a trusted person has spoken."""
        for name, said in item.reviews.items():
            anchor = _anchor(example, name)
            if decides(example, anchor, node):
                value = self._reviewed(example, name, said, {} if parser is None else {node: parser})
                numbers = value if isinstance(value, tuple | str) else (value,)
                shown = value if isinstance(value, str) else shown_value(_tuple(value), parser, Classes(()))
                row = reviewed_row(item.id, example, name, numbers, said=shown, reading=readings.get(node))
                return replace(row, cost=self._cost(item, readings, tuple(item.reviews)))
        return None

    def _mould(self, item: RawItem, shape: _Shape, known: set[str], classes: int) -> Mould:
        """Held are the questions on sale that were answered, what people said, and what is chosen and known."""
        held = shape.nodes_on_sale.intersection(item.answers).union(item.reviews)
        held |= {name for name in shape.chosen if name in known or name not in shape.anchors}
        absent = frozenset(name for name in shape.owned_anchors if name not in known)
        key = (item.structure, classes, held, absent)
        if key not in self._moulds:
            if len(self._moulds) >= MOULDS:
                self._moulds.clear()
                self._designs.clear()
            shaped = (item.structure, classes)
            if shaped not in self._classed:
                self._classed[shaped] = with_classes(shape.example, self._open, classes)
            self._moulds[key] = Mould(self._classed[shaped], held, absent, noise=self.settings.noise)
        return self._moulds[key]

    def _cost(self, item: RawItem, readings: Mapping[str, Reading], held: tuple[str, ...]) -> float:
        """What the answers and checks of an item cost: as recorded, else as the recipe declares it."""
        prices = self._shapes[item.structure].prices
        paid = sum(prices[name] if one.cost is None else one.cost for name, one in readings.items())
        return paid + sum(prices[name] for name in held if name not in readings)

    def _help(self, item: RawItem, row: DeliveredRow) -> dict[str, Any]:
        """The cheapest person who would decide an item that is open."""
        if row.verdict is Verdict.CERTIFIED:
            return {}
        for anchor in self._shapes[item.structure].people:
            if anchor.id not in item.reviews:
                return {"check": anchor.id, "worth": worth_of(anchor)}
        return {}


def _tuple(value: Numbers) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _anchor(problem: Problem, name: str) -> Anchor:
    block = problem.block_by_id.get(name)
    if not isinstance(block, Anchor):
        raise InputError(f"there is no check {name!r} of this item")
    return block


def _nothing_read(readings: Mapping[str, Reading]) -> str:
    if not readings:
        return "there is no answer; ask, or have a person look at it."
    why = ", ".join(f"{name}: {reading.status}" for name, reading in list(readings.items())[:6])
    return f"no answer could be read ({why}); ask again, or have a person look at it."
