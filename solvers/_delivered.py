"""γ_{k,D}: how well what is delivered is protected, whatever happens to the rest
(docs/algorithms.md, fact 30).

γ_{k,D}(B) = min { ‖Bh‖ : h on at most 2k units, ‖h_D‖ = 1 }, with D some columns of B. Two
explanations of the same measurements within ε differ by at most 2ε/γ_{k,D} on D. Three facts make
it cheap:

- More units never raise it (an h on S is one on every larger S'), so only the largest supports
  matter.
- Let h fall into parts h_c on non-adjacent unit sets. Then ‖Bh‖² = Σ‖Bh_c‖² and ‖h_D‖² =
  Σ‖(h_c)_D‖², so a part with
  (h_c)_D ≠ 0 has no larger ratio than h: only connected supports matter, and only those that meet
  D. They all lie within 2k − 1 steps of D, and nothing else of the field is looked at.
- "‖Bh‖² ≥ θ‖h_D‖² on S" is G_SS − θP_D ⪰ 0: the threshold question of `solvers._search`, with θ on
  D only.

G_SS may be singular outside D; such supports are decided in rationals (`solvers._schur`).

A connected support of s units that meets D lies within s − 1 steps of D. So a field of a million
nodes is never put in order, squared or scaled: a few passes over the indices of B find the units
nearby, and their columns (with every row that touches them) become the field that is searched. A
component larger than s units still shows at least s of them.

Some units can stand for each other: for what is delivered, one of each kind is enough. Let u and v
be units without delivered columns whose columns are equal up to sign, one by one. B_u and B_v span
the same space, so a support with both hides no more than without u, and one with u alone no more
than with v in its place. A sum of a hundred parts (one row, a hundred equal columns) then has one
part to look at instead of every pair, triple and so on of them, none of which floating point could
decide: two equal columns are an exactly singular Gram matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._gamma import SupportsBelow, check_call, doubled, lowest_supports, support_margin
from solvers._gram import Field, NodeColumns, column_groups, make_field, within
from solvers._minimiser import ALWAYS, ExactSearch
from solvers._root_batches import FRACTIONS, SMALL, Front, large_fronts
from solvers._schur import Hidden, hidden, near_vector, proves_hidden_at_least
from solvers._search import Search, Support
from solvers.result import ULP_ROOM, Margin, Progress, Status, SupportValue

WHOLE = 2_000  # columns up to which the whole field is taken


@dataclass(frozen=True)
class LocalField:
    """Some units of a field as a field of their own, with the way back."""

    field: Field
    wanted: NDArray[np.bool_]  # (coordinates of `field`,) delivered or not
    members: NDArray[np.int64]  # (units of `field`,) their numbers in the whole
    groups: NodeColumns  # of the whole
    rows: NDArray[np.int64]  # (rows of `field`,) their numbers in the whole

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Units of `field` that hold a delivered column."""
        return np.flatnonzero(np.logical_or.reduceat(self.wanted, self.field.offsets[:-1]))

    def wanted_in(self, support: Any) -> NDArray[np.bool_]:
        return np.asarray(self.wanted[self.field.columns_of(support)])

    def names(self, support: Support) -> Support:
        return tuple(int(self.members[i]) for i in support)

    def embed(self, support: Support, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """A vector on a support as a vector over the caller's coordinates."""
        result = np.zeros(len(self.groups.order))
        result[_own(self.groups, self.members[np.asarray(support, np.int64)])] = vector
        return result


def delivered_columns(deliver: Any, columns: int) -> NDArray[np.int64]:
    """Check D: column numbers in range, at least one; sorted, each once."""
    try:
        given = np.asarray(deliver if isinstance(deliver, np.ndarray) else list(deliver))
    except TypeError:
        raise ValueError(f"deliver: must be a list of column numbers, not {deliver!r}") from None
    if given.size == 0:
        raise ValueError("deliver: names no column; at least one value must be delivered")
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"deliver: must be a list of column numbers, not {deliver!r}")
    wrong = given[(given < 0) | (given >= columns)]
    if len(wrong):
        raise ValueError(f"deliver: there is no column {int(wrong[0])}; the matrix has {columns}")
    return _marked(given, columns)


def _marked(places: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Numbers below `count`, sorted, each once: many of them, so without sorting."""
    mask = np.zeros(count, np.bool_)
    mask[places] = True
    return np.flatnonzero(mask)


def neighbourhood_of(B: Any, groups: Any, deliver: Any, *, radius: int, thin: bool = True) -> LocalField:
    """All units within `radius` steps of the delivered columns, as a field; ValueError for what is
    no field or no D.

    `thin` leaves out units that a twin stands for (`solvers._delivered`): right for a minimum,
    wrong for a list of supports.
    """
    near = _surroundings(B, groups, deliver, radius)
    return _thinned(near) if thin else near


def _surroundings(B: Any, groups: Any, deliver: Any, radius: int) -> LocalField:
    if not sparse.issparse(B) or B.shape[1] <= WHOLE:
        field = make_field(B, groups)
        inside = delivered_columns(deliver, len(field.groups.order))
        return _whole(field, inside)
    matrix = B if B.format in ("csr", "csc") else sparse.csr_array(B)
    columns = column_groups(groups, matrix.shape[1])
    inside = delivered_columns(deliver, matrix.shape[1])
    if not np.isfinite(matrix.data).all():
        raise ValueError("B: holds a NaN or an infinity")
    members = _reached(matrix, columns, inside, radius)
    if len(members) == len(columns):
        return _whole(make_field(matrix, columns), inside)
    sizes = columns.sizes[members]
    own = _own(columns, members)
    part, rows = _columns_of(matrix, own)
    return LocalField(make_field(part, sizes.tolist()), np.isin(own, inside), members, columns, rows)


def _whole(field: Field, inside: NDArray[np.int64]) -> LocalField:
    wanted = np.zeros(len(field.groups.order), np.bool_)
    wanted[inside] = True
    return LocalField(
        field, wanted[field.groups.order], np.arange(field.n), field.groups, np.arange(field.matrix.shape[0])
    )


def _thinned(near: LocalField) -> LocalField:
    """Without units that a twin stands for."""
    dropped = _superfluous(near.field, near.wanted)
    if not len(dropped):
        return near
    kept = np.setdiff1d(np.arange(near.field.n), dropped)
    columns = near.field.columns_of(kept)
    field = Field(
        matrix=sparse.csc_array(near.field.matrix[:, columns]),
        exponent=near.field.exponent,
        groups=NodeColumns.of_sizes(near.field.dims[kept]),
    )
    return LocalField(field, near.wanted[columns], near.members[kept], near.groups, near.rows)


def _own(groups: NodeColumns, units: NDArray[np.int64]) -> NDArray[np.int64]:
    """All columns of some units, unit by unit."""
    sizes = groups.sizes[units]
    return np.asarray(groups.order[np.repeat(groups.offsets[units], sizes) + within(sizes)])


def _reached(matrix: Any, groups: NodeColumns, inside: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Units within `radius` steps; two units are one step apart when a row has entries at both."""
    if 4 * len(inside) > len(groups.order):
        return np.arange(len(groups))
    owner = np.empty(len(groups.order), np.int64)
    owner[groups.order] = np.repeat(np.arange(len(groups)), groups.sizes)
    reached = np.zeros(len(groups), np.bool_)
    fresh = _marked(owner[inside], len(groups))
    reached[fresh] = True
    for _ in range(radius):
        if 4 * np.count_nonzero(reached) > len(groups):
            return np.arange(len(groups))  # most of it anyway
        near = np.unique(owner[_beside(matrix, _own(groups, fresh))])
        fresh = near[~reached[near]]
        if not len(fresh):
            break
        reached[fresh] = True
    return np.flatnonzero(reached)


def _beside(matrix: Any, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns that share a row with the given ones."""
    if matrix.format == "csc":
        rows = np.unique(_entries(matrix, columns))
        mask = np.zeros(matrix.shape[0], np.bool_)
        mask[rows] = True
        entries = np.flatnonzero(mask[matrix.indices])
        return np.unique(np.searchsorted(matrix.indptr, entries, side="right") - 1)
    mask = np.zeros(matrix.shape[1], np.bool_)
    mask[columns] = True
    entries = np.flatnonzero(mask[matrix.indices])
    rows = np.unique(np.searchsorted(matrix.indptr, entries, side="right") - 1)
    return np.unique(_entries(matrix, rows))


def _entries(matrix: Any, lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices in some lines (rows, or columns) of a compressed matrix."""
    start = matrix.indptr[lines].astype(np.int64)
    sizes = matrix.indptr[lines + 1].astype(np.int64) - start
    return np.asarray(matrix.indices[np.repeat(start, sizes) + within(sizes)])


def _columns_of(matrix: Any, columns: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """The columns with every row that touches them (and no other), and the numbers of these
    rows.
    """
    if matrix.format == "csc":
        part = matrix[:, columns].tocsr()
        rows = np.flatnonzero(np.diff(part.indptr) > 0)
        return part[rows], rows
    place = np.full(matrix.shape[1], -1, np.int64)
    place[columns] = np.arange(len(columns))
    at = place[matrix.indices]
    entries = np.flatnonzero(at >= 0)
    rows, row = np.unique(np.searchsorted(matrix.indptr, entries, side="right") - 1, return_inverse=True)
    return sparse.csr_array((matrix.data[entries], (row, at[entries])), shape=(len(rows), len(columns))), rows


def _superfluous(field: Field, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Units without wanted columns that have a twin of lower number."""
    matrix, offsets = field.matrix, field.offsets
    if not matrix.nnz:
        return np.zeros(0, np.int64)
    candidates = np.flatnonzero(~np.logical_or.reduceat(wanted, offsets[:-1]))
    if len(candidates) < 2:
        return np.zeros(0, np.int64)
    prints = _fingerprints(field)
    ordered = np.sort(prints[candidates])
    if not (ordered[1:] == ordered[:-1]).any():  # as in most fields
        return np.zeros(0, np.int64)
    order = candidates[np.argsort(prints[candidates], kind="stable")]
    equal = np.flatnonzero(prints[order][1:] == prints[order][:-1])
    dropped: list[int] = []
    kept: dict[bytes, int] = {}
    for unit in np.unique(np.concatenate([order[equal], order[equal + 1]])):
        name = b"".join(_name(field, int(c)) for c in range(offsets[unit], offsets[unit + 1]))
        if kept.setdefault(name, int(unit)) != unit:
            dropped.append(int(unit))
    return np.array(dropped, np.int64)


def _fingerprints(field: Field) -> NDArray[np.float64]:
    """One number per unit, equal for twins (and for few others): each column against one fixed
    random vector.
    """
    matrix = field.matrix
    rng = np.random.default_rng(0)
    sums = np.zeros(matrix.shape[1])
    filled = np.flatnonzero(np.diff(matrix.indptr))
    products = matrix.data * rng.random(matrix.shape[0])[matrix.indices]
    sums[filled] = np.abs(np.add.reduceat(products, matrix.indptr[:-1][filled]))
    weights = rng.random(int(field.dims.max()))
    return np.asarray(np.add.reduceat(sums * weights[within(field.dims)], field.offsets[:-1]))


def _name(field: Field, column: int) -> bytes:
    """A column up to sign, as bytes that start with its length (0.0 never occurs, so −x and x
    differ in sign only).
    """
    span = slice(int(field.matrix.indptr[column]), int(field.matrix.indptr[column + 1]))
    data = field.matrix.data[span]
    if len(data) and data[0] < 0.0:
        data = -data
    rows: NDArray[np.int64] = field.matrix.indices[span].astype(np.int64)
    return len(data).to_bytes(8, "big") + rows.tobytes() + bytes(data.tobytes())


MOST = 1 << 18  # supports that floating point can't decide, before the search gives up
STARTS = 8  # delivered units that the local search starts from; one in fifty where there are many
AWAY = 64.0  # what columns that are not delivered are scaled by for it: a guess, so a few digits are enough
TRUE = 0.9  # a share of σ² that it must have seen: less, and it followed directions that are blind outside D
GROWN = 2  # then: of the weakest units, how many are grown along the witness of what is delivered

Content = tuple[tuple[int, ...], bytes, bytes]
"""A block and its wanted columns, to be compared by content."""


def delivered_margin(
    B: Any,
    groups: Any = None,
    deliver: Iterable[int] = (),
    *,
    k: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Margin:
    """γ_{k,D}(B) = min ‖Bh‖/‖h_D‖ over h on at most 2k units with h_D ≠ 0, exactly, with the
    witness.

    B and groups as for `margin` (groups are the units); `deliver` are the columns D of B, at least
    one. A unit may hold delivered columns and others. The result's direction has ‖h_D‖ = 1, so its
    own norm may be larger; `value` is 0.0 exactly where some h on 2k units is invisible (Bh = 0, or
    numerically so) and h_D ≠ 0. It is never below γ_k. method="search" goes through supports one by
    one whatever their size, "completion" bounds all completions at once wherever it can (auto: as
    for `margin`).

    >>> import numpy as np
    >>> from solvers import delivered_margin
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> round(delivered_margin(B, None, [0], k=1).value, 4)  # the margin of everything is 0.618
    1.2247
    """
    size = doubled(k)
    check_call(size, n_jobs, time_limit=time_limit, method=method, methods=("auto", "search", "completion"))
    columns = np.shape(B)[1] if np.ndim(B) == 2 else 0
    inside = delivered_columns(deliver, columns) if columns else np.zeros(0, np.int64)
    if columns and len(inside) == columns:  # everything is delivered: the plain margin is the same minimum
        plain = support_margin(
            B,
            groups,
            size=size,
            n_jobs=n_jobs,
            time_limit=time_limit,
            method=method,
            progress=progress,
        )
        if plain.status is Status.EXACT or time_limit is not None:
            return plain
        # Nearly singular: what floats leave open is decided below, in rationals.
    near = neighbourhood_of(B, groups, deliver, radius=size - 1)
    solver = DeliveredMinimiser(near, size, n_jobs=n_jobs, time_limit=time_limit, progress=progress)
    return solver.solve(method=method)


def delivered_supports_below(
    B: Any,
    groups: Any = None,
    deliver: Iterable[int] = (),
    *,
    size: int,
    threshold: float,
    limit: int = 4096,
    n_jobs: int | None = None,
) -> SupportsBelow:
    """Every connected support of `size` units (or whole smaller component) that meets D with a
    minimum below `threshold`.

    Each with the vector that attains it, ‖h_D‖ = 1: a planner's cut is ‖B(x)h‖² ≥ t for it as it
    stands.

    >>> import numpy as np
    >>> from solvers import delivered_supports_below
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> below = delivered_supports_below(B, None, [2], size=2, threshold=0.9)
    >>> [found.support for found in below.supports]
    [(1, 2)]
    """
    check_call(size, n_jobs)
    if not 0 <= threshold < math.inf:
        raise ValueError(f"threshold: must be a finite number of at least 0, not {threshold!r}")
    near = neighbourhood_of(B, groups, deliver, radius=size - 1, thin=False)
    search = Search(near.field, size, wanted=near.wanted.astype(np.float64))
    scaled = math.ldexp(threshold, -near.field.exponent)
    found = search.below(scaled * scaled, limit=max(limit, MOST >> 4), n_jobs=n_jobs)
    values = [v for v in (_evaluate_delivered(near, s) for s in found.supports) if v.value < threshold]
    values.sort(key=lambda v: (v.value, v.support))
    return SupportsBelow(supports=tuple(values[:limit]), complete=found.complete and len(values) <= limit)


def delivered_worst_supports(
    B: Any, groups: Any = None, deliver: Iterable[int] = (), *, size: int, count: int = 32, n_jobs: int | None = None
) -> tuple[SupportValue, ...]:
    """The `count` connected supports of `size` units that meet D with the least minimum, worst
    first; ‖h_D‖ = 1 in each.

    >>> import numpy as np
    >>> from solvers import delivered_worst_supports
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> delivered_worst_supports(B, None, [2], size=2, count=1)[0].support
    (1, 2)
    """
    check_call(size, n_jobs)
    near = neighbourhood_of(B, groups, deliver, radius=size - 1, thin=False)
    solver = DeliveredMinimiser(near, size, n_jobs=n_jobs)
    best = solver.solve()
    top = float(np.max(near.field.diagonal[near.wanted], initial=0.0))
    limit = max(64 * count, MOST >> 8)
    return lowest_supports(
        solver.search, best, lambda s: _evaluate_delivered(near, s), count, top, limit=limit, n_jobs=n_jobs
    )


def _evaluate_delivered(near: LocalField, support: Support) -> SupportValue:
    """The minimum on one support of the neighbourhood, from B itself, in the caller's units and
    names.
    """
    found = hidden(near.field.restrict(support), near.wanted_in(support))
    return SupportValue(
        support=near.names(support),
        value=math.ldexp(found.sigma, near.field.exponent),
        direction=near.embed(support, found.vector),
    )


class DeliveredMinimiser(ExactSearch):
    """One computation of γ over supports of `size` units for what is delivered."""

    def __init__(self, near: LocalField, size: int, **options: Any) -> None:
        super().__init__(near.field, size, wanted=near.wanted.astype(np.float64), **options)
        self.near = near
        self._known: dict[Content, Hidden] = {}  # by content of the block: copies of one small field are evaluated once
        first = (int(near.units[0]),)
        self.support: Support = first
        self.best: Hidden = self._evaluate(first)

    @property
    def sigma(self) -> float:
        return self.best.sigma

    @property
    def top(self) -> float:
        return self.best.upper

    def solve(self, *, method: str = "auto") -> Margin:
        return self._guarded(lambda: self._solved(method))

    def _solved(self, method: str) -> bool:
        """Whether the search is complete."""
        for support in self._first_supports():
            self._offer(support)
        return self._is_zero() or (not self._late() and self._finish(method))

    def _finish(self, method: str) -> bool:
        """Prove the incumbent, or find better ones until there is none; False when time or
        precision ran out.
        """
        if method != "search" and self.search.size > SMALL and not self.field.extreme:
            fronts = large_fronts(self.search.parts, self.n_jobs, always=method == "completion")
            proved = None if fronts is None else self._finish_large(fronts)
            if proved is not None:
                return proved
        fits = self.deadline is None or self._fits(self.best.sigma**2 * (1.0 - ULP_ROOM))
        below = () if fits or not self.search.thin else FRACTIONS
        for share in (*below, 1.0 - ULP_ROOM, 1.0 - 1e-6, 1.0 - 1e-3, 0.5):
            last = share not in below
            if not last and (self.proven > 0.0 or not self._fits(self.best.sigma**2 * share)):
                continue
            start = self.best.sigma**2 * share
            found = self._below(start, adapt=last, limit=MOST)
            for support in self.search.lowest(found.supports):
                self._offer(support)
            if self._is_zero():
                return True
            theta = min(start, found.theta, self.best.sigma**2 * (1.0 - ULP_ROOM))
            doubtful = self.search.unproven(list(found.supports), theta) if found.complete else []
            for support in doubtful:  # a guess in floating point may have overlooked what these hide
                if self._late():
                    return False
                self._offer(support)
            if self._is_zero():
                return True
            theta = min(theta, self.best.sigma**2 * (1.0 - ULP_ROOM))
            if found.complete and self._proves_all(doubtful, theta):
                self.proven = max(self.proven, theta)
                if last:
                    return True
            if self._late():
                break
        return False

    def _finish_large(self, fronts: Sequence[Front]) -> bool | None:
        """The same root by root; None where floating point can't tell and rationals must."""
        while not self._is_zero():
            best = self.best.sigma
            theta, found = self._by_roots(fronts)
            if not found:
                return self.proven >= theta
            for support in found:
                self._offer(support)
                if self.near.wanted_in(support).any():
                    self._offer(self._grown(support))
            if self.best.sigma >= best * (1.0 - 1e-12):
                return None  # met, but not below θ, or without anything delivered
        return True

    def _first_supports(self) -> list[Support]:
        """A local search for what is delivered from the weakest delivered units, and supports grown
        from the very weakest of them.

        Columns that are not delivered, times `AWAY`, weigh next to nothing in ‖h‖: what is left of
        it is ‖h_D‖, and the plain local search finds supports that are low for what is delivered.
        """
        from solvers.kernels.local import delivered_scores, local_search

        field = self.field
        pointer, index, value = field.couplings.indptr, field.couplings.indices, field.couplings.data
        owner = np.repeat(np.arange(field.n), field.dims)
        scores = delivered_scores(pointer, index, value, owner, self.near.wanted, field.diagonal, self.search.size - 1)[
            self.near.units
        ]
        count = min(max(STARTS, len(scores) // 50), 1000)
        starts = self.near.units[np.argsort(scores, kind="stable")[:count]]
        away = np.where(self.near.wanted, 1.0, AWAY)
        pulled = value * np.repeat(away, np.diff(pointer)) * away[index]
        edges = (pointer, index, pulled, field.offsets, owner, field.diagonal * away * away)
        low, found = local_search(*edges, starts, self.search.size, 8)
        first = tuple(sorted(int(i) for i in found if i >= 0))
        if self.near.wanted_in(first).any() and low >= TRUE * self._evaluate(first).sigma ** 2:
            return [first]
        return [first, *(self._grown((int(start),)) for start in starts[:GROWN])]

    def _grown(self, start: Support) -> Support:
        """From one unit or a few, each time by the neighbour that takes most off ‖Bh‖ when h stays
        as it is elsewhere.
        """
        field = self.field
        owner = np.repeat(np.arange(field.n), field.dims)
        couplings, support = field.couplings, list(start)
        while len(support) < self.search.size:
            columns = field.columns_of(support)
            vector = near_vector(field.restrict(support), self.near.wanted_in(support))
            spans = [slice(couplings.indptr[c], couplings.indptr[c + 1]) for c in columns]
            touched = np.concatenate([couplings.indices[span] for span in spans])
            pulls = np.concatenate([couplings.data[span] * x for span, x in zip(spans, vector, strict=True)])
            places, at = np.unique(touched, return_inverse=True)
            gains = np.bincount(at, weights=pulls) ** 2 / np.maximum(field.diagonal[places], 1e-300)
            gains[np.isin(owner[places], support)] = -1.0
            if not len(places) or gains.max() < 0.0:
                break
            support.append(int(owner[places[int(np.argmax(gains))]]))
        return tuple(sorted(support))

    def _evaluate(self, support: Support) -> Hidden:
        block, wanted = self.field.restrict(support), self.near.wanted_in(support)
        key = (block.shape, block.tobytes(), wanted.tobytes())
        if key not in self._known:
            self._known[key] = hidden(block, wanted)
        return self._known[key]

    def _offer(self, support: Support) -> None:
        if not self.near.wanted_in(support).any():
            return
        found = self._evaluate(support)
        if found.sigma < self.best.sigma or (found.sigma == self.best.sigma and support < self.support):
            self.support, self.best = support, found

    def _proves_all(self, supports: Iterable[Support], theta: float) -> bool:
        """Each of them at θ, in exact arithmetic; equal blocks are settled once."""
        settled: set[Content] = set()
        for support in supports:
            block, wanted = self.field.restrict(support), self.near.wanted_in(support)
            key = (block.shape, block.tobytes(), wanted.tobytes())
            if key not in settled and (self._late() or not proves_hidden_at_least(block, wanted, theta)):
                return False
            settled.add(key)
        return True

    def _result(self, *, complete: bool) -> Margin:
        return self._bounded(
            self.best.upper,
            zero=self._is_zero(),
            static=not complete and self.field.n <= ALWAYS,
            sure=complete,
            groups=self.near.groups,
            support=self.near.names(self.support),
            direction=self.near.embed(self.support, self.best.vector),
            method="delivered",
        )
