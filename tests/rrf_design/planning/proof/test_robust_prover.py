"""Proofs with radii: no design beats them, at any budget, on any visit; plans are the best of all
designs.
"""

from __future__ import annotations

import numpy as np
import pytest
from small import all_designs, best_within, cheapest_reaching, random_problem

from rrf_design.market import exact
from rrf_design.planning import Order, PlanStatus, plan
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof.master import Answer
from rrf_design.planning.proof.prover import RobustProver


def designs_of(problem, evaluator):
    return all_designs(problem, value=lambda names: evaluator.value(evaluator.market.mask(names)))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_planted_designs_are_never_refuted(seed, k):
    """Rows move between targets, more than once, with money for the planted design and no more; and
    no row cuts off a design that reaches.
    """
    problem = random_problem(seed + 60, features=("radii",), nodes=5, blocks=8, k=k)
    evaluator = Evaluator(problem, objective="robust")
    designs = designs_of(problem, evaluator)
    prover = RobustProver(evaluator, Order())
    asked = 0
    for budget in (2.0, 5.0, 3.5, 2.0, 12.0):
        best = best_within(designs, budget)
        if best <= 1e-3:
            continue
        for share in (1.0, 0.5, 0.99):
            threshold = share * best * (1 - 1e-12)
            refuted, cost = prover.relax(threshold, exact(budget), deadline=None)
            assert not refuted
            assert cost <= exact(budget)
            solved = prover._ask_master(threshold, exact(budget), hint=None, left=None)
            assert solved.answer is Answer.FOUND
            verdict = prover.settle(threshold, exact(budget), hint=evaluator.market.empty())
            assert verdict.reached is not None
            assert evaluator.value(verdict.reached) >= threshold
            asked += 1
            for _, value, names in designs:
                if value >= threshold:
                    bought = evaluator.market.mask(names)[evaluator.block_item[evaluator.variable]].astype(np.int64)
                    for side in prover.hulls.sides:
                        assert side.coefficients @ bought[side.blocks] >= side.bound(threshold**2)
        assert prover.settle(best * (1 + 1e-6), exact(budget), hint=evaluator.market.empty()).impossible
    assert asked


def test_rows_say_what_must_not_be_bought():
    prover = RobustProver(Evaluator(random_problem(62, features=("radii",), blocks=8), objective="robust"), Order())
    best = best_within(designs_of(prover.evaluator.problem, prover.evaluator), 12.0)
    assert prover.settle(best * 1.01, exact(12.0), hint=prover.evaluator.market.empty()).impossible
    assert any((side.coefficients < 0).any() for side in prover.hulls.sides)


@pytest.mark.parametrize(
    "features", [("radii",), ("radii", "dims"), ("radii", "rules"), ("radii", "tiers")], ids="-".join
)
@pytest.mark.parametrize("k", [1, 2])
def test_plans_are_the_best_of_all_designs(features, k):
    for seed in range(2):
        problem = random_problem(seed + 70 + 10 * k, features=features, blocks=7, k=k)
        evaluator = Evaluator(problem, objective="robust")
        designs = designs_of(problem, evaluator)
        for budget in (2.0, 4.5):
            best = best_within(designs, budget)
            if best is None or not evaluator.robust:
                continue
            found = plan(problem, budget=budget, method="optimal", objective="robust")
            assert found.value == pytest.approx(best, rel=1e-8, abs=1e-9)
            assert found.upper_bound == pytest.approx(best, rel=1e-6, abs=1e-9)
            if best > 1e-3:
                assert found.status is PlanStatus.OPTIMAL
                cheap = plan(problem, target=0.97 * best, method="optimal", objective="robust")
                assert exact(cheap.cost) == exact(cheap.cost_bound) == cheapest_reaching(designs, 0.97 * best)
