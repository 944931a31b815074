"""The frontier is exactly the set of undominated designs."""

from __future__ import annotations

import numpy as np
import pytest
from small import all_designs, best_within, random_problem

from rrf_design.errors import InputError
from rrf_design.market import exact
from rrf_design.planning import Order, PlanStatus, frontier, plan
from rrf_design.planning._optimal import search_for
from rrf_design.planning.evaluator import Evaluator


@pytest.mark.parametrize("features", [(), ("tiers",), ("nodes", "links")], ids="-".join)
def test_every_undominated_design_is_a_point(features):
    problem = random_problem(12, features=features, blocks=6)
    designs = sorted(all_designs(problem), key=lambda d: (d[0], -d[1]))
    steps, best = [], -1.0
    for cost, value, _ in designs:
        if value > best * (1 + 1e-6) + 1e-9 or best < 0:
            steps.append((cost, value))
            best = value
    found = frontier(problem)
    assert found.complete
    assert [exact(p.cost) for p in found.points] == [cost for cost, _ in steps]
    assert [p.gamma for p in found.points] == pytest.approx([value for _, value in steps], abs=1e-7)
    assert all(p.status is PlanStatus.OPTIMAL for p in found.points)
    assert all(problem.margin(p.selected).value == p.gamma for p in found.points)


def test_a_point_is_what_plan_buys():
    problem = random_problem(13, blocks=7)
    curve = frontier(problem, budget=5.0)
    for budget in (0.0, 1.0, 2.5, 5.0):
        point = curve.best_within(budget)
        assert point is not None
        assert point.gamma == pytest.approx(plan(problem, budget=budget, method="optimal").gamma, rel=1e-6)
    assert curve.points[-1].cost <= 5.0
    assert best_within(all_designs(problem), 5.0) == pytest.approx(curve.points[-1].gamma)


def test_stopped_early_says_so():
    curve = frontier(random_problem(13, blocks=7), time_limit=0.0)
    assert not curve.complete
    assert len(curve.points) >= 1
    with pytest.raises(InputError, match="budget: must be a number"):
        frontier(random_problem(13), budget=-1.0)


def test_progress_tells_steps_and_bounds():
    told = []
    problem = random_problem(8, blocks=6)
    found = frontier(problem, progress=lambda fraction, _, words: told.append((fraction, words)))
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions)
    assert all(0.0 <= fraction <= 1.0 for fraction in fractions)
    assert any(words.startswith(f"{len(found.points)} steps up to γ = ") for _, words in told)
    assert any("the next costs at least" in words for _, words in told)
    assert any(" between " in words for _, words in told)


def planted(problem, seed):
    """(cost, objective) of a few random designs of a problem with too many to list."""
    evaluator, rng = Evaluator(problem), np.random.default_rng(seed)
    masks = [rng.random(len(evaluator.market.items)) < share for share in (0.3, 0.5, 0.7, 0.9)]
    return [(evaluator.market.cost(mask), evaluator.value(mask)) for mask in masks]


@pytest.mark.parametrize("seed", range(3))
def test_no_point_denies_a_planted_design(seed):
    """Whatever stops the walk: what a known design reaches for its cost, no point's bound
    excludes.
    """
    problem = random_problem(seed + 50, nodes=7, blocks=12, k=1 + seed % 2)
    known = [(cost, value) for cost, value in planted(problem, seed) if value > 1e-3]
    assert known
    for curve in (frontier(problem), frontier(problem, most_points=3), frontier(problem, time_limit=0.05)):
        for cost, value in known:
            point = curve.best_within(float(cost))
            assert point is not None
            last = point is curve.points[-1]
            if not last or curve.complete:
                assert max(point.upper_bound, point.value) >= value * (1 - 1e-6)
            if curve.complete:
                assert point.value >= value * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_costs_asked_up_and_down_never_exclude_a_planted_design(seed):
    """One search for many targets, in an order that moves its rows between them: as a frontier and
    its neighbours ask.
    """
    problem = random_problem(seed + 50, nodes=7, blocks=14, k=1 + seed % 2)
    search = search_for(Evaluator(problem), Order())
    known = [(cost, value) for cost, value in planted(problem, seed) if value > 1e-3]
    assert known
    for share in (1.0, 0.4, 1.0 - 1e-9, 0.7, 0.05, 1.0):
        for cost, value in [*known, *reversed(known)]:
            found = search.minimise(share * value, cost, None)
            assert not found.impossible
            assert found.bound <= cost
            assert found.mask is not None
            assert search.evaluator.value(found.mask) >= share * value * (1 - 1e-8)
