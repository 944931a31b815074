"""The scans of supports, dense and sparse, on scalars and on blocks, against eigenvalues."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from random_fields import adjacency, block, csr, harmful, listed, offsets_of, shifted

from solvers.kernels.block import _block_norms, block_centres, scan_blocks
from solvers.kernels.dense import centre_order, scan_dense
from solvers.kernels.emit import centres_first
from solvers.kernels.sparse import scan_sparse, sparse_stars
from solvers.kernels.sparse_block import _comparison, scan_norms, scan_sparse_blocks, sparse_block_stars

ONES, MIXED = [1] * 9, [2, 1, 3, 2, 1, 2, 1, 1]
STOPS = {"dense": (ONES[:8], 0.5, 1.0), "block": (MIXED[:7], 0.6, 1.0), "sparse": (ONES, 0.5, 0.4), "sparse blocks": (MIXED, 0.6, 0.5)}  # fmt: skip


def scan(kernel: str, matrix: np.ndarray, dims: list[int], size: int, *, room: int = 5000, stop: bool = False):
    """(supports as listed, how many there were, centres that are done, centres)"""
    offsets, n = offsets_of(dims), len(dims)
    out, flag = np.full((room, size), -1, np.int64), np.array([stop])
    if kernel == "dense":
        order, centres = centre_order(matrix, size)
        moved = np.ascontiguousarray(matrix[np.ix_(order, order)])
        count, done = scan_dense(moved, order, np.arange(centres), size, flag, out)
    elif kernel == "block":
        order, centres = block_centres(matrix, offsets, size)
        columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in order])
        moved = np.ascontiguousarray(matrix[np.ix_(columns, columns)])
        own = offsets_of([dims[i] for i in order])
        count, done = scan_blocks(moved, own, order, np.arange(centres), size, flag, out)
    else:
        parts = csr(matrix, offsets)
        stars = stars_of(matrix, size) if kernel == "sparse" else sparse_block_stars(*parts, size)
        order, centres = centres_first(stars)
        rank, goal = np.full(n, n + 1, np.int64), np.full(n, size, np.int64)
        rank[order[:centres]] = np.arange(centres)
        rest = (rank, goal, order[:centres], flag, out)
        if kernel == "sparse":
            count, done = scan_sparse(*parts[:3], np.diag(matrix).copy(), *rest)
        else:
            count, done = scan_sparse_blocks(*parts, *rest)
    return listed(out, min(count, room)), count, done, centres


def stars_of(matrix: np.ndarray, size: int) -> np.ndarray:
    pointer, index, value, *_ = csr(matrix, offsets_of([1] * len(matrix)))
    return sparse_stars(pointer, index, value, np.diag(matrix).copy(), size)


@pytest.mark.parametrize(
    ("kernel", "dims", "sizes", "theta", "density"),
    [
        ("dense", ONES[:8], range(2, 7), 0.35, 1.0),
        ("block", MIXED[:7], range(2, 6), 0.15, 1.0),
        ("block", [4] * 6, range(2, 6), 0.15, 1.0),
        ("block", ONES[:7], range(2, 6), 0.15, 1.0),
        ("sparse", ONES, range(2, 6), 0.1, 0.25),
        ("sparse blocks", MIXED, range(2, 5), 0.12, 0.3),
        ("sparse blocks", ONES[:8], range(2, 5), 0.12, 0.3),
    ],
)
@pytest.mark.parametrize("integer", [False, True])
def test_every_harmful_support_is_found_and_no_other(kernel, dims, sizes, theta, density, integer):
    """Sparse kernels look at connected ones and meet each once; dense ones may meet larger ones at
    each of their heavy pairs.
    """
    offsets, sparse = offsets_of(dims), kernel.startswith("sparse")
    for size in sizes:
        some = False
        for seed in range(3):
            matrix = shifted(dims, seed, theta=theta, density=density, integer=integer)
            found, _, done, centres = scan(kernel, matrix, dims, size)
            assert done == centres
            assert (size > 3 and not sparse) or len(found) == len(set(found))
            least = harmful(matrix, offsets, size, room=-1e-11, connected=sparse)
            assert least <= set(found) <= harmful(matrix, offsets, size, room=1e-7, connected=sparse)
            some = some or bool(least)
            edges = adjacency(matrix, offsets).number_of_edges()
            assert kernel != "sparse" or edges < len(dims) * (len(dims) - 1) / 2
        assert some or kernel != "sparse blocks"


@pytest.mark.parametrize(("kernel", "dims", "theta"), [("dense", ONES[:7], 0.1), ("block", MIXED[:7], 0.05)])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_node_that_is_harmful_alone_is_so_with_any_company(kernel, dims, theta, size):
    matrix, offsets = shifted(dims, 5, theta=theta), offsets_of(dims)
    matrix[offsets[3], offsets[3]] = -1.0
    if kernel == "dense":
        matrix[5, :] = matrix[:, 5] = 0.0
    assert harmful(matrix, offsets, size, room=1e-12) == set(scan(kernel, matrix, dims, size)[0])


@pytest.mark.parametrize("kernel", STOPS)
@pytest.mark.parametrize("size", [3, 4])
def test_a_full_list_or_a_stop_ends_the_search_and_says_which_roots_are_done(kernel, size):
    dims, theta, density = STOPS[kernel]
    matrix = shifted(dims, 0, theta=theta, density=density)
    _, count, done, centres = scan(kernel, matrix, dims, size, room=2)
    assert count > 2
    assert done < centres
    assert scan(kernel, matrix, dims, size, stop=True)[2] == 0


def test_centres_are_those_whose_largest_couplings_pass_one():
    matrix = np.eye(4)
    matrix[0, 1] = matrix[1, 0] = 0.6
    matrix[0, 2] = matrix[2, 0] = 0.5
    order, centres = centre_order(matrix, 3)
    assert (centres, order[0]) == (1, 0)
    assert centre_order(matrix, 2)[1] == 0  # one neighbour alone: 0.6
    without = np.eye(6) + 0.1
    assert centre_order(without, 4)[1] == 0
    assert scan("dense", without, [1] * 6, 4)[0] == []


def test_norms_bound_the_whitened_blocks():
    dims = MIXED
    matrix, offsets = shifted(dims, 7, theta=0.0), offsets_of(dims)
    n, widest = len(dims), max(dims)
    norms, sound = np.empty((n, n)), np.empty(n, np.bool_)
    kept = np.zeros((n, n, widest, widest))
    _block_norms(matrix, offsets, n, np.zeros((n, widest, widest)), norms, kept, sound, True)
    assert sound.all()
    for a in range(n):
        for b in range(a + 1, n):
            left, right = (np.linalg.inv(np.linalg.cholesky(block(matrix, offsets, (i,)))) for i in (a, b))
            both = block(matrix, offsets, (a, b))[: dims[a], dims[a] :]
            white = left @ both @ right.T
            np.testing.assert_allclose(kept[a, b, : dims[a], : dims[b]], white, atol=1e-12)
            np.testing.assert_allclose(kept[b, a, : dims[b], : dims[a]], white.T, atol=1e-12)
            assert np.linalg.norm(white, 2) * (1.0 - 1e-12) <= norms[a, b] == norms[b, a]


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_stars_are_the_largest_couplings_or_a_bound_below_one(size, seed):
    matrix = shifted(ONES, seed, theta=0.02, density=0.3)
    np.fill_diagonal(matrix, np.abs(np.diag(matrix)) + 0.3)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    couplings = np.abs(matrix) * scale[:, None] * scale[None, :]
    np.fill_diagonal(couplings, 0.0)
    exact = np.sort(couplings, axis=1)[:, ::-1][:, : size - 1].sum(axis=1)
    found = stars_of(matrix, size)
    assert (found >= exact * (1.0 - 1e-12)).all()
    np.testing.assert_allclose(found[found >= 1.0], exact[found >= 1.0], rtol=1e-12)


def test_a_node_without_a_pivot_and_its_neighbours_are_centres():
    matrix = np.eye(9)
    matrix[2, 3] = matrix[3, 2] = 1e-3
    matrix[2, 2] = 0.0
    assert np.isinf(stars_of(matrix, 3)[[2, 3]]).all()
    assert (stars_of(matrix, 3)[4:] == 0.0).all()
    assert scan("sparse", matrix, ONES, 2)[0] == [(2, 3)]


def test_a_component_smaller_than_the_support_is_its_own_goal():
    matrix = -np.eye(2)
    pointer, index, value = np.array([0, 0, 0]), np.empty(0, np.int64), np.empty(0)
    out = np.full((5, 3), -1, np.int64)
    order = np.arange(2)
    found = scan_sparse(pointer, index, value, np.diag(matrix).copy(), order, np.ones(2, np.int64), order, np.zeros(1, np.bool_), out)  # fmt: skip
    assert found == (2, 2)
    assert listed(out, 2) == [(0,), (1,)]


def positive(matrix: np.ndarray) -> bool:
    """Positive definite, in fractions."""
    rest = [[Fraction(float(x)) for x in row] for row in matrix]
    for p in range(len(rest)):
        if rest[p][p] <= 0:
            return False
        for i in range(p + 1, len(rest)):
            factor = rest[i][p] / rest[p][p]
            rest[i] = [x - factor * y for x, y in zip(rest[i], rest[p], strict=True)]
    return True


@pytest.mark.parametrize("nearly", [False, True], ids=["plain", "nearly singular"])
@pytest.mark.parametrize("seed", range(4))
def test_what_norms_pass_is_positive_definite(seed, nearly):
    dims, passed = [3, 1, 2, 3, 2], 0
    offsets, widths = offsets_of(dims), np.array(dims)
    field = shifted(dims, seed, theta=0.0, density=0.6, integer=seed % 2 == 1)
    owner = np.repeat(np.arange(len(dims)), dims)
    for spread in (0.1, 0.3, 0.5):
        matrix = np.where(owner[:, None] == owner, field, spread * field)
        if nearly:  # a node's own block, and a support, that have next to nothing left
            own = [np.linalg.eigvalsh(block(matrix, offsets, (i,)))[0] for i in range(len(dims))]
            matrix -= (min(own) - 1e-13) * np.eye(len(matrix))
        pointer, index, value, starts, _, diagonal = csr(matrix, offsets)
        edges, rest = _comparison(pointer, index, value, starts, widths, diagonal, 3)
        scalar = np.diag(rest)
        for i in range(len(dims)):
            scalar[i, index[pointer[i] : pointer[i + 1]]] = edges[pointer[i] : pointer[i + 1]]
        for support in combinations(range(len(dims)), 3):
            if positive(scalar[np.ix_(support, support)]):
                passed += 1
                assert positive(block(matrix, offsets, support))
    assert passed > 0 or nearly


def test_norms_of_one_diagonal_are_not_taken_for_those_of_another():
    """A field and the same field with θ on some coordinates only share all their arrays."""
    dims = [2] * 5
    field = shifted(dims, 1, theta=0.0, density=0.6)
    owner = np.repeat(np.arange(5), dims)
    matrix = np.where(owner[:, None] == owner, field, 0.2 * field)
    pointer, index, value, starts, widths, diagonal = csr(matrix, offsets_of(dims))
    arrays = (pointer, index, value, widths, starts, diagonal, np.full(5, 3))
    order, flag = np.arange(5), np.zeros(1, np.int64)
    high = diagonal - 10.0 * np.eye(2)
    for lowered in (diagonal, high, diagonal):
        count = len(scan_norms(arrays, lowered, order, order, 3, flag)[0])
        assert (count > 0) == (lowered is high)


def test_on_trees_with_turned_couplings_norms_lose_nothing():
    rng = np.random.default_rng(3)
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(4)]
    matrix = np.kron(np.diag([1.0, 2.0, 2.0, 2.0, 1.0]), np.eye(3))
    plain = np.diag([1.0, 2.0, 2.0, 2.0, 1.0])
    for i, turn in enumerate(turns):
        matrix[3 * i : 3 * i + 3, 3 * i + 3 : 3 * i + 6] = -turn
        matrix[3 * i + 3 : 3 * i + 6, 3 * i : 3 * i + 3] = -turn.T
        plain[i, i + 1] = plain[i + 1, i] = -1.0
    theta = np.linalg.eigvalsh(plain)[0] - 1e-6
    pointer, index, value, starts, widths, diagonal = csr(matrix - theta * np.eye(15), offsets_of([3] * 5))
    edges, rest = _comparison(pointer, index, value, starts, widths, diagonal, 5)
    scalar = np.diag(rest)
    for i in range(5):
        scalar[i, index[pointer[i] : pointer[i + 1]]] = edges[pointer[i] : pointer[i + 1]]
    assert positive(scalar)


def test_stars_bound_the_sum_of_the_largest_norms():
    dims = MIXED
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
    dims = MIXED
    matrix, offsets = np.eye(sum(dims)), offsets_of(dims)
    matrix[offsets[2] + 1, offsets[2] + 1] = -1.0
    matrix[offsets[2], offsets[5]] = matrix[offsets[5], offsets[2]] = 0.1
    assert scan("sparse blocks", matrix, dims, 2)[0] == [(2, 5)]
