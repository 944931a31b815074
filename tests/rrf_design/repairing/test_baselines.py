"""Votes: what they can do, and where the paper says they must fail."""

from __future__ import annotations

import pytest

import rrf_design as rrf


def test_a_shared_error_wins_every_vote(equality, answers):
    problem = equality("star", anchors={0: 17.0})
    for method in ("majority", "median", "mode"):
        fixed = rrf.repair(problem, answers(19, 19, 19, 17), method=method, truth=answers(17, 17, 17, 17))
        assert fixed.support == ("n3",)
        assert "budget violation" in fixed.failures


def test_majority_needs_more_than_half(equality, answers):
    tied = rrf.repair(equality("star"), answers(1, 1, 2, 2), method="majority")
    assert tied.support == ()
    assert any("no answer has a majority" in note for note in tied.notes)
    mode = rrf.repair(equality("star"), answers(1, 1, 2, 2), method="mode")
    assert mode.support == ("n2", "n3")
    assert any("tied" in note for note in mode.notes)


def test_median_is_an_answer_that_was_given(equality, answers):
    fixed = rrf.repair(equality("star"), answers(1, 2, 10, 20), method="median")
    assert set(fixed.repaired.values()) == {(2.0,)}


def test_parts_vote_for_themselves(equality, answers):
    fixed = rrf.repair(equality("triangle"), answers(1, 1, 5, 9), method="mode")
    assert fixed.repaired == answers((1.0,), (1.0,), (1.0,), (9.0,))


def test_answers_are_transported_before_they_are_compared():
    problem = rrf.Problem(
        nodes=[{"id": "plain"}, {"id": "tripled"}, {"id": "shifted"}, {"id": "sum", "dim": 1}],
        relations=[
            {"id": "t", "tail": "plain", "head": "tripled", "transport": {"scale": 3.0}},
            {"id": "s", "tail": "tripled", "head": "shifted", "offset": 1.0},
            {"id": "z", "tail": "plain", "head": "sum", "transport": {"scale": 0.0}},
        ],
    )
    fixed = rrf.repair(problem, {"plain": 8, "tripled": 21, "shifted": 22, "sum": 4}, method="mode")
    assert fixed.repaired["plain"] == pytest.approx((7.0,))
    assert fixed.repaired["sum"] == (4.0,)  # a transport that can't be inverted carries no vote
