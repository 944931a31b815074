"""Each label of the failure taxonomy on a field that earns it, and none on a field that doesn't.
With the truth beside it a repair says how far off it was, and nothing else about it changes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import rrf_design as rrf
from rrf_design.repairing import Failure, count_failures


def failures(problem, responses, truth, **options):
    return set(rrf.repair(problem, responses, truth=truth, **options).failures)


def test_success_has_no_label(equality, answers):
    fixed = rrf.repair(equality("star"), answers(1, 1, 5, 1), truth=answers(1, 1, 1, 1))
    assert fixed.failures == ()
    assert fixed.truth_error == pytest.approx(0.0, abs=1e-9)


def test_labels(equality, answers):
    ones = answers(1, 1, 1, 1)
    assert failures(equality("star"), answers(2, 2, 2, 2), ones) >= {Failure.SHARED_ERROR, Failure.CANDIDATE_ABSENCE}
    assert Failure.BUDGET_VIOLATION in failures(equality("complete"), answers(1, 2, 5, 1), ones)
    assert Failure.MARGIN in failures(equality("triangle"), answers(1, 1, 1, 4), ones)
    assert failures(equality("triangle"), answers(1, 1, 1, 4), ones) == {Failure.MARGIN}
    gone = failures(equality("pairs"), answers(1, 1, {"status": "parse failure"}, 5), ones)
    assert Failure.PARSE_FAILURE in gone


def test_optimisation_only_when_the_information_sufficed(equality, answers):
    """The vote is fooled by two agreeing wrong answers of five; exact repair is not needed to see
    why.
    """
    wrong = rrf.repair(equality("complete"), answers(1, 1, 4, 1), method="discrete", mu=1e6, truth=answers(1, 1, 1, 1))
    assert set(wrong.failures) == {Failure.OPTIMISATION}


def test_representation_collision(equality, answers):
    ones = answers(1, 1, 1, 1)
    fixed = rrf.repair(equality("star"), ones, truth=ones, hidden={"n0": True, "n1": False})
    assert fixed.failures == (Failure.REPRESENTATION_COLLISION,)


def test_truth_changes_nothing_but_the_labels(equality, answers):
    plain = rrf.repair(equality("pairs"), answers(1, 1, 3, 1))
    told = rrf.repair(equality("pairs"), answers(1, 1, 3, 1), truth=answers(1, 1, 3, 3))
    assert plain.repaired == told.repaired
    assert plain.certainty == told.certainty


def test_counts():
    assert count_failures([(Failure.MARGIN,), (), (Failure.MARGIN, Failure.PARSE_FAILURE)])["zero or low margin"] == 2


def without_time(item):
    return replace(item, diagnostics=replace(item.diagnostics, seconds=0.0, details={}), failures=(), truth_error=None)


def test_the_truth_changes_no_value_and_no_verdict(equality, answers):
    blind = rrf.repair(equality("complete"), answers(1, 1, 5, 1))
    told = rrf.repair(equality("complete"), answers(1, 1, 5, 1), truth=answers(2, 2, 2, 2))
    assert without_time(told) == without_time(blind)
    assert told.truth_error == pytest.approx(2.0)


def test_only_known_nodes_of_the_design_are_compared(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 1, 5, 1), truth={"n0": 1, "elsewhere": 7})
    assert fixed.truth_error == pytest.approx(0.0, abs=1e-9)
    assert fixed.failures == ()


def test_the_share_of_candidates_that_hold_the_truth(equality, answers):
    given = {"candidates": {f"n{i}": [1, 7] for i in range(4)}, "method": "discrete"}
    fixed = rrf.repair(equality("complete"), answers(7, 7, 7, 3), truth=answers(1, 1, 1, 9), **given)
    assert fixed.diagnostics.details["candidate_recall"] == 0.75
