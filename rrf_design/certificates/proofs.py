"""Proofs of "σ_min(B_S) ≥ t (+ η_S) for every support S of at most 2k nodes", by plain enumeration.

Float tests first (`enumeration`), ball and rational arithmetic on what they reject (`exact`). With radii, η_S is
√Σ η_j² over the row blocks that touch S. A block's error touches only the block's nodes, so the perturbed operator
falls apart where S falls apart into parts that share no block: connected supports suffice there too, when two nodes
count as adjacent as soon as they share a block (without radii: a row). And σ_min(B_S) − η_S never rises when S
grows, so only the largest supports need be looked at.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.exact import Verdict, definiteness
from rrf_design.certificates.record import OperatorRecord
from rrf_design.errors import Refused

CAPACITY = 2048  # rejected supports that are collected before they are settled one by one
SLICE = 2_000_000  # float tests between two looks at the clock and at what was rejected
FEW_NODES = 24  # fields smaller than this are enumerated without looking for centres
TABLE_NODES = 1500  # dense fields of scalars up to this size are looked up in a plain table
PAIR_LIMIT = 60_000_000  # pairs of nodes that share a row: beyond it the adjacency would not fit


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of an attempt: PROVED for all supports, REFUTED by one, or UNDECIDED (the reason says why)."""

    verdict: Verdict
    tested: int
    escalated: int
    """Supports that floating point rejected and exact arithmetic settled."""
    support: tuple[int, ...] = ()
    reason: str = ""


def prove_floor(
    record: OperatorRecord, size: int, *, floor: float, with_radii: bool = False, time_limit: float | None = None
) -> Proof:
    """Prove σ_min(B_S) ≥ floor (+ η_S with radii) for every node set of at most `size` nodes, or refute it."""
    if floor <= 0.0 and not with_radii:
        return Proof(Verdict.PROVED, 0, 0)
    from rrf_design.certificates.enumeration import COUNT, DONE, TESTED, new_walk, walk

    began = time.monotonic()
    radii2 = np.square(record.radii) if with_radii and record.radii.any() else np.zeros(0)
    gram = gram_blocks(record, size, radii2)
    shift = _largest_shift(gram, floor)
    gram = _from_centres(record, gram, shift)
    w = new_walk(gram, capacity=CAPACITY)
    settled: dict[bytes, Verdict] = {}
    escalated = 0

    def late() -> bool:
        return time_limit is not None and time.monotonic() - began > time_limit

    while True:
        status = walk(gram, w, shift, floor, SLICE)
        tested = int(w.state[TESTED])
        for row in w.rejected[: w.state[COUNT]]:
            if late():  # what is not settled is not proved, even when the walk is complete
                return Proof(Verdict.UNDECIDED, tested, escalated, (), _too_late(time_limit, tested))
            support = tuple(int(i) for i in row if i >= 0)
            verdict = _settle(record, support, floor, with_radii, settled)
            escalated += 1
            if verdict is not Verdict.PROVED:
                names = ", ".join(record.node_ids[i] for i in support)
                return Proof(verdict, tested, escalated, support, f"it fails on the nodes {names}")
        w.state[COUNT] = 0
        if status == DONE:
            return Proof(Verdict.PROVED, tested, escalated)
        if late():
            return Proof(Verdict.UNDECIDED, tested, escalated, (), _too_late(time_limit, tested))


def _too_late(time_limit: float | None, tested: int) -> str:
    return f"{tested} supports were tested when the time limit of {time_limit:g} s was reached"


def _from_centres(record: OperatorRecord, gram: Any, shift: float) -> Any:
    """Build supports from their centres only.

    A support whose nodes are all dominated by their diagonal blocks (`relaxations.dominated`) is harmless. So every other
    one holds a node that is not, a centre; with the centres ranked first it is built from one.
    """
    from rrf_design.certificates.relaxations import dominated

    if len(record.node_ids) < FEW_NODES:
        return gram
    safe = dominated(record, int(gram.target.max()), shift)
    order = np.argsort(safe, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return gram._replace(roots=order[: int((~safe).sum())].astype(np.int64), rank=rank.astype(np.int64))


def prove_listed(record: OperatorRecord, supports: list[tuple[int, ...]], *, floor: float) -> Proof:
    """The same for the given supports only, in exact arithmetic."""
    for number, support in enumerate(supports):
        verdict = definiteness(record.dense_part(support), floor=floor)
        if verdict is not Verdict.PROVED:
            return Proof(verdict, number + 1, number + 1, support, f"it fails on support number {number + 1}")
    return Proof(Verdict.PROVED, len(supports), len(supports))


def _settle(
    record: OperatorRecord, support: tuple[int, ...], floor: float, with_radii: bool, settled: dict[bytes, Verdict]
) -> Verdict:
    """Exact arithmetic on one support. Equal matrices (copies of one small field) are settled once."""
    part = record.dense_part(support)
    radii = support_radii(record, support) if with_radii else ()
    key = part.tobytes() + np.array(radii).tobytes() + bytes(str(part.shape), "ascii")
    if key not in settled:
        settled[key] = definiteness(part, floor=floor, radii=radii)
    return settled[key]


def support_radii(record: OperatorRecord, support: tuple[int, ...]) -> tuple[float, ...]:
    """Nonzero radii of the row blocks that touch a support, sorted."""
    part = record.by_column[:, record.columns_of(support)]
    found = record.radii[np.unique(record.block_of_row[part.indices])]
    return tuple(sorted(float(x) for x in found if x > 0.0))


def gram_blocks(record: OperatorRecord, size: int, radii2: NDArray[np.float64]) -> Any:
    """G = BᵀB in node blocks with the diagonal lowered (see `enumeration`)."""
    from scipy.sparse.csgraph import connected_components

    from rrf_design.certificates.enumeration import UNIT, Gram

    nodes = len(record.node_ids)
    touch = _incidence(record, record.block_of_row[record.row_of_entry], len(record.block_ids))
    hyper = touch if len(radii2) else _incidence(record, record.row_of_entry, record.rows)
    if float(np.square(np.diff(hyper.indptr).astype(np.float64)).sum()) > PAIR_LIMIT:
        raise Refused("the operator is too dense to enumerate its supports: too many pairs of nodes share a row")
    adjacency = (hyper.T @ hyper).tocsr()
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    adjacency.sort_indices()
    count, component = connected_components(adjacency, directed=False)
    component_size = np.bincount(component, minlength=count)
    target = np.minimum(size, component_size)[component].astype(np.int64)

    heads = np.repeat(np.arange(nodes), np.diff(adjacency.indptr))
    tails = adjacency.indices.astype(np.int64)
    dims, starts = record.node_sizes, record.node_starts
    areas = np.concatenate([dims[heads] * dims[tails], dims * dims])
    places = np.concatenate([[0], np.cumsum(areas)]).astype(np.int64)
    blocks = np.zeros(int(places[-1]))
    gram = (record.matrix.T @ record.matrix).tocoo()
    row, column = gram.coords[0].astype(np.int64), gram.coords[1].astype(np.int64)
    i, j = record.node_of_column[row], record.node_of_column[column]
    edge = np.searchsorted(heads * nodes + tails, i * nodes + j)
    edge[i == j] = len(heads) + i[i == j]
    blocks[places[edge] + (row - starts[i]) * dims[j] + (column - starts[j])] = gram.data

    order = int(np.sort(dims)[-int(target.max()) :].sum())
    exact_diagonal = np.zeros(record.columns)
    exact_diagonal[row[row == column]] = gram.data[row == column]
    filled = np.bincount(record.indices, minlength=record.columns)
    # 1.1 covers γ_m against m·u, and the rounding of the diagonal itself; the last term covers underflow
    loss = 1.1 * order * UNIT * (filled + order + 4.0) * exact_diagonal
    loss += order * (1.0 + float(exact_diagonal.max(initial=0.0))) * 1e-300
    diagonal = exact_diagonal - loss
    diagonal -= 4.0 * UNIT * np.abs(exact_diagonal)
    table = np.zeros((0, 0))
    if record.columns == nodes <= TABLE_NODES and len(heads) > 0.2 * nodes * nodes:
        table = np.zeros((nodes, nodes))
        table[row, column] = gram.data
        blocks = table.ravel()
    by_node = touch.T.tocsr()
    by_node.sort_indices()
    return Gram(
        sizes=dims.astype(np.int64),
        starts=starts,
        target=target,
        roots=np.arange(nodes),
        rank=np.arange(nodes),
        neighbour_starts=adjacency.indptr.astype(np.int64),
        neighbours=tails,
        edge_blocks=places[: len(heads)].copy(),
        self_blocks=places[len(heads) : len(heads) + nodes].copy(),
        blocks=blocks,
        diagonal=diagonal,
        touch_starts=by_node.indptr.astype(np.int64),
        touched=by_node.indices.astype(np.int64),
        radii2=radii2,
        table=table,
    )


def _incidence(record: OperatorRecord, group_of_entry: NDArray[np.int64], groups: int) -> Any:
    """Which rows (or row blocks) touch which nodes, as a 0/1 matrix."""
    from scipy import sparse

    nodes = record.node_of_column[record.indices]
    pairs = np.unique(group_of_entry * len(record.node_ids) + nodes)
    places = (pairs // len(record.node_ids), pairs % len(record.node_ids))
    return sparse.csr_array((np.ones(len(pairs), dtype=np.int64), places), shape=(groups, len(record.node_ids)))


def _largest_shift(gram: Any, floor: float) -> float:
    """(floor + η)² rounded up, with η at least every support's η_S."""
    eta = 0.0
    if len(gram.radii2):
        per_node = np.add.reduceat(
            np.append(gram.radii2[gram.touched], 0.0), np.minimum(gram.touch_starts[:-1], len(gram.touched))
        )
        per_node[np.diff(gram.touch_starts) == 0] = 0.0
        eta = float(np.sqrt(np.sort(per_node)[-int(gram.target.max()) :].sum() * (1 + 1e-9)))
    level = (floor + eta) * (1 + 1e-15)
    return float(level * level * (1 + 1e-15))
