"""Exact repair: the recovery theorems at the level of problems, ambiguity, erasures."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing import Certainty


def test_two_disconnected_pairs_are_ambiguous(equality, answers):
    fixed = rrf.repair(equality("pairs"), answers(5, 5, 1, 2))
    assert fixed.certainty is Certainty.AMBIGUOUS
    assert not fixed.guaranteed
    assert fixed.error_bound is None
    assert fixed.gamma == 0.0
    explanations = {fixed.support, *(other.support for other in fixed.alternatives)}
    assert explanations == {("n2",), ("n3",)}
    assert {"n2", "n3"} == {fixed.support[0], fixed.alternatives[0].support[0]}
    assert "n2" in fixed.reason
    assert "n3" in fixed.reason


def test_at_zero_margin_the_nodes_that_cannot_be_told_apart_are_named(equality, answers):
    fixed = rrf.repair(equality("triangle"), answers(5, 5, 5, 8))
    assert fixed.indistinguishable == ("n3",)
    assert fixed.certainty is Certainty.AMBIGUOUS
    assert fixed.alternatives[0].support == ("n3",)
    assert fixed.alternatives[0].repaired == {"n3": None}
    assert fixed.alternatives[0].free == 1


def test_zero_margin_with_one_explanation_promises_nothing(equality, answers):
    """The isolate is unseen, but with the one allowed error found in the triangle it must be right."""
    fixed = rrf.repair(equality("triangle"), answers(5, 9, 5, 8))
    assert fixed.support == ("n1",)
    assert fixed.certainty is Certainty.UNIQUE_HERE
    assert not fixed.guaranteed


def test_more_errors_than_the_budget_are_unexplained(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 2, 3, 4))
    assert fixed.certainty is Certainty.UNEXPLAINED
    assert fixed.error_bound is None
    assert not fixed.guaranteed


def test_shared_error_needs_an_anchor(equality, answers):
    blind = rrf.repair(equality("star"), answers(19, 19, 19, 19), truth=answers(17, 17, 17, 17))
    assert blind.support == ()
    assert {"candidate absence", "shared error", "budget violation"} <= set(blind.failures)
    seen = rrf.repair(equality("star", anchors={0: 17.0}), answers(19, 19, 19, 19))
    assert seen.certainty is Certainty.UNEXPLAINED
    assert seen.diagnostics.anchor_residual + seen.diagnostics.relation_residual > 0


def test_noisy_stability_bound(equality, answers):
    fixed = rrf.repair(equality("complete", epsilon=0.02), answers(42.005, 42.0, 47.0, 41.995))
    assert fixed.support == ("n2",)
    assert fixed.error_bound == pytest.approx(2 * 0.02 / fixed.gamma, rel=1e-6)
    assert fixed.diagnostics.posterior_bound <= fixed.error_bound
    assert fixed.diagnostics.best_smaller > 0.02


def test_small_errors_inside_the_noise_are_bounded_not_unique(equality, answers):
    fixed = rrf.repair(equality("complete", epsilon=1.0), answers(42, 42, 42.4, 42))
    assert fixed.support == ()
    assert fixed.guaranteed
    assert abs(fixed.repaired["n2"][0] - 42) <= fixed.error_bound


def test_acceptable_error_is_part_of_the_guarantee(equality, answers):
    tight = rrf.repair(equality("complete", epsilon=0.1, delta=0.01), answers(42, 42, 47, 42))
    assert not tight.guaranteed
    assert "0.01" in tight.reason
    assert rrf.repair(equality("complete", epsilon=0.1, delta=1.0), answers(42, 42, 47, 42)).guaranteed


def test_two_errors_on_a_larger_field(equality, answers):
    problem = equality("ring", k=2)
    fixed = rrf.repair(problem, answers(3, 3, 9, 3, 3, -1, 3, 3))
    assert fixed.support == ("n2", "n5")
    assert fixed.guaranteed
    assert fixed.certainty is Certainty.UNIQUE


def test_corrupted_and_erased_together(equality, answers):
    """k = 1 corrupted and one erased: three nodes of eight, fewer than the ring needs for two corrupted."""
    problem = equality("ring", k=1)
    fixed = rrf.repair(problem, answers(3, 3, 9, 3, 3, {"status": "timeout"}, 3, 3))
    assert fixed.support == ("n2",)
    assert fixed.erased == {"n5": "timeout"}
    assert fixed.repaired["n5"] == pytest.approx((3.0,))
    assert fixed.guaranteed
    plain = problem.margin(k=2).value
    assert plain <= fixed.gamma <= problem.margin(k=1).value + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_recovery_with_noise_and_erasures(seed):
    """Over random typed fields: within 2ε/γ(k | R) of the truth, erased nodes included, wherever that margin is positive."""
    rng = np.random.default_rng(seed)
    positive = 0
    for _ in range(60):
        n = int(rng.integers(4, 8))
        B = rng.integers(-1, 2, size=(int(rng.integers(5, 14)), n)).astype(float)
        if not B.any():
            continue
        problem = rrf.from_matrix(B, k=1)
        operator = problem.operator()
        truth = rng.normal(size=n)
        epsilon = 0.05
        noise = rng.normal(size=operator.shape[0])
        noise *= epsilon * rng.random() / np.linalg.norm(noise)
        anchors = {name: float(x) for name, x in zip(operator.block_ids, operator.matrix @ truth + noise, strict=True)}
        responses = {f"n{i}": float(x) for i, x in enumerate(truth)}
        wrong, gone = rng.choice(n, size=2, replace=False)
        responses[f"n{wrong}"] += float(rng.normal())
        responses[f"n{gone}"] = None
        fixed = rrf.repair(problem, responses, anchors=anchors, epsilon=epsilon)
        assert fixed.certainty is not Certainty.UNEXPLAINED
        if fixed.error_bound is not None:
            positive += 1
            found = np.array([fixed.repaired[f"n{i}"][0] for i in range(n)])
            assert np.linalg.norm(found - truth) <= fixed.error_bound + 1e-9
    assert positive > 15


def test_fiber_metrics_are_respected():
    problem = rrf.Problem(
        nodes=[{"id": "a", "metric": 4.0}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b"},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ac", "tail": "a", "head": "c"},
        ],
    )
    fixed = rrf.repair(problem, {"a": 9.0, "b": 2.0, "c": 2.0})
    assert fixed.support == ("a",)
    assert fixed.repaired["a"] == pytest.approx((2.0,))
    assert fixed.error["a"] == pytest.approx((7.0,))


def test_limits_are_said(equality, answers):
    rng = np.random.default_rng(0)
    problem = rrf.from_matrix(rng.normal(size=(30, 30)), k=4)
    operator = problem.operator()
    anchors = {name: float(x) for name, x in zip(operator.block_ids, rng.normal(size=30), strict=True)}
    fixed = rrf.repair(problem, dict.fromkeys(operator.node_ids, 0.0), anchors=anchors, method="exact", time_limit=0.0)
    assert fixed.certainty is Certainty.UNDECIDED
    assert not fixed.diagnostics.complete


@pytest.mark.parametrize("seed", range(3))
def test_claims_against_brute_force(seed):
    """Certain repairs are the truth, and ambiguous data really have two explanations; erasures and all."""
    rng = np.random.default_rng(70 + seed)
    seen = set()
    for _ in range(60):
        n, k = int(rng.integers(3, 6)), int(rng.integers(1, 3))
        B = rng.integers(-1, 2, size=(int(rng.integers(2, 9)), n)).astype(float)
        B = B[np.abs(B).sum(axis=1) > 0]
        if not len(B):
            continue
        problem = rrf.from_matrix(B, k=k)
        truth = rng.integers(-3, 4, size=n).astype(float)
        y = truth.copy()
        for i in rng.choice(n, size=int(rng.integers(0, k + 1)), replace=False):
            y[i] += rng.integers(1, 5)
        gone = [i for i in range(n) if rng.random() < 0.15][: n - 1]
        responses = {f"n{i}": None if i in gone else float(y[i]) for i in range(n)}
        anchors = dict(zip(problem.operator().block_ids, (B @ truth).tolist(), strict=True))
        fixed = rrf.repair(problem, responses, anchors=anchors)
        seen.add(fixed.certainty)
        assert fixed.certainty is not Certainty.UNEXPLAINED
        if fixed.certainty in (Certainty.UNIQUE, Certainty.BOUNDED, Certainty.UNIQUE_HERE):
            known = [i for i in range(n) if fixed.repaired[f"n{i}"] is not None]
            assert [fixed.repaired[f"n{i}"][0] for i in known] == pytest.approx(truth[known], abs=1e-6)
        else:
            assert several_explanations(B, y, truth, gone, k)
    assert {Certainty.UNIQUE, Certainty.AMBIGUOUS} <= seen


def several_explanations(B, y, truth, gone, k):
    """Whether more than one error on at most k answered nodes (and the erased ones) explains the data."""
    answered = [i for i in range(B.shape[1]) if i not in gone]
    s = B @ np.where(np.isin(np.arange(B.shape[1]), gone), 0.0, y) - B @ truth
    errors = []
    for part in combinations(answered, min(k, len(answered))):
        columns = [*part, *gone]
        e, _, rank, _ = np.linalg.lstsq(B[:, columns], s, rcond=1e-10)
        if np.linalg.norm(B[:, columns] @ e - s) < 1e-9:
            if rank < len(columns):
                return True
            full = np.zeros(B.shape[1])
            full[columns] = e
            errors.append(full)
    return any(not np.allclose(errors[0], other) for other in errors)
