"""The curve of an item is the same whether its designs are listed or its frontier is walked."""

from __future__ import annotations

import numpy as np
import pytest
from small import all_designs, random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.contract import Order
from rrf_design.planning.curves import _walk_frontier, design_values, enumerate_designs


@pytest.mark.parametrize("features", [(), ("nodes", "dims"), ("radii",)], ids="-".join)
def test_enumeration_and_frontier_agree(features):
    problem = random_problem(5, features=features, nodes=4, blocks=5)
    objective = "robust" if "radii" in features else None
    listed = enumerate_designs(Arena(problem, objective=objective), Order(budget=50.0))
    walked = _walk_frontier(Arena(problem, objective=objective), Order(budget=50.0))
    assert walked.complete
    assert listed.costs == walked.costs
    assert listed.values == pytest.approx(walked.values, abs=1e-7)


def test_many_designs_at_once_have_the_values_of_each():
    problem = random_problem(3, features=("nodes", "dims"), nodes=4, blocks=5, k=2)
    arena = Arena(problem)
    designs = [names for _, _, names in all_designs(problem, value=lambda names: 0.0)]
    masks = np.array([arena.market.mask(names) for names in designs])
    expected = [problem.margin(names).value for names in designs]
    assert design_values(arena, masks) == pytest.approx(expected, abs=1e-7)
