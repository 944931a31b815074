"""`plan`: what it wants to be told, and clear answers where there is little to buy."""

from __future__ import annotations

import pytest
from small import random_problem

import rrf_design as rrf
from rrf_design.errors import InputError, MissingDependency
from rrf_design.planning import PLANNERS, Objective, PlanStatus, plan, planner
from rrf_design.planning.evaluator import Evaluator


def test_messages(pairs):
    with pytest.raises(InputError, match="neither a budget nor a target is given"):
        plan(pairs)
    with pytest.raises(InputError, match="budget: must be a number of at least 0, not -1"):
        plan(pairs, budget=-1.0)
    with pytest.raises(InputError, match="target: must be a number of at least 0, not nan"):
        plan(pairs, target=float("nan"))
    with pytest.raises(InputError, match="method: 'best' is not one of auto, greedy"):
        plan(pairs, budget=1.0, method="best")
    with pytest.raises(InputError, match="objective: 'sigma' is not one of gamma, gamma_sigma, robust"):
        plan(pairs, budget=1.0, objective="sigma")
    with pytest.raises(InputError, match="solver: 'glpk' is not known"):
        plan(pairs, budget=1.0, method="optimal", front_end="glpk")
    with pytest.raises(MissingDependency, match="PuLP finds no 'NOSUCH'"):
        plan(pairs, budget=6.0, method="optimal", front_end="pulp:NOSUCH")
    with pytest.raises(InputError, match="time_limit: must be a number of seconds"):
        plan(pairs, budget=1.0, time_limit=-1.0)


def test_the_problem_may_say_what_is_wanted():
    settings = {"nodes": [{"id": "x"}], "anchors": [{"id": "a", "node": "x", "cost": 1.0}]}
    assert plan(rrf.Problem(budget=1.0, **settings)).budget == 1.0
    assert plan(rrf.Problem(target=0.5, **settings)).target == 0.5
    assert plan(rrf.Problem(budget=1.0, target=0.5, **settings), budget=2.0).target is None


def test_budget_below_the_cheapest_block(pairs):
    found = plan(pairs, budget=0.5)
    assert found.selected == ()
    assert found.status is PlanStatus.OPTIMAL
    assert "the budget of 0.5 buys nothing: the cheapest purchase costs 1" in found.notes


def test_nothing_on_sale():
    found = plan(rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x"}]), budget=1.0)
    assert (found.gamma, found.status) == (1.0, PlanStatus.OPTIMAL)
    assert "nothing is on sale" in found.notes[0]


def test_candidates_that_no_rows_can_help():
    problem = rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y"}],
        anchors=[{"id": "zero", "node": "x", "rows": [[0.0]], "cost": 1.0}, {"id": "a", "node": "x", "cost": 1.0}],
    )
    found = plan(problem, budget=5.0)
    assert found.gamma == 0.0
    assert found.selected == ()
    assert "can't help, because all their rows are zero: zero" in found.notes
    assert any("an error on" in note and "y" in note and "stays invisible" in note for note in found.notes)


def test_objectives_differ_and_are_named():
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[
            {"id": "sharp", "node": "x", "sigma": 0.5, "uncertainty": 1.9, "cost": 1.0},
            {"id": "heavy", "node": "x", "weight": 2.0, "sigma": 2.0, "cost": 1.0},
            {"id": "sure", "node": "x", "sigma": 1.0, "cost": 1.0},
        ],
    )
    bought = {objective: plan(problem, budget=1.0, objective=objective) for objective in Objective}
    assert bought[Objective.GAMMA].selected == ("heavy",)
    assert bought[Objective.GAMMA].gamma == pytest.approx(2**0.5)
    assert bought[Objective.GAMMA_SIGMA].selected == ("sharp",)
    assert bought[Objective.GAMMA_SIGMA].gamma == pytest.approx(2.0)
    assert bought[Objective.ROBUST].selected == ("sure",)
    assert bought[Objective.ROBUST].value == pytest.approx(1.0)
    assert all(found.objective is objective for objective, found in bought.items())
    assert plan(problem, budget=1.0).objective is Objective.ROBUST


def test_robust_without_radii_is_the_plain_margin():
    problem = random_problem(1)
    assert plan(problem, budget=4.0, objective="robust").gamma == plan(problem, budget=4.0).gamma


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_keeps_the_contract(name):
    problem = random_problem(9, features=("nodes", "rules", "links"), nodes=6, blocks=8)
    best = plan(problem, budget=6.0, method="optimal")
    found = plan(problem, budget=6.0, method=name)
    market = Evaluator(problem).market
    mask = market.mask(found.selected)
    assert market.names(mask) == found.selected
    assert market.broken(mask) == ""
    assert found.cost == float(market.cost(mask)) <= 6.0
    assert found.gamma == problem.margin(found.selected).value
    assert found.gamma <= best.gamma * (1 + 1e-8)
    assert found.upper_bound >= best.gamma * (1 - 1e-8)
    assert 0.0 <= found.gap <= 1.0
    assert found.method == name == planner(name).name
    assert {step.block for step in found.trajectory} | {n for s in found.trajectory for n in s.opened} == set(
        found.selected
    )
    assert found.trajectory[-1].gamma == pytest.approx(found.gamma, abs=1e-7) if found.trajectory else True
