"""Upper bounds on what a budget can buy, from witness cuts alone; no search, and safe against a solver's tolerances.

Any weights λ ≥ 0 with Σλ = 1 over cuts give γ² ≤ Σ_j x_j w_j + w₀, a knapsack whose fractional optimum is found by sorting.
A linear program only chooses the weights; the bound is computed from them afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.planning.supports import Witness

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

Array = NDArray[np.float64]
LP_ROUNDS = 25
LP_CUTS = 40
MOST_CUTS = 6000


def knapsack(gains: Array, prices: Array, budget: float | None) -> float:
    """Largest Σ gains·x with Σ prices·x ≤ budget and 0 ≤ x ≤ 1, rounded up."""
    gains = np.maximum(gains, 0.0)
    up = 1 + 1e-12 + 4 * len(gains) * 2.0**-53  # above the rounding of prices, of their running sums and of the total
    if budget is None:
        return float(gains.sum()) * up
    ratio = np.full(len(gains), np.inf)
    np.divide(gains, prices, out=ratio, where=prices > 0)
    order = np.argsort(-ratio, kind="stable")
    left = budget * up - np.concatenate([[0.0], np.cumsum(prices[order])[:-1]])
    share = np.ones(len(order))
    np.divide(left, prices[order], out=share, where=prices[order] > 0)
    return float(gains[order] @ np.clip(share, 0.0, 1.0)) * up


def bound_from_cuts(arena: Arena, budget: float | None, weights: Array | None = None) -> float:
    """On the objective of every design within the budget: the best single cut, or the weighted sum of cuts."""
    energies, owned = arena.pool.stacked()
    kept = arena.pool.ungated()
    if not len(kept):
        return ceiling(arena)
    energies, owned, prices = energies[kept], owned[kept], _prices(arena)
    if weights is not None:
        share = np.maximum(weights, 0.0)
        share = share / share.sum()
        square = float(share @ owned) + knapsack(share @ energies, prices, budget)
    else:
        square = min(o + knapsack(e, prices, budget) for e, o in zip(energies, owned, strict=True))
    return min(float(np.sqrt(max(square, 0.0))) * (1 + 1e-12), ceiling(arena))


def _prices(arena: Arena) -> Array:
    """Floor price of every variable block; owned blocks that wait for a query are free."""
    items = arena.block_item[arena.variable]
    return np.where(items >= 0, arena.market.floor_prices[items], 0.0) if len(items) else np.zeros(0)


def ceiling(arena: Arena) -> float:
    """A bound that no amount of money can pass: single nodes, delivered where only some are, with every block bought."""
    deliver, squares = arena.operator.premise.deliver, arena.node_squares
    wanted = [deliver is None or name in deliver for name in arena.operator.node_ids]
    always = [s for s, there, one in zip(squares, arena.always, wanted, strict=False) if there and one]
    best = min(always) if always else max(squares, default=arena.scale**2)
    return float(np.sqrt(best)) * (1 + 1e-12)


def relaxation_bound(arena: Arena, budget: float | None, *, deadline: float | None = None) -> float:
    """The bound of the linear relaxation, tightened by cuts at its fractional solutions; needs the table of supports."""
    import time

    from scipy.optimize import linprog

    best = bound_from_cuts(arena, budget)
    table, width = arena.table, len(arena.variable)
    if table is None or arena.market.node_items or width == 0:
        return best
    prices = _prices(arena)
    for _ in range(LP_ROUNDS):
        energies, owned = arena.pool.stacked()
        if not len(owned) or len(owned) > MOST_CUTS or (deadline is not None and time.monotonic() > deadline):
            break
        rows = np.hstack([-energies, np.ones((len(owned), 1))])
        limits = owned
        if budget is not None:
            rows, limits = np.vstack([rows, np.append(prices, 0.0)]), np.append(owned, budget)
        solved = linprog(
            np.append(np.zeros(width), -1.0),
            A_ub=rows,
            b_ub=limits,
            bounds=[(0, 1)] * width + [(0, arena.scale**2 * 4 * arena.n)],
            method="highs",
        )
        if solved.status != 0:
            break
        weights = -solved.ineqlin.marginals[: len(owned)]
        if weights.sum() > 0:
            best = min(best, bound_from_cuts(arena, budget, weights))
        top = float(solved.x[-1])
        added = [arena.pool.add(w) for w in table.fractional(solved.x[:-1], below=top * (1 - 1e-3), count=LP_CUTS)]
        if not any(added):
            break
    return best


def lifted(arena: Arena, witness: Witness, present: NDArray[np.bool_], target: float, order: Array) -> Witness:
    """A stronger cut from the same support: its worst direction after adding all blocks that still leave it below `target`.

    `present` says which blocks the design holds. A design that holds only these misses the (squared) target, so one of
    the others must be bought; the fewer are left, the stronger the cut. `order` ranks blocks, lowest added first.
    """
    columns = arena.columns_of(witness.support)
    touching = sorted({j for i in witness.support for j in arena.touching[i]}, key=lambda j: order[j])
    gram = np.zeros((len(columns), len(columns)))
    absent = []
    for j in touching:
        part = arena.block_gram(j, columns)
        if present[j]:
            gram += part
        elif part.any():
            absent.append(part)
    for part in absent:
        if np.linalg.eigvalsh(gram + part)[0] < target * (1 - 1e-6):
            gram = gram + part
    return Witness(witness.support, np.linalg.eigh(gram)[1][:, 0].copy(), witness.value)
