"""Every certainty from what was proved, the margin, ε and k."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rrf_design.repairing.contract import Candidate, Certainty, DecoderOutcome
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.judgement import judge


@pytest.fixture
def case(equality, answers):
    problem = equality("complete", epsilon=0.1)
    task, _ = make_task(problem, problem.operator(), answers(1, 1, 5, 1))
    error = np.array([0.0, 0.0, 4.0, 0.0])
    outcome = DecoderOutcome(error=error, method="exact", explanations=(Candidate((2,), 0.0, error),), proved=True)
    return task, outcome, Decoding.of(task)


def certainty(task, outcome, design, *, support=(2,), residual=0.0):
    return judge(task, outcome, design, support=support, residual=residual)


def test_table_of_verdicts(case):
    task, outcome, design = case
    two = (*outcome.explanations, Candidate((1,), 0.0, outcome.error))
    assert certainty(*case).certainty is Certainty.UNIQUE
    assert certainty(task, replace(outcome, explanations=two), design).certainty is Certainty.BOUNDED
    assert certainty(task, replace(outcome, complete=False), design).certainty is Certainty.BOUNDED
    assert certainty(task, replace(outcome, proved=False), design).certainty is Certainty.BOUNDED
    assert certainty(task, replace(outcome, edge=True), design).certainty is Certainty.UNDECIDED
    assert certainty(task, replace(outcome, heuristic=True), design).certainty is Certainty.HEURISTIC
    assert certainty(*case, residual=0.2).certainty is Certainty.UNEXPLAINED
    late = certainty(task, replace(outcome, complete=False), design, residual=0.2)
    assert late.certainty is Certainty.UNDECIDED
    assert certainty(*case, support=(1, 2)).certainty is Certainty.HEURISTIC


def test_only_unique_and_bounded_have_a_bound(case):
    task, outcome, design = case
    assert certainty(*case).error_bound is not None
    for other in (replace(outcome, edge=True), replace(outcome, heuristic=True)):
        assert certainty(task, other, design).error_bound is None


def test_a_margin_that_was_not_proved_positive_is_undecided(case):
    task, outcome, design = case
    design.__dict__["facts"] = replace(design.facts, lower=0.0, others=0.0)
    verdict = certainty(task, outcome, design)
    assert verdict.certainty is Certainty.UNDECIDED
    assert "not proved positive" in verdict.reason


def test_rounding_counts_where_the_margin_is_tiny(case):
    task, outcome, design = case
    design.__dict__["facts"] = replace(design.facts, lower=1e-11, gamma=1e-11)
    exact = replace(task, epsilon=0.0, tolerance=1e-12)
    assert certainty(exact, outcome, design).error_bound == pytest.approx(0.2)


def test_supports_that_could_not_be_decided_keep_who_is_wrong_open(case):
    task, outcome, design = case
    open_ = replace(outcome, undecided=((0, 1),))
    verdict = certainty(task, open_, design)
    assert verdict.certainty is Certainty.BOUNDED  # the values are within the bound whoever is wrong
    assert "{n0, n1} may explain the data too" in verdict.reason
    none = certainty(task, replace(open_, explanations=()), design, residual=0.2)
    assert none.certainty is Certainty.UNDECIDED


def test_a_proof_outranks_the_last_rounding_of_the_residual(case):
    task, outcome, design = case
    radius = task.epsilon + task.tolerance
    assert certainty(*case, residual=np.nextafter(radius, 1.0)).certainty is Certainty.UNIQUE
    unproved = replace(outcome, proved=False, explanations=())
    assert certainty(task, unproved, design, residual=np.nextafter(radius, 1.0)).certainty is Certainty.UNEXPLAINED


def test_explanations_on_the_edge_are_said_to_be(case):
    task, outcome, design = case
    two = (*outcome.explanations, Candidate((1,), 0.1, outcome.error, edge=True))
    assert "within ε or on its edge" in certainty(task, replace(outcome, explanations=two), design).reason
