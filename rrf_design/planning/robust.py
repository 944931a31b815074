"""The robust objective through the exact engine: min over connected supports S of σ_min(B_S) − η_S (ALGORITHMS, fact 10).

η_S is the root of the summed squared radii of the blocks that touch S. A larger support has a smaller σ and a larger η, so only
the largest connected ones matter, and of these only S with σ_S < v + η_max, where v is the best value known and η_max bounds
every η_S. The engine lists all of them. When there are too many to list, what was not listed still has
σ_S − η_S ≥ t − η_max for the largest t below which the list is complete: then the value is bounded instead of exact.

Two nodes are connected when a block joins them. The engine only sees a coupling where BᵀB has an entry; where the entries of
several blocks cancel, a faint row makes it see the pair, and the supports it lists are looked at again without that row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design.planning.costs import Mask
from rrf_design.planning.supports import Witness

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena
    from solvers import SupportValue

Array = NDArray[np.float64]
LISTED = 20_000  # supports near the minimum that are looked at one by one
TRIES = 6  # smaller thresholds tried when there are more
FAINT = 1e-7  # of the largest column norm: its square is above the rounding of an entry of BᵀB, and moves σ by no more
ROUNDING = 1e-13  # of the largest column norm: covers the error of a singular value and of η


@dataclass(frozen=True, slots=True)
class RobustValue:
    """lower ≤ the robust objective ≤ value, which the first witness attains; equal but for rounding when `exact`."""

    value: float
    lower: float
    exact: bool
    witnesses: tuple[Witness, ...]


def robust_value(arena: Arena, mask: Mask, *, count: int = 1, n_jobs: int | None = None) -> RobustValue:
    """The robust objective of a design and its worst supports, by the engine."""
    from solvers import margin

    opened = np.flatnonzero(arena.opened(mask))
    active = np.flatnonzero(arena.active(mask))
    touch = _touching(arena, active, opened)
    squares = np.square(arena.radii[active])
    widest = float(np.sqrt(np.sort(squares @ touch)[::-1][: arena.size].sum())) * (1 + 1e-12)
    sizes = [len(arena.columns[i]) for i in opened]
    offsets = np.cumsum([0, *sizes])
    rows = _rows(arena, active, opened)
    faint = _faint(rows, touch, offsets, FAINT * arena.scale)
    shown = rows if faint is None else sparse.csr_array(sparse.vstack([rows, faint]))
    moved = 0.0 if faint is None else 2 * FAINT * arena.scale * np.sqrt(arena.n)
    first = margin(shown, sizes, k=arena.k, n_jobs=n_jobs)

    def judged(support: tuple[int, ...], sigma: float, direction: Array) -> Witness:
        columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in support])
        vector = direction[columns]
        if faint is not None:
            _, strengths, right = np.linalg.svd(rows[:, columns].toarray(), full_matrices=True)
            sigma = float(strengths[-1]) if len(strengths) == len(columns) else 0.0
            vector = right[-1].copy()
        eta = float(np.sqrt(squares @ touch[:, list(support)].any(axis=1)))
        return Witness(tuple(int(opened[i]) for i in support), vector, sigma - eta)

    found = [judged(first.support, first.value, first.direction)]
    high = found[0].value + widest + moved
    listed, below = _list(shown, sizes, arena.size, low=first.value, high=high, n_jobs=n_jobs)
    found += [judged(s.support, s.value, s.direction) for s in listed if s.support != first.support]
    found.sort(key=lambda witness: (witness.value, witness.support))
    value = found[0].value
    complete = below - moved >= value + widest
    lower = value if complete else min(value, below - moved - widest)
    return RobustValue(value, lower - ROUNDING * arena.scale, complete, tuple(found[:count]))


def _list(
    rows: Any, sizes: list[int], size: int, *, low: float, high: float, n_jobs: int | None
) -> tuple[tuple[SupportValue, ...], float]:
    """All supports below a threshold of at most `high`, and that threshold: the largest tried whose list is complete."""
    from solvers import supports_below

    seen: tuple[SupportValue, ...] = ()
    threshold = high
    for _ in range(TRIES):
        found = supports_below(rows, sizes, size=size, threshold=max(threshold, 0.0), limit=LISTED, n_jobs=n_jobs)
        if found.complete:
            return found.supports if len(found.supports) >= len(seen) else seen, threshold
        seen = found.supports if len(found.supports) > len(seen) else seen
        threshold = (threshold + low) / 2
    return seen, low


def _touching(arena: Arena, active: NDArray[np.int64], opened: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(active blocks, open nodes)."""
    place = {int(node): at for at, node in enumerate(opened)}
    result = np.zeros((len(active), len(opened)), dtype=bool)
    for number, block in enumerate(active):
        result[number, [place[i] for i in arena.block_nodes[block]]] = True
    return result


def _rows(arena: Arena, active: NDArray[np.int64], opened: NDArray[np.int64]) -> Any:
    chosen = np.zeros(len(arena.block_nodes), dtype=bool)
    chosen[active] = True
    rows = arena.operator.matrix[np.flatnonzero(arena.rows(chosen))]
    return rows if len(opened) == arena.n else rows[:, np.concatenate([arena.columns[i] for i in opened])]


def _faint(rows: Any, touch: NDArray[np.bool_], offsets: NDArray[np.int64], size: float) -> Any:
    """A row for every pair of nodes that a block joins and BᵀB does not couple; None when there is no such pair."""
    gram = sparse.coo_array(rows.T @ rows)
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    seen = gram.data != 0.0
    coupled = set(zip(owner[gram.coords[0][seen]].tolist(), owner[gram.coords[1][seen]].tolist(), strict=True))
    joined = {pair for nodes in touch for pair in combinations(np.flatnonzero(nodes).tolist(), 2)}
    missed = sorted(joined - coupled)
    if not missed:
        return None
    places = np.repeat(np.arange(len(missed)), 2), offsets[np.array(missed).ravel()]
    return sparse.csr_array((np.full(2 * len(missed), size), places), shape=(len(missed), rows.shape[1]))
