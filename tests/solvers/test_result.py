"""A margin's bounds are in order, its arrays are read-only, and its witness parts into two errors
that nobody can tell apart.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from solvers import delivered_margin, margin, suspect_margin
from solvers._groups import NodeColumns
from solvers._tracker import MarginTracker
from solvers.decoding import erasure_margin
from solvers.result import RESIDUAL, Margin, Status, SupportValue


def made(lower: float = 0.0, upper: float = 0.0) -> Margin:
    direction = np.array([0.6, 0.0, -0.8, 0.0])
    groups = NodeColumns.of_sizes([1, 1, 1, 1])
    return Margin(upper, lower, upper, (0, 2), direction, Status.EXACT, "test", 2, groups)


def test_bounds_out_of_order_are_a_fault() -> None:
    with pytest.raises(AssertionError, match="out of order"):
        made(lower=0.5, upper=0.25)


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        made().direction[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        SupportValue((0,), 1.0, np.ones(1)).direction[0] = 2.0


def test_two_errors_of_half_the_support_differ_by_the_witness() -> None:
    found = made()
    first, second = found.indistinguishable_pair()
    assert found.zero
    assert found.k == 1
    np.testing.assert_array_equal(first - second, found.direction)
    assert np.count_nonzero(first) == np.count_nonzero(second) == 1


APART = (0, 0, 8, -8, 10, -10, 30, -30, 60, -60)
"""Orders of magnitude of the rows of one matrix."""


def badly_scaled(rng: np.random.Generator) -> NDArray[np.float64]:
    shape = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    entries = rng.integers(-3, 4, size=shape) * 10.0 ** rng.choice(APART, size=(shape[0], 1))
    entries[0, 0] = entries[0, 0] or 1.0
    return np.asarray(entries)


def reaches(B: NDArray[np.float64], sigma: float) -> bool:
    """Whether σ_min of every pair of columns is at least this, in rationals."""
    columns = [[Fraction(float(x)) for x in column] for column in B.T]
    least = Fraction(sigma) ** 2
    for one, other in combinations(columns, 2):
        a, d = (sum(x * x for x in column) - least for column in (one, other))
        b = sum(x * y for x, y in zip(one, other, strict=True))
        if a < 0 or d < 0 or a * d < b * b:
            return False
    return True


def test_a_margin_of_rows_far_apart_is_called_exact_only_where_its_bounds_meet() -> None:
    rng = np.random.default_rng(28)
    undecided = 0
    for number in range(200):
        B = badly_scaled(rng)
        largest = float(np.sqrt(np.square(B / np.abs(B).max()).sum(axis=0).max()) * np.abs(B).max())
        found: dict[str, Any] = {
            "search": margin(B, k=1),
            "enumerate": margin(B, k=1, method="enumerate"),
            "delivered": delivered_margin(B, None, [0], k=1),
            "erasures": erasure_margin(B, known=(), k=1),
        }
        if number % 5 == 0:
            found["checks"] = suspect_margin(B, k=1, suspects=0)
        if np.abs(B).max() < 1e15:
            found["tracker"] = MarginTracker(B, size=2).margin()
        for name, one in found.items():
            zero = one.value == 0.0 and one.upper <= RESIDUAL * min(1.0, largest)
            meet = one.upper - one.lower <= 1.1e-9 * one.upper
            assert one.lower <= one.value <= one.upper, name
            assert one.status != Status.EXACT or zero or meet, (name, B, one.lower, one.upper)
        for name in ("search", "enumerate"):
            one = found[name]
            assert reaches(B, one.lower), (name, B)
            assert one.upper == 0.0 or not reaches(B, one.upper * (1 + 1e-15)), (name, B)
            undecided += one.value == 0.0 and one.status == Status.BOUNDED
    assert undecided > 20


def test_the_witness_of_a_zero_says_whether_it_is_one() -> None:
    B = np.array([[3e-8, -3e-8], [3e30, 2e30]])  # γ is 4e-8, and 0 to floats
    found = margin(B, k=1)
    assert (found.value, found.lower, found.status) == (0.0, 0.0, "bounded")
    assert found.upper > 1.0
    dependent = np.array([[3e-8, -3e-8], [3e30, -3e30]])
    assert (margin(dependent, k=1).upper, margin(dependent, k=1).status) == (0.0, "exact")
