"""Relations that break, measured on a pilot: how often, and how often that is the relation's own fault and not the answers'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rrf_design.blocks import Relation
from rrf_design.known import rows_of
from rrf_design.promises.checks import noisy
from rrf_design.promises.sheets import AnswerSheet, SheetRow, carried, simple
from rrf_design.promises.truths import Said, Truth, same
from rrf_design.risk import rate_bound

ALIKE = 3
"""A relation that breaks the same way so often, and in most cases, is under suspicion itself."""


def broken_relations(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> list[dict[str, Any]]:
    """How often each relation is broken, and how often that is its own fault.

    A fault is counted where the truth of both ends is known (gold at the delivered one, checks whose value the row knows elsewhere) and the relation
    denies it. Where only answers are there, a relation that breaks the same way again and again (`same_way`: always off by 19, always 100 times as
    much) is more likely wrong than all those answers are.
    """
    tallies: dict[str, _Tally] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        known = _known(row, truth)
        for relation in row.shape.problem.relations:
            if relation.pair and relation.cost is None:
                tallies.setdefault(relation.id, _Tally()).count(row, truth, relation, known)
    return [tally.document(name, confidence) for name, tally in tallies.items()]


def relation_proposals(broken: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words, for the recipe's author."""
    found = []
    for entry in broken:
        if entry["faults"]:
            found.append(
                f"relation {entry['relation']!r}: it denies the truth in {entry['faults']} of {entry['known']} items where both ends are known"
            )
        if entry["same_way"]:
            found.append(
                f"relation {entry['relation']!r}: {entry['same_way']['times']} of {entry['broken']} times it was broken the same way"
                f" ({entry['same_way']['how']}); look at the relation before the answers"
            )
    return found


class _Tally:
    """What was seen of one relation."""

    def __init__(self) -> None:
        self.read = self.broken = self.one_right = self.known = self.faults = 0
        self.ways: Counter[str] = Counter()

    def count(self, row: SheetRow, truth: Truth, relation: Relation, known: Mapping[str, tuple[Said, ...]]) -> None:
        tail, head = str(relation.tail), str(relation.head)
        ends = [(_along(row, relation, a), b) for a in known.get(tail, ()) for b in known.get(head, ())]
        pairs = [(a, b) for a, b in ends if a is not None]  # what nobody can walk was not looked at
        if pairs:
            self.known += 1
            self.faults += not any(_fits(a, b, relation, truth) for a, b in pairs)
        said, expected = row.said.get(head), _along(row, relation, row.said.get(tail))
        if said is None or expected is None:
            return
        self.read += 1
        first, second = truth.right(row.implied.get(tail)), truth.right(row.implied.get(head))
        if _fits(expected, said, relation, truth) or (first and second):
            return
        self.broken += 1
        self.one_right += first != second
        if isinstance(said, tuple) and isinstance(expected, tuple) and len(said) == len(expected) == 1:
            gap = said[0] - expected[0]
            self.ways[f"off by {gap:+.6g}"] += 1
            if expected[0]:
                self.ways[f"times {said[0] / expected[0]:.6g}"] += 1

    def document(self, name: str, confidence: float) -> dict[str, Any]:
        way, often = self.ways.most_common(1)[0] if self.ways else ("", 0)
        known = self.known or None
        return {
            "relation": name,
            "both_read": self.read,
            "broken": self.broken,
            "one_right": self.one_right,
            "known": self.known,
            "faults": self.faults if known else None,
            "bound": rate_bound(self.known, self.faults, confidence) if known else None,
            "same_way": {"how": way, "times": often} if often >= ALIKE and 2 * often > self.broken else None,
        }


def _along(row: SheetRow, relation: Relation, said: Said | None) -> Said | None:
    """What an answer at the tail means at the head."""
    if said is None or isinstance(said, str):
        return said if relation.transport.kind == "identity" else None
    if not simple(relation):
        return None
    return carried(said, relation, row.offsets.get(relation.id, relation.offset), backwards=False)


def _fits(expected: Said, said: Said, relation: Relation, truth: Truth) -> bool:
    scale = abs(relation.transport.scale) if relation.transport.scale is not None else 1.0
    return same(expected, said, None if truth.tolerance is None else truth.tolerance * max(scale, 1e-300))


def _known(row: SheetRow, truth: Truth) -> dict[str, tuple[Said, ...]]:
    """Nodes whose truth is known; a check that declares how it errs is no truth."""
    found: dict[str, tuple[Said, ...]] = {}
    for anchor in row.shape.problem.anchors:
        exact = anchor.trusted is not False and not noisy(anchor)
        if anchor.id in row.values and anchor.rows is None and len(anchor.nodes) == 1 and exact:
            value = row.values[anchor.id]
            stated = value if isinstance(value, tuple) else (float(value),) * rows_of(row.shape.problem, anchor)
            found[anchor.nodes[0]] = (stated,)
    return {**found, row.shape.node: truth.values} if truth.values else found
