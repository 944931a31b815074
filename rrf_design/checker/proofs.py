"""Proofs of "σ_min(B_S) ≥ t (+ η_S) for every support S of at most 2k nodes", by enumeration.

Dense components are searched around their centres (`centres`), the rest is walked along its edges
(`enumeration`) or, for large supports, grown with a bound on every completion (`completion`): float
tests first, ball and rational arithmetic on what they reject (`exact`). With radii, η_S is √Σ η_j²
over the row blocks that touch S. A block's error touches only the block's nodes, so the perturbed
operator falls apart where S falls apart into parts that share no block: connected supports suffice
there too, when two nodes count as adjacent as soon as they share a block (without radii: a row).
And σ_min(B_S) − η_S never rises when S grows, so only the largest supports need be looked at.

Two proofs of γ ≥ L enumerate nothing and serve any number of supports: scaled block dominance, and
a dual matrix.

Dominance (Gershgorin after group whitening). Let A = G − L²·I, W_i with W_iᵀA_iiW_i ⪰ a_i·I, c_ij ≥
‖W_iᵀG_ijW_j‖ and w > 0. If a_i·w_i ≥ the sum of the s − 1 largest c_ij·w_j in every row i, then
A_SS ⪰ 0 for every S of s nodes: scaled by W it is block diagonally dominant. The weights w are the
certificate; any positive ones are sound.

Dual matrix (d'Aspremont's relaxation for groups). For every symmetric U and unit h on s nodes, hᵀGh
= hᵀ(G + U)h − hᵀUh ≥ λ_min(G + U) − b(U), with b(U) the smaller of s·max‖U_ij‖ and the largest sum
of s norms in a block row of U. The lower triangle of U is the certificate; any U is sound.

All norms are bounded from above, and all rounding is paid for; nothing here is shared with
`solvers`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker._couplings import WIDEST
from rrf_design.checker._gram import check_pairs
from rrf_design.checker.exact import MOST_COLUMNS, ProofOutcome, definiteness
from rrf_design.checker.record import OperatorRecord

CAPACITY = 2048  # rejected supports that are collected before they are settled one by one
SLICE = 2_000_000  # float tests between two looks at the clock and at what was rejected
FEW_NODES = 24  # fields smaller than this are enumerated without looking for centres


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of an attempt: PROVED for all supports, REFUTED by one, or UNDECIDED (the reason
    says why).
    """

    outcome: ProofOutcome
    tested: int
    escalated: int
    """Supports that floating point rejected and exact arithmetic settled."""
    support: tuple[int, ...] = ()
    reason: str = ""


def prove_floor(
    record: OperatorRecord,
    size: int,
    *,
    floor: float,
    with_radii: bool = False,
    time_limit: float | None = None,
    plain: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Proof:
    """Prove σ_min(B_S) ≥ floor (+ η_S with radii) for every node set of at most `size` nodes, or
    refute it.

    `plain` looks at every connected set and prunes nothing: slow and obvious, what the quick way is
    tested against. `progress` hears what share of the search is done.
    """
    if floor <= 0.0 and not with_radii:
        return Proof(ProofOutcome.PROVED, 0, 0)
    from rrf_design.checker import _centre_elimination as centre_elimination
    from rrf_design.checker import _centres as centres
    from rrf_design.checker import _completion as completion
    from rrf_design.checker._couplings import WIDEST
    from rrf_design.checker._enumeration import new_walk, walk
    from rrf_design.checker._gram import field_of

    size = min(size, len(record.node_ids))
    deadline = None if time_limit is None else time.monotonic() + time_limit
    radii2 = np.square(record.radii) if with_radii and record.radii.any() else np.zeros(0)
    field = field_of(record, size, radii2, plain=plain)
    shift = _largest_shift(record, field, floor, radii2)
    settled: dict[bytes, ProofOutcome] = {}
    tested = 0
    searches: list[tuple[Any, Any, Any]] = []
    for part in field.dense:
        if centre_elimination.suits(part, size):
            thinned = centre_elimination.prove_by_centre_elimination(
                part, size, shift, deadline=deadline, progress=progress
            )
            tested += thinned.visited
            if thinned.finished:
                continue
            if not thinned.support:
                return Proof(ProofOutcome.UNDECIDED, tested, 0, (), _too_late(time_limit, tested))
            if _settle(record, thinned.support, floor, with_radii, settled) is ProofOutcome.REFUTED:
                return refusal(record.node_ids, ProofOutcome.REFUTED, thinned.support, tested=tested)
        searches.append((centres.hunt, part, centres.new_hunt(part, size, shift=shift, capacity=CAPACITY)))
    thin = field.gram
    if thin is not None and not plain and record.calm:
        from rrf_design.checker._hubs import prove_around_hubs

        around = prove_around_hubs(thin, size, shift, deadline=deadline)
        if around is not None:
            tested += around.tested
            for support in around.supports:
                outcome = _settle(record, support, floor, with_radii, settled)
                if outcome is not ProofOutcome.PROVED:
                    return refusal(record.node_ids, outcome, support, tested=tested)
            thin = around.rest
    if thin is not None and not plain and record.calm and completion.suits(thin):
        grown = completion.prove_by_growth(thin, shift, deadline=deadline, progress=progress)
        tested += grown.visited
        if grown.finished:
            thin = None
        elif not grown.support:
            return Proof(ProofOutcome.UNDECIDED, tested, 0, (), _too_late(time_limit, tested))
        elif _settle(record, grown.support, floor, with_radii, settled) is ProofOutcome.REFUTED:
            return refusal(record.node_ids, ProofOutcome.REFUTED, grown.support, tested=tested)
    if thin is not None:  # also when floats could not prove a set that is sound: then every support is looked at
        wide = int(record.node_sizes.max()) > WIDEST  # beyond what the couplings' allowance for rounding covers
        few = plain or wide or len(record.node_ids) < FEW_NODES or not record.calm
        gram = thin if few else _from_centres(thin, shift)
        searches.append((walk, gram, new_walk(gram, capacity=CAPACITY)))
    return run_searches(
        searches,
        lambda support: _settle(record, support, floor, with_radii, settled),
        names=record.node_ids,
        levels=(shift, floor),
        clock=Clock(time_limit, deadline),
        tested=tested,
        progress=progress,
    )


@dataclass(frozen=True, slots=True)
class Clock:
    """When a proof must be done: seconds as they were given, and the moment on the monotonic
    clock.
    """

    limit: float | None
    deadline: float | None

    @property
    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def undecided(self, tested: int, escalated: int) -> Proof:
        return Proof(ProofOutcome.UNDECIDED, tested, escalated, (), _too_late(self.limit, tested))


def run_searches(
    searches: Sequence[tuple[Any, Any, Any]],
    settle: Callable[[tuple[int, ...]], ProofOutcome],
    *,
    names: Sequence[str],
    levels: tuple[float, float],
    clock: Clock,
    tested: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Proof:
    """Each (kernel, part of the field, memory) to its end; what floats reject is settled by
    `settle`, one support at a time.
    """
    from rrf_design.checker._enumeration import COUNT, DONE, ROOT, TESTED, Walk

    escalated = 0
    for number, (search, part, memory) in enumerate(searches):
        status = None
        while status != DONE:
            status = search(part, memory, *levels, SLICE)
            count, seen = int(memory.state[COUNT]), tested + int(memory.state[TESTED])
            for row in memory.rejected[:count]:
                if clock.late:  # what is not settled is not proved
                    return clock.undecided(seen, escalated)
                support = tuple(sorted(int(i) for i in row if i >= 0))
                outcome = settle(support)
                escalated += 1
                if outcome is not ProofOutcome.PROVED:
                    return refusal(names, outcome, support, tested=seen, escalated=escalated)
            memory.state[COUNT] = 0
            if progress is not None:
                walked = isinstance(memory, Walk)
                done = memory.state[ROOT] / max(len(part.roots), 1) if walked else _hunted(memory)
                progress((number + float(done)) / len(searches))
            if status != DONE and clock.late:
                return clock.undecided(seen, escalated)
        tested += int(memory.state[TESTED])
    return Proof(ProofOutcome.PROVED, tested, escalated)


def refusal(
    names: Sequence[str], outcome: ProofOutcome, support: tuple[int, ...], *, tested: int, escalated: int = 1
) -> Proof:
    listed = ", ".join(names[i] for i in support)
    return Proof(outcome, tested, escalated, support, f"it fails on the nodes {listed}")


def _hunted(memory: Any) -> float:
    """What share of the centres of a dense component has been dealt with."""
    from rrf_design.checker._centres import LEVEL

    return float((memory.place[0] - (memory.state[LEVEL] > 0)) / max(int(memory.centres[0]), 1))


def _too_late(time_limit: float | None, tested: int) -> str:
    return f"{tested} supports were tested when the time limit of {time_limit:g} s was reached"


def _from_centres(gram: Any, shift: float) -> Any:
    """Build supports from their centres only (see `centres`): with these ranked first, every other
    support is met.
    """
    from rrf_design.checker._couplings import roots_of

    walked = np.zeros(len(gram.sizes), dtype=np.bool_)
    walked[gram.roots] = True
    return rooted_at(gram, roots_of(gram, shift, walked))


def rooted_at(gram: Any, roots: NDArray[np.int64]) -> Any:
    """The same field, its supports built from these nodes, in this order, each leaving out those
    before it.
    """
    rank = np.empty(len(gram.sizes), dtype=np.int64)
    others = np.ones(len(rank), dtype=np.bool_)
    others[roots] = False
    rank[roots] = np.arange(len(roots))
    rank[others] = np.arange(len(roots), len(rank))
    return gram._replace(roots=roots, rank=rank)


def prove_listed(record: OperatorRecord, supports: list[tuple[int, ...]], *, floor: float) -> Proof:
    """The same for the given supports only, in exact arithmetic."""
    for number, support in enumerate(supports):
        outcome = (
            definiteness(record.dense_part(support), floor=floor) if _small(record, support) else ProofOutcome.UNDECIDED
        )
        if outcome is not ProofOutcome.PROVED:
            return Proof(outcome, number + 1, number + 1, support, f"it fails on support number {number + 1}")
    return Proof(ProofOutcome.PROVED, len(supports), len(supports))


def _settle(
    record: OperatorRecord, support: tuple[int, ...], floor: float, with_radii: bool, settled: dict[bytes, ProofOutcome]
) -> ProofOutcome:
    """Exact arithmetic on one support. Equal matrices (copies of one small field) are settled
    once.
    """
    if not _small(record, support):
        return ProofOutcome.UNDECIDED
    part = record.dense_part(support)
    radii = support_radii(record, support) if with_radii else ()
    key = part.tobytes() + np.array(radii).tobytes() + bytes(str(part.shape), "ascii")
    if key not in settled:
        settled[key] = definiteness(part, floor=floor, radii=radii)
    return settled[key]


def _small(record: OperatorRecord, support: tuple[int, ...]) -> bool:
    """Few enough coordinates to be settled exactly?"""
    return int(record.node_sizes[list(support)].sum()) <= MOST_COLUMNS


def support_radii(record: OperatorRecord, support: tuple[int, ...]) -> tuple[float, ...]:
    """Nonzero radii of the row blocks that touch a support, sorted."""
    touching = np.flatnonzero(np.asarray(record.incidence[:, list(support)].sum(axis=1)))
    found = record.radii[touching]
    return tuple(sorted(float(x) for x in found if x > 0.0))


def _largest_shift(record: OperatorRecord, field: Any, floor: float, radii2: NDArray[np.float64]) -> float:
    """(floor + η)² rounded up, with η at least every support's η_S."""
    eta = 0.0
    if len(radii2):
        per_node = record.incidence.T @ radii2
        eta = float(np.sqrt(min(np.sort(per_node)[-int(field.target.max()) :].sum(), radii2.sum()) * (1 + 1e-9)))
    level = (floor + eta) * (1 + 1e-15)
    return float(level * level * (1 + 1e-15))


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
        return Proof(
            ProofOutcome.UNDECIDED, 0, 0, (), "the weights of the dominance are not one positive number per node"
        )
    if not record.calm:
        return Proof(ProofOutcome.UNDECIDED, 0, 0, (), UNUSUAL)
    if record.node_sizes.max() > WIDEST:
        return Proof(ProofOutcome.UNDECIDED, 0, 0, (), f"nodes of more than {WIDEST} coordinates are not looked at")
    check_pairs(record)
    have, needed = _dominance(record, size, floor * floor * (1 + 4 * UNIT), weights)
    worst = int(np.argmin(have - needed))
    if have[worst] >= needed[worst]:
        return Proof(ProofOutcome.PROVED, nodes, 0)
    return Proof(
        ProofOutcome.UNDECIDED, nodes, 0, (), f"node {record.node_ids[worst]} is not dominated by its diagonal"
    )


def _dominance(record: OperatorRecord, size: int, shift: float, weights: Array) -> tuple[Array, Array]:
    """a_i·w_i from below, and the sum of the size − 1 largest c_ij·w_j from above, for every
    node.
    """
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
        return Proof(ProofOutcome.UNDECIDED, 0, 0, (), "the dual matrix does not fit the operator")
    if not record.calm or record.rows * order > DENSE_ENTRIES:
        return Proof(ProofOutcome.UNDECIDED, 0, 0, (), UNUSUAL)
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
        return Proof(ProofOutcome.PROVED, 1, 0)
    return Proof(ProofOutcome.UNDECIDED, 1, 0, (), "the dual matrix does not carry the claimed bound")


def positive_definite(matrix: Array, shift: float) -> bool:
    """Is matrix − shift·I certainly positive definite?

    (Rump: a Cholesky of the lowered matrix that runs through.)
    """
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


def _norm_up(blocks: Array) -> Array:
    """Upper bounds on the spectral norms of a batch (count, a, b) of small matrices.

    With M = KᵀK: ‖M‖² = ‖M²‖, so a Frobenius norm after six squarings overestimates by at most
    b^(1/256).
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
            result[i, j] = _norm_up(matrix[place])
    return result


def _pair_blocks(record: OperatorRecord, matrix: Any, i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
    """Blocks M_ij of a sparse matrix over coordinates, for pairs of nodes of equal shape, as
    (count, a, b).
    """
    starts = record.node_starts
    a, b = int(record.node_sizes[i[0]]), int(record.node_sizes[j[0]])
    result = np.zeros((len(i), a, b))
    for p in range(a):
        for q in range(b):
            result[:, p, q] = np.asarray(matrix[starts[i] + p, starts[j] + q]).ravel()
    return result


def _grams(record: OperatorRecord) -> tuple[Any, Any, int]:
    """fl(BᵀB), fl(|B|ᵀ|B|) which bounds its error, and the largest number of entries in a
    column.
    """
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
            norms[pick] = (_norm_up(image) + error) * (1 + 1e-12)
    return heads, tails, norms
