"""Plans under a premise: the best of all designs by plain enumeration, and never called optimal without being it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.planning.arena import Arena


def generated(seed: int) -> rrf.Problem | None:
    """A few questions and checks on sale, under units, delivered values, suspect checks, or several of these."""
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
    arena = Arena(problem)
    items = problem.resolve("all")
    for size in range(len(items) + 1):
        for chosen in combinations(items, size):
            mask = market.mask(chosen)
            if (market.close(mask) == mask).all():
                margin = arena.problem.design(chosen).margin()
                value = margin.value
                if arena.objective == "robust":
                    value = min(value, arena.problem.design(chosen).robust_lower(margin))
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
