"""The field seen by a support search: one orthonormal basis per node, how the bases overlap, and
how wrong they can be.

Which supports explain a syndrome depends only on the column spans of the nodes, so each block B_j
is replaced by an orthonormal basis Q_j of its span (padded with zero columns to one common width).
Then G_jj = I, the gain of one node is ‖Q_jᵀs‖², two nodes whose spans are orthogonal add their
gains exactly, and a column that says nothing has gain 0.

Each Q_j is B_jW_j for some W_j, up to the rounding of that one product: `error` bounds it, so that
`Q_j − error` spans exactly what B_j spans, and a proof about the spans is a proof about B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._gram import NodeColumns

Array = NDArray[np.float64]

DEPENDENT = 1e-10
"""Directions that are shorter than this, relative to their node, count as linearly dependent (the
paper's zero rule).
"""
WELL_CONDITIONED = 1e-4
"""Relative eigenvalue of a node's Gram block above which orthonormalising from it costs four digits
at most.
"""
DENSE_SHARE = 0.2
"""Matrices with more nonzeros than this share of their entries are handled as dense."""
UNIT = 2.0**-53
"""Relative rounding of one float operation."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """A sparse matrix in compressed columns, without the checks that cost more than the work on
    small ones.
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: Any) -> _Columns:
        return cls(matrix.indptr, matrix.indices, matrix.data, matrix.shape)


@dataclass(frozen=True)
class Spans:
    """Bases of all nodes side by side: column block j of `basis` is Q_j, `width` columns each."""

    basis: Any  # (rows, n * width), ndarray or Columns
    width: int
    nodes: int
    scale: Array  # (n,): length of the node's longest direction in the original operator
    error: Array  # (n,): bound on ‖Q_j − Q‖ for some Q that spans exactly what the node spans
    dropped: NDArray[np.bool_]  # (n,): directions were taken for zero that are perhaps not exactly zero
    factors: Array | None = None
    """(n,): what the columns of `basis` are yet to be multiplied by; dense scalar fields do it when
    it is needed.
    """

    @property
    def dense(self) -> bool:
        return isinstance(self.basis, np.ndarray)

    @cached_property
    def bases(self) -> dict[tuple[int, ...], Any]:
        """What is known of supports, for the syndromes that follow."""
        return {}

    def project(self, vector: Array) -> Array:
        """Q_jᵀ v for all nodes, as (n, width)."""
        basis = self.basis
        if self.dense:
            products = basis.T @ vector
            if self.factors is not None:
                products *= self.factors
            return np.asarray(products).reshape(self.nodes, self.width)
        from solvers.kernels.support_spans import column_products

        products = column_products(basis.indptr, basis.indices, basis.data, vector)
        return np.asarray(products).reshape(self.nodes, self.width)

    @cached_property
    def overlap(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """C_ij = Q_iᵀQ_j for overlapping pairs i < j: row pointers, neighbours (sorted), blocks
        (count, width, width).

        Dense bases list all pairs, and what stands at i ≥ j is not to be read.
        """
        n, d = self.nodes, self.width
        if self.dense:
            from scipy.linalg.blas import dsyrk

            gram = dsyrk(1.0, (self.basis if self.factors is None else self.basis * self.factors).T, lower=1).T
            if d > 1:
                gram = np.ascontiguousarray(gram.reshape(n, d, n, d).transpose(0, 2, 1, 3))
            return np.arange(0, n * n + 1, n), np.tile(np.arange(n), n), gram.reshape(n * n, d, d)
        from solvers.kernels.support_spans import sparse_overlap

        basis = self.basis
        found: tuple[NDArray[np.int64], NDArray[np.int64], Array]
        found = sparse_overlap(basis.indptr, basis.indices, basis.data, basis.shape[0], d)
        return found

    @cached_property
    def shift(self) -> Array:
        """(n,): what each node adds to the perturbation of a bordered Gram matrix: ‖Q_jᵀQ_j − I‖
        and 4‖Q_j − Q‖.
        """
        height, d = self.basis.shape[0], self.width
        if d == 1:  # a column divided by its computed length
            return np.asarray(4.0 * self.error + 1.1 * (height + 8) * UNIT)
        blocks = _diagonal_blocks(self.basis, self.nodes, d)
        skew = blocks - np.eye(d)
        empty = np.einsum("naa->na", blocks) == 0.0  # padding: b and C vanish there, so the unit diagonal does no harm
        np.einsum("naa->na", skew)[empty] = 0.0
        measured = np.sqrt(np.einsum("nab,nab->n", skew, skew)) + 1.1 * d * (height + 3) * UNIT
        return np.asarray(measured + 4.0 * self.error)

    def columns(self, support: tuple[int, ...]) -> tuple[Any, Array]:
        """The bases of a support over the rows they touch: those rows, and the columns as (|S| *
        width, rows).
        """
        index = (np.array(support, dtype=np.int64)[:, None] * self.width + np.arange(self.width)).ravel()
        if self.dense:
            columns = np.ascontiguousarray(self.basis[:, index].T)
            return slice(None), columns if self.factors is None else columns * self.factors[index, None]
        rows, local = local_part(self.basis, index)
        return rows, local.T


def local_part(matrix: Any, columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """Rows that these columns of a csc_array touch, and the dense block of them; much cheaper than
    slicing it.
    """
    from solvers.kernels.support_spans import touched_part

    rows, block = touched_part(matrix.indptr, matrix.indices, matrix.data, columns)
    return rows, block.T


def as_operator(matrix: Any) -> Any:
    """A float64 copy: ndarray when it is mostly filled, csc_array otherwise; ValueError for what is
    no finite matrix.
    """
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
    if not _finite(values):
        raise ValueError("B holds a NaN or an infinity")
    size = result.shape[0] * result.shape[1]
    if sparse.issparse(result):
        return result.toarray() if size <= 4096 or result.nnz > DENSE_SHARE * size else result
    return result if size <= 2**16 or np.count_nonzero(result) > DENSE_SHARE * size else sparse.csc_array(result)


def _finite(values: Array) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        quick = np.isfinite(np.vdot(values, values))  # a sum of squares is finite only if they are: half the time
    return bool(quick or np.isfinite(values).all())


def column_squares(operator: Any) -> Array:
    """Squared length of every column."""
    if isinstance(operator, np.ndarray):
        return np.asarray(np.einsum("ij,ij->j", operator, operator))
    return np.asarray(np.bincount(_owner(operator), operator.data * operator.data, minlength=operator.shape[1]), float)


def _owner(operator: Any) -> NDArray[np.int64]:
    return np.repeat(np.arange(operator.shape[1]), np.diff(operator.indptr))


def tamed(operator: Any, groups: NodeColumns, squares: Array) -> Any:
    """The operator; with nodes scaled by powers of two where squares would overflow or vanish.

    Spans stay what they are.
    """
    if not operator.shape[0] or (squares.min() > 1e-200 and squares.max() < 1e200):
        return operator
    wild = np.flatnonzero(~((squares > 1e-200) & (squares < 1e200)))
    dense = isinstance(operator, np.ndarray)
    if not (operator[:, wild] if dense else np.diff(operator.indptr)[wild]).any():  # columns of zeros do no harm
        return operator
    columns = abs(operator).max(axis=0)
    largest = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray()).ravel()
    node = np.maximum.reduceat(largest[groups.order], groups.offsets[:-1])
    exponents = np.zeros(len(largest), dtype=np.int64)
    exponents[groups.order] = np.repeat(np.frexp(node)[1], groups.sizes)
    if dense:
        return np.ldexp(operator, -exponents)
    data = np.ldexp(operator.data, -exponents[_owner(operator)])
    return sparse.csc_array((data, operator.indices, operator.indptr), shape=operator.shape)


def build_spans(
    operator: Any,
    groups: NodeColumns,
    *,
    scale: Array | None = None,
    noise: Array | None = None,
    squares: Array | None = None,
) -> Spans:
    """Bases of every node's columns; `scale` keeps the lengths of an operator this one was
    projected from.

    `noise` (n,) bounds how far each node's columns are from the exact ones (Frobenius), `squares`
    are the columns' squared lengths where the caller has them. Well-conditioned nodes are
    orthonormalised all at once from their Gram blocks; the others one by one by SVD, since a Gram
    matrix squares the condition number.
    """
    n = len(groups)
    width = int(groups.sizes.max())
    if width == 1:
        return _scalar_spans(operator, groups, scale, noise, squares)
    padded = _padded(operator, groups, width)
    blocks = _diagonal_blocks(padded, n, width)
    values, vectors = np.linalg.eigh(blocks)
    values = np.maximum(values, 0.0)
    lengths = np.sqrt(values[:, -1]) if scale is None else scale
    useful = values > WELL_CONDITIONED * np.square(lengths)[:, None]
    plain = useful.sum(axis=1) == groups.sizes
    factors = np.where(useful & plain[:, None], 1.0 / np.sqrt(np.where(useful, values, 1.0)), 0.0)
    whiteners = vectors * factors[:, None, :]
    given = np.zeros(n) if noise is None else noise
    sizes = np.sqrt(np.einsum("naa->n", blocks))
    error = np.sqrt(np.square(factors).sum(axis=1)) * (1.1 * (width + 3) * UNIT * sizes + 1.1 * given)
    odd = np.flatnonzero(~plain)
    bases = [_orthonormal(operator, groups[j], float(lengths[j]), float(given[j])) for j in odd]
    error[odd] = [basis.error for basis in bases]
    dropped = np.zeros(n, dtype=np.bool_)
    dropped[odd] = [basis.dropped for basis in bases]
    if isinstance(padded, np.ndarray):
        result = np.matmul(padded.reshape(-1, n, width).transpose(1, 0, 2), whiteners)
        result = np.ascontiguousarray(result.transpose(1, 0, 2)).reshape(-1, n * width)
        for j, basis in zip(odd, bases, strict=True):
            result[basis.rows, j * width : j * width + basis.columns.shape[1]] = basis.columns
        return Spans(result, width, n, lengths, error, dropped)
    blocks = sparse.bsr_array((whiteners, np.arange(n), np.arange(n + 1)), shape=(n * width, n * width))
    thin = sparse.csc_array((padded @ blocks.tocsc()) + _delicate_bases(bases, odd, padded.shape, width))
    thin.eliminate_zeros()
    return Spans(_Columns.of(thin), width, n, lengths, error, dropped)


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
    from solvers.kernels.support_spans import node_grams

    grams: Array = node_grams(padded.indptr, padded.indices, padded.data, padded.shape[0], width)
    return grams


@dataclass(frozen=True, slots=True)
class _NodeBasis:
    rows: Any
    columns: Array  # (rows, rank)
    error: float
    dropped: bool


def _delicate_bases(bases: list[_NodeBasis], nodes: Any, shape: tuple[int, int], width: int) -> Any:
    """Sparse bases of the nodes that needed an SVD of their own."""
    if not bases:
        return sparse.csc_array(shape)
    rows, columns, entries = [], [], []
    for j, basis in zip(nodes, bases, strict=True):
        r, c = np.nonzero(basis.columns)
        rows.append(basis.rows[r].astype(np.int64))
        columns.append(c + j * width)
        entries.append(basis.columns[r, c])
    return sparse.csc_array((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def _orthonormal(operator: Any, columns: NDArray[np.int64], length: float, noise: float) -> _NodeBasis:
    """B_jW with W from the SVD, and not the left singular vectors: the error of a product is
    known.
    """
    if isinstance(operator, np.ndarray):
        rows: Any = slice(None)
        local = operator[:, columns]
    else:
        rows, local = local_part(operator, columns)
    if not length > 0.0 or not local.any():
        # exactly zero columns say nothing; what rounding may have left out is in the noise
        return _NodeBasis(rows, local[:, :0], 0.0, noise > 0.0)
    _, values, right = np.linalg.svd(local, full_matrices=False)
    useful = values > DEPENDENT * length
    whitener = right[useful].T / values[useful]
    error = float(np.linalg.norm(whitener)) * (
        1.1 * (len(columns) + 2) * UNIT * float(np.linalg.norm(local)) + 1.1 * noise
    )
    most = min(np.count_nonzero(local.any(axis=0)), np.count_nonzero(local.any(axis=1)))
    return _NodeBasis(rows, local @ whitener, error, bool(useful.sum() < most or (noise > 0.0 and not useful.all())))


def _scalar_spans(
    operator: Any, groups: NodeColumns, scale: Array | None, noise: Array | None, squares: Array | None
) -> Spans:
    ordered = np.array_equal(groups.order, np.arange(operator.shape[1]))
    matrix = operator if ordered else operator[:, groups.order]
    norms = np.sqrt(column_squares(matrix) if squares is None else squares[groups.order])
    lengths = norms if scale is None else scale
    useful = norms > DEPENDENT * lengths
    factors = np.divide(1.0, norms, out=np.zeros_like(norms), where=useful)
    if noise is None:
        error, dropped = np.full(len(groups), 1.1 * UNIT), ~useful & (norms > 0.0)
    else:
        error, dropped = 1.1 * (UNIT + noise * factors), ~useful & (noise > 0.0)
    if isinstance(matrix, np.ndarray):
        return Spans(matrix, 1, len(groups), lengths, error, dropped, factors)
    basis = _Columns(matrix.indptr, matrix.indices, matrix.data * factors[_owner(matrix)], matrix.shape)
    return Spans(basis, 1, len(groups), lengths, error, dropped)


def project_out(operator: Any, basis: Array) -> Any:
    """(I − QQᵀ)B with orthonormal Q, twice for orthogonality to working precision; sparse stays
    sparse.
    """
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


def products(rows: Array, matrix: Array) -> Array:
    """`rows @ matrix` (..., columns), added up term by term in one order.

    A library's product rounds a row one way or another as there are more or fewer of them.
    """
    found = rows[..., :1] * matrix[..., 0, :] if rows.shape[-1] else np.zeros((*rows.shape[:-1], matrix.shape[-1]))
    for place in range(1, rows.shape[-1]):
        found += rows[..., place, None] * matrix[..., place, :]
    return found


def left(data: Array, spans: Array) -> Array:
    """What orthonormal columns (..., rows, rank) leave of data (..., rows): (I − UUᵀ)s."""
    inner = products(data, spans)
    rest = np.broadcast_to(data, (*inner.shape[:-1], data.shape[-1])).copy()
    for place in range(spans.shape[-1]):
        rest -= inner[..., place, None] * spans[..., place]
    return rest


def lengths(vectors: Array) -> Array:
    """Of the last axis, squares added up in order."""
    found = np.zeros(vectors.shape[:-1])
    for place in range(vectors.shape[-1]):
        found += np.square(vectors[..., place])
    return np.asarray(np.sqrt(found))
