"""Noise that is not independent: within a block, within a family, across blocks.

Within one block rows of covariance Σ = VΛVᵀ are whitened by Σ^(-1/2). Directions in which Σ is zero carry no noise, so any finite
weight is right for them: they are kept as rows `EXACT` times as heavy as the least noisy one, which is a constraint up to a part
in a million of the margin, and never a division by zero.

Across blocks every one is whitened by itself, and the variance of all of them is raised by one factor c with R ⪯ c·I, where R is the
covariance of their whitened rows together. Noise that counts as c times as large in every row, and as independent, then covers what is
shared, *whatever part of the blocks is held*: BᵀB stays a sum over blocks, margins never fall with a purchase, and no row of one
block stands in another. Blocks that are bought together anyway can be written as one block with its covariance, which loses nothing.
For m blocks of which no two are correlated more than ρ, c = 1 + (m − 1)ρ: from independence (1) to copies that share one weight (m).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.blocks import SharedNoise
    from rrf_design.problem import Problem

Array = NDArray[np.float64]
EXACT = 1024.0
"""How much heavier than the least noisy direction of its block a direction without noise is."""


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


def shrunk(covariance: Array, tau: float) -> Array:
    """(1 − τ)Σ + τ·tr(Σ)/m·I."""
    if not 0.0 <= tau <= 1.0:
        raise InputError(f"shrinkage must lie between 0 and 1, not {tau!r}")
    order = len(covariance)
    average = float(np.sum(np.diag(covariance) / max(order, 1)))
    return np.asarray((1.0 - tau) * covariance + tau * average * np.eye(order))


def whitening(covariance: Array, *, tau: float = 0.0, floor: float = 0.0, where: str) -> Array:
    """(m, m): what rows with this noise are multiplied with, after shrinkage and floor; exact directions are kept, and heavy."""
    smallest = _rounding(covariance)
    variances, vectors = np.linalg.eigh(shrunk(covariance, tau))
    variances = np.maximum(variances, floor)
    noisy = variances > smallest
    if not noisy.any():
        raise InputError(f"{where}: covariance is zero; leave it out, or give [problem] a variance_floor")
    weights = np.empty(len(variances))
    weights[noisy] = 1.0 / np.sqrt(variances[noisy])
    # a variance that rounding can't tell from zero must not come out above 1
    weights[~noisy] = min(EXACT * float(weights[noisy].max()), 1.0 / (2.0 * smallest) ** 0.5) if smallest else EXACT
    return np.asarray((vectors * weights) @ vectors.T)


def correlated(members: int, correlation: float) -> float:
    """1 + (m − 1)ρ: c of m blocks of which no two are correlated more than ρ."""
    exactly = 1 + (members - 1) * Fraction(correlation)
    return nextafter(float(exactly), inf) if float(exactly) < exactly else float(exactly)


def dilations(problem: Problem) -> dict[str, float]:
    """c of every block whose noise, or weight, is shared; blocks of their own are left out."""
    result = {}
    for block in problem.blocks:
        members = problem.family_size[block.family_name]
        if members > 1:
            result[block.id] = correlated(members, 1.0 if block.correlation is None else block.correlation)
    for entry in problem.noise:
        result.update(dict.fromkeys(entry.blocks, dilation(problem, entry, entry.blocks)))
    return result


def dilation(problem: Problem, entry: SharedNoise, held: Sequence[str]) -> float:
    """c of some of the blocks of an entry, by themselves."""
    if entry.correlation is not None:
        return correlated(len(held), entry.correlation)
    together, rounding = _whitened(problem, entry, held)
    # a hair above the largest eigenvalue, so that the verifier can prove it
    return max(1.0, float(np.linalg.eigvalsh(together)[-1]) * (1 + 1e-12 * len(together)) + rounding)


def whitened_covariance(problem: Problem, entry: SharedNoise, held: Sequence[str]) -> Array:
    """R: the covariance of the rows of some blocks of an entry, each block whitened by itself."""
    return _whitened(problem, entry, held)[0]


def _whitened(problem: Problem, entry: SharedNoise, held: Sequence[str]) -> tuple[Array, float]:
    """R, and how far rounding can have moved its eigenvalues: much where a block's own covariance is nearly singular."""
    from rrf_design.rows import block_height, own_covariance, raised, whitener

    where = f"noise {entry.id!r}"
    blocks = [problem.block_by_id[name] for name in entry.blocks]
    heights = [block_height(problem, block) for block in blocks]
    ends = np.cumsum([0, *heights])
    declared = checked_covariance(entry.covariance, rows=int(ends[-1]), where=where)
    left = np.zeros_like(declared)
    kept: list[int] = []
    for block, height, start in zip(blocks, heights, ends, strict=False):
        part = slice(int(start), int(start) + height)
        if not np.allclose(own_covariance(block, height), declared[part, part], rtol=1e-9, atol=0.0):
            raise InputError(f"{where}: its covariance of {block.title} is not what that block declares")
        white = whitener(problem, block, height)
        left[part, part] = np.eye(height) if white is None else white
        kept += range(part.start, part.stop) if block.id in held else ()
    if (
        entry.estimated_from is not None
    ):  # Σ ⪯ aΣ̂ holds for all the rows together, and each block was raised by the same a
        declared = declared * raised(problem, blocks[0], heights[0])
    whole = left @ declared @ left.T
    sizes = (abs(left) @ abs(declared) @ abs(left).T)[np.ix_(kept, kept)]
    rounding = 4.0 * len(declared) * float(np.finfo(float).eps) * float(sizes.sum(axis=1).max(initial=0.0))
    return np.asarray((whole / 2 + whole.T / 2)[np.ix_(kept, kept)]), rounding


def _rounding(matrix: Array) -> float:
    """Eigenvalues of this size may be rounding errors."""
    return float(4 * len(matrix) * np.finfo(float).eps * np.abs(matrix).max(initial=0.0))
