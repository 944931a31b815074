"""The scan on blocks against plain eigenvalues, with nodes of different dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from threshold_fields import block, harmful, listed, offsets_of, shifted

from solvers.kernels.block import block_centres, block_norms, scan_blocks

DIMS = {"mixed": [2, 1, 3, 2, 1, 2, 1], "four": [4] * 6, "ones": [1] * 7}


def scan(matrix: np.ndarray, dims: list[int], size: int, *, room: int = 5000, stop: bool = False):
    offsets = offsets_of(dims)
    order, centres = block_centres(matrix, offsets, size)
    columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in order])
    moved = np.ascontiguousarray(matrix[np.ix_(columns, columns)])
    out = np.full((room, size), -1, np.int64)
    own = offsets_of([dims[i] for i in order])
    count, done = scan_blocks(moved, own, order, np.arange(centres), size, np.array([stop]), out)
    return listed(out, min(count, room)), count, done, centres


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", DIMS)
@pytest.mark.parametrize("integer", [False, True])
def test_every_harmful_support_is_found_and_no_other(size, kind, integer):
    for seed in range(2):
        matrix = shifted(DIMS[kind], seed, theta=0.15, integer=integer)
        found, _, done, centres = scan(matrix, DIMS[kind], size)
        assert done == centres
        assert size > 3 or len(found) == len(set(found))  # larger ones may be met at each of their heavy pairs
        offsets = offsets_of(DIMS[kind])
        assert harmful(matrix, offsets, size, room=-1e-11) <= set(found) <= harmful(matrix, offsets, size, room=1e-7)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_node_that_is_harmful_alone_is_so_with_any_company(size):
    dims = DIMS["mixed"]
    matrix, offsets = shifted(dims, 5, theta=0.05), offsets_of(dims)
    matrix[offsets[2], offsets[2]] = -1.0
    found, *_ = scan(matrix, dims, size)
    assert harmful(matrix, offsets, size, room=1e-12) == set(found)


def test_norms_bound_the_whitened_blocks():
    dims = DIMS["mixed"]
    matrix, offsets = shifted(dims, 7, theta=0.0), offsets_of(dims)
    n, widest = len(dims), max(dims)
    norms, sound = np.empty((n, n)), np.empty(n, np.bool_)
    kept = np.zeros((n, n, widest, widest))
    block_norms(matrix, offsets, n, np.zeros((n, widest, widest)), norms, kept, sound, True)
    assert sound.all()
    for a in range(n):
        for b in range(a + 1, n):
            left, right = (np.linalg.inv(np.linalg.cholesky(block(matrix, offsets, (i,)))) for i in (a, b))
            both = block(matrix, offsets, (a, b))[: dims[a], dims[a] :]
            white = left @ both @ right.T
            np.testing.assert_allclose(kept[a, b, : dims[a], : dims[b]], white, atol=1e-12)
            np.testing.assert_allclose(kept[b, a, : dims[b], : dims[a]], white.T, atol=1e-12)
            assert np.linalg.norm(white, 2) * (1.0 - 1e-12) <= norms[a, b] == norms[b, a]


def test_a_full_list_or_a_stop_ends_the_search():
    matrix = shifted(DIMS["mixed"], 0, theta=0.6)
    _, count, done, centres = scan(matrix, DIMS["mixed"], 4, room=2)
    assert count > 2
    assert done < centres
    assert scan(matrix, DIMS["mixed"], 4, stop=True)[2] == 0
