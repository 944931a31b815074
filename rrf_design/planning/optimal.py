"""Provably best designs by witness cuts (docs/algorithms.md, facts 11 and 12).

"Is there a design within the budget with γ ≥ t?" is a covering program over 0/1 choices: one row per witness found so
far. A solution is evaluated; it either beats the incumbent or is cut off by its own witnesses. No solution: then no design
reaches t, and t is a proven bound. Asked of t just above the incumbent, "no" is the proof of optimality. A fixed t keeps
every row in whole numbers, rounded so that the proof holds for the real ones.

When a time limit comes first, thresholds further above the incumbent are settled instead, so that the gap is small.
The master runs on one core whatever n_jobs says: its answers then never depend on the machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rrf_design.market import Mask, exact
from rrf_design.planning.contract import REACHED, Order, Plan
from rrf_design.planning.greedy import best_prefix, witness_greedy
from rrf_design.planning.local import Climber, teach, tidy
from rrf_design.planning.outcome import ZERO, finish, starting_design
from rrf_design.planning.proof.bounds import bound_from_cuts, relaxation_bound
from rrf_design.planning.proof.master import Answer, Master, front_end
from rrf_design.planning.proof.program import MarketRows, relaxed
from rrf_design.planning.tracked import Tracked, local_to_blocks

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

CUTS = 40  # supports taught per design that is cut off
RESTARTS = 1  # of the local search before the proof begins: the proof itself finds what is left to gain
PROOF = 0.6  # share of the time for the proof of optimality, before a smaller claim is tried
TIGHTENED = 12  # rounds of hull rows before the master is asked
FRESH = 60  # rows added in one of them
STALLED = 0.005  # they end when the linear bound on the cost rises by less
LOOKED_AT = 100  # supports looked at for them
WEAK = 1.5  # supports whose λ_min exceeds the target by this factor are not
EQUAL = 1e-12  # margins closer than this (relatively) are equal, and the cheaper design is better
LADDER = (0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True, slots=True)
class Threshold:
    """What is known about one threshold."""

    reached: Mask | None = None
    """A design that reaches it, evaluated."""
    impossible: bool = False
    """No design does: proven."""


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest design found for a target, and what no design can cost less than."""

    mask: Mask | None
    bound: Fraction
    impossible: bool = False


class PlanSearch:
    """One run over an arena: cuts, incumbent and clock. Reused over many budgets and targets, as the pool is."""

    def __init__(self, arena: Arena, goal: Order, *, master: Master | None = None) -> None:
        self.arena = arena
        self.goal = goal
        self.master = master or front_end()
        self.structure = MarketRows(arena)
        self.rng = np.random.default_rng(goal.seed)
        self.deadline = None if goal.time_limit is None else time.monotonic() + goal.time_limit
        self.rounds = 0
        self.tightened = np.inf

    def left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def late(self) -> bool:
        left = self.left()
        return left is not None and left <= 0.0

    def _tell(self, lower: float, upper: float) -> None:
        if self.goal.progress is not None:
            self.goal.progress(None, (lower, upper), "")

    def settle(self, threshold: float, budget: Fraction | None, *, hint: Mask, share: float = 1.0) -> Threshold:
        """Find a design within the budget whose objective reaches `threshold`, or prove that there is none."""
        limit = None if self.deadline is None else time.monotonic() + share * max(self.left() or 0.0, 0.0)
        self._tighten(threshold, budget, deadline=limit)
        while not self.late():
            program = self.structure.program(target=threshold * threshold, budget=budget, hint=hint)
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0.0:
                break
            solved = self.master.solve(program, time_limit=left, seed=self.goal.seed)
            self.rounds += 1
            if solved.answer is Answer.INFEASIBLE:
                return Threshold(impossible=True)
            if solved.values is None:
                break
            mask = self._design(solved.values)
            if self.structure.overspent(mask, budget):
                continue
            known = self.arena.pool.rows_known
            if teach(self.arena, mask, threshold, rng=self.rng, count=CUTS) >= threshold:
                return Threshold(reached=mask)
            if self.arena.pool.rows_known == known:
                break  # the rows can't be told apart from the design's own: undecided at this resolution
        return Threshold()

    def _tighten(self, threshold: float, budget: Fraction | None, *, deadline: float | None) -> None:
        """Hull rows at the cheapest fractional designs, until those find no more: the master then starts from a tight bound."""
        if threshold >= self.tightened * (1 - 1e-6):  # rows for a threshold hold for higher ones as well
            return
        self.tightened, target = threshold, threshold * threshold
        pool, cost = self.arena.pool, -np.inf
        for _ in range(TIGHTENED):
            program = self.structure.program(target=target, budget=None)
            values = relaxed(program)
            if values is None or (deadline is not None and time.monotonic() > deadline):
                return
            before, cost = cost, float(program.cost @ values)
            if cost < before + STALLED * abs(before) or (budget is not None and cost > budget / program.unit + 0.5):
                return  # the linear bound has settled, or no design within the budget is left: the master proves it
            shares, known = values[self.structure.variable_of], pool.rows_known
            for support in self._weak(shares, target):
                pool.add_hull(support, shares, target)
                if pool.rows_known >= known + FRESH:
                    break
            if pool.rows_known == known:
                return

    def _weak(self, shares: np.ndarray, target: float) -> list[tuple[int, ...]]:
        """Supports to look at in a fractional design: the weakest of all, or on large fields those seen before."""
        table = self.arena.table
        if table is None or self.arena.market.node_items:
            return self.arena.pool.around.supports()
        return table.weakest(shares, below=WEAK * target, count=LOOKED_AT)

    def tidy(self, mask: Mask, floor: float) -> Mask:
        """Without the purchases that the objective `floor` does not need."""
        return tidy(self.arena, mask, floor)

    def first(self, start: Mask) -> Mask:
        """Greedy and exchanges, with at most a third of the time; on large fields the greedy that follows the margin."""
        arena, goal = self.arena, self.goal
        if local_to_blocks(arena):
            steps = best_prefix(start, 0.0, Tracked(arena, goal, start).run())
            return steps[-1].after if steps else start
        steps = best_prefix(start, arena.value(start), witness_greedy(arena, goal, start=start))
        left = self.left()
        limit = None if left is None else max(0.0, left / 3)
        climber = Climber(
            arena, Order(budget=goal.budget, seed=goal.seed, time_limit=limit), steps[-1].after if steps else start
        )
        climber.climb(RESTARTS)
        return climber.mask

    def _design(self, values: np.ndarray) -> Mask:
        return self.arena.market.close(values[: len(self.arena.market.items)])

    def maximise(self, budget: Fraction | None, incumbent: Mask) -> tuple[Mask, float]:
        """The best design within the budget, from an incumbent, and a proven bound on all of them."""
        arena = self.arena
        mask, value = incumbent, arena.value(incumbent)
        money = None if budget is None else float(budget)
        upper = bound_from_cuts(arena, money)
        smallest = ZERO * arena.scale
        while not self.late():
            self._tell(value, upper)
            tight = max(value * (1 + self.master.gap), smallest)
            if upper <= tight * (1 + 1e-15):
                break
            verdict = self.settle(tight, budget, hint=mask, share=1.0 if value == 0.0 else PROOF)
            if verdict.impossible:
                upper = min(upper, tight)
            elif verdict.reached is not None:
                mask, value = verdict.reached, arena.value(verdict.reached)
            else:
                upper = min(upper, relaxation_bound(arena, money, deadline=self.deadline))
                mask, upper = self._ladder(budget, mask, upper)
                value = arena.value(mask)
                break
        return mask, max(upper, value)

    def _ladder(self, budget: Fraction | None, mask: Mask, upper: float) -> tuple[Mask, float]:
        """When the last proof does not come in time: easier thresholds above the incumbent, so that the gap is small."""
        for step in LADDER:
            threshold = self.arena.value(mask) * (1 + step)
            if 0.0 < threshold < upper and not self.late():
                verdict = self.settle(threshold, budget, hint=mask, share=0.5)
                if verdict.impossible:
                    upper = threshold
                elif verdict.reached is not None:
                    mask = verdict.reached
        return mask, upper

    def minimise(
        self, target: float, budget: Fraction | None, incumbent: Mask | None, *, slack: float = REACHED / 2
    ) -> Cheapest:
        """The cheapest design whose objective reaches the target, to the relative slack.

        A master that rounds prices can't tell the last two designs apart: then it is asked for one that costs less, until
        there is none.
        """
        arena, market = self.arena, self.arena.market
        threshold = target * (1 - slack)
        best, bound, cheaper = incumbent, Fraction(0), False
        self._tighten(threshold, budget, deadline=self.deadline)
        while not self.late():
            program = self.structure.program(
                target=threshold * threshold, budget=budget, minimise=True, hint=best if best is not None else None
            )
            solved = self.master.solve(program, time_limit=self.left(), seed=self.goal.seed)
            self.rounds += 1
            if solved.answer is Answer.INFEASIBLE:
                if best is None:
                    return Cheapest(None, bound, impossible=True)
                return Cheapest(best, max(bound, market.cost(best)) if cheaper else bound)
            bound = max(bound, solved.cost_bound)
            self._tell(float(bound), float("inf") if best is None else float(market.cost(best)))
            if solved.values is None:
                break
            mask = self._design(solved.values)
            if self.structure.overspent(mask, budget):
                continue
            known = arena.pool.rows_known
            if teach(arena, mask, threshold, rng=self.rng, count=CUTS) >= threshold:
                if best is None or market.cost(mask) < market.cost(best):
                    best = mask
                if solved.proven and bound < market.cost(best):
                    budget, cheaper = market.cost(best) - self.structure.grain, True
                    continue
            elif arena.pool.rows_known == known:
                break
            if best is not None and market.cost(best) <= bound:
                break
        return Cheapest(best, bound if best is None else min(bound, market.cost(best)))


@dataclass(frozen=True, slots=True)
class Optimal:
    """Greedy, exchanges, then cuts until the best design is proven; under a time limit, the best so far with its gap."""

    name: str = "optimal"
    solver: str = "ortools"
    hulls: bool = True
    """Separate hull rows at fractional designs where they apply; False: the witness cuts alone, to compare with."""

    def search(self, arena: Arena, goal: Order, *, master: Master) -> PlanSearch:
        return search_for(arena, goal, master=master) if self.hulls else PlanSearch(arena, goal, master=master)

    def plan(self, arena: Arena, goal: Order) -> Plan:
        from rrf_design.planning.cheapest import cheapest_plan

        start = starting_design(arena, goal)
        master = front_end(self.solver)
        master.ready()
        search = self.search(arena, goal, master=master)
        if goal.target is not None:
            return cheapest_plan(search, start, method=self.name)
        return best_plan(search, start, method=self.name)


def search_for(arena: Arena, goal: Order, *, master: Master | None = None) -> PlanSearch:
    """The strongest search that applies to this arena."""
    from rrf_design.planning.proof.prover import Prover, applies
    from rrf_design.planning.proof.robust_prover import RobustProver

    if not applies(arena):
        return PlanSearch(arena, goal, master=master)
    return (RobustProver if arena.robust else Prover)(arena, goal, master=master)


def best_plan(search: PlanSearch, start: Mask, *, method: str) -> Plan:
    """Largest objective within the budget, and of the designs that have it the cheapest."""
    arena, goal = search.arena, search.goal
    incumbent = search.first(start)
    budget = None if goal.budget is None else exact(goal.budget)
    mask, upper = search.maximise(budget, incumbent)
    upper = min(upper, bound_from_cuts(arena, goal.budget))
    mask, least = cheapest_equal(search, start, mask, upper)
    gap = search.master.gap * 1.01
    return finish(arena, mask, goal, method=method, start=start & mask, upper=upper, gap=gap, cost_bound=least)


def cheapest_equal(search: PlanSearch, start: Mask, mask: Mask, upper: float) -> tuple[Mask, Fraction | None]:
    """A design as good as this one, without purchases that do nothing; when this one is proven to be the best, the cheapest
    of all the best, with the proven bound on their cost. `start` is the cheapest design of all."""
    arena, structure = search.arena, search.structure
    value = arena.value(mask)
    if upper > max(value * (1 + search.master.gap), ZERO * arena.scale) * (1 + 1e-12):
        return search.tidy(mask, value), None
    if value == 0.0:
        return start, arena.market.cost(start)
    mask = search.tidy(mask, value)
    cost = arena.market.cost(mask)
    if cost == 0:
        return mask, cost
    found = search.minimise(value, cost - structure.grain, None, slack=EQUAL)
    if found.impossible:
        return mask, cost
    return (mask if found.mask is None else found.mask), found.bound
