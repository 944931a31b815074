"""Every support of a small design prepared once, so that thousands of syndromes are decoded by matrix products.

For each support of at most k nodes the table keeps an orthonormal basis U_S of its span; the residuals of all
syndromes are then ‖s − U_S U_Sᵀ s‖, one product per support for the whole batch, and the errors of all fields that
chose one support share one pseudo-inverse. Each basis comes with a proven error, so that a residual is on the right
side of ε in exact arithmetic, or so near that it is decided in rationals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.decoding.search import ROUNDING, SupportDecoder
from solvers.decoding.spans import DEPENDENT, UNIT
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
    undecided: tuple[tuple[tuple[int, ...], ...], ...]  # (N,): supports that floats can't judge and rationals won't
    zero_rule: bool
    """Some support has directions below 1e-10 of their node's length that were taken for zero (the paper's rule)."""

    def __post_init__(self) -> None:
        for name in ("chosen", "residual", "error", "explained", "minimal", "best_smaller", "tolerance"):
            getattr(self, name).setflags(write=False)


def table_fits(nodes: int, k: int) -> bool:
    return sum(comb(nodes, size) for size in range(min(k, nodes) + 1)) <= LARGEST


class SupportTable:
    """All supports of at most k nodes of one design, with `known` (erased) nodes in each of them at no charge."""

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
        self._columns = tuple(
            np.concatenate([columns[i] for i in (*self.known, *part)])
            if self.known or part
            else np.zeros(0, dtype=np.int64)
            for part in self.supports
        )
        self._dense = dense
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

    def decode(self, syndromes: Any, *, epsilon: float = 0.0, tolerance: Any = None) -> BatchDecoding:
        """Decode the rows of `syndromes` (N, rows); ties go to the smaller support, then the smaller residual."""
        raw = np.atleast_2d(np.asarray(syndromes, dtype=np.float64))
        if raw.shape[1] != self._dense.shape[0] or not np.isfinite(raw).all():
            raise ValueError(f"syndromes must be finite and have {self._dense.shape[0]} columns, one per row of B")
        count = len(raw)
        lengths = np.linalg.norm(raw, axis=1)
        slack = np.broadcast_to(
            ROUNDING * lengths if tolerance is None else np.asarray(tolerance, dtype=np.float64), (count,)
        )
        data, blur = self._decoder.without_known(raw)
        radius = epsilon + slack
        residuals = np.empty((count, len(self.supports)))
        errors = np.empty(len(self.supports))
        for position, basis in enumerate(self._bases):
            span = basis.wide(raw.shape[1])
            residuals[:, position] = np.linalg.norm(data - (data @ span) @ span.T, axis=1)
            errors[position] = basis.moves + blur + (raw.shape[1] + 4) * UNIT
        good = residuals <= radius[:, None]
        undecided: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
        near = np.abs(residuals - radius[:, None]) <= 1.01 * errors * lengths[:, None]
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
        chosen = np.argmin(np.where(eligible, residuals, np.inf), axis=1)
        error = np.zeros((count, self._dense.shape[1]))
        for position in np.unique(chosen):
            rows, columns = np.flatnonzero(chosen == position), self._columns[position]
            if len(columns):
                inverse = np.linalg.pinv(self._dense[:, columns], rcond=DEPENDENT)
                error[np.ix_(rows, columns)] = raw[rows] @ inverse.T
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
