"""Plans where blocks share a weight, noise, estimates or marks with others on sale, so that margins
may fall with a purchase: against every selection, each as a problem that holds nothing else.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.planning.evaluator import Evaluator

FAMILIES: tuple[dict[str, Any], ...] = (
    {"family": "f"},
    {"family": "g", "correlation": 0.4},
    {"family": "h", "correlation": 0.0},
    {},
)


def drawn(seed: int, *, marks: bool = False, radii: bool = False) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    count, items = int(rng.integers(2, 5)), int(rng.integers(3, 7))
    nodes: list[dict[str, Any]] = [{"id": f"n{i}"} for i in range(count)]
    if rng.random() < 0.25:
        nodes[-1]["cost"] = 1.0
    noisy, guessed = rng.random() < 0.4, rng.random() < 0.4
    relations, anchors = [], []
    for j in range(items + int(rng.integers(1, 4))):
        entry: dict[str, Any] = {"id": f"b{j}", **FAMILIES[int(rng.integers(len(FAMILIES)))]}
        entry |= {"cost": float(rng.integers(0, 4))} if j < items else {}
        entry |= {"sigma": float(rng.choice([0.5, 1.0]))} if noisy else {}
        entry |= {"estimated_from": int(rng.integers(20, 60))} if noisy and guessed and rng.random() < 0.5 else {}
        entry |= {"uncertainty": 0.1} if radii and rng.random() < 0.4 else {}
        mark = rng.random() if marks else 1.0
        entry |= {"trusted": False} if mark < 0.25 else {"rate": 0.1} if mark < 0.4 else {}
        if rng.random() < 0.5:
            tail, head = rng.choice(count, 2, replace=False)
            scale = {"scale": float(rng.choice([1.0, 2.0, -1.0]))}
            relations.append({**entry, "tail": f"n{tail}", "head": f"n{head}", "transport": scale})
        else:
            anchors.append({**entry, "node": f"n{int(rng.integers(count))}"})
    free = [b["id"] for b in (*relations, *anchors) if "family" not in b and noisy and "estimated_from" not in b]
    noise = [{"id": "shared", "blocks": free[:3], "correlation": 0.5}] if len(free) > 1 else []
    head: dict[str, Any] = {"wrong_checks": int(rng.integers(0, 2))} if marks else {}
    head |= {"deliver": ["n0"]} if marks and rng.random() < 0.3 else {}
    return rrf.Problem(**head, nodes=nodes, relations=relations, anchors=anchors, noise=noise)


def held_alone(problem: rrf.Problem, selected: tuple[str, ...]) -> rrf.Problem | None:
    """The problem of what is owned and selected, and of nothing else; None where nothing is asked,
    or what is to be delivered was not.
    """
    nodes = [n.model_copy(update={"cost": None}) for n in problem.nodes if n.cost is None or n.id in selected]
    names = {node.id for node in nodes}
    if not names or not names.issuperset(problem.deliver or ()):
        return None
    held: dict[str, Any] = {
        key: tuple(
            block.model_copy(update={"cost": None})
            for block in getattr(problem, key)
            if (block.owned or block.id in selected) and names.issuperset(block.nodes)
        )
        for key in ("relations", "anchors")
    }
    there = {block.id for blocks in held.values() for block in blocks}
    noise = []
    for entry in problem.noise:
        left = tuple(name for name in entry.blocks if name in there)
        noise += [entry.model_copy(update={"blocks": left})] if len(left) > 1 else []
    return problem.model_copy(update={"nodes": tuple(nodes), **held, "noise": tuple(noise)})


def listed(problem: rrf.Problem, *, robust: bool = False) -> list[tuple[float, float, tuple[str, ...]]]:
    """(cost, objective, selection) of every selection."""
    market, found = problem.structure.market, []
    for chosen in product([False, True], repeat=len(market.items)):
        mask = np.array(chosen, dtype=bool)
        if (market.close(mask) == mask).all():
            names = market.names(mask)
            alone = held_alone(problem, names)
            value = 0.0
            if alone is not None:
                margin = alone.margin()
                value = alone.design().robust_lower(margin) if robust else margin.value
            found.append((float(market.cost(mask)), value, names))
    return found


def judge(problem: rrf.Problem, seed: int, *, solver: str = "ortools", robust: bool = False) -> None:
    """Plan for a budget and for a target, and hold both against every selection."""
    rng, objective = np.random.default_rng([seed, 1]), "robust" if robust else None
    designs = listed(problem, robust=robust)
    budget = float(rng.integers(0, 8))
    best = max(value for cost, value, _ in designs if cost <= budget)
    for method in ("optimal", "greedy"):
        try:
            plan = rrf.plan(problem, budget=budget, method=method, objective=objective, front_end=solver, aim="worst")
        except rrf.BudgetError:
            return
        own = next(value for _, value, names in designs if names == plan.selected)
        assert plan.value == pytest.approx(own, rel=1e-7, abs=1e-9)
        assert plan.cost <= budget
        assert plan.upper_bound >= best * (1 - 1e-7)
        assert method == "greedy" or plan.status == "optimal"
        assert method == "greedy" or plan.value == pytest.approx(best, rel=2e-5, abs=1e-9)
    top = max(value for _, value, _ in designs)
    target = float(rng.uniform(0.3, 1.1)) * top
    if target > 1e-6 and all(abs(value / target - 1) > 1e-4 for _, value, _ in designs):
        plan = rrf.plan(problem, target=target, method="optimal", objective=objective, front_end=solver)
        costs = [cost for cost, value, _ in designs if value >= target]
        assert plan.status == ("optimal" if costs else "infeasible")
        assert not costs or plan.cost == pytest.approx(min(costs))


@pytest.mark.parametrize("seed", range(40))
def test_plans_agree_with_every_selection(seed: int) -> None:
    judge(drawn(seed), seed)


@pytest.mark.parametrize("seed", range(40, 60))
def test_so_they_do_where_checks_may_be_wrong_by_the_marks_of_what_is_held(seed: int) -> None:
    judge(drawn(seed, marks=True), seed)


@pytest.mark.parametrize("seed", range(60, 75))
def test_so_they_do_where_relations_are_uncertain(seed: int) -> None:
    judge(drawn(seed, radii=True), seed, robust=True)


@pytest.mark.parametrize("seed", range(3))
def test_so_does_the_other_front_end(seed: int) -> None:
    judge(drawn(seed), seed, solver="pulp")


@pytest.mark.parametrize("seed", range(75, 95))
def test_curves_agree_with_every_selection(seed: int) -> None:
    problem = drawn(seed, marks=seed % 4 == 0)
    designs = listed(problem)
    curve = rrf.frontier(problem)
    assert curve.complete
    for point in curve.points:
        best = max(value for cost, value, _ in designs if cost <= point.cost)
        assert point.value == pytest.approx(best, rel=2e-5, abs=1e-9)
    assert curve.points[-1].value == pytest.approx(max(value for _, value, _ in designs), rel=2e-5, abs=1e-9)


def test_a_portfolio_spends_where_it_helps_most() -> None:
    fields = [drawn(seed) for seed in (3, 4, 5)]
    every = [listed(field) for field in fields]
    found = rrf.portfolio(fields, budget=5.0)
    best = max(
        min(value for _, value, _ in picked) for picked in product(*every) if sum(cost for cost, _, _ in picked) <= 5.0
    )
    assert found.value == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_copies_on_sale_are_bought_once() -> None:
    """Four copies for 4 did what one does for 1, while all that are declared were counted."""
    anchors = [{"id": f"copy{i}", "node": "a", "family": "f", "cost": 1.0} for i in range(4)]
    relations = [{"id": "same", "tail": "a", "head": "b"}]
    problem = rrf.Problem(nodes=[{"id": "a"}, {"id": "b"}], relations=relations, anchors=anchors)
    plan = rrf.plan(problem, target=0.6)
    assert (plan.cost, plan.status) == (1.0, "optimal")


def test_copies_of_a_check_that_may_be_wrong_count() -> None:
    anchors = [{"id": f"copy{i}", "node": "a", "family": "f", "correlation": 0.0, "cost": 1.0} for i in range(4)]
    problem = rrf.Problem(wrong_checks=1, nodes=[{"id": "a"}], anchors=anchors)
    values = [problem.margin([f"copy{i}" for i in range(m)]).value for m in range(1, 5)]
    assert values == pytest.approx([0.0, 0.0, 1.0, 2**0.5])
    assert rrf.plan(problem, target=0.5).cost == 3.0


def test_shares_are_what_a_design_leaves_of_each_block() -> None:
    for seed in range(12):
        evaluator = Evaluator(drawn(seed))
        rng = np.random.default_rng(seed)
        mask = evaluator.market.close(rng.random(len(evaluator.market.items)) < 0.6)
        if not evaluator.opened(mask).any():
            continue
        operator = evaluator.design(mask).operator
        h = rng.standard_normal(operator.shape[1])
        full = dict(zip(operator.node_ids, ((float(x),) for x in h), strict=True))
        alone = np.array([evaluator.structure.energies(full)[name] for name in evaluator.operator.block_ids])
        shares = evaluator.shares(evaluator.active(mask)[None], evaluator.opened(mask)[None])[0]
        raised = alone / evaluator.structure.least * shares
        assert float(raised.sum()) == pytest.approx(float(np.square(operator.matrix @ h).sum()))
