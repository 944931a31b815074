"""Answers that are all off a little: whoever is wrong altogether is found, and no value is further off than promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf


def diffuse(rng: np.random.Generator, **settings: Any) -> tuple[rrf.Problem, dict[str, Any], dict[str, float]]:
    """A small field, its answers (one wrong, all off a little, as badly as declared) and the truth."""
    count, tail, epsilon = 5, 0.3, 0.1
    truth = rng.uniform(-5, 5, count)
    tied = [(i, j) for i in range(count) for j in range(i) if rng.random() < 0.8]
    gap = {pair: truth[pair[1]] - truth[pair[0]] for pair in tied}
    problem = rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(count)],
        relations=[{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}", "offset": float(gap[i, j])} for i, j in tied],
        anchors=[
            {"id": f"a{i}", "node": f"n{i}", "value": float(truth[i])} for i in range(count) if rng.random() < 0.7
        ],
        tail=tail,
        epsilon=epsilon,
        **settings,
    )
    dense = problem.operator().matrix.toarray()
    push = np.linalg.svd(dense)[2][0] if rng.random() < 0.5 else rng.standard_normal(count)
    answers = truth + tail * push / np.linalg.norm(push)
    answers[rng.integers(count)] += rng.choice([-1, 1]) * 10.0 ** rng.uniform(-1, 2)
    said = {f"n{i}": float(answers[i]) for i in range(count)}
    return problem, said, {f"n{i}": float(truth[i]) for i in range(count)}


@pytest.mark.parametrize("method", ["exact", "convex"])
@pytest.mark.parametrize("seed", range(25))
def test_the_promise_holds_whatever_the_small_errors_are(seed: int, method: str) -> None:
    problem, said, truth = diffuse(np.random.default_rng(seed), **({"deliver": ["n0", "n1"]} if seed % 4 == 0 else {}))
    fixed = rrf.repair(problem, said, method=method)
    assert fixed.verdict != "contradicted", fixed.reason  # the truth is an explanation
    standing = problem.design().standing(problem)
    assert rrf.certify(problem, budgets=() if seed % 4 else None).error_bound == pytest.approx(standing.error_bound)
    if fixed.error_bound is None:
        return
    wanted = problem.deliver or tuple(truth)
    off = [fixed.nearest[name][0] - truth[name] for name in wanted]  # type: ignore[index]
    assert np.linalg.norm(off) <= fixed.error_bound
    assert fixed.error_bound == pytest.approx(standing.error_bound, rel=1e-6)
    assert "all other answers together are off by at most 0.3" in fixed.assumes


def test_without_a_tail_the_same_answers_contradict_everything() -> None:
    problem, said, _ = diffuse(np.random.default_rng(3))
    assert rrf.repair(problem.model_copy(update={"tail": 0.0, "epsilon": 0.0}), said).verdict == "contradicted"


def test_certificates_promise_with_the_tail_and_are_re_proved() -> None:
    problem, _, _ = diffuse(np.random.default_rng(5), delta=50.0)
    made = rrf.certify(problem)
    part = made.document["error"]["tail"]
    gain = np.linalg.norm(problem.operator().matrix.toarray(), 2)
    assert part["norm"] == 0.3
    assert part["image"] == pytest.approx(0.3 * gain)
    assert made.error_bound == part["bound"] == pytest.approx(0.3 + 2 * (0.1 + 0.3 * gain) / made.gamma_lower)
    assert rrf.verify(made).valid
    assert made.standing is not None
    assert made.standing.reached == (made.error_bound <= 50.0)
