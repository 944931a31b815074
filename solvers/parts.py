"""A field as the kernels read it: its dense components one by one, everything else together.

A `Part` holds plain arrays, so that processes share them by memory map, and asks its own kernel the one question of
`solvers.kernels`: which supports can't be proven to have λ_min(G_SS) ≥ θ?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers.gram import Field, within, without_diagonal

Support = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """Some components of the field, as one kernel reads them. Plain arrays, so that processes share them by memory map."""

    kind: str  # "dense", "block", "sparse", "sparse_block"
    nodes: NDArray[np.int64]  # (n,) names
    arrays: tuple[NDArray[Any], ...]
    size: int

    @property
    def weight(self) -> float:
        """Roughly, elementary operations per root: for deciding how many tasks are worth their overhead."""
        n = len(self.nodes)
        if self.kind in ("dense", "block"):
            return float(self.arrays[0].size * n ** max(self.size - 4, 0) / math.factorial(max(self.size - 4, 1)))
        return (len(self.arrays[1]) / max(n, 1)) ** self.size * 10.0

    @property
    def noise(self) -> float:
        """An eigenvalue below this may be rounding of a Gram matrix, and is no reason to lower θ."""
        diagonal = self.arrays[0].diagonal() if self.kind in ("dense", "block") else self.arrays[-2]
        return 1e-9 * float(np.max(diagonal, initial=0.0))

    def centres(self, theta: float) -> tuple[NDArray[np.int64], int]:
        """Positions in search order, centres first, and how many those are."""
        from solvers.kernels import block, dense, sparse_block
        from solvers.kernels import sparse as sparse_kernel
        from solvers.kernels.emit import CENTRE_SLACK

        if self.kind == "dense":
            return dense.centre_order(_minus(self.arrays[0], theta), self.size)  # type: ignore[no-any-return]
        if self.kind == "block":
            return block.block_centres(_minus(self.arrays[0], theta), self.arrays[1], self.size)  # type: ignore[no-any-return]
        if self.kind == "sparse":
            pointer, index, value, diagonal, _ = self.arrays
            stars = sparse_kernel.sparse_stars(pointer, index, value, diagonal - theta, self.size)
        else:
            pointer, index, value, dims, diagonal, _ = self.arrays
            stars = sparse_block.sparse_block_stars(
                pointer, index, value, dims, _minus_blocks(diagonal, theta), self.size
            )
        central = stars > 1.0 - CENTRE_SLACK
        centres = np.flatnonzero(central)
        centres = centres[np.argsort(-stars[centres], kind="stable")]
        return np.concatenate([centres, np.flatnonzero(~central)]), len(centres)

    def scan(
        self, theta: float, order: NDArray[np.int64], roots: NDArray[np.int64], stop: NDArray[np.int64], limit: int
    ) -> tuple[int, NDArray[np.int64]]:
        """(roots finished, supports found by name): when not all roots are finished, time or `limit` ran out."""
        from solvers.kernels import block, dense, sparse_block
        from solvers.kernels import sparse as sparse_kernel

        out = np.empty((limit, self.size), np.int64)
        if self.kind == "dense":
            ordered = np.ascontiguousarray(_minus(self.arrays[0], theta)[np.ix_(order, order)])
            count, done = dense.scan_dense(ordered, self.nodes[order], roots, self.size, stop, out)
            return done, out[: min(count, limit)]
        if self.kind == "block":
            matrix, offsets = self.arrays
            columns = np.concatenate([np.arange(offsets[a], offsets[a + 1]) for a in order])
            cuts = np.concatenate([[0], np.cumsum(np.diff(offsets)[order])])
            ordered = np.ascontiguousarray(_minus(matrix, theta)[np.ix_(columns, columns)])
            count, done = block.scan_blocks(ordered, cuts, self.nodes[order], roots, self.size, stop, out)
            return done, out[: min(count, limit)]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        if self.kind == "sparse":
            pointer, index, value, diagonal, goal = self.arrays
            count, done = sparse_kernel.scan_sparse(
                pointer, index, value, diagonal - theta, rank, goal, order[roots], stop, out
            )
        else:
            pointer, index, value, dims, diagonal, goal = self.arrays
            count, done = sparse_block.scan_sparse_blocks(
                pointer, index, value, dims, _minus_blocks(diagonal, theta), rank, goal, order[roots], stop, out
            )
        found = out[: min(count, limit)]
        return done, np.where(found >= 0, self.nodes[found], -1)

    def blocks(self, supports: Sequence[Support]) -> NDArray[np.float64]:
        """The shrunk Gram blocks of supports of this part, padded to one width."""
        from solvers.kernels.gather import gather_dense, gather_sparse

        places = np.full((len(supports), self.size), -1, np.int64)
        for m, support in enumerate(supports):
            places[m, : len(support)] = np.searchsorted(self.nodes, support)
        if self.kind in ("dense", "block"):
            matrix = self.arrays[0]
            offsets = np.arange(len(matrix) + 1) if self.kind == "dense" else self.arrays[1]
            widest = int(np.diff(offsets).max())
            return gather_dense(matrix, offsets, places, self.size * widest)  # type: ignore[no-any-return]
        if self.kind == "sparse":
            pointer, index, value, diagonal, _ = self.arrays
            dims = np.ones(len(diagonal), np.int64)
            value, diagonal = value[:, None, None], diagonal[:, None, None]
        else:
            pointer, index, value, dims, diagonal, _ = self.arrays
        return gather_sparse(  # type: ignore[no-any-return]
            pointer, index, value, dims, diagonal, places, self.size * diagonal.shape[1]
        )

    def values(self, supports: Sequence[Support]) -> NDArray[np.float64]:
        """λ_min of each, in plain floating point."""
        return np.asarray(np.linalg.eigvalsh(self.blocks(supports))[:, 0], dtype=np.float64)

    def proven(self, supports: Sequence[Support], theta: float) -> NDArray[np.bool_]:
        """Which of them have λ_min ≥ θ, proven by a Cholesky of the shrunk block."""
        from solvers.kernels.gather import proven

        return proven(self.blocks(supports), np.full(len(supports), theta))  # type: ignore[no-any-return]


def parts_of(field: Field, size: int) -> list[Part]:
    """Dense components one by one, everything else together."""
    shrink = field.shrink(size)
    degrees = None if field.full else np.diff(field.graph.indptr)
    parts: list[Part] = []
    rest = []
    for nodes in field.components:
        n = len(nodes)
        filled = degrees is None or degrees[nodes].sum() > 0.25 * n * (n - 1)
        small_enough = field.scalar or n * int(field.dims.max()) <= 3000
        if n > size > 1 and filled and small_enough and len(parts) < 16:
            parts.append(dense_part(field, nodes, size, shrink))
        else:
            rest.append(nodes)
    if rest:
        parts.append(sparse_part(field, np.sort(np.concatenate(rest)), rest, size, shrink))
    return parts


def dense_part(field: Field, nodes: NDArray[np.int64], size: int, shrink: float) -> Part:
    if len(nodes) == field.n:
        gram = field.dense_gram
    else:
        columns = field.columns_of(nodes)
        gram = field.gram[columns][:, columns].toarray()
    gram = (gram + gram.T) * 0.5
    np.fill_diagonal(gram, gram.diagonal() * shrink)
    if field.scalar:
        return Part("dense", nodes, (gram,), size)
    offsets = np.concatenate([[0], np.cumsum(field.dims[nodes])])
    return Part("block", nodes, (gram, offsets), size)


def sparse_part(
    field: Field, nodes: NDArray[np.int64], components: list[NDArray[np.int64]], size: int, shrink: float
) -> Part:
    everything = len(nodes) == field.n
    goal = np.empty(field.n, np.int64)
    for part in components:
        goal[part] = min(size, len(part))
    if field.scalar:
        edges = field.graph if everything else without_diagonal(field.gram[nodes][:, nodes])
        diagonal = (field.diagonal if everything else field.diagonal[nodes]) * shrink
        arrays = (edges.indptr, edges.indices, edges.data, diagonal)
        return Part("sparse", nodes, (*arrays, goal[nodes]), size)
    dims = field.dims[nodes]
    widest = int(dims.max())
    if everything:
        gram = field.gram.tocoo()
    else:
        columns = field.columns_of(nodes)
        gram = field.gram[columns][:, columns].tocoo()
    padded = np.repeat(np.arange(len(nodes)), dims) * widest + within(dims)
    shape = (len(nodes) * widest, len(nodes) * widest)
    blocks = sparse.bsr_array(
        sparse.csr_array((gram.data, (padded[gram.row], padded[gram.col])), shape=shape), blocksize=(widest, widest)
    )
    blocks.sort_indices()
    row = np.repeat(np.arange(len(nodes)), np.diff(blocks.indptr))
    keep = (row != blocks.indices) & (blocks.data != 0.0).any(axis=(1, 2))
    pointer = np.concatenate([[0], np.cumsum(np.bincount(row[keep], minlength=len(nodes)))]).astype(np.int64)
    diagonal = np.zeros((len(nodes), widest, widest))
    diagonal[row[row == blocks.indices]] = blocks.data[row == blocks.indices]
    diagonal = (diagonal + diagonal.transpose(0, 2, 1)) * 0.5
    corner = np.arange(widest)
    diagonal[:, corner, corner] *= shrink
    values = np.ascontiguousarray(blocks.data[keep])
    return Part(
        "sparse_block",
        nodes,
        (pointer, blocks.indices[keep].astype(np.int64), values, dims, diagonal, goal[nodes]),
        size,
    )


def _minus(matrix: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    result = matrix.copy()
    np.fill_diagonal(result, result.diagonal() - theta)
    return result


def _minus_blocks(diagonal: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    result = diagonal.copy()
    corner = np.arange(result.shape[1])
    result[:, corner, corner] -= theta
    return result
