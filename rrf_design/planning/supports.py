"""Separation: which supports of a design are hard to see, and along which directions.

Small fields keep the column indices of all supports and find every λ_min(G_SS) in one batched call; large fields ask the
margin engine. The values steer the planners; a reported margin is always the engine's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.planning.costs import Mask

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena, Evaluation

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Witness:
    """A unit vector over the columns of a support, and the objective it attains there in the design it was found in."""

    support: tuple[int, ...]
    vector: Array
    value: float


@dataclass(frozen=True, slots=True)
class _Class:
    """Supports whose nodes have the same dimensions in the same order."""

    supports: NDArray[np.int64]  # (count, nodes)
    columns: NDArray[np.int64]  # (count, coordinates)


class SupportTable:
    """All supports of a small field. With radii, smaller supports count as well, and only connected ones."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.dense = arena.operator.matrix.toarray()
        self._classes: dict[int, tuple[_Class, ...]] = {}
        touch = np.zeros((len(arena.block_nodes), arena.n))
        for j, nodes in enumerate(arena.block_nodes):
            touch[j, list(nodes)] = 1.0
        self.touch = touch

    def classes(self, size: int) -> tuple[_Class, ...]:
        if size not in self._classes:
            ends = self.arena.operator.node_offsets
            widths = np.diff(ends)
            count = math.comb(self.arena.n, size)
            listed = np.fromiter(chain.from_iterable(combinations(range(self.arena.n), size)), np.int64, count * size)
            supports = listed.reshape(count, size)
            patterns, which = np.unique(widths[supports], axis=0, return_inverse=True)
            self._classes[size] = tuple(
                _class(supports[which.ravel() == number], ends, pattern) for number, pattern in enumerate(patterns)
            )
        return self._classes[size]

    def evaluate(self, active: Mask, opened: Mask, *, count: int, below: float | None) -> Evaluation:
        from rrf_design.planning.arena import NULL, Evaluation

        rows = self.dense[self.arena.rows(active)]
        gram = rows.T @ rows
        size = min(self.arena.size, int(opened.sum()))
        value, candidates = np.inf, []
        for part in [c for s in (range(1, size + 1) if self.arena.robust else [size]) for c in self.classes(s)]:
            kept = part if opened.all() else _within(part, opened)
            if not len(kept.supports):
                continue
            blocks = gram[kept.columns[:, :, None], kept.columns[:, None, :]]
            values = np.sqrt(np.maximum(least_eigenvalues(blocks), 0.0))
            if self.arena.robust:
                values = values - self._radii(kept, active)
            value = min(value, float(values.min()))
            order = _lowest(values, count, None if below is None else max(below, NULL * self.arena.scale))
            candidates += [(float(values[i]), kept, int(i), blocks[i]) for i in order]
        candidates.sort(key=lambda item: (item[0], tuple(item[1].supports[item[2]])))
        found = [w for item in candidates[:count] for w in self._directions(*item, below=below, rows=rows)]
        return Evaluation(value if value > NULL * self.arena.scale else 0.0, tuple(found))

    def fractional(self, shares: Array, *, below: float, count: int) -> list[Witness]:
        """Worst directions of a design that holds shares x_j of its variable blocks, with xᵀ-weighted hᵀGh under `below`."""
        weights = self.arena.permanent.astype(np.float64)
        weights[self.arena.variable] = shares
        rows = self.dense * np.sqrt(np.maximum(self.arena.rows(weights), 0.0))[:, None]
        gram = rows.T @ rows
        found = []
        for part in self.classes(min(self.arena.size, self.arena.n)):
            blocks = gram[part.columns[:, :, None], part.columns[:, None, :]]
            values = least_eigenvalues(blocks)
            for i in _lowest(values, count, below):
                vector = np.linalg.eigh(blocks[i])[1][:, 0].copy()
                found.append(Witness(tuple(int(n) for n in part.supports[i]), vector, float(values[i])))
        return found

    def _directions(
        self, value: float, part: _Class, i: int, block: Array, *, below: float | None, rows: Array
    ) -> list[Witness]:
        """The worst direction of a support, and its others that are as bad (at margin zero: the whole null space)."""
        from rrf_design.planning.arena import NULL

        support = tuple(int(node) for node in part.supports[i])
        null = NULL * self.arena.scale
        eigenvalues, vectors = np.linalg.eigh(block)
        sigma = np.sqrt(np.maximum(eigenvalues, 0.0))
        if sigma[0] <= null:  # squaring has lost what tells zero from tiny: take the directions from B itself
            _, strengths, right = np.linalg.svd(rows[:, part.columns[i]])
            vectors = right[::-1].T
            sigma = np.append(strengths, np.zeros(len(right) - len(strengths)))[::-1]
            value = value - math.sqrt(max(float(eigenvalues[0]), 0.0)) + float(sigma[0])
        cut = max(below or 0.0, float(sigma[0]) * (1 + 1e-9), null)
        return [
            Witness(support, np.ascontiguousarray(vectors[:, c]), value if c == 0 else float(sigma[c]))
            for c in range(len(sigma))
            if c == 0 or sigma[c] < cut
        ]

    def _radii(self, part: _Class, active: Mask) -> Array:
        """η_S of every connected support; −∞ for the others, whose parts are supports of their own."""
        touch = self.touch[active]
        hits = np.zeros((int(active.sum()), len(part.supports)), dtype=bool)
        for column in range(part.supports.shape[1]):
            hits |= touch[:, part.supports[:, column]] > 0
        eta = np.sqrt(np.square(self.arena.radii[active]) @ hits)
        joined = (touch.T @ touch) > 0
        np.fill_diagonal(joined, True)
        reach = joined[part.supports[:, :, None], part.supports[:, None, :]].astype(np.float64)
        for _ in range(max(part.supports.shape[1] - 2, 0)):
            reach = np.minimum(reach @ reach, 1.0)
        result: Array = np.where(reach.all(axis=(1, 2)), eta, -np.inf)
        return result


def _class(supports: NDArray[np.int64], ends: NDArray[np.int64], widths: NDArray[np.int64]) -> _Class:
    """Supports whose nodes have these widths, in this order."""
    parts = [ends[supports[:, place], None] + np.arange(width) for place, width in enumerate(widths)]
    return _Class(supports, np.concatenate(parts, axis=1))


def _within(part: _Class, opened: Mask) -> _Class:
    keep = opened[part.supports].all(axis=1)
    return _Class(part.supports[keep], part.columns[keep])


def _lowest(values: Array, count: int, below: float | None) -> NDArray[np.int64]:
    if below is not None:
        chosen = np.flatnonzero(values < below)
        return chosen[np.argsort(values[chosen], kind="stable")[:count]]
    if len(values) > 4 * count:
        near = np.sort(np.argpartition(values, count)[: 2 * count])
        return near[np.argsort(values[near], kind="stable")[:count]]
    return np.argsort(values, kind="stable")[:count]


def least_eigenvalues(blocks: Array) -> Array:
    """λ_min of a stack of symmetric matrices; in closed form up to 2×2, where most supports of small k live."""
    if blocks.shape[-1] == 1:
        return blocks[:, 0, 0]
    if blocks.shape[-1] == 2:
        a, b, c = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 1]
        top = (a + c) / 2 + np.hypot((a - c) / 2, b)
        # det / λ_max keeps the relative accuracy that the difference of the two would lose
        result: Array = np.where(top > 0, (a * c - b * b) / np.where(top > 0, top, 1.0), 0.0)
        return result
    return np.asarray(np.linalg.eigvalsh(blocks)[:, 0], dtype=np.float64)


def by_engine(arena: Arena, mask: Mask, *, count: int, below: float | None) -> Evaluation:
    """The same from the margin engine, for fields with too many supports for a table."""
    from rrf_design.planning.arena import NULL, Evaluation
    from solvers import margin, supports_below

    opened = np.flatnonzero(arena.opened(mask))
    rows = arena.operator.matrix[np.flatnonzero(arena.rows(arena.active(mask)))]
    if len(opened) < arena.n:
        rows = rows[:, np.concatenate([arena.columns[i] for i in opened])]
    sizes = [len(arena.columns[i]) for i in opened]
    worst = margin(rows, sizes, k=arena.k)
    if count == 1:
        return Evaluation(worst.value, (_local(opened, worst.groups, worst.support, worst.direction, worst.value),))
    threshold = below if below is not None else max(worst.value * 1.05, NULL * arena.scale)
    found = supports_below(rows, sizes, size=arena.size, threshold=threshold, limit=4 * count)
    listed = [_local(opened, worst.groups, s.support, s.direction, s.value) for s in found.supports[:count]]
    return Evaluation(
        worst.value, tuple(listed or [_local(opened, worst.groups, worst.support, worst.direction, worst.value)])
    )


def _local(
    opened: NDArray[np.int64],
    groups: Sequence[NDArray[np.int64]],
    support: tuple[int, ...],
    direction: Array,
    value: float,
) -> Witness:
    vector = np.concatenate([direction[groups[i]] for i in support])
    return Witness(tuple(int(opened[i]) for i in support), vector, value)
