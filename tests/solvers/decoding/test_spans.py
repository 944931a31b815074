"""Bases span what the columns span, whatever the storage, the grouping and the condition."""

from __future__ import annotations

import numpy as np
import pytest
from exact_matrices import floats, projector, rationals
from scipy import sparse

from solvers._groups import column_groups
from solvers.decoding.spans import as_operator, build_spans, column_squares, local_part, project_out, span_of, tamed


def dense_columns(spans, node, height):
    rows, columns = spans.columns((node,))
    result = np.zeros((height, spans.width))
    result[rows] = columns.T
    return result


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_bases_are_orthonormal_and_span_the_node(storage):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(30, 11)) * (rng.random((30, 11)) < 0.4)
    B[:, 3] = 2 * B[:, 2]  # a node of rank one
    B[:, 6] = 0  # a node that says nothing
    B[:, 8] = B[:, 7] + 1e-6 * rng.normal(size=30)  # a node that a Gram matrix would blur
    groups = column_groups([[0, 1], [2, 3], [4, 10, 9], [6], [7, 8], [5]], 11)
    spans = build_spans(storage(B), groups)
    for j, columns in enumerate(groups):
        basis = dense_columns(spans, j, 30)
        used = basis[:, np.linalg.norm(basis, axis=0) > 0.5]
        assert used.shape[1] == np.linalg.matrix_rank(B[:, columns], tol=1e-9)
        np.testing.assert_allclose(used.T @ used, np.eye(used.shape[1]), atol=1e-9)
        np.testing.assert_allclose(used @ (used.T @ B[:, columns]), B[:, columns], atol=1e-9)


@pytest.mark.parametrize("dims", [[1] * 6, [2, 2, 2], [1, 3, 2]])
def test_overlap_is_the_same_dense_and_sparse(dims):
    rng = np.random.default_rng(1)
    B = rng.normal(size=(8, 6))
    groups = column_groups(dims, 6)
    n = len(dims)
    dense, thin = build_spans(B, groups), build_spans(sparse.csc_array(B), groups)
    for spans in (dense, thin):
        pointers, neighbours, blocks = spans.overlap
        for i in range(n):
            for place in range(pointers[i], pointers[i + 1]):
                j = int(neighbours[place])
                if j > i:
                    expected = dense_columns(spans, i, 8).T @ dense_columns(spans, j, 8)
                    np.testing.assert_allclose(blocks[place], expected, atol=1e-12)


def test_storage_is_chosen_and_the_argument_is_left_alone():
    assert isinstance(as_operator(sparse.csr_array(np.eye(10))), np.ndarray)
    large = sparse.eye_array(500, format="csr")
    assert sparse.issparse(as_operator(large))
    assert sparse.issparse(as_operator(np.eye(500)))
    dense = np.ones((3, 3))
    as_operator(dense)[0, 0] = 7
    assert dense[0, 0] == 1
    with pytest.raises(ValueError, match="must be a matrix"):
        as_operator(np.zeros(3))


def test_projection_leaves_nothing_behind():
    rng = np.random.default_rng(2)
    B = rng.normal(size=(9, 5))
    basis = span_of(B[:, :2])
    for storage in (np.array, sparse.csc_array):
        rest = project_out(storage(B), basis)
        rest = rest if isinstance(rest, np.ndarray) else rest.toarray()
        np.testing.assert_allclose(basis.T @ rest, 0, atol=1e-14)
        np.testing.assert_allclose(rest[:, :2], 0, atol=1e-13)


def test_local_part():
    matrix = sparse.csc_array(np.array([[0.0, 1, 0], [2, 0, 0], [0, 0, 0], [3, 4, 0]]))
    rows, local = local_part(matrix, np.array([0, 1]))
    np.testing.assert_array_equal(rows, [0, 1, 3])
    np.testing.assert_array_equal(local, [[0, 1], [2, 0], [3, 4]])
    assert local_part(matrix, np.array([2]))[1].shape == (0, 1)


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_the_error_of_a_basis_is_bounded(storage):
    """For some W, B_jW is within the bound of Q_j: checked with the best W there is, in
    rationals.
    """
    rng = np.random.default_rng(4)
    B = rng.normal(size=(9, 6))
    B[:, 3] = B[:, 2] + 1e-7 * rng.normal(size=9)
    groups = column_groups([2, 2, 2], 6)
    spans = build_spans(storage(B), groups)
    assert spans.error[0] < 1e-13 < spans.error[1] < 1e-6
    for j, columns in enumerate(groups):
        Q = rationals(dense_columns(spans, j, 9))
        gap = floats(Q - projector(B[:, columns]) * Q)
        assert np.linalg.norm(gap) <= spans.error[j]


def test_exact_zeros_are_no_matter_of_the_zero_rule():
    B = np.array([[1.0, 0.0, 1.0, 3.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1e-13]])
    spans = build_spans(B, column_groups([2, 2], 4))
    assert spans.dropped.tolist() == [False, True]
    assert build_spans(B, column_groups(None, 4)).dropped.tolist() == [False] * 4


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_taming_changes_no_span(storage):
    B = np.array([[3e-200, 1.0, 0.0], [4e-200, 0.0, 0.0]])
    groups = column_groups(None, 3)
    with np.errstate(under="ignore"):
        squares = column_squares(storage(B))
    spans = build_spans(tamed(storage(B), groups, squares), groups)
    np.testing.assert_allclose(dense_columns(spans, 0, 2)[:, 0], [0.6, 0.8])
    untouched = storage(B[:, 1:])
    assert tamed(untouched, column_groups(None, 2), column_squares(untouched)) is untouched
