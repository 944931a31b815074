"""The sparse scan on blocks: plain eigenvalues over connected supports, and the scalar scan where
all dimensions are one.
"""

from __future__ import annotations

import numpy as np
import pytest
from threshold_fields import block, csr, harmful, listed, offsets_of, shifted

from solvers.kernels.emit import centres_first
from solvers.kernels.sparse import sparse_stars
from solvers.kernels.sparse_block import scan_sparse_blocks, sparse_block_stars

DIMS = {"mixed": [2, 1, 3, 2, 1, 2, 1, 1], "ones": [1] * 8}


def scan(matrix: np.ndarray, dims: list[int], size: int, *, room: int = 5000, stop: bool = False):
    offsets = offsets_of(dims)
    pointer, index, value, starts, widths, diagonal = csr(matrix, offsets)
    order, centres = centres_first(sparse_block_stars(pointer, index, value, starts, widths, diagonal, size))
    n = len(dims)
    rank = np.full(n, n + 1, np.int64)
    rank[order[:centres]] = np.arange(centres)
    out = np.full((room, size), -1, np.int64)
    goal = np.full(n, size, np.int64)
    count, done = scan_sparse_blocks(
        pointer, index, value, starts, widths, diagonal, rank, goal, order[:centres], np.array([stop]), out
    )
    return listed(out, min(count, room)), count, done, centres


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("kind", DIMS)
@pytest.mark.parametrize("integer", [False, True])
def test_every_harmful_connected_support_is_found_once(size, kind, integer):
    some = False
    for seed in range(3):
        matrix, offsets = shifted(DIMS[kind], seed, theta=0.12, density=0.3, integer=integer), offsets_of(DIMS[kind])
        found, _, done, centres = scan(matrix, DIMS[kind], size)
        assert done == centres
        assert len(found) == len(set(found))
        least = harmful(matrix, offsets, size, room=-1e-11, connected=True)
        assert least <= set(found) <= harmful(matrix, offsets, size, room=1e-7, connected=True)
        some = some or bool(least)
    assert some


def test_stars_bound_the_sum_of_the_largest_norms():
    dims = DIMS["mixed"]
    matrix, offsets = shifted(dims, 2, theta=0.0, density=0.4) + 0.2 * np.eye(sum(dims)), offsets_of(dims)
    pointer, index, value, starts, widths, diagonal = csr(matrix, offsets)
    found = sparse_block_stars(pointer, index, value, starts, widths, diagonal, 3)
    for i in range(len(dims)):
        norms = []
        for j in range(len(dims)):
            if j != i:
                left, right = (np.linalg.inv(np.linalg.cholesky(block(matrix, offsets, (t,)))) for t in (i, j))
                norms.append(np.linalg.norm(left @ block(matrix, offsets, (i, j))[: dims[i], dims[i] :] @ right.T, 2))
        exact = sum(sorted(norms)[-2:])
        assert exact * (1.0 - 1e-12) <= found[i] <= exact * 3.0


def test_with_one_coordinate_each_the_stars_are_those_of_the_scalar_kernel():
    matrix = shifted([1] * 8, 4, theta=0.02, density=0.4)
    pointer, index, value, starts, widths, diagonal = csr(matrix, offsets_of([1] * 8))
    blocks = sparse_block_stars(pointer, index, value, starts, widths, diagonal, 4)
    scalar = sparse_stars(pointer, index, value, np.diag(matrix).copy(), 4)
    exact = scalar > 1.0
    np.testing.assert_allclose(blocks[exact], scalar[exact], rtol=1e-12)
    assert (blocks[~exact] <= scalar[~exact] * (1.0 + 1e-12)).all()


def test_an_unsound_node_and_its_neighbours_are_centres():
    dims = DIMS["mixed"]
    matrix, offsets = np.eye(sum(dims)), offsets_of(dims)
    matrix[offsets[2] + 1, offsets[2] + 1] = -1.0
    matrix[offsets[2], offsets[5]] = matrix[offsets[5], offsets[2]] = 0.1
    assert scan(matrix, dims, 2)[0] == [(2, 5)]


def test_a_full_list_or_a_stop_ends_the_search():
    matrix = shifted(DIMS["mixed"], 0, theta=0.6, density=0.5)
    _, count, done, centres = scan(matrix, DIMS["mixed"], 3, room=2)
    assert count > 2
    assert done < centres
    assert scan(matrix, DIMS["mixed"], 3, stop=True)[2] == 0
