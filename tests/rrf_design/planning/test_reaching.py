"""A goal whose margin depends on the design: rising from the least that any design needs."""

from __future__ import annotations

from math import inf

import pytest
from small import all_designs

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.goal import POSITIVE, Goal
from rrf_design.planning import plan, planner
from rrf_design.planning.arena import Arena
from rrf_design.planning.contract import Objective, Order, PlanStatus
from rrf_design.planning.reaching import nominal, planned_margin, reach, wanted_between


def noisy(delta: float, *, sigma: float = 0.5, count: int = 4, **more) -> rrf.Problem:
    """Three answers in a ring, anchors on sale whose noise grows with every one that is bought."""
    names = ["a", "b", "c"]
    return rrf.Problem(
        k=1,
        delta=delta,
        confidence=0.95,
        nodes=[{"id": name, **more} for name in names],
        relations=[
            {"id": f"r{i}", "tail": names[i], "head": names[(i + 1) % 3], "sigma": 0.1} for i in range(3)
        ],
        anchors=[
            {"id": f"x{i}", "node": names[i % 3], "sigma": sigma * (1 + 0.3 * i), "cost": 1.0 + 0.25 * i}
            for i in range(count)
        ],
    )  # fmt: skip


def test_what_margin_computes_is_whitened_where_noise_is_declared():
    assert nominal(noisy(1.0)) is Objective.GAMMA_SIGMA
    assert nominal(rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a"}])) is Objective.GAMMA


def test_more_rows_ask_for_a_larger_margin():
    problem = noisy(20.0)
    low, high = wanted_between(problem, Goal.of(problem))
    assert POSITIVE < low < high < inf
    assert planned_margin(problem) == high
    everything = problem.design("all").radius(problem)
    assert high == Goal.of(problem).wanted(everything)


def test_without_a_goal_there_is_no_margin_to_plan_for():
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "cost": 1.0}])
    assert planned_margin(problem) is None
    found = reach(Arena(problem), planner("greedy"), Order(budget=1.0), None)
    assert found.target is None
    assert found.selected == ("x",)


@pytest.mark.parametrize("delta", [6.0, 9.0, 14.0])
def test_the_cheapest_design_that_has_the_margin_it_needs_itself(delta):
    problem = noisy(delta)
    found = plan(problem, method="optimal")
    reaching = []
    for cost, margin, names in all_designs(problem):
        wanted = Goal.of(problem).wanted(problem.design(names).radius(problem)) or 0.0
        if margin >= wanted * (1 - 1e-9):
            reaching.append(cost)
    if not reaching:
        assert not found.reached
        return
    assert found.reached
    assert found.cost >= float(min(reaching)) - 1e-12
    if found.status is PlanStatus.OPTIMAL:
        assert found.cost == pytest.approx(float(min(reaching)))
    assert found.cost_bound is not None
    assert found.cost_bound <= float(min(reaching)) + 1e-12


def test_where_nothing_bounds_the_answers_no_error_can_be_promised():
    problem = rrf.Problem(
        k=1,
        delta=1.0,
        epsilon=0.1,
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b", "uncertainty": 0.1}],
        anchors=[{"id": "x", "node": "a", "cost": 1.0}, {"id": "y", "node": "b", "cost": 1.0}],
    )
    assert planned_margin(problem) is None
    with pytest.raises(InputError, match=r"give their nodes a range, or .problem. an amplitude"):
        plan(problem)
