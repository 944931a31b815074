"""Where a fractional design is weak: connected supports whose λ_min is not clearly above the target.

A design that holds shares x_j of its blocks has G(x) = G₀ + Σ x_j C_jᵀC_j. Supports are enumerated as connected sets of the graph of
what is held at all, and an enumeration stops at the first prefix that fails (docs/algorithms.md, facts 2 and 3), which is seldom
later than at two or three nodes. Finds candidates for rows; proves nothing.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

Array = NDArray[np.float64]
DENSE = 4000  # coordinates up to which G is kept as one array
MOST = 4000  # prefixes looked at for one design
HELD = 1e-9


class WeakSupports:
    """The enumeration for one arena; keeps what does not change with the design."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        op = arena.operator
        self.offsets = np.ascontiguousarray(op.node_offsets, dtype=np.int64)
        self.matrix = sparse.csr_array(op.matrix)
        self.heights = np.diff(op.block_offsets)
        pairs = [(j, a, b) for j, nodes in enumerate(arena.block_nodes) for a, b in combinations(sorted(set(nodes)), 2)]
        self.pairs = np.array(pairs, dtype=np.int64).reshape(len(pairs), 3)

    def gram(self, held: Array) -> Array:
        """G of a design that holds such shares of all blocks, dense."""
        scaled = sparse.diags_array(np.sqrt(np.maximum(np.repeat(held, self.heights), 0.0))) @ self.matrix
        return np.ascontiguousarray((scaled.T @ scaled).toarray())

    def held(self, shares: Array) -> Array:
        """(blocks,): what a design with these shares of the variable blocks holds of each; hardly anything is nothing."""
        held = self.arena.permanent.astype(np.float64)
        held[self.arena.variable] = np.where(shares > HELD, shares, 0.0)
        return held

    def look(
        self, shares: Array, level: float, *, grown: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(prefixes, supports): the least sets with λ_min under `level`, and the same grown to full size, weakest first.

        With radii a set is weak when λ_min is under (√level + η)², where η is of the shares held. Rows are padded with −1. `grown` is another size for them to grow to.
        """
        from solvers.kernels.connected import grow_sets, weak_sets
        from solvers.kernels.uncertain import weak_uncertain_sets

        arena = self.arena
        held = self.held(shares)
        gram = self.gram(held)
        pointer, neighbours = self.graph(held > 0.0)
        size = min(arena.size, arena.n)
        out = np.full((MOST, size), -1, dtype=np.int64)
        everywhere = np.arange(arena.n)
        squares = held * np.square(arena.radii)
        if arena.robust:
            root = float(np.sqrt(level))
            count = weak_uncertain_sets(
                gram, self.offsets, self.joins, held > 0.0, squares, size, root, everywhere, everywhere, out
            )
        else:
            count = weak_sets(gram, self.offsets, pointer, neighbours, size, level, everywhere, everywhere, out)
        sets = np.full((count, min(grown or size, arena.n)), -1, dtype=np.int64)
        sets[:, :size] = out[:count]
        grow_sets(gram, self.offsets, pointer, neighbours, sets)
        least = self._least(gram, sets)
        if arena.robust:
            least = np.sqrt(np.maximum(least, 0.0)) - self._eta(squares, sets)
        order = np.argsort(least, kind="stable")
        return out[:count][order], sets[order]

    def _eta(self, squares: Array, sets: NDArray[np.int64]) -> Array:
        """η of each set: the root of the summed squares of the blocks that touch it."""
        from solvers.kernels.uncertain import uncertainty

        return np.sqrt([uncertainty(self.joins, squares, row, int((row >= 0).sum())) for row in sets])

    @cached_property
    def joins(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Blocks of each node and nodes of each block, each after a list of where they begin."""
        nodes = [sorted(set(nodes)) for nodes in self.arena.block_nodes]
        blocks: list[list[int]] = [[] for _ in range(self.arena.n)]
        for j, some in enumerate(nodes):
            for i in some:
                blocks[i].append(j)
        return (*_listed(blocks), *_listed(nodes))

    def _least(self, gram: Array, sets: NDArray[np.int64]) -> Array:
        """λ_min of each set; sets of one width at a time."""
        columns = [np.concatenate([np.arange(*self.offsets[i : i + 2]) for i in row if i >= 0]) for row in sets]
        widths = np.array([len(c) for c in columns], dtype=np.int64)
        result = np.zeros(len(sets))
        for width in np.unique(widths):
            which = np.flatnonzero(widths == width)
            some = np.array([columns[i] for i in which])
            result[which] = np.linalg.eigvalsh(gram[some[:, :, None], some[:, None, :]])[:, 0]
        return result

    def graph(self, held: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Neighbours of each node through the blocks held, as pointers and indices."""
        there = self.pairs[held[self.pairs[:, 0]]] if len(self.pairs) else self.pairs
        n = self.arena.n
        a, b = there[:, 1], there[:, 2]
        graph = sparse.csr_array((np.ones(2 * len(a)), (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(n, n))
        graph.sum_duplicates()
        return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


def _listed(lists: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each list begins (and the last ends), and all of them one after another."""
    ends = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return ends, np.array([i for some in lists for i in some], dtype=np.int64)
