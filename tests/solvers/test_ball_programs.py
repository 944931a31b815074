"""Small mixed-integer programs, one for each ball: never above enumeration, and close below it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from solvers import ball_programs, margin
from solvers.ball_programs import ENTRIES, FrontEnd, _Settled, mixed_integer

PATIENCE = 1e5  # seconds: what these tests say does not depend on the clock


def enumerated(matrix: np.ndarray, sizes: list[int], size: int) -> float:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    best = np.inf
    for support in combinations(range(len(sizes)), min(size, len(sizes))):
        columns = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])
        part = matrix[:, columns]
        best = min(best, np.linalg.svd(part, compute_uv=False)[-1] if len(part) >= part.shape[1] else 0.0)
    return float(best)


def related(seed: int, sizes: list[int], rows: int) -> np.ndarray:
    """Rows on one to three nodes each, and a little of every node for itself."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    matrix = np.zeros((rows, int(starts[-1])))
    for row in matrix:
        for node in rng.choice(len(sizes), int(rng.integers(1, 4)), replace=False):
            row[starts[node] : starts[node + 1]] = rng.standard_normal(sizes[node])
    return np.vstack([matrix, rng.uniform(0.2, 0.8) * np.eye(matrix.shape[1])])


def cubic(nodes: int) -> np.ndarray:
    """A graph of degree three with a weak anchor at every node."""
    pairs = [(i, (i + 1) % nodes) for i in range(nodes)] + [(i, i + nodes // 2) for i in range(nodes // 2)]
    matrix = np.zeros((len(pairs), nodes))
    for row, (a, b) in zip(matrix, pairs, strict=True):
        row[a], row[b] = -1.0, 1.0
    return np.vstack([matrix, 0.5 * np.eye(nodes)])


@pytest.mark.parametrize("front_end", list(FrontEnd))
@pytest.mark.parametrize(
    ("sizes", "size"), [([1] * 6, 1), ([1] * 7, 2), ([1] * 6, 4), ([2, 1, 2, 1, 3], 2), ([2, 1, 2], 2), ([1] * 3, 6)]
)
def test_the_estimate_is_just_below_enumeration(front_end: FrontEnd, sizes: list[int], size: int) -> None:
    matrix = related(0, sizes, 2 * sum(sizes))
    truth = enumerated(matrix, sizes, size)
    found = mixed_integer(matrix, sizes, size=size, front_end=front_end, time_limit=PATIENCE)
    assert found.finished
    assert 0.998 * truth <= found.estimate <= truth * (1 + 1e-6)
    assert str(front_end) in found.method


def test_parts_that_share_no_row_are_balls_of_their_own() -> None:
    matrix = np.kron(np.eye(3), related(0, [1] * 4, 6))
    truth = enumerated(matrix, [1] * 12, 4)
    found = mixed_integer(matrix, size=4, time_limit=PATIENCE)
    assert 0.998 * truth <= found.estimate <= truth * (1 + 1e-6)


def test_a_value_that_is_known_is_where_it_begins() -> None:
    matrix = cubic(8)
    truth = margin(matrix, k=2)
    with_it = mixed_integer(matrix, size=4, upper=truth.upper, time_limit=PATIENCE)
    without = mixed_integer(matrix, size=4, time_limit=PATIENCE)
    assert with_it.estimate == pytest.approx(0.999 * truth.value, rel=1e-9)
    assert without.estimate == pytest.approx(with_it.estimate, rel=1e-6)


def worst_answers(field: Any, whitened: Any, roots: Sequence[int], *_: Any, **__: Any) -> list[_Settled]:
    """What each root may answer, by the definition: of all supports whose eigenvector is largest
    there, the one that says least.
    """
    found: dict[int, tuple[float, tuple[int, ...]]] = {}
    for size in range(1, field.size + 1):
        for support in combinations(range(len(field.near)), size):
            values, vectors = np.linalg.eigh(whitened[list(support)][:, list(support)].toarray())
            gamma = float(np.linalg.eigvalsh(field.gram[list(support)][:, list(support)].toarray())[0])
            for vector in vectors.T[values < -1e-12]:
                root = support[int(np.abs(vector).argmax())]
                found[root] = max(found.get(root, (gamma, support)), (gamma, support))
    return [_Settled(root, root not in found, found[root][1] if root in found else ()) for root in roots]


def test_a_ball_that_was_proven_for_one_threshold_is_asked_again_at_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a lower one an eigenvector may be largest at a node where nothing was found before."""
    monkeypatch.setattr(ball_programs, "_batch", worst_answers)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        nodes, size = int(rng.integers(3, 6)), int(rng.choice([2, 3, 4]))
        drawn = np.where(rng.random((nodes + 1, nodes)) < 0.6, rng.integers(-3, 4, (nodes + 1, nodes)), 0)
        matrix = np.vstack([drawn, np.diag(rng.integers(1, 4, nodes))]).astype(float)
        found = mixed_integer(matrix, size=size, time_limit=PATIENCE)
        assert found.finished
        assert found.estimate <= enumerated(matrix, [1] * nodes, size) * (1 + 1e-9)


def test_it_says_how_many_programs_were_solved() -> None:
    matrix = cubic(8)
    assert "of 8 balls 8 needed no program" in mixed_integer(np.eye(8), size=4).told
    asked = mixed_integer(matrix, size=4, time_limit=PATIENCE).told
    assert asked.startswith("of 8 balls 0 needed no program")
    assert "programs over whole numbers" in asked


def test_several_processes_find_the_same() -> None:
    matrix = related(3, [1] * 12, 16)
    alone, together = (mixed_integer(matrix, size=2, time_limit=PATIENCE, n_jobs=n).estimate for n in (None, 2))
    assert alone == together


def test_what_hides_an_error_altogether_is_zero() -> None:
    for matrix in (np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, -1.0], [-1.0, 1.0]])):
        found = mixed_integer(matrix, size=2, time_limit=PATIENCE)
        assert found.estimate == pytest.approx(0.0, abs=1e-6)


def test_what_rounding_hides_is_zero_too() -> None:
    matrix = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + 3e-8, 0.0], [1e-9, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert mixed_integer(matrix, [2, 1], size=2, time_limit=PATIENCE).estimate <= 1.6e-8


def test_no_time_proves_nothing_and_says_so() -> None:
    found = mixed_integer(cubic(8), size=4, time_limit=0.0)
    assert not found.finished
    assert found.estimate == 0.0


def test_what_is_too_large_is_refused_with_the_size_that_would_do() -> None:
    crowd = np.random.default_rng(0).standard_normal((70, 60))
    with pytest.raises(ValueError, match=r"60 coordinates and 1830 pairs .* balls of 48 coordinates would do"):
        mixed_integer(crowd, size=4)
    assert ENTRIES == 1200
    steps = [(i, (i + step) % 90) for i in range(90) for step in (1, 7, 20, 33, 41)]
    matrix = np.zeros((len(steps), 90))
    for row, (a, b) in zip(matrix, steps, strict=True):
        row[a], row[b] = -1.0, 1.0
    with pytest.raises(ValueError, match=r"radius 3, has .* k = 1 would do here"):
        mixed_integer(np.vstack([matrix, 0.3 * np.eye(90)]), size=4)
    with pytest.raises(ValueError, match="not a valid FrontEnd"):
        mixed_integer(np.eye(3), size=2, front_end="magic")
