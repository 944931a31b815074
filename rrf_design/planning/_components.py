"""Where the smallest margin can't be raised: one budget over the components of a field.

γ of a field is the least over its components, so money that can't mend the worst of them buys
nothing by that objective. Two others still rank designs: as many components as possible reach the
goal, then margins in leximin order (the smallest first, then the next), then the least cost; or
leximin alone. Both separate over components, since adding the same entry to two lists of margins
keeps their leximin order: each component is reduced to its curve of undominated designs (`curves`),
and a pass over the components keeps the best list for every sum of money. Margins are compared to
nine digits, so that rounding buys nothing.

Components are those of the graph with everything on sale in it; blocks that share a weight or noise
belong together. What else ties components (rules, tiers, requirements across them, marks and rates
of checks, estimates that share a confidence) does not separate, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

from rrf_design.derive import linked_nodes, part_of
from rrf_design.errors import InputError
from rrf_design.goal import Goal, reaches
from rrf_design.market import exact
from rrf_design.planning._outcome import ZERO, finish, starting_design
from rrf_design.planning.contract import Aim, ComponentShare, Objective, Order, Plan, PlanStatus
from rrf_design.planning.curves import Curve, curves_of
from rrf_design.planning.evaluator import Evaluator

if TYPE_CHECKING:
    from rrf_design.problem import Problem

DIGITS = 9
MOST_STATES = 20_000
"""Sums of money that are kept apart; beyond, the plan is not called the best."""
_State = tuple[Fraction, int, tuple[float, ...], tuple[int, ...]]
"""Cost, components at the goal, sorted margins, and the design of each component so far."""


def plan_components(
    problem: Problem, *, aim: Aim, k: int | None, objective: Objective | str | None, order: Order, goal: Goal | None
) -> Plan:
    """The plan of an aim that looks at every component; InputError where they are tied by more than
    the budget.
    """
    evaluator = Evaluator(problem, k=k, objective=objective)
    parts = separate(problem)
    wanted = _wanted(problem, goal)
    curves = [_curve(part, k, objective, order) for part in parts]
    floors = [ZERO * max(1.0, Evaluator(part, k=k, objective=objective).scale) for part in parts]
    assert order.budget is not None
    state, whole = best_spending(curves, exact(order.budget), aim=aim, reached=_reach(wanted, floors))
    masks = [evaluator.market.mask(_names(p, c, d)) for p, c, d in zip(parts, curves, state[3], strict=True)]
    mask = evaluator.market.empty()
    for one in masks:
        mask |= one
    sure = whole and all(curve.complete for curve in curves)
    found = finish(evaluator, mask, order, method="components", start=starting_design(evaluator, order))
    shares = _components(parts, found.selected, evaluator.k, objective, wanted, floors)
    status = PlanStatus.OPTIMAL if sure else PlanStatus.FEASIBLE
    target = None if goal is None else goal.target
    found = replace(found, aim=aim, components=shares, status=status, target=target)
    if aim is not Aim.REACHED:
        return found
    count, most = float(sum(share.reached for share in shares)), float(len(shares))
    top = count if sure else most
    return replace(found, value=count, upper_bound=top, gap=(top - count) / top if top else 0.0)


def separate(problem: Problem) -> tuple[Problem, ...]:
    """The components that hold something to deliver, each as a problem of its own."""
    groups = list(dict.fromkeys(map(frozenset, linked_nodes(problem).values())))
    owner = {name: place for place, group in enumerate(groups) for name in group}
    home = {block.id: owner[block.nodes[0]] for block in problem.blocks}

    def tied(what: str, names: Sequence[str]) -> None:
        if len({home[name] for name in names}) > 1:
            raise InputError(f"aim: {what} speaks of several components, which then can't be planned one by one")

    for rule in problem.rules:
        tied(f"rule {rule.id!r}", rule.blocks)
    for tier in problem.tiers:
        tied(f"tier {tier.id!r}", tier.blocks)
    for block in problem.blocks:
        tied(block.title, (block.id, *block.requires, *block.excludes))
        if block.rate is not None and len(groups) > 1:
            raise InputError(f"aim: {block.title} has a rate, so that how many checks may be wrong ties all components")
        if block.trusted is False and problem.wrong_checks and len(groups) > 1:
            raise InputError(f"aim: {block.title} is marked, so that which checks may be wrong ties all components")
    estimated = {home.get(name, owner.get(name)) for name in problem.estimated}
    if len(estimated) > 1:
        raise InputError("aim: noise of several components was estimated, and the confidence of that ties them")
    wanted = None if problem.deliver is None else set(problem.deliver)
    return tuple(part_of(problem, group) for group in groups if wanted is None or wanted & group)


def best_spending(curves: Sequence[Curve], money: Fraction, *, aim: Aim, reached: Sequence[Any]) -> tuple[_State, bool]:
    """The best choice of one design from each curve within the money, and whether it is proven
    best among them. `reached` tells of each component whether a margin is enough.
    """
    states: list[_State] = [(Fraction(0), 0, (), ())]
    whole = True
    for place, curve in enumerate(curves):
        grown: list[_State] = []
        for cost, count, margins, picks in states:
            for design, (price, value) in enumerate(zip(curve.costs, curve.values, strict=True)):
                if cost + price <= money:
                    enough = aim is Aim.REACHED and reached[place](value)
                    entry = float(f"{value:.{DIGITS}g}")
                    grown.append((cost + price, count + enough, tuple(sorted((*margins, entry))), (*picks, design)))
        grown.sort(key=lambda state: (state[0], -state[1], [-margin for margin in state[2]]))
        states = []
        for state in grown:
            if not states or state[1:3] > states[-1][1:3]:
                states.append(state)
        if not states:
            raise InputError(f"budget: {float(money):g} is too little for what the components' rules demand")
        if len(states) > MOST_STATES:
            states, whole = states[:: len(states) // MOST_STATES + 1], False
    return states[-1], whole


def _curve(part: Problem, k: int | None, objective: Objective | str | None, order: Order) -> Curve:
    (curve,) = curves_of([part], k, objective, replace(order, target=None, progress=None))
    if not any(node.cost is None for node in part.nodes) and curve.costs[0] > 0:
        nothing = bytes(len(curve.designs[0]))  # a component of which nothing is asked
        return replace(
            curve, costs=(Fraction(0), *curve.costs), values=(0.0, *curve.values), designs=(nothing, *curve.designs)
        )
    return curve


def _names(part: Problem, curve: Curve, design: int) -> tuple[str, ...]:
    import numpy as np

    items = part.resolve("all")
    bits = np.unpackbits(np.frombuffer(curve.designs[design], np.uint8), count=len(items))
    return tuple(name for name, bought in zip(items, bits, strict=True) if bought)


def _wanted(problem: Problem, goal: Goal | None) -> float | None:
    """The margin that a component must have: the target, else 2ε/δ with ε of all that could be
    held, else any.
    """
    asked = Goal.of(problem) if goal is None else goal
    if asked.target is not None and goal is not None:
        return asked.target
    return asked.wanted(problem.design("all").radius(problem))


def _reach(wanted: float | None, floors: Sequence[float]) -> list[Any]:
    def enough(floor: float) -> Any:
        return lambda value: value > floor and wanted != inf and reaches(value, wanted)

    return [enough(floor) for floor in floors]


def _components(
    parts: Sequence[Problem],
    selected: Sequence[str],
    k: int,
    objective: Objective | str | None,
    wanted: float | None,
    floors: Sequence[float],
) -> tuple[ComponentShare, ...]:
    """What each component comes to with what is selected, by the exact engine."""
    found = []
    for part, enough in zip(parts, _reach(wanted, floors), strict=True):
        evaluator = Evaluator(part, k=k, objective=objective)
        own = set(part.resolve("all"))
        mask = evaluator.market.mask(tuple(name for name in selected if name in own))
        there = evaluator.opened(mask).any()
        confirmed = evaluator.confirm(mask) if there else None
        gamma = 0.0 if confirmed is None else confirmed.value
        value = 0.0 if confirmed is None else evaluator.confirm_value(mask, confirmed)
        nodes = tuple(node.id for node in part.nodes)
        found.append(ComponentShare(nodes, gamma, bool(enough(value)), float(evaluator.market.cost(mask))))
    return tuple(found)


def components_of(plan: Plan, problem: Problem, *, objective: Objective | str | None) -> tuple[ComponentShare, ...]:
    """The components of a plan that was made for the smallest margin; nothing where they are tied
    or too many to look at.
    """
    if len(problem.nodes) > MOST_NODES:
        return ()
    try:
        parts = separate(problem)
    except InputError:
        return ()
    wanted = plan.target if plan.target is not None else _wanted(problem, None)
    floors = [ZERO * max(1.0, Evaluator(part, k=plan.k, objective=objective).scale) for part in parts]
    return _components(parts, plan.selected, plan.k, objective, wanted, floors)


MOST_NODES = 400
"""Of a field whose components are told one by one beside a plan for the smallest margin."""


def unraised(problem: Problem, plan: Plan) -> str:
    """Why money raises nothing, in words: the worst direction, and whether anything on sale sees
    it.
    """
    everything = problem.margin("all", k=plan.k)
    stays = everything.value <= plan.gamma * (1 + 1e-9) + ZERO
    nodes = everything.support if stays else plan.support
    shown = ", ".join(nodes[:6]) + (f" and {len(nodes) - 6} more" if len(nodes) > 6 else "")
    what = "nothing on sale sees more of it" if stays else "nothing that the budget allows sees enough of it"
    return f"the smallest margin stays {plan.gamma:.6g}: the worst direction is an error on {shown}, and {what}"
