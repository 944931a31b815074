"""Plans for noise that blocks share, by the margin of each selection with its joint noise: every
admissible selection is tried.

While it is open what is bought, shared noise is covered by raised variances
(`rrf_design.rows`): the plan's margins are bounds, and a plan that is best for the bound need
not be best for γ_Σ. Whitened together (`rrf_design.derive`), BᵀΣ⁻¹B is no sum over blocks, so cuts
and hull rows don't apply; it still never falls with a purchase. So selections are gone through one
by one, by rising price, and what is best or cheapest among them is so by enumeration. More than
`MOST` are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from rrf_design._margin import check_k
from rrf_design.derive import joined_problem
from rrf_design.errors import InputError
from rrf_design.goal import Goal, Standing
from rrf_design.market import Mask, exact
from rrf_design.planning._frontiers import STEP, Frontier, Point
from rrf_design.planning.contract import Objective, Plan, PlanStatus, Step

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.problem import Problem

MOST = 2048
"""Selections that are gone through."""
NOTE = "held blocks of one covariance are whitened together in every selection, and all selections were tried"


@dataclass(frozen=True, eq=False, slots=True)
class JointDesign:
    """One selection with its joint noise."""

    mask: Mask
    selected: tuple[str, ...]
    cost: Fraction
    margin: DesignMargin
    standing: Standing


def _joint_designs(problem: Problem, *, k: int | None = None, budget: float | None = None) -> list[JointDesign]:
    """Every admissible selection within the budget, by rising price; InputError where they are too
    many, or nothing is shared.
    """
    if not any(entry.covariance is not None for entry in problem.noise):
        raise InputError(
            "jointly: no blocks share a covariance ([[noise]] with covariance); the plan without it is exact"
        )
    count = check_k(k, problem.k)
    market = problem.structure.market
    if 2 ** len(market.items) > MOST:
        raise InputError(
            f"jointly: {len(market.items)} purchases are on sale, and all selections of at most {MOST.bit_length() - 1}"
            " are gone through; plan without it, by the bound, and certify the selection jointly"
        )
    most = None if budget is None else exact(budget)
    masks = {mask.tobytes(): mask for mask in map(market.close, _all(len(market.items)))}
    found = [mask for mask in masks.values() if market.admits(mask, most)]
    found.sort(key=lambda mask: (market.cost(mask), mask.sum(), market.names(mask)))
    result = [_design(problem, mask, count) for mask in found]
    return [design for design in result if design is not None]


def _all(count: int) -> list[Mask]:
    return [np.array(choice, dtype=bool) for choice in product([False, True], repeat=count)]


def _design(problem: Problem, mask: Mask, k: int) -> JointDesign | None:
    """None where nothing is asked yet."""
    market = problem.structure.market
    names = market.names(mask)
    if problem.design(names).empty:
        return None
    together, chosen = joined_problem(problem, names)
    design = together.design(chosen)
    margin = design.margin(k)
    return JointDesign(mask, names, market.cost(mask), margin, design.standing(together, margin=margin))


def joint_plan(
    problem: Problem, *, k: int | None, objective: Objective | str | None, budget: float | None, goal: Goal | None
) -> Plan:
    """The cheapest selection that reaches the goal, or the one of largest margin within the
    budget.
    """
    from rrf_design.files import digest

    _refuse_others(objective)
    designs = _joint_designs(problem, k=k, budget=budget)
    if not designs:
        raise InputError("jointly: no selection within the budget asks anything")
    best = max(designs, key=lambda one: (one.margin.value, -one.cost))
    sure = PlanStatus.OPTIMAL if _exact(designs) else PlanStatus.FEASIBLE
    chosen, status, wanted = best, sure, None
    if goal is not None:
        reaching = [one for one in designs if _reaches(one, goal)]
        out_of_reach = PlanStatus.INFEASIBLE if sure is PlanStatus.OPTIMAL else sure
        chosen, status = (reaching[0], sure) if reaching else (best, out_of_reach)
        wanted = goal.wanted(chosen.standing.radius)
    margin = chosen.margin
    plan = Plan(
        selected=chosen.selected,
        cost=float(chosen.cost),
        gamma=margin.value,
        upper_bound=max(one.margin.upper for one in designs),
        gap=0.0,
        status=status,
        trajectory=_steps(problem, chosen, margin.k),
        value=margin.value,
        objective=Objective.GAMMA_SIGMA,
        k=margin.k,
        method="every selection, jointly",
        budget=budget,
        target=wanted,
        cost_bound=float(chosen.cost) if status is PlanStatus.OPTIMAL else None,
        gamma_lower=margin.lower,
        gamma_upper=margin.upper,
        support=margin.support,
        witness=margin.witness,
        notes=(NOTE,),
        problem=problem.name,
        digest=digest(problem),
        owned_gamma=(
            None
            if (held := _design(problem, problem.structure.market.empty(), margin.k)) is None
            else held.margin.value
        ),
    )
    return plan.with_standing(chosen.standing)


def _refuse_others(objective: Objective | str | None) -> None:
    if objective not in (None, "gamma_sigma"):
        raise InputError(f"objective: {objective} does not go with jointly, which is about γ_Σ; leave one out")


def _exact(designs: list[JointDesign]) -> bool:
    return all(one.margin.status == "exact" for one in designs)


def _reaches(one: JointDesign, goal: Goal) -> bool:
    held = one.standing
    return goal.reached(lower=held.lower, robust_lower=held.robust_lower, radius=held.radius)


def _steps(problem: Problem, chosen: JointDesign, k: int) -> tuple[Step, ...]:
    """Its purchases in the order of the file, each with the joint margin then."""
    market, mask = problem.structure.market, problem.structure.market.empty()
    steps = []
    for item in np.flatnonzero(chosen.mask)[
        ::-1
    ]:  # blocks come after queries in the order of items: let them open those
        if mask[item]:
            continue
        before, mask = mask, market.add(mask, int(item))
        now = _design(problem, mask, k)
        added = mask & ~before
        added[item] = False
        steps.append(
            Step(
                block=market.items[item],
                cost=float(market.cost(mask) - market.cost(before)),
                gamma=0.0 if now is None else now.margin.value,
                support=() if now is None else now.margin.support,
                witness={} if now is None else now.margin.witness,
                energy=0.0,
                opened=market.names(added),
            )
        )
    return tuple(steps)


def joint_frontier(
    problem: Problem, *, k: int | None, objective: Objective | str | None, budget: float | None
) -> Frontier:
    """Undominated selections by rising price, each with its joint margin."""
    from rrf_design.files import digest

    _refuse_others(objective)
    points: list[Point] = []
    designs = _joint_designs(problem, k=k, budget=budget)
    sure = _exact(designs)
    for one in designs:
        if points and not one.margin.value > points[-1].value * (1 + STEP):
            continue
        if points and exact(points[-1].cost) == one.cost:
            points.pop()
        status = PlanStatus.OPTIMAL if sure else PlanStatus.FEASIBLE
        points.append(Point.of(one.margin, cost=one.cost, selected=one.selected, status=status))
    count = check_k(k, problem.k)
    return Frontier(tuple(points), sure, count, Objective.GAMMA_SIGMA, budget, problem.name, digest(problem))
