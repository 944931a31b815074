"""The paper's five baselines and the designs' repairs as choices: which candidate, or which value,
is returned.

Choices see parsed candidates and what an anchor may know (the exact value, the public reference
signature); they are finished before anything is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rrf_design.repairing import repair, robust_scale, select_program
from scenarios.kit import designs
from scenarios.real_model.fields import AnswerCandidate, same

BASELINES = ("raw", "self-consistency", "relation majority", "reflection", "verifier")
CALLS = {"raw": 1, "self-consistency": 4, "relation majority": 4, "reflection": 2, "verifier": 4, "repair": 4}


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate that is returned (its place in the item's list), or a value of its own
    (arithmetic repair), or nothing.
    """

    candidate: int | None = None
    value: tuple[float, ...] | None = None

    def told(self, candidates: Sequence[AnswerCandidate]) -> dict[str, Any]:
        """As it is published: which answer was returned, and the value it stands for."""
        own = None if self.candidate is None else candidates[self.candidate]
        return {
            "chosen": "" if own is None else f"{own.role} {own.number}",
            "value": self.value if own is None else own.value,
        }


def baseline(name: str, candidates: Sequence[AnswerCandidate], truth: Sequence[float], *, code: bool) -> Choice:
    of = {role: [i for i, c in enumerate(candidates) if c.role == role] for role in ("node", "sample", "reflection")}
    if name == "raw":
        return Choice(of["node"][0])
    if name == "reflection":
        return Choice(of["reflection"][0])
    if name == "verifier":
        return Choice(_verified(candidates, of["node"], truth, code=code))
    pool = of["sample"] if name == "self-consistency" else of["node"]
    return Choice(_medoid(candidates, pool) if code else _mode(candidates, pool))


def _valid(candidates: Sequence[AnswerCandidate], pool: Sequence[int]) -> dict[int, tuple[float, ...]]:
    return {i: value for i in pool if (value := candidates[i].value) is not None}


def _mode(candidates: Sequence[AnswerCandidate], pool: Sequence[int]) -> int | None:
    """The most frequent value; among equals the one given first."""
    values = _valid(candidates, pool)
    votes = {i: sum(same(value, other) for other in values.values()) for i, value in values.items()}
    return min(votes, key=lambda i: (-votes[i], i), default=None)


def _medoid(candidates: Sequence[AnswerCandidate], pool: Sequence[int]) -> int | None:
    """The signature with the least summed distance to the others, in robustly scaled
    coordinates.
    """
    values = _valid(candidates, pool)
    if not values:
        return None
    table = np.array(list(values.values()))
    scaled = table / robust_scale(table)
    distances = np.linalg.norm(scaled[:, None] - scaled[None], axis=2).sum(axis=1)
    return list(values)[int(np.argmin(np.round(distances, 9)))]


def _verified(
    candidates: Sequence[AnswerCandidate], pool: Sequence[int], truth: Sequence[float], *, code: bool
) -> int | None:
    """Least arithmetic error, or most public tests passed."""
    values = _valid(candidates, pool)
    if code:
        return min(values, key=lambda i: (-sum(a == b for a, b in zip(values[i], truth, strict=True)), i), default=None)
    return min(values, key=lambda i: (abs(values[i][0] - truth[0]), i), default=None)


@dataclass(frozen=True, slots=True)
class RepairedChoice:
    """A natural field under one design: the choice, and what the diagnostics of the paper ask
    for.
    """

    choice: Choice
    support: tuple[int, ...]
    residual: float
    edit: float


def natural_repair(
    design: designs.FieldDesign,
    candidates: Sequence[AnswerCandidate],
    truth: Sequence[float],
    *,
    k: int,
    code: bool,
    weights: Sequence[float] | None = None,
) -> RepairedChoice | None:
    """Repair the four transformed answers under a design, its relations weighted; None when no
    answer has a value.
    """
    nodes = [c for c in candidates if c.role == "node"]
    if all(c.value is None for c in nodes):
        return None
    problem = designs.problem(design, dim=len(truth), k=k, value=truth, weights=weights)
    values: Mapping[str, Any] = {str(c.number): c.value if c.value is not None else {"status": c.status} for c in nodes}
    if code:
        chosen = select_program(problem, values)
        fixed, choice = chosen.repair, Choice(int(chosen.node))
    else:
        fixed = repair(problem, values, method="exact")
        known = [value[0] for value in fixed.nearest.values() if value is not None]
        choice = Choice(value=(float(np.round(np.median(known))),))
    edit = sum(
        float(np.sum(np.square(np.subtract(c.value, fixed.nearest[str(c.number)] or c.value))))
        for c in nodes
        if c.value is not None
    )
    return RepairedChoice(
        choice, tuple(int(node) for node in fixed.blamed), float(fixed.residual), float(np.sqrt(edit))
    )
