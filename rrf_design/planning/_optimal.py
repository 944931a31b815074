"""Provably best designs by witness cuts (docs/algorithms.md, facts 11 and 12).

"Is there a design within the budget with γ ≥ t?" is a covering program over 0/1 choices: one row
per witness found so far. A solution is evaluated; it either beats the incumbent or is cut off by
its own witnesses. No solution: then no design reaches t, and t is a proven bound. Asked of t just
above the incumbent, "no" is the proof of optimality. A fixed t keeps every row in whole numbers,
rounded so that the proof holds for the real ones.

When a time limit comes first, thresholds further above the incumbent are settled instead, so that
the gap is small. The master runs on one core whatever n_jobs says: its answers then never depend on
the machine.

The cheapest plan is the least that must be bought so that a wrong answer can't hide: γ_k ≥ target,
or 2ε/γ_k ≤ δ.

It is the same covering program with the cost minimised. A target out of reach is proven
to be so, and the plan then is the largest margin that the money can buy.

Local search exchanges purchases after the greedy: it is the anytime planner, and gives the proof
its first incumbent.

Moves are judged by the pool of cuts first, which bounds a design's margin from above for the price
of a matrix product; only designs that could beat the incumbent are evaluated, and every one that
doesn't teaches the pool why. Between rounds a few purchases are dropped at random (seeded) and the
money is spent again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask, exact
from rrf_design.planning._greedy import Tracked, best_prefix, local_to_blocks, witness_greedy
from rrf_design.planning._outcome import ZERO, finish, starting_design
from rrf_design.planning.contract import REACHED, Order, Plan
from rrf_design.planning.proof.bounds import bound_from_cuts, lifted, relaxation_bound
from rrf_design.planning.proof.master import Answer, Master, front_end
from rrf_design.planning.proof.program import MarketRows, relaxed

if TYPE_CHECKING:
    from rrf_design.planning.evaluator import Evaluator

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
    """One run over an evaluator: cuts, incumbent and clock.

    Reused over many budgets and targets, as the pool is.
    """

    def __init__(self, evaluator: Evaluator, goal: Order, *, master: Master | None = None) -> None:
        self.evaluator = evaluator
        self.goal = goal
        self.master = master or front_end()
        self.structure = MarketRows(evaluator)
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
        """Find a design within the budget whose objective reaches `threshold`, or prove that there
        is none.
        """
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
            known = self.evaluator.pool.rows_known
            if _teach(self.evaluator, mask, threshold, rng=self.rng, count=CUTS) >= threshold:
                return Threshold(reached=mask)
            if self.evaluator.pool.rows_known == known:
                break  # the rows can't be told apart from the design's own: undecided at this resolution
        return Threshold()

    def _tighten(self, threshold: float, budget: Fraction | None, *, deadline: float | None) -> None:
        """Hull rows at the cheapest fractional designs, until those find no more: the master then
        starts from a tight bound.
        """
        if threshold >= self.tightened * (1 - 1e-6):  # rows for a threshold hold for higher ones as well
            return
        self.tightened, target = threshold, threshold * threshold
        pool, cost = self.evaluator.pool, -np.inf
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
        """Supports to look at in a fractional design: the weakest of all, or on large fields those
        seen before.
        """
        table = self.evaluator.table
        if table is None or self.evaluator.market.node_items:
            return self.evaluator.pool.around.supports()
        return table.weakest(shares, below=WEAK * target, count=LOOKED_AT)

    def tidy(self, mask: Mask, floor: float) -> Mask:
        """Without the purchases that the objective `floor` does not need."""
        return tidy(self.evaluator, mask, floor)

    def first(self, start: Mask) -> Mask:
        """Greedy and exchanges, with at most a third of the time; on large fields the greedy that
        follows the margin.
        """
        evaluator, goal = self.evaluator, self.goal
        if local_to_blocks(evaluator):
            steps = best_prefix(start, 0.0, Tracked(evaluator, goal, start).run())
            return steps[-1].after if steps else start
        steps = best_prefix(start, evaluator.value(start), witness_greedy(evaluator, goal, start=start))
        left = self.left()
        limit = None if left is None else max(0.0, left / 3)
        climber = Climber(
            evaluator, Order(budget=goal.budget, seed=goal.seed, time_limit=limit), steps[-1].after if steps else start
        )
        climber.climb(RESTARTS)
        return climber.mask

    def _design(self, values: np.ndarray) -> Mask:
        return self.evaluator.market.close(values[: len(self.evaluator.market.items)])

    def maximise(self, budget: Fraction | None, incumbent: Mask) -> tuple[Mask, float]:
        """The best design within the budget, from an incumbent, and a proven bound on all of
        them.
        """
        evaluator = self.evaluator
        mask, value = incumbent, evaluator.value(incumbent)
        money = None if budget is None else float(budget)
        upper = bound_from_cuts(evaluator, money)
        smallest = ZERO * evaluator.scale
        while not self.late():
            self._tell(value, upper)
            tight = max(value * (1 + self.master.gap), smallest)
            if upper <= tight * (1 + 1e-15):
                break
            verdict = self.settle(tight, budget, hint=mask, share=1.0 if value == 0.0 else PROOF)
            if verdict.impossible:
                upper = min(upper, tight)
            elif verdict.reached is not None:
                mask, value = verdict.reached, evaluator.value(verdict.reached)
            else:
                upper = min(upper, relaxation_bound(evaluator, money, deadline=self.deadline))
                mask, upper = self._ladder(budget, mask, upper)
                value = evaluator.value(mask)
                break
        return mask, max(upper, value)

    def _ladder(self, budget: Fraction | None, mask: Mask, upper: float) -> tuple[Mask, float]:
        """When the last proof does not come in time: easier thresholds above the incumbent, so that
        the gap is small.
        """
        for step in LADDER:
            threshold = self.evaluator.value(mask) * (1 + step)
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

        A master that rounds prices can't tell the last two designs apart: then it is asked for one
        that costs less, until there is none.
        """
        evaluator, market = self.evaluator, self.evaluator.market
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
            known = evaluator.pool.rows_known
            if _teach(evaluator, mask, threshold, rng=self.rng, count=CUTS) >= threshold:
                if best is None or market.cost(mask) < market.cost(best):
                    best = mask
                if solved.proven and bound < market.cost(best):
                    budget, cheaper = market.cost(best) - self.structure.grain, True
                    continue
            elif evaluator.pool.rows_known == known:
                break
            if best is not None and market.cost(best) <= bound:
                break
        return Cheapest(best, bound if best is None else min(bound, market.cost(best)))


@dataclass(frozen=True, slots=True)
class Optimal:
    """Greedy, exchanges, then cuts until the best design is proven; under a time limit, the best so
    far with its gap.
    """

    name: str = "optimal"
    solver: str = "ortools"
    hulls: bool = True
    """Separate hull rows at fractional designs where they apply; False: the witness cuts alone, to
    compare with.
    """

    def search(self, evaluator: Evaluator, goal: Order, *, master: Master) -> PlanSearch:
        return search_for(evaluator, goal, master=master) if self.hulls else PlanSearch(evaluator, goal, master=master)

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:

        start = starting_design(evaluator, goal)
        master = front_end(self.solver)
        master.ready()
        search = self.search(evaluator, goal, master=master)
        if goal.target is not None:
            return _cheapest_plan(search, start, method=self.name)
        return _best_plan(search, start, method=self.name)


def search_for(evaluator: Evaluator, goal: Order, *, master: Master | None = None) -> PlanSearch:
    """The strongest search that applies to this evaluator."""
    from rrf_design.planning.proof.prover import Prover, RobustProver, applies

    if not applies(evaluator):
        return PlanSearch(evaluator, goal, master=master)
    return (RobustProver if evaluator.robust else Prover)(evaluator, goal, master=master)


def _best_plan(search: PlanSearch, start: Mask, *, method: str) -> Plan:
    """Largest objective within the budget, and of the designs that have it the cheapest."""
    evaluator, goal = search.evaluator, search.goal
    incumbent = search.first(start)
    budget = None if goal.budget is None else exact(goal.budget)
    mask, upper = search.maximise(budget, incumbent)
    upper = min(upper, bound_from_cuts(evaluator, goal.budget))
    mask, least = _cheapest_equal(search, start, mask, upper)
    gap = search.master.gap * 1.01
    return finish(evaluator, mask, goal, method=method, start=start & mask, upper=upper, gap=gap, cost_bound=least)


def _cheapest_equal(search: PlanSearch, start: Mask, mask: Mask, upper: float) -> tuple[Mask, Fraction | None]:
    """A design as good as this one, without purchases that do nothing; when this one is proven to
    be the best, the cheapest of all the best, with the proven bound on their cost. `start` is the
    cheapest design of all.
    """
    evaluator, structure = search.evaluator, search.structure
    value = evaluator.value(mask)
    if upper > max(value * (1 + search.master.gap), ZERO * evaluator.scale) * (1 + 1e-12):
        return search.tidy(mask, value), None
    if value == 0.0:
        return start, evaluator.market.cost(start)
    mask = search.tidy(mask, value)
    cost = evaluator.market.cost(mask)
    if cost == 0:
        return mask, cost
    found = search.minimise(value, cost - structure.grain, None, slack=EQUAL)
    if found.impossible:
        return mask, cost
    return (mask if found.mask is None else found.mask), found.bound


def _cheapest_plan(search: PlanSearch, start: Mask, *, method: str) -> Plan:
    """Least cost for the goal's target within its budget; the best margin instead when that is
    impossible.
    """
    evaluator, goal = search.evaluator, search.goal
    assert goal.target is not None
    budget = None if goal.budget is None else exact(goal.budget)
    found = search.minimise(goal.target, budget, _greedy_design(search, start))
    if found.mask is not None:
        mask = search.tidy(found.mask, goal.target * (1 - REACHED))
        return finish(
            evaluator, mask, goal, method=method, start=start & mask, cost_bound=found.bound, upper=_top(search)
        )
    best, upper = search.maximise(budget, search.first(start))
    best = search.tidy(best, evaluator.value(best))
    notes = []
    if found.impossible:
        limit = "any amount of money" if goal.budget is None else f"a budget of {goal.budget:g}"
        notes.append(
            f"the target {goal.target:g} is out of reach for {limit}: the largest possible is"
            f" {evaluator.value(best):.6g}"
            + ("" if upper <= evaluator.value(best) * (1 + 1e-6) else f" to {upper:.6g}")
        )
        upper = min(upper, goal.target)
    return finish(
        evaluator,
        best,
        goal,
        method=method,
        start=start & best,
        upper=upper,
        infeasible=found.impossible,
        cost_bound=found.bound,
        notes=notes,
    )


def _greedy_design(search: PlanSearch, start: Mask) -> Mask | None:
    """A first design that reaches the target, tidied; None when the greedy finds none."""
    evaluator, goal = search.evaluator, search.goal
    assert goal.target is not None
    steps = (
        Tracked(evaluator, goal, start).run()
        if local_to_blocks(evaluator)
        else witness_greedy(evaluator, goal, start=start)
    )
    mask = steps[-1].after if steps else start
    floor = goal.target * (1 - REACHED)
    if evaluator.value(mask) < floor or not evaluator.market.admits(mask, _money(search)):
        return None
    return search.tidy(mask, floor)


def _money(search: PlanSearch) -> Fraction | None:
    return None if search.goal.budget is None else exact(search.goal.budget)


def _top(search: PlanSearch) -> float:
    from rrf_design.planning.proof.bounds import bound_from_cuts

    return bound_from_cuts(search.evaluator, search.goal.budget)


ROUNDS = 12  # restarts from a disturbed incumbent
TRIES = 24  # designs evaluated exactly before a round ends without a gain
_TAUGHT = 24  # witnesses learnt from a design that disappoints


class Climber:
    """Improves one incumbent.

    Holds it with its value while it runs; `mask` and `value` are the best seen.
    """

    def __init__(self, evaluator: Evaluator, goal: Order, start: Mask) -> None:
        self.evaluator = evaluator
        self.budget = None if goal.budget is None else exact(goal.budget)
        self.rng = np.random.default_rng(goal.seed)
        self.mask, self.value = start, evaluator.value(start)
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
        value = self.evaluator.value(mask)
        while not self.late():
            better = self._step(mask, value)
            if better is None:
                return
            mask, value = better, self.evaluator.value(better)
            if value > self.value * (1 + 1e-12):
                self.mask, self.value = mask, value

    def _step(self, mask: Mask, value: float) -> Mask | None:
        """The first neighbour that beats `value`, most promising first."""
        moves = self._neighbours(mask)
        if not len(moves):
            return None
        for _ in range(TRIES):
            bounds = self.evaluator.pool.bounds(moves)
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
        found = self.evaluator.evaluate(mask, count=_TAUGHT, below=max(value * (1 + 1e-9), 1e-9 * self.evaluator.scale))
        for witness in found.witnesses:
            self.evaluator.pool.add(witness, mask)
        return found.value

    def _neighbours(self, mask: Mask) -> NDArray[np.bool_]:
        """Everything one more purchase, or one purchase exchanged for another, leads to."""
        market, seen, result = self.evaluator.market, set(), list[Mask]()
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
        """Which single items the budget leaves money for; exact unless they come with others or in
        tiers.
        """
        if self.budget is None:
            return np.ones(len(items), dtype=bool)
        market = self.evaluator.market
        unit, whole = market.units
        return np.asarray(whole[items] <= (self.budget - market.cost(base)) // unit, dtype=bool)

    def _disturbed(self) -> Mask:
        """The incumbent without a few purchases, and the money spent again by the greedy."""
        market, mask = self.evaluator.market, self.mask.copy()
        chosen = np.flatnonzero(mask)
        for item in self.rng.choice(chosen, size=min(len(chosen), 1 + int(self.rng.integers(3))), replace=False):
            mask = market.drop(mask, int(item)) if mask[item] else mask
        banned = self.rng.random(len(mask)) > 0.15  # a random few may not come back, so that the way is another one
        goal = Order(budget=None if self.budget is None else float(self.budget))
        steps = witness_greedy(self.evaluator, goal, start=mask, allowed=banned)
        after = steps[-1].after if steps else mask
        return after if market.admits(after, self.budget) else self.mask


def tidy(evaluator: Evaluator, mask: Mask, floor: float) -> Mask:
    """Without the purchases that the objective `floor` does not need, dearest first."""
    market = evaluator.market
    for item in sorted(np.flatnonzero(mask), key=lambda i: (-market.prices[i], -i)):
        if mask[item]:
            smaller = market.drop(mask, int(item))
            cheaper = market.cost(smaller) <= market.cost(mask)
            if (
                cheaper
                and not market.broken(smaller)
                and evaluator.opened(smaller).any()
                and evaluator.value(smaller) >= floor
            ):
                mask = smaller
    return mask


def _teach(evaluator: Evaluator, mask: Mask, target: float, *, rng: np.random.Generator, count: int) -> float:
    """Evaluate a design against an objective `target`; cut it off, and as much with it as its
    supports allow.

    The master gets the hull row of each support, and witnesses only where that row lets the design
    pass.
    """
    found = evaluator.evaluate(mask, count=count, below=target)
    present = evaluator.active(mask)
    shares = present[evaluator.variable].astype(np.float64)
    items = evaluator.block_item
    prices = np.zeros(len(items))
    prices[items >= 0] = evaluator.market.floor_prices[items[items >= 0]]  # owned blocks have no item, and cost nothing
    weak = dict.fromkeys(witness.support for witness in found.witnesses)
    cut = {support for support in weak if evaluator.pool.add_hull(support, shares, target * target)}
    for number, witness in enumerate(found.witnesses):
        evaluator.pool.add(witness, mask, master=witness.support not in cut)
        lone = evaluator.plain and evaluator.additive and not evaluator.robust
        if not lone or witness.support in cut or witness.value >= target:
            continue
        orders = [prices + 1e-3 * rng.random(len(prices)), rng.random(len(prices))]
        for order in orders if number < count // 2 else orders[:1]:
            evaluator.pool.add(lifted(evaluator, witness, present, target * target, order), master=True)
    return found.value


@dataclass(frozen=True, slots=True)
class Local:
    """Greedy, then exchanges until nothing helps; the bound is that of the linear relaxation."""

    name: str = "local"
    rounds: int = ROUNDS

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        from rrf_design.planning._outcome import finish, starting_design
        from rrf_design.planning.proof.bounds import relaxation_bound

        start = starting_design(evaluator, goal)
        steps = best_prefix(start, evaluator.value(start), witness_greedy(evaluator, goal, start=start))
        climber = Climber(evaluator, goal, steps[-1].after if steps else start)
        climber.climb(self.rounds)
        floor = climber.value if goal.target is None else min(climber.value, goal.target)
        mask = tidy(evaluator, climber.mask, floor)
        upper = relaxation_bound(evaluator, goal.budget, deadline=climber.deadline)
        return finish(evaluator, mask, goal, method=self.name, start=start & mask, upper=upper)
