"""Bounds with radii: no design beats them, at any budget, on any visit, and radii make them lower."""

from __future__ import annotations

import numpy as np
import pytest
from small import all_designs, best_within, random_problem

from rrf_design.market import exact
from rrf_design.planning import Order, plan
from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.robust_prover import RobustProver


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_no_design_beats_the_linear_bound(seed, k):
    problem = random_problem(seed + 60, features=("radii",), nodes=5, blocks=8, k=k)
    arena = Arena(problem, objective="robust")
    designs = all_designs(problem, value=lambda names: arena.value(arena.market.mask(names)))
    prover = RobustProver(arena, Order())
    for budget in (2.0, 5.0, 3.5, 2.0, 12.0):
        best = best_within(designs, budget)
        assert prover._linear(0.0, exact(budget)) >= best * (1 - 1e-12)
        if best > 1e-3:
            for share in (1.0, 0.5, 0.99):
                refuted, cost = prover.relax(share * best * (1 - 1e-12), exact(budget), deadline=None)
                assert not refuted
                assert cost <= exact(budget)


def test_radii_lower_the_bound():
    problem = random_problem(62, features=("radii",), nodes=5, blocks=8)
    bounds = [RobustProver(Arena(problem, objective=o), Order())._linear(0.0, exact(4.0)) for o in ("robust", "gamma")]
    assert np.isfinite(bounds).all()
    assert bounds[0] <= bounds[1]


@pytest.mark.parametrize("seed", range(2))
def test_plans_are_the_best_of_all_designs(seed):
    problem = random_problem(seed + 70, features=("radii", "rules"), blocks=7)
    arena = Arena(problem, objective="robust")
    designs = all_designs(problem, value=lambda names: arena.value(arena.market.mask(names)))
    best = best_within(designs, 4.0)
    found = plan(problem, budget=4.0, method="optimal", objective="robust")
    assert found.value == pytest.approx(best, rel=1e-8, abs=1e-9)
    assert found.upper_bound == pytest.approx(best, rel=1e-6, abs=1e-9)
