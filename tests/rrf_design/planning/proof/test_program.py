"""Money is rational: whatever decimals prices and budgets are, no plan overspends and none that is
called optimal is beaten.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from small import all_designs, best_within, cheapest_reaching, random_problem

import rrf_design as rrf
from rrf_design.errors import BudgetError
from rrf_design.market import exact
from rrf_design.planning import PlanStatus, frontier, plan, portfolio
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof.master import Answer, OrTools
from rrf_design.planning.proof.program import MarketRows

AWKWARD = [0.1, 0.07, 0.3333333333333333, 1 / 7, 2.5, 1e-9, 0.7000000000000001, 1.0000000000000002, 123456789.1, 1e-17]


def awkward(seed: int, *, tiers: bool) -> tuple[rrf.Problem, list[float]]:
    """A problem with such prices, and budgets at, just below and between its bills."""
    rng = np.random.default_rng(seed)
    fields = random_problem(seed, blocks=6, features=("tiers",) if tiers else ()).model_dump(exclude_none=True)
    for block in [*fields["relations"], *fields["anchors"]]:
        if "cost" in block:
            block["cost"] = float(rng.choice(AWKWARD))
    for tier in fields.get("tiers", ()):
        tier["prices"] = [float(p) for p in rng.choice(AWKWARD, 3)]
    problem = rrf.Problem(**fields)
    bills = sorted({cost for cost, _, _ in all_designs(problem, value=lambda names: 0.0)})
    chosen = [bills[i] for i in rng.integers(len(bills), size=2)]
    budgets = [float(bill) for bill in chosen]
    return problem, [*budgets, float(np.nextafter(budgets[0], 0.0)), budgets[1] * 0.7 + 1e-12]


@pytest.mark.parametrize("solver", ["ortools", "pulp"])
@pytest.mark.parametrize("tiers", [False, True], ids=["prices", "tiers"])
@pytest.mark.parametrize("seed", range(4))
def test_awkward_decimals_are_neither_overspent_nor_underused(seed, tiers, solver):
    problem, budgets = awkward(seed, tiers=tiers)
    designs = all_designs(problem)
    bill = {names: cost for cost, _, names in designs}
    for budget in budgets:
        found = plan(problem, budget=budget, method="optimal", front_end=solver)
        best = best_within(designs, budget)
        assert bill[found.selected] <= exact(budget)
        assert found.upper_bound >= best * (1 - 1e-12)
        assert found.status is PlanStatus.OPTIMAL
        assert found.gamma == pytest.approx(best, rel=2e-5 if solver == "pulp" else 1e-8, abs=1e-9)
        if best > 0 and found.least_cost:
            least = min(cost for cost, value, _ in designs if cost <= exact(budget) and value >= best * (1 - 1e-9))
            assert bill[found.selected] == least
        if best > 0:
            cheapest = plan(problem, target=best, method="optimal", front_end=solver)
            assert cheapest.gamma >= best * (1 - 1e-8)
            assert exact(cheapest.cost_bound) <= cheapest_reaching(designs, best) * Fraction("1.0000000001")
            if cheapest.status is PlanStatus.OPTIMAL:
                assert bill[cheapest.selected] == cheapest_reaching(designs, best)


@pytest.mark.parametrize("seed", range(3))
def test_frontier_and_portfolio_count_the_same_money(seed):
    problem, budgets = awkward(seed, tiers=seed == 1)
    designs = all_designs(problem)
    bill = {names: cost for cost, _, names in designs}
    for budget in budgets[:2]:
        best = best_within(designs, budget)
        curve = frontier(problem, budget=budget)
        assert curve.complete
        assert all(bill[point.selected] <= exact(budget) for point in curve.points)
        assert curve.points[-1].gamma == pytest.approx(best, rel=1e-6, abs=1e-9)
        shared = portfolio([problem], budget=budget)
        assert bill[shared.shares[0].selected] <= exact(budget)
        assert shared.value == pytest.approx(best, rel=1e-8, abs=1e-9)


def test_one_and_two_are_not_bought_for_two_and_a_half():
    problem = rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y"}],
        anchors=[{"id": "one", "node": "x", "cost": 1.0}, {"id": "two", "node": "y", "cost": 2.0}],
    )
    for solver in ("ortools", "pulp"):
        found = plan(problem, budget=2.5, method="optimal", front_end=solver)
        assert (found.gamma, found.cost) == (0.0, 0.0)
        assert plan(problem, budget=3.0, method="optimal", front_end=solver).cost == 3.0
        with pytest.raises(BudgetError):
            plan(
                problem.model_copy(update={"rules": rrf.Problem(**RULED).rules}),
                budget=2.5,
                method="optimal",
                front_end=solver,
            )


RULED = {
    "nodes": [{"id": "x"}, {"id": "y"}],
    "anchors": [{"id": "one", "node": "x", "cost": 1.0}, {"id": "two", "node": "y", "cost": 2.0}],
    "rules": [{"id": "both", "blocks": ["one", "two"], "at_least": 2}],
}


def test_prices_too_fine_for_the_master_are_decided_in_fractions():
    """Two anchors for one node that differ in the twenty-first digit, and a large price beside
    them.
    """
    names = ["a", "b"]
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[
            *({"id": name, "node": "x", "cost": price} for name, price in zip(names, [3e-21, 2e-21], strict=True)),
            {"id": "dear", "node": "x", "rows": [[0.5]], "cost": 1e6},
        ],
    )
    structure = MarketRows(Evaluator(problem))
    assert structure.unit > structure.grain
    assert int(structure.cost.sum()) < 1 << 51
    both = np.array([True, True, False])
    budget = exact("4e-21")
    assert not structure.overspent(np.array([False, True, False]), budget)
    assert structure.overspent(both, budget)
    again = structure.program(target=None, budget=budget)
    assert OrTools().solve(again, time_limit=None, seed=0).answer is Answer.FOUND
    assert again.rows[-1].bound == -1  # not both of them
    assert plan(problem, budget=4e-21, method="optimal").selected == ("b",)
    assert plan(problem, target=1.0, method="optimal").selected == ("b",)
    assert plan(problem, target=1.0, method="optimal").status is PlanStatus.OPTIMAL
