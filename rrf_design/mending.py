"""Purchases that would mend a margin: single ones that see the witness, and the cheapest set that reaches the goal.

Every purchase named has had its margin computed. The planner is asked for the cheapest set and its proof; where that
takes too long, buying witness by witness finds a set, and nothing more is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.derive import owning
from rrf_design.goal import POSITIVE, Goal

if TYPE_CHECKING:
    from rrf_design.design import Design
    from rrf_design.margins import DesignMargin
    from rrf_design.market import Mask
    from rrf_design.problem import Problem

TRIED = 8
"""Single purchases whose margin is computed."""
PLANNED = 200
"""With at most so many blocks on sale, the planner is asked for the cheapest set,"""
PLAN_SECONDS = 20.0
"""for at most so long."""
STEPS = 20
"""Purchases after which buying witness by witness gives up: so much is a plan's business, not an explanation's."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that can be bought, with everything that it needs, and the margin afterwards."""

    ids: tuple[str, ...]
    cost: float
    gamma: float
    lower: float
    status: str
    enough: bool
    """Whether the problem's goal is then reached."""

    def to_json(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "cost": self.cost,
            "gamma": self.gamma,
            "lower": self.lower,
            "status": self.status,
            "enough": self.enough,
        }


def single_purchases(
    problem: Problem, design: Design, margin: DesignMargin, options: Mapping[str, Any]
) -> tuple[Remedy, ...]:
    """The purchases that see the witness best per cost, each with its margin afterwards, largest first."""
    market = design.structure.market
    base = market.mask(margin.selected)
    offers = []
    for name, energy in design.energies(margin.witness).items():
        if energy <= 0 or name not in market.index or base[market.index[name]]:
            continue
        after = market.add(base, market.index[name])
        cost = market.cost(after) - market.cost(base)
        offers.append((energy / max(float(cost), 1e-9), market.names(after & ~base), cost))
    offers.sort(key=lambda offer: (-offer[0], offer[2]))
    tried = [_purchase(problem, margin, ids, float(cost), options) for _, ids, cost in offers[:TRIED]]
    return tuple(sorted(tried, key=lambda p: (-p.gamma, p.cost)))


def _purchase(
    problem: Problem, margin: DesignMargin, ids: tuple[str, ...], cost: float, options: Mapping[str, Any]
) -> Remedy:
    """What the margin and the standing are after buying `ids` too."""
    design = problem.design([*margin.selected, *ids])
    after = design.margin(margin.k, **options)
    enough = design.standing(problem, margin=after).reached
    return Remedy(ids, cost, after.value, after.lower, str(after.status), enough)


def cheapest_mend(
    problem: Problem,
    design: Design,
    margin: DesignMargin,
    singles: tuple[Remedy, ...],
    options: Mapping[str, Any],
) -> tuple[Remedy | None, bool]:
    """The cheapest set that reaches the problem's goal, and whether that is proven; without a proof the cheapest found
    of: the planner's, the single purchases tried, and buying witness by witness."""
    if Goal.of(problem).delta is not None and design.radius(problem).total is None:
        return None, True  # no purchase bounds the true answers
    reaching = [offer for offer in singles if offer.enough]
    if len(problem.on_sale) <= PLANNED:
        planned, proven = _cheapest(problem, margin, options)
        if proven:
            return planned, True
        if planned is not None:
            reaching.append(planned)
    stepwise = _witness_by_witness(problem, margin, options)
    if stepwise is not None:
        reaching.append(stepwise)
    return min(reaching, key=lambda offer: (offer.cost, -offer.gamma), default=None), False


def _cheapest(problem: Problem, margin: DesignMargin, options: Mapping[str, Any]) -> tuple[Remedy | None, bool]:
    """What the planner says, with what is selected already counted as owned."""
    from rrf_design.bundles import Measure
    from rrf_design.planning import PlanStatus, plan

    rest = owning(problem, margin.selected)
    rest = rest.model_copy(update={"budget": None})
    limit = min(PLAN_SECONDS, options.get("time_limit") or PLAN_SECONDS)
    target = None if Goal.of(problem).named else POSITIVE
    found = plan(rest, target=target, time_limit=limit, measure=Measure(margin.k))
    if found.status is PlanStatus.INFEASIBLE:
        return None, True
    bought = _purchase(problem, margin, found.selected, found.cost, options)
    return (bought, found.status is PlanStatus.OPTIMAL) if bought.enough else (None, False)


def _witness_by_witness(problem: Problem, margin: DesignMargin, options: Mapping[str, Any]) -> Remedy | None:
    """Buys what sees the current witness best per cost, again and again; then gives back what is not needed."""
    market = problem.structure.market
    base = mask = market.mask(margin.selected)
    now = _purchase(problem, margin, (), 0.0, options)
    while not now.enough:
        if int((mask & ~base).sum()) >= STEPS:
            return None
        design = problem.design(market.names(mask))
        offers = [
            (energy / max(float(market.cost(after) - market.cost(mask)), 1e-9), after)
            for name, energy in design.energies(design.margin(margin.k, **options).witness).items()
            if energy > 0 and name in market.index and not mask[market.index[name]]
            for after in [market.add(mask, market.index[name])]
            if market.extendable(after)
        ]
        if not offers:
            return None
        mask = max(offers, key=lambda offer: offer[0])[1]
        now = _bought(problem, margin, base, mask, options)
    for item in sorted(np.flatnonzero(mask & ~base), key=lambda i: -market.floor(int(i))):
        fewer = market.drop(mask, int(item)) | base
        after = _bought(problem, margin, base, fewer, options)
        if after.enough:
            mask, now = fewer, after
    return now


def _bought(problem: Problem, margin: DesignMargin, base: Mask, mask: Mask, options: Mapping[str, Any]) -> Remedy:
    market = problem.structure.market
    cost = float(market.cost(mask) - market.cost(base))
    return _purchase(problem, margin, market.names(mask & ~base), cost, options)
