"""Position bias, measured from the recipe's own words: questions that are asked in two orders, declared as such.

An ask whose options are permuted (`change = { permute = [1, 0] }`, or a relation that permutes), or whose columns are exchanged
(`reword = { swap = [...] }`), must have the answer of the other order, carried over. Where it has not, the order decided. If places
did not matter, the two answers could as well have come the other way round, so of the changed ones as many would lie on what stood
earlier as on what stood later: an exact sign test, without any truth. Where the delivered question itself is one of the two, the
truth says as well how often the right option is found at each place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rrf_design.blocks import Relation
from rrf_design.promises.judging import interval
from rrf_design.promises.sheets import AnswerSheet, SheetRow, carried, simple
from rrf_design.promises.truths import Truth, place_of, same
from rrf_design.questions.recipe import Recipe

_WORDS = {"earlier": "to what stood earlier", "later": "to what stood later", "lower": "downwards", "higher": "upwards"}


def both_orders(sheet: AnswerSheet, truths: Sequence[Truth], recipe: Recipe, confidence: float) -> list[dict[str, Any]]:
    """For every question that is asked in two orders, and every model that is asked both: how often the order decided, and which way."""
    tallies: dict[tuple[str, str], _Orders] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        for relation in row.shape.problem.relations:
            for first, second in _pairs(relation, recipe):
                tallies.setdefault((first, second), _Orders(first, second)).count(row, truth, relation)
    return [tally.document(confidence) for tally in tallies.values() if tally.read]


def order_proposals(orders: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words, for the recipe's author."""
    return [
        f"{entry['nodes'][0]!r} and {entry['nodes'][1]!r}: the answer changed with the order in {entry['changed']} of {entry['both_read']}"
        f" items, {max(entry['ways'].values())} times {_WORDS[max(entry['ways'], key=entry['ways'].__getitem__)]}"
        f" (p = {entry['p']:.2g}); ask in both orders, and believe neither alone"
        for entry in orders
        if entry["biased"]
    ]


def _pairs(relation: Relation, recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The nodes that ask one question in two orders, model by model; nothing for a relation that declares no other order."""
    if not relation.pair or not simple(relation):
        return
    asks = {node: (ask, model, repeat) for (ask, model, repeat), node in recipe.nodes.items()}
    tail, head = asks.get(str(relation.tail)), asks.get(str(relation.head))
    if tail is None or head is None or tail[0] == head[0]:
        return
    if relation.transport.kind != "permute" and not {tail[0], head[0]} & recipe.swapped:
        return
    seen = set()
    for (ask, model, repeat), node in recipe.nodes.items():
        other = recipe.nodes.get((head[0], model, repeat)) if ask == tail[0] else None
        if other is not None and (node, other) not in seen:
            seen.add((node, other))
            yield node, other


@dataclass(slots=True)
class _Orders:
    """What was seen of one question in two orders."""

    first: str
    second: str
    read: int = 0
    changed: int = 0
    ways: dict[str, int] = field(default_factory=dict)
    places: dict[int, list[int]] = field(default_factory=dict)
    """Where the right option stood: how often it was judged there, and found."""

    def count(self, row: SheetRow, truth: Truth, relation: Relation) -> None:
        one, other = row.said.get(self.first), row.said.get(self.second)
        order = relation.transport.permute
        if order is not None and one is not None and other is not None:
            self._places(row, truth, order, (place_of(one), place_of(other)))
        if isinstance(one, str) or isinstance(other, str):
            if isinstance(one, str) and isinstance(other, str) and order is None:
                self._note(same(one, other, None), "")
            return
        if one is None or other is None:
            return
        expected = carried(one, relation, row.offsets.get(relation.id, relation.offset), backwards=False)
        chosen, shown = place_of(one), place_of(other)
        if order is not None and chosen is not None and shown is not None:
            stood = chosen + shown, order.index(chosen) + order[shown]  # when chosen, and when not
            self._note(order[shown] == chosen, _way(stood[0] - stood[1], "earlier", "later"))
        else:
            gap = other[0] - expected[0] if len(other) == len(expected) == 1 else 0.0
            self._note(same(expected, other, truth.tolerance), _way(gap, "lower", "higher"))

    def _note(self, unchanged: bool, way: str) -> None:
        self.read += 1
        if not unchanged:
            self.changed += 1
            if way:
                self.ways[way] = self.ways.get(way, 0) + 1

    def _places(self, row: SheetRow, truth: Truth, order: Sequence[int], chosen: tuple[int | None, int | None]) -> None:
        """Whether the right option was found where it stood; known where the first order is the delivered question's."""
        right = {place_of(value) for value in truth.values} - {None}
        if self.first != row.shape.node or len(right) != 1:
            return
        at = next(iter(right))
        if at is None or at >= len(order):
            return
        # An option that stands at the same place in both orders counts there once: two answers to one item are no two items.
        for place, found in {order.index(at): chosen[1], at: chosen[0]}.items():
            tally = self.places.setdefault(place, [0, 0])
            tally[0] += 1
            tally[1] += found == place

    def document(self, confidence: float) -> dict[str, Any]:
        from scipy.stats import binomtest

        decided = sum(self.ways.values())
        p = float(binomtest(max(self.ways.values()), decided).pvalue) if decided else 1.0
        return {
            "nodes": [self.first, self.second],
            "both_read": self.read,
            "changed": self.changed,
            "interval": interval(self.read, self.changed, confidence),
            "ways": dict(sorted(self.ways.items())),
            "p": p,
            "biased": p <= 1.0 - confidence,
            "places": [
                {"place": place, "judged": judged, "right": right, "interval": interval(judged, right, confidence)}
                for place, (judged, right) in sorted(self.places.items())
            ],
        }


def _way(difference: float, below: str, above: str) -> str:
    return "" if difference == 0 else below if difference < 0 else above
