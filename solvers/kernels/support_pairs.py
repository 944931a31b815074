"""All pairs of nodes in one pass: the last two levels of a support search (called by solvers/decoding/search.py).

With orthonormal bases the gain of a pair is ‖b_i‖² + ‖L⁻¹(b_j − C_ijᵀ b_i)‖² with LLᵀ = I − C_ijᵀC_ij, and just the sum
of the two gains when the spans are orthogonal. So overlapping pairs are arithmetic on one small block each, and of
all the others only those with the largest sums need be looked at.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, fastmath=False)
def adjacent(pointers, neighbours, i, j):  # type: ignore[no-untyped-def]
    """Whether nodes i and j overlap (binary search in a sorted row)."""
    low, high = pointers[i], pointers[i + 1]
    while low < high:
        middle = (low + high) // 2
        if neighbours[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low < pointers[i + 1] and neighbours[low] == j


@njit(cache=True, fastmath=False)
def pair_gain(block, first, second, gain, work, delicate):  # type: ignore[no-untyped-def]
    """Gain of an overlapping pair; -1.0 when a pivot falls below `delicate` and floats can't be trusted."""
    d = first.shape[0]
    total = gain
    for a in range(d):
        for c in range(a + 1):
            value = 1.0 if a == c else 0.0
            for r in range(d):
                value -= block[r, a] * block[r, c]
            for r in range(c):
                value -= work[a, r] * work[c, r]
            if a == c:
                if value < delicate:
                    return -1.0
                work[a, a] = np.sqrt(value)
            else:
                work[a, c] = value / work[c, c]
        value = second[a]
        for r in range(d):
            value -= block[r, a] * first[r]
        for r in range(a):
            value -= work[a, r] * work[r, d]
        work[a, d] = value / work[a, a]
        total += work[a, d] * work[a, d]
    return total


@njit(cache=True, fastmath=False)
def scan_pairs(pointers, neighbours, blocks, parts, gains, order, allowed, threshold, full, delicate, found, doubtful):  # type: ignore[no-untyped-def]
    """Best pair of allowed nodes, all pairs with gain ≥ threshold, and all pairs that floats can't judge.

    `order` sorts the nodes by falling gain, `full` says that every pair overlaps. `found` and `doubtful` are (cap, 2)
    buffers; the counts returned may exceed the caps. Returns (best gain, i, j, pairs found, pairs doubtful).
    """
    n, d = parts.shape
    work = np.zeros((d, d + 1))
    best, best_i, best_j = -1.0, -1, -1
    count, doubts = 0, 0
    for i in range(n):
        if not allowed[i]:
            continue
        for place in range(pointers[i], pointers[i + 1]):
            j = neighbours[place]
            if j <= i or not allowed[j]:
                continue
            upper = gains[i] + gains[j]
            need = min(best, threshold)
            if d == 1:
                c = blocks[place, 0, 0]
                rest = 1.0 - c * c
                gain = upper - 2.0 * c * parts[i, 0] * parts[j, 0]
                if rest >= delicate and gain < need * rest:
                    continue
                gain = -1.0 if rest < delicate else gain / rest
            else:
                square = 0.0
                for a in range(d):
                    for b in range(d):
                        square += blocks[place, a, b] * blocks[place, a, b]
                if square < 0.999 and upper < need * (1.0 - np.sqrt(square)):
                    continue
                gain = pair_gain(blocks[place], parts[i], parts[j], gains[i], work, delicate)
            if gain < 0.0:
                if doubts < doubtful.shape[0]:
                    doubtful[doubts, 0], doubtful[doubts, 1] = i, j
                doubts += 1
                continue
            if gain > best:
                best, best_i, best_j = gain, i, j
            if gain >= threshold:
                if count < found.shape[0]:
                    found[count, 0], found[count, 1] = i, j
                count += 1
    if not full:
        for x in range(n):
            i = order[x]
            if not allowed[i]:
                continue
            if 2.0 * gains[i] < min(best, threshold):
                break
            for y in range(x + 1, n):
                j = order[y]
                upper = gains[i] + gains[j]
                if upper <= best and upper < threshold:
                    break
                if not allowed[j] or adjacent(pointers, neighbours, i, j):
                    continue
                if upper > best:
                    best, best_i, best_j = upper, min(i, j), max(i, j)
                if upper >= threshold:
                    if count < found.shape[0]:
                        found[count, 0], found[count, 1] = min(i, j), max(i, j)
                    count += 1
    return best, best_i, best_j, count, doubts
