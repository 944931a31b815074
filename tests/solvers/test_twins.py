"""Units that stand for each other: equal columns up to sign, nothing delivered."""

from __future__ import annotations

import numpy as np

from solvers.gram import make_field
from solvers.twins import superfluous


def test_equal_columns_up_to_sign_are_twins():
    B = np.array([[1.0, 1.0, -1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
    field = make_field(B, None)
    assert superfluous(field, np.zeros(5, bool)).tolist() == [1, 2]
    assert superfluous(field, np.array([False, True, False, False, False])).tolist() == [2]
    assert superfluous(make_field(np.zeros((1, 2)), None), np.zeros(2, bool)).tolist() == []


def test_units_must_agree_column_by_column():
    a, b = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    field = make_field(np.column_stack([a, b, a, -b, b, a]), [2, 2, 2])
    assert superfluous(field, np.zeros(6, bool)).tolist() == [1]


def test_the_last_bit_counts():
    B = np.array([[1.0, np.nextafter(1.0, 2.0)], [1.0, 1.0]])
    assert superfluous(make_field(B, None), np.zeros(2, bool)).tolist() == []
