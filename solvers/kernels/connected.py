"""Connected node sets that a threshold test stops at: every one is met once, rooted at its node of
lowest rank.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel


@kernel
def weak_sets(gram, offsets, pointer, neighbours, size, shift, roots, rank, out):
    """Least prefixes (in the order of enumeration) of connected sets with G − shift·I not definite,
    one a row of `out`, padded with −1; returns how many. Sets of up to `size` nodes grow by
    neighbours of higher rank than their root; a set that fails is not grown further.

    Neighbours without a common entry in G are none: a set that only they join is as definite as its
    parts.
    """
    n = len(offsets) - 1
    found = 0
    widest = 0
    for i in range(n):
        widest = max(widest, offsets[i + 1] - offsets[i])
    factor = np.zeros((size * widest, size * widest))
    place = np.zeros(size * widest, dtype=np.int64)
    marked = np.zeros(n, dtype=np.int64)
    chosen = np.zeros(size, dtype=np.int64)
    lists = np.zeros((size + 1, n), dtype=np.int64)
    length = np.zeros(size + 1, dtype=np.int64)
    widths = np.zeros(size + 1, dtype=np.int64)
    for root in roots:
        lists[0, 0], length[0] = root, 1
        level = 0
        marked[root] += 1
        while level >= 0:
            if length[level] == 0:
                level -= 1
                if level >= 0:
                    _mark(gram, offsets, marked, pointer, neighbours, chosen[level], -1)
                continue
            length[level] -= 1
            node = lists[level, length[level]]
            chosen[level] = node
            width = _append(gram, offsets, node, widths[level], shift, factor, place)
            if width < 0:
                if found == len(out):
                    return found
                out[found] = -1
                out[found, : level + 1] = chosen[: level + 1]
                found += 1
                continue
            if level + 1 == size:
                continue
            widths[level + 1] = width
            lists[level + 1, : length[level]] = lists[level, : length[level]]
            length[level + 1] = length[level]
            for at in range(pointer[node], pointer[node + 1]):
                other = neighbours[at]
                if rank[other] > rank[root] and marked[other] == 0 and _meet(gram, offsets, node, other):
                    lists[level + 1, length[level + 1]] = other
                    length[level + 1] += 1
            _mark(gram, offsets, marked, pointer, neighbours, node, 1)
            level += 1
        marked[root] -= 1
    return found


@kernel
def _meet(gram, offsets, node, other):
    """Whether two nodes have an entry in common."""
    for i in range(offsets[node], offsets[node + 1]):
        for j in range(offsets[other], offsets[other + 1]):
            if gram[i, j] != 0.0:
                return True
    return False


@kernel
def _mark(gram, offsets, marked, pointer, neighbours, node, sign):
    for at in range(pointer[node], pointer[node + 1]):
        if _meet(gram, offsets, node, neighbours[at]):
            marked[neighbours[at]] += sign


@kernel
def _append(gram, offsets, node, width, shift, factor, place):
    """Extend the factor by the coordinates of a node; the new width, or −1 at the first pivot that
    is not positive.
    """
    for column in range(offsets[node], offsets[node + 1]):
        place[width] = column
        for j in range(width + 1):
            total = gram[column, place[j]]
            if j == width:
                total -= shift
            for t in range(j):
                total -= factor[width, t] * factor[j, t]
            if j == width:
                if not total > 0.0:
                    return -1
                factor[width, width] = np.sqrt(total)
            else:
                factor[width, j] = total / factor[j, j]
        width += 1
    return width


@kernel
def grow_sets(gram, offsets, pointer, neighbours, sets):
    """Fill each set up with neighbours, at every step with the one that its weakest direction sees
    most of.
    """
    size = sets.shape[1]
    widest = 0
    for i in range(len(offsets) - 1):
        widest = max(widest, offsets[i + 1] - offsets[i])
    place = np.zeros(size * widest, dtype=np.int64)
    for number in range(len(sets)):
        nodes = sets[number]
        count = 0
        while count < size and nodes[count] >= 0:
            count += 1
        while count < size:
            width = 0
            for i in range(count):
                for column in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
                    place[width] = column
                    width += 1
            block = np.zeros((width, width))
            for i in range(width):
                for j in range(width):
                    block[i, j] = gram[place[i], place[j]]
            values, vectors = np.linalg.eigh(block)
            best, score = -1, 0.0
            for i in range(count):
                for at in range(pointer[nodes[i]], pointer[nodes[i] + 1]):
                    other = neighbours[at]
                    inside = False
                    for j in range(count):
                        inside |= nodes[j] == other
                    if inside:
                        continue
                    seen = 0.0
                    for column in range(offsets[other], offsets[other + 1]):
                        image = 0.0
                        for j in range(width):
                            image += gram[column, place[j]] * vectors[j, 0]
                        seen += image * image / max(gram[column, column] - values[0], 1e-9)
                    if seen > score:
                        best, score = other, seen
            if best < 0:
                break
            nodes[count] = best
            count += 1
