"""Dense fields of scalar nodes, large supports: centre branching as in `dense`, with centres peeled
off one by one.

The remainder after eliminating the chosen nodes is kept scaled to unit diagonal, C (its diagonal
stored as 0). With r nodes to go, a harmful completion has a centre: a node whose r − 1 largest
|C_ij| u_j sum to 1 or more, where u_j ≤ 1 bounds the bad vector at j by j's own such sum. The
heaviest centre is branched on and taken out, and then *the others' sums are formed again without
it*: most nodes that looked like centres beside it are none any more. Sums only fall, so old ones
stay bounds and only the largest is brought up to date. A cheap bound does for most rows: top-q sum
≤ q·τ + Σ max(|C_ij| − τ, 0), any τ.

The last three nodes are decided in closed form. The search ends at the first harmful set it meets.
Scaling anew at every level costs a few roundings relative to √(M_ii M_jj), which the shrunk
diagonal pays for (`solvers._gram`).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from solvers.kernels.emit import CENTRE_SLACK, PIVOT_SLACK, added, keep_largest
from solvers.kernels.kernel import kernel

SHARE = 0.85  # τ = SHARE/q: the least bounds in trials, and not by much


@kernel
def peeling_order(matrix, size):
    """Positions in the order in which they are peeled off as centres; what is left without centre
    is not in it.

    matrix is N; a node without a positive diagonal comes first.
    """
    n = matrix.shape[0]
    scale = np.empty(n)
    for i in range(n):
        scale[i] = 1.0 / np.sqrt(matrix[i, i]) if matrix[i, i] > 0.0 else np.inf
    left = np.ones(n, np.bool_)
    order = np.empty(n, np.int64)
    count = 0
    best = np.empty(size)
    while True:
        at, worst = -1, 1.0 - CENTRE_SLACK
        for i in range(n):
            if not left[i]:
                continue
            star = np.inf
            if np.isfinite(scale[i]):
                best[:] = 0.0
                for j in range(n):
                    if left[j] and j != i and matrix[i, j] != 0.0:
                        keep_largest(best, size - 1, abs(matrix[i, j]) * scale[i] * scale[j])
                star = added(best, size - 1)
            if star > worst:
                at, worst = i, star
        if at < 0:
            return order[:count]
        order[count] = at
        left[at] = False
        count += 1


@kernel
def child_order(matrix, order, size):
    """(roots, n), padded with −1: for each root the nodes in the order in which they are peeled off
    after it.

    Pieces of one root may be done at different thresholds. They add up to a proof only if all
    follow the same order, so it is made once, at the highest: what has no centre there has none at
    a lower threshold.
    """
    n = matrix.shape[0]
    children = np.full((len(order), n), -1, np.int64)
    block, names, star = np.empty((n, n)), np.empty(n, np.int64), np.empty(n)
    count, epoch, work = np.zeros(2, np.int64), np.zeros(n, np.int64), np.empty((3, n))
    out_of = np.zeros(n, np.bool_)
    for first in range(len(order)):
        root = order[first]
        out_of[root] = True
        sound = matrix[root, root] > 0.0
        if sound:
            sound = _first_block(matrix, root, out_of, block, names, count, star, work, size - 2) < 0
        made = 0
        if not sound:  # nothing can be said at this threshold: all of them, in any order
            for j in range(n):
                if not out_of[j]:
                    children[first, made] = j
                    made += 1
            continue
        epoch[:] = 0
        m = count[1]
        while m > 0:
            at = _heaviest(block, m, star, epoch, made, size - 2)
            if at < 0:
                break
            _to_the_end(block, names, star, epoch, m, at)
            m -= 1
            children[first, made] = names[m]
            made += 1
    return children


@kernel
def peel(matrix, order, children, items, shares, size, stop):
    """(items finished, a harmful set of positions or nothing, tree nodes).

    Item t stands for root order[t // shares] with the nodes before it left out, and for every
    shares-th of its `children` (see `child_order`), from t % shares on: independent pieces of one
    search. size is at least 5.
    """
    n = matrix.shape[0]
    depth = size - 3
    block = np.empty((depth, n, n))
    names = np.empty((depth, n), np.int64)
    count = np.zeros(depth, np.int64)
    star = np.empty((depth, n))
    epoch = np.zeros((depth, n), np.int64)
    removed = np.zeros(depth, np.int64)
    work = np.empty((3, n))
    prefix = np.empty(size, np.int64)
    out_of = np.zeros(n, np.bool_)
    visited = 0
    for done in range(len(items)):
        first, turn = items[done] // shares, items[done] % shares
        root = order[first]
        out_of[:] = False
        for t in range(first + 1):
            out_of[order[t]] = True
        prefix[0] = root
        if not matrix[root, root] > 0.0:
            return done, prefix[:1].copy(), visited
        bad = _first_block(matrix, root, out_of, block[1], names[1], count, star[1], work, size - 2)
        if bad >= 0:
            prefix[1] = bad
            return done, prefix[:2].copy(), visited
        level = 1
        removed[1] = 0
        epoch[1, : count[1]] = 0
        while level > 0:
            if stop[0]:
                return done, prefix[:0].copy(), visited
            m = count[level]
            left = size - level  # nodes still to choose
            at = -1
            if m >= left and level > 1:
                at = _heaviest(block[level], m, star[level], epoch[level], removed[level], left - 1)
            elif m >= left and removed[1] < n and children[first, removed[1]] >= 0:
                at = 0
                while names[1, at] != children[first, removed[1]]:
                    at += 1
            if at < 0:
                level -= 1
                continue
            visited += 1
            _to_the_end(block[level], names[level], star[level], epoch[level], m, at)
            count[level] = m - 1
            removed[level] += 1
            if level == 1 and (removed[1] - 1) % shares != turn:
                continue
            prefix[level] = names[level, m - 1]
            if left == 4:
                a, b, c = _triple(block[level], m - 1, work)
                if a >= 0:
                    prefix[level + 1], prefix[level + 2], prefix[level + 3] = a, b, c
                    end = level + 2
                    for t in range(level + 1, level + 4):
                        if prefix[t] >= 0:
                            prefix[t] = names[level, prefix[t]]
                            end = t + 1
                    return done, prefix[:end].copy(), visited
            else:
                bad = _next_block(block[level], block[level + 1], m - 1, star[level + 1], work, left - 2)
                if bad >= 0:
                    prefix[level + 1] = names[level, bad]
                    return done, prefix[: level + 2].copy(), visited
                names[level + 1, : m - 1] = names[level, : m - 1]
                count[level + 1] = m - 1
                removed[level + 1] = 0
                epoch[level + 1, : m - 1] = 0
                level += 1
    return len(items), prefix[:0].copy(), visited


@kernel
def _first_block(matrix, root, out_of, block, names, count, star, work, partners):
    """The scaled remainder after the root; a position that is harmful with the root alone, or
    −1.
    """
    n = matrix.shape[0]
    m = 0
    for j in range(n):
        if not out_of[j]:
            names[m] = j
            m += 1
    count[1] = m
    pivot = matrix[root, root]
    scale = work[0]
    for a in range(m):
        j = names[a]
        rest = matrix[j, j] - matrix[root, j] * matrix[root, j] / pivot
        if not rest > 0.0:
            return j
        scale[a] = 1.0 / np.sqrt(rest)
    tau = SHARE / partners
    for a in range(m):
        j = names[a]
        for b in range(m):
            block[a, b] = (matrix[j, names[b]] - matrix[root, j] * matrix[root, names[b]] / pivot) * scale[a] * scale[b]
        block[a, a] = 0.0
        star[a] = partners * tau + _excess(block[a, :m], tau)
    return -1


@kernel
def _next_block(source, target, m, star, work, partners):
    """The scaled remainder after position m of `source`; a position that is harmful with it alone,
    or −1.
    """
    y = source[m, :m]
    scale = work[0]
    for a in range(m):
        rest = 1.0 - y[a] * y[a]
        if not rest > 0.0:
            return a
        scale[a] = 1.0 / np.sqrt(rest)
    tau = SHARE / partners
    for a in range(m):
        _row(source[a, :m], y, y[a], scale[:m], scale[a], target[a, :m])
        target[a, a] = 0.0
        star[a] = partners * tau + _excess(target[a, :m], tau)
    return -1


@kernel
def _row(row, y, mine, scale, own, target):
    for b in range(len(row)):
        target[b] = (row[b] - mine * y[b]) * (own * scale[b])


@partial(kernel, fastmath={"reassoc", "nsz"})
def _excess(row, tau):
    """Σ max(|row| − τ, 0); a sum of non-negative numbers, so any order of adding is good to a few
    ulps.
    """
    total = 0.0
    for b in range(len(row)):
        total += max(abs(row[b]) - tau, 0.0)
    return total


@kernel
def _heaviest(block, m, star, epoch, now, partners):
    """The position with the largest star, brought up to date; −1: there is no centre."""
    best = np.empty(partners)
    while True:
        at, worst = -1, 1.0 - CENTRE_SLACK
        for a in range(m):
            if star[a] > worst:
                at, worst = a, star[a]
        if at < 0 or epoch[at] == now + 1:
            return at
        best[:] = 0.0
        row = block[at]
        for b in range(m):
            e = abs(row[b])
            if e > best[partners - 1]:
                if star[b] < 1.0:
                    e *= star[b]
                keep_largest(best, partners, e)
        total = 0.0
        for t in range(partners):
            total += best[t]
        star[at] = min(star[at], total)
        epoch[at] = now + 1


@kernel
def _to_the_end(block, names, star, epoch, m, at):
    """Swap position `at` with the last of m."""
    last = m - 1
    if at == last:
        return
    names[at], names[last] = names[last], names[at]
    star[at], star[last] = star[last], star[at]
    epoch[at], epoch[last] = epoch[last], epoch[at]
    for b in range(m):
        block[at, b], block[last, b] = block[last, b], block[at, b]
    for a in range(m):
        block[a, at], block[a, last] = block[a, last], block[a, at]


@kernel
def _triple(block, m, work):
    """Positions of a harmful set of at most three beside the one at position m (padded with −1);
    all −1: none is.
    """
    y, rest = block[m, :m], work[1]
    for a in range(m):
        rest[a] = 1.0 - y[a] * y[a]
        if not rest[a] > 0.0:
            return a, -1, -1
    for a in range(m - 1):
        quarter = 0.25 * (1.0 - CENTRE_SLACK) * rest[a]
        if _heavy(block[a, a + 1 : m], y[a + 1 : m], rest[a + 1 : m], y[a], quarter) == 0:
            continue
        for b in range(a + 1, m):
            v = block[a, b] - y[a] * y[b]
            if v * v >= quarter * rest[b]:
                room = rest[a] * rest[b] * (1.0 - PIVOT_SLACK) - v * v
                if room <= 0.0:
                    return a, b, -1
                for c in range(m):
                    if c in (a, b):
                        continue
                    u = block[a, c] - y[a] * y[c]
                    w = block[b, c] - y[b] * y[c]
                    if rest[c] * room + 2.0 * v * u * w - rest[a] * w * w - rest[b] * u * u <= 0.0:
                        return a, b, c
    return -1, -1, -1


@kernel
def _heavy(row, y, rest, mine, quarter):
    """How many b have v² ≥ quarter · M_bb; slices and a loop from zero, so that the compiler
    vectorises it.
    """
    found = 0
    for b in range(len(row)):
        v = row[b] - mine * y[b]
        found += v * v >= quarter * rest[b]
    return found
