"""The prover against all designs, and against designs planted under its targets: below a known
margin nothing is infeasible.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from small import all_designs, best_within, cheapest_reaching, random_problem

from rrf_design.market import exact
from rrf_design.planning import Order, plan
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof.master import Answer
from rrf_design.planning.proof.prover import Prover, applies


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("features", [(), ("dims",), ("rules", "links"), ("tiers",)], ids="-".join)
def test_values_and_bounds_are_those_of_all_designs(features, k):
    for seed in range(2):
        problem = random_problem(100 * k + seed, features=features, nodes=6, blocks=8, k=k)
        designs = all_designs(problem)
        for budget in (2.0, 4.5):
            best = best_within(designs, budget)
            if best is None:
                continue
            for method in ("optimal", "witness-cuts"):
                found = plan(problem, budget=budget, method=method)
                assert found.gamma == pytest.approx(best, rel=1e-8, abs=1e-9)
                assert found.upper_bound == pytest.approx(best, rel=1e-7, abs=1e-9)
            if best > 0:
                cheap = plan(problem, target=0.95 * best, method="optimal")
                assert exact(cheap.cost) == cheapest_reaching(designs, 0.95 * best)
                assert exact(cheap.cost_bound) == exact(cheap.cost)


@pytest.mark.parametrize("seed", range(3))
def test_planted_designs_are_never_refuted(seed):
    """Ask in an order that makes rows move between targets, more than once, with money for the
    planted design and no more.
    """
    rng = np.random.default_rng(seed)
    problem = random_problem(seed + 50, nodes=8, blocks=18, k=1 + seed % 2, features=("dims",) if seed == 2 else ())
    evaluator = Evaluator(problem)
    prover = Prover(evaluator, Order())
    planted = [rng.random(len(evaluator.market.items)) < share for share in (0.5, 0.7, 0.9)]
    known = [(evaluator.value(mask), evaluator.market.cost(mask)) for mask in planted]
    fractions = [1.0, 0.3, 0.999999, 0.6, 1.0 - 1e-9, 0.3, 0.9, 1.0, 0.05]
    asked = 0
    for share in fractions:
        for value, cost in known:
            if value <= 1e-3:
                continue
            threshold = share * value * (1 - 1e-13)
            refuted, bound = prover.relax(threshold, cost, deadline=None)
            assert not refuted
            assert bound <= cost
            solved = prover._ask_master(threshold, cost, hint=None, left=None)
            assert solved.answer is Answer.FOUND
            verdict = prover.settle(threshold, cost, hint=evaluator.market.empty())
            assert not verdict.impossible
            assert verdict.reached is not None
            assert evaluator.value(verdict.reached) >= threshold
            assert evaluator.market.cost(verdict.reached) <= cost
            asked += 1
    assert asked >= len(fractions)


def test_a_whole_solution_that_misses_the_target_is_cut_off():
    """Rows are looked for between it and a fractional design; they must be missed by the solution
    itself.
    """
    cut = 0
    for seed in range(6):
        prover = Prover(Evaluator(random_problem(seed + 50, nodes=8, blocks=18, k=1 + seed % 2)), Order())
        threshold = 0.9 * prover.evaluator.value(np.ones(len(prover.evaluator.market.items), dtype=bool))
        solved = prover._ask_master(threshold, None, hint=None, left=None)
        while solved.values is not None and prover.evaluator.value(prover._design(solved.values)) < threshold:
            prover.fractional = prover.relaxation.solve(prover._rows(threshold**2))
            assert prover.separate(solved.values.astype(np.float64), threshold**2, level=threshold**2)
            rows = [row for row in prover._rows(threshold**2) if row is not None]
            assert any(row.coefficients @ solved.values[row.variables] < row.bound for row in rows)
            solved, cut = prover._ask_master(threshold, None, hint=None, left=None), cut + 1
    assert cut


def test_one_pool_serves_rising_and_falling_targets():
    problem = random_problem(12, nodes=5, blocks=9)
    designs = all_designs(problem)
    prover = Prover(Evaluator(problem), Order())
    values = sorted({round(v, 6) for _, v, _ in designs if v > 1e-3})
    for target in [*values[::2], *values[1::2][::-1], values[0]]:
        least = cheapest_reaching(designs, target * (1 - 1e-5))
        found = prover.minimise(target * (1 - 1e-5), None, None)
        assert found.bound == least == prover.evaluator.market.cost(found.mask)
        assert prover.minimise(target * (1 - 1e-5), least - Fraction(1, 100), None).impossible


def test_priced_queries_are_left_to_witness_cuts():
    assert applies(Evaluator(random_problem(1)))
    assert not applies(Evaluator(random_problem(1, features=("nodes",))))
