"""The robust objective through the exact engine: min over connected supports S of σ_min(B_S) − η_S (docs/algorithms.md, fact 10).

η_S is the root of the summed squared radii of the blocks that touch S. A larger support has a smaller σ and a larger η, so only
the largest connected ones matter, and of these only S with σ_S < v + η_max, where v is the best value known and η_max bounds
every η_S. The engine lists all of them. When there are too many to list, what was not listed still has
σ_S − η_S ≥ t − η_max for the largest t below which the list is complete: then the value is bounded instead of exact.

Two nodes are connected when a block joins them, also where no row of it has entries at both: the engine is told so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask
from rrf_design.planning.supports import Witness

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.planning.arena import Arena
    from solvers import SupportValue

Array = NDArray[np.float64]
LISTED = 20_000  # supports near the minimum that are looked at one by one
TRIES = 6  # smaller thresholds tried when there are more
ROUNDING = 1e-13  # of the largest column norm: covers the error of a singular value and of η


@dataclass(frozen=True, slots=True)
class RobustValue:
    """lower ≤ the robust objective ≤ value, which the first witness attains; equal but for rounding when `exact`."""

    value: float
    lower: float
    exact: bool
    witnesses: tuple[Witness, ...]


def robust_value(arena: Arena, mask: Mask, *, count: int = 1, n_jobs: int | None = None) -> RobustValue:
    """The robust objective of a design and its worst supports, by the engine; supports count all nodes of the problem."""
    opened = np.flatnonzero(arena.opened(mask))
    active = np.flatnonzero(arena.active(mask))
    found = _robust(
        _rows(arena, active, opened),
        [len(arena.columns[i]) for i in opened],
        _touching(arena, active, opened),
        np.square(arena.radii[active]),
        arena.k,
        n_jobs=n_jobs,
    )
    renamed = [replace(w, support=tuple(int(opened[i]) for i in w.support)) for w in found.witnesses[:count]]
    return replace(found, witnesses=tuple(renamed))


def robust_floor(operator: Operator, *, k: int, lower: float, unread: bool = False) -> float:
    """A proven lower bound on the robust objective of a design with proven margin `lower`: at least lower − √Σ η_j².

    With units or suspect checks it is that bound itself. Where only some values are delivered, E acts on the rest of an error
    as well, so it is taken off the margin of the whole field, which is never larger. Where answers could not be read, supports with
    them are not listed one by one: the bound itself, and nothing where a premise is declared besides.
    """
    names = list(operator.uncertain)
    if not names or lower <= 0.0:
        return lower
    if unread and (operator.premise.deliver is not None or operator.premise.wrong_checks):
        return 0.0
    if unread:
        return max(0.0, lower - float(np.linalg.norm(operator.radii)) * (1 + 1e-12))
    if not operator.premise.plain:
        from rrf_design.premise import protected

        whole = operator.premise.whole
        floor = lower if whole is operator.premise else protected(operator, k, premise=whole).solved.lower
        return max(0.0, floor - float(np.linalg.norm(operator.radii)) * (1 + 1e-12))
    radii = np.array([operator.radii[operator.block_index[name]] for name in names])
    loss = float(np.sqrt(np.square(radii).sum())) * (1 + 1e-12)
    touch = np.zeros((len(names), len(operator.node_ids)), dtype=bool)
    for number, name in enumerate(names):
        touch[number, [operator.node_index[node] for node in operator.uncertain[name]]] = True
    sizes = np.diff(operator.node_offsets).tolist()
    found = _robust(operator.matrix, sizes, touch, np.square(radii), k)
    return max(0.0, lower - loss, min(found.lower, lower))


def _robust(
    rows: Any, sizes: list[int], touch: NDArray[np.bool_], squares: Array, k: int, *, n_jobs: int | None = None
) -> RobustValue:
    """min over supports of σ_min − η_S, where η_S² adds up `squares` of the blocks that `touch` (blocks, nodes) S."""
    from solvers import margin

    size = min(2 * k, len(sizes))
    widest = float(np.sqrt(np.sort(squares @ touch)[::-1][:size].sum())) * (1 + 1e-12)
    offsets = np.cumsum([0, *sizes])
    scale = float(np.sqrt(rows.power(2).sum(axis=0).max(initial=0.0))) or 1.0
    first = margin(rows, sizes, k=k, n_jobs=n_jobs)

    joins = _joins(rows, sizes, touch)

    def judged(support: tuple[int, ...], sigma: float, direction: Array) -> Witness:
        shares = [float(np.square(direction[offsets[i] : offsets[i + 1]]).sum()) for i in support]
        support = joined_part(joins, support, shares)
        columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in support])
        eta = float(np.sqrt(squares @ touch[:, list(support)].any(axis=1)))
        return Witness(support, direction[columns], sigma - eta)

    found = [judged(first.support, first.value, first.direction)]
    joined = sorted({tuple(np.flatnonzero(nodes).tolist()) for nodes in touch})
    options = {"size": size, "joined": joined, "n_jobs": n_jobs}
    listed, below = _list(rows, sizes, low=first.value, high=found[0].value + widest, options=options)
    found += [judged(s.support, s.value, s.direction) for s in listed if s.support != first.support]
    found.sort(key=lambda witness: (witness.value, witness.support))
    value = found[0].value
    complete = below >= value + widest
    lower = value if complete else min(value, below - widest)
    return RobustValue(value, lower - ROUNDING * scale, complete, tuple(found))


def joined_part(
    joins: Callable[[int], frozenset[int]], support: tuple[int, ...], shares: Sequence[float]
) -> tuple[int, ...]:
    """Of a support, what is joined to where its direction lies: σ is that of this part, and no radii elsewhere act on it."""
    start = support[max(range(len(support)), key=lambda at: shares[at])]
    part, held = {start}, set(joins(start))
    left = [i for i in support if i != start]
    while more := [i for i in left if not held.isdisjoint(joins(i))]:
        part.update(more)
        held.update(*map(joins, more))
        left = [i for i in left if i not in part]
    return tuple(i for i in support if i in part)


def _joins(rows: Any, sizes: list[int], touch: NDArray[np.bool_]) -> Callable[[int], frozenset[int]]:
    """Of a node, the rows with an entry at it and the blocks that touch it: two nodes with one in common are joined."""
    columns = rows.tocsc()
    offsets = np.cumsum([0, *sizes])

    @cache
    def of(node: int) -> frozenset[int]:
        first, last = columns.indptr[offsets[node]], columns.indptr[offsets[node + 1]]
        blocks = np.flatnonzero(touch[:, node]) + rows.shape[0]
        return frozenset(columns.indices[first:last].tolist()).union(blocks.tolist())

    return of


def _list(
    rows: Any, sizes: list[int], *, low: float, high: float, options: dict[str, Any]
) -> tuple[tuple[SupportValue, ...], float]:
    """All supports below a threshold of at most `high`, and that threshold: the largest tried whose list is complete."""
    from solvers import supports_below

    seen: tuple[SupportValue, ...] = ()
    threshold = high
    for _ in range(TRIES):
        found = supports_below(rows, sizes, threshold=max(threshold, 0.0), limit=LISTED, **options)
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
