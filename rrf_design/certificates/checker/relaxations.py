"""Proofs of γ ≥ L that enumerate nothing: scaled block dominance, and a dual matrix. For any number of supports.

Dominance (Gershgorin after group whitening). Let A = G − L²·I, W_i with W_iᵀA_iiW_i ⪰ a_i·I, c_ij ≥ ‖W_iᵀG_ijW_j‖ and
w > 0. If a_i·w_i ≥ the sum of the s − 1 largest c_ij·w_j in every row i, then A_SS ⪰ 0 for every S of s nodes: scaled
by W it is block diagonally dominant. The weights w are the certificate; any positive ones are sound.

Dual matrix (d'Aspremont's relaxation for groups). For every symmetric U and unit h on s nodes,
hᵀGh = hᵀ(G + U)h − hᵀUh ≥ λ_min(G + U) − b(U), with b(U) the smaller of s·max‖U_ij‖ and the largest sum of s norms
in a block row of U. The lower triangle of U is the certificate; any U is sound.

All norms are bounded from above, and all rounding is paid for; nothing here is shared with `solvers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.checker.couplings import WIDEST
from rrf_design.certificates.checker.exact import Verdict
from rrf_design.certificates.checker.gram import check_pairs
from rrf_design.certificates.checker.proofs import Proof
from rrf_design.certificates.checker.record import OperatorRecord

Array = NDArray[np.float64]
UNIT = 2.0**-53
TINY = 1e-290  # absorbs underflow wherever a bound is formed from products
DUAL_ORDER = 2000  # largest dense factorisation
DENSE_ENTRIES = 40_000_000  # of a matrix that is written out


UNUSUAL = "its entries are too large, too small, too different or too many for this kind of proof"


def prove_dominance(record: OperatorRecord, size: int, *, floor: float, weights: Array) -> Proof:
    """Prove γ ≥ floor from the weights of a scaled block diagonal dominance."""
    nodes = len(record.node_ids)
    if weights.shape != (nodes,) or not (np.isfinite(weights) & (weights > 0)).all():
        return Proof(Verdict.UNDECIDED, 0, 0, (), "the weights of the dominance are not one positive number per node")
    if not record.calm:
        return Proof(Verdict.UNDECIDED, 0, 0, (), UNUSUAL)
    if record.node_sizes.max() > WIDEST:
        return Proof(Verdict.UNDECIDED, 0, 0, (), f"nodes of more than {WIDEST} coordinates are not looked at")
    check_pairs(record)
    have, needed = _dominance(record, size, floor * floor * (1 + 4 * UNIT), weights)
    worst = int(np.argmin(have - needed))
    if have[worst] >= needed[worst]:
        return Proof(Verdict.PROVED, nodes, 0)
    return Proof(Verdict.UNDECIDED, nodes, 0, (), f"node {record.node_ids[worst]} is not dominated by its diagonal")


def _dominance(record: OperatorRecord, size: int, shift: float, weights: Array) -> tuple[Array, Array]:
    """a_i·w_i from below, and the sum of the size − 1 largest c_ij·w_j from above, for every node."""
    nodes = len(record.node_ids)
    scales, margins = _whiteners(record, shift)
    if scales is None or margins.min(initial=1.0) <= 0.0:
        return np.zeros(nodes), np.ones(nodes)
    heads, tails, norms = _couplings(record, scales)
    order = np.lexsort((-norms * weights[tails], heads))
    heads, pulls = heads[order], (norms * weights[tails])[order]
    kept = np.arange(len(heads)) - np.searchsorted(heads, heads) < size - 1
    sums = np.bincount(heads[kept], weights=pulls[kept], minlength=nodes)
    return margins * weights * (1 - 4 * UNIT), np.asarray(sums * (1 + 2 * (size + 4) * UNIT) + TINY, dtype=np.float64)


def prove_dual(record: OperatorRecord, size: int, *, floor: float, triangle: Array) -> Proof:
    """Prove γ ≥ floor from the lower triangle (row by row) of a dual matrix."""
    order = record.columns
    if order > DUAL_ORDER or triangle.shape != (order * (order + 1) // 2,) or not np.isfinite(triangle).all():
        return Proof(Verdict.UNDECIDED, 0, 0, (), "the dual matrix does not fit the operator")
    if not record.calm or record.rows * order > DENSE_ENTRIES:
        return Proof(Verdict.UNDECIDED, 0, 0, (), UNUSUAL)
    dual = np.zeros((order, order))
    dual[np.tril_indices(order)] = triangle
    dual += np.tril(dual, -1).T
    norms = block_norms(record, dual)
    top = np.sort(norms, axis=1)[:, -size:].sum(axis=1).max() * (1 + 2 * (size + 2) * UNIT)
    cover = min(float(top), float(size * norms.max()) * (1 + 4 * UNIT))
    dense = record.matrix.toarray()
    magnitude = np.abs(dense)
    filled = int(np.diff(record.by_column.indptr).max(initial=0))
    # rounding of BᵀB and of the sum with U, entry by entry, as a bound on the norm
    blur = 1.1 * UNIT * ((filled + 3) * (magnitude.T @ magnitude) + 3 * np.abs(dual)) + TINY
    shift = (floor * floor + cover + float(blur.sum(axis=1).max()) * (1 + 1e-9)) * (1 + 8 * UNIT)
    if positive_definite(dense.T @ dense + dual, shift):
        return Proof(Verdict.PROVED, 1, 0)
    return Proof(Verdict.UNDECIDED, 1, 0, (), "the dual matrix does not carry the claimed bound")


def positive_definite(matrix: Array, shift: float) -> bool:
    """Is matrix − shift·I certainly positive definite? (Rump: a Cholesky of the lowered matrix that runs through.)"""
    order = len(matrix)
    unit = 1.1 * (order + 2) * UNIT
    diagonal = np.diag(matrix) - shift
    if not (diagonal > 0).all():
        return False
    loss = unit / (1 - unit) * float(diagonal.sum()) * (1 + 1e-9) + TINY * (order + 1)
    lowered = (matrix + matrix.T) / 2
    lowered[np.diag_indices(order)] = diagonal - loss - 4 * UNIT * (np.abs(np.diag(matrix)) + shift + loss)
    try:
        np.linalg.cholesky(lowered)
    except np.linalg.LinAlgError:
        return False
    return True


def norm_up(blocks: Array) -> Array:
    """Upper bounds on the spectral norms of a batch (count, a, b) of small matrices.

    With M = KᵀK: ‖M‖² = ‖M²‖, so a Frobenius norm after six squarings overestimates by at most b^(1/256).
    """
    width = blocks.shape[2]
    unit = 1.1 * (max(blocks.shape[1:]) + 2) * UNIT
    frobenius = np.sqrt(np.square(blocks).sum(axis=(1, 2))) * (1 + unit * max(blocks.shape[1:]))
    if min(blocks.shape[1:]) == 1:
        return np.asarray(frobenius + TINY)
    scale = np.where(frobenius > 0, frobenius, 1.0)[:, None, None]
    scaled = blocks / scale
    levels = [np.swapaxes(scaled, 1, 2) @ scaled]
    for _ in range(6):
        last = (levels[-1] + np.swapaxes(levels[-1], 1, 2)) / 2
        levels[-1] = last
        levels.append(last @ last)
    squares = [np.square(level).sum(axis=(1, 2)) * (1 + unit * width * width) for level in levels]
    bound = np.sqrt(squares[-1])
    for level in range(5, -1, -1):  # ‖M‖² ≤ ‖fl(M²)‖ + rounding of the product
        bound = np.sqrt(bound + 2 * unit * squares[level]) * (1 + 1e-15)
    top = np.sqrt(bound + 4 * unit) * scale[:, 0, 0] * (1 + 4 * unit)  # ‖scaled‖_F ≤ 1, and the division rounds
    return np.asarray(np.minimum(top, frobenius) + TINY)


def block_norms(record: OperatorRecord, matrix: Array) -> Array:
    """‖M_ij‖ for all pairs of nodes, bounded from above."""
    nodes, starts = len(record.node_ids), record.node_starts
    result = np.zeros((nodes, nodes))
    for a in np.unique(record.node_sizes):
        for b in np.unique(record.node_sizes):
            rows, columns = np.flatnonzero(record.node_sizes == a), np.flatnonzero(record.node_sizes == b)
            i, j = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
            place = (starts[i][:, None, None] + np.arange(a)[None, :, None], starts[j][:, None, None] + np.arange(b))
            result[i, j] = norm_up(matrix[place])
    return result


def _pair_blocks(record: OperatorRecord, matrix: Any, i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
    """Blocks M_ij of a sparse matrix over coordinates, for pairs of nodes of equal shape, as (count, a, b)."""
    starts = record.node_starts
    a, b = int(record.node_sizes[i[0]]), int(record.node_sizes[j[0]])
    result = np.zeros((len(i), a, b))
    for p in range(a):
        for q in range(b):
            result[:, p, q] = np.asarray(matrix[starts[i] + p, starts[j] + q]).ravel()
    return result


def _grams(record: OperatorRecord) -> tuple[Any, Any, int]:
    """fl(BᵀB), fl(|B|ᵀ|B|) which bounds its error, and the largest number of entries in a column."""
    magnitude = abs(record.matrix)
    filled = int(np.diff(record.by_column.indptr).max(initial=0))
    return (record.matrix.T @ record.matrix).tocsr(), (magnitude.T @ magnitude).tocsr(), filled


def _whiteners(record: OperatorRecord, shift: float) -> tuple[dict[int, tuple[Any, Array]] | None, Array]:
    """W_i by node size, and a_i with W_iᵀ(G_ii − shift)W_i ⪰ a_i·I."""
    gram, magnitude, filled = _grams(record)
    margins = np.zeros(len(record.node_ids))
    scales: dict[int, tuple[Any, Array]] = {}
    for size in np.unique(record.node_sizes):
        nodes = np.flatnonzero(record.node_sizes == size)
        block = _pair_blocks(record, gram, nodes, nodes) - shift * np.eye(size)
        try:
            factor = np.linalg.cholesky(block)
        except np.linalg.LinAlgError:
            return None, margins
        scale = np.swapaxes(np.linalg.inv(factor), 1, 2)
        image = np.swapaxes(scale, 1, 2) @ block @ scale
        size_bound = _pair_blocks(record, magnitude, nodes, nodes) + shift * np.eye(size)
        wide = np.swapaxes(np.abs(scale), 1, 2) @ size_bound @ np.abs(scale)
        error = 1.2 * (filled + 2 * size + 6) * UNIT * np.sqrt(np.square(wide).sum(axis=(1, 2)))
        off = np.sqrt(np.square(image - np.eye(size)).sum(axis=(1, 2)))
        margins[nodes] = 1.0 - (off + error) * (1 + 1e-12) - TINY
        scales[int(size)] = (np.cumsum(record.node_sizes == size) - 1, scale)
    return scales, margins


def _couplings(
    record: OperatorRecord, scales: dict[int, tuple[Any, Array]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """All pairs (i, j) that share a row, with upper bounds on ‖W_iᵀG_ijW_j‖."""
    gram, magnitude, filled = _grams(record)
    coo = magnitude.tocoo()
    nodes = len(record.node_ids)
    keys = np.unique(record.node_of_column[coo.coords[0]] * nodes + record.node_of_column[coo.coords[1]])
    heads, tails = keys // nodes, keys % nodes
    heads, tails = heads[heads != tails], tails[heads != tails]
    norms = np.zeros(len(heads))
    for a in np.unique(record.node_sizes):
        for b in np.unique(record.node_sizes):
            pick = np.flatnonzero((record.node_sizes[heads] == a) & (record.node_sizes[tails] == b))
            if not len(pick):
                continue
            i, j = heads[pick], tails[pick]
            left, right = scales[int(a)][1][scales[int(a)][0][i]], scales[int(b)][1][scales[int(b)][0][j]]
            image = np.swapaxes(left, 1, 2) @ _pair_blocks(record, gram, i, j) @ right
            wide = np.swapaxes(np.abs(left), 1, 2) @ _pair_blocks(record, magnitude, i, j) @ np.abs(right)
            error = 1.2 * (filled + int(a) + int(b) + 6) * UNIT * np.sqrt(np.square(wide).sum(axis=(1, 2)))
            norms[pick] = (norm_up(image) + error) * (1 + 1e-12)
    return heads, tails, norms
