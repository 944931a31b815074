"""From B to what the kernels read: the columns of every node, the Gram matrix by nodes, its graph,
and room for every rounding error.

Exactness. Let Ĝ = fl(BᵀB), d_i = sqrt(Ĝ_ii). Every error on the way to a verdict about a support S
of q coordinates is bounded entrywise by a multiple of d_i d_j: forming Ĝ (γ_m with m the most
nonzeros in a column, by Cauchy–Schwarz), the elimination (γ_{q+1}, the classical componentwise
backward error of Cholesky), the whitening of blocks. And |Δ_ij| ≤ c·d_i d_j gives xᵀΔx ≤ c·q·Σ d_i²
x_i². So the kernels run on Ĝ with its diagonal multiplied by 1 − c·q: whatever then eliminates with
positive pivots has λ_min(G_SS) ≥ θ in exact arithmetic (Rump's verification of positive
definiteness, in a form that does not mind bad scaling).

Adjacency is a question about B, not about Ĝ: two nodes are adjacent when a row of B has entries at
both. An entry of Ĝ that cancelled to zero is kept as a zero, since a pair that is never tested
would be a false proof. And the argument above needs products that do not underflow: where columns
differ by more than 2¹⁰⁰ in size (`extreme`), no float is trusted, and every support is decided in
ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._exact import diagonal_share


@dataclass(frozen=True, slots=True)
class NodeColumns(Sequence[NDArray[np.int64]]):
    """The columns of node i are order[offsets[i]:offsets[i + 1]]; reads like a list of index
    arrays.
    """

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of_sizes(cls, sizes: Any) -> NodeColumns:
        offsets = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)
        return cls(order=np.arange(offsets[-1]), offsets=offsets)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def joined(self, nodes: Sequence[int]) -> NDArray[np.int64]:
        """The columns of some nodes, node by node."""
        return np.concatenate([self[i] for i in nodes]) if len(nodes) else np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, node: Any) -> Any:
        if isinstance(node, slice):
            return [self[i] for i in range(*node.indices(len(self)))]
        if not -len(self) <= node < len(self):
            raise IndexError(node)
        node = node % len(self)
        return self.order[self.offsets[node] : self.offsets[node + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NodeColumns)
            and np.array_equal(self.order, other.order)
            and np.array_equal(self.offsets, other.offsets)
        )

    __hash__ = None  # type: ignore[assignment]


def column_groups(groups: Sequence[Any] | None, columns: int) -> NodeColumns:
    """Column indices of every node.

    `groups` is a list of index lists, one per node (they must part the columns), or a list of sizes
    of consecutive runs; None gives every column a node of its own. ValueError says which entry
    doesn't fit.

    >>> from solvers import column_groups
    >>> [own.tolist() for own in column_groups([1, 2], 3)]
    [[0], [1, 2]]
    """
    if groups is None:
        if columns == 0:
            raise ValueError("groups: the field is empty; there must be at least one node")
        return NodeColumns.of_sizes(np.ones(columns, np.int64))
    if isinstance(groups, NodeColumns):
        return _checked(groups, columns)
    items = list(groups)
    if not items:
        raise ValueError("groups: the field is empty; there must be at least one node")
    if all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in items):
        sizes = np.array(items, dtype=np.int64)
        if (sizes < 1).any():
            node = int(np.argmax(sizes < 1))
            raise ValueError(f"groups: node {node} has size {sizes[node]}; every node needs a column")
        if sizes.sum() != columns:
            raise ValueError(f"groups: the sizes add up to {int(sizes.sum())}, but the matrix has {columns} columns")
        return NodeColumns.of_sizes(sizes)
    parts = []
    for node, item in enumerate(items):
        indices = np.atleast_1d(np.asarray(item))
        if indices.ndim != 1 or not len(indices) or not np.issubdtype(indices.dtype, np.integer):
            raise ValueError(f"groups: entry {node} must be a non-empty list of column numbers, not {item!r}")
        parts.append(indices.astype(np.int64))
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return _checked(NodeColumns(order=np.concatenate(parts), offsets=offsets), columns)


def _checked(groups: NodeColumns, columns: int) -> NodeColumns:
    if len(groups.order) != columns or not np.array_equal(np.sort(groups.order), np.arange(columns)):
        raise ValueError(f"groups: the lists must name each of the {columns} columns exactly once")
    return groups


MOST_PRODUCTS = 16  # per nonzero of B, for rows to be called short
LARGEST = 1e300  # a singular value of larger entries may leave the range of doubles
SMALLEST = 1e-150  # of the largest entry: squares of smaller ones underflow
WIDEST_SPREAD = (
    2.0**100
)  # of column sizes, up to which products of six entries and their Schur complements stay in range


@dataclass(frozen=True)
class Field:
    """B in node order, scaled by a power of two so that its largest entry is near 1 (which is
    exact).
    """

    matrix: sparse.csc_array  # (rows, coordinates), columns sorted by node
    exponent: int  # caller's matrix = matrix · 2**exponent
    groups: NodeColumns  # the caller's; column j here is the caller's column groups.order[j]
    rows: sparse.csr_array | None = None  # the same matrix by rows, where it came so
    joined: tuple[tuple[int, ...], ...] = ()  # node sets that count as adjacent among each other, whatever their rows

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
        """Ĝ over coordinates, with an entry (perhaps zero) for every pair that shares a row."""
        order = len(self.diagonal)
        row = np.repeat(np.arange(order), np.diff(self.couplings.indptr))
        places = (np.append(row, np.arange(order)), np.append(self.couplings.indices, np.arange(order)))
        return sparse.csr_array((np.append(self.couplings.data, self.diagonal), places), shape=(order, order))

    @cached_property
    def couplings(self) -> sparse.csr_array:
        """Ĝ off its diagonal: an entry for every pair of coordinates that shares a row of B, also
        where it cancelled to zero.
        """
        return self._with_joined(self._assembled[0]) if self.joined else self._assembled[0]

    def _with_joined(self, couplings: sparse.csr_array) -> sparse.csr_array:
        """The same with a zero between the first coordinates of every two nodes that are joined."""
        pairs = {pair for nodes in self.joined for pair in permutations(nodes, 2)}
        places = self.offsets[np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)]
        held = couplings.tocoo()
        at = (np.append(held.row, places[:, 0]), np.append(held.col, places[:, 1]))
        extended = sparse.csr_array((np.append(held.data, np.zeros(len(places))), at), shape=couplings.shape)
        extended.sum_duplicates()
        return extended

    @property
    def diagonal(self) -> NDArray[np.float64]:
        """Of Ĝ."""
        return self._assembled[1]

    @cached_property
    def _assembled(self) -> tuple[sparse.csr_array, NDArray[np.float64]]:
        """A dense matrix product where B is dense: its rounding is covered all the same."""
        if self.dense is not None:
            return _without_diagonal(_dense_couplings(self.dense, self.dense_gram)), self.dense_gram.diagonal().copy()
        rows = self.matrix.tocsr() if self.rows is None else self.rows
        products = float(np.sum(np.diff(rows.indptr).astype(np.float64) ** 2))
        if products > MOST_PRODUCTS * rows.nnz:
            gram = _on_pattern(rows, (self.matrix.T @ rows).tocsr())
            return _without_diagonal(gram), np.asarray(gram.diagonal())
        from solvers.kernels.assemble import couplings_of_rows, squared_norms

        ends = np.zeros(rows.shape[1] + 1, np.int32 if products < 2**31 else np.int64)
        return _csr(*couplings_of_rows(*_arrays(rows), ends)), squared_norms(_arrays(self.matrix)[0], self.matrix.data)

    @cached_property
    def extreme(self) -> bool:
        """Do columns differ so much in size that products of their entries may underflow?"""
        norms = self.column_norms[self.column_norms > 0.0]
        tiny = len(norms) < np.count_nonzero(np.diff(self.matrix.indptr))  # squares that are zero already
        return bool(tiny or norms.max(initial=1.0) > WIDEST_SPREAD * norms.min(initial=1.0))

    @cached_property
    def column_nonzeros(self) -> int:
        return int(np.diff(self.matrix.indptr).max(initial=0))

    @cached_property
    def column_norms(self) -> NDArray[np.float64]:
        return np.asarray(np.sqrt(self.diagonal))

    @cached_property
    def longest(self) -> float:
        """The length of the longest column: what zero is measured by."""
        return float(self.column_norms.max(initial=0.0))

    @cached_property
    def graph(self) -> sparse.csr_array:
        """Node adjacency (no loops): which nodes share a row of B. Entries say where, not how
        much.
        """
        if self.scalar:
            return self.couplings
        entries = self.couplings.tocoo()
        owner = np.repeat(np.arange(self.n), self.dims)
        i, j = owner[entries.row], owner[entries.col]
        keep = i != j
        adjacency = sparse.csr_array((np.ones(keep.sum(), np.int8), (i[keep], j[keep])), shape=(self.n, self.n))
        adjacency.sum_duplicates()
        adjacency.data[:] = 1
        adjacency.sort_indices()
        return adjacency

    @cached_property
    def full(self) -> bool:
        """Whether every pair of coordinates is coupled: one component, and nothing to gain from
        sparsity.
        """
        order = len(self.diagonal)
        return bool(self.couplings.nnz == order * (order - 1))

    @cached_property
    def components(self) -> tuple[NDArray[np.int64], ...]:
        """Node lists of the connected components, by smallest node."""
        return (np.arange(self.n),) if self.full else _components(self.graph)

    def components_without(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Those of the field without some nodes, in the names of the field."""
        left = np.delete(np.arange(self.n), nodes)
        return tuple(left[own] for own in _components(self.graph[left][:, left].tocsr()))

    def shrink(self, size: int) -> float:
        """1 − c·q for supports of `size` nodes: what the diagonal is multiplied by before a
        proof.
        """
        widest = int(self.dims.max())
        q = min(size * widest, int(self.offsets[-1]))
        return diagonal_share(q, widest, self.column_nonzeros)

    def columns_of(self, support: Any) -> NDArray[np.int64]:
        """Coordinates (in node order) of a set of nodes."""
        nodes = np.asarray(support, np.int64)
        return np.repeat(self.offsets[nodes], self.dims[nodes]) + within(self.dims[nodes])

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


def _components(graph: sparse.csr_array) -> tuple[NDArray[np.int64], ...]:
    """Node lists of the connected components of a graph, by smallest node."""
    from solvers.kernels.assemble import component_labels

    labels = component_labels(*_arrays(graph)[:2])
    if not labels.any():
        return (np.arange(len(labels)),)
    by_label = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[by_label])) + 1
    return tuple(np.split(by_label, cuts))


def within(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, …, d − 1 for every size d, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def _compressed_rows(dense: NDArray[Any]) -> sparse.csr_array:
    """The CSR form of an array; at once where no entry is zero."""
    if dense.size == 0 or not dense.all():
        return sparse.csr_array(dense)
    rows, columns = dense.shape
    index = np.tile(np.arange(columns, dtype=np.int32), rows)
    pointer = np.arange(0, rows * columns + 1, columns, dtype=np.int64 if rows * columns >= 2**31 else np.int32)
    return sparse.csr_array((dense.ravel(), index, pointer), shape=dense.shape)


def _dense_couplings(matrix: NDArray[np.float64], gram: NDArray[np.float64]) -> sparse.csr_array:
    """Ĝ in CSR form, with an entry for every two columns that share a row of the matrix."""
    if gram.all():
        return _compressed_rows(gram)
    held = (matrix != 0.0).astype(np.float32)
    shared = held.T @ held > 0.0  # sums of ones: no rounding makes them zero
    pointer = np.append(0, np.cumsum(shared.sum(axis=1)))
    return sparse.csr_array((gram[shared], np.nonzero(shared)[1], pointer), shape=gram.shape)


def _on_pattern(rows: sparse.csr_array, gram: sparse.csr_array) -> sparse.csr_array:
    """Ĝ with an entry for every two columns that share a row, whatever the product did with sums
    that cancelled.
    """
    ones = sparse.csr_array((np.ones(rows.nnz, np.float32), rows.indices, rows.indptr), shape=rows.shape)
    pattern = (ones.T @ ones).tocsr()
    for matrix in (pattern, gram):
        matrix.sort_indices()
    if pattern.nnz == gram.nnz:
        return gram
    width = gram.shape[1]
    places, held = (
        np.repeat(np.arange(width), np.diff(m.indptr)) * width + m.indices.astype(np.int64) for m in (pattern, gram)
    )
    data = np.zeros(pattern.nnz)
    data[np.searchsorted(places, held)] = gram.data
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=gram.shape)


def _without_diagonal(gram: sparse.csr_array) -> sparse.csr_array:
    """The off-diagonal entries of a CSR matrix."""
    from solvers.kernels.assemble import off_diagonal

    return _csr(*off_diagonal(*_arrays(gram)))


def _arrays(matrix: sparse.csr_array | sparse.csc_array) -> tuple[NDArray[Any], ...]:
    """(pointer, index, value) as the kernels read them."""
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int64, copy=False), matrix.data


def _csr(pointer: NDArray[np.int64], index: NDArray[np.int64], value: NDArray[np.float64]) -> sparse.csr_array:
    """A square matrix of these arrays; the constructor would copy them to shorter integers."""
    n = len(pointer) - 1
    matrix = sparse.csr_array((n, n))
    matrix.indptr, matrix.indices, matrix.data = pointer, index, value
    return matrix


def _doubles(given: NDArray[Any]) -> NDArray[np.float64]:
    """The same numbers as doubles; ValueError where that would change one."""
    try:
        with np.errstate(over="ignore"):
            data = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"B: must hold numbers that fit a double, not {given.dtype}") from None
    if given.dtype.kind in "iu":
        large = np.flatnonzero(np.abs(data) >= 2.0**53)
        changed = any(int(data[i]) != int(given[i]) for i in large)
    elif given.dtype.kind == "O":
        changed = any(x != y for x, y in zip(data, given, strict=True) if x == x)
    else:
        changed = given.dtype.itemsize > 8 and bool(np.any((data != given) & (given == given)))
    if changed:
        raise ValueError("B: holds integers beyond 2**53 or other numbers that doubles can't represent exactly")
    return data


def make_field(B: Any, groups: Any) -> Field:
    """Check B and groups; ValueError names the argument and what is wrong with it."""
    if sparse.issparse(B):
        matrix = B if B.format in ("csr", "csc") else sparse.csr_array(B)
    else:
        try:
            dense = np.asarray(B)
        except ValueError:
            raise ValueError("B: must be a matrix (rows of one length)") from None
        if dense.ndim != 2:
            raise ValueError(f"B: must be a matrix, not an array of {dense.ndim} dimensions")
        if not (np.issubdtype(dense.dtype, np.number) or dense.dtype == bool):
            raise ValueError(f"B: must hold numbers, not {dense.dtype}")
        if dense.dtype == np.float16:  # which scipy does not take
            dense = dense.astype(np.float64)
        matrix = _compressed_rows(dense.T).T
    if np.iscomplexobj(matrix.data):
        raise ValueError("B: must be real; stack real and imaginary parts as rows")
    if matrix.shape[1] == 0:
        raise ValueError("B: has no columns; the field is empty")
    columns = column_groups(groups, matrix.shape[1])
    data = _doubles(matrix.data)
    size = np.abs(data)
    largest = size.max(initial=0.0)
    if not np.isfinite(largest):
        raise ValueError("B: holds a NaN or an infinity")
    if largest > LARGEST:
        raise ValueError(f"B: holds numbers beyond {LARGEST:g}; rescale the field")
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    if np.ldexp(size.min(initial=np.inf, where=size > 0.0), -exponent) < SMALLEST:
        raise ValueError("B: its entries differ by more than 150 orders of magnitude; rescale the field")
    kind = sparse.csr_array if matrix.format == "csr" else sparse.csc_array
    scaled = kind((np.ldexp(data, -exponent), matrix.indices, matrix.indptr), shape=matrix.shape)
    if not (scaled.has_canonical_format and size.all()):
        scaled = scaled.copy()  # the indices are the caller's until here
        scaled.sum_duplicates()
        scaled.eliminate_zeros()
    if not np.array_equal(columns.order, np.arange(len(columns.order))):
        scaled = scaled[:, columns.order]
    by_column = scaled.tocsc()
    by_column.sort_indices()
    return Field(matrix=by_column, exponent=exponent, groups=columns, rows=scaled if scaled.format == "csr" else None)
