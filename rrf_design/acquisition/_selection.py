"""What to buy next for one field: the witness rule, and schedules made before any answer is seen.

Each purchase attacks the worst witness of the design *with everything already chosen in it*, so a
batch never attacks one witness twice. In model-agnostic mode only the operator, the prices and what
failed decide, never what an answer says; in model-adaptive mode, among supports that are (nearly)
equally bad, the one where the answers disagree most comes first, which is more efficient and
introduces selection. In the mode "expected" what was measured of other items comes before the
witness: it says which purchase is expected to break most shared errors for its price. That is an
estimate, and margins, verdicts and certificates know nothing of it.

The witness rule needs a witness, and a field without answers has none. So the first questions are
those of the cheapest design that reaches the goal, or has any margin at all; the planner finds it
on the problem that is left.

Asking a node again lowers the noise, where a purchase raises the margin; what both are for is the
promised error 2ε'/γ + own (`rrf_design.noise`). So they are held against each other by how much of
it they take away for their price. While nothing is promised, no repeat helps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heapify, heappop, heappush, heapreplace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rrf_design.acquisition._candidates import Candidates, PricedOffer
from rrf_design.blocks import Anchor
from rrf_design.checks import decisive_checks
from rrf_design.derive import owning, realised
from rrf_design.errors import BudgetError, InputError
from rrf_design.goal import POSITIVE, Goal, reaches
from rrf_design.market import exact
from rrf_design.planning.goals import planned_margin, repeatable
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.planning import Plan

Values = Mapping[str, tuple[float, ...]]
NEARLY = 1.05
"""Supports within this factor of the margin count as equally bad when residuals may steer."""
MOST_SUPPORTS = 64
"""So many of them are compared by their residuals."""
BLIND = 1e-18
"""‖C h‖² below this sees nothing of a unit witness."""
LOOKED_AT = 100
"""So many sets of purchases are looked at on the way to a goal."""


@dataclass(frozen=True, slots=True)
class Position:
    """A field as it stands: what is held of it or under way, and what of that failed.

    `answers` are those that may steer, beside the `values` that checks gave; without them every
    choice depends on the operator alone. `most` is always the money that may be spent; None: any.
    """

    design: Candidates
    held: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    answers: Values | None = None
    values: Values | None = None
    shared: Mapping[tuple[str, str], float] | None = None
    """How often two nodes were seen to say the same wrong value: purchases alone go by it."""

    def after(self, names: Collection[str]) -> Position:
        """The field with these bought, too."""
        return replace(self, held=self.held.union(names))

    @property
    def margin(self) -> DesignMargin | None:
        """γ of the field as it is; None where no question has been asked yet, or none of the
        answers could be read.
        """
        there = self.design.opened(self.held).difference(self.failed)
        return self.design.margin(self.held, self.failed) if there else None

    @property
    def reached(self) -> bool:
        """Whether the field reaches its goal, or any margin where it has none; an empty one does
        not.
        """
        return self.margin is not None and self.design.standing(self.held, self.failed).reached

    @property
    def promised_error(self) -> float | None:
        """The error that the field promises with what is held and read; None where it promises
        none.
        """
        standing = self.design.standing(self.held, self.failed)
        return standing.radius.bound(standing.lower)

    @property
    def rest(self) -> Problem | None:
        """The problem from here on: what is held is owned, what failed is gone; None when no
        question is left.
        """
        problem = self.design.asked(self.held, self.failed)
        if all(node.id in self.failed for node in problem.nodes):
            return None
        try:
            return owning(realised(problem, failed=self.failed, values={}), self.held)
        except InputError:  # what is left is no problem by itself
            return None

    def next_offer(self, *, most: Fraction | None) -> PricedOffer | None:
        """The best affordable purchase: against the worst witness, or asking again, or the first
        questions where there is no witness.

        Where answers could not be read, or no purchase alone helps, the cheapest few that reach the
        goal together.
        """
        if self.margin is None:
            found = self.first_offer(most=most)
            return self.reaching_offer(most=most) if found is None else found
        unread = not self.design.opened(self.held).isdisjoint(self.failed)
        found = self.reaching_offer(most=most) if unread else None
        if found is None:
            found = self.weighed(self.best_offer(most=most), most=most)
        return self.reaching_offer(most=most) if found is None and not unread else found

    def best_offer(self, *, most: Fraction | None) -> PricedOffer | None:
        """The affordable offer with the largest ‖C h‖²/cost; None when none sees the witness (then
        none can help), and in an empty field, which has none.
        """
        present, design = self.margin, self.design
        if present is None:
            return None
        energy = design.energies(self._steered() or present.witness)
        rated = []
        for offer in design.offers(self.held, self.failed, most=most):
            sees = design.gain(offer.names, self.held, self.failed, energy)
            if sees > BLIND:
                rated.append(replace(offer, sees=sees))
        for offer in sorted(rated, key=lambda b: (-self._expected(b), -score_of(b.sees, b.price))):
            # A purchase that lowers the margin would undo itself.
            falls = design.may_lower(offer.names)
            if not falls or design.margin({*self.held, *offer.names}, self.failed).upper >= present.lower:
                return offer
        return None

    def _expected(self, offer: PricedOffer) -> float:
        """How much of the errors that all held answers share the purchase is expected to break, per
        cost: an estimate from pairs, s − min over held h of s(h, c), with s the least of the held
        pairs. A check breaks all of it; 0 where nothing was measured.
        """
        if self.shared is None:
            return 0.0
        there = sorted(self.design.opened(self.held).difference(self.failed))
        nodes, known = self.design.problem.node_by_id, self.shared
        now = min((rate for pair, rate in known.items() if set(pair) <= set(there)), default=0.0)
        left = now
        for name in offer.names:
            if name in nodes:
                left = min(
                    [left, *(known[pair] for one in there if (pair := (min(one, name), max(one, name))) in known)]
                )
            elif isinstance(self.design.problem.block_by_id.get(name), Anchor):
                left = 0.0
        return score_of(now - left, offer.price)

    def weighed(self, offer: PricedOffer | None, *, most: Fraction | None) -> PricedOffer | None:
        """The purchase, or the next ask of a node that takes more of the promised error away for
        its price; the purchase where they are alike.
        """
        asks = self.design.further(self.held, self.failed, most=most)
        now = self.promised_error if asks else None
        if now is None:
            return offer

        def worth(one: PricedOffer) -> float:
            then = self.after(one.names).promised_error
            gain = 0.0 if then is None else now - then
            return float(f"{gain / float(one.price):.9g}") if one.price else inf if gain > 0.0 else 0.0

        best = max([*([] if offer is None else [offer]), *asks], key=worth)
        return best if best is offer or worth(best) > 0.0 else offer

    def first_offer(self, *, most: Fraction | None) -> PricedOffer | None:
        """What an empty field buys first: the cheapest design that reaches the goal, else any
        margin, else what money can do.
        """
        from rrf_design.planning import PlanStatus

        problem = self.rest
        if problem is None:
            return None
        for goal in (Goal.of(problem), Goal(POSITIVE)):
            found = _greedy_plan(problem, budget=most, goal=goal) if goal.named else None
            if found is not None and found.status is not PlanStatus.INFEASIBLE:
                return self._offer_of(found, problem)
        found = None if most is None else _greedy_plan(problem, budget=most, goal=Goal())
        return None if found is None or not found.selected else self._offer_of(found, problem)

    def reaching_offer(self, *, most: Fraction | None) -> PricedOffer | None:
        """The cheapest set of purchases that reaches the goal, or the cheapest among the
        `LOOKED_AT` that were looked at.

        A question with one row may lower the margin that two rows would raise, and what could not
        be read may have to be related to something before a check of it helps: there the witness
        rule sees no single purchase, or a dearer one. Its own way comes first, then single
        purchases, then sets in the order of their price, for as long as they are cheaper than the
        best.
        """
        if not Goal.of(self.design.problem).named or not self._may_reach(most):
            return None
        best = self._witnessed(most=most)
        queue: list[tuple[Fraction, int, tuple[str, ...]]] = [(Fraction(0), 0, ())]
        seen: set[frozenset[str]] = {frozenset()}
        while queue and len(seen) <= LOOKED_AT:
            price, _, names = heappop(queue)
            if best is not None and price >= best.price:
                break
            left = most if best is None else best.price
            left = None if left is None else left - price
            for offer in self.design.offers({*self.held, *names}, self.failed, most=left):
                found = PricedOffer((*names, *offer.names), price + offer.price, 1.0)
                if frozenset(found.names) in seen or (best is not None and found.price >= best.price):
                    continue
                seen.add(frozenset(found.names))
                if self.after(found.names).reached:
                    best = found
                else:
                    heappush(queue, (found.price, len(seen), found.names))
        return best

    def cost_of_goal(self) -> Fraction | None:
        """What the witness rule would spend from here to the goal (without one: to any margin);
        None if it gets nowhere, zero where the field is there already.
        """
        there, total = self, Fraction(0)
        while not there.reached:
            offer = there.next_offer(most=None)
            if offer is None:
                return None
            there, total = there.after(offer.names), total + offer.price
        return total

    def deciding_check(self, *, most: Fraction | None) -> tuple[str, ...]:
        """The check that decides a field none of whose answers could be read; nothing where there
        is none, or it was made.

        Without an answer there is no margin and nothing to repair, but where one value is all that
        is delivered, a trusted check of it is that value.
        """
        for anchor in decisive_checks(self.design.problem, without={*self.held, *self.failed}):
            names = self.design.closure(anchor.id, self.held)
            if names == (anchor.id,) and (most is None or self.design.price(names, self.held) <= most):
                return names
        return ()

    def _witnessed(self, *, most: Fraction | None) -> PricedOffer | None:
        """The witness rule's own way to the goal, in one offer; None where it gets stuck before."""
        names: list[str] = []
        there, left = replace(self, answers=None), most
        while offer := there.best_offer(most=left):
            names.extend(offer.names)
            there, left = there.after(offer.names), None if left is None else left - offer.price
            if there.reached:
                return PricedOffer(tuple(names), self.design.price(names, self.held), 1.0)
        return None

    def _may_reach(self, most: Fraction | None) -> bool:
        """Whether no bound speaks against it: everything affordable together leaves the present
        questions a margin that would do.
        """
        if self.margin is None:
            return True
        offers = self.design.offers(self.held, self.failed, most=most)
        ceiling = self.design.ceiling(self.held, self.failed, offers)
        return ceiling > 0.0 and reaches(ceiling, Goal.of(self.design.problem).target)

    def _offer_of(self, found: Plan, planned: Problem) -> PricedOffer | None:
        """A plan's purchases in one offer, questions first."""
        names = list(dict.fromkeys((*_planned_names(found), *found.selected)))
        nodes = [name for name in names if name in self.design.problem.node_by_id]
        asks = self.design.asks_for(_more_asks(found, planned), self.held)
        ordered = (*nodes, *(name for name in names if name not in nodes), *asks)
        return PricedOffer(ordered, self.design.price(ordered, self.held), 1.0) if ordered else None

    def _steered(self) -> Values | None:
        """Among nearly worst supports, the witness of the one with the largest observed residual
        around it; None where no answers may steer, or they have nothing to say.
        """
        design, answers = self.design, self.answers
        operator = design.margin(self.held, self.failed).operator
        if answers is None or not set(operator.node_ids) <= set(answers) or len(operator.node_ids) < 2:
            return None
        energy = {b: e for b, e in self._residual_energy(operator.block_ids, answers).items() if e > BLIND}
        if not energy:
            return None  # the answers agree wherever they can be compared: nothing to steer by
        equal = design.supports_below(self.held, self.failed, factor=NEARLY, most=MOST_SUPPORTS)
        touched = {
            block: {operator.node_index[name] for name in design.problem.block_by_id[block].nodes} for block in energy
        }

        def residual(support: Collection[int]) -> float:
            return sum(energy[block] for block, nodes in touched.items() if nodes.intersection(support))

        if not equal:
            return None
        chosen = max(equal, key=lambda entry: float(f"{residual(entry.support):.9g}"))
        return operator.unstack(np.asarray(chosen.direction), only=chosen.support)

    def _residual_energy(self, blocks: Collection[str], answers: Values) -> dict[str, float]:
        """‖rows of the block · y − target‖² in whitened coordinates, for blocks whose target is
        known.
        """
        full = self.design.full
        zero = {name: (0.0,) * self.design.problem.node_by_id[name].dim for name in full.node_ids}
        stacked = full.stack({**zero, **{name: answers[name] for name in full.node_ids if name in answers}})
        result = {}
        known = _realised_target(self.design, self.values or {})
        for block in blocks:
            j = full.block_index[block]
            rows = slice(int(full.block_offsets[j]), int(full.block_offsets[j + 1]))
            target = known.get(block, full.target[rows])
            if not np.isnan(target).any():
                part = full.rows_of(block) @ stacked - target
                result[block] = float(part @ part)
        return result


def score_of(sees: float, price: Fraction) -> float:
    """‖C h‖² per cost, rounded so that a tie is a tie on every machine and the order in the file
    decides.
    """
    return float(f"{sees / float(price):.9g}") if price else inf


def _realised_target(design: Candidates, values: Values) -> dict[str, np.ndarray]:
    """Whitened targets of anchors whose value came from a source during the run."""
    result = {}
    for name, value in values.items():
        block = design.problem.block_by_id[name]
        result[name] = design.full.side(design.problem, block, np.asarray(value, dtype=np.float64))
    return result


def _greedy_plan(problem: Problem, *, budget: Fraction | None, goal: Goal) -> Plan | None:
    """A greedy plan within the money for a goal, or for the largest margin where there is none."""
    from rrf_design.planning import plan

    money = None if budget is None else float(budget)
    asked = problem.model_copy(update={"budget": money, "target": goal.target, "delta": goal.delta})
    try:
        return plan(asked, method="greedy", aim="worst")
    except (BudgetError, InputError):  # too little money for any question, or rules that what is left can't keep
        return None


def _planned_names(found: Plan) -> list[str]:
    """A plan's purchases in its own order, questions before the blocks that need them."""
    return [name for step in found.trajectory for name in (*step.opened, step.block)]


def _more_asks(found: Plan, planned: Problem) -> dict[str, int]:
    """How many more times than the problem says each node is asked."""
    return {node: times - planned.node_by_id[node].repeats for node, times in found.repeats.items()}


@dataclass(frozen=True, slots=True)
class Schedule:
    """All purchases of one item in order, fixed before any answer is seen."""

    names: tuple[str, ...]
    bound: float | None = None
    """No design that the money allows has a margin above this (`bounds_certain_margin` says which
    margin): the planner's proof, where there is one.
    """
    route: str = ""
    """Where asking again was weighed: which way the plan took to its goal, in words."""


def fixed_schedules(
    designs: Mapping[str, Candidates], *, budget: float | None, method: str, time_limit: float | None
) -> dict[str, Schedule]:
    """For every item, all purchases in order, decided before any answer is seen.

    With money or a goal the planner decides (for many items the portfolio planner, over all of them
    at once); without both, or with method="witness", the witness rule is played to its end.
    """
    goals = {item: planned_margin(design.problem) for item, design in designs.items()}
    weighing = {item for item, design in designs.items() if _weighs(design.problem)}
    open_ended = any(value is None and item not in weighing for item, value in goals.items())
    shared = len(designs) > 1 and budget is not None and bool(weighing)  # no portfolio knows of repeats
    if method == "witness" or shared or (budget is None and open_ended):
        return _witness_schedules(_untouched(designs), None if budget is None else exact(budget))
    if len(designs) > 1 and budget is not None:
        return _portfolio(designs, budget=budget, goals=goals, time_limit=time_limit)
    known: dict[str, Schedule] = {}
    result = {}
    for item, design in designs.items():  # equal items are planned once
        key = design.problem.structure.key
        if key not in known:
            known[key] = _planned(design, budget=budget, method=method, time_limit=time_limit)
        result[item] = known[key]
    return result


def _in_order(design: Candidates, selected: Collection[str], *, held: Collection[str] = ()) -> tuple[str, ...]:
    """A chosen set in the order of the witness rule, each with what it needs before it; what is
    blind comes last.
    """
    names: list[str] = list(held)
    left = [name for name in selected if name not in names]
    while left:
        margin = Position(design, frozenset(names)).margin
        energy = {} if margin is None else design.energies(margin.witness)
        closures = {name: design.closure(name, names) for name in left}
        score = {
            name: score_of(sum(energy.get(b, 0.0) for b in design.wakes(c, names)), design.price(c, names))
            for name, c in closures.items()
        }
        best = max(left, key=lambda name: score[name])
        names.extend(name for name in closures[best] if name not in names)
        left = [name for name in left if name not in names]
    return tuple(names[len(held) :])


def _witness_schedules(fields: Mapping[str, Position], budget: Fraction | None) -> dict[str, Schedule]:
    """The witness rule played to its end without any answer, from where each field stands.

    The worst item first: under one budget, money goes to the field with the smallest margin that it
    can still help.
    """

    def lower(there: Position) -> float:
        margin = there.margin
        return 0.0 if margin is None else margin.lower

    left, there = budget, dict(fields)
    names: dict[str, list[str]] = {item: [] for item in fields}
    worst = [(lower(field), place, item) for place, (item, field) in enumerate(fields.items())]
    heapify(worst)
    while worst:
        _, place, item = worst[0]
        done = Goal.of(there[item].design.problem).named and there[item].reached
        offer = None if done else there[item].next_offer(most=left)
        if offer is None:
            heappop(worst)
            continue
        names[item].extend(offer.names)
        there[item] = there[item].after(offer.names)
        left = None if left is None else left - offer.price
        heapreplace(worst, (lower(there[item]), place, item))
    return {item: Schedule(tuple(bought)) for item, bought in names.items()}


def remade_schedules(fields: Mapping[str, Position], budget: Fraction | None) -> dict[str, Schedule]:
    """For fields with unread answers: the cheapest way to each goal, the cheapest first while the
    money lasts; the rest by the witness rule.

    That is the largest number of goals, and no money is spread over fields that do not get there
    before the others have theirs.
    """
    left = budget
    open_fields = {item: field for item, field in fields.items() if not field.reached}
    ways = {item: way for item, field in open_fields.items() if (way := field.reaching_offer(most=left)) is not None}
    result: dict[str, Schedule] = {}
    for item in sorted(ways, key=lambda item: ways[item].price):  # stable: file order among equals
        if left is not None and ways[item].price > left:
            break
        result[item] = Schedule(ways[item].names)
        left = None if left is None else left - ways[item].price
    rest = {item: field for item, field in fields.items() if item not in result}
    return result | _witness_schedules(rest, left)


def _untouched(designs: Mapping[str, Candidates]) -> dict[str, Position]:
    return {item: Position(design) for item, design in designs.items()}


def _planned(design: Candidates, *, budget: float | None, method: str, time_limit: float | None) -> Schedule:
    """The plan for the problem's own goal within the money; for the largest margin where no goal
    can be planned for.
    """
    from rrf_design.planning import plan

    asked = design.problem.model_copy(update={"budget": budget})
    if planned_margin(asked) is None and not _weighs(asked):
        asked = asked.model_copy(update={"target": None, "delta": None})
    try:
        found = plan(asked, method=method, aim="worst", time_limit=time_limit)
    except BudgetError:  # not even one question can be asked: nothing is planned, and the loop says why
        return Schedule(())
    except InputError:
        if not _weighs(asked):
            raise
        money = None if budget is None else exact(budget)  # no repeats bring the goal within reach: as far as it goes
        return _witness_schedules({"": Position(design)}, money)[""]
    names = _planned_names(found)
    rest = _in_order(design, [name for name in found.selected if name not in names], held=names)
    names = [*dict.fromkeys((*names, *rest)), *design.asks_for(_more_asks(found, asked), ())]
    return Schedule(tuple(names), found.upper_bound, found.notes[-1] if _weighs(asked) and found.notes else "")


def bounds_certain_margin(problem: Problem) -> bool:
    """Whether `Schedule.bound` speaks of what declared uncertainty leaves of a margin, and not of
    γ itself: what the planner makes large for this problem.
    """
    by_error = problem.delta is not None and problem.target is None
    if by_error and (_weighs(problem) or planned_margin(problem) is not None):
        return False
    return bool(problem.whole.uncertain)


def _weighs(problem: Problem) -> bool:
    """Whether a goal of this problem may be reached by asking again."""
    return problem.delta is not None and bool(repeatable(problem))


def _portfolio(
    designs: Mapping[str, Candidates], *, budget: float, goals: Mapping[str, float | None], time_limit: float | None
) -> dict[str, Schedule]:
    """Many items under one budget: the portfolio planner spends it.

    When all items share a goal, as many as possible reach it; otherwise the smallest margin is made
    as large as possible.
    """
    from rrf_design.planning import portfolio

    common = set(goals.values())
    target = common.pop() if len(common) == 1 else None
    try:
        found = portfolio(
            [design.problem for design in designs.values()],
            budget=budget,
            aim="smallest" if target is None else "count",
            target=target,
            time_limit=time_limit,
        )
    except BudgetError:  # too little for one question in every item: the worst first, as far as it goes
        return _witness_schedules(_untouched(designs), exact(budget))
    shares = zip(designs.items(), found.shares, strict=True)
    return {item: Schedule(_in_order(design, share.selected)) for (item, design), share in shares}
