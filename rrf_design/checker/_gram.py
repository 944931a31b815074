"""G = BᵀB as the verifier reads it: dense components as plain matrices, the rest as blocks along
the edges of a graph.

Both come with a diagonal that has been lowered once for all rounding that follows. With u the unit
roundoff, m the entries of a column and n the coordinates of the largest support: forming G errs by
at most γ_m‖b_i‖‖b_j‖; a factorisation, whole or partial, that runs through in floating point is
exact for a matrix that differs by at most 3(n + 4)u·√(g_ii·g_jj). An error matrix bounded by
c·d_i·d_j is at most n·c·diag(d_i²) in the semidefinite order, so it is enough to take n·c·g_ii off
every diagonal entry. Everything after that is a statement about the float matrix itself.

Two nodes are adjacent when a row of B has entries at both (with radii: when a row block touches
both). That is read off the pattern of B, never off G: a sum that cancelled in floating point is not
known to be zero. And where entries are so large, so small or so different that products may leave
the range of doubles (`record.calm` says no), no float is trusted: the diagonal is made negative, so
that every support is rejected here and settled in exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker._centres import Dense
from rrf_design.checker._couplings import WIDEST
from rrf_design.checker._enumeration import UNIT, Gram
from rrf_design.checker.kernel import kernel
from rrf_design.checker.record import OperatorRecord
from rrf_design.errors import Refused

PRODUCTS = 2_000_000_000  # of entries of one row, altogether: beyond it G takes minutes
ENTRIES = 100_000_000  # of G and of the search's memory: beyond it they would not fit
BLOCK_ENTRIES = 250_000_000  # of the blocks of G
ORDER = 4000  # coordinates of the largest support
PAIR_LIMIT = 60_000_000  # pairs of nodes that share a row: beyond it the adjacency would not fit
DENSE_COORDINATES = (
    3000  # components up to this size are searched as plain matrices, where a quarter of their pairs touch
)
DENSE_PARTS = 16  # and so many of them: thousands of small components are quicker to walk


@dataclass(frozen=True, slots=True)
class Field:
    """The dense components, and the graph with the nodes to walk from; either may be empty."""

    dense: tuple[Dense, ...]
    gram: Gram | None
    target: NDArray[np.int64]  # (nodes,): supports of this size, or of the component's


def field_of(record: OperatorRecord, size: int, radii2: NDArray[np.float64], *, plain: bool = False) -> Field:
    """Split the operator's graph.

    `plain`: walk everything, prune nothing (the slow and obvious way, for tests).
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    nodes, columns = len(record.node_ids), record.columns
    size = min(size, nodes)
    crowded = columns <= DENSE_COORDINATES and len(record.data) > 0.1 * record.rows * columns
    touches = record.incidence if len(radii2) else None
    _check_size(record, size, touches, crowded)
    plain = plain or not record.calm
    with np.errstate(all="ignore"):  # what leaves the range of doubles is not read: nothing is trusted then
        gram = _product(record, crowded)
    if crowded:
        full = nodes == columns and bool(gram.all())  # what is not zero is adjacent
        if not full:
            shared = (_rows_at_nodes(record) if touches is None else touches).toarray().astype(np.float32)
            adjacent = shared.T @ shared > 0.0  # sums of ones: no rounding makes them zero
            full = bool(adjacent.all())
        else:
            adjacent = np.ones((nodes, nodes), dtype=np.bool_)
        adjacency = None if full and not plain else sparse.csr_array(adjacent.astype(np.int64))
    else:
        adjacency = _adjacency(record, gram, touches)
    if adjacency is None:
        component, count = np.zeros(nodes, dtype=np.int64), 1
    else:
        adjacency = _without_diagonal(adjacency)
        count, component = connected_components(adjacency, directed=False)
    members = np.bincount(component, minlength=count)
    target = np.minimum(size, members)[component].astype(np.int64)
    diagonal = lowered(record, gram.diagonal(), target) if record.calm else np.full(columns, -1.0)
    dense: list[Dense] = []
    walked = np.ones(nodes, dtype=np.bool_)
    for chosen in () if plain else _crowded_components(record, adjacency, component, members, size, bool(len(radii2))):
        part = _dense(record, gram, diagonal, np.flatnonzero(component == chosen), touches, radii2)
        if part is not None:
            dense.append(part)
            walked[part.names] = False
    if not walked.any():
        return Field(tuple(dense), None, target)
    if adjacency is None:
        adjacency = _without_diagonal(sparse.csr_array(np.ones((nodes, nodes), dtype=np.int64)))
    walk = _blocks(record, sparse.csr_array(gram), adjacency, diagonal, target, touches, radii2)
    return Field(tuple(dense), walk._replace(roots=np.flatnonzero(walked)), target)


def lowered(record: OperatorRecord, exact: Any, target: NDArray[np.int64]) -> NDArray[np.float64]:
    """The diagonal of G minus what all rounding can cost."""
    exact = np.asarray(exact, dtype=np.float64)
    order = int(np.sort(record.node_sizes)[-int(target.max()) :].sum())
    filled = np.bincount(record.indices, minlength=record.columns)
    # 1.1 covers γ_m against m·u, and the rounding of the diagonal itself; the last term covers
    # underflow
    loss = 1.1 * order * UNIT * (filled + 3.0 * order + 12.0) * exact
    loss += order * (1.0 + float(exact.max(initial=0.0))) * 1e-300
    return np.asarray((exact - loss) - 4.0 * UNIT * np.abs(exact))


def _check_size(record: OperatorRecord, size: int, touches: Any, crowded: bool) -> None:
    """Refused for what would not fit into memory, whoever asks."""
    order = int(np.sort(record.node_sizes)[-size:].sum())
    if order > ORDER or size * len(record.node_ids) > ENTRIES:
        raise Refused(f"supports of {size} nodes with {order} coordinates are too large to enumerate")
    if not crowded:
        check_pairs(record, touches)


def check_pairs(record: OperatorRecord, touches: Any = None) -> None:
    """Refused where too many nodes, or entries, share a row (or a row block) for G to be formed."""
    lengths = np.diff(record.indptr).astype(np.float64)
    products = float(np.square(lengths).sum())
    pairs = products if touches is None else float(np.square(np.diff(touches.indptr).astype(np.float64)).sum())
    if touches is None and record.node_sizes.max() > 1:
        pairs = float(np.square(np.diff(_rows_at_nodes(record).indptr).astype(np.float64)).sum())
    if pairs > PAIR_LIMIT or products > PRODUCTS or min(products, float(record.columns) ** 2) > ENTRIES:
        raise Refused("the operator is too dense to enumerate its supports: too many pairs of nodes share a row")


def _product(record: OperatorRecord, crowded: bool) -> Any:
    """fl(BᵀB), as an array where B is mostly filled."""
    if crowded:
        matrix = record.matrix.toarray()
        return matrix.T @ matrix
    gram = (record.matrix.T @ record.matrix).tocsr()  # sums over rows in their order: symmetric to the bit
    gram.sort_indices()
    return gram


def _adjacency(record: OperatorRecord, gram: Any, touches: Any) -> Any:
    """Which nodes share a row (or a row block).

    The pattern of G says it for scalar nodes, if it lacks nothing of B's.
    """
    from scipy import sparse

    if touches is None and len(record.node_ids) == record.columns:
        by_column = record.by_column
        counts = _partners(
            by_column.indptr.astype(np.int64), by_column.indices.astype(np.int64), record.indptr, record.indices
        )
        if np.array_equal(np.diff(gram.indptr), counts):
            ones = np.ones(len(gram.data), dtype=np.int64)
            return sparse.csr_array((ones, gram.indices.copy(), gram.indptr.copy()), shape=gram.shape)
    shared = (_rows_at_nodes(record) if touches is None else touches).astype(np.float32)
    return _pattern((shared.T @ shared).tocsr())  # sums of ones: no rounding makes them zero


@kernel
def _partners(starts: Any, rows: Any, indptr: Any, indices: Any) -> Any:
    """For every column how many columns share a row with it, itself included: counted, not computed
    from values.
    """
    columns = len(starts) - 1
    counts = np.zeros(columns, np.int64)
    seen = np.full(columns, -1, np.int64)
    for column in range(columns):
        for place in range(starts[column], starts[column + 1]):
            row = rows[place]
            for entry in range(indptr[row], indptr[row + 1]):
                if seen[indices[entry]] != column:
                    seen[indices[entry]] = column
                    counts[column] += 1
    return counts


def _rows_at_nodes(record: OperatorRecord) -> Any:
    """Which rows have entries at which nodes, as a 0/1 matrix."""
    from scipy import sparse

    ones, shape = np.ones(len(record.data), dtype=np.int64), (record.rows, len(record.node_ids))
    places = record.node_of_column[record.indices]
    return _pattern(sparse.csr_array((ones, places, record.indptr.copy()), shape=shape))


def _pattern(matrix: Any) -> Any:
    matrix.sum_duplicates()
    matrix.sort_indices()
    matrix.data = np.ones(len(matrix.data), dtype=np.int64)
    return matrix


def _without_diagonal(adjacency: Any) -> Any:
    from scipy import sparse

    adjacency.sort_indices()
    heads = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    kept = adjacency.indices != heads
    starts = np.concatenate([[0], np.cumsum(kept)])[adjacency.indptr]
    ones = np.ones(int(kept.sum()), dtype=np.int64)
    return sparse.csr_array((ones, adjacency.indices[kept], starts), shape=adjacency.shape)


def _crowded_components(
    record: OperatorRecord, adjacency: Any, component: Any, members: Any, size: int, with_radii: bool
) -> list[int]:
    """Components in which more than a quarter of the pairs touch (all of them with radii, where η_S
    makes unconnected supports another question).
    """
    if size < 2 or record.node_sizes.max() > WIDEST:
        return []
    if adjacency is None:
        return [0] if members[0] > size and size * record.columns**2 <= ENTRIES else []
    width = np.bincount(component, weights=record.node_sizes, minlength=len(members))
    edges = np.bincount(component, weights=np.diff(adjacency.indptr), minlength=len(members))
    share = 1.0 if with_radii else 0.25
    chosen = (
        (members > size)
        & (width <= DENSE_COORDINATES)
        & (size * width * width <= ENTRIES)
        & (edges >= share * members * (members - 1.0))
    )
    return [int(c) for c in np.flatnonzero(chosen)[:DENSE_PARTS]]


def _dense(
    record: OperatorRecord, gram: Any, diagonal: Any, nodes: Any, touches: Any, radii2: NDArray[np.float64]
) -> Dense | None:
    """One component as a plain matrix; None where numbers are beyond the range of doubles."""
    columns = record.columns_of(nodes)
    whole = len(columns) == record.columns
    part = gram if whole else gram[columns][:, columns]
    matrix = np.triu(part if isinstance(part, np.ndarray) else part.toarray())
    matrix += np.triu(matrix, 1).T  # symmetric to the bit, whatever the product did
    if not np.isfinite(matrix).all():
        return None
    cuts = np.concatenate([[0], np.cumsum(record.node_sizes[nodes])]).astype(np.int64)
    scale = np.sqrt(np.add.reduceat(np.diag(matrix), cuts[:-1])) * (1 + 1e-9)
    matrix[np.diag_indices(len(matrix))] = diagonal[columns]
    starts, touched = np.zeros(len(nodes) + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if touches is not None:
        by_node = touches.T.tocsr()[nodes]
        starts, touched = by_node.indptr.astype(np.int64), by_node.indices.astype(np.int64)
    return Dense(nodes.astype(np.int64), cuts, matrix, scale, starts, touched, radii2)


def _blocks(
    record: OperatorRecord, gram: Any, adjacency: Any, diagonal: Any, target: Any, touches: Any, radii2: Any
) -> Gram:
    """The blocks of G along the edges of the graph, row by row."""
    nodes, dims = len(record.node_ids), record.node_sizes
    heads = np.repeat(np.arange(nodes), np.diff(adjacency.indptr))
    tails = adjacency.indices.astype(np.int64)
    if float((dims[heads] * dims[tails]).sum() + (dims * dims).sum()) > BLOCK_ENTRIES:
        raise Refused(
            "the operator is too dense to enumerate its supports: the blocks of nodes that touch are too large"
        )
    d = int(dims[0])
    if (dims == d).all():  # scipy's own block format has the same layout
        blocked = gram.tobsr((d, d))
        blocked.sort_indices()
        blocks = blocked.data.ravel()
        rows = np.repeat(np.arange(nodes), np.diff(blocked.indptr))
        keys = rows * nodes + blocked.indices.astype(np.int64)
        edge_blocks = _find(keys, heads * nodes + tails) * d * d
        self_blocks = _find(keys, np.arange(nodes) * (nodes + 1)) * d * d
        if (self_blocks < 0).any():  # a node that no row touches
            blocks = np.append(blocks, np.zeros(d * d))
            self_blocks[self_blocks < 0] = len(blocks) - d * d
        edge_blocks[edge_blocks < 0] = -1
    else:
        areas = np.concatenate([dims[heads] * dims[tails], dims * dims])
        places = np.concatenate([[0], np.cumsum(areas)]).astype(np.int64)
        blocks = np.zeros(int(places[-1]))
        coo = gram.tocoo()
        held = coo.data != 0.0
        row, column = coo.coords[0][held].astype(np.int64), coo.coords[1][held].astype(np.int64)
        i, j = record.node_of_column[row], record.node_of_column[column]
        edge = np.searchsorted(heads * nodes + tails, i * nodes + j)
        edge[i == j] = len(heads) + i[i == j]
        starts = record.node_starts
        blocks[places[edge] + (row - starts[i]) * dims[j] + (column - starts[j])] = coo.data[held]
        edge_blocks, self_blocks = places[: len(heads)].copy(), places[len(heads) : len(heads) + nodes].copy()
    by_node = None if touches is None else touches.T.tocsr()
    if by_node is not None:
        by_node.sort_indices()
    return Gram(
        sizes=dims.astype(np.int64),
        starts=record.node_starts,
        target=target,
        roots=np.arange(nodes),
        rank=np.arange(nodes),
        neighbour_starts=adjacency.indptr.astype(np.int64),
        neighbours=tails,
        edge_blocks=edge_blocks.astype(np.int64),
        self_blocks=self_blocks.astype(np.int64),
        blocks=blocks,
        diagonal=diagonal,
        touch_starts=np.zeros(nodes + 1, dtype=np.int64) if by_node is None else by_node.indptr.astype(np.int64),
        touched=np.zeros(0, dtype=np.int64) if by_node is None else by_node.indices.astype(np.int64),
        radii2=radii2,
    )


def _find(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each wanted key stands in the sorted keys; -1: nowhere."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)
