"""The semidefinite dual: below the exact value, anytime, exact where it must be."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.bounds import semidefinite

from .fields import dense, exact


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", [[1] * 8, [2] * 4, [1, 3, 2]])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_below_the_exact_value(seed: int, sizes: list[int], size: int) -> None:
    matrix = dense(seed, sizes)
    assert semidefinite(matrix, sizes, size=size, iterations=120).estimate <= exact(matrix, sizes, size) * (1 + 1e-9)


def test_the_dual_is_exact_on_an_orthogonal_field() -> None:
    assert semidefinite(np.diag([1.0, 2.0, 3.0]), size=2).estimate == pytest.approx(1.0, rel=1e-6)


def test_a_time_limit_is_said() -> None:
    found = semidefinite(dense(0, [1] * 8), size=2, time_limit=0.0)
    assert not found.finished
    assert found.estimate >= 0.0


def test_a_column_without_rows_has_no_bound() -> None:
    assert semidefinite(np.array([[1.0, 0.0], [1.0, 0.0]]), size=2, iterations=50).estimate == 0.0


def test_sizes_that_are_too_large_are_errors() -> None:
    with pytest.raises(ValueError, match="700 coordinates"):
        semidefinite(np.eye(700), size=2)
