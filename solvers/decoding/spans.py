"""The field seen by a support search: one orthonormal basis per node, and how the bases overlap.

Which supports explain a syndrome depends only on the column spans of the nodes, so each block B_j is replaced by an
orthonormal basis Q_j of its span (padded with zero columns to one common width). Then G_jj = I, the gain of one node
is ‖Q_jᵀs‖², two nodes whose spans are orthogonal add their gains exactly, and a column that says nothing has gain 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dsyrk

from solvers.groups import NodeColumns

Array = NDArray[np.float64]

DEPENDENT = 1e-10
"""Directions that are shorter than this, relative to their node, count as linearly dependent (the paper's zero rule)."""
WELL_CONDITIONED = 1e-4
"""Relative eigenvalue of a node's Gram block above which orthonormalising from it costs four digits at most."""
DENSE_SHARE = 0.2
"""Matrices with more nonzeros than this share of their entries are handled as dense."""


@dataclass(frozen=True)
class Spans:
    """Bases of all nodes side by side: column block j of `basis` is Q_j, `width` columns each."""

    basis: Any  # (rows, n * width), ndarray or csc_array
    width: int
    nodes: int
    scale: Array  # (n,): length of the node's longest direction in the original operator

    @property
    def dense(self) -> bool:
        return isinstance(self.basis, np.ndarray)

    def project(self, vector: Array) -> Array:
        """Q_jᵀ v for all nodes, as (n, width)."""
        return np.asarray(self.basis.T @ vector).reshape(self.nodes, self.width)

    @cached_property
    def overlap(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Array]:
        """C_ij = Q_iᵀQ_j for all overlapping pairs: row pointers, neighbours (sorted), blocks (count, width, width).

        Blocks with i > j need not be filled: pairs are looked at once.
        """
        n, d = self.nodes, self.width
        if self.dense:
            gram = dsyrk(1.0, self.basis.T, lower=1).T
            if d > 1:
                gram = np.ascontiguousarray(gram.reshape(n, d, n, d).transpose(0, 2, 1, 3))
            blocks = gram.reshape(n * n, d, d)
            pointers = np.arange(0, n * n + 1, n, dtype=np.int32)
            return pointers, np.tile(np.arange(n, dtype=np.int32), n), blocks
        gram = (self.basis.T @ self.basis).tocsr()
        if d > 1:
            gram = gram.tobsr(blocksize=(d, d))
        gram.sort_indices()
        blocks = np.ascontiguousarray(gram.data).reshape(-1, d, d)
        return gram.indptr.astype(np.int32), gram.indices.astype(np.int32), blocks

    @cached_property
    def by_row(self) -> Any:
        return None if self.dense else self.basis.tocsr()

    def touching(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nodes whose span is not blind to all of these rows."""
        columns: NDArray[np.int64]
        if self.dense:
            columns = np.flatnonzero(np.any(self.basis[rows] != 0.0, axis=0))
        else:
            part = self.by_row[rows]
            columns = part.indices[part.data != 0.0].astype(np.int64)
        return np.unique(columns // self.width)

    def columns(self, support: tuple[int, ...]) -> Array:
        """The bases of a support, dense (rows, |S| * width)."""
        index = self._index(support)
        if self.dense:
            return np.asarray(self.basis[:, index])
        rows, local = local_part(self.basis, index)
        result = np.zeros((self.basis.shape[0], len(index)))
        result[rows] = local
        return result

    def residual(self, support: tuple[int, ...], vector: Array) -> float:
        """‖(I − Π_S) v‖, from an orthonormal basis of the span and not from a difference of squares."""
        if not support:
            return float(np.linalg.norm(vector))
        index = self._index(support)
        if self.dense:
            return float(np.linalg.norm(vector - _onto(self.basis[:, index], vector)))
        rows, local = local_part(self.basis, index)
        rest = vector.copy()
        if len(rows):
            rest[rows] -= _onto(local, vector[rows])
        return float(np.linalg.norm(rest))

    def _index(self, support: tuple[int, ...]) -> NDArray[np.int64]:
        return (np.array(support)[:, None] * self.width + np.arange(self.width)).ravel()


def local_part(matrix: Any, columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """Rows that these columns of a csc_array touch, and the dense block of them; much cheaper than slicing it."""
    starts, ends = matrix.indptr[columns].tolist(), matrix.indptr[columns + 1].tolist()
    cuts = [slice(a, b) for a, b in zip(starts, ends, strict=True)]
    rows, where = np.unique(np.concatenate([matrix.indices[cut] for cut in cuts]), return_inverse=True)
    local = np.zeros((len(rows), len(columns)))
    first = 0
    for column, cut in enumerate(cuts):
        last = first + cut.stop - cut.start
        local[where[first:last], column] = matrix.data[cut]
        first = last
    return rows, local


def _onto(columns: Array, vector: Array) -> Array:
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    left = left[:, values > DEPENDENT]
    return np.asarray(left @ (left.T @ vector))


def as_operator(matrix: Any) -> Any:
    """A float64 copy: ndarray when it is mostly filled, csc_array otherwise; ValueError for what is no finite matrix."""
    if sparse.issparse(matrix):
        result = sparse.csc_array(matrix, dtype=np.float64, copy=True)
        result.sum_duplicates()
        result.eliminate_zeros()
        values = result.data
    else:
        result = np.array(matrix, dtype=np.float64)
        if result.ndim != 2:
            raise ValueError(f"B must be a matrix, not an array of {result.ndim} dimensions")
        values = result
    if not np.isfinite(values).all():
        raise ValueError("B holds a NaN or an infinity")
    size = result.shape[0] * result.shape[1]
    if sparse.issparse(result):
        return result.toarray() if size <= 4096 or result.nnz > DENSE_SHARE * size else result
    return result if size <= 2**16 or np.count_nonzero(result) > DENSE_SHARE * size else sparse.csc_array(result)


def build_spans(operator: Any, groups: NodeColumns, *, scale: Array | None = None) -> Spans:
    """Bases of every node's columns; `scale` keeps the lengths of an operator this one was projected from.

    Well-conditioned nodes are orthonormalised all at once from their Gram blocks; the others one by one by SVD, since
    a Gram matrix squares the condition number.
    """
    n = len(groups)
    width = int(groups.sizes.max())
    if width == 1:
        return _scalar_spans(operator, groups, scale)
    padded = _padded(operator, groups, width)
    values, vectors = np.linalg.eigh(_diagonal_blocks(padded, n, width))
    values = np.maximum(values, 0.0)
    lengths = np.sqrt(values[:, -1]) if scale is None else scale
    useful = values > WELL_CONDITIONED * np.square(lengths)[:, None]
    plain = useful.sum(axis=1) == groups.sizes
    factors = np.where(useful & plain[:, None], 1.0 / np.sqrt(np.where(useful, values, 1.0)), 0.0)
    whiteners = vectors * factors[:, None, :]
    if isinstance(padded, np.ndarray):
        basis = np.matmul(padded.reshape(-1, n, width).transpose(1, 0, 2), whiteners)
        basis = np.ascontiguousarray(basis.transpose(1, 0, 2)).reshape(-1, n * width)
        for j in np.flatnonzero(~plain):
            left = _orthonormal(operator[:, groups[j]], lengths[j])
            basis[:, j * width : j * width + left.shape[1]] = left
        return Spans(basis, width, n, lengths)
    blocks = sparse.bsr_array((whiteners, np.arange(n), np.arange(n + 1)), shape=(n * width, n * width))
    basis = (padded @ blocks.tocsc()) + _delicate_bases(operator, groups, np.flatnonzero(~plain), lengths, width)
    basis = sparse.csc_array(basis)
    basis.eliminate_zeros()
    return Spans(basis, width, n, lengths)


def _padded(operator: Any, groups: NodeColumns, width: int) -> Any:
    """The columns node by node, each node filled up to `width` with zero columns."""
    sizes = groups.sizes
    place = (
        np.repeat(np.arange(len(groups)) * width, sizes)
        + np.arange(len(groups.order))
        - np.repeat(groups.offsets[:-1], sizes)
    )
    target = np.empty_like(place)
    target[groups.order] = place
    shape = (operator.shape[0], len(groups) * width)
    if isinstance(operator, np.ndarray):
        result = np.zeros(shape)
        result[:, target] = operator
        return result
    owner = np.repeat(np.arange(operator.shape[1]), np.diff(operator.indptr))
    return sparse.csc_array((operator.data, (operator.indices, target[owner])), shape=shape)


def _diagonal_blocks(padded: Any, n: int, width: int) -> Array:
    """B_jᵀB_j for all nodes, as (n, width, width)."""
    if isinstance(padded, np.ndarray):
        parts = padded.reshape(-1, n, width)
        return np.asarray(np.matmul(parts.transpose(1, 2, 0), parts.transpose(1, 0, 2)))
    gram = sparse.coo_array(padded.T @ padded)
    rows, columns = gram.coords
    same = rows // width == columns // width
    result = np.zeros((n, width, width))
    result[rows[same] // width, rows[same] % width, columns[same] % width] = gram.data[same]
    return result


def _delicate_bases(operator: Any, groups: NodeColumns, nodes: Any, lengths: Array, width: int) -> Any:
    """Sparse bases of the nodes that need an SVD of their own."""
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    entries: list[Array] = []
    for j in nodes:
        where, local = local_part(operator, groups[j])
        left = _orthonormal(local, lengths[j])
        r, c = np.nonzero(left)
        rows.append(where[r].astype(np.int64))
        columns.append(c + j * width)
        entries.append(left[r, c])
    shape = (operator.shape[0], len(groups) * width)
    if not rows:
        return sparse.csc_array(shape)
    return sparse.csc_array((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def _orthonormal(columns: Array, length: float) -> Array:
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > DEPENDENT * length]) if length > 0.0 else left[:, :0]


def _scalar_spans(operator: Any, groups: NodeColumns, scale: Array | None) -> Spans:
    ordered = np.array_equal(groups.order, np.arange(operator.shape[1]))
    matrix = operator if ordered else operator[:, groups.order]
    dense = isinstance(matrix, np.ndarray)
    if dense:
        norms = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    else:
        owner = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
        norms = np.sqrt(np.bincount(owner, np.square(matrix.data), minlength=matrix.shape[1]))
    lengths = norms if scale is None else scale
    factors = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > DEPENDENT * lengths)
    if dense:
        return Spans(matrix * factors, 1, len(groups), lengths)
    scaled = sparse.csc_array((matrix.data * factors[owner], matrix.indices, matrix.indptr), shape=matrix.shape)
    if not factors.all():
        scaled = scaled.copy()  # it shares its pattern with the operator, which must keep its own
        scaled.eliminate_zeros()
    return Spans(scaled, 1, len(groups), lengths)


def project_out(operator: Any, basis: Array) -> Any:
    """(I − QQᵀ)B with orthonormal Q, twice for orthogonality to working precision; sparse stays sparse."""
    if isinstance(operator, np.ndarray):
        for _ in range(2):
            operator = operator - basis @ (basis.T @ operator)
        return operator
    thin = sparse.csc_array(basis)
    for _ in range(2):
        operator = sparse.csc_array(operator - thin @ (thin.T @ operator))
    operator.eliminate_zeros()
    return operator


def span_of(columns: Array) -> Array:
    """An orthonormal basis of the columns, each of them first brought to unit length."""
    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 0] / norms[norms > 0]
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > DEPENDENT])
