"""What else people buy by: the planners that ours are measured against, under the same contract, prices and rules.

Random designs, anchoring by degree, greedy on the margin itself, and the classical design criteria, all of which look at
the whole operator and none at its sparse directions: rank, trace, log-determinant (D-optimal), unrestricted λ_min
(E-optimal), and QR with pivoting. Where the Gram matrix is singular the last ones work on G + ridge, as is usual.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.goal import reaches
from rrf_design.market import Mask, exact
from rrf_design.planning.contract import Order, Plan
from rrf_design.planning.greedy import Pick, look

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

Array = NDArray[np.float64]
Score = Callable[["Arena", Mask, Mask], float]
RIDGE = 1e-6
LARGEST = 3000  # coordinates: the criteria factorise the whole Gram matrix at every step
DRAWS = 100


@dataclass(frozen=True, slots=True)
class ByScore:
    """Greedy on any score of a design: buy what gains most per cost; ties to the cheaper, then to file order."""

    name: str
    score: Score

    def plan(self, arena: Arena, goal: Order) -> Plan:
        from rrf_design.planning.outcome import finish, starting_design

        if arena.operator.shape[1] > LARGEST and self.name not in ("trace", "degree"):
            raise InputError(f"method {self.name}: {arena.operator.shape[1]} coordinates are too many; use greedy")
        start = starting_design(arena, goal)
        clock = None if goal.time_limit is None else time.monotonic() + goal.time_limit
        mask, steps = start, list[Pick]()
        while (after := self._next(arena, mask, goal)) is not None and (clock is None or time.monotonic() < clock):
            if goal.target is not None and reaches(arena.value(mask), goal.target):
                break
            seen = look(arena, mask)
            item = _named(arena, mask, after)
            worst = seen.witnesses[0] if seen.witnesses else None
            energy = (
                0.0 if worst is None else float(arena.energies(worst)[arena.active(after) & ~arena.active(mask)].sum())
            )
            steps.append(Pick(item, mask, after, worst, energy, arena.value(after)))
            mask = after
        return finish(arena, mask, goal, method=self.name, start=start, steps=steps)

    def _next(self, arena: Arena, mask: Mask, goal: Order) -> Mask | None:
        before = self.score(arena, mask, mask)
        best, chosen = (-np.inf, Fraction(0)), None
        for after, price in _affordable(arena, mask, goal):
            gain = self.score(arena, mask, after) - before
            ratio = gain / float(price) if price > 0 else (np.inf if gain > 0 else 0.0)
            key = (float(f"{ratio:.9g}"), -price)
            if gain > 1e-12 and key > best:
                best, chosen = key, after
        return chosen


def _affordable(arena: Arena, mask: Mask, goal: Order) -> list[tuple[Mask, Fraction]]:
    market, spent = arena.market, arena.market.cost(mask)
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


def _named(arena: Arena, before: Mask, after: Mask) -> int:
    """The item a bundle is named for: the one that nothing else in it needs."""
    added = np.flatnonzero(after & ~before)
    needed = {j for i in added for j in arena.market.needs[i]}
    return int(next((i for i in added[::-1] if i not in needed), added[-1]))


def _gram(arena: Arena, mask: Mask) -> Array:
    rows = arena.operator.matrix[np.flatnonzero(arena.rows(arena.active(mask)))].toarray()
    columns = np.concatenate([arena.columns[i] for i in np.flatnonzero(arena.opened(mask))] or [np.zeros(0, np.int64)])
    return np.asarray(rows[:, columns].T @ rows[:, columns])


def _rank(arena: Arena, base: Mask, mask: Mask) -> float:
    return float(np.linalg.matrix_rank(_gram(arena, mask), hermitian=True, tol=1e-9 * arena.scale**2))


def _trace(arena: Arena, base: Mask, mask: Mask) -> float:
    return float(arena.weights[arena.active(mask)].sum())


def _logdet(arena: Arena, base: Mask, mask: Mask) -> float:
    gram = _gram(arena, mask)
    return float(np.linalg.slogdet(gram + RIDGE * arena.scale**2 * np.eye(len(gram)))[1]) if len(gram) else 0.0


def _eopt(arena: Arena, base: Mask, mask: Mask) -> float:
    """λ_min over all directions; while that is zero, the nullity falls first."""
    values = np.linalg.eigvalsh(_gram(arena, mask))
    zero = values < 1e-12 * arena.scale**2
    return float(values[0]) if not zero.any() else -float(zero.sum()) * arena.scale**2


def _margin(arena: Arena, base: Mask, mask: Mask) -> float:
    return arena.value(mask)


def _degree(arena: Arena, base: Mask, mask: Mask) -> float:
    """Anchors on the nodes that most relations touch; relations themselves are not bought."""
    degree = np.zeros(arena.n)
    for j, nodes in enumerate(arena.block_nodes):
        if arena.operator.block_kinds[j] == "relation":
            degree[list(nodes)] += 1
    active = arena.active(mask)
    anchors = [j for j in np.flatnonzero(active) if arena.operator.block_kinds[j] == "anchor"]
    return float(sum(1.0 + max(degree[list(arena.block_nodes[j])]) for j in anchors))


def _qr(arena: Arena, base: Mask, mask: Mask) -> float:
    """How much of a block is new to the rows held so far: the pivot that QR with column pivoting would take next."""
    if (mask == base).all():
        return 0.0
    held = arena.operator.matrix[np.flatnonzero(arena.rows(arena.active(base)))].toarray()
    added = arena.operator.matrix[np.flatnonzero(arena.rows(arena.active(mask) & ~arena.active(base)))].toarray()
    if len(held):
        _, strengths, right = np.linalg.svd(held, full_matrices=False)
        span = right[strengths > 1e-9 * arena.scale]
        added = added - (added @ span.T) @ span
    return float(np.square(added).sum())


@dataclass(frozen=True, slots=True)
class Random:
    """The best of many random designs that spend the budget: what luck alone buys."""

    name: str = "random"
    draws: int = DRAWS

    def plan(self, arena: Arena, goal: Order) -> Plan:
        from rrf_design.planning.outcome import finish, starting_design

        rng = np.random.default_rng(goal.seed)
        start = starting_design(arena, goal)
        best, value = start, arena.value(start)
        budget = None if goal.budget is None else exact(goal.budget)
        for _ in range(self.draws):
            mask = start
            for item in rng.permutation(len(arena.market.items)):
                after = arena.market.add(mask, int(item))
                if arena.market.extendable(after) and (budget is None or arena.market.cost(after) <= budget):
                    mask = after
            if arena.value(mask) > value:
                best, value = mask, arena.value(mask)
        return finish(arena, best, goal, method=self.name, start=start & best)


SCORES: dict[str, Score] = {
    "margin": _margin,
    "degree": _degree,
    "rank": _rank,
    "trace": _trace,
    "logdet": _logdet,
    "eopt": _eopt,
    "qr": _qr,
}


def baseline(name: str) -> ByScore | Random:
    return Random() if name == "random" else ByScore(name, SCORES[name])
