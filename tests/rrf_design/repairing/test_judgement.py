"""Every certainty from what was proved, the margin, ε and k. From an outcome to a repair: what is
said where nothing fits, where a value is open, and who is named. Which values are given: those that
something vouches for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing._judgement import finish, judge
from rrf_design.repairing._methods import choose
from rrf_design.repairing.contract import Candidate, Certainty, DecoderOutcome, Prepared
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.fields import make_task


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
        one = Prepared(task, field, "", "")
        again = finish(one, task, outcome, Decoding.of(task), seconds=0.0)
        assert finish(one, task, outcome, shared, seconds=0.0) == again


def test_a_repair_owns_its_witness(equality, answers):
    problem = equality("complete")
    task, field = make_task(problem, problem.operator(), answers(1, 1, 5, 1))
    design = Decoding.of(task)
    outcome = choose("exact", task)[0].decode(task)
    first, second = (finish(Prepared(task, field, "", ""), task, outcome, design, seconds=0.0) for _ in range(2))
    assert first.witness == second.witness
    assert first.witness is not second.witness


def test_an_unread_answer_is_named_where_the_goal_is_missed(equality, answers):
    fixed = rrf.repair(equality("star", epsilon=0.1, delta=0.2), answers(1, 1, None, 1))
    assert fixed.verdict == "incomplete"
    assert fixed.reason.startswith("There is no readable answer of n2; ")


def test_an_exact_check_is_the_value() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "n"}, {"id": "m"}],
        relations=[{"id": "r", "tail": "n", "head": "m"}],
        anchors=[{"id": "sum", "node": "n", "value": 0.1, "weight": 3.0, "trusted": True}],
        epsilon=0.5,
    )
    fixed = rrf.repair(problem, {"n": 0.2, "m": 0.15})
    assert fixed.repaired["n"] == (0.1,)
    assert fixed.bounds["n"] == 0.0


def test_what_could_be_wrong_without_a_trace_is_not_given() -> None:
    """Two nodes that nothing touches: either may be wrong, though one error without a trace is
    enough to be ambiguous.
    """
    nodes = [{"id": name} for name in ("seen", "again", "third", "lost", "forgotten")]
    relations = [
        {"id": f"r{a}{b}", "tail": a, "head": b} for a, b in (("seen", "again"), ("again", "third"), ("third", "seen"))
    ]
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=[{"id": "x", "node": "seen", "value": 1.0}])
    fixed = rrf.repair(problem, {node["id"]: 1.0 for node in nodes})
    assert fixed.verdict == "ambiguous"
    assert {name for name, value in fixed.repaired.items() if value is None} == {"lost", "forgotten"}
    wanted = rrf.repair(problem.model_copy(update={"deliver": ("seen",)}), {node["id"]: 1.0 for node in nodes})
    assert (wanted.verdict, wanted.decided_by) == ("checked", "x")
    assert {name for name, value in wanted.repaired.items() if value is None} == {"lost", "forgotten"}
    assert set(wanted.bounds) == {"seen"}


def test_a_method_that_lists_no_explanations_vouches_for_nothing_that_a_margin_does_not() -> None:
    """Two answers that agree against one: convex repairs the third, but the two may be the wrong
    unit's just as well.
    """
    names = ("a", "b", "c", "d")
    relations = [{"id": f"{x}{y}", "tail": x, "head": y} for x, y in (("a", "b"), ("b", "c"), ("c", "a"))]
    problem = rrf.Problem(k=2, nodes=[{"id": name} for name in names], relations=relations, anchors=[])
    fixed = rrf.repair(problem, {"a": 5.0, "b": 5.0, "c": 1.0, "d": 1.0}, method="convex")
    assert fixed.verdict == "ambiguous"
    assert set(fixed.repaired.values()) == {None}


def declared(*, range=None, **settings):
    """Three answers that should be equal; the first relation is off by at most a tenth."""
    return rrf.Problem(
        k=1,
        nodes=[{"id": name} if range is None else {"id": name, "range": range} for name in "abc"],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.1},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ca", "tail": "c", "head": "a"},
        ],
        anchors=[{"id": "known", "node": "a", "value": 100.0}],
        **settings,
    )


@pytest.mark.parametrize(
    ("bounds", "premise", "reason"),
    [
        ({"amplitude": 1.0}, "the true field is at most 1 long", "amplitude = 1 is declared"),
        ({"range": (0.0, 70.0)}, "lie in their ranges", "range = [0, 70] is declared"),
        ({"range": (150.0, 160.0)}, "lie in their ranges", "range = [150, 160] is declared"),
    ],
)
def test_a_field_that_breaks_what_is_declared_of_it_contradicts_it(bounds, premise, reason):
    found = rrf.repair(declared(**bounds), {"a": 100, "b": 105, "c": 100})
    assert found.verdict == "contradicted"
    assert found.error_bound is None
    assert set(found.repaired.values()) == {None}
    assert premise in found.assumes
    assert reason in found.reason


def test_what_is_declared_of_the_field_is_a_premise_where_it_holds():
    found = rrf.repair(declared(amplitude=142.0), {"a": 100, "b": 105, "c": 100})
    assert found.verdict == "consistent"
    assert "on the nodes of uncertain blocks the true field is at most 142 long" in found.assumes
    near = rrf.repair(declared(amplitude=141.0), {"a": 100, "b": 105, "c": 100})  # 141.42, within its error bound
    assert near.verdict == "consistent"
    certain = rrf.repair(declared(range=(0.0, 90.0)).model_copy(update={"relations": ()}), {"a": 100})
    assert "range" not in certain.assumes  # nothing is uncertain, so no bound rests on it


def test_a_given_amplitude_is_the_premise_in_place_of_the_declared_one():
    found = rrf.repair(declared(amplitude=500.0), {"a": 100, "b": 105, "c": 100}, amplitude=1.0)
    assert found.verdict == "contradicted"
    assert "at most 1 long" in found.assumes
