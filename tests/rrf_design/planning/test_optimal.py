"""Witness cuts: proven optima are the optima, for every feature a plan may have, and a stopped
search says how far it got.
"""

from __future__ import annotations

import pytest
from small import all_designs, best_within, cheapest_reaching, random_problem

from rrf_design.errors import BudgetError
from rrf_design.market import exact
from rrf_design.planning import PlanStatus, plan
from rrf_design.planning.evaluator import Evaluator

FEATURES = [
    (),
    ("dims",),
    ("nodes",),
    ("rules",),
    ("tiers",),
    ("links",),
    ("noise",),
    ("nodes", "rules", "tiers", "links", "dims", "noise"),
]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_optimum_is_the_best_of_all_designs(features, k):
    problem = random_problem(7 * k + len(features), features=features, k=k, blocks=6)
    designs = all_designs(problem)
    for budget in (1.0, 3.5):
        best = best_within(designs, budget)
        if best is None:
            with pytest.raises(BudgetError):
                plan(problem, budget=budget, method="optimal")
            continue
        found = plan(problem, budget=budget, method="optimal")
        assert found.status is PlanStatus.OPTIMAL
        assert found.gamma == pytest.approx(best, rel=1e-8, abs=1e-9)
        assert found.upper_bound >= best * (1 - 1e-12)
        assert exact(found.cost) <= exact(budget)
        assert (exact(found.cost), found.selected) in {(cost, names) for cost, _, names in designs}
        assert found.gamma == problem.margin(found.selected).value


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_of_the_best_designs_the_cheapest_is_bought(features):
    for seed in range(3):
        problem = random_problem(40 + seed, features=features, blocks=7)
        designs = all_designs(problem)
        for budget in (2.5, 5.0):
            best = best_within(designs, budget)
            if best is None:
                continue
            found = plan(problem, budget=budget, method="optimal")
            least = min(cost for cost, value, _ in designs if cost <= exact(budget) and value >= best * (1 - 1e-9))
            assert exact(found.cost) == least
            assert found.least_cost
            assert found.to_json()["least_cost"] is True


def test_a_cost_that_was_not_proven_least_is_not_called_so():
    problem = random_problem(40, blocks=7)
    assert not plan(problem, budget=5.0, method="greedy").least_cost
    assert not plan(problem, budget=5.0, method="optimal", time_limit=0.0).least_cost


@pytest.mark.parametrize("features", [("dims",), ("nodes", "links")], ids="-".join)
def test_large_fields_ask_the_engine_instead_of_a_table(features, monkeypatch):
    monkeypatch.setattr("rrf_design.planning.evaluator.TABLE_SUPPORTS", 0)
    problem = random_problem(21, features=features, blocks=6)
    assert Evaluator(problem).table is None
    found = plan(problem, budget=4.0, method="optimal")
    assert found.status is PlanStatus.OPTIMAL
    assert found.gamma == pytest.approx(best_within(all_designs(problem), 4.0), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_robust_optimum_is_the_best_of_all_designs(seed):
    problem = random_problem(seed, features=("radii",), blocks=6)
    evaluator = Evaluator(problem, objective="robust")
    designs = all_designs(problem, value=lambda names: evaluator.value(evaluator.market.mask(names)))
    found = plan(problem, budget=4.0, method="optimal", objective="robust")
    assert found.status is PlanStatus.OPTIMAL
    assert found.value == pytest.approx(best_within(designs, 4.0), rel=1e-8, abs=1e-9)
    assert found.value <= found.gamma


@pytest.mark.parametrize("features", [(), ("nodes", "tiers"), ("rules", "links")], ids="-".join)
def test_pulp_and_ortools_agree(features):
    problem = random_problem(3, features=features, blocks=6)
    one, two = (plan(problem, budget=4.0, method="optimal", front_end=solver) for solver in ("ortools", "pulp"))
    assert two.gamma == pytest.approx(one.gamma, rel=1e-5)
    assert one.status is two.status is PlanStatus.OPTIMAL
    assert one.gap <= 2e-9
    assert two.gap <= 2e-5
    target = 0.9 * one.gamma
    costs = [plan(problem, target=target, method="optimal", front_end=solver).cost for solver in ("ortools", "pulp")]
    assert exact(costs[0]) == exact(costs[1]) == cheapest_reaching(all_designs(problem), target)


def test_no_time_gives_a_valid_plan_with_an_honest_gap():
    problem = random_problem(5, nodes=9, blocks=16, k=1)
    best = plan(problem, budget=6.0, method="optimal")
    hasty = plan(problem, budget=6.0, method="optimal", time_limit=0.0)
    assert best.status is PlanStatus.OPTIMAL
    assert hasty.gamma <= best.gamma * (1 + 1e-9)
    assert hasty.upper_bound >= best.gamma * (1 - 1e-12)
    assert hasty.gap == pytest.approx((hasty.upper_bound - hasty.value) / hasty.upper_bound)
    assert hasty.status is (PlanStatus.OPTIMAL if hasty.gap <= 1e-8 else PlanStatus.FEASIBLE)
    assert hasty.cost <= 6.0


def test_a_plan_is_reproducible():
    problem = random_problem(11, nodes=7, blocks=10)
    assert plan(problem, budget=5.0, seed=3) == plan(problem, budget=5.0, seed=3, n_jobs=2)


def test_zero_is_proven_when_no_money_helps(pairs):
    found = plan(pairs, budget=5.0, method="optimal")
    assert (found.gamma, found.upper_bound, found.gap, found.status) == (0.0, 0.0, 0.0, PlanStatus.OPTIMAL)
    assert found.selected == ()
    assert plan(pairs, budget=6.0, method="optimal").gamma > 0.5


def test_equal_blocks_are_interchangeable():
    import rrf_design as rrf

    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[{"id": f"a{i}", "node": "x", "cost": 1.0} for i in range(12)],
    )
    found = plan(problem, budget=5.0, method="optimal")
    assert found.selected == ("a0", "a1", "a2", "a3", "a4")
    assert found.gamma == pytest.approx(5**0.5)
