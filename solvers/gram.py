"""From B to what the kernels read: the Gram matrix by nodes, its graph, and room for every rounding error.

Exactness. Let Ĝ = fl(BᵀB), d_i = sqrt(Ĝ_ii). Every error on the way to a verdict about a support S of q coordinates
is bounded entrywise by a multiple of d_i d_j: forming Ĝ (γ_m with m the most nonzeros in a column, by Cauchy–Schwarz),
the elimination (γ_{q+1}, the classical componentwise backward error of Cholesky), the whitening of blocks. And
|Δ_ij| ≤ c·d_i d_j gives xᵀΔx ≤ c·q·Σ d_i² x_i². So the kernels run on Ĝ with its diagonal multiplied by 1 − c·q:
whatever then eliminates with positive pivots has λ_min(G_SS) ≥ θ in exact arithmetic (Rump's verification of
positive definiteness, in a form that does not mind bad scaling).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from solvers.groups import NodeColumns, column_groups

UNIT = 2.0**-53


@dataclass(frozen=True)
class Field:
    """B in node order, scaled by a power of two so that its largest entry is near 1 (which is exact)."""

    matrix: sparse.csc_array  # (rows, coordinates), columns sorted by node
    exponent: int  # caller's matrix = matrix · 2**exponent
    groups: NodeColumns  # the caller's; column j here is the caller's column groups.order[j]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(n + 1,): node i has the columns offsets[i]:offsets[i + 1]."""
        return self.groups.offsets

    @property
    def n(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def dims(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def scalar(self) -> bool:
        return bool(self.offsets[-1] == self.n)

    @cached_property
    def dense(self) -> NDArray[np.float64] | None:
        """B as an array, where it is mostly nonzero and not large."""
        rows, columns = self.matrix.shape
        if self.matrix.nnz > 0.25 * rows * columns and columns <= 4000:
            return np.asarray(self.matrix.toarray())
        return None

    @cached_property
    def dense_gram(self) -> NDArray[np.float64]:
        """Ĝ as an array, for the kernels that read it so."""
        return np.asarray(self.gram.toarray()) if self.dense is None else self.dense.T @ self.dense

    @cached_property
    def gram(self) -> sparse.csr_array:
        """Ĝ over coordinates. A dense matrix product where B is dense: its rounding is covered all the same."""
        if self.dense is not None:
            return compressed_rows(self.dense_gram)
        return (self.matrix.T @ self.matrix).tocsr()

    @cached_property
    def column_nonzeros(self) -> int:
        return int(np.diff(self.matrix.indptr).max(initial=0))

    @cached_property
    def column_norms(self) -> NDArray[np.float64]:
        return np.asarray(np.sqrt(self.gram.diagonal()))

    @cached_property
    def graph(self) -> sparse.csr_array:
        """Node adjacency (no loops): where Ĝ has a nonzero block. A product that cancels in rounding is covered by `shrink`."""
        if self.scalar:
            return without_diagonal(self.gram)
        entries = self.gram.tocoo()
        owner = np.repeat(np.arange(self.n), self.dims)
        i, j = owner[entries.row], owner[entries.col]
        keep = (i != j) & (entries.data != 0.0)
        adjacency = sparse.csr_array((np.ones(keep.sum(), np.int8), (i[keep], j[keep])), shape=(self.n, self.n))
        adjacency.sum_duplicates()
        adjacency.data[:] = 1
        adjacency.sort_indices()
        return adjacency

    @cached_property
    def full(self) -> bool:
        """Whether every pair of coordinates is coupled: one component, and nothing to gain from sparsity."""
        return self.gram.nnz == self.gram.shape[0] ** 2 and bool(self.gram.data.all())

    @cached_property
    def components(self) -> tuple[NDArray[np.int64], ...]:
        """Node lists of the connected components, by smallest node."""
        if self.full:
            return (np.arange(self.n),)
        _, labels = csgraph.connected_components(self.graph, directed=False)
        by_label = np.argsort(labels, kind="stable")
        cuts = np.flatnonzero(np.diff(labels[by_label])) + 1
        parts = np.split(by_label, cuts)
        return tuple(sorted((np.sort(part) for part in parts), key=lambda part: int(part[0])))

    def shrink(self, size: int) -> float:
        """1 − c·q for supports of `size` nodes: what the diagonal is multiplied by before a proof."""
        widest = int(self.dims.max())
        q = min(size * widest, int(self.offsets[-1]))
        return 1.0 - 1.01 * q * (self.column_nonzeros + 4 * q * widest + 64) * UNIT

    def columns_of(self, support: Any) -> NDArray[np.int64]:
        """Coordinates (in node order) of a set of nodes."""
        return np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in support])

    def restrict(self, support: Any) -> NDArray[np.float64]:
        """B_S as an array; without its zero rows where B is sparse."""
        columns = self.columns_of(support)
        if self.dense is not None:
            return self.dense[:, columns]
        pointer, index = self.matrix.indptr, self.matrix.indices
        spans = [slice(int(pointer[c]), int(pointer[c + 1])) for c in columns]
        rows, place = np.unique(np.concatenate([index[span] for span in spans]), return_inverse=True)
        block = np.zeros((len(rows), len(columns)))
        block[place, np.repeat(np.arange(len(columns)), [s.stop - s.start for s in spans])] = np.concatenate(
            [self.matrix.data[span] for span in spans]
        )
        return block

    def embed(self, support: Any, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """A vector on a support as a vector over the caller's coordinates."""
        result = np.zeros(len(self.groups.order))
        result[self.groups.order[self.columns_of(support)]] = vector
        return result


def compressed_rows(dense: NDArray[Any]) -> sparse.csr_array:
    """The CSR form of an array; at once where no entry is zero."""
    if dense.size == 0 or not dense.all():
        return sparse.csr_array(dense)
    rows, columns = dense.shape
    index = np.tile(np.arange(columns, dtype=np.int32), rows)
    pointer = np.arange(0, rows * columns + 1, columns, dtype=np.int64 if rows * columns >= 2**31 else np.int32)
    return sparse.csr_array((dense.ravel(), index, pointer), shape=dense.shape)


def without_diagonal(gram: sparse.csr_array) -> sparse.csr_array:
    """The off-diagonal nonzeros of a CSR matrix, indices sorted."""
    if not gram.has_sorted_indices:
        gram = gram.sorted_indices()
    row = np.repeat(np.arange(gram.shape[0], dtype=gram.indices.dtype), np.diff(gram.indptr))
    keep = (gram.indices != row) & (gram.data != 0.0)
    kept = np.concatenate([[0], np.cumsum(keep)])
    return sparse.csr_array((gram.data[keep], gram.indices[keep], kept[gram.indptr]), shape=gram.shape)


def make_field(B: Any, groups: Any) -> Field:
    """Check B and groups; ValueError names the argument and what is wrong with it."""
    if sparse.issparse(B):
        matrix = sparse.csc_array(B)
    else:
        try:
            dense = np.asarray(B)
        except ValueError:
            raise ValueError("B: must be a matrix (rows of one length)") from None
        if dense.ndim != 2:
            raise ValueError(f"B: must be a matrix, not an array of {dense.ndim} dimensions")
        if not (np.issubdtype(dense.dtype, np.number) or dense.dtype == bool):
            raise ValueError(f"B: must hold numbers, not {dense.dtype}")
        matrix = compressed_rows(dense.T).T
    if np.iscomplexobj(matrix.data):
        raise ValueError("B: must be real; stack real and imaginary parts as rows")
    if matrix.shape[1] == 0:
        raise ValueError("B: has no columns; the field is empty")
    given = matrix.data
    data = given.astype(np.float64)
    if np.issubdtype(given.dtype, np.integer) and not np.array_equal(data.astype(given.dtype), given):
        raise ValueError("B: holds integers beyond 2**53, which doubles can't represent exactly")
    if not np.isfinite(data).all():
        raise ValueError("B: holds a NaN or an infinity")
    columns = column_groups(groups, matrix.shape[1])
    largest = np.abs(data).max(initial=0.0)
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    if largest > 0 and np.abs(data[data != 0]).min() < largest * 1e-150:
        raise ValueError("B: its entries differ by more than 150 orders of magnitude; rescale the field")
    matrix = sparse.csc_array((np.ldexp(data, -exponent), matrix.indices, matrix.indptr), shape=matrix.shape)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.array_equal(columns.order, np.arange(len(columns.order))):
        matrix = matrix[:, columns.order]
    matrix.sort_indices()
    return Field(matrix=matrix, exponent=exponent, groups=columns)
