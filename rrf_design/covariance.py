"""Noise that is not independent: covariances across blocks, families between copies and independence, singular Σ.

Rows b with noise of covariance Σ = VΛVᵀ are whitened by Σ^(-1/2) on the support of Σ. Directions V₀ in which Σ is zero carry no
noise at all: V₀ᵀBh = V₀ᵀc holds exactly, whatever the others measure. They are kept as exact rows and never divided by zero;
what to do with an exact row (a constraint, or a weight one chooses) is the caller's decision, and said by the caller.

Whitening across blocks mixes their rows: BᵀB is then no longer a sum over these blocks, so they belong together, in a purchase as
in a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WhitenedRows:
    """Rows whose noise is independent with variance 1, and rows without noise. `back` maps whitened residuals to bare ones."""

    rows: Array  # (rank, columns)
    target: Array  # (rank,)
    exact_rows: Array  # (rows − rank, columns)
    exact_target: Array
    back: Array  # (rows, rank): Σ^(1/2) on its support

    def __post_init__(self) -> None:
        for array in (self.rows, self.target, self.exact_rows, self.exact_target, self.back):
            array.setflags(write=False)


def checked_covariance(covariance: object, *, rows: int, where: str) -> Array:
    """A symmetric positive semidefinite matrix of this order; InputError says what it is instead."""
    try:
        matrix = np.array(covariance, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: covariance must be a matrix of numbers") from None
    if matrix.shape != (rows, rows):
        raise InputError(f"{where}: covariance must be {rows}×{rows}, not {'×'.join(map(str, matrix.shape))}")
    if not np.isfinite(matrix).all():
        raise InputError(f"{where}: covariance holds a number that is not finite")
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise InputError(f"{where}: covariance is not symmetric")
    matrix = matrix / 2 + matrix.T / 2
    if rows and np.linalg.eigvalsh(matrix)[0] < -_rounding(matrix):
        raise InputError(f"{where}: covariance is not positive semidefinite")
    return np.asarray(matrix)


def joint_covariance(own: Sequence[Array], cross: Mapping[tuple[int, int], Array], *, where: str) -> Array:
    """The covariance of several blocks together: their own ones, and `cross[i, j]` between the rows of i and j (i < j)."""
    ends = np.cumsum([0, *(len(part) for part in own)])
    matrix = np.zeros((int(ends[-1]), int(ends[-1])))
    for number, part in enumerate(own):
        matrix[ends[number] : ends[number + 1], ends[number] : ends[number + 1]] = part
    for (i, j), part in cross.items():
        if not 0 <= i < j < len(own):
            raise InputError(f"{where}: there is no pair of blocks {i} and {j}")
        if np.shape(part) != (len(own[i]), len(own[j])):
            raise InputError(f"{where}: the covariance of blocks {i} and {j} must be {len(own[i])}×{len(own[j])}")
        matrix[ends[i] : ends[i + 1], ends[j] : ends[j + 1]] = part
        matrix[ends[j] : ends[j + 1], ends[i] : ends[i + 1]] = np.transpose(part)
    return checked_covariance(matrix, rows=len(matrix), where=where)


def family_covariance(sigmas: Sequence[float], *, correlation: float, where: str) -> Array:
    """Σ_ij = ρσ_iσ_j off the diagonal: members of a family between copies (ρ = 1) and independence (ρ = 0)."""
    if not 0.0 <= correlation <= 1.0:
        raise InputError(f"{where}: correlation must lie between 0 and 1, not {correlation!r}")
    if not all(isfinite(sigma) and sigma >= 0.0 for sigma in sigmas):
        raise InputError(f"{where}: every sigma must be a finite number of at least 0")
    scale = np.asarray(sigmas, dtype=np.float64)
    return np.outer(scale, scale) * (correlation + (1.0 - correlation) * np.eye(len(scale)))


def shrunk(covariance: Array, tau: float) -> Array:
    """(1 − τ)Σ + τ·tr(Σ)/m·I."""
    if not 0.0 <= tau <= 1.0:
        raise InputError(f"shrinkage must lie between 0 and 1, not {tau!r}")
    order = len(covariance)
    return np.asarray((1.0 - tau) * covariance + tau * float(np.trace(covariance)) / max(order, 1) * np.eye(order))


def whiten(rows: Array, target: Array, covariance: Array) -> WhitenedRows:
    """Rows (m, columns) with target (m,) and noise of covariance Σ (m, m), split into what is noisy and what is exact.

    A variance below rounding of the largest one counts as zero.
    """
    variances, vectors = np.linalg.eigh(covariance)
    noisy = variances > _rounding(covariance)
    spread = np.sqrt(variances[noisy])
    along = vectors[:, noisy].T / spread[:, None]
    return WhitenedRows(
        rows=along @ rows,
        target=along @ target,
        exact_rows=vectors[:, ~noisy].T @ rows,
        exact_target=vectors[:, ~noisy].T @ target,
        back=vectors[:, noisy] * spread,
    )


def shrinkage_sweep(
    covariance: Array, taus: Sequence[float], measure: Callable[[Array], float]
) -> tuple[tuple[float, float], ...]:
    """(τ, measure(Σ_τ)) for each τ: how much of a margin rests on correlations that were only estimated."""
    return tuple((float(tau), float(measure(shrunk(covariance, float(tau))))) for tau in taus)


def _rounding(matrix: Array) -> float:
    """Eigenvalues of this size may be rounding errors."""
    return float(4 * len(matrix) * np.finfo(float).eps * np.abs(matrix).max(initial=0.0))
