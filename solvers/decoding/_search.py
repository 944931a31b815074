"""Exact support search: min ‖e‖₀ with ‖Be − s‖ ≤ ε, all other supports that explain s, and the
k-sparse minimiser.

`SupportDecoder` prepares a design once; the search itself is in `solvers.decoding._traversal`. What
it says about which supports explain s holds in exact arithmetic for B, s and ε + tolerance as the
floats they are: supports are excluded by tests that carry a bound on every rounding error, and
where such a bound can't tell they are decided in rationals.

`SupportTable` prepares every support of a small design once, so that thousands of syndromes are
decoded by matrix products, each to the same bits as if it were alone. For each support of at most k
nodes the table keeps an orthonormal basis U_S of its span; the residuals of all syndromes are then
‖s − U_S U_Sᵀ s‖, for all supports at once, and the errors of all fields that chose one support
share one pseudo-inverse. Each basis comes with a proven error, so that a residual is on the right
side of ε in exact arithmetic, or so near that it is decided in rationals.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._exact import exact_rank, span_within
from solvers._gram import NodeColumns, column_groups
from solvers.decoding._traversal import Basis, PrefixLevel, Scan, Told, Traversal
from solvers.decoding.spans import DEPENDENT, UNIT, Spans, as_operator, left, lengths, local_part, products

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SyndromeExplanation:
    """A support that explains the syndrome within ε, and contains no smaller one that does."""

    support: tuple[int, ...]
    residual: float
    error: Array  # (coordinates,)
    edge: bool = False
    """|residual − ε| is below the tolerance, so floats can't tell on which side it lies."""

    def __post_init__(self) -> None:
        self.error.setflags(write=False)


@dataclass(frozen=True, slots=True)
class SyndromeDecoding:
    """The exact decoder's answer to one syndrome.

    When `verified`, it is a proof in exact arithmetic for B, s and the radius ε + tolerance as the
    floats they are: the listed supports leave at most the radius, every other minimal one of at
    most k nodes leaves more.
    """

    support: tuple[int, ...]
    error: Array  # (coordinates,): ê, zero outside support and known nodes
    residual: float
    explained: bool
    """Some support of at most k nodes reaches ε; otherwise `support` has the least residual of
    all.
    """
    explanations: tuple[SyndromeExplanation, ...]
    """Every inclusion-minimal support of at most k nodes that explains the data, the chosen one
    first.
    """
    complete: bool
    """False when a limit cut the search short: then there may be more explanations, or a better
    support.
    """
    best_smaller: float
    """Least residual of all supports with fewer nodes than the chosen one: the proof that none of
    them explains.
    """
    epsilon: float
    tolerance: float
    k: int
    tested: int
    """Supports judged one by one; the rest was excluded by arithmetic."""
    known: tuple[int, ...] = ()
    undecided: tuple[tuple[int, ...], ...] = ()
    """Supports too near the radius for floats and too large for rationals: they may explain the
    data, or not.
    """
    zero_rule: bool = False
    """Directions below 1e-10 of their node's length, but not exactly zero, were taken for zero (the
    paper's rule).
    """

    def __post_init__(self) -> None:
        self.error.setflags(write=False)

    @property
    def verified(self) -> bool:
        """Nothing was cut short, left undecided, or settled by the zero rule alone."""
        return self.complete and not self.undecided and not self.zero_rule

    @property
    def unique(self) -> bool:
        """Proved: exactly one minimal support of at most k nodes explains the data."""
        return self.complete and len(self.explanations) == 1 and not self.undecided


ROUNDING = 1e-12
"""Default tolerance of ‖Be − s‖ ≤ ε, relative to ‖s‖: the rounding of a short chain of float
operations.
"""


def decode_support(B: Any, groups: Any = None, *, syndrome: Any, k: int, **options: Any) -> SyndromeDecoding:
    """Which nodes are wrong, of one syndrome of one design: the fewest that leave at most ε of it.

    Parameters
    ----------
    B, groups
        The matrix and the columns of its nodes.
    syndrome
        s = Be + noise, one entry per row.
    k
        How many nodes may be wrong.
    options
        `known` lists erased nodes; the others are those of `SupportDecoder.decode`: epsilon,
        tolerance, limit, time_limit, progress.

    Returns
    -------
    A `SyndromeDecoding`: the error, every other explanation, and how far the search got.

    >>> from solvers.decoding import decode_support
    >>> B = [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]]
    >>> found = decode_support(B, syndrome=[-2.0, 2.0, 0.0], k=1)
    >>> found.support, found.error.tolist(), found.unique
    ((1,), [0.0, 2.0, 0.0], True)
    """
    known = options.pop("known", ())
    return SupportDecoder(B, groups, known=known).decode(syndrome, k=k, **options)


class SupportDecoder:
    """A design prepared once, decoded many times.

    `known` are nodes whose error is known to be there (erasures): their columns are projected out
    of B and s, so they cost nothing of the budget k. The object is read-only after construction and
    can be shared between threads.
    """

    def __init__(self, B: Any, groups: Any = None, *, known: Iterable[int] = ()) -> None:
        self._original = as_operator(B)
        self._groups: NodeColumns = column_groups(groups, self._original.shape[1])
        self.known = tuple(sorted({int(i) for i in known}))
        if self.known and not 0 <= self.known[0] <= self.known[-1] < len(self._groups):
            raise ValueError(f"known: nodes are numbered 0..{len(self._groups) - 1}, got {list(self.known)}")
        self._level = PrefixLevel.root(self._original, self._groups)
        self._known_basis = None
        if self.known:
            self._known_basis = Basis.of(self._level.spans, self.known)
            self._level = self._level.without(self.known, self._known_basis)
        self._usable = np.ones(len(self._groups), dtype=np.bool_)
        self._usable[list(self.known)] = False

    @property
    def nodes(self) -> int:
        return len(self._groups)

    @property
    def spans(self) -> Spans:
        return self._level.spans

    @property
    def usable(self) -> NDArray[np.bool_]:
        return self._usable

    def decode(
        self,
        syndrome: Any,
        *,
        k: int,
        epsilon: float = 0.0,
        tolerance: float | None = None,
        limit: int = 64,
        time_limit: float | None = None,
        progress: Told | None = None,
    ) -> SyndromeDecoding:
        """Smallest support of at most k nodes with residual ≤ ε (plus `tolerance`), and every
        minimal other one.

        When none explains the syndrome, the support of at most k nodes with the least residual.
        `limit` caps the list of explanations; the result says when it, or `time_limit`, cut the
        search short. `progress` is called now and then with the share that is done, the best
        support so far, its residual, and whether that explains the syndrome.
        """
        raw = _vector(syndrome, self._original.shape[0])
        if k < 0:
            raise ValueError(f"k must not be negative, got {k}")
        if not epsilon >= 0.0:
            raise ValueError(f"epsilon must be a number of at least 0, got {epsilon!r}")
        slack = ROUNDING * float(np.linalg.norm(raw)) if tolerance is None else float(tolerance)
        deadline = None if time_limit is None else time.monotonic() + time_limit
        task = _Task.of(self, raw, epsilon + slack, deadline, progress)
        search = task.search(k, listing=True, limit=limit)
        found = _minimal(search.found)
        complete = search.complete
        ranked = sorted(found, key=lambda item: (len(item[0]), item[1], item[0]))
        if ranked:
            support, residual = ranked[0]
        else:
            best = task.search(k, listing=False)
            support, residual, complete = best.support, best.residual, complete and best.complete
        explanations = tuple(
            SyndromeExplanation(
                nodes,
                value / task.unit,
                self._solve(raw, nodes, search.bases.get(nodes)),
                edge=abs(value / task.unit - epsilon) <= slack < epsilon,
            )
            for nodes, value in ranked
        )
        return SyndromeDecoding(
            support=support,
            error=explanations[0].error if explanations else self._solve(raw, support),
            residual=residual / task.unit,
            explained=bool(found),
            explanations=explanations,
            complete=complete,
            best_smaller=task.least(len(support) - 1) / task.unit,
            epsilon=epsilon,
            tolerance=slack,
            k=k,
            tested=search.tested,
            known=self.known,
            undecided=tuple(part for part in search.undecided if not any(set(f) <= set(part) for f, _ in found)),
            zero_rule=search.zero_rule,
        )

    def residual(self, syndrome: Any, support: Sequence[int]) -> float:
        """‖Be − s‖ at the best error on `support` (and the known nodes)."""
        s, _ = self.without_known(_vector(syndrome, self._original.shape[0]))
        return float(np.linalg.norm(self.basis(tuple(support)).leave(s) if len(support) else s))

    def null_space(self, support: Sequence[int]) -> Array:
        """Orthonormal basis (coordinates, free dimensions) of the errors on these nodes that change
        nothing.
        """
        columns = self._columns(tuple(support))
        result = np.zeros((self._original.shape[1], 0))
        if not len(columns):
            return result
        block = self._local(columns)[1]
        if not len(block):
            block = np.zeros((1, len(columns)))
        _, values, right = np.linalg.svd(block, full_matrices=len(block) < len(columns))
        rank = int(np.sum(values > DEPENDENT * max(values.max(initial=0.0), 1e-300)))
        result = np.zeros((self._original.shape[1], len(columns) - rank))
        result[columns] = right[rank:].T
        return result

    def _columns(self, nodes: Sequence[int]) -> NDArray[np.int64]:
        return self._groups.joined(nodes)

    def _local(self, columns: NDArray[np.int64]) -> tuple[Any, Array]:
        """These columns of the operator as a dense block over the rows they touch."""
        if isinstance(self._original, np.ndarray):
            return slice(None), self._original[:, columns]
        return local_part(self._original, columns)

    def basis(self, support: tuple[int, ...]) -> Basis:
        """An orthonormal basis of the support's columns, known nodes projected out, with its proven
        error.
        """
        return Basis.of(self.spans, support)

    def without_known(self, s: Array) -> tuple[Array, float]:
        """Syndromes (..., rows) with the known nodes projected out, and a bound on the error of
        that relative to ‖s‖.
        """
        basis = self._known_basis
        if basis is None:
            return s, 0.0
        return basis.leave(basis.leave(s)), min(2.0 * basis.moves, 2.2)

    def decide(self, s: Array, support: tuple[int, ...], radius: float) -> bool | None:
        """Whether the support (with the known nodes) leaves at most `radius`, in rationals; None
        when it is too large.
        """
        columns = self._columns((*self.known, *support))
        if not len(columns):
            return span_within(np.zeros((len(s), 0)), s, radius)
        rows, local = self._local(columns)
        wide = np.zeros((len(s), len(columns)))
        wide[rows] = local
        return span_within(wide, s, radius)

    def by_zero_rule(self, support: tuple[int, ...], basis: Basis) -> bool:
        """Whether a direction of the support was dropped as too short that is not exactly dependent
        on the others.
        """
        if not (basis.dropped or self._level.dropped):
            return False
        return self._exact_rank((*self.known, *support)) != self._level.rank + len(basis.vectors)

    def _solve(self, raw: Array, support: tuple[int, ...], basis: Basis | None = None) -> Array:
        """The least-squares error on support and known nodes; of least norm (in units of each node)
        where they leave it free.
        """
        error = np.zeros(self._original.shape[1])
        nodes = (*self.known, *support)
        columns = self._columns(nodes)
        if len(columns):
            rows, local = self._local(columns)
            whole = basis is not None and isinstance(rows, slice) and not self.known
            if basis is not None and whole and len(basis.vectors) == len(columns):  # half the work is done already
                error[columns] = np.linalg.solve(basis.vectors @ local, basis.vectors @ raw)
            elif local.size:
                units = _units(local, self._groups.sizes[list(nodes)])
                error[columns] = np.linalg.lstsq(local * units, raw[rows], rcond=DEPENDENT)[0] * units
        return error

    def _touching(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nodes with an entry in one of these rows of B."""
        if isinstance(self._original, np.ndarray):
            columns = np.flatnonzero(np.any(self._original[rows] != 0.0, axis=0))
        else:
            columns = self._by_row[rows].indices
        return np.unique(self._owner[columns])

    @cached_property
    def _by_row(self) -> Any:
        return self._original.tocsr()

    @cached_property
    def _owner(self) -> NDArray[np.int64]:
        owner = np.empty(self._original.shape[1], dtype=np.int64)
        owner[self._groups.order] = np.repeat(np.arange(len(self._groups)), self._groups.sizes)
        return owner

    def _exact_rank(self, nodes: tuple[int, ...]) -> int | None:
        return exact_rank(self._local(self._columns(nodes))[1]) if nodes else 0


@dataclass(frozen=True, slots=True)
class _Task:
    """One syndrome, brought to a size around one by a power of two (which rounds nothing) and rid
    of known nodes.
    """

    decoder: SupportDecoder
    raw: Array
    radius: float
    unit: float
    scan: Scan
    deadline: float | None
    progress: Told | None

    @classmethod
    def of(
        cls, decoder: SupportDecoder, raw: Array, radius: float, deadline: float | None, progress: Told | None
    ) -> _Task:
        largest = max(float(raw.max(initial=0.0)), -float(raw.min(initial=0.0)))
        unit = 2.0 ** -min(max(np.frexp(largest)[1], -1000), 1000) if largest > 0 else 1.0
        s, blur = decoder.without_known(raw * unit)
        scan = Scan.of(decoder._level, s, blur * float(np.linalg.norm(raw * unit)) if blur else 0.0)
        return cls(decoder, raw, radius, unit, scan, deadline, progress)

    def least(self, size: int) -> float:
        """Least residual of all supports of at most `size` nodes, in the task's unit; inf when
        there are none.
        """
        if size < 0:
            return np.inf
        energy = self.scan.energy
        gain = float(self.scan.gains.max(where=self.decoder.usable, initial=0.0)) if size else 0.0
        if size < 2 and gain < 0.999 * energy:  # so that the difference loses no digits that count
            return float(np.sqrt(energy - gain))
        return self.search(size, listing=False).residual

    def search(self, size: int, *, listing: bool, limit: int = 0) -> Traversal:
        decoder = self.decoder
        search = Traversal(
            self.radius * self.unit if listing else float(np.sqrt(self.scan.energy)),
            listing,
            lambda support: decoder.decide(self.raw, support, self.radius),
            decoder._touching,
            decoder._exact_rank,
            limit=limit,
            deadline=self.deadline,
            progress=self.progress,
        )
        search.run(self.scan, size, decoder._usable)
        return search


def _minimal(found: list[tuple[tuple[int, ...], float]]) -> list[tuple[tuple[int, ...], float]]:
    """Only supports that contain no other: any superset of an explanation explains as well, and
    says nothing new.
    """
    kept: list[tuple[tuple[int, ...], float]] = []
    for support, value in sorted(set(found), key=lambda item: len(item[0])):
        if not any(set(other) <= set(support) for other, _ in kept):
            kept.append((support, value))
    return kept


def _units(local: Array, sizes: NDArray[np.int64]) -> Array:
    """One over the largest entry of each node's columns: the zero rule is about each node in its
    own unit.
    """
    peaks = np.abs(local).max(axis=0)
    if len(sizes) < len(peaks):
        peaks = np.repeat(np.maximum.reduceat(peaks, np.cumsum(sizes) - sizes), sizes)
    return np.asarray(1.0 / np.where(peaks > 1e-300, peaks, 1.0))


def _vector(syndrome: Any, rows: int) -> Array:
    s = np.asarray(syndrome, dtype=np.float64)
    if s.shape != (rows,):
        raise ValueError(f"the syndrome must have one entry per row ({rows}), got shape {s.shape}")
    if not np.isfinite(s).all():
        raise ValueError("the syndrome holds a NaN or an infinity")
    return s


LARGEST = 5_000
"""Designs with more supports than this belong to `SupportDecoder`."""


@dataclass(frozen=True, slots=True)
class BatchDecoding:
    """Exact decodings of N syndromes; row i of each array belongs to syndrome i."""

    chosen: NDArray[np.int64]  # (N,): index into supports
    supports: tuple[tuple[int, ...], ...]
    residual: Array  # (N,)
    error: Array  # (N, coordinates)
    explained: NDArray[np.bool_]  # (N,)
    minimal: NDArray[np.bool_]  # (N, supports): the inclusion-minimal supports that explain the syndrome
    best_smaller: Array  # (N,): least residual of all supports with fewer nodes than the chosen one; inf for none
    tolerance: Array  # (N,)
    undecided: tuple[tuple[tuple[int, ...], ...], ...]  # (N,): supports that floats can't judge and rationals won't
    zero_rule: bool
    """Some support has directions below 1e-10 of their node's length that were taken for zero (the
    paper's rule).
    """

    def __post_init__(self) -> None:
        for name in ("chosen", "residual", "error", "explained", "minimal", "best_smaller", "tolerance"):
            getattr(self, name).setflags(write=False)


def table_fits(nodes: int, k: int) -> bool:
    """Whether a design with so many nodes is small enough for a `SupportTable`.

    Parameters
    ----------
    nodes, k
        Of the design, and how many of them may be wrong.

    Returns
    -------
    Whether it has few enough supports.

    >>> from solvers.decoding import table_fits
    >>> table_fits(10, 2), table_fits(1000, 3)
    (True, False)
    """
    return sum(comb(nodes, size) for size in range(min(k, nodes) + 1)) <= LARGEST


TOGETHER = 2**19
"""Numbers that a table works on at once."""


class SupportTable:
    """All supports of at most k nodes of one design, with `known` (erased) nodes in each of them at
    no charge.
    """

    def __init__(self, B: Any, groups: Any = None, *, k: int, known: Sequence[int] = ()) -> None:
        dense = np.asarray(B.toarray() if hasattr(B, "toarray") else B, dtype=np.float64)
        self._decoder = decoder = SupportDecoder(dense, groups, known=known)
        self.known = decoder.known
        rest = np.flatnonzero(decoder.usable).tolist()
        if not table_fits(len(rest), k):
            raise ValueError(f"more than {LARGEST} supports; use SupportDecoder")
        self.supports = tuple(part for size in range(k + 1) for part in combinations(rest, size))
        columns = column_groups(groups, dense.shape[1])
        self._bases = tuple(decoder.basis(part) for part in self.supports)
        self._columns = tuple(columns.joined((*self.known, *part)) for part in self.supports)
        self._dense = dense
        self._inverses: dict[int, Array] = {}
        rank = max((len(basis.vectors) for basis in self._bases), default=0)
        self._spans = np.zeros((len(self.supports), dense.shape[0], rank))
        for position, basis in enumerate(self._bases):
            self._spans[position, :, : len(basis.vectors)] = basis.wide(dense.shape[0])
        place = {part: position for position, part in enumerate(self.supports)}
        self._below = tuple(
            np.array([place[part] for size in range(len(whole)) for part in combinations(whole, size)], dtype=np.int64)
            for whole in self.supports
        )

    @cached_property
    def zero_rule(self) -> bool:
        """A support's directions were dropped by the zero rule that are not exactly dependent."""
        pairs = zip(self.supports, self._bases, strict=True)
        return any(self._decoder.by_zero_rule(part, basis) for part, basis in pairs)

    def _without_known(self, raw: Array) -> tuple[Array, float]:
        """Syndromes with the known nodes projected out, as `SupportDecoder.without_known` does it
        for one.
        """
        basis = self._decoder._known_basis
        if basis is None:
            return raw, 0.0
        wide = basis.wide(raw.shape[1])
        return left(left(raw, wide), wide), min(2.0 * basis.moves, 2.2)

    def _inverse(self, position: int) -> Array:
        """What takes syndromes to least-squares errors on one support."""
        if position not in self._inverses:
            part = self._dense[:, self._columns[position]]
            self._inverses[position] = np.asarray(np.linalg.pinv(part, rcond=DEPENDENT), dtype=np.float64)
        return self._inverses[position]

    def decode(self, syndromes: Any, *, epsilon: float = 0.0, tolerance: Any = None) -> BatchDecoding:
        """Decode the rows of `syndromes` (N, rows); ties go to the smaller support, then the
        smaller residual, then the support that is listed first: residuals that differ by rounding
        alone tie.

        What a row comes to has the same bits whatever the others are.
        """
        raw = np.atleast_2d(np.asarray(syndromes, dtype=np.float64))
        if raw.shape[1] != self._dense.shape[0] or not np.isfinite(raw).all():
            raise ValueError(f"syndromes must be finite and have {self._dense.shape[0]} columns, one per row of B")
        count = len(raw)
        norms = lengths(raw)
        slack = np.broadcast_to(
            ROUNDING * norms if tolerance is None else np.asarray(tolerance, dtype=np.float64), (count,)
        )
        data, blur = self._without_known(raw)
        radius = epsilon + slack
        residuals, some = np.empty((count, len(self.supports))), max(1, TOGETHER // max(1, self._spans.size))
        for start in range(0, count, some):
            residuals[start : start + some] = lengths(left(data[start : start + some, None], self._spans))
        errors = np.array([basis.moves for basis in self._bases]) + (blur + (raw.shape[1] + 4) * UNIT)
        good = residuals <= radius[:, None]
        undecided: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
        near = np.abs(residuals - radius[:, None]) <= 1.01 * errors * norms[:, None]
        for i, position in np.argwhere(near):
            exact = self._decoder.decide(raw[i], self.supports[position], float(radius[i]))
            good[i, position] = bool(exact)
            if exact is None:
                undecided[i].append(self.supports[position])
        minimal = good.copy()
        for position, below in enumerate(self._below):
            if len(below):
                minimal[:, position] &= ~good[:, below].any(axis=1)
        explained: NDArray[np.bool_] = np.asarray(good.any(axis=1))
        sizes = np.array([len(part) for part in self.supports])
        least = np.where(good, sizes, sizes.max(initial=0) + 1).min(axis=1)
        eligible = np.where(explained[:, None], good & (sizes == least[:, None]), True)
        steps = np.rint(residuals / np.where(slack > 0.0, 2.0 * slack, 1.0)[:, None])
        chosen = np.argmin(np.where(eligible, steps, np.inf), axis=1)
        error = np.zeros((count, self._dense.shape[1]))
        for position in np.unique(chosen):
            rows, columns = np.flatnonzero(chosen == position), self._columns[position]
            if len(columns):
                error[np.ix_(rows, columns)] = products(raw[rows], self._inverse(int(position)).T)
        picked = residuals[np.arange(count), chosen]
        smaller = np.where(sizes < sizes[chosen][:, None], residuals, np.inf).min(axis=1)
        return BatchDecoding(
            chosen,
            self.supports,
            picked,
            error,
            explained,
            minimal,
            smaller,
            slack.copy(),
            tuple(map(tuple, undecided)),
            self.zero_rule,
        )

    def solve(self, position: int, syndrome: Array) -> tuple[float, Array]:
        """Residual and least-squares error of one syndrome on one support of the table."""
        error = np.zeros(self._dense.shape[1])
        columns = self._columns[position]
        if len(columns):
            error[columns] = np.linalg.lstsq(self._dense[:, columns], syndrome, rcond=DEPENDENT)[0]
        return float(np.linalg.norm(self._dense @ error - syndrome)), error
