"""What a plan says of itself: reached, cheapest, left over, and the keys of its document.

Plans are documents, and belong to one problem.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError, Refused
from rrf_design.planning import plan, read_plan, write_plan
from rrf_design.planning.contract import Objective, Plan, PlanStatus, Step

PLAN = Plan(
    selected=("a",),
    cost=2.0,
    gamma=0.5,
    upper_bound=0.6,
    gap=0.1,
    status=PlanStatus.FEASIBLE,
    trajectory=(Step("a", 2.0, 0.5, ("n",), {"n": (1.0,)}, 0.25, ("q",)),),
    value=0.5,
    objective=Objective.GAMMA,
    k=1,
    method="greedy",
    budget=3.0,
)


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({}, True),
        ({"target": 0.5}, True),
        ({"target": 0.5 * (1 + 1e-12)}, True),
        ({"target": 0.51}, False),
        ({"target": 0.4, "status": PlanStatus.INFEASIBLE}, False),
        ({"target": 0.5, "value": 0.3}, False),
    ],
)
def test_reached_asks_the_objective_and_not_the_margin(changes, reached):
    plan = replace(PLAN, **changes)
    assert plan.reached is reached
    assert plan.to_json()["reached"] is reached


@pytest.mark.parametrize(
    ("cost", "bound", "least"), [(0.0, None, True), (2.0, None, False), (2.0, 1.5, False), (2.0, 2.0, True)]
)
def test_cheapest_is_said_only_where_it_is_proven(cost, bound, least):
    assert replace(PLAN, cost=cost, cost_bound=bound).least_cost is least


def test_what_is_left_over():
    assert PLAN.left_over == 1.0
    assert replace(PLAN, cost=3.0000000001).left_over == 0.0
    assert replace(PLAN, budget=None).left_over is None


def test_the_document_says_plain_values():
    told = PLAN.to_json()
    assert told["status"] == "feasible"
    assert type(told["status"]) is str
    assert told["trajectory"] == [
        {"block": "a", "cost": 2.0, "gamma": 0.5, "support": ["n"], "witness": {"n": [1.0]}, "energy": 0.25, "opened": ["q"]}
    ]  # fmt: skip
    assert set(told) >= {"selected", "cost", "gamma", "upper_bound", "gap", "status", "trajectory"}


def test_a_standing_fills_in_what_the_goal_makes_of_it():
    problem = rrf.Problem(
        k=1, delta=1.0, epsilon=0.1, nodes=[{"id": "n"}], anchors=[{"id": "a", "node": "n", "value": 1.0}]
    )
    standing = problem.design().standing(problem)
    told = PLAN.with_standing(standing)
    assert told.wanted == pytest.approx(0.2)
    assert told.epsilon == pytest.approx(0.1)
    assert (told.error_bound, told.robust_lower) == (standing.error_bound, standing.robust_lower)
    assert (told.value, told.target, told.selected) == (PLAN.value, PLAN.target, PLAN.selected)


def test_statuses_and_objectives_are_the_words_that_scripts_rely_on():
    assert [str(status) for status in PlanStatus] == ["optimal", "feasible", "infeasible"]
    assert [str(objective) for objective in Objective] == ["gamma", "gamma_sigma", "robust"]


def test_round_trip(tmp_path, pairs):
    made = plan(pairs, budget=6.0, method="greedy")
    write_plan(made, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", pairs) == made
    document = json.loads((tmp_path / "plan.json").read_text())
    assert (document["format"], document["version"]) == ("rrf-plan", 2)
    assert {"selected", "cost", "gamma", "upper_bound", "gap", "status", "trajectory"} <= set(document)
    assert {"block", "cost", "gamma", "support"} <= set(document["trajectory"][0])


def test_a_plan_for_another_problem_is_refused(tmp_path, pairs, clique_and_pair):
    write_plan(plan(pairs, budget=1.0, method="greedy"), tmp_path / "plan.json")
    with pytest.raises(Refused, match=r"made for 'pairs' with digest .* not for 'clique and pair'"):
        read_plan(tmp_path / "plan.json", clique_and_pair)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a readable plan"),
        ("[]", "not a plan: the format should be 'rrf-plan'"),
        ('{"format": "rrf-certificate"}', "not a plan"),
        ('{"format": "rrf-plan", "version": 99}', "plan version 99 is not known here"),
        ('{"format": "rrf-plan", "version": 2}', "the plan is damaged"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "other.json")
