"""From an outcome to a repair: what is said where nothing fits, where a value is open, and who is named."""

from __future__ import annotations

import rrf_design as rrf
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.finishing import finish
from rrf_design.repairing.methods import choose


def test_what_fits_nothing_has_no_values_and_a_next_step(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 2, 5, 9))
    assert fixed.verdict == "contradicted"
    assert set(fixed.repaired.values()) == {None}
    assert (fixed.support, fixed.error, fixed.alternatives) == ((), {}, ())
    assert "No values are given: look at r03" in fixed.reason
    assert fixed.nearest != fixed.repaired
    assert fixed.blamed


def test_finishing_twice_with_one_design_gives_one_repair(equality, answers):
    """What a design remembers changes nothing: the slow way makes it anew each time."""
    problem = equality("complete", epsilon=0.05, delta=1.0)
    shared = None
    for wrong in range(4):
        values = [1.0] * 4
        values[wrong] = 6.0
        task, field = make_task(problem, problem.operator(), answers(*values))
        outcome = choose("exact", task)[0].decode(task)
        shared = shared or Decoding.of(task)
        assert finish(task, field, outcome, shared) == finish(task, field, outcome, Decoding.of(task))


def test_a_repair_owns_its_witness(equality, answers):
    problem = equality("complete")
    task, field = make_task(problem, problem.operator(), answers(1, 1, 5, 1))
    design = Decoding.of(task)
    outcome = choose("exact", task)[0].decode(task)
    first, second = (finish(task, field, outcome, design) for _ in range(2))
    assert first.witness == second.witness
    assert first.witness is not second.witness


def test_an_unread_answer_is_named_where_the_goal_is_missed(equality, answers):
    fixed = rrf.repair(equality("star", epsilon=0.1, delta=0.2), answers(1, 1, None, 1))
    assert fixed.verdict == "incomplete"
    assert fixed.reason.startswith("There is no readable answer of n2; ")
