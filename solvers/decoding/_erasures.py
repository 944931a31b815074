"""The margin when r nodes are known to be missing: γ(k | R) = min over |T| ≤ 2k of σ_min(B_{R ∪
T}).

Two candidate errors may both fill the erased nodes R and differ on at most 2k others, so their
difference lives on R ∪ T: this margin takes the place of γ_k in the stability theorem, and it is
larger than the one for k + r corrupted nodes because R is known. Small fields are enumerated. On
larger ones the columns of R are projected out, the fast engine gives the margin γ_P of what is
left, and for u = Bh with h on R ∪ T

    ‖h_T‖ ≤ ‖(I − Π)u‖ / γ_P,    ‖h_R‖ ≤ (‖Πu‖ + β‖h_T‖) / σ_min(B_R),    β² = the 2k largest
    ‖ΠB_j‖² added up,

so γ(k | R) is at least the reciprocal of the norm of that 2×2 matrix.

γ(k, D | R, a) is what protects the delivered values when some answers could not be read, and checks
may be wrong besides. Two explanations of the same measurements may both fill the unread nodes R as
they like, differ on at most 2k other units T, and set aside at most 2a suspect blocks A between
them. So the delivered values differ by at most 2ε over

    γ(k, D | R, a) = min ‖B_Aᶜ h‖ / ‖h_D‖ over h on R ∪ T with h_D ≠ 0, |T| ≤ 2k, |A| ≤ 2a.

More units and fewer rows never raise it, so only the largest T and A matter. A part of h that no
row ties to D is best left at 0, so only units count that are reached from D over at most 2k of them
(unread nodes are passed for nothing): on a large field that is little. These sets are looked at one
by one, where there are not too many.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._exact import sqrt_below
from solvers._gram import NodeColumns, column_groups
from solvers._schur import Hidden, hidden, proves_hidden_at_least
from solvers.decoding.spans import DEPENDENT, as_operator, project_out, span_of
from solvers.result import RESIDUAL, Margin, Status

ENUMERATE = 20_000
"""Up to so many sets T are looked at one by one."""

TOGETHER = 256
"""So many of them at once."""


@dataclass(frozen=True, slots=True)
class ErasureMargin:
    """γ(k | R) between `lower` and `upper`, and the witness that attains `upper`."""

    value: float
    lower: float
    upper: float
    support: tuple[int, ...]
    direction: NDArray[np.float64]
    status: Status
    method: str
    others: float
    """Lower bound on the margin of the nodes that were answered (γ_P): their errors are within 2ε
    of it in any case.
    """

    def __post_init__(self) -> None:
        self.direction.setflags(write=False)


def erasure_margin(
    B: Any, groups: Any = None, *, known: Sequence[int], k: int | None = None, size: int | None = None, **options: Any
) -> ErasureMargin:
    """γ(k | R), the margin when some nodes are known to be missing.

    Parameters
    ----------
    B, groups
        The matrix and the columns of its nodes.
    known
        R, the erased nodes.
    k, size
        How many other nodes may be wrong, or the largest number 2k of them in a support; one of
        both.
    options
        More of what `solvers.support_margin` takes.

    Returns
    -------
    An `ErasureMargin` with bounds and witness.

    >>> from solvers.decoding import erasure_margin
    >>> B = [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]]
    >>> round(erasure_margin(B, known=[2], k=1).value, 4)
    0.445
    """
    if (k is None) == (size is None):
        raise ValueError("give exactly one of k and size")
    others_at_most = 2 * k if k is not None else size or 0
    operator = as_operator(B)
    columns = column_groups(groups, operator.shape[1])
    erased = tuple(sorted({int(i) for i in known}))
    rest = [i for i in range(len(columns)) if i not in set(erased)]
    size = min(others_at_most, len(rest))
    projected = _others(operator, columns, erased, rest, size, options)
    norm = float(np.linalg.norm(operator.data if not isinstance(operator, np.ndarray) else operator))
    others = np.inf if projected is None else max(0.0, projected.lower - 1e-13 * norm)
    if comb(len(rest), size) <= ENUMERATE:
        sets = [tuple(sorted((*erased, *part))) for part in combinations(rest, size)]
        value, support, direction = _smallest(operator, columns, _worst(operator, columns, sets))
        lower = 0.0 if value == 0.0 else max(0.0, value - 1e-13 * norm)
        left = float(np.linalg.norm(operator @ direction)) * (1.0 + 1e-9)
        zero = value == 0.0 and left <= RESIDUAL
        status = Status.EXACT if zero else Status.of(lower, value or left)
        return ErasureMargin(
            value, lower, value if zero else value or left, support, direction, status, "enumerate", others
        )
    assert projected is not None
    witness = tuple(sorted((*erased, *(rest[i] for i in projected.support))))
    value, support, direction = _smallest(operator, columns, witness)
    lower = min(value, _combined(operator, columns, erased, rest, others, size) if erased else others)
    return ErasureMargin(value, lower, value, support, direction, Status.BOUNDED, "projection", others)


def _others(
    operator: Any, columns: Any, erased: tuple[int, ...], rest: list[int], size: int, options: dict[str, Any]
) -> Margin | None:
    if not rest or not size:
        return None
    from solvers._gamma import support_margin

    basis = span_of(_dense_part(operator, columns, erased))
    kept = project_out(operator, basis)[:, columns.joined(rest)]
    return support_margin(kept, [len(columns[i]) for i in rest], size=size, **options)


def _combined(operator: Any, columns: Any, erased: tuple[int, ...], rest: list[int], others: float, size: int) -> float:
    dense = _dense_part(operator, columns, erased)
    sigma = float(np.linalg.svd(dense, compute_uv=False)[-1]) if dense.shape[0] >= dense.shape[1] else 0.0
    if sigma <= DEPENDENT * max(1.0, float(np.linalg.norm(dense))) or others == 0.0:
        return 0.0
    shadow = span_of(dense).T @ operator
    lengths = [float(np.linalg.norm(shadow[:, columns[i]], 2)) for i in rest]
    beta = float(np.sqrt(np.sum(np.square(np.sort(lengths)[-size:]))))
    bound = np.array([[1.0 / others, 0.0], [beta / (others * sigma), 1.0 / sigma]])
    return float((1.0 - 1e-9) / np.linalg.norm(bound, 2))


def _dense_part(operator: Any, columns: NodeColumns, nodes: Sequence[int]) -> NDArray[np.float64]:
    part = operator[:, columns.joined(nodes)]
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray())


def _worst(operator: Any, columns: Any, sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The set with the least singular value; among equals, which differ in their last digits only,
    the first.
    """
    dense = operator if isinstance(operator, np.ndarray) else operator.toarray()
    if dense.shape[0] > dense.shape[1]:
        dense = np.linalg.qr(dense, mode="r")  # a rotation of the rows changes no singular value
    indices = [columns.joined(nodes) for nodes in sets]
    least = np.zeros(len(sets))
    lengths = np.array([len(index) for index in indices])
    for length in np.unique(lengths[lengths <= dense.shape[0]]):  # with fewer rows than columns it is zero
        places = np.flatnonzero(lengths == length)
        for some in np.array_split(places, -(-len(places) // TOGETHER)):
            stacked = dense[:, np.array([indices[i] for i in some])].transpose(1, 0, 2)
            values = np.linalg.svd(stacked, compute_uv=False)
            zero = values[:, -1] <= DEPENDENT * np.maximum(1.0, values[:, 0])
            least[some] = np.where(zero, 0.0, values[:, -1])
    return sets[int(np.argmax(least <= least.min() * (1 + 1e-9)))]


def _smallest(
    operator: Any, columns: Any, nodes: tuple[int, ...]
) -> tuple[float, tuple[int, ...], NDArray[np.float64]]:
    index, dense = columns.joined(nodes), _dense_part(operator, columns, nodes)
    direction = np.zeros(operator.shape[1])
    if not dense.shape[0]:
        direction[index[0]] = 1.0
        return 0.0, nodes, direction
    _, values, right = np.linalg.svd(dense, full_matrices=dense.shape[0] < dense.shape[1])  # U of a tall one is huge
    direction[index] = right[-1]
    value = float(values[-1]) if dense.shape[0] >= dense.shape[1] else 0.0
    return (0.0 if value <= DEPENDENT * max(1.0, float(values[0])) else value), nodes, direction


MOST = 4_000
"""Pairs of units and blocks that are looked at."""
NEAR = 1.1
"""Floating point may be off by a little in what is not far above the least: those are proven in
rationals.
"""

RANGE = 2.0**200
"""Largest entries beyond this, or below one over it, are not looked at: their squares leave the
range of doubles.
"""

Key = tuple[tuple[int, ...], bytes, bytes]


@dataclass(frozen=True, slots=True)
class WrongChecks:
    """Blocks of rows of which some may be wrong altogether."""

    blocks: Sequence[int] = ()
    """How many rows each block of B has, in order."""
    suspects: Sequence[int] = ()
    most: int = 0
    """How many of the suspects are taken away."""


def unread_margin(
    B: Any,
    groups: Any,
    deliver: Sequence[int] | NDArray[np.int64],
    *,
    known: Sequence[int],
    size: int,
    checks: WrongChecks | None = None,
    time_limit: float | None = None,
) -> ErasureMargin | None:
    """The margin of some columns when some groups are unread and |T| ≤ `size`.

    Parameters
    ----------
    B, groups
        The matrix and the columns of its nodes.
    deliver
        D: the columns whose margin it is.
    known
        The unread groups.
    size
        How many other groups a support may have.
    checks
        Blocks of rows that may be wrong: up to so many of the suspects are taken away (2a of them).
    time_limit
        Seconds; None where they were not enough.

    Returns
    -------
    An `ErasureMargin`, or None where there is too much to look at. The direction has ‖h_D‖ = 1;
    `others` is the same margin for what is delivered and was read, 0 where that is nothing.

    >>> from solvers.decoding import unread_margin
    >>> B = [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]]
    >>> round(unread_margin(B, None, [0], known=[2], size=2).value, 6)
    1.0
    """
    sizes = np.abs(sparse.csc_array(B).data)
    if len(sizes) and not 1.0 / RANGE <= float(sizes.max()) <= RANGE:
        return None
    told = checks or WrongChecks()
    field = _Near(B, groups, deliver, known=known, size=size, blocks=told.blocks, suspects=told.suspects)
    removed = min(told.most, len(field.suspects))
    if comb(len(field.rest), field.most) * comb(len(field.suspects), removed) > MOST:
        return None
    ends = None if time_limit is None else time.monotonic() + time_limit
    found = field.least(field.wanted, removed, ends)
    if found is None:
        return None
    read = field.wanted & ~field.unread
    others = found[1] if not (field.wanted & field.unread).any() else 0.0
    if found[1] == 0.0 and others == 0.0 and read.any():
        again = field.least(read, removed, ends)
        others = 0.0 if again is None else again[1]
    best, lower, support = found
    direction = np.zeros(field.columns.order.size)
    direction[field.columns.joined(support)] = best.vector
    return ErasureMargin(
        value=best.sigma,
        lower=min(lower, best.upper),
        upper=best.upper,
        support=support,
        direction=direction,
        status=Status.EXACT if best.sigma == 0.0 and best.upper <= RESIDUAL else Status.of(lower, best.upper),
        method="delivered, one by one",
        others=others,
    )


class _Near:
    """What the delivered columns can be tied to: the units reached, the unread ones among them, and
    their suspect blocks.
    """

    def __init__(
        self,
        B: Any,
        groups: Any,
        deliver: Any,
        *,
        known: Sequence[int],
        size: int,
        blocks: Sequence[int],
        suspects: Sequence[int],
    ) -> None:
        matrix = sparse.csc_array(B)
        self.matrix = matrix
        self.columns: NodeColumns = column_groups(groups, matrix.shape[1])
        owner = np.empty(matrix.shape[1], np.int64)
        for number, own in enumerate(self.columns):
            owner[own] = number
        self.wanted = np.zeros(matrix.shape[1], np.bool_)
        self.wanted[np.asarray(deliver, np.int64)] = True
        gone = {int(i) for i in known}
        self.unread = np.isin(owner, list(gone))
        pattern = matrix.copy()
        pattern.data = np.ones_like(pattern.data)
        onto = sparse.csr_array(
            (np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), len(self.columns))
        )
        touch = sparse.csr_array(pattern @ onto)  # (rows, units)
        reached = _reached(touch, {int(owner[c]) for c in np.flatnonzero(self.wanted)}, gone, size)
        self.known = tuple(sorted(reached & gone))
        self.rest = tuple(sorted(reached - gone))
        self.most = min(size, len(self.rest))
        block_of = np.repeat(np.arange(len(blocks)), blocks) if len(blocks) else np.full(matrix.shape[0], -1)
        self.block_of = block_of
        touched = np.flatnonzero(touch[:, sorted(reached)].sum(axis=1)) if reached else np.zeros(0, np.int64)
        near = {int(j) for j in block_of[touched]}
        self.suspects = tuple(j for j in suspects if j in near)

    def least(
        self, wanted: NDArray[np.bool_], removed: int, ends: float | None
    ) -> tuple[Hidden, float, tuple[int, ...]] | None:
        """The least of all pairs, a bound that holds in exact arithmetic, and the units it lies on;
        None when time ran out.
        """
        seen: dict[Key, Hidden] = {}
        asked: dict[Key, tuple[NDArray[np.float64], NDArray[np.bool_]]] = {}
        best: tuple[Hidden, tuple[int, ...]] | None = None
        for others in combinations(self.rest, self.most):
            support = tuple(sorted((*self.known, *others)))
            index = self.columns.joined(support)
            inside = wanted[index]
            if not inside.any():
                continue
            part = self.matrix[:, index].toarray()
            own = part.any(axis=1)
            for aside in combinations(self.suspects, removed):
                block = part[own & ~np.isin(self.block_of, aside)]
                key = (block.shape, block.tobytes(), inside.tobytes())
                if key not in seen:
                    seen[key] = hidden(block, inside) if block.size else _nothing(inside)
                    asked[key] = (block, inside)
                if best is None or seen[key].sigma < best[0].sigma:
                    best = (seen[key], support)
                if best[0].sigma == 0.0:
                    return best[0], 0.0, best[1]
                if ends is not None and time.monotonic() > ends:
                    return None
        if best is None:
            return None
        close = [asked[key] for key, found in seen.items() if found.sigma < NEAR * best[0].sigma]
        for slack in (1e-12, 1e-9, 1e-6):
            theta = (best[0].sigma * (1.0 - slack)) ** 2
            if all(proves_hidden_at_least(block, inside, theta) for block, inside in close):
                return best[0], sqrt_below(theta), best[1]
        return best[0], 0.0, best[1]


def _nothing(inside: NDArray[np.bool_]) -> Hidden:
    """No row is left that says anything."""
    vector = np.zeros(len(inside))
    vector[int(np.flatnonzero(inside)[0])] = 1.0
    return Hidden(0.0, vector, 0.0)


def _reached(touch: Any, start: set[int], free: set[int], size: int) -> set[int]:
    """Units that lie with a delivered one in a connected set of at most `size` units, unread ones
    not counted.

    Ends early where there are more than can be looked at.
    """
    units = sparse.csc_array(touch)
    reached: set[int] = set()
    queue = [(0 if i in free else 1, i) for i in start]
    heapify(queue)
    while queue and len(reached) <= MOST + len(free):
        cost, unit = heappop(queue)
        if cost > size or unit in reached:
            continue
        reached.add(unit)
        for row in units.indices[units.indptr[unit] : units.indptr[unit + 1]].tolist():
            for other in touch.indices[touch.indptr[row] : touch.indptr[row + 1]].tolist():
                if other not in reached:
                    heappush(queue, (cost + (0 if other in free else 1), other))
    return reached
