"""Exact support search: min ‖e‖₀ with ‖Be − s‖ ≤ ε, all other supports that explain s, and the k-sparse minimiser.

`SupportDecoder` prepares a design once; the search itself is in `solvers.decoding.traversal`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.decoding.result import Decoding, Explanation
from solvers.decoding.spans import DEPENDENT, as_operator, build_spans, local_part, project_out, span_of
from solvers.decoding.traversal import Search
from solvers.groups import NodeColumns, column_groups

Array = NDArray[np.float64]

ROUNDING = 1e-12
"""Default tolerance of ‖Be − s‖ ≤ ε, relative to ‖s‖: the rounding of a short chain of float operations."""


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
        search = Search(epsilon + slack, limit=limit, deadline=deadline, listing=True)
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

    def _minimise(self, s: Array, size: int, deadline: float | None, parts: Array) -> Search:
        search = Search(float(np.linalg.norm(s)), limit=0, deadline=deadline, listing=False)
        search.run(self._operator, self._groups, self.spans, s, size, self._usable, parts)
        return search


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
