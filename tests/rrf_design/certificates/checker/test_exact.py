"""Ball and rational decisions against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rrf_design.checker.exact import (
    RATIONAL_ORDER,
    ProofOutcome,
    _exact_gram,
    definiteness,
    dependent,
    float_down,
    float_up,
    ratio_up,
    sqrt_down,
    sqrt_up,
)


def test_a_singular_matrix_is_settled_by_rationals() -> None:
    columns = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert definiteness(columns, floor=0.0) is ProofOutcome.PROVED
    assert definiteness(columns, floor=1e-300) is ProofOutcome.REFUTED


def test_the_exact_smallest_singular_value_is_proved_and_the_next_number_is_not() -> None:
    columns = np.diag([3.0, 0.5])
    assert definiteness(columns, floor=0.5) is ProofOutcome.PROVED
    assert definiteness(columns, floor=float(np.nextafter(0.5, 1))) is ProofOutcome.REFUTED


def test_a_difference_in_the_last_bit_is_seen() -> None:
    tiny = 2.0**-52
    columns = np.array([[1.0, 1.0], [0.0, tiny]])
    sigma2 = (2 + tiny**2 - np.sqrt((2 + tiny**2) ** 2 - 4 * tiny**2)) / 2
    assert sigma2 == 0.0  # floating point can't see it
    assert definiteness(columns, floor=tiny / 2) is ProofOutcome.PROVED
    assert definiteness(columns, floor=tiny) is ProofOutcome.REFUTED


def test_radii_raise_the_threshold() -> None:
    columns = np.eye(2)
    assert definiteness(columns, floor=0.49, radii=(0.3, 0.4)) is ProofOutcome.PROVED
    assert definiteness(columns, floor=0.51, radii=(0.3, 0.4)) is ProofOutcome.REFUTED


def test_gram_is_exact() -> None:
    columns = np.array([[0.1, 0.2], [0.3, 0.0]])
    gram = _exact_gram(columns)
    assert Fraction(int(gram[0][0].p), int(gram[0][0].q)) == Fraction(0.1) ** 2 + Fraction(0.3) ** 2
    assert gram[0][1] == gram[1][0]


@pytest.mark.parametrize("value", [Fraction(2), Fraction(1, 3), Fraction(10) ** 400, Fraction(1, 10**500), Fraction(0)])
def test_roots_are_rounded_to_their_side(value: Fraction) -> None:
    assert Fraction(sqrt_down(value)) ** 2 <= value <= Fraction(sqrt_up(value)) ** 2
    assert sqrt_up(value) <= np.nextafter(np.nextafter(sqrt_down(value), np.inf), np.inf)


def test_numbers_are_rounded_to_their_side() -> None:
    third = Fraction(1, 3)
    assert Fraction(float_down(third)) < third < Fraction(float_up(third))
    assert float_down(Fraction(1, 2)) == float_up(Fraction(1, 2)) == 0.5


def test_dependent_columns_have_exactly_no_margin() -> None:
    columns = np.array([[1.0, 3.0], [0.1, 3.0 * 0.1]])
    assert dependent(np.array([[1e90, -1e90], [1e-30, -1e-30]]))
    assert not dependent(columns)  # 3·0.1 is not the triple of the double 0.1
    assert dependent(np.ones((1, 2)))
    assert not dependent(np.eye(RATIONAL_ORDER + 1))
    assert ratio_up(np.ones((2, 2)), Fraction(1, 10**30)) == 0.0
    assert ratio_up(columns, Fraction(1, 4)) == 0.5
