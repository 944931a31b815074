"""Ĝ = BᵀB of a sparse B without its diagonal, and its connected components.

On fields of 10⁵ nodes the search itself takes milliseconds; what costs is memory read out of order. So the products of
every row are dealt out to their columns in one go, and each column then sorts its own short list.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def couplings_of_rows(pointer, column, value, ends):
    """(pointer, index, value) of BᵀB off its diagonal, from the rows of B, which should be short: L entries make L(L − 1) products.

    ends are n + 1 zeros, as short as the number of products allows: they are read out of order. Both halves add the same
    products in the same order, so the result is symmetric to the last bit.
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
        live = start
        for q in range(start, end):  # products that cancelled are no couplings
            if values[q] != 0.0:
                index[live] = index[q]
                values[live] = values[q]
                live += 1
        end = live
        kept[i + 1] = end
    return kept, index[:end], values[:end]


@njit(cache=True, nogil=True)
def squared_norms(pointer, value):
    """Of the columns of a CSC matrix."""
    result = np.zeros(len(pointer) - 1)
    for i in range(len(result)):
        for e in range(pointer[i], pointer[i + 1]):
            result[i] += value[e] * value[e]
    return result


@njit(cache=True, nogil=True)
def off_diagonal(pointer, index, value):
    """The off-diagonal nonzeros of a square CSR matrix, in the same form."""
    n = len(pointer) - 1
    kept = np.zeros(n + 1, np.int64)
    columns = np.empty(len(index), np.int64)
    values = np.empty(len(value))
    end = 0
    for i in range(n):
        for e in range(pointer[i], pointer[i + 1]):
            if index[e] != i and value[e] != 0.0:
                columns[end] = index[e]
                values[end] = value[e]
                end += 1
        kept[i + 1] = end
    return kept, columns[:end], values[:end]


@njit(cache=True, nogil=True)
def component_labels(pointer, index):
    """For every node the smallest node of its connected component (the pattern must be symmetric)."""
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
