"""The compiled Gram matrix and components against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from solvers._gram import make_field
from solvers.kernels.assemble import component_labels, couplings_of_rows, off_diagonal, squared_norms, unit_blocks


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
