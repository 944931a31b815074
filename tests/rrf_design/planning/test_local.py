"""Local search: never worse than the greedy, never beyond the budget, and what it learns bounds
every design.
"""

from __future__ import annotations

import numpy as np
import pytest
from small import all_designs, best_within, random_problem

from rrf_design.market import exact
from rrf_design.planning import planner
from rrf_design.planning._optimal import Climber, Local, _teach, tidy
from rrf_design.planning.contract import Order
from rrf_design.planning.evaluator import Evaluator

FEATURES = [(), ("dims",), ("nodes",), ("rules",), ("tiers",), ("links",)]


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_it_lies_between_the_greedy_and_the_best(features):
    problem = random_problem(4, features=features, blocks=6)
    designs, budget = all_designs(problem), 4.0
    greedy = planner("greedy").plan(Evaluator(problem), Order(budget=budget))
    found = Local().plan(Evaluator(problem), Order(budget=budget))
    best = best_within(designs, budget)
    assert found.cost <= budget
    assert greedy.value * (1 - 1e-9) <= found.value <= best * (1 + 1e-9)
    assert found.upper_bound >= best * (1 - 1e-9)
    assert found == Local().plan(Evaluator(problem), Order(budget=budget))  # the same seed does the same


def test_neighbours_are_one_purchase_or_one_exchange_away():
    evaluator = Evaluator(random_problem(2, blocks=6))
    start = evaluator.market.empty()
    start[[0, 3]] = True
    climber = Climber(evaluator, Order(budget=5.0), start)
    near = climber._neighbours(start)
    assert len({mask.tobytes() for mask in near}) == len(near) > 0
    for mask in near:
        assert int((mask & ~start).sum()) == 1
        assert int((start & ~mask).sum()) <= 1
        assert evaluator.market.cost(mask) <= exact(5.0)
    wanted = [
        mask
        for drop in (None, 0, 3)
        for add in (1, 2, 4, 5)
        if evaluator.market.cost(mask := _moved(start, drop, add)) <= exact(5.0)
    ]
    assert {mask.tobytes() for mask in near} == {mask.tobytes() for mask in wanted}


def _moved(start: np.ndarray, drop: int | None, add: int) -> np.ndarray:
    mask = start.copy()
    if drop is not None:
        mask[drop] = False
    mask[add] = True
    return mask


@pytest.mark.parametrize("features", [(), ("dims",), ("rules",)], ids="-".join)
def test_tidying_keeps_the_floor_and_nothing_that_it_does_not_need(features):
    evaluator = Evaluator(random_problem(4, features=features, blocks=6))
    everything = np.ones(len(evaluator.market.items), dtype=bool)
    if evaluator.market.broken(everything):
        everything[2:4] = False
    floor = 0.5 * evaluator.value(everything)
    kept = tidy(evaluator, everything, floor)
    assert evaluator.value(kept) >= floor
    assert not evaluator.market.broken(kept)
    for item in np.flatnonzero(kept):
        smaller = evaluator.market.drop(kept, int(item))
        assert evaluator.value(smaller) < floor or evaluator.market.broken(smaller)


@pytest.mark.parametrize("features", [(), ("dims",), ("nodes",)], ids="-".join)
def test_what_a_design_teaches_holds_for_every_other(features):
    evaluator = Evaluator(random_problem(6, features=features, blocks=6))
    empty = evaluator.market.empty()
    value = _teach(evaluator, empty, 0.8, rng=np.random.default_rng(0), count=8)
    assert value == evaluator.value(empty)
    designs = np.array(list(np.ndindex(*(2,) * len(empty))), dtype=bool)
    bounds = evaluator.pool.bounds(designs)
    for mask, bound in zip(designs, bounds, strict=True):
        if (evaluator.market.close(mask) == mask).all():
            assert evaluator.value(mask) ** 2 <= bound * (1 + 1e-9) + 1e-12
