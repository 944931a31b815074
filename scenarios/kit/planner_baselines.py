"""Planners that ours are measured against, under the same contract, prices and rules.

Importing this module adds them to `rrf_design.planning.PLANNERS`, so that `plan(problem,
method="logdet")` and a run's `method` know them by name.

Random designs, anchoring by degree, greedy on the margin itself, and the classical design criteria,
all of which look at the whole operator and none at its sparse directions: rank, trace,
log-determinant (D-optimal), unrestricted λ_min (E-optimal), and QR with pivoting. Where the Gram
matrix is singular the last ones work on G + ridge, as is usual.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.goal import reaches
from rrf_design.market import Mask, exact
from rrf_design.planning import PLANNERS, Evaluator, Order, Pick, Plan, finish, look, starting_design

Array = NDArray[np.float64]
Score = Callable[[Evaluator, Mask, Mask], float]
RIDGE = 1e-6
LARGEST = 3000  # coordinates: the criteria factorise the whole Gram matrix at every step
DRAWS = 100


@dataclass(frozen=True, slots=True)
class ByScore:
    """Greedy on any score of a design: buy what gains most per cost; ties to the cheaper, then to
    file order.
    """

    name: str
    score: Score

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        if evaluator.operator.shape[1] > LARGEST and self.name not in ("trace", "degree"):
            raise InputError(f"method {self.name}: {evaluator.operator.shape[1]} coordinates are too many; use greedy")
        start = starting_design(evaluator, goal)
        clock = None if goal.time_limit is None else time.monotonic() + goal.time_limit
        mask, steps = start, list[Pick]()
        while (after := self._next(evaluator, mask, goal)) is not None and (clock is None or time.monotonic() < clock):
            if goal.target is not None and reaches(evaluator.value(mask), goal.target):
                break
            seen = look(evaluator, mask)
            item = _named(evaluator, mask, after)
            worst = seen.witnesses[0] if seen.witnesses else None
            energy = (
                0.0
                if worst is None
                else float(evaluator.energies(worst)[evaluator.active(after) & ~evaluator.active(mask)].sum())
            )
            steps.append(Pick(item, mask, after, worst, energy, evaluator.value(after)))
            mask = after
        return finish(evaluator, mask, goal, method=self.name, start=start, steps=steps)

    def _next(self, evaluator: Evaluator, mask: Mask, goal: Order) -> Mask | None:
        before = self.score(evaluator, mask, mask)
        best, chosen = (-np.inf, Fraction(0)), None
        for after, price in _affordable(evaluator, mask, goal):
            gain = self.score(evaluator, mask, after) - before
            ratio = gain / float(price) if price > 0 else (np.inf if gain > 0 else 0.0)
            key = (float(f"{ratio:.9g}"), -price)
            if gain > 1e-12 and key > best:
                best, chosen = key, after
        return chosen


def _affordable(evaluator: Evaluator, mask: Mask, goal: Order) -> list[tuple[Mask, Fraction]]:
    market, spent = evaluator.market, evaluator.market.cost(mask)
    budget = None if goal.budget is None else exact(goal.budget)
    result = []
    for item in np.flatnonzero(~mask & ~market.banned):
        if item < market.node_items:
            continue  # queries come with the blocks that need them
        after = market.add(mask, int(item))
        price = market.cost(after) - spent
        if (budget is None or spent + price <= budget) and market.extendable(after):
            result.append((after, price))
    return result


def _named(evaluator: Evaluator, before: Mask, after: Mask) -> int:
    """The item a bundle is named for: the one that nothing else in it needs."""
    added = np.flatnonzero(after & ~before)
    needed = {j for i in added for j in evaluator.market.needs[i]}
    return int(next((i for i in added[::-1] if i not in needed), added[-1]))


def _gram(evaluator: Evaluator, mask: Mask) -> Array:
    rows = evaluator.operator.matrix[np.flatnonzero(evaluator.rows(evaluator.active(mask)))].toarray()
    columns = np.concatenate(
        [evaluator.columns[i] for i in np.flatnonzero(evaluator.opened(mask))] or [np.zeros(0, np.int64)]
    )
    return np.asarray(rows[:, columns].T @ rows[:, columns])


def _rank(evaluator: Evaluator, base: Mask, mask: Mask) -> float:
    return float(np.linalg.matrix_rank(_gram(evaluator, mask), hermitian=True, tol=1e-9 * evaluator.scale**2))


def _trace(evaluator: Evaluator, base: Mask, mask: Mask) -> float:
    return float(evaluator.weights[evaluator.active(mask)].sum())


def _logdet(evaluator: Evaluator, base: Mask, mask: Mask) -> float:
    gram = _gram(evaluator, mask)
    return float(np.linalg.slogdet(gram + RIDGE * evaluator.scale**2 * np.eye(len(gram)))[1]) if len(gram) else 0.0


def _eopt(evaluator: Evaluator, base: Mask, mask: Mask) -> float:
    """λ_min over all directions; while that is zero, the nullity falls first."""
    values = np.linalg.eigvalsh(_gram(evaluator, mask))
    zero = values < 1e-12 * evaluator.scale**2
    return float(values[0]) if not zero.any() else -float(zero.sum()) * evaluator.scale**2


def _margin(evaluator: Evaluator, base: Mask, mask: Mask) -> float:
    return evaluator.value(mask)


def _degree(evaluator: Evaluator, base: Mask, mask: Mask) -> float:
    """Anchors on the nodes that most relations touch; relations themselves are not bought."""
    degree = np.zeros(evaluator.n)
    for j, nodes in enumerate(evaluator.block_nodes):
        if evaluator.operator.block_kinds[j] == "relation":
            degree[list(nodes)] += 1
    active = evaluator.active(mask)
    anchors = [j for j in np.flatnonzero(active) if evaluator.operator.block_kinds[j] == "anchor"]
    return float(sum(1.0 + max(degree[list(evaluator.block_nodes[j])]) for j in anchors))


def _qr(evaluator: Evaluator, base: Mask, mask: Mask) -> float:
    """How much of a block is new to the rows held so far: the pivot that QR with column pivoting
    would take next.
    """
    if (mask == base).all():
        return 0.0
    held = evaluator.operator.matrix[np.flatnonzero(evaluator.rows(evaluator.active(base)))].toarray()
    added = evaluator.operator.matrix[
        np.flatnonzero(evaluator.rows(evaluator.active(mask) & ~evaluator.active(base)))
    ].toarray()
    if len(held):
        _, strengths, right = np.linalg.svd(held, full_matrices=False)
        span = right[strengths > 1e-9 * evaluator.scale]
        added = added - (added @ span.T) @ span
    return float(np.square(added).sum())


@dataclass(frozen=True, slots=True)
class Random:
    """The best of many random designs that spend the budget: what luck alone buys."""

    name: str = "random"
    draws: int = DRAWS

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        rng = np.random.default_rng(goal.seed)
        start = starting_design(evaluator, goal)
        best, value = start, evaluator.value(start)
        budget = None if goal.budget is None else exact(goal.budget)
        for _ in range(self.draws):
            mask = start
            for item in rng.permutation(len(evaluator.market.items)):
                after = evaluator.market.add(mask, int(item))
                if evaluator.market.extendable(after) and (budget is None or evaluator.market.cost(after) <= budget):
                    mask = after
            if evaluator.value(mask) > value:
                best, value = mask, evaluator.value(mask)
        return finish(evaluator, best, goal, method=self.name, start=start & best)


SCORES: dict[str, Score] = {
    "margin": _margin,
    "degree": _degree,
    "rank": _rank,
    "trace": _trace,
    "logdet": _logdet,
    "eopt": _eopt,
    "qr": _qr,
}


PLANNERS["random"] = Random
PLANNERS.update({name: partial(ByScore, name, score) for name, score in SCORES.items()})
