"""Connected node sets that a threshold stops at which rises with what is uncertain around them.

A set must reach (root + η)², where η² adds up the squared radii of all blocks that touch it.
Growing lowers its least eigenvalue and raises η, so a set that fails is not grown further. Blocks
that are held join their nodes, whatever their matrices say; the factorisation is made anew for
every set, because its shift is its own.

`joins` is (first of the blocks of each node, these blocks, first of the nodes of each block, these
nodes).
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.connected import _append
from solvers.kernels.kernel import kernel


@kernel
def uncertainty(joins, squares, nodes, count):
    """Σ of squares of the blocks that touch one of the first `count` nodes, each once."""
    touch_at, touching, block_at, block_nodes = joins
    total = 0.0
    for i in range(count):
        for t in range(touch_at[nodes[i]], touch_at[nodes[i] + 1]):
            j = touching[t]
            if squares[j] <= 0.0:
                continue
            counted = False
            for at in range(block_at[j], block_at[j + 1]):
                for earlier in range(i):
                    counted |= block_nodes[at] == nodes[earlier]
            if not counted:
                total += squares[j]
    return total


@kernel
def _mark(joins, held, marked, node, by):
    touch_at, touching, block_at, block_nodes = joins
    for t in range(touch_at[node], touch_at[node + 1]):
        if held[touching[t]]:
            for at in range(block_at[touching[t]], block_at[touching[t] + 1]):
                marked[block_nodes[at]] += by


@kernel
def _fails(gram, offsets, chosen, count, root, squared, factor, place):
    raised = root + np.sqrt(squared)
    shift = raised * raised
    width = 0
    for i in range(count):
        width = _append(gram, offsets, chosen[i], width, shift, factor, place)
        if width < 0:
            return True
    return False


@kernel
def weak_uncertain_sets(gram, offsets, joins, held, squares, size, root, roots, rank, out):
    """Least prefixes (in the order of enumeration) of sets that what is held connects and that
    fail, one a row of `out`, padded with −1; returns how many. Sets of up to `size` nodes grow by
    neighbours of higher rank than their root.
    """
    touch_at, touching, block_at, block_nodes = joins
    n = len(offsets) - 1
    found, widest = 0, 0
    for i in range(n):
        widest = max(widest, offsets[i + 1] - offsets[i])
    factor = np.zeros((size * widest, size * widest))
    place = np.zeros(size * widest, dtype=np.int64)
    marked = np.zeros(n, dtype=np.int64)
    chosen = np.zeros(size, dtype=np.int64)
    lists = np.zeros((size + 1, n), dtype=np.int64)
    length = np.zeros(size + 1, dtype=np.int64)
    for root_node in roots:
        lists[0, 0], length[0] = root_node, 1
        level = 0
        marked[root_node] += 1
        while level >= 0:
            if length[level] == 0:
                level -= 1
                if level >= 0:
                    _mark(joins, held, marked, chosen[level], -1)
                continue
            length[level] -= 1
            node = lists[level, length[level]]
            chosen[level] = node
            squared = uncertainty(joins, squares, chosen, level + 1)
            if _fails(gram, offsets, chosen, level + 1, root, squared, factor, place):
                if found == len(out):
                    return found
                out[found] = -1
                out[found, : level + 1] = chosen[: level + 1]
                found += 1
                continue
            if level + 1 == size:
                continue
            lists[level + 1, : length[level]] = lists[level, : length[level]]
            length[level + 1] = length[level]
            first = length[level + 1]
            for t in range(touch_at[node], touch_at[node + 1]):
                if not held[touching[t]]:
                    continue
                for at in range(block_at[touching[t]], block_at[touching[t] + 1]):
                    other = block_nodes[at]
                    if rank[other] > rank[root_node] and marked[other] == 0:
                        known = False
                        for i in range(first, length[level + 1]):
                            known |= lists[level + 1, i] == other
                        if not known:
                            lists[level + 1, length[level + 1]] = other
                            length[level + 1] += 1
            _mark(joins, held, marked, node, 1)
            level += 1
        marked[root_node] -= 1
    return found
