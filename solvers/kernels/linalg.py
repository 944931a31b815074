"""Small dense factorisations on coordinate ranges, for nodes with more than one coordinate."""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel


@kernel
def cholesky(matrix, start, dim, factor):
    """Lower factor of matrix[start:start+dim, same] into factor[:dim, :dim]; False when a pivot is
    not positive.
    """
    for i in range(dim):
        for j in range(i + 1):
            total = matrix[start + i, start + j]
            for t in range(j):
                total -= factor[i, t] * factor[j, t]
            if i == j:
                if not total > 0.0:
                    return False
                factor[i, i] = np.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
    return True


@kernel
def whiten(matrix, row, rows, column, columns, left, right, block, scratch):
    """block[:rows, :columns] = L_left⁻¹ · matrix[row.., column..] · L_right⁻ᵀ, for factors from
    `reciprocal`.
    """
    for i in range(rows):
        for j in range(columns):
            scratch[i, j] = matrix[row + i, column + j]
        for t in range(i):
            weight = left[i, t]
            for j in range(columns):
                scratch[i, j] -= weight * scratch[t, j]
        weight = left[i, i]
        for j in range(columns):
            scratch[i, j] *= weight
    for i in range(rows):
        for j in range(columns):
            total = scratch[i, j]
            for t in range(j):
                total -= block[i, t] * right[j, t]
            block[i, j] = total * right[j, j]


@kernel
def whiten_four(matrix, row, column, left, right, block, square):
    """`whiten` and `norm_bound` for dimension four, the usual signature: constant loops, which the
    compiler unrolls.
    """
    for j in range(4):
        s0 = matrix[row, column + j] * left[0, 0]
        s1 = (matrix[row + 1, column + j] - left[1, 0] * s0) * left[1, 1]
        s2 = (matrix[row + 2, column + j] - left[2, 0] * s0 - left[2, 1] * s1) * left[2, 2]
        s3 = (matrix[row + 3, column + j] - left[3, 0] * s0 - left[3, 1] * s1 - left[3, 2] * s2) * left[3, 3]
        block[0, j], block[1, j], block[2, j], block[3, j] = s0, s1, s2, s3
    r10, r20, r21, r30, r31, r32 = right[1, 0], right[2, 0], right[2, 1], right[3, 0], right[3, 1], right[3, 2]
    d0, d1, d2, d3 = right[0, 0], right[1, 1], right[2, 2], right[3, 3]
    for i in range(4):
        x0 = block[i, 0] * d0
        x1 = (block[i, 1] - x0 * r10) * d1
        x2 = (block[i, 2] - x0 * r20 - x1 * r21) * d2
        x3 = (block[i, 3] - x0 * r30 - x1 * r31 - x2 * r32) * d3
        block[i, 0], block[i, 1], block[i, 2], block[i, 3] = x0, x1, x2, x3
    for i in range(4):
        for k in range(4):
            square[i, k] = (
                block[i, 0] * block[k, 0]
                + block[i, 1] * block[k, 1]
                + block[i, 2] * block[k, 2]
                + block[i, 3] * block[k, 3]
            )
    total = 0.0
    for i in range(4):
        for k in range(4):
            dot = (
                square[i, 0] * square[k, 0]
                + square[i, 1] * square[k, 1]
                + square[i, 2] * square[k, 2]
                + square[i, 3] * square[k, 3]
            )
            total += dot * dot
    return np.sqrt(np.sqrt(np.sqrt(total)))


@kernel
def reciprocal(factor, dim):
    """Replace the diagonal of a Cholesky factor by its reciprocals: `whiten` multiplies, it does
    not divide.
    """
    for i in range(dim):
        factor[i, i] = 1.0 / factor[i, i]


@kernel
def norm_bound(block, rows, columns, square):
    """An upper bound on the spectral norm: Frobenius, or (tr (CCᵀ)⁴)^⅛ where Frobenius could
    matter.
    """
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            total += block[i, j] * block[i, j]
    if rows == 1 or columns == 1 or total < 0.01:
        return np.sqrt(total)
    for i in range(rows):
        for k in range(i + 1):
            dot = 0.0
            for j in range(columns):
                dot += block[i, j] * block[k, j]
            square[i, k] = dot
            square[k, i] = dot
    total = 0.0
    for i in range(rows):
        for k in range(i + 1):
            dot = 0.0
            for j in range(rows):
                dot += square[i, j] * square[k, j]
            total += dot * dot if i == k else 2.0 * dot * dot
    return np.sqrt(np.sqrt(np.sqrt(total)))


@kernel
def contraction(block, rows, columns, gap, factor):
    """Cholesky factor of I − CᵀC (columns × columns) into factor; False when it has none (‖C‖
    ≥ 1).
    """
    for i in range(columns):
        for j in range(i + 1):
            total = 1.0 if i == j else 0.0
            for t in range(rows):
                total -= block[t, i] * block[t, j]
            gap[i, j] = total
            gap[j, i] = total
    return cholesky(gap, 0, columns, factor)


@kernel
def orthogonalise(columns, turned, sweeps):
    """One-sided Jacobi: turn the columns (rows of `columns`, (count, height)) in place until they
    are orthogonal.

    `turned` (count, count) starts as the identity and takes the same turns: its rows are the right
    singular vectors, and the lengths of the columns the singular values. Each turn looks at two
    columns relative to their own lengths, so that the error does not depend on how columns are
    scaled against each other. False: not done after so many sweeps.
    """
    count, height = columns.shape
    for _ in range(sweeps):
        quiet = True
        for i in range(count - 1):
            for j in range(i + 1, count):
                a, b, c = 0.0, 0.0, 0.0
                for t in range(height):
                    a += columns[i, t] * columns[i, t]
                    b += columns[j, t] * columns[j, t]
                    c += columns[i, t] * columns[j, t]
                if abs(c) <= 1e-16 * np.sqrt(a) * np.sqrt(b):
                    continue
                quiet = quiet and abs(c) <= 1e-15 * np.sqrt(a) * np.sqrt(b)
                zeta = (b - a) / (2.0 * c)
                tangent = 1.0 / (abs(zeta) + np.sqrt(1.0 + zeta * zeta)) if abs(zeta) < 1e150 else 0.5 / abs(zeta)
                tangent = -tangent if zeta < 0.0 else tangent
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                sine = cosine * tangent
                for t in range(height):
                    x, y = columns[i, t], columns[j, t]
                    columns[i, t] = cosine * x - sine * y
                    columns[j, t] = sine * x + cosine * y
                for t in range(count):
                    x, y = turned[i, t], turned[j, t]
                    turned[i, t] = cosine * x - sine * y
                    turned[j, t] = sine * x + cosine * y
        if quiet:
            return True
    return False
