"""The definition, computed as it is written: an SVD of every support of size 1..s (paper, Algorithm
"Exact group-sparse margin and witness"). Slow and obvious; everything else is tested against it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from solvers._gram import NodeColumns
from solvers.result import SupportValue

UNEVEN = 1e-6  # squared column norms further apart than this need more care
SWEEPS = 40  # of Jacobi rotations; a handful is enough as a rule


def enumerate_supports(matrix: NDArray[np.float64], groups: NodeColumns, size: int) -> SupportValue:
    """Smallest σ_min(B_S) over all 1 ≤ |S| ≤ size, the first support that attains it, and its
    direction.
    """
    best = np.inf
    best_support: tuple[int, ...] = ()
    best_vector = np.zeros(0)
    for s in range(1, min(size, len(groups)) + 1):
        for support in combinations(range(len(groups)), s):
            columns = np.concatenate([groups[i] for i in support])
            sigma, vector = smallest_singular_pair(matrix[:, columns])
            if sigma < best:
                best, best_support, best_vector = sigma, support, vector
    direction = np.zeros(matrix.shape[1])
    direction[np.concatenate([groups[i] for i in best_support])] = best_vector
    return SupportValue(support=best_support, value=float(best), direction=direction)


def smallest_singular_pair(block: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """σ_min and right singular vector; a matrix with fewer rows than columns has a null vector."""
    rows, columns = block.shape
    if rows == 0:
        return 0.0, np.eye(columns)[0]
    if rows >= columns > 1:
        norms = np.einsum("ij,ij->j", block, block)
        if 0.0 < norms.min() < UNEVEN * norms.max():
            accurate = _by_jacobi(block)
            if accurate is not None:
                return accurate
    _, values, right = np.linalg.svd(block, full_matrices=rows < columns)
    sigma = float(values[-1]) if rows >= columns else 0.0
    return sigma, right[-1]


def _by_jacobi(block: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]] | None:
    """The same by one-sided Jacobi rotations, whose error does not depend on how the columns are
    scaled against each other.

    A bidiagonalising SVD errs by 1e-16 of the largest column, which can be more than all of σ_min.
    None: no convergence.
    """
    from solvers.kernels.linalg import orthogonalise

    columns, turned = np.ascontiguousarray(block.T), np.eye(block.shape[1])
    if not orthogonalise(columns, turned, SWEEPS):
        return None
    lengths = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    least = int(np.argmin(lengths))
    return float(lengths[least]), turned[least]
