"""Proofs of "σ_min(B_S) ≥ t (+ η_S) for every support S of at most 2k nodes", by enumeration.

Dense components are searched around their centres (`centres`), the rest is walked along its edges (`enumeration`) or, for large
supports, grown with a bound on every completion (`completion`): float tests first, ball and rational arithmetic on what they reject (`exact`). With radii, η_S is
√Σ η_j² over the row blocks that touch S. A block's error touches only the block's nodes, so the perturbed operator
falls apart where S falls apart into parts that share no block: connected supports suffice there too, when two nodes
count as adjacent as soon as they share a block (without radii: a row). And σ_min(B_S) − η_S never rises when S
grows, so only the largest supports need be looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.checker.exact import MOST_COLUMNS, Verdict, definiteness
from rrf_design.certificates.checker.record import OperatorRecord

CAPACITY = 2048  # rejected supports that are collected before they are settled one by one
SLICE = 2_000_000  # float tests between two looks at the clock and at what was rejected
FEW_NODES = 24  # fields smaller than this are enumerated without looking for centres


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
    record: OperatorRecord,
    size: int,
    *,
    floor: float,
    with_radii: bool = False,
    time_limit: float | None = None,
    plain: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Proof:
    """Prove σ_min(B_S) ≥ floor (+ η_S with radii) for every node set of at most `size` nodes, or refute it.

    `plain` looks at every connected set and prunes nothing: slow and obvious, what the quick way is tested against.
    `progress` hears what share of the search is done.
    """
    if floor <= 0.0 and not with_radii:
        return Proof(Verdict.PROVED, 0, 0)
    from rrf_design.certificates.checker import centres, completion, thinning
    from rrf_design.certificates.checker.couplings import WIDEST
    from rrf_design.certificates.checker.enumeration import new_walk, walk
    from rrf_design.certificates.checker.gram import field_of

    size = min(size, len(record.node_ids))
    deadline = None if time_limit is None else time.monotonic() + time_limit
    radii2 = np.square(record.radii) if with_radii and record.radii.any() else np.zeros(0)
    field = field_of(record, size, radii2, plain=plain)
    shift = _largest_shift(record, field, floor, radii2)
    settled: dict[bytes, Verdict] = {}
    tested = 0
    searches: list[tuple[Any, Any, Any]] = []
    for part in field.dense:
        if thinning.suits(part, size):
            thinned = thinning.prove_by_thinning(part, size, shift, deadline=deadline, progress=progress)
            tested += thinned.visited
            if thinned.finished:
                continue
            if not thinned.support:
                return Proof(Verdict.UNDECIDED, tested, 0, (), _too_late(time_limit, tested))
            if _settle(record, thinned.support, floor, with_radii, settled) is Verdict.REFUTED:
                return refusal(record.node_ids, Verdict.REFUTED, thinned.support, tested=tested)
        searches.append((centres.hunt, part, centres.new_hunt(part, size, shift=shift, capacity=CAPACITY)))
    thin = field.gram
    if thin is not None and not plain and record.calm and completion.suits(thin):
        grown = completion.prove_by_growth(thin, shift, deadline=deadline, progress=progress)
        tested += grown.visited
        if grown.finished:
            thin = None
        elif not grown.support:
            return Proof(Verdict.UNDECIDED, tested, 0, (), _too_late(time_limit, tested))
        elif _settle(record, grown.support, floor, with_radii, settled) is Verdict.REFUTED:
            return refusal(record.node_ids, Verdict.REFUTED, grown.support, tested=tested)
    if thin is not None:  # also when floats could not prove a set that is sound: then every support is looked at
        wide = int(record.node_sizes.max()) > WIDEST  # beyond what the couplings' allowance for rounding covers
        few = plain or wide or len(record.node_ids) < FEW_NODES or not record.calm
        gram = thin if few else from_centres(thin, shift)
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
    """When a proof must be done: seconds as they were given, and the moment on the monotonic clock."""

    limit: float | None
    deadline: float | None

    @property
    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def undecided(self, tested: int, escalated: int) -> Proof:
        return Proof(Verdict.UNDECIDED, tested, escalated, (), _too_late(self.limit, tested))


def run_searches(
    searches: Sequence[tuple[Any, Any, Any]],
    settle: Callable[[tuple[int, ...]], Verdict],
    *,
    names: Sequence[str],
    levels: tuple[float, float],
    clock: Clock,
    tested: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Proof:
    """Each (kernel, part of the field, memory) to its end; what floats reject is settled by `settle`, one support at a time."""
    from rrf_design.certificates.checker.enumeration import COUNT, DONE, ROOT, TESTED, Walk

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
                verdict = settle(support)
                escalated += 1
                if verdict is not Verdict.PROVED:
                    return refusal(names, verdict, support, tested=seen, escalated=escalated)
            memory.state[COUNT] = 0
            if progress is not None:
                walked = isinstance(memory, Walk)
                done = memory.state[ROOT] / max(len(part.roots), 1) if walked else _hunted(memory)
                progress((number + float(done)) / len(searches))
            if status != DONE and clock.late:
                return clock.undecided(seen, escalated)
        tested += int(memory.state[TESTED])
    return Proof(Verdict.PROVED, tested, escalated)


def refusal(
    names: Sequence[str], verdict: Verdict, support: tuple[int, ...], *, tested: int, escalated: int = 1
) -> Proof:
    listed = ", ".join(names[i] for i in support)
    return Proof(verdict, tested, escalated, support, f"it fails on the nodes {listed}")


def _hunted(memory: Any) -> float:
    """What share of the centres of a dense component has been dealt with."""
    from rrf_design.certificates.checker.centres import LEVEL

    return float((memory.place[0] - (memory.state[LEVEL] > 0)) / max(int(memory.centres[0]), 1))


def _too_late(time_limit: float | None, tested: int) -> str:
    return f"{tested} supports were tested when the time limit of {time_limit:g} s was reached"


def from_centres(gram: Any, shift: float) -> Any:
    """Build supports from their centres only (see `centres`): with these ranked first, every other support is met."""
    from rrf_design.certificates.checker.couplings import roots_of

    walked = np.zeros(len(gram.sizes), dtype=np.bool_)
    walked[gram.roots] = True
    return rooted_at(gram, roots_of(gram, shift, walked))


def rooted_at(gram: Any, roots: NDArray[np.int64]) -> Any:
    """The same field, its supports built from these nodes, in this order, each leaving out those before it."""
    rank = np.empty(len(gram.sizes), dtype=np.int64)
    others = np.ones(len(rank), dtype=np.bool_)
    others[roots] = False
    rank[roots] = np.arange(len(roots))
    rank[others] = np.arange(len(roots), len(rank))
    return gram._replace(roots=roots, rank=rank)


def prove_listed(record: OperatorRecord, supports: list[tuple[int, ...]], *, floor: float) -> Proof:
    """The same for the given supports only, in exact arithmetic."""
    for number, support in enumerate(supports):
        verdict = (
            definiteness(record.dense_part(support), floor=floor) if _small(record, support) else Verdict.UNDECIDED
        )
        if verdict is not Verdict.PROVED:
            return Proof(verdict, number + 1, number + 1, support, f"it fails on support number {number + 1}")
    return Proof(Verdict.PROVED, len(supports), len(supports))


def _settle(
    record: OperatorRecord, support: tuple[int, ...], floor: float, with_radii: bool, settled: dict[bytes, Verdict]
) -> Verdict:
    """Exact arithmetic on one support. Equal matrices (copies of one small field) are settled once."""
    if not _small(record, support):
        return Verdict.UNDECIDED
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
