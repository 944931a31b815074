"""How small an error money can promise: the curve over purchases and repeats together.

Asking again raises no margin, it lowers the noise: where it is on sale, the best margin for the money is not the best promise. So the
curve is that of the error bound 2ε'/γ + own (`rrf_design.noise`), over designs and choices of repeats. Designs are all that
the rules admit where these are few; otherwise those of the margin's own frontier, and then a floor says what nobody can promise for
that money: no design has a larger margin than the frontier has there, or less noise than what is owned already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

from rrf_design.derive import asking
from rrf_design.errors import InputError
from rrf_design.market import Mask, exact
from rrf_design.noise import Radius, radius_of
from rrf_design.planning.contract import Order, PlanStatus
from rrf_design.planning.curves import Curve, admissible, design_values
from rrf_design.planning.frontiers import STEP, Point, walk
from rrf_design.planning.outcome import starting_design
from rrf_design.planning.reaching import nominal
from rrf_design.planning.repeats import choices, price_of

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.planning.arena import Arena
    from rrf_design.problem import Problem
    from solvers.result import Progress

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
    """One choice of repeats: its price, the problem with it, and the radius that no design falls below."""

    paid: Fraction
    repeats: Mapping[str, int]
    problem: Problem
    least: Radius

    def floor(self, gamma: float) -> float:
        """No design with at most this margin promises less."""
        found = self.least.bound(gamma)
        return inf if found is None else found


def error_curve(
    arena: Arena, order: Order, *, solver: str, most_points: int, tell: Progress | None
) -> tuple[tuple[Point, ...], bool]:
    """Points by rising cost and falling error, and whether no money promises less than the last."""
    start = starting_design(arena, order)
    problem, money = arena.original, None if order.budget is None else exact(order.budget)
    if radius_of(problem, problem.design("all").operator).total is None:
        raise InputError(
            "frontier: no error can be promised beforehand: relations are uncertain and nothing bounds the true answers; give"
            " their nodes a range, or [problem] an amplitude; or ask for the margin's own curve (--objective)"
        )
    every, listed = choices(problem)
    held = problem.structure.holding().operator
    asked = [
        _Asked(price_of(problem, choice), choice, made, radius_of(made, held))
        for choice in listed
        for made in (asking(problem, choice),)
    ]
    offers, ceiling, complete = _offers(arena, order, solver=solver, most_points=most_points, tell=tell)
    points: list[Point] = []
    for cost, one, offer, error in _records(arena, asked, offers, money):
        if points and exact(points[-1].cost) == cost:
            points.pop()
        points.append(_point(arena, one, offer, cost, error))
    if not points:  # nothing promises anything: what there is to begin with
        points = [_point(arena, asked[0], _Offer(arena.market.cost(start), arena.value(start), start), None, None)]
    exhaustive = every and ceiling is None
    if not exhaustive:
        longest = _longest(problem, held)
        points = [_judged(point, asked, ceiling or offers, longest if not every else None) for point in points]
    return tuple(points[:most_points]), complete and len(points) <= most_points


def goal_curve(problem: Problem, *, k: int | None, order: Order) -> tuple[Curve, tuple[Point, ...]]:
    """The error curve as a portfolio spends money on it: values are δ/error, so that 1 is the problem's own goal; with its points."""
    from rrf_design.planning.arena import Arena

    if problem.delta is None or problem.target is not None:
        raise InputError(
            f"{problem.name}: one budget for the items' own goals, repeats included, is spent on promised errors; give each a delta and no target"
        )
    arena = Arena(problem, k=k, objective=nominal(problem))
    points, complete = error_curve(arena, order, solver="ortools", most_points=MOST_POINTS, tell=None)
    delta = problem.delta
    values = [0.0 if p.error_bound is None else inf if p.error_bound == 0.0 else delta / p.error_bound for p in points]
    sure = complete and all(p.status is PlanStatus.OPTIMAL for p in points)
    return Curve(tuple(exact(p.cost) for p in points), tuple(values), (b"",) * len(points), sure), points


def _offers(
    arena: Arena, order: Order, *, solver: str, most_points: int, tell: Progress | None
) -> tuple[list[_Offer], list[_Offer] | None, bool]:
    """Designs to try by rising cost; what bounds all others (None where there are none); whether the list has an end."""
    market = arena.market
    if len(market.items) <= LISTED and arena.table is not None:
        everything = float(sum(market.prices, sum((t.price(len(t.items)) for t in market.tiers), Fraction(1))))
        masks, units, unit = admissible(arena, replace(order, budget=everything))
        values = design_values(arena, masks)
        found = [_Offer(int(u) * unit, float(v), mask) for u, v, mask in zip(units, values, masks, strict=True)]
        return sorted(found, key=lambda offer: (offer.cost, -offer.gamma)), None, True
    points, complete = walk(arena, order, solver=solver, most_points=most_points, tell=tell)
    masks_of = [market.mask(point.selected) for point in points]
    offers = [_Offer(market.cost(m), p.value, m) for m, p in zip(masks_of, points, strict=True)]
    top = inf if market.node_items else arena.original.margin("all", k=arena.k).upper
    proven = [*(point.status is PlanStatus.OPTIMAL for point in points[1:]), complete]
    ceiling = [
        replace(offer, gamma=point.upper_bound * (1 + 2 * STEP) if sure else top)
        for offer, point, sure in zip(offers, points, proven, strict=True)
    ]
    return offers, ceiling, complete


def _records(
    arena: Arena, asked: list[_Asked], offers: list[_Offer], money: Fraction | None
) -> Iterator[tuple[Fraction, _Asked, _Offer, float]]:
    """Every pair that promises less than all cheaper ones, by rising cost; the last of one cost is the best of it."""
    pairs = [(one.paid + offer.cost, i, j) for i, one in enumerate(asked) for j, offer in enumerate(offers)]
    operators: dict[int, Operator] = {}
    best = inf
    for cost, i, j in sorted(pairs):
        if (money is not None and cost > money) or asked[i].floor(offers[j].gamma) >= best * (1 - STEP):
            continue
        if j not in operators:
            operators[j] = arena.design(offers[j].mask).operator
        error = radius_of(asked[i].problem, operators[j]).bound(offers[j].gamma)
        if error is not None and error < best * (1 - STEP):
            best = error
            yield cost, asked[i], offers[j], error


def _point(arena: Arena, one: _Asked, offer: _Offer, cost: Fraction | None, error: float | None) -> Point:
    """The pair as a point, with the margin that the exact engine proves."""
    confirmed = arena.confirm(offer.mask)
    if error is not None:
        error = radius_of(one.problem, arena.design(offer.mask).operator).bound(confirmed.lower)
    return Point(
        cost=float(offer.cost if cost is None else cost),
        gamma=confirmed.value,
        selected=arena.market.names(offer.mask),
        status=PlanStatus.OPTIMAL,
        upper_bound=confirmed.upper,
        value=confirmed.value,
        gamma_lower=confirmed.lower,
        witness=confirmed.witness,
        repeats=dict(one.repeats),
        error_bound=error,
        error_floor=error,
    )


def _longest(problem: Problem, held: Operator) -> _Asked:
    """Everything asked as often as it may be, for nothing: it promises no more than any choice of repeats."""
    most = {node.id: node.most_repeats for node in problem.nodes if node.again is not None}
    made = asking(problem, most)
    return _Asked(Fraction(0), most, made, radius_of(made, held))


def _judged(point: Point, asked: list[_Asked], ceiling: list[_Offer], longest: _Asked | None) -> Point:
    """The point with what nobody can promise for its money; proven best where that is what it promises."""
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
