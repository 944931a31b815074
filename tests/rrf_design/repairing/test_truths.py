"""With the truth beside it a repair says how far off it was, and nothing else about it changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import rrf_design as rrf


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
