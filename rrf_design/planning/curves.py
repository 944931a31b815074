"""The curve of one item: its undominated designs, costs and objectives rising together, exactly.

Small items are enumerated: all admissible designs at once, by batched eigenvalues; items that are equal as matrices, prices and
rules share one curve. Larger ones walk their frontier.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.market import exact
from rrf_design.planning.arena import NULL, Arena
from rrf_design.planning.contract import REACHED, Order, PlanStatus
from rrf_design.planning.supports import least_eigenvalues

if TYPE_CHECKING:
    from rrf_design.problem import Problem

ENUMERATED = 14  # items for sale up to which all designs of a field are listed


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


def curves_of(problems: Sequence[Problem], k: int | None, objective: Any, goal: Order) -> list[Curve]:
    """Curves of some items; those that are equal as matrices, prices and rules are computed once."""
    known: dict[bytes, Curve] = {}
    result = []
    for problem in problems:
        arena = Arena(problem, k=k, objective=objective)
        key = shape(arena)
        if key not in known:
            small = len(arena.market.items) <= ENUMERATED and arena.table is not None
            known[key] = enumerate_designs(arena, goal) if small else _walk_frontier(arena, goal)
        result.append(known[key])
    return result


def shape(arena: Arena) -> bytes:
    op, market = arena.operator, arena.market
    arrays = (op.matrix.data, op.matrix.indices, op.matrix.indptr, op.node_offsets, op.block_offsets, arena.radii)
    rest = (market.prices, market.needs, market.excludes, market.banned.tolist(), arena.k, arena.block_item.tolist())
    groups = [(g.items.tolist(), g.at_least, g.at_most, g.prices) for g in (*market.rules, *market.tiers)]
    premise = op.premise
    asked = (
        list(premise.partition(op.node_ids).values()),
        premise.wanted(op.node_ids),
        premise.wrong_checks,
        [name in premise.suspects for name in op.block_ids],
    )
    told = (rest, groups, arena.node_item.tolist(), None if premise.plain else asked)
    return b"|".join(a.tobytes() for a in arrays) + repr(told).encode()


def _walk_frontier(arena: Arena, goal: Order) -> Curve:
    from rrf_design.planning.frontiers import walk

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


def enumerate_designs(arena: Arena, goal: Order) -> Curve:
    """The curve of a small field from all its admissible designs at once."""
    masks, units, unit = admissible(arena, goal)
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


def admissible(arena: Arena, goal: Order) -> tuple[NDArray[np.bool_], NDArray[Any], Fraction]:
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
