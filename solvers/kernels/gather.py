"""Many supports at once: their Gram blocks gathered, and each tried by a plain Cholesky."""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel
from solvers.kernels.linalg import cholesky


@kernel
def gather_dense(matrix, offsets, supports, width):
    """Blocks (m, width, width) of the supports (m, s), positions padded with −1; the padding is a
    large diagonal.
    """
    count, size = supports.shape
    result = np.zeros((count, width, width))
    columns = np.empty(width, np.int64)
    for m in range(count):
        used = 0
        for t in range(size):
            if supports[m, t] >= 0:
                for c in range(offsets[supports[m, t]], offsets[supports[m, t] + 1]):
                    columns[used] = c
                    used += 1
        for i in range(used):
            for j in range(used):
                result[m, i, j] = matrix[columns[i], columns[j]]
        for i in range(used, width):
            result[m, i, i] = 1e300
    return result


@kernel
def gather_sparse(pointer, index, value, starts, dims, diagonal, supports, width):
    """The same from CSR blocks: edge e has value[starts[e]:], row by row (no starts: one number
    each); diagonal (n, D, D).
    """
    count, size = supports.shape
    result = np.zeros((count, width, width))
    start = np.empty(size + 1, np.int64)
    for m in range(count):
        used = 0
        start[0] = 0
        for t in range(size):
            i = supports[m, t]
            if i < 0:
                break
            start[t + 1] = start[t] + dims[i]
            used += 1
        for t in range(used):
            i = supports[m, t]
            for a in range(dims[i]):
                for b in range(dims[i]):
                    result[m, start[t] + a, start[t] + b] = diagonal[i, a, b]
            for u in range(used):
                j = supports[m, u]
                if j == i:
                    continue
                low, high = pointer[i], pointer[i + 1]
                while low < high:
                    middle = (low + high) // 2
                    if index[middle] < j:
                        low = middle + 1
                    else:
                        high = middle
                if low < pointer[i + 1] and index[low] == j:
                    base = starts[low] if len(starts) else low
                    for a in range(dims[i]):
                        for b in range(dims[j]):
                            result[m, start[t] + a, start[u] + b] = value[base + a * dims[j] + b]
        for i in range(start[used], width):
            result[m, i, i] = 1e300
    return result


@kernel
def proven(blocks, theta):
    """Which of the (shrunk) blocks minus θI eliminate with positive pivots; one θ for each
    block.
    """
    count, width = blocks.shape[0], blocks.shape[1]
    result = np.empty(count, np.bool_)
    shifted = np.empty((width, width))
    factor = np.empty((width, width))
    for m in range(count):
        shifted[:] = blocks[m]
        for i in range(width):
            shifted[i, i] -= theta[m]
        result[m] = cholesky(shifted, 0, width, factor)
    return result
