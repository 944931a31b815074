"""A problem as planners see it: what is in a design, what it is worth, and that every witness is linear in the choice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from small import random_problem

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.planning import arena as module
from rrf_design.planning.arena import Arena, choose_objective
from rrf_design.planning.contract import Objective

FEATURES = [(), ("dims",), ("nodes",), ("noise", "dims"), ("radii",)]


def masks(arena: Arena) -> list[np.ndarray]:
    """Every design that is closed under what its purchases need."""
    every = (np.array(bits, dtype=bool) for bits in product([False, True], repeat=len(arena.market.items)))
    return [mask for mask in every if (arena.market.close(mask) == mask).all()]


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_what_is_active_and_open_is_what_the_design_holds(features):
    arena = Arena(random_problem(3, features=features, blocks=5))
    for mask in masks(arena):
        names = set(arena.market.names(mask))
        opened = {arena.operator.node_ids[i] for i in np.flatnonzero(arena.opened(mask))}
        active = {arena.operator.block_ids[j] for j in np.flatnonzero(arena.active(mask))}
        assert opened == {node.id for node in arena.problem.nodes if node.cost is None or node.id in names}
        assert active == {
            block.id
            for block in arena.problem.blocks
            if (block.owned or block.id in names) and opened.issuperset(block.nodes)
        }


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_table_and_engine_give_one_value(features, monkeypatch):
    problem = random_problem(5, features=features, blocks=4)
    small = Arena(problem)
    assert small.table is not None
    monkeypatch.setattr(module, "TABLE_SUPPORTS", 0)
    large = Arena(problem)
    assert large.table is None
    for mask in masks(small):
        assert small.value(mask) == pytest.approx(large.value(mask), rel=1e-6, abs=1e-9)
        if small.opened(mask).any() and not small.robust:
            assert small.confirm(mask).value == pytest.approx(small.value(mask), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
def test_a_witness_is_a_linear_function_of_the_choice(features):
    """‖B(x)h‖² = what owned blocks see of h plus what bought ones do, and the energies are never negative."""
    arena = Arena(random_problem(8, features=features, blocks=5))
    dense = arena.operator.matrix.toarray()
    for mask in masks(arena)[::5]:
        for witness in arena.evaluate(mask, count=3).witnesses:
            energies = arena.energies(witness)
            h = np.zeros(dense.shape[1])
            h[arena.columns_of(witness.support)] = witness.vector
            assert np.linalg.norm(witness.vector) == pytest.approx(1.0)
            for other in masks(arena)[::7]:
                rows = dense[arena.rows(arena.active(other))]
                assert energies[arena.active(other)].sum() == pytest.approx(np.square(rows @ h).sum(), abs=1e-12)
            assert arena.witness_names(witness).keys() == {arena.operator.node_ids[i] for i in witness.support}


def test_weights_and_grams_are_those_of_the_blocks():
    arena = Arena(random_problem(8, features=("dims",), blocks=5))
    dense = arena.operator.matrix.toarray()
    columns = np.arange(dense.shape[1])
    for j in range(len(arena.block_nodes)):
        rows = dense[arena.operator.block_offsets[j] : arena.operator.block_offsets[j + 1]]
        assert arena.weights[j] == pytest.approx(np.square(rows).sum())
        np.testing.assert_allclose(arena.block_gram(j, columns), rows.T @ rows, atol=1e-14)
        assert all(j in arena.touching[i] for i in arena.block_nodes[j])
    assert arena.scale == pytest.approx(np.sqrt(np.square(dense).sum(axis=0).max()))


def test_nothing_asked_is_worth_nothing():
    problem = rrf.Problem(nodes=[{"id": "a", "cost": 1.0}], anchors=[{"id": "x", "node": "a"}])
    arena = Arena(problem)
    assert arena.value(arena.market.empty()) == 0.0
    assert arena.evaluate(arena.market.empty()).witnesses == ()


def test_the_objective_is_what_a_goal_is_held_against():
    plain, noisy, robust = (random_problem(1, features=features) for features in ((), ("noise",), ("radii",)))
    assert choose_objective(plain, None) is Objective.GAMMA
    assert choose_objective(noisy, None) is Objective.GAMMA_SIGMA
    assert choose_objective(robust, None) is Objective.ROBUST
    assert choose_objective(robust, "gamma") is Objective.GAMMA
    with pytest.raises(InputError, match="objective: 'sigma' is not one of gamma, gamma_sigma, robust"):
        choose_objective(plain, "sigma")
    assert not Arena(robust, objective="gamma").robust
    assert Arena(robust).robust
