"""Dense fields of scalar nodes: centre branching with Schur complements, last three nodes in closed
form.

A harmful triple {a, b, c} in the remainder has a pair with |C_ab| ≥ 1/2, and such pairs are found
by a test without division, v² ≥ ¼ M_aa M_bb, that runs over contiguous rows; only they meet the 3×3
determinant. So the innermost loop visits pairs, not triples: for s = 4 the work is n³/6 instead of
n⁴/24 tests, for s = 6 n⁵/120 instead of n⁶/720.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.emit import CENTRE_SLACK, PIVOT_SLACK, centres_first, emit_supersets, emit_support, top_sum
from solvers.kernels.kernel import kernel


@kernel
def centre_order(matrix, size):
    """Positions with the centres of `matrix` first (nodes without a positive diagonal count as
    centres), and their number.
    """
    n = matrix.shape[0]
    scale = np.empty(n)
    for i in range(n):
        scale[i] = 1.0 / np.sqrt(matrix[i, i]) if matrix[i, i] > 0.0 else np.inf
    stars = np.full(n, np.inf)
    row = np.empty(n)
    for i in range(n):
        if np.isfinite(scale[i]):
            alone = True  # no coupling of 1 or more
            for j in range(n):
                row[j] = 0.0
                if matrix[i, j] != 0.0:
                    row[j] = abs(matrix[i, j]) * scale[i] * scale[j]
                    alone = alone and (j == i or row[j] < 1.0)
            if alone:
                stars[i] = top_sum(row, n, i, size - 1)
    return centres_first(stars)


@kernel
def scan_dense(matrix, nodes, roots, size, stop, out):
    """Supports of `size` ≥ 2 nodes, met at one of the `roots`, that can't be proven harmless.

    matrix (n, n) is N with centres first, nodes (n,) the names of its rows, roots ascending
    positions of centres. Returns (number found, number of roots finished): when more than
    out.shape[0] are found, or stop[0] is set, the search ends early and the second number says
    which roots are done.
    """
    n = matrix.shape[0]
    depth = max(size - 3, 1)
    stack = np.empty((depth, n, n))
    names = np.empty((depth, n), np.int64)
    sizes = np.zeros(depth, np.int64)
    centres = np.zeros(depth, np.int64)
    position = np.zeros(depth, np.int64)
    prefix = np.empty(size, np.int64)
    work = np.empty((2, n))
    live = np.empty(n, np.int64)
    count = 0
    for done in range(len(roots)):
        root = roots[done]
        if size == 2:
            count = _pairs(matrix, nodes, root, out, count)
        elif size == 3:
            count = _triples_through(matrix, nodes, root, work, out, count)
        elif matrix[root, root] <= 0.0:
            prefix[0] = nodes[root]
            count = emit_supersets(out, count, prefix, 1, nodes, root + 1, n, size - 1)
        else:
            prefix[0] = nodes[root]
            if size == 4:
                count = _triples(matrix, nodes, n, root, prefix, 1, work, live, out, count)
            else:
                m, nc, count = _eliminate(
                    matrix, nodes, n, root, prefix, 1, size - 1, stack[1], names[1], work, live, out, count
                )
                level = 1
                sizes[1], centres[1], position[1] = m, nc, 0
                while level > 0:
                    if stop[0] or count > out.shape[0]:
                        return count, done
                    j = position[level]
                    if j >= centres[level]:
                        level -= 1
                        continue
                    position[level] = j + 1
                    prefix[level] = names[level, j]
                    remaining = size - level  # nodes still to choose, the pivot j included
                    if remaining == 4:
                        count = _triples(
                            stack[level], names[level], sizes[level], j, prefix, level + 1, work, live, out, count
                        )
                    else:
                        m, nc, count = _eliminate(
                            stack[level], names[level], sizes[level], j, prefix, level + 1, remaining - 1,
                            stack[level + 1], names[level + 1], work, live, out, count,
                        )  # fmt: skip
                        level += 1
                        sizes[level], centres[level], position[level] = m, nc, 0
        if stop[0] or count > out.shape[0]:
            return count, done
    return count, len(roots)


@kernel
def _eliminate(matrix, nodes, n, pivot, prefix, length, remaining, target, target_nodes, work, live, out, count):
    """Schur complement of `pivot` on the positions after it, centres first; returns (size, centres,
    count).

    Nodes whose own pivot is gone are harmful with any company: their supersets are reported and
    they leave.
    """
    inverse = 1.0 / np.sqrt(matrix[pivot, pivot])
    y = work[0]
    m = 0
    for a in range(pivot + 1, n):
        y[a] = matrix[a, pivot] * inverse
        if matrix[a, a] - y[a] * y[a] > 0.0:
            live[m] = a
            m += 1
    if m < n - pivot - 1:
        for a in range(pivot + 1, n):
            if not matrix[a, a] - y[a] * y[a] > 0.0:
                prefix[length] = nodes[a]
                others = np.empty(n, np.int64)
                k = 0
                for b in range(pivot + 1, n):
                    if b > a or (b < a and matrix[b, b] - y[b] * y[b] > 0.0):
                        others[k] = nodes[b]
                        k += 1
                count = emit_supersets(out, count, prefix, length + 1, others, 0, k, remaining - 1)
    scale = work[1]
    for i in range(m):
        a = live[i]
        scale[i] = 1.0 / np.sqrt(matrix[a, a] - y[a] * y[a])
    stars = np.empty(m)
    row = np.empty(m)
    for i in range(m):
        a = live[i]
        for j in range(m):
            row[j] = abs(matrix[a, live[j]] - y[a] * y[live[j]]) * scale[i] * scale[j]
        stars[i] = top_sum(row, m, i, remaining - 1)
    order, centres = centres_first(stars)
    if centres > 0:
        for i in range(m):
            a = live[order[i]]
            target_nodes[i] = nodes[a]
            for j in range(m):
                b = live[order[j]]
                target[i, j] = matrix[a, b] - y[a] * y[b]
    return m, centres, count


@kernel
def _triples(matrix, nodes, n, pivot, prefix, length, work, live, out, count):
    """Harmful {pivot} ∪ {a, b, c} with a, b, c after the pivot; prefix already holds the pivot's
    name.
    """
    inverse = 1.0 / np.sqrt(matrix[pivot, pivot])
    y, rest = work[0], work[1]
    bad = 0
    for a in range(pivot + 1, n):
        y[a] = matrix[a, pivot] * inverse
        rest[a] = matrix[a, a] - y[a] * y[a]
        if not rest[a] > 0.0:
            bad += 1
    if bad:
        for a in range(pivot + 1, n):
            if not rest[a] > 0.0:
                for b in range(pivot + 1, n):
                    for c in range(b + 1, n):
                        if b != a and c != a and (b > a or rest[b] > 0.0) and (c > a or rest[c] > 0.0):
                            count = emit_support(out, count, prefix, length, nodes[a], nodes[b], nodes[c])
                            if count > out.shape[0]:
                                return count
    for a in range(pivot + 1, n):
        if not rest[a] > 0.0:
            continue
        quarter = 0.25 * (1.0 - CENTRE_SLACK) * rest[a]
        ya = y[a]
        if _count_heavy(matrix[a, a + 1 : n], y[a + 1 : n], rest[a + 1 : n], ya, quarter) == 0:
            continue
        for b in range(a + 1, n):
            if not rest[b] > 0.0:
                continue
            v = matrix[a, b] - ya * y[b]
            if v * v >= quarter * rest[b]:
                count = _third(matrix, nodes, n, pivot, a, b, v, y, rest, prefix, length, out, count)
                if count > out.shape[0]:
                    return count
    return count


@kernel
def _count_heavy(row, y, rest, ya, quarter):
    """How many b have v² ≥ quarter · M_bb; slices and a loop from zero, so that the compiler
    vectorises it.
    """
    heavy = 0
    for b in range(len(row)):
        v = row[b] - ya * y[b]
        heavy += v * v >= quarter * rest[b]
    return heavy


@kernel
def _count_harmful(row_a, row_b, y, rest, ya, yb, ra, rb, v, room):
    """How many c have a 3×3 determinant that is not clearly positive."""
    harmful = 0
    for c in range(len(row_a)):
        u = row_a[c] - ya * y[c]
        w = row_b[c] - yb * y[c]
        harmful += rest[c] * room + 2.0 * v * u * w - ra * w * w - rb * u * u <= 0.0
    return harmful


@kernel
def _third(matrix, nodes, n, pivot, a, b, v, y, rest, prefix, length, out, count):
    """For a heavy pair (a, b) of the remainder: every c that makes the 3×3 determinant not clearly
    positive.
    """
    ra, rb = rest[a], rest[b]
    ya, yb = y[a], y[b]
    room = ra * rb * (1.0 - PIVOT_SLACK) - v * v
    if room <= 0.0:  # the pair alone is harmful
        for c in range(pivot + 1, n):
            if c not in (a, b) and rest[c] > 0.0:
                count = emit_support(out, count, prefix, length, nodes[a], nodes[b], nodes[c])
        return count
    after = slice(pivot + 1, n)
    harmful = _count_harmful(matrix[a, after], matrix[b, after], y[after], rest[after], ya, yb, ra, rb, v, room)
    if harmful == 2:  # a and b themselves, whose "determinant" is −PIVOT_SLACK · M_aa² M_bb by construction
        return count
    for c in range(pivot + 1, n):
        if c in (a, b) or not rest[c] > 0.0:
            continue
        u = matrix[a, c] - ya * y[c]
        w = matrix[b, c] - yb * y[c]
        if rest[c] * room + 2.0 * v * u * w - ra * w * w - rb * u * u <= 0.0:
            count = emit_support(out, count, prefix, length, nodes[a], nodes[b], nodes[c])
    return count


@kernel
def _pairs(matrix, nodes, root, out, count):
    """Harmful pairs {root, b} with b after the root."""
    prefix = np.empty(1, np.int64)
    prefix[0] = nodes[root]
    for b in range(root + 1, matrix.shape[0]):
        both = matrix[root, root] > 0.0 and matrix[b, b] > 0.0
        if not both or matrix[root, b] * matrix[root, b] > matrix[root, root] * matrix[b, b] * (1.0 - PIVOT_SLACK):
            count = emit_support(out, count, prefix, 1, nodes[b], -1, -1)
    return count


@kernel
def _triples_through(matrix, nodes, root, work, out, count):
    """Harmful triples {root, b, c} with b, c after the root (s = 3: only the root is
    eliminated).
    """
    n = matrix.shape[0]
    prefix = np.empty(1, np.int64)
    prefix[0] = nodes[root]
    y, rest = work[0], work[1]
    sound = matrix[root, root] > 0.0
    inverse = 1.0 / np.sqrt(matrix[root, root]) if sound else 0.0
    for b in range(root + 1, n):
        y[b] = matrix[root, b] * inverse
        rest[b] = matrix[b, b] - y[b] * y[b] if sound else 0.0
    for b in range(root + 1, n):
        limit = rest[b] * (1.0 - PIVOT_SLACK) if rest[b] > 0.0 else -1.0
        harmful = 0
        for c in range(b + 1, n):
            v = matrix[b, c] - y[b] * y[c]
            harmful += v * v >= limit * max(rest[c], 0.0)
        if harmful == 0:
            continue
        for c in range(b + 1, n):
            v = matrix[b, c] - y[b] * y[c]
            if v * v >= limit * max(rest[c], 0.0):
                count = emit_support(out, count, prefix, 1, nodes[b], nodes[c], -1)
                if count > out.shape[0]:
                    return count
    return count
