"""Radii that users otherwise guess, measured where every answer is right: how far relations are off then (η), and all of an item's rows together (ε).

A relation z_head = T z_tail + b that is not quite true leaves a gap between what right answers say; relative to the tail it is what `uncertainty` of the relation has to cover. The gaps of all relations of
an item, each in the units of its row (weight and σ), are the noise that `epsilon` has to cover. The largest of n bounds the share of further ones beyond it, with the pilot's confidence and nothing
assumed about how they are distributed; it is no bound on how far those lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from rrf_design.blocks import Relation
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
        squares: float | None = 0.0
        for relation in row.shape.problem.relations:
            if not relation.pair or relation.cost is not None:
                continue
            seen = _gap(row, truth, relation)
            if seen is None:
                squares = None
                continue
            gap, tail = seen
            gaps.setdefault(relation.id, _Gaps()).add(math.hypot(*gap), tail)
            if squares is not None:
                squares += _in_rows(row.shape.problem, relation, gap) ** 2
        if squares is not None and row.shape.problem.relations:
            norms.append(math.sqrt(squares))
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

    def add(self, size: float, tail: float) -> None:
        self.sizes.append(size)
        if tail > 0.0:
            self.relative.append(size / tail)

    def document(self, name: str, confidence: float) -> dict[str, Any]:
        return {
            "relation": name,
            "pairs": len(self.sizes),
            "largest": max(self.sizes),
            "uncertainty": max(self.relative, default=None),
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
    gap = tuple(a - b for a, b in zip(head, expected, strict=True))
    reach = max(1.0, *(abs(number) for number in (*head, *expected)))
    return ((0.0,) * len(gap) if math.hypot(*gap) <= 1e-12 * reach else gap), math.hypot(*tail)


def _in_rows(problem: Problem, relation: Relation, gap: Sequence[float]) -> float:
    """What a gap comes to in B's rows: weighed and whitened as they are."""
    white = row_whitener(problem, relation, len(gap))
    whitened = math.hypot(*gap) * white if isinstance(white, float) else float(np.linalg.norm(white @ np.array(gap)))
    return family_scale(problem, relation) * whitened


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
    return words
