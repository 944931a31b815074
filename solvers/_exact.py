"""Proofs where floating point can't decide: ball arithmetic on one support at a time
(python-flint).

Also what is decided: the least singular pair of one support in floating point, and the upper bound,
the witness's own ‖Bh‖/‖h‖, evaluated with error bars and rounded up.

Spans are decided in rationals: every double is one, so a small Gram matrix can be eliminated
exactly.

dist(s, span A)² is what is left of ‖s‖² after eliminating AᵀA from the bordered Gram matrix of [A
s]. That matrix is positive semidefinite, so a pivot of exactly zero means a column that depends on
those before it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

PRECISIONS = (128, 512, 2048)
WIDEST = 48  # columns whose dependence is decided exactly: a few milliseconds
TALLEST = 4000  # and rows
UNIT = 2.0**-53
LEAST = 1e-140  # squares of smaller numbers leave the range of doubles


UNEVEN = 1e-6  # squared column norms further apart than this need more care
SWEEPS = 40  # of Jacobi rotations; a handful is enough as a rule


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


def proves_at_least(block: NDArray[np.float64], theta: float) -> bool:
    """True only if λ_min(BᵀB) > θ in exact arithmetic, for B the (rows, columns) block as it
    stands.
    """
    import flint

    for bits in PRECISIONS:
        with flint.ctx.workprec(bits):
            verdict = definite_above(_gram(block), flint.arb(theta))
        if verdict is not None:
            return verdict
    return False


def null_vector(block: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """A unit vector in the kernel of the block, if its columns are dependent in exact arithmetic;
    None: they are not, or there are too many to say.

    The vector is the exact one, rounded entry by entry: it does not depend on the machine.
    """
    import flint

    entries = block[np.any(block != 0.0, axis=1)]
    rows, columns = entries.shape
    if columns > WIDEST or rows > TALLEST:
        return None
    if rows == 0:
        return np.eye(1, columns).ravel()
    basis, nullity = flint.fmpz_mat([_whole_numbers(row) for row in entries.tolist()]).nullspace()
    if nullity == 0:
        return None
    numbers = [int(basis[i, 0]) for i in range(columns)]
    largest = max(abs(number) for number in numbers)
    sign = -1 if next(number for number in numbers if number) < 0 else 1
    ratios = [sign * number / largest for number in numbers]  # a quotient of whole numbers is rounded to nearest
    length = math.sqrt(math.fsum(x * x for x in ratios))
    return np.array([x / length for x in ratios])


def _whole_numbers(row: list[float]) -> list[int]:
    """The same numbers times one power of two."""
    pairs = [x.as_integer_ratio() for x in row]
    longest = max(denominator for _, denominator in pairs)
    return [numerator * (longest // denominator) for numerator, denominator in pairs]


def witness_of(
    block: NDArray[np.float64], vector: NDArray[np.float64], *, zero: bool
) -> tuple[NDArray[np.float64], float]:
    """A witness with its upper bound; of a zero margin exactly 0 where that can be decided."""
    exact = null_vector(block) if zero else None
    return (vector, norm_ratio_above(block, vector)) if exact is None else (exact, 0.0)


def norm_ratio_above(block: NDArray[np.float64], vector: NDArray[np.float64]) -> float:
    """A double not below ‖Bv‖/‖v‖: in floating point with its error bound where that is tight, else
    in balls.
    """
    rows, columns = block.shape
    unit = (rows + columns + 8) * 2.0**-52
    image = float(np.linalg.norm(block @ vector))
    error = unit * float(np.linalg.norm(np.abs(block) @ np.abs(vector)))
    if image > LEAST and error <= 1e-12 * image:
        return float((image + error) * (1.0 + unit) / float(np.linalg.norm(vector)) * (1.0 + unit))
    unit = (columns + 16) * 2.0**-52  # the same for many rows: their sum is rounded once
    error *= unit / ((rows + columns + 8) * 2.0**-52) * (1.0 + rows * 2.0**-52)
    image = math.sqrt(math.fsum(np.square(block @ vector)))
    if image > LEAST and error <= 1e-12 * image:
        return float((image + error) * (1.0 + unit) / float(np.linalg.norm(vector)) * (1.0 + unit))
    return _norm_ratio_in_balls(block, vector)


def _norm_ratio_in_balls(block: NDArray[np.float64], vector: NDArray[np.float64]) -> float:
    import flint

    with flint.ctx.workprec(160):
        entries = [flint.arb(float(x)) for x in vector]
        length = sum((x * x for x in entries), flint.arb(0))
        image = flint.arb(0)
        for row in block:
            total = sum((flint.arb(float(c)) * x for c, x in zip(row, entries, strict=True) if c != 0.0), flint.arb(0))
            image += total * total
        ratio = (image / length).sqrt() if image > 0 else flint.arb(0)
        return float_above(ratio)


def float_above(ball: Any) -> float:
    """The least convenient double that is certainly not below the ball."""
    import flint

    guess = float(ball.mid())
    while not flint.arb(guess) >= ball:
        guess = math.nextafter(guess, math.inf) if guess > 0 else 5e-324
    return guess


def diagonal_share(coordinates: int, widest: int, products: int) -> float:
    """1 − c·q for supports of q coordinates, nodes of at most `widest`, and Gram entries that are
    sums of at most so many products (`solvers._gram` has the proof).
    """
    return 1.0 - 1.01 * coordinates * (products + 4 * coordinates * widest + 64) * UNIT


def scaled_below(value: float, exponent: int) -> float:
    """A double not above value·2^exponent; scaling is exact except where the result is
    subnormal.
    """
    result = math.ldexp(value, exponent)
    return math.nextafter(result, -math.inf) if math.ldexp(result, -exponent) > value else result


def scaled_above(value: float, exponent: int) -> float:
    """A double not below value·2^exponent."""
    result = math.ldexp(value, exponent)
    return math.nextafter(result, math.inf) if math.ldexp(result, -exponent) < value else result


def sqrt_below(value: float) -> float:
    """A double not above the square root of a non-negative double."""
    root = math.sqrt(value)
    return math.nextafter(root, 0.0) if root > 0.0 else 0.0


def _gram(block: NDArray[np.float64]) -> list[list[Any]]:
    import flint

    columns = [[flint.arb(float(x)) for x in block[:, j]] for j in range(block.shape[1])]
    nonzero = [np.flatnonzero(block[:, j]) for j in range(block.shape[1])]
    rows = []
    for i in range(len(columns)):
        row = []
        for j in range(i + 1):
            common = np.intersect1d(nonzero[i], nonzero[j], assume_unique=True)
            row.append(sum((columns[i][r] * columns[j][r] for r in common), flint.arb(0)))
        rows.append(row)
    return rows


def definite_above(lower: list[list[Any]], theta: Any) -> bool | None:
    """Whether the symmetric matrix minus θI is positive definite; None when the balls are too wide
    to say.
    """
    n = len(lower)
    work = [row[:] for row in lower]
    for i in range(n):
        work[i][i] = work[i][i] - theta
    for p in range(n):
        pivot = work[p][p]
        if not pivot > 0:
            return False if pivot <= 0 else None
        for i in range(p + 1, n):
            factor = work[i][p] / pivot
            for j in range(p + 1, i + 1):
                work[i][j] = work[i][j] - factor * work[j][p]
    return True


Array = NDArray[np.float64]

RATIONAL_COLUMNS = 40
"""Columns up to which an elimination in rationals takes less than a second or two."""


def span_within(columns: Array, s: Array, radius: float) -> bool | None:
    """Whether dist(s, span of columns) ≤ radius, exactly, for (rows, count) floats as they stand;
    None: too large.
    """
    if columns.shape[1] > RATIONAL_COLUMNS:
        return None
    left, unit = _eliminated(np.column_stack([columns, s]))[1]
    return left * unit**2 <= Fraction(radius) ** 2


def exact_rank(columns: Array) -> int | None:
    """Exact rank of the floats as they stand; None when they are too many."""
    return (
        _eliminated(np.column_stack([columns, np.zeros(len(columns))]))[0]
        if columns.shape[1] <= RATIONAL_COLUMNS
        else None
    )


def _eliminated(bordered: Array) -> tuple[int, tuple[Fraction, Fraction]]:
    """Rank of all columns but the last, and what is left of the last one's square, with its
    unit.
    """
    entries = [_integers(column) for column in bordered.T]
    size = len(entries) - 1
    gram = [[Fraction(_sparse_product(entries[i][0], entries[j][0])) for j in range(i + 1)] for i in range(size + 1)]
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
    """Nonzero entries by row as integers, and the power of two they are multiples of; spans don't
    depend on it.
    """
    rows = np.flatnonzero(column)
    mantissas, exponents = np.frexp(column[rows])
    exponents = exponents - 53
    low = int(exponents.min(initial=0))
    whole = [int(m) << int(e - low) for m, e in zip(np.ldexp(mantissas, 53), exponents, strict=True)]
    return dict(zip(rows.tolist(), whole, strict=True)), Fraction(2) ** low


def _sparse_product(a: dict[int, int], b: dict[int, int]) -> int:
    if len(b) < len(a):
        a, b = b, a
    return sum(value * b[row] for row, value in a.items() if row in b)
