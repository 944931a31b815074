"""Many fields, one budget: the separation is exact."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from small import all_designs, random_problem

from rrf_design.errors import BudgetError, InputError
from rrf_design.market import exact
from rrf_design.planning import PlanStatus, portfolio
from rrf_design.planning.curves import ENUMERATED
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.portfolios import Aim


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


@pytest.mark.parametrize("limit", [None, 0.02])
def test_planted_designs_are_never_denied(limit):
    """Items too large to list, each with a known design, and money for exactly these: no bound may
    say that less is possible.
    """
    problems = [random_problem(seed + 60, nodes=6, blocks=16, k=1 + seed % 2) for seed in range(4)]
    rng = np.random.default_rng(4)
    known = []
    for problem in problems:
        evaluator = Evaluator(problem)
        assert len(evaluator.market.items) > ENUMERATED
        masks = (rng.random(len(evaluator.market.items)) < 0.8 for _ in range(50))
        known.append(
            next((evaluator.market.cost(mask), evaluator.value(mask)) for mask in masks if evaluator.value(mask) > 1e-3)
        )
    money, least = float(sum(cost for cost, _ in known)), min(value for _, value in known)
    found = portfolio(problems, budget=money, time_limit=limit)
    assert found.upper_bound >= least * (1 - 1e-9)
    for target in sorted({value for _, value in known}):
        count = portfolio(problems, budget=money, aim="count", target=target * (1 - 1e-9), time_limit=limit)
        assert count.upper_bound >= sum(value >= target for _, value in known)
        if limit is None:
            assert found.status is PlanStatus.OPTIMAL
            assert found.value >= least * (1 - 1e-6)
            assert count.value >= sum(value >= target for _, value in known)


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


def test_classes_of_equal_items_are_spent_on_like_the_items_themselves() -> None:
    from fractions import Fraction

    from rrf_design.planning.curves import Curve
    from rrf_design.planning.portfolios import spend

    cheap = Curve((Fraction(0), Fraction(2), Fraction(5)), (0.0, 0.5, 0.9), (b"a", b"b", b"c"))
    dear = Curve((Fraction(1), Fraction(4)), (0.1, 0.7), (b"a", b"b"))
    for aim, target in ((Aim.SMALLEST, None), (Aim.COUNT, 0.5), (Aim.COUNT, 0.8)):
        for money in range(2, 30):
            classes = spend([cheap, dear], [4, 2], Fraction(money), aim=aim, target=target)
            items = spend([cheap] * 4 + [dear] * 2, [1] * 6, Fraction(money), aim=aim, target=target)
            assert classes.bound == items.bound
            assert [sum(picked.values()) for picked in classes.picks] == [4, 2]


def test_items_whose_curve_is_not_proven_could_leave_their_money_to_others() -> None:
    from fractions import Fraction

    from rrf_design.planning.curves import Curve
    from rrf_design.planning.portfolios import spend

    open_curve = Curve((Fraction(0), Fraction(3)), (0.0, 0.9), (b"a", b"b"), complete=False)
    proven = Curve((Fraction(0), Fraction(4)), (0.0, 0.9), (b"a", b"b"))
    found = spend([open_curve, proven], [1, 1], Fraction(4), aim=Aim.COUNT, target=0.5)
    assert found.picks == ({1: 1}, {0: 1})
    assert found.bound == 2.0  # the open one might cost nothing


def scattering(delta, label, again=0.05):
    from rrf_design.problem import Problem

    node = {"sigma": 0.1, "again": again, "most_repeats": 3}
    return Problem(
        delta=delta,
        nodes=[{"id": "plain", **node}, {"id": "reworded", **node}],
        relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
        anchors=[
            {"id": "known", "node": "plain", "value": 42.0},
            {"id": "label", "node": "reworded", "value": 42.0, "cost": label},
        ],
    )


def cheapest(problem):
    """Of every choice of repeats and blocks that reaches the item's own goal; None where none
    does.
    """
    from rrf_design.derive import asking

    best = None
    for times in product(range(1, 4), repeat=2):
        asked = asking(problem, dict(zip(("plain", "reworded"), times, strict=True)))
        for chosen in ([], ["label"]):
            design = asked.design(chosen)
            if design.standing(asked).reached:
                cost = exact(problem.nodes[0].again) * (sum(times) - 2) + design.price
                best = cost if best is None else min(best, cost)
    return best


@pytest.mark.parametrize("budget", [0.0, 0.2, 0.5, 0.9, 5.0])
def test_own_goals_are_reached_by_purchases_and_repeats(budget):
    items = [scattering(d, label) for d, label in ((1.6, 0.4), (1.3, 0.05), (1.9, 1.0), (0.2, 0.1), (1.6, 0.4))]
    found = portfolio(items, budget=budget, aim="count")
    prices = sorted(price for price in map(cheapest, items) if price is not None)
    most, left = 0, exact(budget)
    for price in prices:
        if price <= left:
            most, left = most + 1, left - price
    assert (found.value, found.status) == (most, PlanStatus.OPTIMAL)
    assert found.cost <= budget + 1e-9
    assert sum(share.reached for share in found.shares) == most
    if most == len(prices):
        assert any(share.repeats for share in found.shares)
        assert any("repeats" in item for item in found.to_json()["items"])


def test_own_goals_are_refused_where_there_are_none():
    with pytest.raises(InputError, match="give the target that items should reach, or every item a delta"):
        portfolio([random_problem(1)], budget=1.0, aim="count")
    both = scattering(1.6, 0.4).model_copy(update={"target": 0.1})
    with pytest.raises(InputError, match="give each a delta and no target"):
        portfolio([both], budget=1.0, aim="count")
    with pytest.raises(InputError, match="objective: items' own goals"):
        portfolio([scattering(1.6, 0.4)], budget=1.0, aim="count", objective="gamma")
