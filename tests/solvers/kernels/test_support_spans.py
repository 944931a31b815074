"""The measured error of a basis against rationals, and sparse products against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
from exact_matrices import floats, projector, rationals
from scipy import sparse

from solvers.kernels.support_spans import column_products, node_grams, orthonormal, sparse_overlap


@pytest.mark.parametrize("closeness", [1.0, 1e-3, 1e-7])
def test_the_error_bound_holds_and_is_small(closeness):
    rng = np.random.default_rng(3)
    for _ in range(5):
        columns = rng.normal(size=(3, 7))
        columns[1] = columns[0] + closeness * rng.normal(size=7)
        columns /= np.linalg.norm(columns, axis=1)[:, None]
        basis, error, dropped = orthonormal(columns, 0.0, 1e-10)
        U = rationals(basis)
        true = float(np.linalg.norm(floats(U.transpose() * U - projector(columns.T)), 2))
        assert not dropped
        assert true <= error <= 1e-13 / closeness


def test_dependent_columns_are_dropped_and_zeros_are_not_counted():
    columns = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1e-12, 0.0], [0.0, 0.0, 1.0]])
    basis, _, dropped = orthonormal(columns, 0.0, 1e-10)
    assert dropped
    assert len(basis) == 2
    assert not orthonormal(columns[[0, 1, 3]], 0.0, 1e-10)[2]


def test_an_error_of_the_columns_is_an_error_of_the_projector():
    _, error, _ = orthonormal(np.eye(4)[:2], 0.25, 1e-10)
    assert 0.25 <= error < 1.0


@pytest.mark.parametrize("width", [1, 3])
def test_sparse_products(width):
    rng = np.random.default_rng(width)
    dense = rng.normal(size=(50, 40 * width)) * (rng.random((50, 40 * width)) < 0.08)
    Q = sparse.csc_array(dense)
    v = rng.normal(size=50)
    np.testing.assert_allclose(column_products(Q.indptr, Q.indices, Q.data, v), dense.T @ v, atol=1e-13)
    gram = (dense.T @ dense).reshape(40, width, 40, width).transpose(0, 2, 1, 3)
    blocks = node_grams(Q.indptr, Q.indices, Q.data, 50, width)
    np.testing.assert_allclose(blocks, gram[np.arange(40), np.arange(40)], atol=1e-13)
    pointers, neighbours, overlaps = sparse_overlap(Q.indptr, Q.indices, Q.data, 50, width)
    listed = np.zeros((40, 40), dtype=bool)
    for i in range(40):
        row = neighbours[pointers[i] : pointers[i + 1]]
        assert (np.diff(row) > 0).all()
        listed[i, row] = True
        np.testing.assert_allclose(overlaps[pointers[i] : pointers[i + 1]], gram[i, row], atol=1e-13)
    touched = np.abs(dense).reshape(50, 40, width).max(axis=2) > 0
    np.testing.assert_array_equal(listed, np.triu(touched.T.astype(int) @ touched > 0, 1))
