"""All pairs of nodes in one pass: the last two levels of a support search (called by
solvers/decoding/_traversal.py).

With bases Q_i, Q_j and b = Qᵀs, the residual of the pair exceeds ρ exactly when the bordered Gram
matrix

    [ I      C_ij   b_i       ]
    [ C_ijᵀ  I      b_j       ]
    [ b_iᵀ   b_jᵀ   ‖s‖² − ρ² ]

is positive definite. Every diagonal entry is shrunk by a bound on all rounding errors in the matrix
and in its elimination (`shift` of both nodes plus `base`, in units of ‖s‖ in the last row), so an
elimination that runs through proves in exact arithmetic that the pair doesn't explain s. The others
are reported.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel

ROOM = 64.0 * 2.0**-53
"""Rounding of the scalar test itself, in units of ‖s‖²: a dozen operations on numbers of at most a
few ‖s‖².
"""


@kernel
def _adjacent(pointers, neighbours, i, j):  # type: ignore[no-untyped-def]
    """Whether nodes i and j overlap (binary search in a sorted row)."""
    low, high = pointers[i], pointers[i + 1]
    while low < high:
        middle = (low + high) // 2
        if neighbours[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low < pointers[i + 1] and neighbours[low] == j


@kernel
def _pair_gain(block, first, second, gain, diagonal, work):  # type: ignore[no-untyped-def]
    """bᵀM⁻¹b of an overlapping pair whose Gram matrix M has this diagonal; inf when a pivot is not
    positive.
    """
    d = first.shape[0]
    total = gain / diagonal
    for a in range(d):
        for c in range(a + 1):
            value = 0.0
            for r in range(d):
                value -= block[r, a] * block[r, c]
            value /= diagonal
            if a == c:
                value += diagonal
            for r in range(c):
                value -= work[a, r] * work[c, r]
            if a == c:
                if value <= 0.0:
                    return np.inf
                work[a, a] = np.sqrt(value)
            else:
                work[a, c] = value / work[c, c]
        value = 0.0
        for r in range(d):
            value -= block[r, a] * first[r]
        value = second[a] + value / diagonal
        for r in range(a):
            value -= work[a, r] * work[r, d]
        work[a, d] = value / work[a, a]
        total += work[a, d] * work[a, d]
    return total


@kernel
def _scalar_gain(c, first, second, gain_i, gain_j, shift, top, scale):  # type: ignore[no-untyped-def]
    """-1.0 when the pair of scalar nodes is proven to gain less than `top`, else its gain (inf when
    that is unknown).
    """
    diagonal = 1.0 - shift
    rest = diagonal * diagonal - c * c
    if diagonal <= 0.5 or rest <= 0.0:
        return np.inf
    gain = diagonal * (gain_i + gain_j) - 2.0 * c * first * second
    if gain < (top - shift * scale) * rest - ROOM * scale:
        return -1.0
    return gain / rest


@kernel
def _block_gain(block, first, second, gain_i, gain_j, shift, top, scale, work):  # type: ignore[no-untyped-def]
    """The same for nodes of several dimensions."""
    d = first.shape[0]
    diagonal = 1.0 - shift
    if diagonal <= 0.5:
        return np.inf
    bound = top - shift * scale
    square = 0.0
    for a in range(d):
        for b in range(d):
            square += block[a, b] * block[a, b]
    # The gain is at most the sum of both over λ_min(M); cheaper than an elimination, and enough for
    # most pairs.
    if square < 0.99 and gain_i + gain_j < bound * (diagonal - np.sqrt(square)) - ROOM * scale:
        return -1.0
    gain = _pair_gain(block, first, second, gain_i, diagonal, work)
    if gain < bound - ROOM * scale:
        return -1.0
    return gain


@kernel
def _gain_bounds(gains, allowed, shift, base, scale):  # type: ignore[no-untyped-def]
    """Proven bounds on what each node adds to a pair that doesn't overlap; inf where too little is
    known.
    """
    largest = 0.0
    for i in range(len(gains)):
        if allowed[i] and shift[i] < 0.05:
            largest = max(largest, shift[i])
    diagonal = 1.0 - 2.0 * largest - base
    bounds = np.full(len(gains), -np.inf)
    for i in range(len(gains)):
        if allowed[i]:
            bounds[i] = gains[i] / diagonal + shift[i] * scale if shift[i] < 0.05 and diagonal > 0.5 else np.inf
    return bounds


@kernel
def scan_pairs(pointers, neighbours, blocks, parts, gains, allowed, shift, base, top, scale, full, seek, found):  # type: ignore[no-untyped-def]
    """All pairs of allowed nodes that are not proven to gain less than `top` = ‖s‖² − ρ²; `scale`
    is ‖s‖² at the root.

    Pairs that don't overlap add their gains; `full` says that every pair overlaps. `found` is a
    (cap, 2) buffer; the count returned may exceed the cap. With `seek`, top rises to the best gain
    seen, and that pair is returned. Returns (count, i, j).
    """
    n, d = parts.shape
    work = np.zeros((d, d + 1))
    best_i, best_j = -1, -1
    count = 0
    for i in range(n):
        if not allowed[i]:
            continue
        for place in range(pointers[i], pointers[i + 1]):
            j = neighbours[place]
            if j <= i or not allowed[j]:
                continue
            both = shift[i] + shift[j] + base
            if d == 1:
                gain = _scalar_gain(blocks[place, 0, 0], parts[i, 0], parts[j, 0], gains[i], gains[j], both, top, scale)
            else:
                gain = _block_gain(blocks[place], parts[i], parts[j], gains[i], gains[j], both, top, scale, work)
            if gain < 0.0:
                continue
            if seek:
                if top < gain < np.inf:
                    top, best_i, best_j = gain, i, j
                continue
            if count < found.shape[0]:
                found[count, 0], found[count, 1] = i, j
            count += 1
    if full:
        return count, best_i, best_j
    bounds = _gain_bounds(gains, allowed, shift, base, scale)
    order = np.argsort(-bounds, kind="mergesort")
    for x in range(n):
        i = order[x]
        if not allowed[i]:
            continue
        if 2.0 * bounds[i] + base * scale < top:
            break
        for y in range(x + 1, n):
            j = order[y]
            if bounds[i] + bounds[j] + base * scale < top:
                break
            if not allowed[j] or _adjacent(pointers, neighbours, min(i, j), max(i, j)):
                continue
            if seek:
                if gains[i] + gains[j] > top:
                    top, best_i, best_j = gains[i] + gains[j], min(i, j), max(i, j)
                continue
            if count < found.shape[0]:
                found[count, 0], found[count, 1] = min(i, j), max(i, j)
            count += 1
    return count, best_i, best_j


@kernel
def scan_rows(rows, parts, gains, shift, top, scale, found):  # type: ignore[no-untyped-def]
    """The same for scalar nodes seen through a few rows (a multiple of four) only, their columns of
    unit length there.

    A residual over some of the rows is never more than the whole, so what a few rows exclude is
    excluded, without the Gram matrix of all rows. Written for the vector unit: slices, and no
    branches inside. Returns the count.
    """
    height, n = rows.shape
    diagonal = 1.0 - shift
    square = diagonal * diagonal
    bound = top - shift * scale
    room = ROOM * scale
    count = 0
    buffer = np.empty(n)
    for i in range(n - 1):
        c, b, g = buffer[i + 1 :], parts[i + 1 :], gains[i + 1 :]
        c[:] = 0.0
        for r in range(0, height, 4):
            r0, r1, r2, r3 = rows[r, i + 1 :], rows[r + 1, i + 1 :], rows[r + 2, i + 1 :], rows[r + 3, i + 1 :]
            f0, f1, f2, f3 = rows[r, i], rows[r + 1, i], rows[r + 2, i], rows[r + 3, i]
            for j in range(len(c)):
                c[j] += f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
        twice, fixed = 2.0 * parts[i], diagonal * gains[i] + room
        left = 0
        for j in range(len(c)):
            rest = square - c[j] * c[j]
            value = fixed + diagonal * g[j] - twice * c[j] * b[j] - bound * rest
            left += (value >= 0.0) | (rest <= 0.0)  # nearly dependent columns prove nothing
        if left:
            for j in range(len(c)):
                rest = square - c[j] * c[j]
                value = fixed + diagonal * g[j] - twice * c[j] * b[j] - bound * rest
                if value >= 0.0 or rest <= 0.0:
                    if count < found.shape[0]:
                        found[count, 0], found[count, 1] = i, i + 1 + j
                    count += 1
    return count
