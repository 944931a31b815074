"""Ball arithmetic decides what doubles can't.

Decisions in rationals: no tolerance, at any scale.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from random_fields import definite_above, dependent, upper_bound_holds

from solvers import _exact as exact
from solvers._exact import WIDEST, norm_ratio_above, null_vector, proves_at_least, sqrt_below


def test_proofs_are_never_wrong_near_singularity():
    rng = np.random.default_rng(0)
    proved = 0
    for _ in range(60):
        block = rng.integers(-2, 3, size=(4, 3)).astype(float)
        block[:, 2] = block[:, 0] + block[:, 1] + rng.choice([0.0, 1e-9, 2.0**-52], size=4)
        theta = float(rng.choice([1e-30, 1e-20, 1e-10]))
        verdict = proves_at_least(block, theta)
        truth = definite_above(block, Fraction(theta))
        assert not (verdict and not truth)
        proved += verdict
    assert proved > 5


def test_upper_bounds_hold_and_are_tight():
    rng = np.random.default_rng(1)
    for _ in range(20):
        block, vector = rng.standard_normal((5, 3)), rng.standard_normal(3)
        upper = norm_ratio_above(block, vector)
        assert upper_bound_holds(block, vector, upper)
        assert not upper_bound_holds(block, vector, upper * (1 - 1e-12))
    assert norm_ratio_above(np.zeros((2, 2)), np.array([1.0, 0.0])) == 0.0


@pytest.mark.parametrize("value", [0.0, 2.0, 0.1, 1e-300, 1e300])
def test_square_roots_from_below(value):
    assert Fraction(sqrt_below(value)) ** 2 <= Fraction(value)
    assert sqrt_below(value) >= math.sqrt(value) * (1 - 1e-15)


def test_dependent_columns_are_found_exactly():
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(80):
        block = rng.integers(-2, 3, size=(int(rng.integers(1, 6)), 3)) * float(rng.choice([1.0, 0.1, 1e-120, 2e90]))
        block[:, 2] = rng.choice([block[:, 2], block[:, 0] * 2, block[:, 0] + 2.0**-40 * block[:, 1]][0:3])
        vector = null_vector(block)
        seen.add(vector is None)
        assert (vector is not None) == dependent(block)
        if vector is not None:
            assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-15)
            size = np.abs(block).max(initial=0.0)
            assert np.abs(block @ vector).max(initial=0.0) <= 1e-15 * size
    assert seen == {True, False}
    assert null_vector(np.zeros((3, WIDEST + 1))) is None


def test_a_hair_of_a_difference_is_no_dependence():
    """Columns that differ in the last bit, where every singular value rounds to zero."""
    assert null_vector(np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])) is None
    assert null_vector(np.array([[1e100, 1e100], [1e-30, 1e-30]])).tolist() == [0.7071067811865475, -0.7071067811865475]


def test_upper_bounds_survive_numbers_whose_squares_underflow():
    block = np.array([[1.0, 1.0], [3e-162, 7e-162]])
    vector = np.array([0.5, -0.5])
    assert upper_bound_holds(block, vector, norm_ratio_above(block, vector))


def test_ties_are_decided_to_the_last_bit():
    columns = np.array([[1.0], [0.0]])
    s = np.array([7.0, 0.1])
    assert exact.span_within(columns, s, 0.1) is True
    assert exact.span_within(columns, s, np.nextafter(0.1, 0)) is False


@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
def test_no_scale_is_too_small_or_too_large(scale):
    columns = scale * np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 2.0**-60]])
    assert exact.span_within(columns, np.array([6.0, 8.0, 5.0]), 0.0) is True
    assert exact.span_within(columns[:, :1], np.array([6.0, 8.0, 5.0]), 5.0) is True
    assert exact.span_within(columns[:, :1], np.array([6.0, 8.0, 5.0]), 4.999) is False
    assert exact.exact_rank(columns) == 2


def test_dependence_is_exact():
    third = 1.0 / 3.0
    assert exact.exact_rank(np.array([[third, 2 * third], [third, 2 * third]])) == 1
    assert exact.exact_rank(np.array([[third, 1.0], [third * 3, 3.0000000000000004]])) == 2
    assert exact.exact_rank(np.zeros((3, 2))) == 0
    assert exact.span_within(np.zeros((2, 1)), np.array([3.0, 4.0]), 5.0) is True


def test_too_many_columns_are_left_open():
    wide = np.ones((2, exact.RATIONAL_COLUMNS + 1))
    assert exact.span_within(wide, np.ones(2), 0.0) is None
    assert exact.exact_rank(wide) is None
