"""Repair under uncertain relations: nothing within the declared uncertainty is called wrong, and bounds hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf


def triangle(eta: float, **more: Any) -> rrf.Problem:
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    relations = [{"id": x + y, "tail": x, "head": y, "uncertainty": eta} for x, y in pairs]
    anchors = [{"id": "fix", "node": "a", "value": 100.0}]
    return rrf.Problem(nodes=[{"id": n} for n in "abc"], relations=relations, anchors=anchors, **more)


def test_an_answer_within_the_declared_uncertainty_is_left_alone() -> None:
    fixed = rrf.repair(triangle(0.1), {"a": 100.0, "b": 105.0, "c": 100.0})
    assert fixed.support == ()
    assert fixed.repaired["b"] == (105.0,)
    assert fixed.epsilon > 5.0
    assert fixed.error_bound is not None
    assert fixed.error_bound > 5.0


def test_an_answer_far_beyond_it_is_found() -> None:
    fixed = rrf.repair(triangle(0.01), {"a": 100.0, "b": 400.0, "c": 100.0})
    assert fixed.support == ("b",)


def test_where_nothing_bounds_the_field_nothing_is_certified() -> None:
    fixed = rrf.repair(triangle(3.0), {"a": 100.0, "b": 100.0, "c": 100.0})
    assert (fixed.certainty, fixed.verdict) == ("undecided", "incomplete")
    assert "range" in fixed.reason
    assert fixed.error_bound is None


def test_ranges_bound_it_beforehand() -> None:
    problem = triangle(0.01)
    nodes = [node.model_copy(update={"range": (0.0, 200.0)}) for node in problem.nodes]
    ranged = problem.model_copy(update={"nodes": tuple(nodes)})
    answers = {"a": 100.0, "b": 100.0, "c": 100.0}
    assert rrf.repair(ranged, answers).epsilon <= rrf.repair(problem, answers).epsilon + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_against_operators_within_their_radii(seed: int) -> None:
    """An attacker moves every uncertain block as far as it may, corrupts one answer, and is still within the bound."""
    rng = np.random.default_rng(seed)
    eta = float(rng.choice([0.01, 0.05, 0.1]))
    problem = triangle(eta, epsilon=0.5)
    truth = {"a": 100.0}
    shifts = {}
    for name, tail, head in (("ab", "a", "b"), ("bc", "b", "c")):
        error = rng.normal(size=2)
        error *= eta * rng.choice([0.0, 1.0]) / np.linalg.norm(error)
        shifts[name] = error
        truth[head] = truth[tail] * (1 - error[0]) / (1 + error[1])  # (1 + e1) z_head − (1 − e0) z_tail = 0
    if abs(truth["a"] - truth["c"]) > eta * np.hypot(truth["a"], truth["c"]) + 0.5:
        return  # then "ca" itself is broken by more than it may be
    answers = dict(truth)
    wrong = str(rng.choice(["b", "c"]))
    answers[wrong] += float(rng.choice([0.0, 3.0, 80.0]))
    fixed = rrf.repair(problem, answers)
    assert fixed.verdict != "contradicted"
    if fixed.error_bound is not None and all(value is not None for value in fixed.repaired.values()):
        left = np.array([fixed.repaired[n][0] - truth[n] for n in "abc"])  # type: ignore[index]
        assert np.linalg.norm(left) <= fixed.error_bound
