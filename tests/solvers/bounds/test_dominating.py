"""Scaled dominance: below the exact value, and exact for single nodes and pairs of scalars."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.bounds import dominance

from .fields import dense, exact


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", [[1] * 8, [2] * 4, [1, 3, 2]])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_below_the_exact_value(seed: int, sizes: list[int], size: int) -> None:
    matrix = dense(seed, sizes)
    assert dominance(matrix, sizes, size=size).estimate <= exact(matrix, sizes, size) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_dominance_with_the_best_scaling_is_exact_for_pairs_of_scalars(seed: int) -> None:
    matrix = dense(seed, [1] * 8)
    assert dominance(matrix, size=2).estimate == pytest.approx(exact(matrix, [1] * 8, 2), rel=1e-3)


def test_single_nodes_are_exact() -> None:
    matrix = dense(0, [2, 2])
    assert dominance(matrix, [2, 2], size=1).estimate == pytest.approx(exact(matrix, [2, 2], 1), rel=1e-6)


def test_a_column_without_rows_has_no_bound() -> None:
    assert dominance(np.array([[1.0, 0.0], [1.0, 0.0]]), size=2).estimate == 0.0


def test_nothing_given_is_changed_and_results_are_frozen() -> None:
    matrix = dense(0, [1] * 4)
    before = matrix.copy()
    found = dominance(matrix, size=2)
    assert (matrix == before).all()
    assert found.data is not None
    with pytest.raises(ValueError, match="read-only"):
        found.data[0] = 2.0
