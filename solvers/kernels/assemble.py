"""Ĝ = BᵀB of a sparse B without its diagonal, and its connected components.

On fields of 10⁵ nodes the search itself takes milliseconds; what costs is memory read out of order.
So the products of every row are dealt out to their columns in one go, and each column then sorts
its own short list.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel


@kernel
def couplings_of_rows(pointer, column, value, ends):
    """(pointer, index, value) of BᵀB off its diagonal, from the rows of B, which should be short: L
    entries make L(L − 1) products.

    Columns that share a row have an entry, also where it cancels to zero: adjacency is a matter of
    B's pattern.

    ends are n + 1 zeros, as short as the number of products allows: they are read out of order.
    Both halves add the same products in the same order, so the result is symmetric to the last bit.
    """
    n = len(ends) - 1
    for r in range(len(pointer) - 1):
        for e in range(pointer[r], pointer[r + 1]):
            ends[column[e] + 1] += pointer[r + 1] - pointer[r] - 1
    for i in range(n):
        ends[i + 1] += ends[i]
    products = np.empty((ends[n], 2))  # (other column, product) side by side: one place in memory, not two
    for r in range(len(pointer) - 1):
        for e in range(pointer[r], pointer[r + 1]):
            i, weight = column[e], value[e]
            for f in range(pointer[r], pointer[r + 1]):
                if f != e:
                    products[ends[i], 0] = column[f]
                    products[ends[i], 1] = weight * value[f]
                    ends[i] += 1
    index = np.empty(len(products), np.int64)
    values = np.empty(len(products))
    kept = np.zeros(n + 1, np.int64)
    first, end = 0, 0
    for i in range(n):
        start = end
        for p in range(first, ends[i]):
            j, product = np.int64(products[p, 0]), products[p, 1]
            q = end
            while q > start and index[q - 1] > j:
                q -= 1
            if q > start and index[q - 1] == j:
                values[q - 1] += product
                continue
            for t in range(end, q, -1):
                index[t] = index[t - 1]
                values[t] = values[t - 1]
            index[q] = j
            values[q] = product
            end += 1
        first = ends[i]
        kept[i + 1] = end
    return kept, index[:end], values[:end]


@kernel
def squared_norms(pointer, value):
    """Of the columns of a CSC matrix."""
    result = np.zeros(len(pointer) - 1)
    for i in range(len(result)):
        for e in range(pointer[i], pointer[i + 1]):
            result[i] += value[e] * value[e]
    return result


@kernel
def off_diagonal(pointer, index, value):
    """The off-diagonal entries of a square CSR matrix, zeros among them included, in the same
    form.
    """
    n = len(pointer) - 1
    kept = np.zeros(n + 1, np.int64)
    columns = np.empty(len(index), np.int64)
    values = np.empty(len(value))
    end = 0
    for i in range(n):
        for e in range(pointer[i], pointer[i + 1]):
            if index[e] != i:
                columns[end] = index[e]
                values[end] = value[e]
                end += 1
        kept[i + 1] = end
    return kept, columns[:end], values[:end]


@kernel
def component_labels(pointer, index):
    """For every node the smallest node of its connected component (the pattern must be
    symmetric).
    """
    n = len(pointer) - 1
    parent = np.arange(n).astype(np.int32)
    for i in range(n):
        root = i
        for e in range(pointer[i], pointer[i + 1]):
            j = index[e]
            if j < i:
                while parent[j] != j:
                    parent[j] = parent[parent[j]]
                    j = parent[j]
                if j < root:
                    parent[root] = j
                    root = j
                elif j > root:
                    parent[j] = root
    for i in range(n):
        parent[i] = parent[parent[i]]  # parents are smaller, so theirs is final already
    return parent


@kernel
def unit_blocks(pointer, index, value, diagonal, offsets, owner, widest):
    """Couplings between coordinates as blocks between their nodes: (pointer, neighbours, starts,
    values, (n, D, D)).

    Neighbours are sorted. The block of edge e, from i to j, is values[starts[e]:][: d_i·d_j], row
    by row, so that one wide node costs nothing elsewhere; a node's own block is padded with zeros
    to the widest.
    """
    n = len(offsets) - 1
    seen = np.full(n, -1, np.int64)
    ends = np.zeros(n + 1, np.int64)
    total = 0
    for i in range(n):
        count = 0
        for e in range(pointer[offsets[i]], pointer[offsets[i + 1]]):
            j = owner[index[e]]
            if j != i and seen[j] != i:
                seen[j] = i
                count += 1
                total += (offsets[i + 1] - offsets[i]) * (offsets[j + 1] - offsets[j])
        ends[i + 1] = ends[i] + count
    neighbours = np.empty(ends[n], np.int64)
    starts = np.empty(ends[n] + 1, np.int64)
    starts[0] = 0
    values = np.zeros(total)
    own = np.zeros((n, widest, widest))
    seen[:] = -1
    slot = np.empty(n, np.int64)
    for i in range(n):
        at = ends[i]
        for e in range(pointer[offsets[i]], pointer[offsets[i + 1]]):
            j = owner[index[e]]
            if j != i and seen[j] != i:
                seen[j] = i
                neighbours[at] = j
                at += 1
        neighbours[ends[i] : at].sort()
        for t in range(ends[i], at):
            j = neighbours[t]
            slot[j] = t
            starts[t + 1] = starts[t] + (offsets[i + 1] - offsets[i]) * (offsets[j + 1] - offsets[j])
        for a in range(offsets[i + 1] - offsets[i]):
            c = offsets[i] + a
            own[i, a, a] = diagonal[c]
            for e in range(pointer[c], pointer[c + 1]):
                j = owner[index[e]]
                if j == i:
                    own[i, a, index[e] - offsets[i]] = value[e]
                else:
                    values[starts[slot[j]] + a * (offsets[j + 1] - offsets[j]) + index[e] - offsets[j]] = value[e]
    return ends, neighbours, starts, values, own
