"""Re-proof of margins that speak of units, delivered values and suspect checks. Imports no solver.

The claim: for every set S of at most `size` units, every set R of at most `removed` suspect blocks,
every h on S and every v on the rows of R, ‖Bh + v‖ ≥ t‖h_D‖ (where v counts too: ≥ t‖(h_D, v)‖). v
can be eliminated, and what is left to show is

    K − ρL − t²P_D ⪰ 0,   K = Σ_{rows not in R} bbᵀ,  L = Σ_{rows in R} bbᵀ on S,  ρ = 0 (or t²/(1 −
    t²)).

It gets no easier when S or R grows, and falls apart where S does: connected sets S of the largest
size, and blocks that touch them, suffice; for values only, those that meet D. All of them are
built, one by one, from each delivered unit.

Each is tried by elimination in floating point with a diagonal lowered by every rounding error: if
all pivots are positive that is a proof; where squares of its entries may leave the range of
doubles, no float is asked. The matrix may be singular outside D, and then no strict inequality
holds: what floating point rejects is eliminated in exact rationals, with the columns outside D
first, where a zero pivot must have a zero row. That decides.

Where no check is suspect, margins of units and delivered values are proved by the same searches as
plain ones. The claim is G_SS ⪰ t²·P_D for every connected set S of `size` units that meets D. With
t² taken off the diagonal at D beforehand, that is the question of `proofs` at shift 0, and a set
without a member of D needs no proof, since G is semidefinite. So units take the place of nodes,
supports are built from the units that meet D or from centres, whichever are fewer, and what floats
reject is settled in rationals as `protection` settles everything: G may be singular outside D,
where no float can tell.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from rrf_design.checker._gram import ORDER
from rrf_design.checker.exact import ProofOutcome, eliminated, rational
from rrf_design.checker.proofs import CAPACITY, Clock, Proof, refusal, rooted_at, run_searches
from rrf_design.checker.record import OperatorRecord, calm_columns
from rrf_design.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

UNIT = 2.0**-53
BATCH = 512  # choices that are eliminated together
ENTRIES = 1 << 24  # of the matrices that are eliminated at once
LARGEST = 40  # coordinates that are settled in rationals


@dataclass(frozen=True)
class ProtectionClaim:
    """What is to be proved of B; `suspect_of[r]` is the block of row r if that block may be wrong,
    else −1.
    """

    matrix: Any  # scipy.sparse, (rows, columns)
    units: tuple[NDArray[np.int64], ...]  # columns of each unit
    deliver: NDArray[np.int64]  # columns D
    size: int  # 2k
    floor: float  # t
    suspect_of: NDArray[np.int64]
    removed: int = 0  # 2a
    checks_count: bool = False
    """Whether v is in the norm on the right: then wrong checks are named, too."""

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        named = np.sort(np.concatenate(self.units)) if self.units else np.zeros(0)
        if not np.array_equal(named, np.arange(columns)):
            raise ValueError(f"units: must name each of the {columns} columns exactly once")
        if not len(self.deliver) and not self.checks_count:
            raise ValueError("deliver: names no column; at least one value must be delivered")
        if len(self.deliver) and not (self.deliver.min() >= 0 and self.deliver.max() < columns):
            raise ValueError(f"deliver: a column is out of range; the matrix has {columns}")
        if len(self.suspect_of) != rows:
            raise ValueError(f"suspect_of: has {len(self.suspect_of)} entries, but the matrix has {rows} rows")
        if self.size < 1 or self.removed < 0:
            raise ValueError("size must be at least 1 and removed at least 0")
        if not 0.0 <= self.floor < math.inf or (self.checks_count and self.floor >= 1.0):
            raise ValueError(f"floor: {self.floor!r} is no bound that can be proved")


def prove_protection(claim: ProtectionClaim, *, time_limit: float | None = None, plain: bool = False) -> Proof:
    """Prove the claim for every support and every choice of wrong blocks, or refute it, or say why
    neither.

    Without suspects that is a search like those of plain margins (`guarded`); `plain` goes through
    every support here.
    """
    if claim.floor == 0.0:
        return Proof(ProofOutcome.PROVED, 0, 0)
    order = sum(sorted((len(unit) for unit in claim.units), reverse=True)[: claim.size])
    if order > ORDER:  # before anything of that size is made
        why = f"supports of {claim.size} units with {order} coordinates are too large to enumerate"
        return Proof(ProofOutcome.UNDECIDED, 0, 0, (), why)
    deadline = None if time_limit is None else time.monotonic() + time_limit
    field = _Field(claim)
    settled: dict[bytes, ProofOutcome] = {}
    if not plain and (claim.removed == 0 or (claim.suspect_of < 0).all()):

        def exactly(support: tuple[int, ...]) -> ProofOutcome:
            part, suspects = field.part(support)
            return _settle(claim, part, field.wanted_in(support), np.zeros(len(suspects), np.bool_), settled)

        proof = _prove_delivered(claim, exactly, time_limit=time_limit)
        if proof is not None:
            return replace(proof, reason=f"it fails on the units {list(proof.support)}") if proof.support else proof
    tested = escalated = 0
    for support in field.supports():
        part, suspects = field.part(support)
        wanted = field.wanted_in(support)
        ways = _choices(suspects, claim.removed)
        at_once = max(1, min(BATCH, ENTRIES // max(1, part.shape[1] ** 2)))
        while batch := list(islice(ways, at_once)):
            if deadline is not None and time.monotonic() > deadline:
                why = f"{tested} choices were tested when the time limit of {time_limit:g} s was reached"
                return Proof(ProofOutcome.UNDECIDED, tested, escalated, (), why)
            tested += len(batch)
            gone = np.array([np.isin(suspects, choice) & (suspects >= 0) for choice in batch])
            for number in np.flatnonzero(~_eliminates(claim, part, wanted, gone)):
                escalated += 1
                if deadline is not None and time.monotonic() > deadline:
                    return Proof(
                        ProofOutcome.UNDECIDED, tested, escalated, (), f"the time limit of {time_limit:g} s was reached"
                    )
                outcome = _settle(claim, part, wanted, gone[number], settled)
                if outcome is not ProofOutcome.PROVED:
                    why = f"it fails on the units {list(support)}"
                    why += f" without the blocks {list(batch[number])}" if batch[number] else ""
                    return Proof(outcome, tested, escalated, support, why)
    return Proof(ProofOutcome.PROVED, tested, escalated)


def _choices(suspects: NDArray[np.int64], removed: int) -> Iterator[tuple[int, ...]]:
    """The largest sets of suspect blocks among those of the given rows."""
    near = np.unique(suspects[suspects >= 0]).tolist()
    return combinations(near, min(removed, len(near)))


def _eliminates(
    claim: ProtectionClaim, part: NDArray[np.float64], wanted: NDArray[np.bool_], gone: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """For each choice, whether K − ρL − t²P_D, lowered by a bound on all rounding, has positive
    pivots only.

    Entries of K and L err by at most γ_rows of d_i d_j with d_i² = K_ii + ρL_ii (Cauchy–Schwarz),
    the elimination by γ_4q of the same; an error bounded by c·d_i d_j is at most c·q·Σ d_i² x_i²,
    which is what the diagonal loses.
    """
    rows, width = part.shape
    if not calm_columns(np.abs(part).max(axis=0, initial=0.0)):  # squares may round to anything, or to nothing
        return np.zeros(len(gone), np.bool_)
    square = claim.floor * claim.floor * (1.0 + 8 * UNIT)
    ratio = square / (1.0 - square) * (1.0 + 16 * UNIT) if claim.checks_count else 0.0
    kept = np.einsum("cr,ri,rj->cij", (~gone).astype(np.float64), part, part)
    lost = np.einsum("cr,ri,rj->cij", gone.astype(np.float64), part, part)
    work = kept - ratio * lost
    corner = np.arange(width)
    size = kept[:, corner, corner] + ratio * lost[:, corner, corner]
    shift = square * wanted
    work[:, corner, corner] -= shift + 4 * width * (rows + 4 * width + 32) * UNIT * (size + shift)
    sound = np.ones(len(gone), np.bool_)
    for p in range(width):
        pivot = work[:, p, p]
        sound &= pivot > 0.0
        safe = np.where(sound, pivot, 1.0)
        column = work[:, p + 1 :, p]
        work[:, p + 1 :, p + 1 :] -= (column / safe[:, None])[:, :, None] * column[:, None, :]
        work[~sound] = 0.0  # no longer of interest
    return sound


def _settle(
    claim: ProtectionClaim,
    part: NDArray[np.float64],
    wanted: NDArray[np.bool_],
    gone: NDArray[np.bool_],
    settled: dict[bytes, ProofOutcome],
) -> ProofOutcome:
    """One choice in exact rationals; equal ones are settled once."""
    if part.shape[1] > LARGEST:
        return ProofOutcome.UNDECIDED
    key = b"|".join((str(part.shape).encode(), part.tobytes(), wanted.tobytes(), gone.tobytes()))
    if key not in settled:
        settled[key] = _exactly(claim, part, wanted, gone)
    return settled[key]


def _exactly(
    claim: ProtectionClaim, part: NDArray[np.float64], wanted: NDArray[np.bool_], gone: NDArray[np.bool_]
) -> ProofOutcome:
    """Semidefinite elimination, what is not delivered first: a pivot below zero, or a zero one with
    company, refutes.
    """
    order = [*np.flatnonzero(~wanted), *np.flatnonzero(wanted)]
    square = rational(claim.floor) * rational(claim.floor)
    ratio = square / (1 - square) if claim.checks_count else fmpq(0)
    width = len(order)
    work = [[fmpq(0)] * (i + 1) for i in range(width)]
    for row, lost in zip(part[:, order], gone, strict=True):
        weight = -ratio if lost else fmpq(1)
        entries = [(i, rational(x)) for i, x in enumerate(row) if x != 0.0]
        for i, x in entries:
            for j, y in entries:
                if j <= i:
                    work[i][j] += weight * x * y
    for i in range(int(np.count_nonzero(~wanted)), width):
        work[i][i] -= square
    return eliminated(work, exact=True)


class _Field:
    """Units as a graph, and the rows that touch a set of them."""

    def __init__(self, claim: ProtectionClaim) -> None:
        self.claim = claim
        self._by_column = claim.matrix.tocsc()
        self._by_row = claim.matrix.tocsr()
        self._owner = np.empty(claim.matrix.shape[1], np.int64)
        for unit, columns in enumerate(claim.units):
            self._owner[columns] = unit
        self._wanted = np.zeros(claim.matrix.shape[1], np.bool_)
        self._wanted[claim.deliver] = True
        self._beside: dict[int, frozenset[int]] = {}

    def supports(self) -> Iterator[tuple[int, ...]]:
        """Connected sets of the largest size, once each: those that meet D, or all where checks
        count.
        """
        roots = list(range(len(self.claim.units)))
        if not self.claim.checks_count:
            roots = sorted({int(u) for u in self._owner[self.claim.deliver]})
        earlier: set[int] = set()
        for root in roots:
            size = self._reach(root)
            yield from self._grow((root,), sorted(self._neighbours(root) - earlier), {root} | earlier, size)
            earlier.add(root)

    def _grow(
        self, chosen: tuple[int, ...], candidates: list[int], seen: set[int], size: int
    ) -> Iterator[tuple[int, ...]]:
        """Extensions of `chosen` by candidates and what these are the first to touch (`seen` are
        not touched again).
        """
        if len(chosen) == size:
            yield chosen
            return
        seen = seen | set(candidates)
        for place, unit in enumerate(candidates):
            fresh = sorted(self._neighbours(unit) - seen)
            yield from self._grow((*chosen, unit), candidates[place + 1 :] + fresh, seen, size)

    def _reach(self, root: int) -> int:
        """The size of the supports through a unit: `size`, or its whole component where that is
        smaller.
        """
        found, front = {root}, {root}
        while front and len(found) < self.claim.size:
            front = set().union(*(self._neighbours(u) for u in front)) - found
            found |= front
        return min(len(found), self.claim.size)

    def _neighbours(self, unit: int) -> frozenset[int]:
        """Units that share a row with this one: by the pattern of B, whatever the entries add up
        to.
        """
        if unit not in self._beside:
            rows = np.unique(self._by_column[:, self.claim.units[unit]].indices)
            columns = self._by_row[rows].indices
            self._beside[unit] = frozenset(np.unique(self._owner[columns]).tolist()) - {unit}
        return self._beside[unit]

    def part(self, support: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(B on the rows that touch the support, the suspect block of each of these rows)."""
        part = self._by_column[:, np.concatenate([self.claim.units[u] for u in support])].tocsr()
        rows = np.flatnonzero(np.diff(part.indptr))
        return part[rows].toarray(), self.claim.suspect_of[rows]

    def wanted_in(self, support: tuple[int, ...]) -> NDArray[np.bool_]:
        return np.asarray(self._wanted[np.concatenate([self.claim.units[u] for u in support])])


FEW = 0.25  # of a dense component's units: with fewer delivered, small supports are walked from those


def _prove_delivered(
    claim: ProtectionClaim, settle: Callable[[tuple[int, ...]], ProofOutcome], *, time_limit: float | None
) -> Proof | None:
    """The claim for every set of units, `settle` deciding one of them exactly; None where floats
    are no use or it would not fit.
    """
    from rrf_design.checker import _centre_elimination as centre_elimination
    from rrf_design.checker import _centres as centres
    from rrf_design.checker import _completion as completion
    from rrf_design.checker._couplings import WIDEST, roots_of
    from rrf_design.checker._enumeration import new_walk, walk
    from rrf_design.checker._gram import field_of

    record = _record_of_units(claim)
    if not record.calm:
        return None
    inside = np.isin(np.concatenate(claim.units), claim.deliver)
    meets = np.bincount(record.node_of_column, weights=inside, minlength=len(claim.units)) > 0.0
    size = min(claim.size, len(claim.units))
    clock = Clock(time_limit, None if time_limit is None else time.monotonic() + time_limit)
    try:
        field = field_of(record, size, np.zeros(0), plain=size < completion.SMALLEST and float(meets.mean()) < FEW)
    except Refused:
        return None
    square = float(claim.floor * claim.floor * (1.0 + 1e-15))
    tested = 0
    searches: list[tuple[Any, Any, Any]] = []

    def fails(support: tuple[int, ...]) -> bool:
        return bool(meets[list(support)].any()) and settle(support) is ProofOutcome.REFUTED

    for part in field.dense:
        columns = record.columns_of(part.names)
        part = part._replace(matrix=part.matrix.copy())
        corner = np.diag_indices(len(columns))
        part.matrix[corner] = _lowered(part.matrix[corner], np.where(inside[columns], square, 0.0))
        if centre_elimination.suits(part, size):
            thinned = centre_elimination.prove_by_centre_elimination(
                part, size, 0.0, wanted=meets[part.names], deadline=clock.deadline
            )
            tested += thinned.visited
            if thinned.finished:
                continue
            if not thinned.support:
                return clock.undecided(tested, 0)
            if fails(thinned.support):
                return refusal(record.node_ids, ProofOutcome.REFUTED, thinned.support, tested=tested)
        searches.append((centres.hunt, part, centres.new_hunt(part, size, shift=0.0, capacity=CAPACITY)))
    thin = field.gram
    if thin is not None and completion.suits(thin):
        grown = completion.prove_by_growth(thin, square, wanted=meets, deadline=clock.deadline)
        tested += grown.visited
        if grown.finished:
            thin = None
        elif not grown.support:
            return clock.undecided(tested, 0)
        elif fails(grown.support):
            return refusal(record.node_ids, ProofOutcome.REFUTED, grown.support, tested=tested)
    if thin is not None:
        thin = thin._replace(diagonal=_lowered(thin.diagonal, np.where(inside, square, 0.0)))
        walked = np.zeros(len(meets), dtype=np.bool_)
        walked[thin.roots] = True
        roots = np.flatnonzero(walked & meets)
        if int(record.node_sizes.max()) <= WIDEST:
            central = roots_of(thin, 0.0, walked)
            roots = central if len(central) < len(roots) else roots
        thin = rooted_at(thin, roots)
        searches.append((walk, thin, new_walk(thin, capacity=CAPACITY)))
    return run_searches(
        searches,
        lambda support: settle(support) if meets[list(support)].any() else ProofOutcome.PROVED,
        names=record.node_ids,
        levels=(0.0, 0.0),
        clock=clock,
        tested=tested,
    )


def _record_of_units(claim: ProtectionClaim) -> OperatorRecord:
    """The same operator with its columns in the order of units, and each unit as a node."""
    order = np.concatenate(claim.units)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    matrix = claim.matrix.tocsr()
    rows = matrix.shape[0]
    return OperatorRecord(
        node_ids=tuple(str(i) for i in range(len(claim.units))),
        node_sizes=np.array([len(unit) for unit in claim.units], dtype=np.int64),
        block_ids=("all",),
        block_kinds=("relation",),
        block_sizes=np.array([rows], dtype=np.int64),
        radii=np.zeros(1),
        touch_starts=np.zeros(2, dtype=np.int64),
        touch_nodes=np.zeros(0, dtype=np.int64),
        indptr=matrix.indptr.astype(np.int64),
        indices=place[matrix.indices],
        data=matrix.data.astype(np.float64),
    )


def _lowered(diagonal: NDArray[np.float64], taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """The diagonal without what is taken, and below it by what the difference may round."""
    unit = 2.0**-53
    return np.asarray((diagonal - taken) - 4.0 * unit * (np.abs(diagonal) + taken))
