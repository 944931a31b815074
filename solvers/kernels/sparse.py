"""Sparse fields of scalar nodes: connected supports only, grown from centres, with the elimination
kept per frontier node.

A support that falls into non-adjacent parts is no worse than its parts, so only connected ones are
grown (each once: a frontier list along the path, in which a node stays behind its earlier
siblings). The list holds, for every frontier node p, its row Y of the Cholesky factor against the
chosen nodes and the pivot that is left: choosing a node updates both by one multiply-add per chosen
node, and testing p as the last node is reading a sign.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.emit import CENTRE_SLACK, added, emit_path, keep_largest
from solvers.kernels.kernel import kernel


@kernel
def sparse_stars(pointer, index, value, diagonal, size):
    """For every node the sum of its size − 1 largest normalised couplings, or a bound on it below
    1: more can be a centre.

    Infinite for a node without a positive pivot, and for its neighbours.
    """
    n = len(diagonal)
    stars = np.empty(n)
    root = np.empty(n)  # 0 where there is no positive pivot
    for i in range(n):
        root[i] = 1.0 / np.sqrt(diagonal[i]) if diagonal[i] > 0.0 else 0.0
    steepest = root.max() if root.min() > 0.0 else np.inf
    best = np.zeros(max(size - 1, 1))
    top = size - 1
    for i in range(n):
        largest = 0.0
        for e in range(pointer[i], pointer[i + 1]):
            largest = max(largest, abs(value[e]))
        stars[i] = min(top, pointer[i + 1] - pointer[i]) * largest * root[i] * steepest
        if stars[i] <= 1.0 - 2.0 * CENTRE_SLACK:  # a bound that needs no neighbour's diagonal will do
            continue
        best[:] = 0.0
        forced = root[i] == 0.0
        for e in range(pointer[i], pointer[i + 1]):
            scale = root[index[e]]
            forced = forced or scale == 0.0
            keep_largest(best, top, abs(value[e]) * root[i] * scale)
        stars[i] = np.inf if forced else added(best, top)
    return stars


@kernel
def scan_sparse(pointer, index, value, diagonal, rank, goal, roots, stop, out):
    """Connected supports grown from `roots` that can't be proven harmless.

    (pointer, index, value) is the off-diagonal part of N as CSR, diagonal its diagonal; rank[v] is
    the place of v among the centres (a large number for others): a root sees only nodes of higher
    rank. goal[v] is the number of nodes that a support through v has: min(s, size of its
    component). Returns (number found, number of roots finished).
    """
    n = len(diagonal)
    depth = out.shape[1]
    widest = 0
    for i in range(n):
        widest = max(widest, pointer[i + 1] - pointer[i])
    capacity = min(n, widest * depth) + 1
    node = np.empty(capacity, np.int64)
    row = np.zeros((capacity, depth))
    left = np.empty((depth + 1, capacity))
    place = np.full(n, -1, np.int64)
    chosen = np.empty(depth + 1, np.int64)
    ends = np.zeros(depth + 2, np.int64)
    harmful = np.zeros(depth + 2, np.bool_)
    count = 0
    for done in range(len(roots)):
        root = roots[done]
        target = goal[root]
        floor = rank[root]
        node[0] = root
        place[root] = 0
        left[0, 0] = diagonal[root]
        level = 0  # nodes chosen so far
        ends[0] = 1
        chosen[0] = -1  # position last tried at this level
        harmful[0] = False
        while level >= 0:
            position = chosen[level] + 1
            if stop[0] or count > out.shape[0]:
                break
            if position >= ends[level] or (level == 0 and position > 0):
                level -= 1
                if level >= 0:  # take back what choosing the last node added
                    for p in range(ends[level], ends[level + 1]):
                        place[node[p]] = -1
                continue
            chosen[level] = position
            pivot = left[level, position]
            bad = harmful[level] or not pivot > 0.0
            size = level + 1
            if size == target:
                if bad:
                    count = emit_path(out, count, node, chosen, level)
                continue
            end = ends[level]
            w = node[position]
            # the last node but one: most of the work; frontier nodes only, without choosing them
            for p in range(position + 1, end):
                row[p, level] = 0.0
            for e in range(pointer[w], pointer[w + 1]):
                u = index[e]
                p = place[u]
                if p < 0:
                    if rank[u] > floor:
                        p = end
                        end += 1
                        place[u] = p
                        node[p] = u
                        for t in range(level):
                            row[p, t] = 0.0
                        left[level, p] = diagonal[u]
                        row[p, level] = value[e]
                elif p > position:
                    row[p, level] = value[e]
            ends[level + 1] = end
            harmful[level + 1] = bad
            if not bad:
                inverse = 1.0 / np.sqrt(pivot)
                for p in range(position + 1, end):
                    y = row[p, level]
                    for t in range(level):
                        y -= row[position, t] * row[p, t]
                    y *= inverse
                    row[p, level] = y
                    left[level + 1, p] = left[level, p] - y * y
            if size + 1 == target:
                for p in range(position + 1, end):
                    if bad or not left[level + 1, p] > 0.0:
                        chosen[level + 1] = p
                        count = emit_path(out, count, node, chosen, level + 1)
                for p in range(ends[level], end):
                    place[node[p]] = -1
                continue
            level += 1
            chosen[level] = position
        for p in range(ends[0]):
            place[node[p]] = -1
        if stop[0] or count > out.shape[0]:
            return count, done
    return count, len(roots)
