"""A problem as planners see it: what is in a design, what it is worth, and that every witness is
linear in the choice.

Plans under a premise: the best of all designs by plain enumeration, and never called optimal
without being it.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from small import random_problem

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.planning import evaluator as module
from rrf_design.planning.contract import Objective
from rrf_design.planning.evaluator import Evaluator, _choose_objective

FEATURES = [(), ("dims",), ("nodes",), ("noise", "dims"), ("radii",)]


def masks(evaluator: Evaluator) -> list[np.ndarray]:
    """Every design that is closed under what its purchases need."""
    every = (np.array(bits, dtype=bool) for bits in product([False, True], repeat=len(evaluator.market.items)))
    return [mask for mask in every if (evaluator.market.close(mask) == mask).all()]


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_what_is_active_and_open_is_what_the_design_holds(features):
    evaluator = Evaluator(random_problem(3, features=features, blocks=5))
    for mask in masks(evaluator):
        names = set(evaluator.market.names(mask))
        opened = {evaluator.operator.node_ids[i] for i in np.flatnonzero(evaluator.opened(mask))}
        active = {evaluator.operator.block_ids[j] for j in np.flatnonzero(evaluator.active(mask))}
        assert opened == {node.id for node in evaluator.problem.nodes if node.cost is None or node.id in names}
        assert active == {
            block.id
            for block in evaluator.problem.blocks
            if (block.owned or block.id in names) and opened.issuperset(block.nodes)
        }


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_table_and_engine_give_one_value(features, monkeypatch):
    problem = random_problem(5, features=features, blocks=4)
    small = Evaluator(problem)
    assert small.table is not None
    monkeypatch.setattr(module, "TABLE_SUPPORTS", 0)
    large = Evaluator(problem)
    assert large.table is None
    for mask in masks(small):
        assert small.value(mask) == pytest.approx(large.value(mask), rel=1e-6, abs=1e-9)
        if small.opened(mask).any() and not small.robust:
            assert small.confirm(mask).value == pytest.approx(small.value(mask), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
def test_a_witness_is_a_linear_function_of_the_choice(features):
    """‖B(x)h‖² = what owned blocks see of h plus what bought ones do, and the energies are never
    negative.
    """
    evaluator = Evaluator(random_problem(8, features=features, blocks=5))
    dense = evaluator.operator.matrix.toarray()
    for mask in masks(evaluator)[::5]:
        for witness in evaluator.evaluate(mask, count=3).witnesses:
            energies = evaluator.energies(witness)
            h = np.zeros(dense.shape[1])
            h[evaluator.columns_of(witness.support)] = witness.vector
            assert np.linalg.norm(witness.vector) == pytest.approx(1.0)
            for other in masks(evaluator)[::7]:
                rows = dense[evaluator.rows(evaluator.active(other))]
                assert energies[evaluator.active(other)].sum() == pytest.approx(np.square(rows @ h).sum(), abs=1e-12)
            assert evaluator.witness_names(witness).keys() == {evaluator.operator.node_ids[i] for i in witness.support}


def test_weights_and_grams_are_those_of_the_blocks():
    evaluator = Evaluator(random_problem(8, features=("dims",), blocks=5))
    dense = evaluator.operator.matrix.toarray()
    columns = np.arange(dense.shape[1])
    for j in range(len(evaluator.block_nodes)):
        rows = dense[evaluator.operator.block_offsets[j] : evaluator.operator.block_offsets[j + 1]]
        assert evaluator.weights[j] == pytest.approx(np.square(rows).sum())
        np.testing.assert_allclose(evaluator.block_gram(j, columns), rows.T @ rows, atol=1e-14)
        assert all(j in evaluator.touching[i] for i in evaluator.block_nodes[j])
    assert evaluator.scale == pytest.approx(np.sqrt(np.square(dense).sum(axis=0).max()))


def test_nothing_asked_is_worth_nothing():
    problem = rrf.Problem(nodes=[{"id": "a", "cost": 1.0}], anchors=[{"id": "x", "node": "a"}])
    evaluator = Evaluator(problem)
    assert evaluator.value(evaluator.market.empty()) == 0.0
    assert evaluator.evaluate(evaluator.market.empty()).witnesses == ()


def test_the_objective_is_what_a_goal_is_held_against():
    plain, noisy, robust = (random_problem(1, features=features) for features in ((), ("noise",), ("radii",)))
    assert _choose_objective(plain, None) is Objective.GAMMA
    assert _choose_objective(noisy, None) is Objective.GAMMA_SIGMA
    assert _choose_objective(robust, None) is Objective.ROBUST
    assert _choose_objective(robust, "gamma") is Objective.GAMMA
    with pytest.raises(InputError, match="objective: 'sigma' is not one of gamma, gamma_sigma, robust"):
        _choose_objective(plain, "sigma")
    assert not Evaluator(robust, objective="gamma").robust
    assert Evaluator(robust).robust


def generated(seed: int) -> rrf.Problem | None:
    """A few questions and checks on sale, under units, delivered values, suspect checks, or several
    of these.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5))
    nodes: list[dict[str, Any]] = [{"id": f"n{i}"} for i in range(n)]
    for i, node in enumerate(nodes):
        if rng.random() < 0.5:
            node["unit"] = f"u{rng.integers(2)}"
        if i and rng.random() < 0.2:
            node["cost"] = float(rng.integers(0, 3))
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    relations: list[dict[str, Any]] = [
        {"id": f"r{i}{j}", "tail": f"n{j}", "head": f"n{i}", "transport": {"scale": float(rng.choice([1, 2, -1]))}}
        for i, j in pairs
    ]
    anchors: list[dict[str, Any]] = [
        {"id": f"a{i}", "node": f"n{i}", "cost": float(rng.integers(1, 4))} for i in range(n) if rng.random() < 0.7
    ]
    for block in relations:
        if rng.random() < 0.4:
            block["cost"] = float(rng.integers(1, 4))
    settings: dict[str, Any] = {}
    if rng.random() < 0.5:
        settings["deliver"] = [f"n{rng.integers(n)}"]
    if rng.random() < 0.5:
        settings["wrong_checks"] = 1
        for block in (*relations, *anchors):
            if rng.random() < 0.5:
                block["trusted"] = True
    if rng.random() < 0.3:
        for block in anchors:
            if "trusted" not in block:
                block["uncertainty"] = 0.02
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, **settings)
    few = len(problem.resolve("all")) <= 6
    return problem if few and not problem.structure.operator.premise.plain else None


def designs(problem: rrf.Problem) -> list[tuple[float, float]]:
    """Cost and value of every design, each margin by itself."""
    market, found = problem.structure.market, []
    evaluator = Evaluator(problem)
    items = problem.resolve("all")
    for size in range(len(items) + 1):
        for chosen in combinations(items, size):
            mask = market.mask(chosen)
            if (market.close(mask) == mask).all():
                margin = evaluator.problem.design(chosen).margin()
                value = margin.value
                if evaluator.objective == "robust":
                    value = min(value, evaluator.problem.design(chosen).robust_lower(margin))
                found.append((float(market.cost(mask)), value))
    return found


@pytest.mark.parametrize("block", range(4))
def test_the_best_and_the_cheapest_of_all_designs(block: int) -> None:
    proven = count = 0
    for seed in range(block * 12, block * 12 + 12):
        problem = generated(seed)
        if problem is None:
            continue
        every = designs(problem)
        best = max(value for cost, value in every if cost <= 3.0)
        bought = rrf.plan(problem, budget=3.0)
        assert bought.value <= best * (1 + 1e-9) + 1e-12
        assert bought.upper_bound >= best * (1 - 1e-9) - 1e-9
        if bought.status == "optimal":
            assert bought.value == pytest.approx(best, rel=1e-6, abs=1e-9)
        reaching = [cost for cost, value in every if value >= 0.4]
        cheapest = rrf.plan(problem, target=0.4)
        if cheapest.status == "optimal":
            assert reaching
            assert cheapest.cost == pytest.approx(min(reaching))
        elif cheapest.status == "infeasible":
            assert not reaching
        assert cheapest.cost_bound is None or not reaching or cheapest.cost_bound <= min(reaching) + 1e-9
        proven += (bought.status == "optimal") + (cheapest.status != "feasible")
        count += 2
    assert proven >= 0.8 * count


def test_a_design_without_what_is_delivered_is_worth_nothing() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b", "cost": 2.0}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a"}],
        deliver=["b"],
    )
    assert rrf.plan(problem, budget=1.0).gamma == 0.0
    assert rrf.plan(problem, budget=1.0).upper_bound == 0.0
    bought = rrf.plan(problem, budget=2.0)
    assert (bought.selected, bought.status) == (("b",), "optimal")


def test_the_split_that_nobody_needs_is_not_bought() -> None:
    def field(**settings: Any) -> rrf.Problem:
        return rrf.Problem(
            nodes=[{"id": "total"}, {"id": "net"}, {"id": "tax"}],
            anchors=[
                {"id": "ledger", "node": "total"},
                {"id": "sum", "nodes": ["net", "tax", "total"], "rows": [[1.0, 1.0, -1.0]]},
                {"id": "label", "node": "net", "cost": 0.8},
            ],
            **settings,
        )

    assert rrf.plan(field(), target=0.3).selected == ("label",)
    bought = rrf.plan(field(deliver=["total"]), target=0.3)
    assert (bought.selected, bought.cost, bought.status) == ((), 0.0, "optimal")


def test_against_a_wrong_check_more_are_bought() -> None:
    anchors = [{"id": f"a{i}", "node": "n", "cost": 1.0} for i in range(4)]
    field = {"nodes": [{"id": "n"}], "anchors": anchors}
    assert rrf.plan(rrf.Problem(**field), target=0.9).cost == 1.0
    assert rrf.plan(rrf.Problem(**field, wrong_checks=1), target=0.9).cost == 3.0


def test_a_frontier_speaks_of_what_is_delivered() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        anchors=[{"id": "x", "node": "a", "cost": 1.0}, {"id": "y", "node": "b", "cost": 1.0}],
        deliver=["b"],
    )
    points = rrf.frontier(problem).points
    assert [(point.cost, point.selected) for point in points] == [(0.0, ()), (1.0, ("y",))]
