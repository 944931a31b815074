"""What floats can't decide, decided in rationals: every double is one, so a small Gram matrix can be eliminated exactly.

dist(s, span A)² is what is left of ‖s‖² after eliminating AᵀA from the bordered Gram matrix of [A s]. That matrix is
positive semidefinite, so a pivot of exactly zero means a column that depends on those before it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LARGEST = 40
"""Columns up to which an elimination in rationals takes less than a second or two."""


def within(columns: Array, s: Array, radius: float) -> bool | None:
    """Whether dist(s, span of columns) ≤ radius, exactly, for (rows, count) floats as they stand; None: too large."""
    if columns.shape[1] > LARGEST:
        return None
    left, unit = _eliminated(np.column_stack([columns, s]))[1]
    return left * unit**2 <= Fraction(radius) ** 2


def rank(columns: Array) -> int | None:
    """Exact rank of the floats as they stand; None when they are too many."""
    return _eliminated(np.column_stack([columns, np.zeros(len(columns))]))[0] if columns.shape[1] <= LARGEST else None


def _eliminated(bordered: Array) -> tuple[int, tuple[Fraction, Fraction]]:
    """Rank of all columns but the last, and what is left of the last one's square, with its unit."""
    entries = [_integers(column) for column in bordered.T]
    size = len(entries) - 1
    gram = [[Fraction(_product(entries[i][0], entries[j][0])) for j in range(i + 1)] for i in range(size + 1)]
    pivots = 0
    for p in range(size):
        pivot = gram[p][p]
        if not pivot:
            continue
        pivots += 1
        for i in range(p + 1, size + 1):
            factor = gram[i][p] / pivot
            if factor:
                for j in range(p + 1, i + 1):
                    gram[i][j] -= factor * gram[j][p]
    return pivots, (gram[size][size], entries[size][1])


def _integers(column: Array) -> tuple[dict[int, int], Fraction]:
    """Nonzero entries by row as integers, and the power of two they are multiples of; spans don't depend on it."""
    rows = np.flatnonzero(column)
    mantissas, exponents = np.frexp(column[rows])
    exponents = exponents - 53
    low = int(exponents.min(initial=0))
    whole = [int(m) << int(e - low) for m, e in zip(np.ldexp(mantissas, 53), exponents, strict=True)]
    return dict(zip(rows.tolist(), whole, strict=True)), Fraction(2) ** low


def _product(a: dict[int, int], b: dict[int, int]) -> int:
    if len(b) < len(a):
        a, b = b, a
    return sum(value * b[row] for row, value in a.items() if row in b)
