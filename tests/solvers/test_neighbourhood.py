"""The surroundings of what is delivered: every unit within reach, every row that touches one, and
the way back.

Units that stand for each other: equal columns up to sign, nothing delivered.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solvers._gram import make_field
from solvers._neighbourhood import SMALL, _superfluous, neighbourhood_of


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


def test_equal_columns_up_to_sign_are_twins():
    B = np.array([[1.0, 1.0, -1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
    field = make_field(B, None)
    assert _superfluous(field, np.zeros(5, bool)).tolist() == [1, 2]
    assert _superfluous(field, np.array([False, True, False, False, False])).tolist() == [2]
    assert _superfluous(make_field(np.zeros((1, 2)), None), np.zeros(2, bool)).tolist() == []


def test_units_must_agree_column_by_column():
    a, b = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    field = make_field(np.column_stack([a, b, a, -b, b, a]), [2, 2, 2])
    assert _superfluous(field, np.zeros(6, bool)).tolist() == [1]


def test_the_last_bit_counts():
    B = np.array([[1.0, np.nextafter(1.0, 2.0)], [1.0, 1.0]])
    assert _superfluous(make_field(B, None), np.zeros(2, bool)).tolist() == []
