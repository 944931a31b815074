"""γ − η by the engine is the minimum over all connected supports, also where couplings cancel and where lists are cut short."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from small import all_designs, best_within, random_problem

import rrf_design as rrf
from rrf_design.planning import PlanStatus, plan, robust
from rrf_design.planning.arena import Arena
from rrf_design.planning.robust import robust_floor, robust_value
from solvers import margin


def by_definition(problem: rrf.Problem, names: tuple[str, ...], k: int) -> float:
    """min over node sets of at most 2k that blocks connect of σ_min(B_S) − η_S, from the operator alone."""
    operator = problem.operator(names)
    dense = operator.matrix.toarray()
    nodes = [[operator.node_index[n] for n in problem.block_by_id[name].nodes] for name in operator.block_ids]
    graph = nx.Graph([pair for touched in nodes for pair in combinations(touched, 2)])
    graph.add_nodes_from(range(len(operator.node_ids)))
    values = []
    for size in range(1, min(2 * k, len(operator.node_ids)) + 1):
        for support in combinations(range(len(operator.node_ids)), size):
            if nx.is_connected(graph.subgraph(support)):
                columns = np.concatenate([operator.groups[i] for i in support])
                strengths = np.linalg.svd(dense[:, columns], compute_uv=False)
                sigma = strengths[-1] if len(strengths) == len(columns) else 0.0
                eta = sum(r * r for r, t in zip(operator.radii, nodes, strict=True) if set(t) & set(support))
                values.append(sigma - np.sqrt(eta))
    return float(min(values))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("features", [("radii",), ("radii", "dims"), ("radii", "nodes")], ids="-".join)
def test_value_is_the_definition(features, k):
    for seed in range(4):
        problem = random_problem(60 + seed, features=features, blocks=9)
        arena = Arena(problem, k=k, objective="robust")
        mask = arena.market.close(np.random.default_rng(seed).random(len(arena.market.items)) < 0.7)
        if not arena.opened(mask).any() or not arena.robust:
            continue
        found = robust_value(arena, mask, count=5)
        true = by_definition(problem, arena.market.names(mask), k)
        assert found.exact
        assert found.value == pytest.approx(true, abs=1e-12)
        assert found.lower <= true
        operator = problem.operator(arena.market.names(mask))
        floor = robust_floor(operator, k=k, lower=margin(operator.matrix, np.diff(operator.node_offsets), k=k).lower)
        assert floor <= max(true, 0.0) + 1e-12  # what a design is certain of, joined by certain blocks as well
        assert found.witnesses[0].value == found.value


def test_radii_of_nodes_that_nothing_joins_do_not_add_up():
    """The worst support of the plain margin may be a node with another far away: only what is joined to it makes it less certain."""
    for seed, k in ((12, 1), (33, 2)):
        problem = random_problem(seed, features=("radii", "dims") if k == 2 else ("radii",), nodes=5, blocks=7, k=k)
        arena = Arena(problem, objective="robust")
        for mask in np.random.default_rng(seed).random((20, len(arena.market.items))) < 0.5:
            found = robust_value(arena, mask)
            assert found.value == pytest.approx(by_definition(problem, arena.market.names(mask), k), abs=1e-12)


def cancelling() -> rrf.Problem:
    """Two relations between the same nodes whose couplings cancel: BᵀB is diagonal, the blocks still join a and b."""
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "plus", "tail": "a", "head": "b", "uncertainty": 0.3},
            {"id": "minus", "tail": "a", "head": "b", "transport": {"scale": -1.0}, "uncertainty": 0.3},
        ],
        anchors=[
            {"id": "on a", "node": "a", "uncertainty": 0.4},
            {"id": "on b", "node": "b", "uncertainty": 0.4},
            {"id": "on c", "node": "c", "rows": [[3.0]], "cost": 1.0},
        ],
    )


def test_couplings_that_cancel_do_not_hide_a_support():
    problem = cancelling()
    arena = Arena(problem, k=1, objective="robust")
    everything = np.ones(1, dtype=bool)
    found = robust_value(arena, everything)
    assert found.witnesses[0].support == (0, 1)
    assert found.value == pytest.approx(by_definition(problem, ("on c",), 1), abs=1e-12)
    assert found.value == pytest.approx(np.sqrt(3.0) - np.sqrt(0.5), abs=1e-12)


def test_a_list_that_is_cut_short_still_bounds_the_value(monkeypatch):
    monkeypatch.setattr(robust, "LISTED", 2)
    problem = random_problem(61, features=("radii",), blocks=9)
    arena = Arena(problem, k=2, objective="robust")
    everything = np.ones(len(arena.market.items), dtype=bool)
    found = robust_value(arena, everything)
    true = by_definition(problem, arena.market.items, 2)
    assert not found.exact
    assert found.lower <= true <= found.value + 1e-12
    assert arena.confirm_value(everything, arena.confirm(everything)) <= max(true, 0.0) + 1e-12


def test_large_fields_are_planned_with_radii_too(monkeypatch):
    monkeypatch.setattr("rrf_design.planning.arena.TABLE_SUPPORTS", 0)
    problem = random_problem(2, features=("radii",), blocks=6)
    assert Arena(problem, objective="robust").table is None
    designs = all_designs(problem, value=lambda names: max(by_definition(problem, names, problem.k), 0.0))
    found = plan(problem, budget=4.0, method="optimal", objective="robust")
    assert found.status is PlanStatus.OPTIMAL
    assert found.value == pytest.approx(best_within(designs, 4.0), rel=1e-8, abs=1e-9)
