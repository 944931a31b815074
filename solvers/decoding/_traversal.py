"""The traversal of the support search: branch on nodes that must be met, then scan the last two
levels at once.

Three facts replace the loop over supports. (1) With orthonormal bases the last two levels are one
pass over pairs (`solvers.kernels.support_pairs`); on dense fields a few loud rows exclude most
pairs before a Gram matrix is needed. (2) Rows that no node of S touches keep their residual, so S
must meet the nodes of any set of rows whose energy exceeds ε²: on sparse fields that is a handful
of nodes, and branching on them (each branch without its predecessors) lists every support once. (3)
A support is excluded only by a test that holds in exact arithmetic, whatever was rounded; every
survivor is judged by a basis of its own with a proven error, and in rationals where that can't
tell. With an incumbent in the place of ε the same branching minimises the residual.

One level of the search is a field with some nodes projected out, and how far rounding may have
moved it. Projecting with a basis whose projector is within p of the exact one moves a vector x by
at most (p + κ)‖x‖ away from where exact arithmetic would put it, κ being the rounding of the
products; twice that after the second pass. Those bounds travel with the operator (`noise`) and the
syndrome (`blur`) down the tree, and into every proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._gram import NodeColumns
from solvers.decoding.spans import DEPENDENT, UNIT, Spans, build_spans, column_squares, project_out, tamed

Array = NDArray[np.float64]
Told = Callable[[float, tuple[int, ...], float, bool], None]

BUFFER = 256
"""Pairs that a scan returns at first; when there are more, it is repeated with room for all."""
LOUD = 8
"""Rows that the first scan of a dense field looks at."""
KEPT = 1024
"""Bases of single nodes that are kept for the next syndromes of a design, and numbers in each."""
TELLING = 0.1
"""Seconds between two reports of progress."""


@dataclass
class Traversal:
    """One traversal.

    Listing keeps `radius` and collects; minimising lowers it to the best residual found.

    `decide` judges a support against the radius in exact arithmetic (None: it can't), `touching`
    names the nodes whose columns are not zero on all of the given rows.
    """

    radius: float
    listing: bool
    decide: Callable[[tuple[int, ...]], bool | None]
    touching: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    exact_rank: Callable[[tuple[int, ...]], int | None]
    limit: int = 0
    deadline: float | None = None
    progress: Told | None = None
    found: list[tuple[tuple[int, ...], float]] = field(default_factory=list)
    bases: dict[tuple[int, ...], Basis] = field(default_factory=dict)
    """Of the supports that were found."""
    undecided: list[tuple[int, ...]] = field(default_factory=list)
    support: tuple[int, ...] = ()
    residual: float = np.inf
    complete: bool = True
    zero_rule: bool = False
    """A direction below the zero rule, but not exactly zero, was taken for zero."""
    tested: int = 0

    def run(self, scan: Scan, size: int, usable: NDArray[np.bool_]) -> None:
        """Search all supports of at most `size` usable nodes."""
        self._root = scan
        self._share, self._told = (0.0, 1.0), time.monotonic()
        self._consider(())
        if size > 2 and not self.listing:
            self._greedy(scan, size, usable)
        self._descend(scan, size, usable)

    def _greedy(self, scan: Scan, size: int, usable: NDArray[np.bool_]) -> None:
        """A good incumbent first: the best pair, then one best node at a time.

        The lower it is, the fewer branches.
        """
        self._descend(scan, 2, usable)
        while 0 < len(self.support) < size and not self._stopped():
            gains = scan.below(self.support).gains
            gains[~usable] = 0.0
            gains[list(self.support)] = 0.0
            if not gains.any() or not self._consider((*self.support, int(np.argmax(gains)))):
                return

    def _consider(self, support: tuple[int, ...]) -> bool:
        """Judge one support directly; True when it explains the syndrome (or improves on the
        incumbent).
        """
        self.tested += 1
        support = tuple(sorted(support))
        level, s = self._root.level, self._root.s
        length = float(np.sqrt(self._root.energy))
        basis = Basis.of(level.spans, support)
        rest = basis.leave(s) if support else s
        value = float(np.sqrt(rest @ rest))
        better = value < self.residual
        if better:
            self.residual, self.support = value, support
        if not self.listing:
            self.radius = min(self.radius, self.residual)
            return better
        error = self._root.blur + ((len(s) + 4) * UNIT + basis.moves) * length
        explains = self._verdict(support, value, error, basis.dropped or level.dropped)
        if explains is None:
            self.undecided.append(support)
        elif explains:
            self.found.append((support, value))
            self.bases[support] = basis
        return bool(explains)

    def _verdict(self, support: tuple[int, ...], value: float, error: float, dropped: bool) -> bool | None:
        """Whether the support explains: by the error bound of its residual, else in exact
        arithmetic; None: nobody knows.
        """
        outside = value - error > self.radius
        if value + error <= self.radius or (outside and not dropped):
            return not outside
        exact = self.decide(support)
        if outside and exact is not False:
            self.zero_rule = True  # only along directions that the zero rule takes for none
            return False
        return exact

    def _stopped(self) -> bool:
        late = self.deadline is not None and time.monotonic() > self.deadline
        if late or (self.listing and self.limit and len(self.found) >= self.limit):
            self.complete = False
        return not self.complete

    def _descend(self, scan: Scan, left: int, usable: NDArray[np.bool_]) -> None:
        if left == 0 or not usable.any() or self._stopped():
            return
        level = scan.level
        self._settle(level, usable)
        prefix = level.prefix[len(self._root.level.prefix) :]
        usable = self._singles(scan, usable, prefix)
        if left == 1:
            return
        if left == 2:
            self._pairs(scan, usable, prefix)
            return
        branch = self._must_meet(scan)
        branch = branch[usable[branch]]
        low, high = self._share
        for place, i in enumerate(branch[np.argsort(-scan.gains[branch], kind="stable")]):
            self._share = (low + (high - low) * place / len(branch), low + (high - low) * (place + 1) / len(branch))
            self._tell()
            if self._stopped():
                return
            usable[i] = False  # later branches do without it, so that each support is listed once
            self._descend(scan.below((int(i),)), left - 1, usable)
        self._share = (low, high)

    def _tell(self) -> None:
        if self.progress is not None and time.monotonic() - self._told >= TELLING:
            self._told = time.monotonic()
            self.progress(self._share[0], self.support, self.residual, bool(self.found))

    def _top(self, energy: float) -> float:
        """The gain that a support must reach.

        A minimiser asks for an improvement in the ninth digit.
        """
        radius = self.radius if self.listing else self.radius * (1.0 - 1e-9)
        return energy - radius * radius * (1.0 + 4.0 * UNIT)

    def _settle(self, level: PrefixLevel, usable: NDArray[np.bool_]) -> None:
        """Directions that were dropped as too short: are they exactly dependent, or is that the
        zero rule's doing?
        """
        if not self.listing or self.zero_rule:
            return
        spans = level.spans
        for j in np.flatnonzero(spans.dropped & usable) if spans.dropped.any() else ():
            _, columns = spans.columns((int(j),))
            rank = level.rank + int(columns.any(axis=1).sum())
            if self.exact_rank((*level.prefix, int(j))) != rank:
                self.zero_rule = True
                return
        if level.dropped and self.exact_rank(level.prefix) != level.rank:
            self.zero_rule = True

    def _singles(self, scan: Scan, usable: NDArray[np.bool_], prefix: tuple[int, ...]) -> NDArray[np.bool_]:
        """Judge the last-node candidates; nodes that finish an explanation are not needed in larger
        ones.
        """
        usable = usable.copy()
        if not self.listing:
            self._consider((*prefix, int(np.argmax(np.where(usable, scan.gains, -1.0)))))
        open_nodes = np.flatnonzero(usable & (scan.reach >= self._top(scan.energy)))
        if not len(open_nodes):
            return usable
        for j in open_nodes[np.argsort(-scan.gains[open_nodes], kind="stable")]:
            if self._stopped():
                break
            if self._consider((*prefix, int(j))) and self.listing:
                usable[j] = False
        return usable

    def _pairs(self, scan: Scan, usable: NDArray[np.bool_], prefix: tuple[int, ...]) -> None:
        top = self._top(scan.energy)
        pairs = scan.loud_pairs(usable, self.radius) if self.listing else None
        if pairs is None:
            if not self.listing:  # first the best pair, so that only what improves on it is looked at
                best = scan.best_pair(usable, top)
                if best is not None:
                    self._consider((*prefix, *best))
                top = self._top(scan.energy)
            most = 64 * self.limit + 4096 if self.listing and self.limit else None
            pairs, all_of_them = scan.pairs(usable, top, most)
            self.complete = self.complete and all_of_them
        for i, j in pairs:
            if self._stopped():
                return
            self._consider((*prefix, i, j))
            self._tell()

    def _must_meet(self, scan: Scan) -> NDArray[np.int64]:
        """Nodes that every support with residual ≤ radius must meet: those of the fewest rows with
        energy > radius².

        Rows that the prefix touches are seen by all its neighbours once it is projected out; other
        rows are as given.
        """
        level, s = scan.level, scan.s
        enough = ((self.radius + scan.blur) * (1.0 + 1e-9)) ** 2
        outside = np.flatnonzero(~level.covered)
        inside = not float(s[outside] @ s[outside]) > enough
        rows = np.arange(len(s)) if inside else outside
        order = rows[np.argsort(-np.abs(s[rows]), kind="stable")]
        needed = int(np.searchsorted(np.cumsum(np.square(s[order])), enough, side="right")) + 1
        chosen = order[:needed]
        return self.touching(np.union1d(chosen, np.flatnonzero(level.covered)) if inside else chosen)


@dataclass(frozen=True, slots=True)
class Scan:
    """One level prepared for the tests of its last two nodes."""

    level: PrefixLevel
    s: Array  # (rows,): what the prefix leaves of the syndrome
    blur: float
    """Bound on the error of s."""
    parts: Array  # (n, width): Q_jᵀs
    gains: Array  # (n,): ‖Q_jᵀs‖²
    energy: float
    scale: float
    """‖s‖² at the root, the unit of rounding errors."""
    base: float
    reach: Array  # (n,): proven bounds on the gains of single nodes

    @classmethod
    def of(cls, level: PrefixLevel, s: Array, blur: float, scale: float = 0.0) -> Scan:
        spans = level.spans
        energy, width, height = float(s @ s), spans.width, len(s)
        scale = max(scale, energy, 1e-300)
        base = 1.1 * (2 * width + 1) * (height + 2 * width + 6) * UNIT + 4.0 * blur / float(np.sqrt(scale))
        parts = spans.project(s)
        gains = np.einsum("ij,ij->i", parts, parts)
        shift = spans.shift + base
        reach = gains / np.maximum(1.0 - shift, 0.5) + shift * scale
        if shift.max() > 0.1:
            reach[shift > 0.1] = np.inf
        return cls(level, s, blur, parts, gains, energy, scale, base, reach)

    def below(self, nodes: tuple[int, ...]) -> Scan:
        """One level down, with these nodes projected out."""
        basis = Basis.of(self.level.spans, nodes)
        moved = 1.01 * (self.blur + min(2.0 * basis.moves, 2.2) * float(np.sqrt(self.energy)))
        return Scan.of(self.level.without(nodes, basis), basis.leave(basis.leave(self.s)), moved, self.scale)

    def loud_pairs(self, usable: NDArray[np.bool_], radius: float) -> list[tuple[int, int]] | None:
        """On a dense field of scalars as given, the pairs that a few loud rows leave over; None
        when they leave too many.
        """
        spans = self.level.spans
        if spans.width > 1 or not spans.dense or self.level.noise is not None or min(spans.basis.shape) < 4 * LOUD:
            return None
        from solvers.kernels.support_pairs import ROOM, scan_rows

        rows = np.argpartition(np.abs(self.s), -LOUD)[-LOUD:]
        loud = spans.basis[rows]
        some = usable.nonzero()[0]
        loud = loud if len(some) == spans.nodes else np.ascontiguousarray(loud[:, some])
        norms = np.sqrt(np.einsum("ij,ij->j", loud, loud))
        if not (norms > 1e-100 * spans.scale[some]).all():
            return None
        loud /= norms
        heard = self.s[rows]
        energy = float(heard @ heard)
        square = radius * radius * (1.0 + 4.0 * UNIT)
        parts = heard @ loud
        found = np.empty((4 * len(some), 2), dtype=np.int64)
        shift = 5.0 * (LOUD + 12) * UNIT
        count = scan_rows(loud, parts, parts * parts, shift, energy - square, energy, found)
        if count > len(found):
            return None
        if count <= 2:  # as a rule the one that explains; judging it needs no second scan
            return [(int(some[i]), int(some[j])) for i, j in found[:count]]
        i, j = some[found[:count]].T
        c = np.einsum("ij,ij->i", spans.columns(tuple(i))[1], spans.columns(tuple(j))[1])
        shifts = spans.shift[i] + spans.shift[j] + self.base
        diagonal = 1.0 - shifts
        rest = diagonal * diagonal - c * c
        gain = diagonal * (self.gains[i] + self.gains[j]) - 2.0 * c * self.parts[i, 0] * self.parts[j, 0]
        bound = self.energy - square - shifts * self.scale
        left = (rest <= 0.0) | (gain >= bound * rest - ROOM * self.scale)
        return list(zip(i[left].tolist(), j[left].tolist(), strict=True))

    def best_pair(self, usable: NDArray[np.bool_], top: float) -> tuple[int, int] | None:
        _, i, j = self._scan(usable, top, True, np.zeros((0, 2), dtype=np.int64))
        return (int(i), int(j)) if i >= 0 else None

    def pairs(self, usable: NDArray[np.bool_], top: float, most: int | None) -> tuple[list[tuple[int, int]], bool]:
        """All pairs that may gain `top`, or the first `most` of them; and whether these are all."""
        size = BUFFER
        while True:
            found = np.zeros((size, 2), dtype=np.int64)
            count, _, _ = self._scan(usable, top, False, found)
            if count <= size or (most is not None and size >= most):
                break
            size = count if most is None else min(count, most)
        return [(int(i), int(j)) for i, j in found[:count]], count <= size

    def _scan(self, usable: NDArray[np.bool_], top: float, seek: bool, found: NDArray[np.int64]) -> Any:
        from solvers.kernels.support_pairs import scan_pairs

        spans = self.level.spans
        usable = usable & (spans.scale > 0)
        pointers, neighbours, blocks = spans.overlap
        full = len(neighbours) == spans.nodes**2
        return scan_pairs(
            pointers,
            neighbours,
            blocks,
            self.parts,
            self.gains,
            usable,
            spans.shift,
            self.base,
            top,
            self.scale,
            full,
            seek,
            found,
        )


@dataclass(frozen=True, slots=True)
class Basis:
    """Orthonormal rows over `rows` of the operator; `error` bounds the distance of its projector
    from the exact one.
    """

    rows: Any
    vectors: Array  # (rank, rows)
    error: float
    dropped: bool
    """A direction was taken for dependent by the zero rule."""

    @classmethod
    def of(cls, spans: Spans, nodes: tuple[int, ...]) -> Basis:
        from solvers.kernels.support_spans import orthonormal

        if not nodes:
            return cls(slice(0), np.zeros((0, 0)), 0.0, False)
        known: dict[tuple[int, ...], Basis] = spans.bases
        if nodes in known:
            return known[nodes]
        rows, columns = spans.columns(nodes)
        inexact = float(np.linalg.norm(spans.error[list(nodes)]))
        vectors, error, dropped = orthonormal(columns, inexact, DEPENDENT)
        made = cls(rows, vectors, float(error), bool(dropped) or bool(spans.dropped[list(nodes)].any()))
        if len(nodes) == 1 and len(known) < KEPT and columns.size <= KEPT:
            vectors.setflags(write=False)
            known[nodes] = made
        return made

    @property
    def moves(self) -> float:
        """Bound on the relative error of one projection: the projector's, and the rounding of its
        two products.
        """
        rank, height = len(self.vectors), int(self.vectors.shape[1])
        return self.error + 1.2 * max(rank, 1) * (height + rank + 4) * UNIT

    def leave(self, s: Array) -> Array:
        """(I − UUᵀ)s for one syndrome, or for each row of many."""
        rest = s.copy()
        rest[..., self.rows] -= (s[..., self.rows] @ self.vectors.T) @ self.vectors
        return rest

    def wide(self, height: int) -> Array:
        """The basis as columns over all rows of the operator."""
        result = np.zeros((height, len(self.vectors)))
        result[self.rows] = self.vectors.T
        return result


@dataclass(frozen=True, slots=True)
class PrefixLevel:
    """The operator with `prefix` projected out; what is left of the syndrome is with the search."""

    given: Any
    """The operator before anything was projected out."""
    operator: Any
    groups: NodeColumns
    spans: Spans
    noise: Array | None
    """(n,): bound on the error of each node's columns; None when they are the given ones."""
    covered: NDArray[np.bool_]  # (rows,): rows that a node of the prefix touches
    prefix: tuple[int, ...] = ()
    rank: int = 0
    dropped: bool = False

    @classmethod
    def root(cls, operator: Any, groups: NodeColumns) -> PrefixLevel:
        """The field as given; nodes of extreme length are rescaled, which changes no span."""
        with np.errstate(over="ignore", under="ignore"):
            squares = column_squares(operator)
        mild = tamed(operator, groups, squares)
        spans = build_spans(mild, groups, squares=squares if mild is operator else None)
        operator = mild
        return cls(operator, operator, groups, spans, None, np.zeros(operator.shape[0], dtype=np.bool_))

    def without(self, nodes: tuple[int, ...], basis: Basis) -> PrefixLevel:
        """One level down: `basis` is that of these nodes."""
        smaller = project_out(self.operator, basis.wide(self.operator.shape[0]))
        before = np.zeros(len(self.groups)) if self.noise is None else self.noise
        noise = 1.01 * (before + min(2.0 * basis.moves, 2.2) * self.sizes())
        columns = np.concatenate([self.groups[i] for i in nodes])
        touched = self.given[:, columns]
        touched = touched.any(axis=1) if isinstance(touched, np.ndarray) else np.asarray(abs(touched).sum(axis=1)) > 0
        return PrefixLevel(
            given=self.given,
            operator=smaller,
            groups=self.groups,
            spans=build_spans(smaller, self.groups, scale=self.spans.scale, noise=noise),
            noise=noise,
            covered=self.covered | touched.ravel(),
            prefix=(*self.prefix, *nodes),
            rank=self.rank + len(basis.vectors),
            dropped=self.dropped or basis.dropped,
        )

    def sizes(self) -> Array:
        """Frobenius norm of each node's columns."""
        squares = column_squares(self.operator)
        return np.asarray(np.sqrt(np.add.reduceat(squares[self.groups.order], self.groups.offsets[:-1])))
