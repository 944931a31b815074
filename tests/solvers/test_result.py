"""A margin's bounds are in order, its arrays are read-only, and its witness parts into two errors that nobody can tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.groups import NodeColumns
from solvers.result import Margin, Status, SupportValue


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
