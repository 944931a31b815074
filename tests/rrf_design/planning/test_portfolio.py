"""Many fields, one budget: the separation is exact."""

from __future__ import annotations

from itertools import product

import pytest
from small import all_designs, random_problem

from rrf_design.errors import BudgetError, InputError
from rrf_design.planning import PlanStatus, portfolio
from rrf_design.planning.costs import exact
from rrf_design.planning.portfolio import Aim


def brute(problems, budget, score):
    """The best score over all ways to choose one undominated design per item."""
    curves = []
    for problem in problems:
        kept, best = [], -1.0
        for cost, value, _ in sorted(all_designs(problem), key=lambda d: (d[0], -d[1])):
            if value > best:
                kept.append((cost, value))
                best = value
        curves.append(kept)
    choices = (c for c in product(*curves) if sum(cost for cost, _ in c) <= exact(budget))
    return max(score([value for _, value in choice]) for choice in choices)


@pytest.mark.parametrize("features", [(), ("nodes",), ("rules", "links"), ("tiers",)], ids="-".join)
def test_smallest_margin_and_count_are_exact(features):
    problems = [random_problem(seed, features=features, nodes=4, blocks=5) for seed in (1, 2, 3)]
    for budget in (6.0, 9.0):
        found = portfolio(problems, budget=budget)
        assert found.value == pytest.approx(brute(problems, budget, min), abs=1e-7)
        assert found.status is PlanStatus.OPTIMAL
        assert found.cost == pytest.approx(sum(s.cost for s in found.shares))
        assert exact(found.cost) <= exact(budget)
        for share, problem in zip(found.shares, problems, strict=True):
            assert share.gamma == problem.margin(share.selected).value
        count = portfolio(problems, budget=budget, aim="count", target=0.4)
        assert count.value == brute(problems, budget, lambda values: sum(v >= 0.4 * (1 - 1e-9) for v in values))
        assert sum(share.reached for share in count.shares) == count.value


def test_processes_change_nothing():
    problems = [random_problem(seed, nodes=4, blocks=5) for seed in range(70)]
    assert portfolio(problems, budget=150.0) == portfolio(problems, budget=150.0, n_jobs=2)


def test_messages():
    problem = random_problem(1)
    with pytest.raises(InputError, match="there is no item"):
        portfolio([], budget=1.0)
    with pytest.raises(InputError, match="aim: 'sum' is not one of smallest, count"):
        portfolio([problem], budget=1.0, aim="sum")
    with pytest.raises(InputError, match="aim count: give the target"):
        portfolio([problem], budget=1.0, aim=Aim.COUNT)
    with pytest.raises(BudgetError, match="demand purchases"):
        portfolio([random_problem(1, features=("rules",))], budget=0.0)
