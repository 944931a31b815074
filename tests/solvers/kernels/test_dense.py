"""The dense scalar scan against plain eigenvalues: nothing harmful is missed, nothing harmless is
listed.
"""

from __future__ import annotations

import numpy as np
import pytest
from threshold_fields import harmful, listed, offsets_of, shifted

from solvers.kernels.dense import centre_order, scan_dense


def scan(matrix: np.ndarray, size: int, *, room: int = 5000, stop: bool = False):
    order, centres = centre_order(matrix, size)
    out = np.full((room, size), -1, np.int64)
    sorted_matrix = np.ascontiguousarray(matrix[np.ix_(order, order)])
    count, done = scan_dense(sorted_matrix, order, np.arange(centres), size, np.array([stop]), out)
    return listed(out, min(count, room)), count, done, centres


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_harmful_support_is_found_and_no_other(size, integer, seed):
    matrix = shifted([1] * 8, seed, theta=0.35, integer=integer)
    found, _, done, centres = scan(matrix, size)
    assert done == centres
    assert size > 3 or len(found) == len(set(found))  # larger ones may be met at each of their heavy pairs
    assert all(len(support) == size for support in found)
    offsets = offsets_of([1] * 8)
    assert harmful(matrix, offsets, size, room=-1e-12) <= set(found) <= harmful(matrix, offsets, size, room=1e-7)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_node_without_a_positive_diagonal_is_harmful_with_any_company(size):
    matrix = shifted([1] * 7, 1, theta=0.1)
    matrix[3, 3] = -0.5
    matrix[5, :] = matrix[:, 5] = 0.0
    found, *_ = scan(matrix, size)
    offsets = offsets_of([1] * 7)
    assert harmful(matrix, offsets, size, room=1e-12) == set(found)


def test_a_field_without_centres_needs_no_search():
    matrix = np.eye(6) + 0.1
    assert centre_order(matrix, 4)[1] == 0
    assert scan(matrix, 4)[0] == []


def test_centres_are_those_whose_largest_couplings_pass_one():
    matrix = np.eye(4)
    matrix[0, 1] = matrix[1, 0] = 0.6
    matrix[0, 2] = matrix[2, 0] = 0.5
    order, centres = centre_order(matrix, 3)
    assert centres == 1
    assert order[0] == 0
    assert centre_order(matrix, 2)[1] == 0  # one neighbour alone: 0.6


@pytest.mark.parametrize("size", [3, 4, 5])
def test_a_full_list_or_a_stop_ends_the_search_and_says_which_roots_are_done(size):
    matrix = shifted([1] * 8, 0, theta=0.5)
    _, count, done, centres = scan(matrix, size, room=2)
    assert count > 2
    assert done < centres
    assert scan(matrix, size, stop=True)[2] == 0
