"""The margin where answers could not be read, against plain enumeration; repair and design have the same."""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing.decoding import Decoding
from rrf_design.unread import protected_unread


def field(seed: int, **settings: Any) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    return rrf.Problem(
        k=1,
        nodes=[{"id": f"n{i}"} for i in range(n)],
        relations=[
            {
                "id": f"r{i}{j}",
                "tail": f"n{i}",
                "head": f"n{j}",
                "transport": {"scale": float(rng.choice([1.0, 2.0, -1.0]))},
            }
            for i, j in pairs
        ],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "value": 1.0} for i in range(n) if rng.random() < 0.6],
        **settings,
    )


def enumerated(matrix: Any, gone: tuple[int, ...], wanted: list[int]) -> float:
    """min ‖Bh‖/‖h_D‖ over h on R and two more nodes: by eigenvalues of what is left when the rest is chosen best."""
    rest = [i for i in range(matrix.shape[1]) if i not in gone]
    best = inf
    for two in combinations(rest, min(2, len(rest))):
        index = [*gone, *two]
        inside = [i for i in index if i in wanted]
        free = [i for i in index if i not in wanted]
        if not inside:
            continue
        part = matrix[:, inside]
        if free:
            basis, sizes, _ = np.linalg.svd(matrix[:, free], full_matrices=False)
            basis = basis[:, sizes > 1e-10]
            part = part - basis @ (basis.T @ part)
        value = np.linalg.svd(part, compute_uv=False)[-1] if part.shape[0] >= part.shape[1] else 0.0
        best = min(best, float(value))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_least_over_what_unread_answers_and_two_more_can_hide(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    problem = field(seed, **({"deliver": ["n1"]} if seed % 2 else {}))
    operator = problem.operator()
    n = len(operator.node_ids)
    gone = tuple(sorted(rng.choice(n, size=int(rng.integers(1, n)), replace=False).tolist()))
    found = protected_unread(operator, 1, unread=gone)
    wanted = [1] if seed % 2 else list(range(n))
    truth = enumerated(operator.matrix.toarray(), gone, wanted)
    assert found.solved.value == pytest.approx(truth, abs=1e-9)
    assert found.solved.lower <= truth + 1e-12
    assert Decoding(operator, k=1, erased=gone).facts.lower == found.solved.lower
    lost = [f"n{i}" for i in gone]
    assert problem.structure.holding((), lost).margin().lower == found.solved.lower


@pytest.mark.parametrize("settings", [{"deliver": ["n1"]}, {"wrong_checks": 1}, {"deliver": ["n0"], "wrong_checks": 1}])
def test_a_bound_is_below_the_margin_and_says_that_it_is_one(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = {seed: protected_unread(field(seed, **settings).operator(), 1, unread=(2,)) for seed in range(12)}
    monkeypatch.setattr("solvers.decoding.unread_margin", lambda *_, **__: None)

    for seed, truth in exact.items():
        found = protected_unread(field(seed, **settings).operator(), 1, unread=(2,))
        assert found.bound
        assert found.solved.upper == inf
        assert found.solved.lower <= truth.solved.upper * (1 + 1e-9)
