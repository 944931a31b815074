"""Many fields, one budget: a data set of items (ALGORITHMS, fact 13: it separates).

For a fixed target the cheapest design of a data set is the cheapest design of every item, so each item is reduced to its
curve of undominated designs (`curves`), exactly, and one search over the curves spends the money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.errors import BudgetError, InputError
from rrf_design.planning.arena import Arena
from rrf_design.planning.contract import REACHED, Goal, Objective, PlanStatus
from rrf_design.planning.costs import Mask, exact
from rrf_design.planning.curves import Curve, curves_of, shape

if TYPE_CHECKING:
    from rrf_design.problem import Problem

CHUNK = 64  # fields per task


class Aim(StrEnum):
    SMALLEST = "smallest"
    """Make the smallest margin as large as possible."""
    COUNT = "count"
    """Let as many items as possible reach the target."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one item gets out of the common budget."""

    name: str
    selected: tuple[str, ...]
    cost: float
    gamma: float
    reached: bool


@dataclass(frozen=True, slots=True)
class Portfolio:
    """One design per item. `value` is the smallest margin or the number of items at the target; no spending of the
    budget does better than `upper_bound`."""

    shares: tuple[Share, ...]
    cost: float
    value: float
    upper_bound: float
    status: PlanStatus
    aim: Aim
    budget: float
    target: float | None

    def to_json(self) -> dict[str, Any]:
        return {
            "cost": self.cost,
            "value": self.value,
            "upper_bound": self.upper_bound,
            "status": str(self.status),
            "aim": str(self.aim),
            "budget": self.budget,
            "target": self.target,
            "items": [
                {"name": s.name, "selected": list(s.selected), "cost": s.cost, "gamma": s.gamma, "reached": s.reached}
                for s in self.shares
            ],
        }


def portfolio(
    problems: Sequence[Problem],
    *,
    budget: float,
    aim: Aim | str = Aim.SMALLEST,
    target: float | None = None,
    k: int | None = None,
    objective: Objective | str | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> Portfolio:
    """Spend one budget over many fields, exactly. `time_limit` is for each item that is too large to enumerate."""
    from joblib import Parallel, delayed

    aim = _checked(aim, target, problems, budget)
    chunks = [problems[i : i + CHUNK] for i in range(0, len(problems), CHUNK)]
    goal = Goal(budget=budget, time_limit=time_limit, seed=seed)
    work = Parallel(n_jobs=n_jobs)
    curves = [c for part in work(delayed(curves_of)(chunk, k, objective, goal) for chunk in chunks) for c in part]
    money = exact(budget)
    chosen, bound = (_smallest if aim is Aim.SMALLEST else _count)(curves, money, target)
    picks = [curve.designs[i] for curve, i in zip(curves, chosen, strict=True)]
    parts = [picks[i : i + CHUNK] for i in range(0, len(picks), CHUNK)]
    pairs = zip(chunks, parts, strict=True)
    shares = tuple(s for part in work(delayed(_confirm)(c, p, k, objective, target) for c, p in pairs) for s in part)
    value = min(s.gamma for s in shares) if aim is Aim.SMALLEST else float(sum(s.reached for s in shares))
    if aim is Aim.SMALLEST and objective == Objective.ROBUST:
        value = min(curve.values[i] for curve, i in zip(curves, chosen, strict=True))
    cost = sum((curve.costs[i] for curve, i in zip(curves, chosen, strict=True)), Fraction(0))
    closed = bound <= value * (1 + 2 * REACHED) + 1e-15
    return Portfolio(
        shares=shares,
        cost=float(cost),
        value=value,
        upper_bound=max(bound, value),
        status=PlanStatus.OPTIMAL if closed else PlanStatus.FEASIBLE,
        aim=aim,
        budget=float(budget),
        target=target,
    )


def _checked(aim: Aim | str, target: float | None, problems: Sequence[Problem], budget: float) -> Aim:
    try:
        result = Aim(aim)
    except ValueError:
        raise InputError(f"aim: {aim!r} is not one of {', '.join(Aim)}") from None
    if not problems:
        raise InputError("portfolio: there is no item")
    if not 0 <= budget < float("inf"):
        raise InputError(f"budget: must be a number of at least 0, not {budget!r}")
    if result is Aim.COUNT and target is None:
        raise InputError("aim count: give the target that items should reach")
    return result


def _smallest(curves: Sequence[Curve], money: Fraction, target: float | None) -> tuple[list[int], float]:
    """Largest t such that every item can reach t within the money: a search over all margins that occur."""
    tops = min((curve.values[-1] for curve in curves if curve.complete), default=float("inf"))
    levels = sorted({v for curve in curves for v in curve.values if v <= tops * (1 + REACHED)})
    settled = [curve for curve in curves if curve.complete]
    chosen = _reaching(curves, levels, money)
    if chosen is None:
        needed = sum((curve.costs[0] for curve in curves), Fraction(0))
        raise BudgetError(
            f"budget: {float(money):g} is too little; the items' rules demand purchases for {float(needed):g}",
            needed=float(needed),
            available=float(money),
        )
    reached = min(curve.values[i] for curve, i in zip(curves, chosen, strict=True))
    if len(settled) == len(curves):
        return chosen, reached
    loose = _reaching(settled, levels, money) if settled else None
    bound = min((curve.values[i] for curve, i in zip(settled, loose or [], strict=True)), default=float("inf"))
    return chosen, bound


def _reaching(curves: Sequence[Curve], levels: Sequence[float], money: Fraction) -> list[int] | None:
    """The cheapest designs for the highest level that the money reaches; None when it doesn't reach the first."""
    low, high, best = 0, len(levels) - 1, None
    while low <= high:
        middle = (low + high) // 2
        picks = [curve.reaching(levels[middle]) for curve in curves]
        cost = sum((c.costs[i] for c, i in zip(curves, picks, strict=True) if i is not None), Fraction(0))
        if all(i is not None for i in picks) and cost <= money:
            best, low = [int(i) for i in picks if i is not None], middle + 1
        else:
            high = middle - 1
    return best


def _count(curves: Sequence[Curve], money: Fraction, target: float | None) -> tuple[list[int], float]:
    """Cheapest items first: with one reward per item that is exact."""
    assert target is not None
    chosen = [0] * len(curves)
    spent = sum((curve.costs[0] for curve in curves), Fraction(0))
    if spent > money:
        raise BudgetError(
            f"budget: {float(money):g} is too little; the items' rules demand purchases for {float(spent):g}",
            needed=float(spent),
            available=float(money),
        )
    reach = [curve.reaching(target) for curve in curves]
    extra = sorted(
        (curve.costs[i] - curve.costs[0], n)
        for n, (curve, i) in enumerate(zip(curves, reach, strict=True))
        if i is not None
    )
    count = 0
    for price, n in extra:
        if spent + price > money:
            break
        spent += price
        count += 1
        chosen[n] = reach[n] or 0
    unsure = sum(1 for n, curve in enumerate(curves) if not curve.complete and chosen[n] == 0)
    return chosen, float(count + unsure)


def _confirm(
    problems: Sequence[Problem], designs: Sequence[bytes], k: int | None, objective: Any, target: float | None
) -> list[Share]:
    known: dict[bytes, Any] = {}
    result = []
    for problem, packed in zip(problems, designs, strict=True):
        arena = Arena(problem, k=k, objective=objective)
        mask: Mask = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(arena.market.items)).astype(bool)
        key = shape(arena) + packed
        if key not in known:
            confirmed = arena.confirm(mask)
            known[key] = (confirmed.value, arena.confirm_value(mask, confirmed))
        gamma, value = known[key]
        reached = target is None or value >= target * (1 - REACHED)
        result.append(
            Share(problem.name, arena.market.names(mask), float(arena.market.cost(mask)), gamma, bool(reached))
        )
    return result
