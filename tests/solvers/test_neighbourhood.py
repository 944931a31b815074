"""The surroundings of what is delivered: every unit within reach, every row that touches one, and the way back."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solvers.neighbourhood import SMALL, neighbourhood_of


def path(n):
    return sparse.csr_array(sparse.eye_array(n - 1, n, k=1) - sparse.eye_array(n - 1, n))


def test_small_fields_are_taken_whole():
    near = neighbourhood_of(path(10), None, [4], radius=1)
    assert (near.field.n, near.units.tolist()) == (10, [4])


def test_reach_rows_and_the_way_back():
    n = SMALL + 100
    for matrix in (path(n), path(n).tocsc()):
        near = neighbourhood_of(matrix, None, [50], radius=3)
        assert near.members.tolist() == list(range(47, 54))
        assert near.rows.tolist() == list(range(46, 54))
        dense = matrix.toarray()[np.ix_(near.rows, near.members)]
        assert np.array_equal(near.field.matrix.toarray() * 2.0**near.field.exponent, dense)
        assert near.names((0, 3)) == (47, 50)
        assert np.flatnonzero(near.embed((0, 3), np.array([1.0, 2.0]))).tolist() == [47, 50]


def test_units_are_stepped_over_whole():
    n = SMALL + 100
    groups = [[0, n - 1], *([i] for i in range(1, n - 1))]
    near = neighbourhood_of(path(n), groups, [3], radius=4)
    assert near.members.tolist() == [*range(8), n - 2]
    assert near.field.dims.tolist() == [2, *([1] * 8)]
    assert near.units.tolist() == [3]


def test_much_of_a_field_is_the_whole_field():
    n = SMALL + 100
    near = neighbourhood_of(path(n), None, range(0, n, 2), radius=3)
    assert near.field.n == n
