"""Bounds from witness cuts: above every design that the budget buys, whatever the weights."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from small import all_designs, random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.bounds import bound_from_cuts, ceiling, knapsack, lifted, relaxation_bound


@pytest.mark.parametrize("seed", range(8))
def test_the_knapsack_is_its_linear_program_rounded_up(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 7))
    gains = rng.integers(-1, 5, size=count) / 3.0
    prices = rng.integers(0, 4, size=count) / 2.0  # some are free, some tie
    for budget in (0.0, 0.7, 2.5, 100.0):
        solved = linprog(-np.maximum(gains, 0.0), A_ub=prices[None], b_ub=[budget], bounds=[(0, 1)] * count)
        assert -solved.fun * (1 - 1e-9) <= knapsack(gains, prices, budget) <= -solved.fun * (1 + 1e-9) + 1e-12
    assert knapsack(gains, prices, None) == pytest.approx(np.maximum(gains, 0.0).sum())


def test_the_knapsack_is_never_below_the_exact_one():
    """Prices whose float sums round the wrong way: still at least what rationals say can be bought."""
    prices = np.array([0.1] * 10)
    gains = np.ones(10)
    budget = float(sum(Fraction(0.1) for _ in range(10)))
    assert knapsack(gains, prices, budget) >= 10.0
    assert knapsack(gains, np.array([0.1, 0.2, 0.3] + [0.1] * 7), 0.6) >= 3.0
    assert knapsack(np.zeros(0), np.zeros(0), 1.0) == 0.0


FEATURES = [(), ("dims",), ("noise",), ("nodes",), ("tiers",), ("links",)]


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_no_design_within_the_budget_passes_any_bound(features):
    problem = random_problem(11, features=features, blocks=6)
    arena = Arena(problem)
    designs = all_designs(problem, value=None)
    for mask in ([False] * len(arena.market.items), [True] * len(arena.market.items)):
        found = arena.evaluate(np.array(mask), count=10)
        for witness in found.witnesses:
            arena.pool.add(witness)
    rng = np.random.default_rng(0)
    for budget in (0.0, 2.0, 4.5, None):
        best = max((value for cost, value, _ in designs if budget is None or cost <= budget), default=0.0)
        assert bound_from_cuts(arena, budget) >= best * (1 - 1e-9)
        assert ceiling(arena) >= best * (1 - 1e-9)
        assert relaxation_bound(arena, budget) >= best * (1 - 1e-9)
        assert relaxation_bound(arena, budget) <= bound_from_cuts(arena, budget) * (1 + 1e-9)
        kept = len(arena.pool.ungated())
        for _ in range(5 if kept else 0):
            assert bound_from_cuts(arena, budget, rng.random(kept)) >= best * (1 - 1e-9)


def test_without_cuts_the_ceiling_is_all_there_is():
    arena = Arena(random_problem(2, blocks=5))
    assert bound_from_cuts(arena, 1.0) == ceiling(arena)
    everything = np.ones(len(arena.market.items), dtype=bool)
    single = min(np.linalg.norm(arena.operator.matrix.toarray()[:, columns], 2) for columns in arena.columns)
    assert arena.value(everything) <= ceiling(arena) == pytest.approx(single)


@pytest.mark.parametrize("seed", range(3))
def test_a_lifted_cut_still_cuts_its_design_off_and_holds_for_every_other(seed):
    arena = Arena(random_problem(seed, blocks=7, features=("dims",)))
    mask = arena.market.empty()
    target = 0.5 * arena.value(np.ones(len(mask), dtype=bool)) + 0.2
    present = arena.active(mask)
    for witness in arena.evaluate(mask, count=4).witnesses:
        stronger = lifted(arena, witness, present, target * target, np.arange(len(present), dtype=float))
        assert stronger.support == witness.support
        energies = arena.energies(stronger)
        assert np.linalg.norm(stronger.vector) == pytest.approx(1.0)
        assert energies[present].sum() < target * target
        for bits in list(product([False, True], repeat=len(mask)))[::9]:
            design = np.array(bits)
            assert arena.value(design) ** 2 <= energies[arena.active(design)].sum() * (1 + 1e-9) + 1e-12
