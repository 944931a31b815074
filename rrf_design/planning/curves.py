"""The curve of one item: its undominated designs, costs and objectives rising together, exactly.

Small items are enumerated: all admissible designs at once, by batched eigenvalues; items that are
equal as matrices, prices and rules share one curve. Larger ones walk their frontier.

`error_curve` says how small an error money can promise, over purchases and repeats together. Asking
again raises no margin, it lowers the noise: where it is on sale, the best margin for the
money is not the best promise. So the curve is that of the error bound 2ε'/γ + own
(`rrf_design.noise`), over designs and choices of repeats. Designs are all that the rules admit
where these are few; otherwise those of the margin's own frontier, and then a floor says what nobody
can promise for that money: no design has a larger margin than the frontier has there, or less noise
than what is owned already.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.derive import asking
from rrf_design.errors import InputError
from rrf_design.market import Mask, exact
from rrf_design.noise import Radius, radius_of
from rrf_design.planning._frontiers import STEP, Point, walk
from rrf_design.planning._outcome import starting_design
from rrf_design.planning.contract import REACHED, Order, Plan, PlanStatus
from rrf_design.planning.evaluator import NULL, Evaluator
from rrf_design.planning.goals import choices, nominal, price_of
from rrf_design.planning.supports import least_eigenvalues

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.problem import Problem
    from solvers.result import Progress

ENUMERATED = 14  # items for sale up to which all designs of a field are listed


@dataclass(frozen=True, slots=True)
class Curve:
    """Undominated designs of one item: costs and objectives rise together.

    Incomplete: there may be better ones.
    """

    costs: tuple[Fraction, ...]
    values: tuple[float, ...]
    designs: tuple[bytes, ...]  # packed masks
    complete: bool = True

    def reaching(self, value: float) -> int | None:
        """Index of the cheapest design whose objective is at least `value`."""
        at = bisect_left(self.values, value * (1 - REACHED))
        return at if at < len(self.values) else None


def curves_of(problems: Sequence[Problem], k: int | None, objective: Any, goal: Order) -> list[Curve]:
    """Curves of some items; those that are equal as matrices, prices and rules are computed
    once.
    """
    known: dict[bytes, Curve] = {}
    result = []
    for problem in problems:
        evaluator = Evaluator(problem, k=k, objective=objective)
        key = shape(evaluator)
        if key not in known:
            small = len(evaluator.market.items) <= ENUMERATED and evaluator.table is not None
            known[key] = _enumerate_designs(evaluator, goal) if small else _walk_frontier(evaluator, goal)
        result.append(known[key])
    return result


def shape(evaluator: Evaluator) -> bytes:
    op, market = evaluator.operator, evaluator.market
    arrays: tuple[NDArray[Any], ...]
    arrays = (op.matrix.data, op.matrix.indices, op.matrix.indptr, op.node_offsets, op.block_offsets, evaluator.radii)
    rest: tuple[Any, ...] = (
        market.prices,
        market.needs,
        market.excludes,
        market.banned.tolist(),
        evaluator.k,
        evaluator.block_item.tolist(),
    )
    sharing = evaluator.structure.operator.sharing
    if sharing is not None:
        arrays = (*arrays, evaluator.structure.operator.matrix.data)
        rest = (*rest, sharing.signature)
    groups = [(g.items.tolist(), g.at_least, g.at_most, g.prices) for g in (*market.rules, *market.tiers)]
    premise = op.premise
    asked = (
        list(premise.partition(op.node_ids).values()),
        premise.wanted(op.node_ids),
        premise.wrong_checks,
        [name in premise.suspects for name in op.block_ids],
        None if premise.declared is None else premise.declared.of_checks(op.block_ids),
    )
    told = (rest, groups, evaluator.node_item.tolist(), None if premise.plain else asked)
    return b"|".join(a.tobytes() for a in arrays) + repr(told).encode()


def _walk_frontier(evaluator: Evaluator, goal: Order) -> Curve:
    from rrf_design.planning._frontiers import walk

    points, complete = walk(evaluator, goal)
    masks = [evaluator.market.mask(point.selected) for point in points]
    exact_steps = complete and all(point.status is PlanStatus.OPTIMAL for point in points)
    return Curve(
        costs=tuple(evaluator.market.cost(mask) for mask in masks),
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


def _enumerate_designs(evaluator: Evaluator, goal: Order) -> Curve:
    """The curve of a small field from all its admissible designs at once."""
    masks, units, unit = _admissible(evaluator, goal)
    values = _design_values(evaluator, masks)
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


def _admissible(evaluator: Evaluator, goal: Order) -> tuple[NDArray[np.bool_], NDArray[Any], Fraction]:
    """Closed designs that obey every rule within the budget, and their costs in a common unit."""
    market = evaluator.market
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
        raise InputError(f"{evaluator.original.name}: no design satisfies the rules")
    units, unit = market.costs(masks)
    assert goal.budget is not None
    within = np.asarray(units <= int(exact(goal.budget) / unit), dtype=bool)
    if not within.any():
        within = np.asarray(units == units.min(), dtype=bool)  # what rules demand must be bought whatever it costs
    return masks[within], units[within], unit


def _design_values(evaluator: Evaluator, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(designs,): the objective of many designs of one small field."""
    if evaluator.robust:
        return np.array([evaluator.value(mask) for mask in masks])
    simple = not evaluator.market.node_items
    if simple:
        present = np.repeat(evaluator.permanent[None], len(masks), axis=0)
        present[:, evaluator.variable] = masks[:, evaluator.block_item[evaluator.variable]]
        opened = np.ones((1, evaluator.n), dtype=bool)
    else:
        present = np.array([evaluator.active(mask) for mask in masks])
        opened = np.array([evaluator.opened(mask) for mask in masks])
    width = evaluator.operator.matrix.shape[1]
    everywhere = np.arange(width)
    grams = np.array([evaluator.block_gram(j, everywhere) for j in range(len(evaluator.block_nodes))]).reshape(
        -1, width * width
    )
    # Entries first, so that each support picks whole rows of numbers.
    shares = evaluator.shares(present, np.repeat(opened, len(masks) // len(opened), axis=0))
    stacked = np.ascontiguousarray((grams.T @ shares.T).reshape(width, width, len(masks)))
    sizes = np.minimum(evaluator.size, opened.sum(axis=1))
    least = np.full(len(masks), np.inf)
    for size in np.unique(sizes[sizes > 0]):
        for support in combinations(range(evaluator.n), int(size)):
            columns = np.concatenate([evaluator.columns[i] for i in support])
            there = (sizes == size) & opened[:, list(support)].all(axis=1)
            if there.any():
                values = least_eigenvalues(np.moveaxis(stacked[columns[:, None], columns[None, :]], 2, 0))
                np.minimum(least, values, out=least, where=there)
    result = np.sqrt(np.maximum(np.where(np.isfinite(least), least, 0.0), 0.0))
    return np.where(result > NULL * evaluator.scale, result, 0.0)


MOST_POINTS = 1000
LISTED = 8
"""Items for sale up to which every design is tried with every choice of repeats."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A design that may be bought, its price, and its margin as far as the search knows it."""

    cost: Fraction
    gamma: float
    mask: Mask


@dataclass(frozen=True, slots=True)
class _Asked:
    """One choice of repeats: its price, the problem with it, and the radius that no design falls
    below.
    """

    paid: Fraction
    repeats: Mapping[str, int]
    problem: Problem
    least: Radius

    def floor(self, gamma: float) -> float:
        """No design with at most this margin promises less."""
        found = self.least.bound(gamma)
        return inf if found is None else found


def error_curve(
    evaluator: Evaluator, order: Order, *, solver: str, most_points: int, tell: Progress | None
) -> tuple[tuple[Point, ...], bool]:
    """Points by rising cost and falling error, and whether no money promises less than the last."""
    start = starting_design(evaluator, order)
    problem, money = evaluator.original, None if order.budget is None else exact(order.budget)
    held, everything = problem.structure.ends()
    if radius_of(problem, everything).total is None:
        raise InputError(
            "frontier: no error can be promised beforehand: relations are uncertain and nothing bounds the true"
            " answers; give their nodes a range, or [problem] an amplitude; or ask for the margin's own curve"
            " (--objective)"
        )
    every, listed = choices(problem)
    asked = [
        _Asked(price_of(problem, choice), choice, made, radius_of(made, held))
        for choice in listed
        for made in (asking(problem, choice),)
    ]
    offers, ceiling, complete = _offers(evaluator, order, solver=solver, most_points=most_points, tell=tell)
    points: list[Point] = []
    for cost, one, offer, error in _records(evaluator, asked, offers, money):
        if points and exact(points[-1].cost) == cost:
            points.pop()
        points.append(_point(evaluator, one, offer, cost, error))
    if not points:  # nothing promises anything: what there is to begin with
        points = [
            _point(evaluator, asked[0], _Offer(evaluator.market.cost(start), evaluator.value(start), start), None, None)
        ]
    exhaustive = every and ceiling is None
    if not exhaustive:
        longest = _longest(problem, held)
        points = [_judged(point, asked, ceiling or offers, longest if not every else None) for point in points]
    return tuple(points[:most_points]), complete and len(points) <= most_points


def least_error_plan(evaluator: Evaluator, order: Order) -> Plan | None:
    """The plan of least promised error within the budget, of all designs and repeats; None where
    these are too many to be listed, or none promises anything.
    """
    from rrf_design.planning._outcome import finish

    problem, market = evaluator.original, evaluator.market
    promised = radius_of(problem, problem.structure.ends()[1]).total is not None
    if len(market.items) > LISTED or evaluator.table is None or not promised:
        return None
    points, _ = error_curve(evaluator, order, solver="ortools", most_points=MOST_POINTS, tell=None)
    best, start = points[-1], starting_design(evaluator, order)
    if best.error_bound is None:
        return None
    mask = market.mask(best.selected)
    found = finish(evaluator, mask, order, method="every design", start=start & mask)
    asked = asking(problem, best.repeats)
    found = found.with_standing(asked.design(best.selected).standing(asked, margin=evaluator.confirm(mask)))
    sure = best.status is PlanStatus.OPTIMAL
    return replace(
        found,
        status=best.status,
        gap=0.0 if sure else found.gap,
        cost=best.cost,
        cost_bound=best.cost if sure else None,
        repeats=dict(best.repeats),
        notes=(*found.notes, f"what is made small is the promised error, {found.error_bound or 0.0:.6g}; {LARGER}"),
    )


LARGER = "a design with a larger margin may promise a larger one, because noise and uncertainty grow with what is held"


def goal_curve(problem: Problem, *, k: int | None, order: Order) -> tuple[Curve, tuple[Point, ...]]:
    """The error curve as a portfolio spends money on it: values are δ/error, so that 1 is the
    problem's own goal; with its points.
    """
    from rrf_design.planning.evaluator import Evaluator

    if problem.delta is None or problem.target is not None:
        raise InputError(
            f"{problem.name}: one budget for the items' own goals, repeats included, is spent on promised errors; give"
            " each a delta and no target"
        )
    evaluator = Evaluator(problem, k=k, objective=nominal(problem))
    points, complete = error_curve(evaluator, order, solver="ortools", most_points=MOST_POINTS, tell=None)
    delta = problem.delta
    values = [0.0 if p.error_bound is None else inf if p.error_bound == 0.0 else delta / p.error_bound for p in points]
    sure = complete and all(p.status is PlanStatus.OPTIMAL for p in points)
    return Curve(tuple(exact(p.cost) for p in points), tuple(values), (b"",) * len(points), sure), points


def _offers(
    evaluator: Evaluator, order: Order, *, solver: str, most_points: int, tell: Progress | None
) -> tuple[list[_Offer], list[_Offer] | None, bool]:
    """Designs to try by rising cost; what bounds all others (None where there are none); whether
    the list has an end.
    """
    market = evaluator.market
    if len(market.items) <= LISTED and evaluator.table is not None:
        everything = float(sum(market.prices, sum((t.price(len(t.items)) for t in market.tiers), Fraction(1))))
        masks, units, unit = _admissible(evaluator, replace(order, budget=everything))
        values = _design_values(evaluator, masks)
        found = [_Offer(int(u) * unit, float(v), mask) for u, v, mask in zip(units, values, masks, strict=True)]
        return sorted(found, key=lambda offer: (offer.cost, -offer.gamma)), None, True
    points, complete = walk(evaluator, order, solver=solver, most_points=most_points, tell=tell)
    masks_of = [market.mask(point.selected) for point in points]
    offers = [_Offer(market.cost(m), p.value, m) for m, p in zip(masks_of, points, strict=True)]
    top = evaluator.summit()
    proven = [*(point.status is PlanStatus.OPTIMAL for point in points[1:]), complete]
    ceiling = [
        replace(offer, gamma=point.upper_bound * (1 + 2 * STEP) if sure else top)
        for offer, point, sure in zip(offers, points, proven, strict=True)
    ]
    return offers, ceiling, complete


def _records(
    evaluator: Evaluator, asked: list[_Asked], offers: list[_Offer], money: Fraction | None
) -> Iterator[tuple[Fraction, _Asked, _Offer, float]]:
    """Every pair that promises less than all cheaper ones, by rising cost; the last of one cost is
    the best of it.
    """
    pairs = [(one.paid + offer.cost, i, j) for i, one in enumerate(asked) for j, offer in enumerate(offers)]
    operators: dict[int, Operator] = {}
    best = inf
    for cost, i, j in sorted(pairs):
        if (money is not None and cost > money) or asked[i].floor(offers[j].gamma) >= best * (1 - STEP):
            continue
        if j not in operators:
            operators[j] = evaluator.design(offers[j].mask).operator
        error = radius_of(asked[i].problem, operators[j]).bound(offers[j].gamma)
        if error is not None and error < best * (1 - STEP):
            best = error
            yield cost, asked[i], offers[j], error


def _point(evaluator: Evaluator, one: _Asked, offer: _Offer, cost: Fraction | None, error: float | None) -> Point:
    """The pair as a point, with the margin that the exact engine proves."""
    confirmed = evaluator.confirm(offer.mask)
    if error is not None:
        error = radius_of(one.problem, evaluator.design(offer.mask).operator).bound(confirmed.lower)
    return Point.of(
        confirmed,
        cost=offer.cost if cost is None else cost,
        selected=evaluator.market.names(offer.mask),
        repeats=dict(one.repeats),
        error_bound=error,
        error_floor=error,
    )


def _longest(problem: Problem, held: Operator) -> _Asked:
    """Everything asked as often as it may be, for nothing: it promises no more than any choice of
    repeats.
    """
    most = {node.id: node.most_repeats for node in problem.nodes if node.again is not None}
    made = asking(problem, most)
    return _Asked(Fraction(0), most, made, radius_of(made, held))


def _judged(point: Point, asked: list[_Asked], ceiling: list[_Offer], longest: _Asked | None) -> Point:
    """The point with what nobody can promise for its money; proven best where that is what it
    promises.
    """
    if point.error_bound is None:
        return replace(point, status=PlanStatus.FEASIBLE)
    cost, floors = exact(point.cost), [point.error_bound]
    prices = [offer.cost for offer in ceiling]
    for one in asked if longest is None else [longest]:
        there = bisect_right(prices, cost - one.paid)
        if there:
            floors.append(one.floor(max(offer.gamma for offer in ceiling[:there]) * (1 + 2 * STEP)))
    floor = min(floors)
    proven = floor >= point.error_bound * (1 - 2 * STEP)
    return replace(point, error_floor=floor, status=PlanStatus.OPTIMAL if proven else PlanStatus.FEASIBLE)
