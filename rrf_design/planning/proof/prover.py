"""Proofs from hull rows: linear bounds first, then a master over whole numbers (docs/algorithms.md,
facts 11, 12 and 28).

For a target t the rows of `HullPool` say what every design with γ ≥ t must buy. At a fractional
design that obeys all rows known so far, weak supports are listed and each is asked for the row of
its hull that the design misses by most, until none is missed. The linear bound on the cost then
refutes most targets without a search, and what it leaves is a good start for a design that reaches
them (`Mender`). The rest is left to the master, which decides in whole numbers; each of its
solutions is evaluated and cut off in the same way. Rows are kept for all targets and budgets.

For the robust objective, min over connected supports of σ_min(B_S) − η_S (fact 10), a purchase
helps a support, joins its nodes, and makes it less certain: more is no longer always better. But
what lies around a support still decides alone whether it reaches a target, part by part as the
purchases join it, and the search for the least purchases knows that. So hull rows hold as they are,
with larger bounds, and the linear bound, the master and the exchanges are those of the plain
margin. Where buying too much is what is wrong, a row says it of the uncertain blocks that are
bought: with all of these, so much more is needed here (`neighbourhoods`).
"""

from __future__ import annotations

import time
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import exact
from rrf_design.planning._optimal import Cheapest, PlanSearch, Threshold
from rrf_design.planning.contract import REACHED
from rrf_design.planning.proof._neighbourhoods import HullPool
from rrf_design.planning.proof._weak_supports import DENSE, Exchange, Mender, WeakSupports, around, grown, stages
from rrf_design.planning.proof.bounds import Fractional, MarketRelaxation, bound_from_cuts, ceiling, safe_cost
from rrf_design.planning.proof.master import Answer, Solved

if TYPE_CHECKING:
    from rrf_design.market import Mask
    from rrf_design.planning.contract import Order
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.planning.proof.cuts import CutRow
    from rrf_design.planning.proof.master import Master

WEAK = 1.5  # supports with λ_min up to this multiple of the target are asked for a row
FRESH = 1600  # rows added between two linear programs, over the squared size of supports: larger ones take longer
MOVED = 2e-3  # a support that gave nothing is asked again when a share around it has changed by this
SHARED = 0.3  # or so many per node, if that is more: rows far apart don't hinder each other
STALLED = 3  # linear programs looked back on
HOPE = 8  # separation ends when that many more such steps would not refute the budget
LEAN = 0.2  # of a fractional design in the whole ones that are cut off
SMALL = 1e-3  # or, without one, when they raised the cost by less than this
FAR = 0.85  # of the budget: a linear bound below this is not raised by regions
NEAR = 1.02  # within this factor of its bound an incumbent is asked to be proven the best
BISECTED = 14  # linear questions before the master is asked
CLIMBING = 0.5  # of the time left, at most, for raising the incumbent before its bound is lowered
TOUCH_UP = 0.2  # effort for a design that is probably not there, or near one of the master's
SURE = 0.8  # shares from which on a fractional design is held to buy
SHARE = 0.3  # of the time left, for a question that is not the last
MENDING = 0.1  # of the time left, at most, for one repair
FEW = 400  # items up to which the greedy and its exchanges give the first design
FIRST = (0.6, 0.45, 0.3, 0.15, 0.05)  # of what no money can pass: thresholds for a first design
RESOLVED = 1e-9  # of the squared scale: smaller squared targets are left to witness cuts, which don't square


def applies(evaluator: Evaluator) -> bool:
    """Whether hull rows speak of this evaluator: all queries asked, every node for itself, nothing
    shared, and G fits as one array.
    """
    plain = evaluator.plain and evaluator.additive
    return plain and not evaluator.market.node_items and evaluator.operator.matrix.shape[1] <= DENSE


class Prover(PlanSearch):
    """A `PlanSearch` whose rows are those of hulls, separated at fractional designs."""

    def __init__(self, evaluator: Evaluator, goal: Order, *, master: Master | None = None) -> None:
        super().__init__(evaluator, goal, master=master)
        self.hulls = HullPool(evaluator)
        self.weak = WeakSupports(evaluator)
        self.relaxation = MarketRelaxation(self.structure)
        self.regions = stages(self.weak)
        self.fractional: Fractional | None = None
        self.fresh = max(FRESH // evaluator.size**2, int(SHARED * evaluator.n), 1)
        self._quiet: dict[tuple[int, ...], tuple[float, NDArray[np.float64]]] = {}

    @cached_property
    def exchange(self) -> Exchange:
        return Exchange(self.weak, self.hulls.hoods, self.structure.cost[: len(self.evaluator.market.items)])

    def _rows(self, target: float) -> list[CutRow | None]:
        return self.hulls.rows(target, self.structure.variable_of)

    def separate(self, values: NDArray[np.float64], target: float, *, level: float) -> int:
        """Add rows that these values (of the program's variables) miss; how many.

        Whole values lie far outside every hull, and most rows that cut them off say little else. So
        they are leant towards the last fractional design: what misses a row between the two misses
        one that the relaxation will feel.
        """
        shares = values[self.structure.variable_of]
        leant = None
        if self.fractional is not None and level <= target:
            leant = LEAN * self.fractional.values[self.structure.variable_of] + (1 - LEAN) * shares
        before, fresh = self.hulls.learnt, self.fresh
        prefixes, grown = self.weak.look(shares, level)
        tried: set[tuple[int, ...]] = set()
        for prefix, support in zip(prefixes.tolist(), grown.tolist(), strict=True):
            first, last = (sum(i >= 0 for i in nodes) for nodes in (prefix, support))
            for size in range(first, last + 1):  # the smaller the support, the sooner it is asked
                nodes = tuple(sorted(support[:size]))
                if nodes not in tried:
                    tried.add(nodes)
                    if self._ask(nodes, shares, target, leant=leant):
                        break
            if self.hulls.learnt >= before + fresh or self.late():
                break
        return self.hulls.learnt - before

    def _ask(
        self,
        support: tuple[int, ...],
        shares: NDArray[np.float64],
        target: float,
        *,
        leant: NDArray[np.float64] | None = None,
    ) -> bool:
        """Whether a row around this support that the shares miss was added; one that the leant ones
        miss as well, if there is.
        """
        hood = self.hulls.hoods[support]
        here = shares[hood.members]
        quiet = self._quiet.get(support)
        if quiet is not None and quiet[0] >= target and np.abs(quiet[1] - here).max(initial=0.0) < MOVED:
            return False
        row = None if leant is None else hood.separate(leant, target)
        if row is None or not row.missed(here):
            row = hood.separate(shares, target)
        if row is None:
            self._quiet[support] = (target, here)
            return False
        return self.hulls.add(row, target)

    def relax(
        self, threshold: float, budget: Fraction | None, *, deadline: float | None, quick: bool = False
    ) -> tuple[bool, Fraction]:
        """Whether the linear relaxation refutes the threshold, and a proven bound on the cost of
        every design that reaches it; a `quick` one asks no regions.
        """
        target, unit = threshold * threshold, self.structure.unit
        units = None if budget is None else floor(budget / unit)
        bound, history, stage, last = 0, list[float](), 0, 0 if quick else self.regions
        self.fractional = None
        while deadline is None or time.monotonic() < deadline:
            rows = self._rows(target)
            if any(row is not None and not len(row.variables) for row in rows):
                return True, (
                    bound if units is None else max(bound, units + 1)
                ) * unit  # no purchase is enough somewhere
            solved = self.relaxation.solve(rows)
            if solved is None:
                break
            history.append(solved.cost)
            self.fractional = solved
            if units is None or solved.cost <= units + 1e-6:
                stage = self._learn(stage, last, history, solved, target, units)
                if stage <= last:
                    continue
            bound = max(bound, self._proven(rows, solved))
            break
        return units is not None and bound > units, bound * unit

    def _learn(
        self, stage: int, last: int, history: list[float], solved: Fractional, target: float, units: int | None
    ) -> int:
        """Add rows that a fractional design misses: of supports, then of regions of them; the stage
        this has come to, beyond the last one when nothing is to be learnt.

        A stage ends when the linear programs (whose values are the history) have come to rise too
        slowly, or nothing is missed. Far below the budget regions are not worth their time.
        """
        shares = solved.values[self.structure.variable_of]
        while stage <= last:
            if not _stalled(history, units):
                learnt = self.separate(solved.values, target, level=WEAK * target)
                if learnt + self._widen(stage, shares, target, self._tight(solved)):
                    return stage
            far = units is not None and solved.cost < FAR * units
            stage = last + 1 if far else stage + 1
            history[:] = [solved.cost]
        return stage

    def _widen(self, stage: int, shares: NDArray[np.float64], target: float, tight: list[tuple[int, ...]]) -> int:
        """Ask regions for rows that these shares miss; how many were added."""
        level = WEAK * target
        if stage == 0:
            return 0
        if stage < self.regions or stage == 1:
            listed = grown(self.weak, shares, level, more=stage)
        else:
            listed = around(self.weak, shares, level, tight=tight)
        before, fresh = self.hulls.learnt, self.fresh
        for region in listed:
            self._ask(region, shares, target)
            if self.hulls.learnt >= before + fresh or self.late():
                break
        return self.hulls.learnt - before

    def _tight(self, solved: Fractional) -> list[tuple[int, ...]]:
        """Supports and regions whose rows these prices use."""
        prices = solved.prices[len(self.structure.rows) :]
        return [
            hood.support
            for side, price in zip(self.hulls.sides, prices, strict=False)
            if price > 0
            for hood, *_ in side.around
        ]

    def _proven(self, rows: list[CutRow | None], solved: Fractional) -> int:
        """The cost that these prices prove, in units."""
        first = len(self.structure.rows)
        used = [row for row in rows if row is not None]
        switched = np.array([row is not None for row in rows], dtype=bool)
        prices = np.concatenate([solved.prices[:first], solved.prices[first:][switched]])
        return safe_cost([*self.structure.rows, *used], prices, self.structure.cost)

    def _ask_master(
        self, threshold: float, budget: Fraction | None, *, hint: Mask | None, left: float | None
    ) -> Solved:
        """Any solution of the rows within the budget: it is separated or beaten next, so the
        cheapest is not worth its proof.
        """
        target = threshold * threshold
        cuts = [row for row in self._rows(target) if row is not None]
        program = self.structure.program(target=target, budget=budget, hint=hint, cuts=cuts)
        self.rounds += 1
        return self.master.solve(program, time_limit=left, seed=self.goal.seed)

    def settle(self, threshold: float, budget: Fraction | None, *, hint: Mask, share: float = 1.0) -> Threshold:
        """Find a design within the budget whose objective reaches `threshold`, or prove that there
        is none.
        """
        if not self._resolves(threshold):
            return super().settle(threshold, budget, hint=hint, share=share)
        limit = None if self.deadline is None else time.monotonic() + share * max(self.left() or 0.0, 0.0)
        refuted, _ = self.relax(threshold, budget, deadline=limit)
        if refuted:
            return Threshold(impossible=True)
        found = self._rounded(threshold, budget, effort=TOUCH_UP)
        while found is None and not self.late():
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0.0:
                break
            solved = self._ask_master(threshold, budget, hint=hint, left=left)
            if solved.answer is Answer.INFEASIBLE:
                return Threshold(impossible=True)
            if solved.values is None:
                break
            hint = self._design(solved.values)
            if self.structure.overspent(hint, budget):
                continue
            if not self.separate(solved.values.astype(np.float64), threshold * threshold, level=threshold * threshold):
                found = hint if self.evaluator.value(hint) >= threshold else None
                break  # either it is reached, or the rows can't tell it from a design that does
            found = self._mended(hint, threshold, budget, effort=TOUCH_UP)
        return Threshold(reached=found)

    def _rounded(self, threshold: float, budget: Fraction | None, *, effort: float) -> Mask | None:
        """A design from the last fractional one; None when there is none, or nothing was found with
        this effort.
        """
        if self.fractional is None:
            return None
        values = self.fractional.values[: len(self.evaluator.market.items)]
        return self._mended(values > SURE, threshold, budget, effort=effort)

    def _mended(self, start: Mask, threshold: float, budget: Fraction | None, *, effort: float) -> Mask | None:
        """A design within the budget that reaches the threshold, made from this one; None when none
        was found in time.
        """
        market, target = self.evaluator.market, threshold * threshold
        deadline = None if self.deadline is None else time.monotonic() + MENDING * max(self.left() or 0.0, 0.0)
        if market.plain:
            units = None if budget is None else floor(budget / self.structure.unit)
            seed = int(self.rng.integers(1 << 30))
            mask = self.exchange.reach(start, target, units, deadline=deadline, effort=effort, seed=seed)
        else:
            mask = Mender(self.weak, self.hulls.hoods, target, self.rng).reach(
                start, budget, deadline=deadline, effort=effort
            )
        if mask is None or not market.admits(mask, budget) or self.evaluator.value(mask) < threshold:
            return None
        return mask

    def first(self, start: Mask) -> Mask:
        """On small fields as ever; on large ones what can be made for the highest of a few
        thresholds.
        """
        if len(self.evaluator.market.items) <= FEW:
            return super().first(start)
        budget = None if self.goal.budget is None else exact(self.goal.budget)
        for share in FIRST:
            found = self._mended(start, share * ceiling(self.evaluator), budget, effort=TOUCH_UP)
            if found is not None:
                return found
        return super().first(start)

    def tidy(self, mask: Mask, floor: float) -> Mask:
        """As ever; on large fields by looking at each purchase's neighbourhood alone."""
        small = self.evaluator.table is not None and len(self.evaluator.market.items) <= FEW
        if small or not self._resolves(floor):
            return super().tidy(mask, floor)
        mender = Mender(self.weak, self.hulls.hoods, floor * floor * (1 - 1e-9), np.random.default_rng(self.goal.seed))
        mender.hold(mask)
        mender.tidy()
        return mender.mask if self.evaluator.value(mender.mask) >= floor else mask

    def maximise(self, budget: Fraction | None, incumbent: Mask) -> tuple[Mask, float]:
        """The best design within the budget, from an incumbent, and a proven bound on all of
        them.
        """
        evaluator = self.evaluator
        upper = min(bound_from_cuts(evaluator, None if budget is None else float(budget)), ceiling(evaluator))
        value = evaluator.value(incumbent)
        tight = value * (1 + self.master.gap)
        few = len(evaluator.market.items) <= FEW  # else the first design is no answer yet: ask from above
        if value > 0.0 and few and self.relax(tight, budget, deadline=self.deadline)[0]:
            return incumbent, max(min(upper, tight), value)
        mask, upper = self._bisect(*self._climb(incumbent, upper, budget), budget)
        value = evaluator.value(mask)
        if value == 0.0:  # a margin that is not zero but tiny is below what hull rows resolve
            return super().maximise(budget, mask)
        undecided = value  # up to here the master has failed to decide
        while not self.late():
            self._tell(value, upper)
            tight = value * (1 + self.master.gap)
            if upper <= tight * (1 + 1e-15):
                break
            low = max(undecided, value)
            ask = tight if upper <= low * NEAR else (low * upper) ** 0.5
            verdict = self.settle(ask, budget, hint=mask, share=1.0 if ask == tight else SHARE)
            if verdict.impossible:
                upper = min(upper, ask)
            elif verdict.reached is not None:
                mask, value = verdict.reached, evaluator.value(verdict.reached)
            elif ask == tight:
                break
            else:
                undecided = ask
        return mask, max(upper, value)

    def _bisect(self, mask: Mask, upper: float, budget: Fraction | None) -> tuple[Mask, float]:
        """Lower the bound by the linear relaxation, and raise the incumbent by what is made of its
        fractional designs.
        """
        low = max(self.evaluator.value(mask), 1e-6 * upper)
        for _ in range(BISECTED):
            if self.late() or upper <= low * NEAR**0.5:
                break
            self._tell(self.evaluator.value(mask), upper)
            ask = (low * upper) ** 0.5 if upper < 4 * low else (low + upper) / 2
            refuted, _ = self.relax(ask, budget, deadline=self.deadline)
            if refuted:
                upper = ask
                continue
            low, found = ask, self._rounded(ask, budget, effort=TOUCH_UP)
            if found is not None:
                mask, low = found, max(low, self.evaluator.value(found))
        return mask, upper

    def _climb(self, mask: Mask, upper: float, budget: Fraction | None) -> tuple[Mask, float]:
        """Raise the incumbent by designs made from fractional ones, halving the way to the least
        threshold that none was made for; what is refuted on the way counts.
        """
        left = self.left()
        limit = None if left is None else time.monotonic() + CLIMBING * max(left, 0.0)
        value, missed = self.evaluator.value(mask), upper
        while missed > max(value, 1e-6 * upper) * NEAR**0.5 and (limit is None or time.monotonic() < limit):
            self._tell(value, upper)
            ask = max(value, 1e-6 * upper)
            ask = (ask * missed) ** 0.5 if missed < 4 * ask else (ask + missed) / 2
            refuted, _ = self.relax(ask, budget, deadline=limit, quick=True)
            found = None if refuted else self._rounded(ask, budget, effort=1.0)
            if found is None:
                missed, upper = ask, ask if refuted else upper
            else:
                mask, value = found, self.evaluator.value(found)
        return mask, upper

    def minimise(
        self, target: float, budget: Fraction | None, incumbent: Mask | None, *, slack: float = REACHED / 2
    ) -> Cheapest:
        """The cheapest design whose objective reaches the target, to the relative slack.

        Every design is asked to be beaten: the last question, for one that costs less, has no
        answer.
        """
        threshold = target * (1 - slack)
        if not self._resolves(threshold):
            return super().minimise(target, budget, incumbent, slack=slack)
        market, squared = self.evaluator.market, threshold * threshold
        best, most, hint = incumbent, budget, incumbent
        if best is not None:
            most = market.cost(best) - self.structure.grain
        refuted, bound = self.relax(threshold, most, deadline=self.deadline)
        found = None if refuted else self._rounded(threshold, most, effort=1.0)
        while True:
            if found is not None:
                best, hint, most = found, found, market.cost(found) - self.structure.grain
            refuted |= most is not None and bound > most
            self._tell(float(bound), float("inf") if best is None else float(market.cost(best)))
            if refuted or self.late():
                break
            found = None if hint is None else self._mended(hint, threshold, most, effort=TOUCH_UP)
            if found is not None:
                continue
            solved = self._ask_master(threshold, most, hint=hint, left=self.left())
            refuted, bound = solved.answer is Answer.INFEASIBLE, max(bound, solved.cost_bound)
            if solved.values is None:
                if refuted:
                    continue
                break
            hint = self._design(solved.values)
            if self.structure.overspent(hint, most):
                continue
            if not self.separate(solved.values.astype(np.float64), squared, level=squared):
                if self.evaluator.value(hint) < threshold:
                    break  # the rows can't tell it from a design that reaches the target
                found = hint
        if refuted:
            return Cheapest(best, bound if best is None else market.cost(best), impossible=best is None)
        return Cheapest(best, bound if best is None else min(bound, market.cost(best)))

    def _resolves(self, threshold: float) -> bool:
        """Whether hull rows tell this threshold from zero: its square is far above the rounding of
        G.
        """
        return threshold * threshold > RESOLVED * self.evaluator.scale**2


def _stalled(history: list[float], units: int | None) -> bool:
    """Whether linear programs have come to rise too slowly to be worth their rows: the master is
    asked instead.
    """
    if len(history) <= STALLED:
        return False
    risen = history[-1] - history[-1 - STALLED]
    return risen < SMALL * abs(history[-1]) or (units is not None and history[-1] + HOPE * risen < units)


STEPS = 12  # thresholds for a first design
HALVED = 5  # times the way from it to the next threshold


class RobustProver(Prover):
    """A `Prover` whose rows know radii; designs are made by exchanges alone where the market is
    plain.
    """

    def __init__(self, evaluator: Evaluator, goal: Order, *, master: Master | None = None) -> None:
        super().__init__(evaluator, goal, master=master)
        self.regions = 0  # with radii what a region asks for takes too long to list for what it is worth

    def first(self, start: Mask) -> Mask:
        """What can be made for the highest of a few thresholds, and then for higher ones still."""
        if not self.evaluator.market.plain:
            return PlanSearch.first(self, start)
        budget = None if self.goal.budget is None else exact(self.goal.budget)
        best, high = None, ceiling(self.evaluator)
        for step in range(1, STEPS):
            ask = (1 - step / STEPS) * ceiling(self.evaluator)
            best = self._mended(start, ask, budget, effort=TOUCH_UP)
            if best is not None:
                break
            high = ask
        if best is None:
            return PlanSearch.first(self, start)
        for _ in range(HALVED):
            ask = (self.evaluator.value(best) + high) / 2
            found = self._mended(best, ask, budget, effort=1.0)
            best, high = (best, ask) if found is None else (found, max(high, self.evaluator.value(found)))
        return best

    def tidy(self, mask: Mask, floor: float) -> Mask:
        return PlanSearch.tidy(self, mask, floor)
