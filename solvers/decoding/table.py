"""Every support of a small design prepared once, so that thousands of syndromes are decoded by matrix products.

For each support of at most k nodes the table keeps an orthonormal basis U_S of its span; the residuals of all
syndromes are then ‖s − U_S U_Sᵀ s‖, one product per support for the whole batch, and the errors of all fields that
chose one support share one pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.decoding.search import ROUNDING
from solvers.decoding.spans import DEPENDENT, build_spans, project_out, span_of
from solvers.groups import column_groups

Array = NDArray[np.float64]

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

    def __post_init__(self) -> None:
        for name in ("chosen", "residual", "error", "explained", "minimal", "best_smaller", "tolerance"):
            getattr(self, name).setflags(write=False)


def table_fits(nodes: int, k: int) -> bool:
    return sum(comb(nodes, size) for size in range(min(k, nodes) + 1)) <= LARGEST


class SupportTable:
    """All supports of at most k nodes of one design, with `known` (erased) nodes in each of them at no charge."""

    def __init__(self, B: Any, groups: Any = None, *, k: int, known: Sequence[int] = ()) -> None:
        dense = np.asarray(B.toarray() if hasattr(B, "toarray") else B, dtype=np.float64)
        columns = column_groups(groups, dense.shape[1])
        self.known = tuple(sorted({int(i) for i in known}))
        rest = [i for i in range(len(columns)) if i not in set(self.known)]
        if not table_fits(len(rest), k):
            raise ValueError(f"more than {LARGEST} supports; use SupportDecoder")
        self.supports = tuple(part for size in range(k + 1) for part in combinations(rest, size))
        index = np.concatenate([columns[i] for i in self.known]) if self.known else np.zeros(0, dtype=np.int64)
        base = span_of(dense[:, index])
        projected = project_out(dense, base) if self.known else dense
        scale = build_spans(dense, columns).scale
        spans = build_spans(projected, columns, scale=scale)
        self._base = base
        self._bases = tuple(
            _basis(spans.columns(part)) if part else np.zeros((dense.shape[0], 0)) for part in self.supports
        )
        self._columns = tuple(
            np.concatenate([columns[i] for i in (*self.known, *part)]) if self.known or part else index
            for part in self.supports
        )
        self._dense = dense
        place = {part: position for position, part in enumerate(self.supports)}
        self._below = tuple(
            np.array([place[part] for size in range(len(whole)) for part in combinations(whole, size)], dtype=np.int64)
            for whole in self.supports
        )

    def decode(self, syndromes: Any, *, epsilon: float = 0.0, tolerance: Any = None) -> BatchDecoding:
        """Decode the rows of `syndromes` (N, rows); ties go to the smaller support, then the smaller residual."""
        raw = np.atleast_2d(np.asarray(syndromes, dtype=np.float64))
        if raw.shape[1] != self._dense.shape[0] or not np.isfinite(raw).all():
            raise ValueError(f"syndromes must be finite and have {self._dense.shape[0]} columns, one per row of B")
        count = len(raw)
        slack = np.broadcast_to(
            ROUNDING * np.linalg.norm(raw, axis=1) if tolerance is None else np.asarray(tolerance, dtype=np.float64),
            (count,),
        )
        data = raw - (raw @ self._base) @ self._base.T
        residuals = np.empty((count, len(self.supports)))
        for position, basis in enumerate(self._bases):
            residuals[:, position] = np.linalg.norm(data - (data @ basis) @ basis.T, axis=1)
        good = residuals <= (epsilon + slack)[:, None]
        minimal = good.copy()
        for position, below in enumerate(self._below):
            if len(below):
                minimal[:, position] &= ~good[:, below].any(axis=1)
        explained: NDArray[np.bool_] = np.asarray(good.any(axis=1))
        sizes = np.array([len(part) for part in self.supports])
        least = np.where(good, sizes, sizes.max(initial=0) + 1).min(axis=1)
        eligible = np.where(explained[:, None], good & (sizes == least[:, None]), True)
        chosen = np.argmin(np.where(eligible, residuals, np.inf), axis=1)
        error = np.zeros((count, self._dense.shape[1]))
        for position in np.unique(chosen):
            rows, columns = np.flatnonzero(chosen == position), self._columns[position]
            if len(columns):
                inverse = np.linalg.pinv(self._dense[:, columns], rcond=DEPENDENT)
                error[np.ix_(rows, columns)] = raw[rows] @ inverse.T
        picked = residuals[np.arange(count), chosen]
        smaller = np.where(sizes < sizes[chosen][:, None], residuals, np.inf).min(axis=1)
        return BatchDecoding(chosen, self.supports, picked, error, explained, minimal, smaller, slack.copy())

    def solve(self, position: int, syndrome: Array) -> tuple[float, Array]:
        """Residual and least-squares error of one syndrome on one support of the table."""
        error = np.zeros(self._dense.shape[1])
        columns = self._columns[position]
        if len(columns):
            error[columns] = np.linalg.lstsq(self._dense[:, columns], syndrome, rcond=DEPENDENT)[0]
        return float(np.linalg.norm(self._dense @ error - syndrome)), error


def _basis(columns: Array) -> Array:
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > DEPENDENT])
