"""Where errors lie: the share of a field error's energy in the gauge and along the witness, beside
what uncorrelated nodes would have.

e has one row per node. Along a unit direction h over the nodes its energy is ‖hᵀe‖². If the errors
of different nodes are uncorrelated, that is Σ h_i²‖e_i‖² on average, whatever their sizes: a
quarter of the energy in the gauge of a connected field of four nodes. More means that the nodes err
together. The gauge is what the relations can't see; the witness is the direction with the least
singular value among those of two nodes. Where several directions are equally bad, the mean over all
of them is taken: one of them would be arbitrary.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from scenarios.kit.designs import NODES, prepared

Array = NDArray[np.float64]


def gauge(nodes: int = NODES) -> Array:
    """The directions that a connected field with identity relations can't see, as rows."""
    return np.full((1, nodes), nodes**-0.5)


@cache
def worst_directions(design: str) -> Array:
    """All unit directions on at most two nodes with the least singular value, as rows; one set for
    each smallest support.
    """
    matrix = prepared(design, 1).matrix
    least = prepared(design, 1).gamma
    found: list[Array] = []
    supports: list[set[int]] = []
    for size in (1, 2):
        for support in combinations(range(NODES), size):
            if any(smaller <= set(support) for smaller in supports):
                continue
            _, values, rows = np.linalg.svd(matrix[:, support], full_matrices=True)
            values = np.concatenate([values, np.zeros(size - len(values))])
            for value, row in zip(values, rows, strict=True):
                if abs(value - least) <= 1e-9:
                    full = np.zeros(NODES)
                    full[list(support)] = row
                    found.append(full)
                    supports.append(set(support))
    return np.array(found)


def shares(error: Array, directions: Array) -> tuple[float, float]:
    """Mean share of the energy along the directions, and what uncorrelated nodes with the same
    energies would have.
    """
    whole = float((error**2).sum())
    along = ((directions @ error) ** 2).sum(axis=1).mean() / whole
    alone = float((directions**2).mean(axis=0) @ (error**2).sum(axis=1)) / whole
    return float(along), alone


def pattern_error(pattern: tuple[int, ...]) -> Array:
    """The error of answers that can only agree or differ: the truth is the origin, different wrong
    values are orthogonal.
    """
    error = np.zeros((len(pattern), max(1, *pattern)))
    for node, code in enumerate(pattern):
        if code > 0:
            error[node, code - 1] = 1.0
    return error


def chance(rates: Array, options: int | None, *, draws: int, seed: int) -> float:
    """The gauge's share when nodes are wrong independently with these rates and take any wrong
    option alike (None: never the same).
    """
    rng = np.random.default_rng(seed)
    nodes, total, count = len(rates), 0.0, 0
    for _ in range(draws):
        wrong = np.flatnonzero(rng.random(nodes) < rates)
        if len(wrong):
            said = wrong if options is None else rng.integers(options - 1, size=len(wrong))
            total += float((np.unique(said, return_counts=True)[1] ** 2).sum()) / (nodes * len(wrong))
            count += 1
    return total / count if count else float("nan")
