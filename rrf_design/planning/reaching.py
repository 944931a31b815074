"""The cheapest design for a goal whose margin depends on the design.

With declared noise the radius grows with the rows that are bought, and with uncertain blocks with those: the wanted margin
2ε'/δ lies between what the owned rows ask for and what everything on sale would. Rising from the least: the cheapest design for
the least margin bounds every cost from below; where it has the margin that *it* must have, it is the cheapest of all.
Otherwise what it must have is asked for next.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING

from rrf_design.errors import InputError
from rrf_design.goal import POSITIVE, Goal, reaches
from rrf_design.market import exact
from rrf_design.planning.contract import Objective, Order, Plan, Planner, PlanStatus

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena
    from rrf_design.problem import Problem

TRIES = 16
"""Margins asked for, one after the other, before the largest that any design could need is."""


def nominal(problem: Problem) -> Objective:
    """What `margin` computes: rows whitened where noise is declared."""
    noisy = any(block.sigma is not None or block.covariance is not None for block in problem.blocks)
    return Objective.GAMMA_SIGMA if noisy else Objective.GAMMA


def reach(arena: Arena, planner: Planner, order: Order, wish: Goal | None) -> Plan:
    """The planner's answer for a wish; without one, for the budget alone."""
    if wish is None:
        return planner.plan(arena, order)
    least, most = wanted_between(arena.original, wish)
    if (
        most == inf
        and wish.delta is not None
        and (own := arena.original.design("all").radius(arena.original).tail) >= wish.delta
    ):
        raise InputError(
            f"plan: answers scatter by up to {own:.4g} by themselves, more than delta = {wish.delta:g}; ask them more often"
            " (repeats, or again with its price)"
        )
    if most == inf:
        raise InputError(
            "plan: no error can be promised beforehand: relations are uncertain and nothing bounds the true answers;"
            " give their nodes a range, or [problem] an amplitude"
        )
    if least == most:
        return planner.plan(arena, replace(order, target=least))
    return _rising(arena, planner, order, wish, least, most)


def wanted_between(problem: Problem, wish: Goal) -> tuple[float, float]:
    """The least and the largest margin that any design of the problem can be asked for."""
    structure = problem.structure
    least = 0.0 if wish.delta is None else POSITIVE  # without noise any positive margin keeps an error below δ
    ends = (structure.holding(), problem.design("all"))
    low, high = (max(least, wish.wanted(design.radius(problem)) or 0.0) for design in ends)
    return low, high


def planned_margin(problem: Problem) -> float | None:
    """One margin that reaches the problem's goal whatever is bought; None without a goal, or where none can be promised."""
    wish = Goal.of(problem)
    most = wanted_between(problem, wish)[1] if wish.named else inf
    return None if most == inf else most


def _rising(arena: Arena, planner: Planner, order: Order, wish: Goal, least: float, most: float) -> Plan:
    margin, floor = least, Fraction(0)
    for attempt in range(TRIES):
        found = planner.plan(arena, replace(order, target=margin))
        if found.status is PlanStatus.INFEASIBLE and attempt == 0:
            return found  # not even the least margin that any design needs
        if attempt == 0 and found.cost_bound is not None:
            floor = exact(found.cost_bound)
        needed = wish.wanted(arena.original.design(found.selected).radius(arena.original)) or 0.0
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
