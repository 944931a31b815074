"""Decisions in ball and rational arithmetic, for what floating point can't decide and for the
claims of a document.

`definiteness` settles one support: balls of growing precision first (a pivot that is certainly
positive or certainly negative), exact rationals where the matrix is singular, so that balls never
could. The entries of B are doubles and so are rational numbers; nothing here rounds them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # imported where it is used: most questions need no exact arithmetic
    from flint import arb, fmpq

PRECISIONS = (160, 640)
RATIONAL_ORDER = 40
"""Largest matrix that is settled by exact rationals: about 40 ms at order 16, seconds at 40."""


MOST_COLUMNS = 300  # of a matrix that is settled in balls: a few seconds
LARGEST = sys.float_info.max
MOST_ROWS = 4000  # of a matrix whose rank is taken
DOUBTFUL = 10**12  # a quotient below the squared size of the matrix over this may be rounding of an exact zero


class ProofOutcome(StrEnum):
    """What became of one step of a proof."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


def rational(value: float) -> fmpq:
    from flint import fmpq

    numerator, denominator = float(value).as_integer_ratio()
    return fmpq(numerator, denominator)


def _exact_gram(columns: NDArray[np.float64]) -> list[list[fmpq]]:
    """CᵀC of a dense matrix, exactly."""
    from flint import fmpq, fmpz_mat

    numbers, exponent = _whole_numbers(columns.ravel())
    whole = fmpz_mat(*columns.shape, numbers)
    gram, unit, order = whole.transpose() * whole, 1 << (2 * exponent), columns.shape[1]
    return [[fmpq(int(gram[i, j]), unit) for j in range(order)] for i in range(order)]


def definiteness(columns: NDArray[np.float64], *, floor: float, radii: tuple[float, ...] = ()) -> ProofOutcome:
    """Is CᵀC − (floor + √Σ radii²)²·I positive semidefinite?

    UNDECIDED for more columns than can be settled in time.
    """
    from flint import arb, fmpq

    if columns.shape[1] > MOST_COLUMNS:
        return ProofOutcome.UNDECIDED
    squares = sum((rational(x) * rational(x) for x in radii), fmpq(0))
    exactly = rational(floor) * rational(floor) if squares == 0 else None
    return _settled(_exact_gram(columns), lambda: (arb(rational(floor)) + arb(squares).sqrt()) ** 2, exactly)


def dominated(matrix: list[list[float]], level: float) -> bool:
    """Is level·I − M positive semidefinite, for certain?

    No for what is no symmetric matrix, or too large to settle.
    """
    from flint import arb

    order = len(matrix)
    if order > MOST_COLUMNS or any(len(row) != order for row in matrix):
        return False
    if any(matrix[i][j] != matrix[j][i] for i in range(order) for j in range(i)):
        return False
    negative, shift = [[-rational(x) for x in row] for row in matrix], -rational(level)
    return _settled(negative, lambda: arb(shift), shift) is ProofOutcome.PROVED


def _settled(matrix: list[list[fmpq]], shift: Callable[[], arb], exactly: fmpq | None) -> ProofOutcome:
    """Is M − shift·I positive semidefinite? In balls; where these are too wide, in rationals, if
    the shift is one.
    """
    from flint import arb, ctx, fmpq

    for precision in PRECISIONS:
        with ctx.workprec(precision):
            outcome = eliminated(_lowered(matrix, arb, shift()), exact=False)
        if outcome is not ProofOutcome.UNDECIDED:
            return outcome
    if exactly is not None and len(matrix) <= RATIONAL_ORDER:
        return eliminated(_lowered(matrix, fmpq, exactly), exact=True)
    return ProofOutcome.UNDECIDED


def _lowered(matrix: list[list[fmpq]], number: Callable[[fmpq], Any], shift: Any) -> list[list[Any]]:
    return [[number(x) - (shift if i == j else 0) for j, x in enumerate(row[: i + 1])] for i, row in enumerate(matrix)]


def eliminated(work: list[list[Any]], *, exact: bool) -> ProofOutcome:
    """Is a symmetric matrix, given by its lower triangle, positive semidefinite?

    By elimination, in place. Exactly, a zero pivot needs a zero row; a ball that holds zero decides
    nothing.
    """
    for p in range(len(work)):
        pivot, rest = work[p][p], range(p + 1, len(work))
        if not pivot > 0 and not exact:
            return ProofOutcome.REFUTED if pivot < 0 else ProofOutcome.UNDECIDED
        if pivot < 0 or (pivot == 0 and any(work[i][p] != 0 for i in rest)):
            return ProofOutcome.REFUTED
        for i in rest:
            if work[i][p] != 0 or not exact:
                ratio = work[i][p] / pivot
                for j in range(p + 1, i + 1):
                    work[i][j] -= ratio * work[j][p]
    return ProofOutcome.PROVED


def _whole_numbers(values: Any) -> tuple[list[int], int]:
    """Doubles as whole numbers times one power of two: exactly values[i] =
    numbers[i]·2^(−exponent).
    """
    pairs = [float(x).as_integer_ratio() for x in values]
    exponent = max((denominator.bit_length() - 1 for _, denominator in pairs), default=0)
    return [n << (exponent - d.bit_length() + 1) for n, d in pairs], exponent


def squared_norm(vector: Any) -> Fraction:
    numbers, exponent = _whole_numbers(vector)
    return Fraction(sum(n * n for n in numbers), 1 << (2 * exponent))


def squared_image(columns: Any, vector: Any) -> Fraction:
    """‖Ch‖² exactly, for columns in compressed form and one number per column."""
    data, first = _whole_numbers(columns.data)
    weights, second = _whole_numbers(vector)
    rows, starts = columns.indices.tolist(), columns.indptr.tolist()
    image: dict[int, int] = {}
    for column, weight in enumerate(weights):
        for place in range(starts[column], starts[column + 1]):
            image[rows[place]] = image.get(rows[place], 0) + data[place] * weight
    return Fraction(sum(x * x for x in image.values()), 1 << (2 * (first + second)))


def dependent(columns: NDArray[np.float64]) -> bool:
    """Are the columns of a small dense matrix linearly dependent, certainly?

    Exact rank; False where there are too many.
    """
    from flint import fmpz_mat

    order = columns.shape[1]
    if order > RATIONAL_ORDER or len(columns) > MOST_ROWS:
        return False
    rows = [_whole_numbers(row)[0] for row in columns if np.any(row != 0.0)]
    return len(rows) < order or bool(fmpz_mat(rows).rank() < order)


def ratio_up(columns: NDArray[np.float64], square: Fraction) -> float:
    """σ_min(C) from above: 0 where the columns are dependent, else the root of a witness's
    quotient, `square`, rounded up.
    """
    size = squared_norm(columns.ravel())
    return 0.0 if square * DOUBTFUL <= size and dependent(columns) else sqrt_up(square)


def sqrt_up(value: Fraction) -> float:
    """A double that is certainly at least √value, and next to it."""
    guess = _sqrt(value)
    while guess < math.inf and Fraction(guess) ** 2 < value:
        guess = math.nextafter(guess, math.inf)
    return guess


def sqrt_down(value: Fraction) -> float:
    """A double that is certainly at most √value, and next to it; 0 for what is not positive."""
    guess = min(_sqrt(value), LARGEST)
    while guess > 0.0 and Fraction(guess) ** 2 > value:
        guess = math.nextafter(guess, 0.0)
    return guess


def _sqrt(value: Fraction) -> float:
    """√value to nearest or nearly so; scaled by a power of four first, since squares of doubles
    leave their range.
    """
    if value <= 0:
        return 0.0
    half = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    try:
        return math.ldexp(math.sqrt(value / Fraction(4) ** half), half)
    except OverflowError:
        return math.inf


def float_up(value: Fraction) -> float:
    """The least double that is not below; infinite beyond the largest."""
    guess = _nearest(value)
    return guess if guess == math.inf or Fraction(guess) >= value else math.nextafter(guess, math.inf)


def float_down(value: Fraction) -> float:
    """The largest double that is not above."""
    guess = min(_nearest(value), LARGEST)
    return guess if Fraction(guess) <= value else math.nextafter(guess, -math.inf)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -LARGEST
