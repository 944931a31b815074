"""Matrices of floats taken as the rationals they are, for tests that measure rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray


def rationals(matrix: NDArray[np.float64]) -> Any:
    entries = [fmpq(*float(x).as_integer_ratio()) for x in matrix.ravel()]
    return fmpq_mat(*matrix.shape, entries)


def floats(matrix: Any) -> NDArray[np.float64]:
    entries = [float(Fraction(int(x.p), int(x.q))) for x in matrix.entries()]
    return np.array(entries).reshape(matrix.nrows(), matrix.ncols())


def projector(columns: NDArray[np.float64]) -> Any:
    """The exact projector on the span of (rows, count) independent columns."""
    A = rationals(columns)
    return A * (A.transpose() * A).inv() * A.transpose()
