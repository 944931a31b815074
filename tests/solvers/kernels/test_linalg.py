"""Small factorisations on coordinate ranges against numpy's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from solvers.kernels.linalg import cholesky, contraction, norm_bound, orthogonalise, reciprocal, whiten, whiten_four


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
