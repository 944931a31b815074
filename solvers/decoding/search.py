"""Exact support search: min ‖e‖₀ with ‖Be − s‖ ≤ ε, all other supports that explain s, and the k-sparse minimiser.

Three facts replace the loop over supports. (1) With orthonormal bases the last two levels are one pass over pairs
(`solvers.kernels.support_pairs`), shared by all syndromes of a design. (2) Rows that no node of S touches keep their
residual, so S must meet the nodes of any set of rows whose energy exceeds ε²: on sparse fields that is a handful of
nodes, and branching on them (each branch without its predecessors) lists every support once. (3) Every survivor is
judged again by an orthonormal basis of its own span, so the float slack of the scan can only add work, never lose
a support. With an incumbent in the place of ε the same branching minimises the residual.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.decoding.result import Decoding, Explanation
from solvers.decoding.spans import DEPENDENT, Spans, as_operator, build_spans, local_part, project_out, span_of
from solvers.groups import NodeColumns, column_groups

Array = NDArray[np.float64]

DELICATE = 1e-4
"""Pairs of spans with a pivot of I − CᵀC below this are judged one by one."""
ROUNDING = 1e-12
"""Default tolerance of ‖Be − s‖ ≤ ε, relative to ‖s‖: the rounding of a short chain of float operations."""
BUFFER = 256
"""Pairs that a scan returns at first; when there are more, it is repeated with room for all."""


def decode_support(B: Any, groups: Any = None, *, syndrome: Any, k: int, **options: Any) -> Decoding:
    """One syndrome of one design; see `SupportDecoder.decode` for the options. `known` lists erased nodes."""
    known = options.pop("known", ())
    return SupportDecoder(B, groups, known=known).decode(syndrome, k=k, **options)


class SupportDecoder:
    """A design prepared once, decoded many times.

    `known` are nodes whose error is known to be there (erasures): their columns are projected out of B and s, so
    they cost nothing of the budget k. The object is read-only after construction and can be shared between threads.
    """

    def __init__(self, B: Any, groups: Any = None, *, known: Iterable[int] = ()) -> None:
        self._original = as_operator(B)
        self._groups: NodeColumns = column_groups(groups, self._original.shape[1])
        self.known = tuple(sorted({int(i) for i in known}))
        if self.known and not 0 <= self.known[0] <= self.known[-1] < len(self._groups):
            raise ValueError(f"known: nodes are numbered 0..{len(self._groups) - 1}, got {list(self.known)}")
        operator = self._original
        self._known_basis = np.zeros((operator.shape[0], 0))
        scale = None
        if self.known:
            scale = build_spans(operator, self._groups).scale
            self._known_basis = span_of(_dense(operator, self._columns(self.known)))
            operator = project_out(operator, self._known_basis)
        self._operator = operator
        self.spans = build_spans(operator, self._groups, scale=scale)
        self._usable = np.ones(len(self._groups), dtype=np.bool_)
        self._usable[list(self.known)] = False

    @property
    def nodes(self) -> int:
        return len(self._groups)

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
    ) -> Decoding:
        """Smallest support of at most k nodes with residual ≤ ε (plus `tolerance`), and every minimal other one.

        When none explains the syndrome, the support of at most k nodes with the least residual. `limit` caps the list
        of explanations; the result says when it, or `time_limit`, cut the search short.
        """
        raw = _vector(syndrome, self._operator.shape[0])
        if k < 0:
            raise ValueError(f"k must not be negative, got {k}")
        if not epsilon >= 0.0:
            raise ValueError(f"epsilon must be a number of at least 0, got {epsilon!r}")
        s = self._without_known(raw)
        slack = ROUNDING * float(np.linalg.norm(raw)) if tolerance is None else float(tolerance)
        deadline = None if time_limit is None else time.monotonic() + time_limit
        parts = self.spans.project(s)
        search = _Search(epsilon + slack, limit=limit, deadline=deadline, listing=True)
        search.run(self._operator, self._groups, self.spans, s, k, self._usable, parts)
        found = _minimal(search.found)
        complete = search.complete
        ranked = sorted(found, key=lambda item: (len(item[0]), item[1], item[0]))
        if ranked:
            support, residual = ranked[0]
        else:
            best = self._minimise(s, k, deadline, parts)
            support, residual, complete = best.support, best.residual, complete and best.complete
        smaller = self._minimise(s, len(support) - 1, deadline, parts) if support else None
        explanations = tuple(
            Explanation(nodes, value, self._solve(raw, nodes), edge=abs(value - epsilon) <= slack < epsilon)
            for nodes, value in ranked
        )
        return Decoding(
            support=support,
            error=explanations[0].error if explanations else self._solve(raw, support),
            residual=residual,
            explained=bool(found),
            explanations=explanations,
            complete=complete,
            best_smaller=np.inf if smaller is None else smaller.residual,
            epsilon=epsilon,
            tolerance=slack,
            k=k,
            tested=search.tested,
            known=self.known,
        )

    def residual(self, syndrome: Any, support: Sequence[int]) -> float:
        """‖Be − s‖ at the best error on `support` (and the known nodes)."""
        return self.spans.residual(tuple(support), self._without_known(_vector(syndrome, self._operator.shape[0])))

    def free_dimensions(self, support: Sequence[int]) -> int:
        """Dimension of the errors on support and known nodes that change nothing: 0 when the error there is determined."""
        columns = self._columns((*self.known, *support))
        return len(columns) - _rank(self._local(columns)[1]) if len(columns) else 0

    def null_space(self, support: Sequence[int]) -> Array:
        """Orthonormal basis (coordinates, free dimensions) of the errors on these nodes that change nothing."""
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
        return np.concatenate([self._groups[i] for i in nodes]) if len(nodes) else np.zeros(0, dtype=np.int64)

    def _local(self, columns: NDArray[np.int64]) -> tuple[Any, Array]:
        """These columns of the operator as a dense block over the rows they touch."""
        if isinstance(self._original, np.ndarray):
            return slice(None), self._original[:, columns]
        return local_part(self._original, columns)

    def _without_known(self, s: Array) -> Array:
        for _ in range(2 if self._known_basis.shape[1] else 0):
            s = s - self._known_basis @ (self._known_basis.T @ s)
        return s

    def _solve(self, raw: Array, support: tuple[int, ...]) -> Array:
        """The least-squares error on support and known nodes; of least norm where they leave it free."""
        error = np.zeros(self._original.shape[1])
        columns = self._columns((*self.known, *support))
        if len(columns):
            rows, local = self._local(columns)
            error[columns] = np.linalg.lstsq(local, raw[rows], rcond=DEPENDENT)[0] if local.size else 0.0
        return error

    def _minimise(self, s: Array, size: int, deadline: float | None, parts: Array) -> _Search:
        search = _Search(float(np.linalg.norm(s)), limit=0, deadline=deadline, listing=False)
        search.run(self._operator, self._groups, self.spans, s, size, self._usable, parts)
        return search


@dataclass
class _Search:
    """One traversal. Listing keeps `radius` and collects; minimising lowers it to the best residual found."""

    radius: float
    limit: int
    deadline: float | None
    listing: bool
    found: list[tuple[tuple[int, ...], float]] = field(default_factory=list)
    support: tuple[int, ...] = ()
    residual: float = np.inf
    complete: bool = True
    tested: int = 0

    def run(
        self,
        operator: Any,
        groups: NodeColumns,
        spans: Spans,
        s: Array,
        size: int,
        usable: NDArray[np.bool_],
        parts: Array,
    ) -> None:
        """Search all supports of at most `size` usable nodes; `parts` are the projections Q_jᵀs."""
        self._root, self._s = spans, s
        self._consider(())
        if size > 2 and not self.listing:
            self._greedy(operator, groups, spans, s, size, usable, parts)
        self._descend(operator, groups, spans, s, size, usable.copy(), (), parts)

    def _greedy(
        self,
        operator: Any,
        groups: NodeColumns,
        spans: Spans,
        s: Array,
        size: int,
        usable: NDArray[np.bool_],
        parts: Array,
    ) -> None:
        """A good incumbent first: the best pair, then one best node at a time. The lower it is, the fewer branches."""
        self._descend(operator, groups, spans, s, 2, usable.copy(), (), parts)
        while 0 < len(self.support) < size and not self._stopped():
            basis = span_of(spans.columns(self.support))
            smaller = project_out(operator, basis)
            rest = s - basis @ (basis.T @ s)
            gains = np.square(build_spans(smaller, groups, scale=spans.scale).project(rest)).sum(axis=1)
            gains[~usable] = 0.0
            gains[list(self.support)] = 0.0
            if not gains.any() or not self._consider((*self.support, int(np.argmax(gains)))):
                return

    def _consider(self, support: tuple[int, ...]) -> bool:
        """Judge one support directly; True when it explains the syndrome (or improves on the incumbent)."""
        self.tested += 1
        support = tuple(sorted(support))
        value = self._root.residual(support, self._s)
        better = value < self.residual
        if better:
            self.residual, self.support = value, support
        if not self.listing:
            self.radius = min(self.radius, self.residual)
            return better
        if value <= self.radius:
            self.found.append((support, value))
            return True
        return False

    def _stopped(self) -> bool:
        late = self.deadline is not None and time.monotonic() > self.deadline
        if late or (self.listing and self.limit and len(self.found) >= self.limit):
            self.complete = False
        return not self.complete

    def _descend(
        self,
        operator: Any,
        groups: NodeColumns,
        spans: Spans,
        s: Array,
        left: int,
        usable: NDArray[np.bool_],
        prefix: tuple[int, ...],
        parts: Array | None = None,
    ) -> None:
        energy = float(s @ s)
        if left == 0 or not usable.any() or np.sqrt(energy) <= self.radius * (self.listing or 1.0 - 1e-12):
            return
        if self._stopped():
            return
        # Projected bases have lost digits, and the scan must never lose a support: more slack below the root.
        slack = (1e-9 if not prefix else 1e-5) * float(self._s @ self._s)
        parts = spans.project(s) if parts is None else parts
        gains = np.einsum("ij,ij->i", parts, parts)
        usable = self._singles(gains, energy, slack, usable, prefix)
        if left == 1:
            return
        if left == 2:
            self._pairs(spans, parts, gains, energy - self.radius**2 - slack, usable, prefix)
            return
        branch = self._must_meet(spans, s)
        branch = branch[usable[branch]]
        for i in branch[np.argsort(-gains[branch], kind="stable")]:
            if self._stopped():
                return
            usable[i] = False  # later branches do without it, so that each support is listed once
            basis = span_of(spans.columns((int(i),)))
            smaller = project_out(operator, basis)
            self._descend(
                smaller,
                groups,
                build_spans(smaller, groups, scale=spans.scale),
                s - basis @ (basis.T @ s),
                left - 1,
                usable.copy(),
                (*prefix, int(i)),
            )

    def _singles(
        self, gains: Array, energy: float, slack: float, usable: NDArray[np.bool_], prefix: tuple[int, ...]
    ) -> NDArray[np.bool_]:
        """Judge the last-node candidates; nodes that finish an explanation are not needed in larger ones."""
        usable = usable.copy()
        masked = np.where(usable, gains, -1.0)
        if not self.listing:
            near = np.flatnonzero(masked >= max(masked.max() - slack, energy - self.radius**2 - slack))
            for j in near[np.argsort(-masked[near], kind="stable")]:
                self._consider((*prefix, int(j)))
            return usable
        for j in np.flatnonzero(masked >= energy - self.radius**2 - slack):
            if self._stopped():
                break
            if self._consider((*prefix, int(j))):
                usable[j] = False
        return usable

    def _pairs(
        self,
        spans: Spans,
        parts: Array,
        gains: Array,
        threshold: float,
        usable: NDArray[np.bool_],
        prefix: tuple[int, ...],
    ) -> None:
        from solvers.kernels.support_pairs import scan_pairs

        pointers, neighbours, blocks = spans.overlap
        usable = usable & (spans.scale > 0)
        order = np.argsort(-gains, kind="stable")
        full = len(neighbours) == spans.nodes**2
        if not self.listing:  # first the best pair, then every pair within the slack of it
            slack = (1e-9 if not prefix else 1e-5) * float(self._s @ self._s)
            empty = np.zeros((0, 2), dtype=np.int64)
            best = scan_pairs(
                pointers, neighbours, blocks, parts, gains, order, usable, np.inf, full, DELICATE, empty, empty
            )[0]
            threshold = max(threshold, best - 2 * slack)
        size = BUFFER
        while True:
            found, doubtful = np.zeros((size, 2), dtype=np.int64), np.zeros((size, 2), dtype=np.int64)
            *_, count, doubts = scan_pairs(
                pointers, neighbours, blocks, parts, gains, order, usable, threshold, full, DELICATE, found, doubtful
            )
            if max(count, doubts) <= size or (self.listing and self.limit and size >= 64 * self.limit + 4096):
                break
            size = max(count, doubts)
        for i, j in (*found[:count].tolist(), *doubtful[:doubts].tolist()):
            if self._stopped():
                return
            self._consider((*prefix, i, j))
        self.complete = self.complete and max(count, doubts) <= size

    def _must_meet(self, spans: Spans, s: Array) -> NDArray[np.int64]:
        """Nodes that every support with residual ≤ radius must meet: those of the fewest rows with energy > radius²."""
        order = np.argsort(-np.abs(s), kind="stable")
        running = np.cumsum(np.square(s[order]))
        needed = int(np.searchsorted(running, (self.radius * (1 + 1e-9)) ** 2, side="right")) + 1
        return spans.touching(np.sort(order[:needed]))


def _minimal(found: list[tuple[tuple[int, ...], float]]) -> list[tuple[tuple[int, ...], float]]:
    """Only supports that contain no other: any superset of an explanation explains as well, and says nothing new."""
    kept: list[tuple[tuple[int, ...], float]] = []
    for support, value in sorted(set(found), key=lambda item: len(item[0])):
        if not any(set(other) <= set(support) for other, _ in kept):
            kept.append((support, value))
    return kept


def _dense(operator: Any, columns: NDArray[np.int64]) -> Array:
    part = operator[:, columns]
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray())


def _rank(matrix: Array) -> int:
    values = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(values > DEPENDENT * max(values.max(initial=0.0), 1e-300)))


def _vector(syndrome: Any, rows: int) -> Array:
    s = np.asarray(syndrome, dtype=np.float64)
    if s.shape != (rows,):
        raise ValueError(f"the syndrome must have one entry per row ({rows}), got shape {s.shape}")
    if not np.isfinite(s).all():
        raise ValueError("the syndrome holds a NaN or an infinity")
    return s
