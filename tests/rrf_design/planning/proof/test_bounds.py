"""Bounds from witness cuts: above every design that the budget buys, whatever the weights.

Whatever prices a linear program returns, the cost they prove is never above that of a whole
solution.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from small import all_designs, random_problem

from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof.bounds import (
    MarketRelaxation,
    bound_from_cuts,
    ceiling,
    knapsack,
    lifted,
    relaxation_bound,
    safe_cost,
)
from rrf_design.planning.proof.cuts import CutRow
from rrf_design.planning.proof.program import MarketRows


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
    """Prices whose float sums round the wrong way: still at least what rationals say can be
    bought.
    """
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
    evaluator = Evaluator(problem)
    designs = all_designs(problem, value=None)
    for mask in ([False] * len(evaluator.market.items), [True] * len(evaluator.market.items)):
        found = evaluator.evaluate(np.array(mask), count=10)
        for witness in found.witnesses:
            evaluator.pool.add(witness)
    rng = np.random.default_rng(0)
    for budget in (0.0, 2.0, 4.5, None):
        best = max((value for cost, value, _ in designs if budget is None or cost <= budget), default=0.0)
        assert bound_from_cuts(evaluator, budget) >= best * (1 - 1e-9)
        assert ceiling(evaluator) >= best * (1 - 1e-9)
        assert relaxation_bound(evaluator, budget) >= best * (1 - 1e-9)
        assert relaxation_bound(evaluator, budget) <= bound_from_cuts(evaluator, budget) * (1 + 1e-9)
        kept = len(evaluator.pool.ungated())
        for _ in range(5 if kept else 0):
            assert bound_from_cuts(evaluator, budget, rng.random(kept)) >= best * (1 - 1e-9)


def test_without_cuts_the_ceiling_is_all_there_is():
    evaluator = Evaluator(random_problem(2, blocks=5))
    assert bound_from_cuts(evaluator, 1.0) == ceiling(evaluator)
    everything = np.ones(len(evaluator.market.items), dtype=bool)
    single = min(np.linalg.norm(evaluator.operator.matrix.toarray()[:, columns], 2) for columns in evaluator.columns)
    assert evaluator.value(everything) <= ceiling(evaluator) == pytest.approx(single)


@pytest.mark.parametrize("seed", range(3))
def test_a_lifted_cut_still_cuts_its_design_off_and_holds_for_every_other(seed):
    evaluator = Evaluator(random_problem(seed, blocks=7, features=("dims",)))
    mask = evaluator.market.empty()
    target = 0.5 * evaluator.value(np.ones(len(mask), dtype=bool)) + 0.2
    present = evaluator.active(mask)
    for witness in evaluator.evaluate(mask, count=4).witnesses:
        stronger = lifted(evaluator, witness, present, target * target, np.arange(len(present), dtype=float))
        assert stronger.support == witness.support
        energies = evaluator.energies(stronger)
        assert np.linalg.norm(stronger.vector) == pytest.approx(1.0)
        assert energies[present].sum() < target * target
        for bits in list(product([False, True], repeat=len(mask)))[::9]:
            design = np.array(bits)
            assert evaluator.value(design) ** 2 <= energies[evaluator.active(design)].sum() * (1 + 1e-9) + 1e-12


def random_rows(rng: np.random.Generator, variables: int, count: int) -> list[CutRow]:
    rows = []
    for _ in range(count):
        used = np.sort(rng.choice(variables, size=int(rng.integers(1, variables + 1)), replace=False))
        coefficients = rng.integers(-1, 5, size=len(used))
        rows.append(
            CutRow(used, coefficients, int(rng.integers(0, max(int(np.maximum(coefficients, 0).sum()), 1) + 1)))
        )
    return rows


def test_no_prices_prove_too_much():
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(60):
        rows, cost = random_rows(rng, 6, 5), rng.integers(0, 9, size=6)
        best = least(rows, cost)
        if best is None:
            continue
        seen += 1
        for prices in (rng.random(5) * 3, np.zeros(5), rng.random(5) * 1e7, rng.random(5) * 1e-9):
            assert safe_cost(rows, prices, cost) <= best
    assert seen > 20


def least(rows: list[CutRow], cost: np.ndarray) -> int | None:
    """The cheapest whole solution, by looking at all."""
    found = [
        int(cost @ x)
        for x in map(np.array, product([0, 1], repeat=len(cost)))
        if all(int(row.coefficients @ x[row.variables]) >= row.bound for row in rows)
    ]
    return min(found, default=None)


def test_the_linear_bound_is_proven_in_full_and_follows_its_rows():
    """Three of three at 2, 3 and 4, then two of them, then none: rows change their bound and are
    switched off.
    """
    structure = MarketRows(Evaluator(random_problem(1, blocks=4)))
    relaxation = MarketRelaxation(structure)
    variables = np.flatnonzero(structure.cost)[:3]
    for need in (3, 2, 1, 2):
        row = CutRow(variables, np.ones(3, dtype=np.int64), need)
        solved = relaxation.solve([row])
        cheapest = int(np.sort(structure.cost[variables])[:need].sum())
        proven = safe_cost([*structure.rows, row], solved.prices, structure.cost)
        assert proven == cheapest
        assert solved.cost >= proven - 1e-6
    assert relaxation.solve([None]).cost == 0.0
