"""Ball arithmetic decides what doubles can't."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from random_fields import definite_above, upper_bound_holds

from solvers.exact import norm_ratio_above, proves_at_least, sqrt_below


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
