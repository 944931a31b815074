"""The least that must be bought so that a wrong answer can't hide: γ_k ≥ target, or 2ε/γ_k ≤ δ.

The same covering program as in `optimal`, with the cost minimised. A target out of reach is proven to be so, and the plan
then is the largest margin that the money can buy.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rrf_design.market import Mask, exact
from rrf_design.planning.contract import REACHED, Plan
from rrf_design.planning.greedy import witness_greedy
from rrf_design.planning.outcome import finish
from rrf_design.planning.tracked import Tracked, local_to_blocks

if TYPE_CHECKING:
    from rrf_design.planning.optimal import PlanSearch


def cheapest_plan(search: PlanSearch, start: Mask, *, method: str) -> Plan:
    """Least cost for the goal's target within its budget; the best margin instead when that is impossible."""
    arena, goal = search.arena, search.goal
    assert goal.target is not None
    budget = None if goal.budget is None else exact(goal.budget)
    found = search.minimise(goal.target, budget, greedy_design(search, start))
    if found.mask is not None:
        mask = search.tidy(found.mask, goal.target * (1 - REACHED))
        return finish(arena, mask, goal, method=method, start=start & mask, cost_bound=found.bound, upper=_top(search))
    best, upper = search.maximise(budget, search.first(start))
    best = search.tidy(best, arena.value(best))
    notes = []
    if found.impossible:
        limit = "any amount of money" if goal.budget is None else f"a budget of {goal.budget:g}"
        notes.append(
            f"the target {goal.target:g} is out of reach for {limit}: the largest possible is {arena.value(best):.6g}"
            + ("" if upper <= arena.value(best) * (1 + 1e-6) else f" to {upper:.6g}")
        )
        upper = min(upper, goal.target)
    return finish(
        arena,
        best,
        goal,
        method=method,
        start=start & best,
        upper=upper,
        infeasible=found.impossible,
        cost_bound=found.bound,
        notes=notes,
    )


def greedy_design(search: PlanSearch, start: Mask) -> Mask | None:
    """A first design that reaches the target, tidied; None when the greedy finds none."""
    arena, goal = search.arena, search.goal
    assert goal.target is not None
    steps = Tracked(arena, goal, start).run() if local_to_blocks(arena) else witness_greedy(arena, goal, start=start)
    mask = steps[-1].after if steps else start
    floor = goal.target * (1 - REACHED)
    if arena.value(mask) < floor or not arena.market.admits(mask, _money(search)):
        return None
    return search.tidy(mask, floor)


def _money(search: PlanSearch) -> Fraction | None:
    return None if search.goal.budget is None else exact(search.goal.budget)


def _top(search: PlanSearch) -> float:
    from rrf_design.planning.proof.bounds import bound_from_cuts

    return bound_from_cuts(search.arena, search.goal.budget)
