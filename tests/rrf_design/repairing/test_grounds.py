"""What fields of one problem share is made once, and is what each would have said alone."""

from __future__ import annotations

import pytest

from rrf_design.goal import Goal
from rrf_design.noise import Noise
from rrf_design.repairing import batch, repair_many
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.grounds import Grounds


def test_terms_are_those_of_the_goal_the_radius_and_the_premise(equality, answers):
    problem = equality("complete", sigma=0.1, confidence=0.9, delta=0.5, anchors={0: 1.0})
    task, _ = make_task(problem, problem.operator(), answers(1, 1, None, 1))
    grounds = Grounds.of(task)
    assert grounds.goal == Goal(delta=0.5)
    assert grounds.wanted == pytest.approx(2 * task.radius.total / 0.5)
    assert grounds.assumes.startswith("at most 1 of 3 answers is wrong")
    assert grounds.sure == pytest.approx(0.9)


def test_terms_hold_for_the_same_problem_and_radius_only(equality, answers):
    problem = equality("complete", epsilon=0.1)
    operator = problem.operator()
    task, _ = make_task(problem, operator, answers(1, 1, 2, 1))
    again, _ = make_task(problem, operator, answers(1, 1, 3, 1), radius=task.radius)
    louder, _ = make_task(problem, operator, answers(1, 1, 3, 1), noise=Noise(epsilon=0.7))
    design = Decoding.of(task)
    grounds = design.grounds(task)
    assert design.grounds(again) is grounds
    assert design.grounds(louder) is not grounds
    assert "0.7" in design.grounds(louder).assumes
    assert "0.1" in design.grounds(task).assumes


def test_radius_and_terms_are_worked_out_once_for_many_fields(equality, answers, monkeypatch):
    """The cost of ten thousand small fields is that of what differs between them."""
    counts = {"radius": 0, "grounds": 0}
    plain_radius, plain_grounds = batch.radius_of, Grounds.of

    def radius(*given):
        counts["radius"] += 1
        return plain_radius(*given)

    def grounds(task):
        counts["grounds"] += 1
        return plain_grounds(task)

    monkeypatch.setattr(batch, "radius_of", radius)
    monkeypatch.setattr(Grounds, "of", staticmethod(grounds))
    problem = equality("complete", epsilon=0.1)
    found = repair_many(problem, [answers(i, i, i + 5.0, i) for i in range(40)])
    assert {item.support for item in found.items} == {("n2",)}
    chunks = 10  # of four fields
    assert counts == {"radius": chunks, "grounds": chunks}
