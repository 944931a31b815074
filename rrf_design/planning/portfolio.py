"""Many fields, one budget: a data set of items (ALGORITHMS, fact 13: it separates).

For a fixed target the cheapest design of a data set is the cheapest design of every item, so each item is reduced to its
curve of undominated designs, exactly, and one search over the curves spends the money. Small items are enumerated: all
designs at once by batched eigenvalues, and items that are equal as matrices share one curve; larger ones walk their frontier.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import BudgetError, InputError
from rrf_design.planning.arena import NULL, Arena
from rrf_design.planning.contract import REACHED, Goal, Objective, PlanStatus
from rrf_design.planning.costs import Mask, exact
from rrf_design.planning.supports import least_eigenvalues

if TYPE_CHECKING:
    from rrf_design.problem import Problem

ENUMERATED = 14  # items for sale up to which all designs of a field are listed
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


@dataclass(frozen=True, slots=True)
class Curve:
    """Undominated designs of one item: costs and objectives rise together. Incomplete: there may be better ones."""

    costs: tuple[Fraction, ...]
    values: tuple[float, ...]
    designs: tuple[bytes, ...]  # packed masks
    complete: bool = True

    def reaching(self, value: float) -> int | None:
        """Index of the cheapest design whose objective is at least `value`."""
        at = bisect_left(self.values, value * (1 - REACHED))
        return at if at < len(self.values) else None


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
    curves = [c for part in work(delayed(_curves)(chunk, k, objective, goal) for chunk in chunks) for c in part]
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


def _curves(problems: Sequence[Problem], k: int | None, objective: Any, goal: Goal) -> list[Curve]:
    """Curves of some items; those that are equal as matrices, prices and rules are computed once."""
    known: dict[bytes, Curve] = {}
    result = []
    for problem in problems:
        arena = Arena(problem, k=k, objective=objective)
        key = _shape(arena)
        if key not in known:
            small = len(arena.market.items) <= ENUMERATED and arena.table is not None
            known[key] = enumerate_designs(arena, goal) if small else _walk_frontier(arena, goal)
        result.append(known[key])
    return result


def _shape(arena: Arena) -> bytes:
    op, market = arena.operator, arena.market
    arrays = (op.matrix.data, op.matrix.indices, op.matrix.indptr, op.node_offsets, op.block_offsets, arena.radii)
    rest = (market.prices, market.needs, market.excludes, market.banned.tolist(), arena.k, arena.block_item.tolist())
    groups = [(g.items.tolist(), g.at_least, g.at_most, g.prices) for g in (*market.rules, *market.tiers)]
    return b"|".join(a.tobytes() for a in arrays) + repr((rest, groups, arena.node_item.tolist())).encode()


def _walk_frontier(arena: Arena, goal: Goal) -> Curve:
    from rrf_design.planning.frontier import walk

    points, complete = walk(arena, goal)
    masks = [arena.market.mask(point.selected) for point in points]
    exact_steps = complete and all(point.status is PlanStatus.OPTIMAL for point in points)
    return Curve(
        costs=tuple(arena.market.cost(mask) for mask in masks),
        values=tuple(point.value for point in points),
        designs=tuple(np.packbits(mask).tobytes() for mask in masks),
        complete=exact_steps,
    )


@lru_cache(maxsize=4)
def _all_masks(items: int) -> NDArray[np.bool_]:
    numbers = np.arange(1 << items)
    result: NDArray[np.bool_] = (numbers[:, None] >> np.arange(items)) & 1 == 1
    result.setflags(write=False)
    return result


def enumerate_designs(arena: Arena, goal: Goal) -> Curve:
    """The curve of a small field from all its admissible designs at once."""
    masks, units, unit = _admissible(arena, goal)
    values = design_values(arena, masks)
    order = np.lexsort((-values, units))
    before = np.maximum.accumulate(np.append(-1.0, values[order]))[:-1]
    best, kept = -1.0, []
    for i in order[values[order] > before]:  # records; of those that hardly differ the cheaper one is enough
        if values[i] > best * (1 + REACHED) + 1e-300 or best < 0:
            best = float(values[i])
            kept.append(int(i))
    return Curve(
        costs=tuple(int(units[i]) * unit for i in kept),
        values=tuple(float(values[i]) for i in kept),
        designs=tuple(np.packbits(masks[i]).tobytes() for i in kept),
    )


def _admissible(arena: Arena, goal: Goal) -> tuple[NDArray[np.bool_], NDArray[Any], Fraction]:
    """Closed designs that obey every rule within the budget, and their costs in a common unit."""
    market = arena.market
    masks = _all_masks(len(market.items))
    keep = ~(masks & market.banned).any(axis=1)
    for i, needed in enumerate(market.needs):
        for j in needed:
            keep &= ~masks[:, i] | masks[:, j]
    for a, b in market.excludes:
        keep &= ~(masks[:, a] & masks[:, b])
    for rule in market.rules:
        count = masks[:, rule.items].sum(axis=1)
        keep &= (count >= rule.at_least) & (count <= (len(rule.items) if rule.at_most is None else rule.at_most))
    if market.opens_nothing:
        keep &= masks[:, : market.node_items].any(axis=1)
    masks = masks[keep]
    if not len(masks):
        raise InputError(f"{arena.original.name}: no design satisfies the rules")
    units, unit = market.costs(masks)
    assert goal.budget is not None
    within = np.asarray(units <= int(exact(goal.budget) / unit), dtype=bool)
    if not within.any():
        within = np.asarray(units == units.min(), dtype=bool)  # what rules demand must be bought whatever it costs
    return masks[within], units[within], unit


def design_values(arena: Arena, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(designs,): the objective of many designs of one small field."""
    if arena.robust:
        return np.array([arena.value(mask) for mask in masks])
    simple = not arena.market.node_items
    if simple:
        present = np.repeat(arena.permanent[None], len(masks), axis=0)
        present[:, arena.variable] = masks[:, arena.block_item[arena.variable]]
        opened = np.ones((1, arena.n), dtype=bool)
    else:
        present = np.array([arena.active(mask) for mask in masks])
        opened = np.array([arena.opened(mask) for mask in masks])
    width = arena.operator.shape[1]
    everywhere = np.arange(width)
    grams = np.array([arena.block_gram(j, everywhere) for j in range(len(arena.block_nodes))]).reshape(
        -1, width * width
    )
    # Entries first, so that each support picks whole rows of numbers.
    stacked = np.ascontiguousarray((grams.T @ present.T.astype(np.float64)).reshape(width, width, len(masks)))
    sizes = np.minimum(arena.size, opened.sum(axis=1))
    least = np.full(len(masks), np.inf)
    for size in np.unique(sizes[sizes > 0]):
        for support in combinations(range(arena.n), int(size)):
            columns = np.concatenate([arena.columns[i] for i in support])
            there = (sizes == size) & opened[:, list(support)].all(axis=1)
            if there.any():
                values = least_eigenvalues(np.moveaxis(stacked[columns[:, None], columns[None, :]], 2, 0))
                np.minimum(least, values, out=least, where=there)
    result = np.sqrt(np.maximum(np.where(np.isfinite(least), least, 0.0), 0.0))
    return np.where(result > NULL * arena.scale, result, 0.0)


def _confirm(
    problems: Sequence[Problem], designs: Sequence[bytes], k: int | None, objective: Any, target: float | None
) -> list[Share]:
    known: dict[bytes, Any] = {}
    result = []
    for problem, packed in zip(problems, designs, strict=True):
        arena = Arena(problem, k=k, objective=objective)
        mask: Mask = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(arena.market.items)).astype(bool)
        key = _shape(arena) + packed
        if key not in known:
            confirmed = arena.confirm(mask)
            known[key] = (confirmed.value, arena.confirm_value(mask, confirmed))
        gamma, value = known[key]
        reached = target is None or value >= target * (1 - REACHED)
        result.append(
            Share(problem.name, arena.market.names(mask), float(arena.market.cost(mask)), gamma, bool(reached))
        )
    return result
