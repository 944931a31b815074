"""Gram blocks gathered from dense and sparse storage are the blocks, and a Cholesky of each says
what eigenvalues say.
"""

from __future__ import annotations

import numpy as np
import pytest

from solvers.kernels.gather import gather_dense, gather_sparse, proven

SUPPORTS = np.array([[0, 2, 3], [1, 3, -1], [4, -1, -1], [3, 0, 2], [2, 4, 1]])


def field(dims: list[int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A Gram matrix with whole blocks missing, and its offsets."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(dims)])
    half = rng.normal(size=(offsets[-1], offsets[-1]))
    gram = half @ half.T
    for i, j in ((0, 2), (1, 4), (2, 3)):
        gram[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = 0.0
        gram[offsets[j] : offsets[j + 1], offsets[i] : offsets[i + 1]] = 0.0
    return gram, offsets


def csr_blocks(gram, offsets, dims):
    """Off-diagonal blocks that are not zero, as (pointer, index, value, starts), and the diagonal
    blocks, padded.
    """
    pointer, index, value, starts = [0], [], [], []
    diagonal = np.zeros((len(dims), max(dims), max(dims)))
    for i, di in enumerate(dims):
        diagonal[i, :di, :di] = gram[offsets[i] : offsets[i + 1], offsets[i] : offsets[i + 1]]
        for j in range(len(dims)):
            block = gram[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
            if i != j and block.any():
                index.append(j)
                starts.append(len(value))
                value.extend(block.ravel())
        pointer.append(len(index))
    return np.array(pointer), np.array(index), np.array(value), np.array(starts), diagonal


@pytest.mark.parametrize("dims", [[1, 1, 1, 1, 1], [2, 1, 3, 1, 2]])
def test_both_gather_the_same_blocks(dims):
    gram, offsets = field(dims, 3)
    width = max(sum(dims[i] for i in row if i >= 0) for row in SUPPORTS)
    dense = gather_dense(gram, offsets, SUPPORTS, width)
    pointer, index, value, starts, diagonal = csr_blocks(gram, offsets, dims)
    sparse = gather_sparse(pointer, index, value, starts, np.array(dims), diagonal, SUPPORTS, width)
    np.testing.assert_array_equal(sparse, dense)
    for row, block in zip(SUPPORTS, dense, strict=True):
        columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in row if i >= 0])
        used = len(columns)
        np.testing.assert_array_equal(block[:used, :used], gram[np.ix_(columns, columns)])
        assert not block[:used, used:].any()
        assert (np.diag(block)[used:] == 1e300).all()
    if max(dims) == 1:
        bare = gather_sparse(pointer, index, value, starts[:0], np.array(dims), diagonal, SUPPORTS, width)
        np.testing.assert_array_equal(bare, dense)


@pytest.mark.parametrize("dims", [[1, 1, 1, 1, 1], [2, 1, 3, 1, 2]])
def test_proven_is_what_the_least_eigenvalue_says(dims):
    gram, offsets = field(dims, 4)
    width = max(sum(dims[i] for i in row if i >= 0) for row in SUPPORTS)
    blocks = gather_dense(gram, offsets, SUPPORTS, width)
    least = np.array([np.linalg.eigvalsh(np.minimum(block, 1e6))[0] for block in blocks])
    room = 1e-6 * np.abs(least)
    assert proven(blocks, least - room).all()
    assert not proven(blocks, least + room).any()
    some = np.where(np.arange(len(least)) % 2 == 0, least - room, least + room)
    np.testing.assert_array_equal(proven(blocks, some), np.arange(len(least)) % 2 == 0)
