"""The definition of γ_{k,a,D}, computed as it is written: every support, every choice of removed
blocks, no graph, no pruning.

Floating point for the value (pseudo-inverse of G_NN), exact rationals for bounds: G_SS − t²P_D is
eliminated in `fmpq`, where a zero pivot must have a zero row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray


def supports(count: int, size: int) -> Iterator[tuple[int, ...]]:
    """The largest ones: smaller ones have no smaller minimum."""
    return combinations(range(count), min(size, count))


def columns_of(groups: list[list[int]], support: tuple[int, ...]) -> list[int]:
    return [c for i in support for c in groups[i]]


def plain_value(block: NDArray[np.float64], wanted: NDArray[np.bool_]) -> float:
    """min ‖Bh‖/‖h_D‖ by projection off span(B_N), its rank by a gap in the singular values."""
    free, own = block[:, ~wanted], block[:, wanted]
    if free.shape[1] and free.any():
        left, values, _ = np.linalg.svd(free, full_matrices=False)
        left = left[:, values > 1e-11 * values[0]]
        own = own - left @ (left.T @ own)
    if own.shape[0] < own.shape[1]:
        return 0.0
    return float(np.linalg.svd(own, compute_uv=False)[-1])


def rational(value: float) -> fmpq:
    return fmpq(*float(value).as_integer_ratio())


def holds(block: NDArray[np.float64], wanted: NDArray[np.bool_], level: float, *, strictly: bool = False) -> bool:
    """‖Bh‖ ≥ level·‖h_D‖ for every h (> for h_D ≠ 0 with `strictly`), in exact rationals: other
    columns are eliminated first.
    """
    order = [*np.flatnonzero(~wanted), *np.flatnonzero(wanted)]
    exact = fmpq_mat(block.shape[0], len(order), [rational(x) for x in block[:, order].ravel()])
    gram = (exact.transpose() * exact).tolist()
    free = int(np.count_nonzero(~wanted))
    for i in range(free, len(order)):
        gram[i][i] -= rational(level) ** 2
    for p in range(len(order)):
        if gram[p][p] < 0 or (strictly and p >= free and gram[p][p] == 0):
            return False
        if gram[p][p] == 0:
            if any(gram[i][p] != 0 for i in range(p + 1, len(order))):
                return False
            continue
        for i in range(p + 1, len(order)):
            if gram[i][p] != 0:
                ratio = gram[i][p] / gram[p][p]
                for j in range(p + 1, len(order)):
                    gram[i][j] -= ratio * gram[p][j]
    return True


def choices(blocks: list[list[int]], trusted: set[int], removed: int) -> Iterator[tuple[int, ...]]:
    """Sets of blocks that may be wrong, the largest ones."""
    suspects = [b for b in range(len(blocks)) if b not in trusted]
    return combinations(suspects, min(removed, len(suspects)))


def delivered_value(B: NDArray[np.float64], groups: list[list[int]], deliver: set[int], size: int) -> float:
    best = np.inf
    for support in supports(len(groups), size):
        columns = columns_of(groups, support)
        wanted = np.array([c in deliver for c in columns])
        if wanted.any():
            best = min(best, plain_value(B[:, columns], wanted))
    return best


def delivered_holds(
    B: NDArray[np.float64], groups: list[list[int]], deliver: set[int], size: int, level: float
) -> bool:
    for support in supports(len(groups), size):
        columns = columns_of(groups, support)
        wanted = np.array([c in deliver for c in columns])
        if wanted.any() and not holds(B[:, columns], wanted, level):
            return False
    return True


def questions(
    B: NDArray[np.float64],
    groups: list[list[int]],
    blocks: list[list[int]],
    *,
    size: int,
    removed: int,
    trusted: set[int],
    deliver: set[int],
    checks: bool,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """[B_S | E_R] with what counts of it, for every support and every choice of wrong blocks.

    v counts with `checks`.
    """
    for support in supports(len(groups), size):
        columns = columns_of(groups, support)
        for wrong in choices(blocks, trusted, removed):
            rows = columns_of(blocks, wrong)
            wanted = np.array([c in deliver for c in columns] + [checks] * len(rows))
            if wanted.any():
                yield np.hstack([B[:, columns], np.eye(len(B))[:, rows]]), wanted
