"""The smallest singular pair, where the columns are of one size and where they are not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from random_fields import definite_above

from solvers._oracle import smallest_singular_pair


@pytest.mark.parametrize("spread", [0, 4, 8])
@pytest.mark.parametrize("seed", range(8))
def test_sigma_is_right_to_nine_digits_however_columns_are_scaled(seed: int, spread: int) -> None:
    rng = np.random.default_rng([seed, spread])
    block = rng.standard_normal((9, 4)) * 10.0 ** rng.integers(-spread, spread + 1, 4)
    sigma, vector = smallest_singular_pair(block)
    assert definite_above(block, (Fraction(sigma) * Fraction(1 - 1e-9)) ** 2)
    assert not definite_above(block, (Fraction(sigma) * Fraction(1 + 1e-9)) ** 2)
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    exact = [
        sum((Fraction(float(b)) * Fraction(float(v)) for b, v in zip(row, vector, strict=True)), Fraction())
        for row in block
    ]
    assert float(sum(x * x for x in exact)) ** 0.5 == pytest.approx(sigma, rel=1e-9)


def test_a_matrix_with_fewer_rows_than_columns_has_a_null_vector() -> None:
    block = np.array([[1.0, 1e9, 0.0]])
    sigma, vector = smallest_singular_pair(block)
    assert sigma == 0.0
    assert np.abs(block @ vector).max() < 1e-6


def test_zero_columns_are_found() -> None:
    block = np.diag([1e8, 0.0, 1.0])
    sigma, vector = smallest_singular_pair(block)
    assert sigma == 0.0
    assert np.abs(vector).tolist() == [0.0, 1.0, 0.0]
