"""Decisions in rationals: no tolerance, at any scale."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.decoding import rational


def test_ties_are_decided_to_the_last_bit():
    columns = np.array([[1.0], [0.0]])
    s = np.array([7.0, 0.1])
    assert rational.within(columns, s, 0.1) is True
    assert rational.within(columns, s, np.nextafter(0.1, 0)) is False


@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
def test_no_scale_is_too_small_or_too_large(scale):
    columns = scale * np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 2.0**-60]])
    assert rational.within(columns, np.array([6.0, 8.0, 5.0]), 0.0) is True
    assert rational.within(columns[:, :1], np.array([6.0, 8.0, 5.0]), 5.0) is True
    assert rational.within(columns[:, :1], np.array([6.0, 8.0, 5.0]), 4.999) is False
    assert rational.rank(columns) == 2


def test_dependence_is_exact():
    third = 1.0 / 3.0
    assert rational.rank(np.array([[third, 2 * third], [third, 2 * third]])) == 1
    assert rational.rank(np.array([[third, 1.0], [third * 3, 3.0000000000000004]])) == 2
    assert rational.rank(np.zeros((3, 2))) == 0
    assert rational.within(np.zeros((2, 1)), np.array([3.0, 4.0]), 5.0) is True


def test_too_many_columns_are_left_open():
    wide = np.ones((2, rational.LARGEST + 1))
    assert rational.within(wide, np.ones(2), 0.0) is None
    assert rational.rank(wide) is None
