"""What one support can hide from the delivered values: min ‖Bh‖ over h with ‖h_D‖ = 1, evaluated,
bounded and proven.

For a support with columns B = [B_D | B_N], the square of that minimum is λ_min of M = G_DD − G_DN
G_NN⁺ G_ND, and the largest θ with G − θP_D ⪰ 0 (P_D keeps the delivered coordinates). Blind
directions inside N are harmless, but whether a direction is blind is a yes-or-no question: moving
an entry of B_N by its last bit can make it visible, and the minimum falls by as much as one likes.
So where B_N is not plainly of full rank, its rank is decided in exact rationals: N' ⊂ N are columns
that span the same space, and M = G_DD − G_DN' G_N'N'⁻¹ G_N'D has no pseudo-inverse left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._exact import PRECISIONS, definite_above, float_above, smallest_singular_pair

PLAIN_RANK = 1e-6
"""Singular values of B_N (unit columns) above this share of the largest are no rounding errors."""
PLAIN_VALUE = 1e-5
"""Minima above this share of ‖B_D‖ have ten digits in floating point; smaller ones, zeros among
them, are found in rationals.
"""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The minimum for one support: σ in floating point, the vector that attains it (‖h_D‖ = 1), and
    a proven upper bound.
    """

    sigma: float
    vector: NDArray[np.float64]
    upper: float


def hidden(block: NDArray[np.float64], wanted: NDArray[np.bool_]) -> Hidden:
    """min ‖Bh‖/‖h_D‖ for the (rows, columns) block of one support; `wanted` marks its delivered
    columns, at least one.
    """
    plain = _in_floats(block, wanted)
    if plain is not None:
        sigma, vector = plain
        return Hidden(sigma, vector, _ratio_above(block, vector, wanted))
    return _in_rationals(block, wanted)


def near_vector(block: NDArray[np.float64], wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """A vector near the one that attains the minimum: a guess, for growing supports."""
    gram = block.T @ block
    if not gram.any():
        return np.full(len(gram), len(gram) ** -0.5)
    gram.flat[:: len(gram) + 1] += 1e-9 * float(np.trace(gram))
    inverse = np.linalg.inv(gram)
    own = np.linalg.eigh(inverse[np.ix_(wanted, wanted)])[1][:, -1]  # (G⁻¹)_DD is the inverse of the Schur complement
    vector: NDArray[np.float64] = inverse[:, wanted] @ own
    vector = vector / np.abs(vector).max()  # squares of its entries may not be numbers yet
    return vector / np.linalg.norm(vector)


def _in_floats(block: NDArray[np.float64], wanted: NDArray[np.bool_]) -> tuple[float, NDArray[np.float64]] | None:
    """σ and vector by projection off the span of B_N; None where its rank or the digits of σ are in
    doubt.
    """
    free = block[:, ~wanted]
    residual = block[:, wanted]
    vector = np.zeros(block.shape[1])
    if free.shape[1]:
        norms = np.linalg.norm(free, axis=0)
        if free.shape[1] > free.shape[0] or not norms.all():
            return None
        left, values, right = np.linalg.svd(free / norms, full_matrices=False)
        if values[-1] <= PLAIN_RANK * values[0]:
            return None
        for _ in range(2):  # twice is enough: what rounding left of the span goes the second time
            residual = residual - left @ (left.T @ residual)
    if np.linalg.norm(residual, axis=0).min() <= PLAIN_VALUE * np.linalg.norm(block[:, wanted]):
        return None
    sigma, own = smallest_singular_pair(residual)
    if sigma <= PLAIN_VALUE * float(np.linalg.norm(block[:, wanted])):
        return None
    vector[wanted] = own
    if free.shape[1]:
        vector[~wanted] = -(right.T @ ((left.T @ (block[:, wanted] @ own)) / values)) / norms
    return sigma, vector / np.linalg.norm(own)


def _ratio_above(block: NDArray[np.float64], vector: NDArray[np.float64], wanted: NDArray[np.bool_]) -> float:
    """A double not below ‖Bv‖/‖v_D‖: in floating point with its error bound where that is tight,
    else in balls.
    """
    import flint

    rows, columns = block.shape
    unit = (rows + columns + 8) * 2.0**-52
    image = float(np.linalg.norm(block @ vector))
    error = unit * float(np.linalg.norm(np.abs(block) @ np.abs(vector)))
    if error <= 1e-12 * image:
        return float((image + error) * (1.0 + unit) / float(np.linalg.norm(vector[wanted])) * (1.0 + unit))
    with flint.ctx.workprec(320):
        entries = [flint.arb(float(x)) for x in vector]
        length = sum((entries[i] * entries[i] for i in np.flatnonzero(wanted)), flint.arb(0))
        total = flint.arb(0)
        for row in block:
            dot = sum((flint.arb(float(c)) * x for c, x in zip(row, entries, strict=True) if c != 0.0), flint.arb(0))
            total += dot * dot
        return float_above((total / length).sqrt() if total > 0 else flint.arb(0))


def proves_hidden_at_least(block: NDArray[np.float64], wanted: NDArray[np.bool_], theta: float) -> bool:
    """True only if ‖Bh‖² > θ‖h_D‖² for every h with h_D ≠ 0, in exact arithmetic, for the block as
    it stands.
    """
    import flint

    complement = _complement(block, wanted).matrix
    for bits in PRECISIONS:
        with flint.ctx.workprec(bits):
            lower = [[flint.arb(complement[i, j]) for j in range(i + 1)] for i in range(complement.nrows())]
            verdict = definite_above(lower, flint.arb(theta))
        if verdict is not None:
            return verdict
    return False


@dataclass(frozen=True, slots=True)
class _Complement:
    """M in rationals, and the way back: h_N' = −lift·h_D on the independent columns, 0 on the
    others.
    """

    matrix: Any  # fmpq_mat (delivered, delivered)
    lift: Any  # fmpq_mat (independent, delivered)
    independent: list[int]  # columns of the block


def _complement(block: NDArray[np.float64], wanted: NDArray[np.bool_]) -> _Complement:
    import flint

    rows = block[block.any(axis=1)]
    inside, outside = np.flatnonzero(wanted), np.flatnonzero(~wanted)
    own = _rationals(rows[:, inside])
    gram = own.transpose() * own
    free = _rationals(rows[:, outside])
    independent = [int(outside[j]) for j in _pivots(free)]
    if not independent:
        return _Complement(gram, flint.fmpq_mat(0, len(inside)), [])
    free = _rationals(rows[:, independent])
    cross = free.transpose() * own
    lift = (free.transpose() * free).solve(cross)
    return _Complement(gram - cross.transpose() * lift, lift, independent)


def _in_rationals(block: NDArray[np.float64], wanted: NDArray[np.bool_]) -> Hidden:
    found = _complement(block, wanted)
    column, zero = _least_vector(found.matrix)
    image = (column.transpose() * found.matrix * column)[0, 0]
    length = (column.transpose() * column)[0, 0]
    own = _doubles(column)
    scale = 1.0 / float(np.linalg.norm(own))
    vector = np.zeros(block.shape[1])
    vector[wanted] = own * scale
    if found.independent:
        vector[found.independent] = -scale * _doubles(found.lift * column)
    best = _root_above(image / length)
    written = _ratio_above(block, vector, wanted)
    # Writing the vector down in doubles can cost more than the bound allows; the rational one it
    # stands for proves it then.
    upper = written if zero or written <= best * (1.0 + 1e-12) else best
    return Hidden(0.0 if zero else best, vector, upper)


def _least_vector(matrix: Any) -> tuple[Any, bool]:
    """A rational column next to the eigenvector of λ_min of a positive semidefinite matrix, and
    whether λ_min is exactly 0.

    From the inverse, whose largest eigenvalue has all its digits however small λ_min is, and
    sharpened by one exact step.
    """
    from flint import fmpq, fmpq_mat

    order = matrix.nrows()
    reduced, rank = matrix.rref()
    if rank < order:
        pivots = _leading(reduced, rank)
        free = next(j for j in range(order) if j not in pivots)
        entries = [fmpq(0)] * order
        entries[free] = fmpq(1)
        for row, place in enumerate(pivots):
            entries[place] = -reduced[row, free]
        return fmpq_mat(order, 1, entries), True
    inverse = matrix.inv()
    largest = max(inverse[i, i] for i in range(order))
    scaled = _doubles(inverse / largest).reshape(order, order)
    guess = np.linalg.eigh((scaled + scaled.T) * 0.5)[1][:, -1]
    return inverse * _rationals(guess[:, None]) / largest, False


def all_least_delivered(grams: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """λ_min of the Schur complement on the wanted coordinates of each Gram block, in plain floating
    point: guesses for ordering.

    Blocks have one order; those whose wanted coordinates stand at the same places go through at
    once. Diagonal entries of 1e300 mark empty places.
    """
    inside = wanted > 0.0
    there = np.diagonal(grams, axis1=1, axis2=2) < 1e300
    kinds, kind = np.unique(inside + 2 * (~inside & there), axis=0, return_inverse=True)
    result = np.full(len(grams), math.inf)
    for number, pattern in enumerate(kinds):
        chosen = np.flatnonzero(kind.ravel() == number)
        own, other = np.flatnonzero(pattern == 1), np.flatnonzero(pattern == 2)
        if not len(own):
            continue
        blocks = grams[chosen]
        complement = blocks[:, own[:, None], own[None, :]]
        if len(other):
            cross = blocks[:, other[:, None], own[None, :]]
            inverse = np.linalg.pinv(blocks[:, other[:, None], other[None, :]], rcond=1e-11, hermitian=True)
            complement = complement - np.swapaxes(cross, 1, 2) @ inverse @ cross
        result[chosen] = np.linalg.eigvalsh(complement)[:, 0]
    return result


def _rationals(matrix: NDArray[np.float64]) -> Any:
    from flint import fmpq, fmpq_mat

    return fmpq_mat(*matrix.shape, [fmpq(*float(x).as_integer_ratio()) for x in matrix.ravel()])


def _pivots(matrix: Any) -> list[int]:
    """Columns that span the column space, the first ones that do."""
    if not matrix.ncols() or not matrix.nrows():
        return []
    return _leading(*matrix.rref())


def _leading(reduced: Any, rank: int) -> list[int]:
    """The leading column of each nonzero row of a reduced echelon form."""
    places, column = [], 0
    for row in range(rank):
        while reduced[row, column] == 0:
            column += 1
        places.append(column)
    return places


def _doubles(matrix: Any) -> NDArray[np.float64]:
    """The entries as doubles (numerator and denominator may each be too large for one)."""
    return np.array([int(x.p) / int(x.q) for x in matrix.entries()])


def _root_above(value: Any) -> float:
    """A double not below the square root of a non-negative rational."""
    import flint

    with flint.ctx.workprec(320):
        return float_above(flint.arb(value).sqrt()) if value > 0 else 0.0
