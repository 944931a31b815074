"""Relaxations that enumerate no supports."""

from __future__ import annotations

import dataclasses
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from solvers.bounds import Relaxation, dominance, semidefinite


def exact(matrix: np.ndarray, sizes: list[int], size: int) -> float:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    best = np.inf
    for support in combinations(range(len(sizes)), min(size, len(sizes))):
        columns = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])
        part = matrix[:, columns]
        best = min(best, np.linalg.svd(part, compute_uv=False)[-1] if len(part) >= part.shape[1] else 0.0)
    return float(best)


def dense(seed: int, sizes: list[int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    width = sum(sizes)
    return np.vstack([rng.standard_normal((2 * width, width)) / np.sqrt(2 * width), 0.5 * np.eye(width)])


def ring(nodes: int) -> np.ndarray:
    rows = np.zeros((nodes + 1, nodes))
    for i in range(nodes):
        rows[i, i], rows[i, (i + 1) % nodes] = -1.0, 1.0
    rows[nodes, 0] = 1.0
    return rows


@pytest.mark.parametrize("bound", [dominance, partial(semidefinite, iterations=120)])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", [[1] * 8, [2] * 4, [1, 3, 2]])
def test_no_bound_is_above_the_exact_value(bound, seed: int, sizes: list[int]) -> None:
    matrix = dense(seed, sizes)
    for size in (1, 2, 4):
        assert bound(matrix, sizes, size=size).estimate <= exact(matrix, sizes, size) * (1 + 1e-9)
    assert bound(np.array([[1.0, 0.0], [1.0, 0.0]]), size=2).estimate == 0.0  # a column without rows


@pytest.mark.parametrize("seed", range(5))
def test_dominance_with_the_best_scaling_is_exact_for_pairs_of_scalars(seed: int) -> None:
    matrix = dense(seed, [1] * 8)
    assert dominance(matrix, size=2).estimate == pytest.approx(exact(matrix, [1] * 8, 2), rel=1e-3)


def test_single_nodes_are_exact() -> None:
    matrix = dense(0, [2, 2])
    assert dominance(matrix, [2, 2], size=1).estimate == pytest.approx(exact(matrix, [2, 2], 1), rel=1e-6)


def test_nothing_given_is_changed_and_results_are_frozen() -> None:
    matrix = dense(0, [1] * 4)
    before = matrix.copy()
    found = dominance(matrix, size=2)
    assert (matrix == before).all()
    assert found.data is not None
    with pytest.raises(ValueError, match="read-only"):
        found.data[0] = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.estimate = 1.0  # type: ignore[misc]
    assert Relaxation(0.0, "mixed-integer", None, False).data is None


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="700 coordinates"):
        semidefinite(np.eye(700), size=2)


def test_the_dual_is_exact_on_an_orthogonal_field() -> None:
    assert semidefinite(np.diag([1.0, 2.0, 3.0]), size=2).estimate == pytest.approx(1.0, rel=1e-6)


def test_a_time_limit_is_said() -> None:
    found = semidefinite(dense(0, [1] * 8), size=2, time_limit=0.0)
    assert not found.finished
    assert found.estimate >= 0.0
