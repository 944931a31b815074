"""A field with some nodes projected out, and how far rounding may have moved it: one level of the support search.

Projecting with a basis whose projector is within p of the exact one moves a vector x by at most (p + κ)‖x‖ away from
where exact arithmetic would put it, κ being the rounding of the products; twice that after the second pass. Those
bounds travel with the operator (`noise`) and the syndrome (`blur`) down the tree, and into every proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.decoding.spans import DEPENDENT, UNIT, Spans, build_spans, column_squares, project_out, tamed
from solvers.groups import NodeColumns

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Basis:
    """Orthonormal rows over `rows` of the operator; `error` bounds the distance of its projector from the exact one."""

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
        rows, columns = spans.columns(nodes)
        inexact = float(np.linalg.norm(spans.error[list(nodes)]))
        vectors, error, dropped = orthonormal(columns, inexact, DEPENDENT)
        return cls(rows, vectors, float(error), bool(dropped) or bool(spans.dropped[list(nodes)].any()))

    @property
    def moves(self) -> float:
        """Bound on the relative error of one projection: the projector's, and the rounding of its two products."""
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
