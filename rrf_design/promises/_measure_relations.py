"""Radii that users otherwise guess, measured where every answer is right: how far relations are off
then (η), and all of an item's rows together (ε).

A relation z_head = T z_tail + b that is not quite true leaves a gap between what right answers say;
relative to the tail it is what `uncertainty` of the relation has to cover. The gaps of all
relations of an item and of the checks it holds, each in the units of its row (weight and σ), are
the noise that `epsilon` has to cover. The largest of n bounds the share of further ones beyond it,
with the pilot's confidence and nothing assumed about how they are distributed; it is no bound on
how far those lie.

Relations that break, measured on a pilot: how often, and how often that is the relation's own
fault and not the answers'.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from rrf_design.blocks import Anchor, Relation
from rrf_design.checker.promise_words import number_above, percent_above
from rrf_design.checks import rows_of
from rrf_design.problem import Problem
from rrf_design.promises._checks import noisy
from rrf_design.promises._sheets import AnswerSheet, ItemAnswers
from rrf_design.promises._truths import Said, Truth, same
from rrf_design.risk import best_risk, rate_bound

FEWEST = 10
"""Of fewer right answers nothing is proposed."""


def measured_radii(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any] | None:
    """η of every relation between numbers, and ε of the items whose answers are all right; None
    where no answer is a number.
    """
    gaps: dict[str, _Gaps] = {}
    norms: list[float] = []
    for row, truth in zip(sheet.rows, truths, strict=True):
        for relation in row.template.problem.relations:
            seen = _gap(row, truth, relation) if relation.pair and relation.cost is None else None
            if seen is not None:
                gaps.setdefault(relation.id, _Gaps()).add(math.hypot(*seen[0]), seen[1])
        norm = _norm(row, truth)
        if norm is not None:
            norms.append(norm)
    if not gaps:
        return None
    return {
        "relations": [gap.document(name, confidence) for name, gap in gaps.items()],
        "epsilon": (
            {"items": len(norms), "largest": max(norms), "share_beyond": best_risk(len(norms), confidence)}
            if norms
            else None
        ),
    }


@dataclass(slots=True)
class _Gaps:
    """What was seen of one relation between right answers."""

    sizes: list[float] = field(default_factory=list)
    relative: list[float] = field(default_factory=list)
    """A gap above a tail of zero is infinite: no factor of nothing covers it."""

    def add(self, size: float, tail: float) -> None:
        self.sizes.append(size)
        self.relative.append(size / tail if tail > 0.0 else math.inf if size > 0.0 else 0.0)

    def document(self, name: str, confidence: float) -> dict[str, Any]:
        most = max(self.relative)
        return {
            "relation": name,
            "pairs": len(self.sizes),
            "largest": max(self.sizes),
            "uncertainty": most if math.isfinite(most) else None,
            "share_beyond": best_risk(len(self.sizes), confidence),
        }


def _gap(row: ItemAnswers, truth: Truth, relation: Relation) -> tuple[tuple[float, ...], float] | None:
    """z_head − T z_tail − b and ‖z_tail‖, of two right answers that are numbers; a gap that
    rounding alone may have made is none.
    """
    tail, head = row.said.get(str(relation.tail)), row.said.get(str(relation.head))
    if not (isinstance(tail, tuple) and isinstance(head, tuple) and len(tail) == len(head)):
        return None
    if not all(truth.right(row.implied.get(str(node))) for node in (relation.tail, relation.head)):
        return None
    expected = relation.carry(tail, row.offsets.get(relation.id))
    if not isinstance(expected, tuple):
        return None
    return _beyond_rounding(head, expected), math.hypot(*tail)


def _beyond_rounding(said: Sequence[float], expected: Sequence[float]) -> tuple[float, ...]:
    gap = tuple(a - b for a, b in zip(said, expected, strict=True))
    reach = max(1.0, *(abs(number) for number in (*said, *expected)))
    return (0.0,) * len(gap) if math.hypot(*gap) <= 1e-12 * reach else gap


def _norm(row: ItemAnswers, truth: Truth) -> float | None:
    """Of what is left in all rows that the item holds, its checks' among them; None where an answer
    or a check is wrong, or a row is of a kind that is not measured.
    """
    problem, squares = row.template.problem, 0.0
    held = [block for block in problem.blocks if block.cost is None]
    for block in held:
        if isinstance(block, Anchor):
            gap = _off(row, truth, block)
        else:
            seen = _gap(row, truth, block) if block.pair else None
            gap = None if seen is None else seen[0]
        if gap is None:
            return None
        squares += _in_rows(problem, block, gap) ** 2
    return math.sqrt(squares) if any(isinstance(block, Relation) for block in held) else None


def _off(row: ItemAnswers, truth: Truth, check: Anchor) -> tuple[float, ...] | None:
    """How far a right answer is from what a check of it says, where that is right too."""
    (node, *others), value = check.nodes, row.values.get(check.id)
    said = row.said.get(node)
    if others or check.rows is not None or value is None or not isinstance(said, tuple):
        return None
    stated = value if isinstance(value, tuple) else (float(value),) * len(said)
    if len(stated) != len(said) or not truth.right(row.implied.get(node)):
        return None
    if not truth.right(row.template.implied(node, stated, row.offsets)):
        return None
    return _beyond_rounding(said, stated)


def _in_rows(problem: Problem, block: Relation | Anchor, gap: Sequence[float]) -> float:
    """What a gap comes to in B's rows: weighed and whitened as those of what is owned are."""
    operator = problem.structure.holding().operator
    return float(np.linalg.norm(operator.side(problem, block, np.array(gap))))


def radius_proposals(found: Mapping[str, Any] | None) -> list[str]:
    """In words, for the recipe's author; nothing where right answers leave no gap."""
    if found is None:
        return []
    words = []
    epsilon = found["epsilon"]
    if epsilon is not None and epsilon["items"] >= FEWEST and epsilon["largest"] > 0.0:
        words.append(
            f"[answer] epsilon = {number_above(epsilon['largest'])}: the rows of {epsilon['items']} items whose answers"
            f" were all right were never further off; at most {percent_above(Fraction(epsilon['share_beyond']))} of"
            " such items are"
        )
    for entry in found["relations"]:
        if entry["pairs"] >= FEWEST and entry["uncertainty"]:
            words.append(
                f"relation {entry['relation']!r}: uncertainty = {number_above(entry['uncertainty'])} covers the"
                f" {entry['pairs']} pairs of right answers; at most {percent_above(Fraction(entry['share_beyond']))} of"
                " such pairs are further off"
            )
        elif entry["pairs"] >= FEWEST and entry["uncertainty"] is None:
            words.append(
                f"relation {entry['relation']!r}: no uncertainty covers the {entry['pairs']} pairs of right answers: it"
                " is relative to the tail, and some are off where that is 0"
            )
    return words


ALIKE = 3
"""A relation that breaks the same way so often, and in most cases, is under suspicion itself."""


def broken_relations(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> list[dict[str, Any]]:
    """How often each relation is broken, and how often that is its own fault.

    A fault is counted where the truth of both ends is known (gold at the delivered one, checks
    whose value the row knows elsewhere) and the relation denies it. Where only answers are there, a
    relation that breaks the same way again and again (`same_way`: always off by 19, always 100
    times as much) is more likely wrong than all those answers are.
    """
    tallies: dict[str, _Tally] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        known = _known(row, truth)
        for relation in row.template.problem.relations:
            if relation.pair and relation.cost is None:
                tallies.setdefault(relation.id, _Tally()).count(row, truth, relation, known)
    return [tally.document(name, confidence) for name, tally in tallies.items()]


def relation_proposals(broken: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words, for the recipe's author."""
    found = []
    for entry in broken:
        if entry["faults"]:
            found.append(
                f"relation {entry['relation']!r}: it denies the truth in {entry['faults']} of {entry['known']} items"
                " where both ends are known"
            )
        if entry["same_way"]:
            found.append(
                f"relation {entry['relation']!r}: {entry['same_way']['times']} of {entry['broken']} times it was broken"
                f" the same way ({entry['same_way']['how']}); look at the relation before the answers"
            )
    return found


class _Tally:
    """What was seen of one relation."""

    def __init__(self) -> None:
        self.read = self.broken = self.one_right = self.known = self.faults = 0
        self.ways: Counter[str] = Counter()

    def count(self, row: ItemAnswers, truth: Truth, relation: Relation, known: Mapping[str, tuple[Said, ...]]) -> None:
        tail, head = str(relation.tail), str(relation.head)
        offset = row.offsets.get(relation.id)
        ends = [(relation.carry(a, offset), b) for a in known.get(tail, ()) for b in known.get(head, ())]
        pairs = [(a, b) for a, b in ends if a is not None]  # what nobody can walk was not looked at
        if pairs:
            self.known += 1
            self.faults += not any(_fits(a, b, relation, truth) for a, b in pairs)
        said, expected = row.said.get(head), relation.carry(row.said.get(tail), offset)
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


def _fits(expected: Said, said: Said, relation: Relation, truth: Truth) -> bool:
    scale = max(abs(relation.transport.factor), 1e-300)
    return same(expected, said, None if truth.tolerance is None else truth.tolerance * scale)


def _known(row: ItemAnswers, truth: Truth) -> dict[str, tuple[Said, ...]]:
    """Nodes whose truth is known; a check that declares how it errs is no truth."""
    found: dict[str, tuple[Said, ...]] = {}
    for anchor in row.template.problem.anchors:
        exact = anchor.trusted is not False and not noisy(anchor)
        if anchor.id in row.values and anchor.rows is None and len(anchor.nodes) == 1 and exact:
            value = row.values[anchor.id]
            stated = value if isinstance(value, tuple) else (float(value),) * rows_of(row.template.problem, anchor)
            found[anchor.nodes[0]] = (stated,)
    return {**found, row.template.node: truth.values} if truth.values else found
