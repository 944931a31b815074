"""Radii that users otherwise guess, measured where every answer is right: how far relations are off then (η), and all of an item's rows together (ε).

A relation z_head = T z_tail + b that is not quite true leaves a gap between what right answers say; relative to the tail it is what `uncertainty` of the relation has to cover. The gaps of all relations of
an item and of the checks it holds, each in the units of its row (weight and σ), are the noise that `epsilon` has to cover. The largest of n bounds the share of further ones beyond it, with the pilot's confidence and nothing
assumed about how they are distributed; it is no bound on how far those lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from rrf_design.blocks import Anchor, Relation
from rrf_design.problem import Problem
from rrf_design.promises.sheets import AnswerSheet, SheetRow, carried, simple
from rrf_design.promises.truths import Truth
from rrf_design.risk import best_risk
from rrf_design.risk.sentences import number_above, percent_above
from rrf_design.rows import family_scale, row_whitener

FEWEST = 10
"""Of fewer right answers nothing is proposed."""


def measured_radii(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any] | None:
    """η of every relation between numbers, and ε of the items whose answers are all right; None where no answer is a number."""
    gaps: dict[str, _Gaps] = {}
    norms: list[float] = []
    for row, truth in zip(sheet.rows, truths, strict=True):
        for relation in row.shape.problem.relations:
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
        "epsilon": {"items": len(norms), "largest": max(norms), "share_beyond": best_risk(len(norms), confidence)}
        if norms
        else None,
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


def _gap(row: SheetRow, truth: Truth, relation: Relation) -> tuple[tuple[float, ...], float] | None:
    """z_head − T z_tail − b and ‖z_tail‖, of two right answers that are numbers; a gap that rounding alone may have made is none."""
    tail, head = row.said.get(str(relation.tail)), row.said.get(str(relation.head))
    if not (isinstance(tail, tuple) and isinstance(head, tuple) and simple(relation) and len(tail) == len(head)):
        return None
    if not all(truth.right(row.implied.get(str(node))) for node in (relation.tail, relation.head)):
        return None
    expected = carried(tail, relation, row.offsets.get(relation.id, relation.offset), backwards=False)
    return _beyond_rounding(head, expected), math.hypot(*tail)


def _beyond_rounding(said: Sequence[float], expected: Sequence[float]) -> tuple[float, ...]:
    gap = tuple(a - b for a, b in zip(said, expected, strict=True))
    reach = max(1.0, *(abs(number) for number in (*said, *expected)))
    return (0.0,) * len(gap) if math.hypot(*gap) <= 1e-12 * reach else gap


def _norm(row: SheetRow, truth: Truth) -> float | None:
    """Of what is left in all rows that the item holds, its checks' among them; None where an answer or a check is wrong, or a row is of a kind that is not measured."""
    problem, squares = row.shape.problem, 0.0
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


def _off(row: SheetRow, truth: Truth, check: Anchor) -> tuple[float, ...] | None:
    """How far a right answer is from what a check of it says, where that is right too."""
    (node, *others), value = check.nodes, row.values.get(check.id)
    said = row.said.get(node)
    if others or check.rows is not None or value is None or not isinstance(said, tuple):
        return None
    stated = value if isinstance(value, tuple) else (float(value),) * len(said)
    if len(stated) != len(said) or not truth.right(row.implied.get(node)):
        return None
    if not truth.right(row.shape.implied(node, stated, row.offsets)):
        return None
    return _beyond_rounding(said, stated)


def _in_rows(problem: Problem, block: Relation | Anchor, gap: Sequence[float]) -> float:
    """What a gap comes to in B's rows: weighed and whitened as they are."""
    white = row_whitener(problem, block, len(gap))
    whitened = math.hypot(*gap) * white if isinstance(white, float) else float(np.linalg.norm(white @ np.array(gap)))
    return family_scale(problem, block) * whitened


def radius_proposals(found: Mapping[str, Any] | None) -> list[str]:
    """In words, for the recipe's author; nothing where right answers leave no gap."""
    if found is None:
        return []
    words = []
    epsilon = found["epsilon"]
    if epsilon is not None and epsilon["items"] >= FEWEST and epsilon["largest"] > 0.0:
        words.append(
            f"[answer] epsilon = {number_above(epsilon['largest'])}: the rows of {epsilon['items']} items whose answers were all right were never further off;"
            f" at most {percent_above(Fraction(epsilon['share_beyond']))} of such items are"
        )
    for entry in found["relations"]:
        if entry["pairs"] >= FEWEST and entry["uncertainty"]:
            words.append(
                f"relation {entry['relation']!r}: uncertainty = {number_above(entry['uncertainty'])} covers the {entry['pairs']} pairs of right answers;"
                f" at most {percent_above(Fraction(entry['share_beyond']))} of such pairs are further off"
            )
        elif entry["pairs"] >= FEWEST and entry["uncertainty"] is None:
            words.append(
                f"relation {entry['relation']!r}: no uncertainty covers the {entry['pairs']} pairs of right answers: it is relative to the tail, and some are off where that is 0"
            )
    return words
