"""Margins of units and delivered values where no check is suspect, by the same searches as plain ones.

The claim is G_SS ⪰ t²·P_D for every connected set S of `size` units that meets D. With t² taken off the diagonal at D beforehand, that is the
question of `proofs` at shift 0, and a set without a member of D needs no proof, since G is semidefinite. So units take the place of nodes, supports
are built from the units that meet D or from centres, whichever are fewer, and what floats reject is settled in rationals as
`protection` settles everything: G may be singular outside D, where no float can tell.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.checker.exact import Verdict
from rrf_design.certificates.checker.proofs import CAPACITY, Clock, Proof, refusal, rooted_at, run_searches
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from rrf_design.certificates.checker.protection import ProtectionClaim

FEW = 0.25  # of a dense component's units: with fewer delivered, small supports are walked from those


def prove_delivered(
    claim: ProtectionClaim, settle: Callable[[tuple[int, ...]], Verdict], *, time_limit: float | None
) -> Proof | None:
    """The claim for every set of units, `settle` deciding one of them exactly; None where floats are no use or it would not fit."""
    from rrf_design.certificates.checker import centres, completion, thinning
    from rrf_design.certificates.checker.couplings import WIDEST, roots_of
    from rrf_design.certificates.checker.enumeration import new_walk, walk
    from rrf_design.certificates.checker.gram import field_of

    record = record_of_units(claim)
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
        return bool(meets[list(support)].any()) and settle(support) is Verdict.REFUTED

    for part in field.dense:
        columns = record.columns_of(part.names)
        part = part._replace(matrix=part.matrix.copy())
        corner = np.diag_indices(len(columns))
        part.matrix[corner] = _lowered(part.matrix[corner], np.where(inside[columns], square, 0.0))
        if thinning.suits(part, size):
            thinned = thinning.prove_by_thinning(part, size, 0.0, wanted=meets[part.names], deadline=clock.deadline)
            tested += thinned.visited
            if thinned.finished:
                continue
            if not thinned.support:
                return clock.undecided(tested, 0)
            if fails(thinned.support):
                return refusal(record.node_ids, Verdict.REFUTED, thinned.support, tested=tested)
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
            return refusal(record.node_ids, Verdict.REFUTED, grown.support, tested=tested)
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
        lambda support: settle(support) if meets[list(support)].any() else Verdict.PROVED,
        names=record.node_ids,
        levels=(0.0, 0.0),
        clock=clock,
        tested=tested,
    )


def record_of_units(claim: ProtectionClaim) -> OperatorRecord:
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
