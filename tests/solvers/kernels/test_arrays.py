"""What the searches are made of: factorisations, gathered blocks, lists, products, pairs."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.sparse import csgraph

from solvers._gram import make_field
from solvers.kernels.assemble import component_labels, couplings_of_rows, off_diagonal, squared_norms, unit_blocks
from solvers.kernels.emit import (
    CENTRE_SLACK,
    centres_first,
    emit_path,
    emit_supersets,
    emit_support,
    keep_largest,
    top_sum,
)
from solvers.kernels.gather import gather_dense, gather_sparse, proven
from solvers.kernels.linalg import cholesky, contraction, norm_bound, orthogonalise, reciprocal, whiten, whiten_four


@pytest.mark.parametrize("seed", range(30))
def test_couplings_and_norms_are_the_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 40)), int(rng.integers(1, 30)))
    matrix = sparse.random_array(shape, density=0.15, rng=rng, data_sampler=lambda size: rng.integers(-3, 4, size))
    rows = sparse.csr_array(matrix.astype(float))
    rows.eliminate_zeros()
    pointer, index, value = couplings_of_rows(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, np.zeros(shape[1] + 1, np.int32)
    )
    columns = rows.tocsc()
    diagonal = squared_norms(columns.indptr.astype(np.int64), columns.data)
    expected = (rows.T @ rows).toarray()
    found = sparse.csr_array((value, index, pointer), shape=expected.shape)
    assert found.has_canonical_format
    shared = (rows != 0).astype(int)
    pattern = (shared.T @ shared).toarray() > 0
    np.fill_diagonal(pattern, False)
    assert np.array_equal(
        sparse.csr_array((np.ones(len(index)), index, pointer), shape=pattern.shape).toarray() > 0, pattern
    )
    np.testing.assert_array_equal(found.toarray() + np.diag(diagonal), expected)


def test_gram_is_symmetric_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    matrix = sparse.random_array((300, 60), density=0.05, rng=rng, format="csr")
    gram = make_field(matrix, None).gram.toarray()
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(gram, make_field(matrix.tocsc(), None).gram.toarray() * 1.0)


@pytest.mark.parametrize("density", [0.02, 0.9])
def test_long_rows_and_short_ones_give_one_gram(density: float) -> None:
    rng = np.random.default_rng(2)
    matrix = sparse.random_array((50, 200), density=density, rng=rng, format="csr")
    field = make_field(matrix, None)
    scaled = matrix.toarray() / 2.0**field.exponent
    np.testing.assert_allclose(field.gram.toarray(), scaled.T @ scaled, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(field.diagonal, (scaled**2).sum(axis=0), rtol=1e-13)
    couplings = field.couplings.toarray()
    assert not couplings.diagonal().any()
    np.testing.assert_array_equal(couplings + np.diag(field.diagonal), field.gram.toarray())


def test_off_diagonal_drops_the_diagonal_and_keeps_what_cancelled() -> None:
    matrix = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 4.0]]))
    matrix.data[1] = 0.0
    pointer, index, value = off_diagonal(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
    assert (pointer.tolist(), index.tolist(), value.tolist()) == ([0, 1, 2, 2], [1, 0], [0.0, 2.0])


@pytest.mark.parametrize("seed", range(20))
def test_component_labels_are_the_smallest_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    half = sparse.random_array((n, n), density=1.0 / n, rng=rng)
    graph = sparse.csr_array(half + half.T)
    labels = component_labels(graph.indptr.astype(np.int64), graph.indices.astype(np.int64))
    _, expected = csgraph.connected_components(graph, directed=False)
    smallest = {label: int(np.flatnonzero(expected == label)[0]) for label in set(expected.tolist())}
    assert labels.tolist() == [smallest[label] for label in expected.tolist()]


@pytest.mark.parametrize("seed", range(10))
def test_blocks_between_units_of_any_size_are_those_of_the_gram_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 8)
    matrix = sparse.random_array((20, int(sizes.sum())), density=0.1, rng=rng, format="csr")
    field = make_field(matrix, sizes.tolist())
    couplings, offsets, dense = field.couplings, field.offsets, field.gram.toarray()
    edges = (couplings.indptr.astype(np.int64), couplings.indices.astype(np.int64), couplings.data)
    owner = np.repeat(np.arange(8), sizes)
    pointer, neighbours, starts, values, own = unit_blocks(*edges, field.diagonal, offsets, owner, int(sizes.max()))
    assert np.array_equal(np.diff(pointer), np.diff(field.graph.indptr))
    assert np.array_equal(neighbours, field.graph.indices)
    for i in range(8):
        mine = slice(offsets[i], offsets[i + 1])
        assert np.array_equal(own[i, : sizes[i], : sizes[i]], dense[mine, mine])
        for e in range(pointer[i], pointer[i + 1]):
            theirs = slice(offsets[neighbours[e]], offsets[neighbours[e] + 1])
            assert np.array_equal(values[starts[e] : starts[e + 1]], dense[mine, theirs].ravel())


def blank(rows: int, columns: int) -> np.ndarray:
    return np.full((rows, columns), -9, np.int64)


def test_supports_and_paths_are_written_while_there_is_room() -> None:
    out = blank(3, 5)
    prefix = np.array([7, 8, 99])
    assert emit_support(out, 0, prefix, 2, 4, -1, 3) == 1
    assert emit_support(out, 1, prefix, 1, -1, -1, -1) == 2
    assert out.tolist() == [[7, 8, 4, 3, -1], [7, -1, -1, -1, -1], [-9] * 5]
    out = blank(1, 2)
    prefix = np.array([5])
    assert emit_support(out, 1, prefix, 1, 6, -1, -1) == 2
    assert emit_path(out, 1, prefix, np.array([0, 0]), 0) == 2
    assert (out == -9).all()
    out = blank(1, 3)
    assert emit_path(out, 0, np.array([10, 11, 12, 13]), np.array([0, 3, 1]), 1) == 1
    assert out.tolist() == [[10, 13, -1]]
    candidates = np.arange(10)
    assert emit_supersets(blank(5, 4), 2, np.array([1]), 1, candidates, 8, 10, 3) == 2
    out = blank(4, 4)
    assert emit_supersets(out, 0, np.array([77]), 1, candidates, 0, 10, 3) == 5
    assert out[-1].tolist() == [77, 0, 1, 5]


@pytest.mark.parametrize("missing", range(5))
def test_supersets_are_all_combinations(missing):
    candidates = np.array([3, 1, 4, 15, 9])
    out = blank(20, 7)
    count = emit_supersets(out, 0, np.array([100, 101]), 2, candidates, 1, 5, missing)
    wanted = [(100, 101, *rest) for rest in combinations(candidates[1:].tolist(), missing)]
    assert [tuple(int(i) for i in row if i >= 0) for row in out[:count]] == wanted
    assert count == comb(4, missing)
    assert (out[count:] == -9).all()


@pytest.mark.parametrize("top", [0, 1, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_the_largest_are_kept_in_order_with_ties(top, seed):
    values = np.random.default_rng(seed).integers(0, 4, size=7) / 2.0
    best = np.zeros(max(top, 1))
    for value in values:
        keep_largest(best, top, value)
    wanted = sorted(values.tolist(), reverse=True)[:top]
    assert best[:top].tolist() == wanted + [0.0] * (top - len(wanted))
    for skip in (0, 3, -1):
        row = np.append(values, 100.0)  # beyond the count
        kept = [value for place, value in enumerate(values) if place != skip]
        assert top_sum(row, 7, skip, top) == pytest.approx(sum(sorted(kept, reverse=True)[:top]))


def test_centres_come_first_the_heaviest_at_the_head():
    stars = np.array([0.2, 1.0 - CENTRE_SLACK / 2, np.inf, 0.999, 3.0, 3.0])
    order, centres = centres_first(stars)
    assert order.tolist() == [2, 4, 5, 1, 3, 0]  # equal ones in the order they had
    assert centres == 4
    assert centres_first(np.zeros(0))[1] == 0


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


def positive(rng: np.random.Generator, dim: int) -> np.ndarray:
    half = rng.normal(size=(dim, dim + 2))
    return half @ half.T


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_cholesky_of_a_range(dim):
    rng = np.random.default_rng(dim)
    matrix = rng.normal(size=(dim + 4, dim + 4))
    matrix[2 : 2 + dim, 2 : 2 + dim] = positive(rng, dim)
    factor = np.full((dim + 1, dim + 1), np.nan)
    assert cholesky(matrix, 2, dim, factor)
    lower = np.tril(factor[:dim, :dim])
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix[2 : 2 + dim, 2 : 2 + dim]), rtol=1e-12)


@pytest.mark.parametrize("worst", [0.0, -1e-3, np.nan])
def test_cholesky_refuses_what_is_not_positive(worst):
    matrix = np.diag([1.0, worst, 1.0])
    assert not cholesky(matrix, 0, 3, np.empty((3, 3)))
    assert cholesky(matrix, 2, 1, np.empty((3, 3)))


def prepared(matrix: np.ndarray) -> np.ndarray:
    dim = len(matrix)
    factor = np.zeros((dim, dim))
    assert cholesky(matrix, 0, dim, factor)
    reciprocal(factor, dim)
    return factor


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (4, 4), (5, 1)])
def test_whitening_is_two_triangular_solves(rows, columns):
    rng = np.random.default_rng([rows, columns])
    left, right = positive(rng, rows), positive(rng, columns)
    matrix = rng.normal(size=(rows + 3, columns + 3))
    block, scratch = np.full((6, 6), np.nan), np.empty((6, 6))
    whiten(matrix, 1, rows, 2, columns, prepared(left), prepared(right), block, scratch)
    inner = solve_triangular(np.linalg.cholesky(left), matrix[1 : 1 + rows, 2 : 2 + columns], lower=True)
    plain = solve_triangular(np.linalg.cholesky(right), inner.T, lower=True).T
    np.testing.assert_allclose(block[:rows, :columns], plain, rtol=1e-9, atol=1e-12)
    if (rows, columns) == (4, 4):
        four, square = np.empty((4, 4)), np.empty((4, 4))
        norm = whiten_four(matrix, 1, 2, prepared(left), prepared(right), four, square)
        np.testing.assert_allclose(four, plain, rtol=1e-9, atol=1e-12)
        assert norm == pytest.approx(np.sum(np.linalg.svd(plain, compute_uv=False) ** 8) ** 0.125)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 40.0])
@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (3, 1), (2, 2), (4, 3)])
def test_the_norm_bound_is_one_and_not_far_above(rows, columns, scale):
    rng = np.random.default_rng([rows, columns])
    square = np.empty((5, 5))
    for _ in range(20):
        block = scale * rng.normal(size=(5, 5))
        norm = np.linalg.norm(block[:rows, :columns], 2)
        bound = norm_bound(block, rows, columns, square)
        loose = np.sqrt(min(rows, columns)) if bound * bound < 0.01 else min(rows, columns) ** 0.125
        assert norm * (1.0 - 1e-12) <= bound <= norm * loose * (1.0 + 1e-12)


def test_a_contraction_has_a_factor_and_nothing_else_has():
    rng = np.random.default_rng(0)
    block = rng.normal(size=(3, 2))
    block *= 0.9 / np.linalg.norm(block, 2)
    gap, factor = np.empty((4, 4)), np.zeros((4, 4))
    assert contraction(block, 3, 2, gap, factor)
    lower = np.tril(factor[:2, :2])
    np.testing.assert_allclose(lower @ lower.T, np.eye(2) - block.T @ block, atol=1e-14)
    assert not contraction(block / 0.9, 3, 2, gap, factor) or np.linalg.norm(block / 0.9, 2) < 1.0
    assert not contraction(block / 0.8, 3, 2, gap, factor)


@pytest.mark.parametrize("scale", [0.0, 8.0])
def test_one_sided_jacobi_finds_singular_values_whatever_the_scale_of_the_columns(scale):
    rng = np.random.default_rng(5)
    columns = rng.normal(size=(4, 9)) * 10.0 ** (scale * np.array([0.0, 1.0, -1.0, 0.5]))[:, None]
    start, turned = columns.copy(), np.eye(4)
    assert orthogonalise(columns, turned, 60)
    np.testing.assert_allclose(turned @ start, columns, rtol=1e-10, atol=1e-12 * np.abs(start).max())
    np.testing.assert_allclose(turned @ turned.T, np.eye(4), atol=1e-13)
    lengths = np.linalg.norm(columns, axis=1)
    gram = (columns / lengths[:, None]) @ (columns / lengths[:, None]).T
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-13)
    if scale == 0.0:
        np.testing.assert_allclose(np.sort(lengths), np.sort(np.linalg.svd(start, compute_uv=False)), rtol=1e-12)


def test_jacobi_says_when_it_is_not_done():
    columns = np.random.default_rng(1).normal(size=(5, 5))
    assert not orthogonalise(columns, np.eye(5), 1)
