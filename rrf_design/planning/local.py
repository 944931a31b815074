"""Local search: exchange purchases after the greedy. The anytime planner, and the first incumbent of the optimal one.

Moves are judged by the pool of cuts first, which bounds a design's margin from above for the price of a matrix product;
only designs that could beat the incumbent are evaluated, and every one that doesn't teaches the pool why. Between rounds a
few purchases are dropped at random (seeded) and the money is spent again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask, exact
from rrf_design.planning.contract import Order, Plan
from rrf_design.planning.greedy import best_prefix, witness_greedy
from rrf_design.planning.proof.bounds import lifted

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

ROUNDS = 12  # restarts from a disturbed incumbent
TRIES = 24  # designs evaluated exactly before a round ends without a gain
CUTS = 24  # witnesses learnt from a design that disappoints


class Climber:
    """Improves one incumbent. Holds it with its value while it runs; `mask` and `value` are the best seen."""

    def __init__(self, arena: Arena, goal: Order, start: Mask) -> None:
        self.arena = arena
        self.budget = None if goal.budget is None else exact(goal.budget)
        self.rng = np.random.default_rng(goal.seed)
        self.mask, self.value = start, arena.value(start)
        self.deadline = None if goal.time_limit is None else time.monotonic() + goal.time_limit

    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def climb(self, rounds: int = ROUNDS) -> None:
        self._ascend(self.mask)
        for _ in range(rounds):
            if self.late() or not self.mask.any():
                return
            self._ascend(self._disturbed())

    def _ascend(self, mask: Mask) -> None:
        value = self.arena.value(mask)
        while not self.late():
            better = self._step(mask, value)
            if better is None:
                return
            mask, value = better, self.arena.value(better)
            if value > self.value * (1 + 1e-12):
                self.mask, self.value = mask, value

    def _step(self, mask: Mask, value: float) -> Mask | None:
        """The first neighbour that beats `value`, most promising first."""
        moves = self._neighbours(mask)
        if not len(moves):
            return None
        for _ in range(TRIES):
            bounds = self.arena.pool.bounds(moves)
            order = np.argsort(-bounds, kind="stable")
            move: Mask = moves[order[0]]
            if np.sqrt(max(bounds[order[0]], 0.0)) <= value * (1 + 1e-9) or self.late():
                return None
            if self._learn(move, value) > value * (1 + 1e-9):
                return move
            moves = np.delete(moves, order[0], axis=0)
            if not len(moves):
                return None
        return None

    def _learn(self, mask: Mask, value: float) -> float:
        """Evaluate a design, and keep the witnesses that hold it at or below `value`."""
        found = self.arena.evaluate(mask, count=CUTS, below=max(value * (1 + 1e-9), 1e-9 * self.arena.scale))
        for witness in found.witnesses:
            self.arena.pool.add(witness, mask)
        return found.value

    def _neighbours(self, mask: Mask) -> NDArray[np.bool_]:
        """Everything one more purchase, or one purchase exchanged for another, leads to."""
        market, seen, result = self.arena.market, set(), list[Mask]()
        items = np.flatnonzero(~market.banned & ~mask)
        for base in [mask, *(market.drop(mask, int(i)) for i in np.flatnonzero(mask & ~market.banned))]:
            for item in items[self._affordable(base, items)]:
                after = market.add(base, int(item))
                key = np.packbits(after).tobytes()
                if key not in seen and (market.plain or market.admits(after, self.budget)):
                    seen.add(key)
                    result.append(after)
        return np.array(result, dtype=bool).reshape(len(result), len(mask))

    def _affordable(self, base: Mask, items: NDArray[np.int64]) -> Mask:
        """Which single items the budget leaves money for; exact unless they come with others or in tiers."""
        if self.budget is None:
            return np.ones(len(items), dtype=bool)
        market = self.arena.market
        unit, whole = market.units
        return np.asarray(whole[items] <= (self.budget - market.cost(base)) // unit, dtype=bool)

    def _disturbed(self) -> Mask:
        """The incumbent without a few purchases, and the money spent again by the greedy."""
        market, mask = self.arena.market, self.mask.copy()
        chosen = np.flatnonzero(mask)
        for item in self.rng.choice(chosen, size=min(len(chosen), 1 + int(self.rng.integers(3))), replace=False):
            mask = market.drop(mask, int(item)) if mask[item] else mask
        banned = self.rng.random(len(mask)) > 0.15  # a random few may not come back, so that the way is another one
        goal = Order(budget=None if self.budget is None else float(self.budget))
        steps = witness_greedy(self.arena, goal, start=mask, allowed=banned)
        after = steps[-1].after if steps else mask
        return after if market.admits(after, self.budget) else self.mask


def tidy(arena: Arena, mask: Mask, floor: float) -> Mask:
    """Without the purchases that the objective `floor` does not need, dearest first."""
    market = arena.market
    for item in sorted(np.flatnonzero(mask), key=lambda i: (-market.prices[i], -i)):
        if mask[item]:
            smaller = market.drop(mask, int(item))
            cheaper = market.cost(smaller) <= market.cost(mask)
            if cheaper and not market.broken(smaller) and arena.opened(smaller).any() and arena.value(smaller) >= floor:
                mask = smaller
    return mask


def teach(arena: Arena, mask: Mask, target: float, *, rng: np.random.Generator, count: int) -> float:
    """Evaluate a design against an objective `target`; cut it off, and as much with it as its supports allow.

    The master gets the hull row of each support, and witnesses only where that row lets the design pass.
    """
    found = arena.evaluate(mask, count=count, below=target)
    present = arena.active(mask)
    shares = present[arena.variable].astype(np.float64)
    items = arena.block_item
    prices = np.zeros(len(items))
    prices[items >= 0] = arena.market.floor_prices[items[items >= 0]]  # owned blocks have no item, and cost nothing
    weak = dict.fromkeys(witness.support for witness in found.witnesses)
    cut = {support for support in weak if arena.pool.add_hull(support, shares, target * target)}
    for number, witness in enumerate(found.witnesses):
        arena.pool.add(witness, mask, master=witness.support not in cut)
        if arena.robust or not arena.plain or witness.support in cut or witness.value >= target:
            continue
        orders = [prices + 1e-3 * rng.random(len(prices)), rng.random(len(prices))]
        for order in orders if number < count // 2 else orders[:1]:
            arena.pool.add(lifted(arena, witness, present, target * target, order), master=True)
    return found.value


@dataclass(frozen=True, slots=True)
class Local:
    """Greedy, then exchanges until nothing helps; the bound is that of the linear relaxation."""

    name: str = "local"
    rounds: int = ROUNDS

    def plan(self, arena: Arena, goal: Order) -> Plan:
        from rrf_design.planning.outcome import finish, starting_design
        from rrf_design.planning.proof.bounds import relaxation_bound

        start = starting_design(arena, goal)
        steps = best_prefix(start, arena.value(start), witness_greedy(arena, goal, start=start))
        climber = Climber(arena, goal, steps[-1].after if steps else start)
        climber.climb(self.rounds)
        floor = climber.value if goal.target is None else min(climber.value, goal.target)
        mask = tidy(arena, climber.mask, floor)
        upper = relaxation_bound(arena, goal.budget, deadline=climber.deadline)
        return finish(arena, mask, goal, method=self.name, start=start & mask, upper=upper)
