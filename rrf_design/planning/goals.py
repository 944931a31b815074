"""The cheapest design for a goal whose margin depends on the design.

With declared noise the radius grows with the rows that are bought, and with uncertain blocks with
those: the wanted margin 2ε'/δ lies between what the owned rows ask for and what everything on sale
would. Rising from the least: the cheapest design for the least margin bounds every cost from below;
where it has the margin that *it* must have, it is the cheapest of all. Otherwise what it must have
is asked for next.

Asking again is a purchase, too: it lowers how much an answer scatters, not how wrong it is. An
error of at most δ is promised when γ ≥ 2ε'/(δ − own). Blocks raise γ; repeats lower ε' and what
answers scatter by themselves (`rrf_design.noise`). Both cost money, so the cheapest plan weighs
them together: for every choice of repeats, cheapest first, the cheapest design for the goal that is
left, until the repeats alone cost more than the best plan found. All choices are tried where there
are few; otherwise a chain of them, each adding the repeat that lowers the radius most for its
price, and nothing is called optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf, nextafter, prod
from typing import TYPE_CHECKING

from rrf_design.derive import asking
from rrf_design.errors import InputError
from rrf_design.goal import POSITIVE, Goal, reaches
from rrf_design.market import exact
from rrf_design.noise import radius_of
from rrf_design.planning.contract import Objective, Order, Plan, Planner, PlanStatus

if TYPE_CHECKING:
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.problem import Problem

TRIES = 16
"""Margins asked for, one after the other, before the largest that any design could need is."""


def nominal(problem: Problem) -> Objective:
    """What `margin` computes: rows whitened where noise is declared."""
    noisy = any(block.sigma is not None or block.covariance is not None for block in problem.blocks)
    return Objective.GAMMA_SIGMA if noisy else Objective.GAMMA


def reach(evaluator: Evaluator, planner: Planner, order: Order, wish: Goal | None) -> Plan:
    """The planner's answer for a wish; without one, for the budget alone."""
    if wish is None:
        return planner.plan(evaluator, order)
    least, most = _wanted_between(evaluator.original, wish)
    if (
        most == inf
        and wish.delta is not None
        and (own := evaluator.original.design("all").radius(evaluator.original).tail) >= wish.delta
    ):
        raise InputError(
            f"plan: answers scatter by up to {own:.4g} by themselves, more than delta = {wish.delta:g}; ask them more"
            " often (repeats, or again with its price)"
        )
    if most == inf:
        raise InputError(
            "plan: no error can be promised beforehand: relations are uncertain and nothing bounds the true answers;"
            " give their nodes a range, or [problem] an amplitude"
        )
    if least == most:
        return planner.plan(evaluator, replace(order, target=least))
    return _rising(evaluator, planner, order, wish, least, most)


def _wanted_between(problem: Problem, wish: Goal) -> tuple[float, float]:
    """The least and the largest margin that any design of the problem can be asked for."""
    structure = problem.structure
    least = 0.0 if wish.delta is None else POSITIVE  # without noise any positive margin keeps an error below δ
    wanted = [wish.wanted(radius_of(problem, end)) or 0.0 for end in structure.ends()]
    return max(least, wanted[0]), max(least, wanted[1])


def planned_margin(problem: Problem) -> float | None:
    """One margin that reaches the problem's goal whatever is bought; None without a goal, or where
    none can be promised.
    """
    wish = Goal.of(problem)
    most = _wanted_between(problem, wish)[1] if wish.named else inf
    return None if most == inf else most


def _rising(evaluator: Evaluator, planner: Planner, order: Order, wish: Goal, least: float, most: float) -> Plan:
    margin, floor = least, Fraction(0)
    for attempt in range(TRIES):
        found = planner.plan(evaluator, replace(order, target=margin))
        if found.status is PlanStatus.INFEASIBLE and attempt == 0:
            return found  # not even the least margin that any design needs
        if attempt == 0 and found.cost_bound is not None:
            floor = exact(found.cost_bound)
        needed = wish.wanted(evaluator.original.design(found.selected).radius(evaluator.original)) or 0.0
        if found.met and reaches(found.value, needed):
            cost = exact(found.cost)
            proven = cost == 0 or floor >= cost
            status = PlanStatus.OPTIMAL if proven else PlanStatus.FEASIBLE
            gap = float((cost - floor) / cost) if cost > 0 else 0.0
            return replace(found, target=needed, status=status, cost_bound=float(floor), gap=gap)
        if margin >= most or not found.met:
            break
        margin = most if attempt == TRIES - 2 else min(most, max(needed, nextafter(margin, inf)))
    note = "the margin that is wanted depends on what is bought; no design found has the one that it needs itself"
    status = PlanStatus.FEASIBLE
    return replace(found, target=needed, status=status, cost_bound=float(floor), notes=(*found.notes, note))


MOST_CHOICES = 256
"""Choices of repeats that are all tried."""
Choice = dict[str, int]


def repeatable(problem: Problem) -> tuple[str, ...]:
    """Nodes that may be asked again for money."""
    return tuple(n.id for n in problem.nodes if n.again is not None and n.most_repeats > n.repeats)


def price_of(problem: Problem, choice: Choice) -> Fraction:
    nodes = ((problem.node_by_id[name], times) for name, times in choice.items())
    return sum((exact(node.again or 0.0) * (times - node.repeats) for node, times in nodes), Fraction(0))


def weigh(
    problem: Problem, wish: Goal, solve: Callable[[Problem, Fraction], Plan], *, budget: float | None = None
) -> Plan:
    """The cheapest plan for an error δ over purchases and repeats together.

    `solve` plans one problem with what the repeats leave.
    """
    from rrf_design.planning.evaluator import Evaluator

    every, listed = choices(problem)
    most = inf if budget is None else exact(budget)
    reachable = Evaluator(problem, objective=nominal(problem)).summit()
    best: Plan | None = None
    plain: Plan | None = None
    last: Plan | None = None
    cost, floors = Fraction(0), list[Fraction]()
    tried: list[tuple[float, float]] = []
    for choice in listed:
        paid = price_of(problem, choice)
        if (best is not None and paid >= cost) or paid > most:
            continue
        asked = asking(problem, choice)
        least, needed = (wish.wanted(radius_of(asked, end)) or 0.0 for end in asked.structure.ends())
        if least == inf or least > reachable:
            continue  # what answers scatter is more than δ by itself, or no design has the margin that is left to reach
        if any(low <= least and high <= needed for low, high in tried):
            continue  # a cheaper choice asks for no more
        tried.append((least, needed))
        found = solve(asked, paid)
        plain, last = found if not choice else plain, found
        if found.status is PlanStatus.INFEASIBLE:
            continue
        floors.append(paid + exact(found.cost_bound or 0.0))
        if found.met and (best is None or paid + exact(found.cost) < cost):
            best, cost = replace(found, repeats=choice), paid + exact(found.cost)
    if best is None:
        return plain or last or solve(problem, Fraction(0))
    floor = min([cost, *floors]) if every else Fraction(0)  # every other choice costs as much, or asks for more
    return replace(
        best,
        cost=float(cost),
        cost_bound=float(floor),
        gap=float((cost - floor) / cost) if cost > 0 else 0.0,
        status=PlanStatus.OPTIMAL if floor >= cost else PlanStatus.FEASIBLE,
        budget=budget,
        notes=(*best.notes, _route(best, plain)),
    )


def choices(problem: Problem) -> tuple[bool, list[Choice]]:
    """Whether these are all, and choices of repeats by price; the empty one comes first."""
    names = repeatable(problem)
    levels = [range(problem.node_by_id[name].repeats, problem.node_by_id[name].most_repeats + 1) for name in names]
    if prod(len(level) for level in levels) <= MOST_CHOICES:
        found = [dict(zip(names, times, strict=True)) for times in product(*levels)]
        bare = [{n: t for n, t in choice.items() if t > problem.node_by_id[n].repeats} for choice in found]
        return True, sorted(bare, key=lambda choice: price_of(problem, choice))
    return False, list(_chain(problem))


def _chain(problem: Problem) -> Iterator[Choice]:
    """From no repeat at all, always the one that lowers the wanted margin most for its price."""
    choice: Choice = {}
    yield choice
    names = repeatable(problem)
    while True:
        now = _need(problem, choice)
        steps: list[tuple[float, int, Choice]] = []
        for name in names:
            node = problem.node_by_id[name]
            times = choice.get(name, node.repeats) + 1
            if times <= node.most_repeats:
                after = {**choice, name: times}
                gain = _need(problem, after)
                steps.append(((now - gain) / max(float(exact(node.again or 0.0)), 1e-12), -len(steps), after))
        if not steps:
            return
        choice = max(steps, key=lambda step: step[:2])[2]
        yield choice


def _need(problem: Problem, choice: Choice) -> float:
    """What is to be lowered: ε' with everything on sale, and what answers scatter by themselves."""
    asked = asking(problem, choice)
    radius = radius_of(asked, asked.structure.ends()[1])
    return (radius.total if radius.total is not None else radius.epsilon) + radius.tail


def _route(best: Plan, plain: Plan | None) -> str:
    """Which way was taken, and what the other would have cost, in words."""
    again = ", ".join(f"{name} {times} times" for name, times in best.repeats.items())
    other = "out of reach" if plain is None or not plain.met else f"for {plain.cost:g}"
    if not best.repeats:
        return "asking again was weighed and is not worth its price here: the margin alone reaches the goal"
    bought = f" and buys {', '.join(best.selected)}" if best.selected else " and buys nothing else"
    return f"the plan asks {again}, so that the noise is smaller,{bought}; by a larger margin alone the goal is {other}"
