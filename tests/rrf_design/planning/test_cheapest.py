"""Cheapest designs for a target, and targets that are out of reach."""

from __future__ import annotations

import pytest
from small import all_designs, cheapest_reaching, random_problem

import rrf_design as rrf
from rrf_design.market import exact
from rrf_design.planning import PlanStatus, plan


@pytest.mark.parametrize("features", [(), ("nodes",), ("tiers", "links"), ("rules", "noise")], ids="-".join)
def test_no_design_that_reaches_the_target_costs_less(features):
    problem = random_problem(4, features=features, blocks=6)
    designs = all_designs(problem)
    for target in sorted({value for _, value, _ in designs if value > 1e-6})[::7]:
        found = plan(problem, target=target, method="optimal")
        assert exact(found.cost) == cheapest_reaching(designs, target)
        assert found.gamma >= target * (1 - 1e-9)
        assert found.status is PlanStatus.OPTIMAL
        assert found.cost_bound == found.cost
        assert found.reached


def test_unreachable_target_comes_with_the_largest_margin_money_can_buy(pairs):
    everything = pairs.margin("all").value
    found = plan(pairs, target=everything * 1.01)
    assert found.status is PlanStatus.INFEASIBLE
    assert not found.reached
    assert found.gamma == pytest.approx(everything)
    assert "out of reach" in found.notes[0]


def test_budget_and_target_together(pairs):
    reachable = plan(pairs, budget=6.0).gamma
    assert plan(pairs, budget=6.0, target=reachable).cost == 6.0
    poor = plan(pairs, budget=5.0, target=reachable)
    assert poor.status is PlanStatus.INFEASIBLE
    assert poor.gamma == 0.0
    assert poor.cost <= 5.0


def test_error_bound_as_target():
    """2ε/γ ≤ δ with ε = 0.1 and δ = 0.4 is γ ≥ 0.5."""
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        epsilon=0.1,
        delta=0.4,
        anchors=[
            {"id": "weak", "node": "x", "weight": 0.2, "cost": 1.0},
            {"id": "strong", "node": "x", "weight": 0.25, "cost": 1.5},
            {"id": "dear", "node": "x", "cost": 4.0},
        ],
    )
    found = plan(problem)
    assert found.target == pytest.approx(0.5)
    assert found.selected == ("strong",)


def test_target_zero_buys_nothing(pairs):
    found = plan(pairs, target=0.0)
    assert (found.selected, found.cost, found.status) == ((), 0.0, PlanStatus.OPTIMAL)
