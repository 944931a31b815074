"""The sparse scalar scan against plain eigenvalues over connected supports."""

from __future__ import annotations

import numpy as np
import pytest
from threshold_fields import adjacency, csr, harmful, listed, offsets_of, shifted

from solvers.kernels.emit import centres_first
from solvers.kernels.sparse import scan_sparse, sparse_stars

N = 9
OFFSETS = offsets_of([1] * N)


def stars_of(matrix: np.ndarray, size: int) -> np.ndarray:
    pointer, index, value, *_ = csr(matrix, OFFSETS)
    return sparse_stars(pointer, index, value, np.diag(matrix).copy(), size)


def scan(matrix: np.ndarray, size: int, *, room: int = 5000, stop: bool = False):
    pointer, index, value, *_ = csr(matrix, OFFSETS)
    order, centres = centres_first(stars_of(matrix, size))
    rank = np.full(N, N + 1, np.int64)
    rank[order[:centres]] = np.arange(centres)
    goal = np.full(N, size, np.int64)
    out = np.full((room, size), -1, np.int64)
    diagonal = np.diag(matrix).copy()
    count, done = scan_sparse(pointer, index, value, diagonal, rank, goal, order[:centres], np.array([stop]), out)
    return listed(out, min(count, room)), count, done, centres


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_harmful_connected_support_is_found_once(size, integer, seed):
    matrix = shifted([1] * N, seed, theta=0.1, density=0.25, integer=integer)
    found, _, done, centres = scan(matrix, size)
    assert done == centres
    assert len(found) == len(set(found))
    least = harmful(matrix, OFFSETS, size, room=-1e-11, connected=True)
    assert least <= set(found) <= harmful(matrix, OFFSETS, size, room=1e-7, connected=True)


def test_the_fields_of_these_tests_are_neither_whole_nor_harmless():
    matrices = [shifted([1] * N, seed, theta=0.1, density=0.25) for seed in range(3)]
    assert all(adjacency(matrix, OFFSETS).number_of_edges() < N * (N - 1) / 2 for matrix in matrices)
    assert any(harmful(matrix, OFFSETS, 3, room=-1e-11, connected=True) for matrix in matrices)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_stars_are_the_largest_couplings_or_a_bound_below_one(size, seed):
    matrix = shifted([1] * N, seed, theta=0.02, density=0.3)
    np.fill_diagonal(matrix, np.abs(np.diag(matrix)) + 0.3)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    couplings = np.abs(matrix) * scale[:, None] * scale[None, :]
    np.fill_diagonal(couplings, 0.0)
    exact = np.sort(couplings, axis=1)[:, ::-1][:, : size - 1].sum(axis=1)
    found = stars_of(matrix, size)
    assert (found >= exact * (1.0 - 1e-12)).all()
    np.testing.assert_allclose(found[found >= 1.0], exact[found >= 1.0], rtol=1e-12)


def test_a_node_without_a_pivot_and_its_neighbours_are_centres():
    matrix = np.eye(N)
    matrix[2, 3] = matrix[3, 2] = 1e-3
    matrix[2, 2] = 0.0
    assert np.isinf(stars_of(matrix, 3)[[2, 3]]).all()
    assert (stars_of(matrix, 3)[4:] == 0.0).all()
    assert scan(matrix, 2)[0] == [(2, 3)]


def test_a_component_smaller_than_the_support_is_its_own_goal():
    matrix = -np.eye(2)
    pointer, index, value = np.array([0, 0, 0]), np.empty(0, np.int64), np.empty(0)
    out = np.full((5, 3), -1, np.int64)
    order = np.arange(2)
    found = scan_sparse(pointer, index, value, np.diag(matrix).copy(), order, np.ones(2, np.int64), order, np.zeros(1, np.bool_), out)  # fmt: skip
    assert found == (2, 2)
    assert listed(out, 2) == [(0,), (1,)]


def test_a_full_list_or_a_stop_ends_the_search():
    matrix = shifted([1] * N, 0, theta=0.5, density=0.4)
    _, count, done, centres = scan(matrix, 4, room=2)
    assert count > 2
    assert done < centres
    assert scan(matrix, 4, stop=True)[2] == 0
