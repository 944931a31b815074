"""The semidefinite dual for group-sparse smallest eigenvalues (d'Aspremont's relaxation with groups).

γ² ≥ min ⟨G, X⟩ over X ⪰ 0, tr X = 1, Σ‖X_ij‖_F ≤ s, since X = hhᵀ of a unit h on s nodes is among them. It is solved by
splitting: X is projected on the spectraplex, its copy on the ball of the block norm, and the multiplier U of their
equality is the dual matrix: γ² ≥ λ_min(G + U) − b(U) for every U whatsoever, where b(U) is the smaller of s·max‖U_ij‖ and
the largest sum of s block norms in a row. The best U met is kept, so stopping early is sound.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers.bounds.result import Relaxation
from solvers.groups import column_groups

Array = NDArray[np.float64]
LARGEST = 600  # coordinates: beyond it one eigenvalue decomposition per step no longer pays


def semidefinite(
    B: Any, groups: Any = None, *, size: int, iterations: int = 1500, time_limit: float | None = None
) -> Relaxation:
    """γ(size) ≥ the estimate; `data` is the lower triangle of U, row by row, in the order of the nodes' columns."""
    dense = np.asarray(B.toarray() if sparse.issparse(B) else B, dtype=np.float64)
    columns = column_groups(groups, dense.shape[1])
    if dense.shape[1] > LARGEST:
        raise ValueError(f"{dense.shape[1]} coordinates are more than {LARGEST}")
    order = columns.order
    owner = np.repeat(np.arange(len(columns)), columns.sizes)
    gram = dense[:, order].T @ dense[:, order]
    scale = float(np.abs(gram).max()) or 1.0
    problem = _Dual(gram / scale, owner, min(size, len(columns)))
    finished = problem.solve(iterations, None if time_limit is None else time.monotonic() + time_limit)
    value = float(np.sqrt(max(0.0, problem.best) * scale))
    return Relaxation(value, "semidefinite", (problem.dual * scale)[np.tril_indices(len(gram))], finished)


class _Dual:
    """ADMM on the primal; every tenth step the multiplier is evaluated as a dual bound."""

    def __init__(self, gram: Array, owner: NDArray[np.int64], size: int) -> None:
        self.gram, self.owner, self.size = gram, owner, size
        self.nodes = int(owner[-1]) + 1
        self.best = 0.0
        self.dual = np.zeros_like(gram)
        self.starts = np.searchsorted(owner, np.arange(self.nodes))
        for candidate in (np.zeros_like(gram), -self._off_diagonal(gram)):
            self._offer(candidate)

    def solve(self, iterations: int, deadline: float | None) -> bool:
        order = len(self.gram)
        rho = 0.5
        copy = np.eye(order) / order
        scaled = np.zeros_like(self.gram)
        quiet = 0
        for step in range(1, iterations + 1):
            x = _spectraplex(copy - scaled - self.gram / rho)
            before = copy
            copy = self._ball(x + scaled)
            scaled = scaled + x - copy
            if step % 10 == 0:
                held = self.best
                self._offer(-rho * scaled)
                self._offer(rho * scaled)
                quiet = quiet + 1 if self.best <= held * (1 + 1e-5) + 1e-12 else 0
                if quiet >= 15:
                    return True
                primal, dual = np.linalg.norm(x - copy), rho * np.linalg.norm(copy - before)
                if primal > 5 * dual:
                    rho, scaled = rho * 1.5, scaled / 1.5
                elif dual > 5 * primal:
                    rho, scaled = rho / 1.5, scaled * 1.5
                if deadline is not None and time.monotonic() > deadline:
                    return False
        return True

    def _offer(self, dual: Array) -> None:
        value = self.evaluate(dual)
        if value > self.best:
            self.best, self.dual = value, dual

    def evaluate(self, dual: Array) -> float:
        """λ_min(G + U) − b(U)."""
        norms = self._norms(dual)
        cover = min(float(norms.max()) * self.size, float(np.sort(norms, axis=1)[:, -self.size :].sum(axis=1).max()))
        return float(np.linalg.eigvalsh(self.gram + dual)[0]) - cover

    def _norms(self, matrix: Array) -> Array:
        """Block norms: Frobenius, which is at least the spectral norm the bound needs."""
        squares = np.add.reduceat(np.add.reduceat(np.square(matrix), self.starts, axis=0), self.starts, axis=1)
        return np.asarray(np.sqrt(squares))

    def _off_diagonal(self, matrix: Array) -> Array:
        return np.where(self.owner[:, None] == self.owner[None, :], 0.0, matrix)

    def _ball(self, matrix: Array) -> Array:
        """Projection on Σ‖X_ij‖_F ≤ s: block norms shrink by one amount, found by sorting."""
        norms = self._norms(matrix)
        flat = np.sort(norms.ravel())[::-1]
        if flat.sum() <= self.size:
            return matrix
        partial = (np.cumsum(flat) - self.size) / np.arange(1, len(flat) + 1)
        threshold = partial[np.flatnonzero(flat > partial)[-1]]
        factors = np.maximum(0.0, 1.0 - threshold / np.maximum(norms, 1e-300))
        return np.asarray(matrix * factors[np.ix_(self.owner, self.owner)])


def _spectraplex(matrix: Array) -> Array:
    """Projection on {X ⪰ 0, tr X = 1}."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    falling = values[::-1]
    partial = (np.cumsum(falling) - 1.0) / np.arange(1, len(falling) + 1)
    threshold = partial[np.flatnonzero(falling > partial)[-1]]
    kept = np.maximum(values - threshold, 0.0)
    positive = kept > 0
    return np.asarray((vectors[:, positive] * kept[positive]) @ vectors[:, positive].T)
