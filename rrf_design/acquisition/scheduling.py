"""Schedules made before any answer is seen, and made anew from what is left where something could not be read.

Only the operator, the prices and what failed decide here, never what an answer says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from rrf_design.acquisition.choosing import present_margin, score_of
from rrf_design.acquisition.opening import next_bundle, reached, reaching_bundle
from rrf_design.acquisition.shop import Bundle, Shop
from rrf_design.errors import BudgetError, InputError
from rrf_design.goal import Goal
from rrf_design.market import exact
from rrf_design.planning.reaching import planned_margin
from rrf_design.planning.repeats import repeatable

if TYPE_CHECKING:
    from rrf_design.planning import Plan
    from rrf_design.problem import Problem


@dataclass(frozen=True, slots=True)
class Schedule:
    """All purchases of one item in order, fixed before any answer is seen."""

    names: tuple[str, ...]
    bound: float | None = None
    """No design that the money allows has a margin above this: the planner's proof, where there is one."""
    route: str = ""
    """Where asking again was weighed: which way the plan took to its goal, in words."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A field as it stands: what is held of it or under way, and what of that failed."""

    design: Shop
    held: Collection[str] = ()
    failed: Collection[str] = ()

    def next(self, names: Collection[str], *, most: Fraction | None) -> Bundle | None:
        """What the witness rule buys after `names`; None at the goal, at the budget, or when it is blind."""
        there = {*self.held, *names}
        if Goal.of(self.design.problem).named and reached(self.design, there, self.failed):
            return None
        return next_bundle(self.design, there, self.failed, most=most)

    def goal(self, *, most: Fraction | None) -> Bundle | None:
        """The cheapest purchases that reach the goal from here; None where none are known, or it is reached."""
        if not Goal.of(self.design.problem).named or reached(self.design, self.held, self.failed):
            return None
        return reaching_bundle(self.design, self.held, self.failed, most=most)

    def lower(self, names: Collection[str]) -> float:
        margin = present_margin(self.design, {*self.held, *names}, self.failed)
        return 0.0 if margin is None else margin.lower


def fixed_schedules(
    designs: Mapping[str, Shop], *, budget: float | None, method: str, time_limit: float | None
) -> dict[str, Schedule]:
    """For every item, all purchases in order, decided before any answer is seen.

    With money or a goal the planner decides (for many items the portfolio planner, over all of them at once); without
    both, or with method="witness", the witness rule is played to its end.
    """
    goals = {item: planned_margin(design.problem) for item, design in designs.items()}
    weighing = {item for item, design in designs.items() if _weighs(design.problem)}
    open_ended = any(value is None and item not in weighing for item, value in goals.items())
    shared = len(designs) > 1 and budget is not None and bool(weighing)  # no portfolio knows of repeats
    if method == "witness" or shared or (budget is None and open_ended):
        begun = {item: Begun(design) for item, design in designs.items()}
        return witness_schedules(begun, None if budget is None else exact(budget))
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


def in_order(design: Shop, selected: Collection[str], *, held: Collection[str] = ()) -> tuple[str, ...]:
    """A chosen set in the order of the witness rule, each with what it needs before it; what is blind comes last."""
    names: list[str] = list(held)
    left = [name for name in selected if name not in names]
    while left:
        margin = present_margin(design, names)
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


def witness_schedules(fields: Mapping[str, Begun], budget: Fraction | None) -> dict[str, Schedule]:
    """The witness rule played to its end without any answer, from where each field stands.

    The worst item first: under one budget, money goes to the field with the smallest margin that it can still help.
    """
    left = budget
    result: dict[str, list[str]] = {item: [] for item in fields}
    worst = [(field.lower(()), place, item) for place, (item, field) in enumerate(fields.items())]
    heapify(worst)
    while worst:
        _, place, item = worst[0]
        field, names = fields[item], result[item]
        bundle = field.next(names, most=left)
        if bundle is None:
            heappop(worst)
            continue
        names.extend(bundle.names)
        left = None if left is None else left - bundle.price
        heapreplace(worst, (field.lower(names), place, item))
    return {item: Schedule(tuple(names)) for item, names in result.items()}


def remade_schedules(fields: Mapping[str, Begun], budget: Fraction | None) -> dict[str, Schedule]:
    """For fields with unread answers: the cheapest way to each goal, the cheapest first while the money lasts; the rest by the witness rule.

    That is the largest number of goals, and no money is spread over fields that do not get there before the others have theirs.
    """
    left = budget
    ways = {item: way for item, field in fields.items() if (way := field.goal(most=left)) is not None}
    result: dict[str, Schedule] = {}
    for item in sorted(ways, key=lambda item: ways[item].price):  # stable: file order among equals
        if left is not None and ways[item].price > left:
            break
        result[item] = Schedule(ways[item].names)
        left = None if left is None else left - ways[item].price
    rest = {item: field for item, field in fields.items() if item not in result}
    return result | witness_schedules(rest, left)


def _planned(design: Shop, *, budget: float | None, method: str, time_limit: float | None) -> Schedule:
    """The plan for the problem's own goal within the money; for the largest margin where no goal can be planned for."""
    from rrf_design.planning import plan

    asked = design.problem.model_copy(update={"budget": budget})
    if planned_margin(asked) is None and not _weighs(asked):
        asked = asked.model_copy(update={"target": None, "delta": None})
    try:
        found = plan(asked, method=method, time_limit=time_limit)
    except BudgetError:  # not even one question can be asked: nothing is planned, and the loop says why
        return Schedule(())
    except InputError:
        if not _weighs(asked):
            raise
        money = None if budget is None else exact(budget)  # no repeats bring the goal within reach: as far as it goes
        return witness_schedules({"": Begun(design)}, money)[""]
    more = {node: times - asked.node_by_id[node].repeats for node, times in found.repeats.items()}
    names = (*_steps(design, found), *design.asks_for(more, ()))
    return Schedule(names, found.upper_bound, found.notes[-1] if _weighs(asked) and found.notes else "")


def _weighs(problem: Problem) -> bool:
    """Whether a goal of this problem may be reached by asking again."""
    return problem.delta is not None and bool(repeatable(problem))


def _steps(design: Shop, plan: Plan) -> tuple[str, ...]:
    """A plan's purchases in its own order, queries before the blocks that need them."""
    names = [name for step in plan.trajectory for name in (*step.opened, step.block)]
    rest = in_order(design, [name for name in plan.selected if name not in names], held=names)
    return tuple(dict.fromkeys((*names, *rest)))


def _portfolio(
    designs: Mapping[str, Shop], *, budget: float, goals: Mapping[str, float | None], time_limit: float | None
) -> dict[str, Schedule]:
    """Many items under one budget: the portfolio planner spends it.

    When all items share a goal, as many as possible reach it; otherwise the smallest margin is made as large as possible.
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
        return witness_schedules({item: Begun(design) for item, design in designs.items()}, exact(budget))
    shares = zip(designs.items(), found.shares, strict=True)
    return {item: Schedule(in_order(design, share.selected)) for (item, design), share in shares}
