"""Rows of the pool in whole numbers: every design that reaches the target keeps all of them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.cuts import SCALE, Row, _covering, _keep_stronger
from rrf_design.planning.proof.program import MarketRows
from rrf_design.planning.supports import Witness

FEATURES = [(), ("dims",), ("nodes",), ("noise",), ("radii",), ("radii", "nodes")]


def closed(arena: Arena) -> list[np.ndarray]:
    every = (np.array(bits, dtype=bool) for bits in product([False, True], repeat=len(arena.market.items)))
    return [m for m in every if (arena.market.close(m) == m).all() and arena.opened(m).any()]


def values_of(arena: Arena, structure: MarketRows, mask: np.ndarray) -> np.ndarray:
    values = np.zeros(structure.variables, dtype=np.int64)
    values[: len(mask)] = mask
    for number, block in enumerate(structure.waiting):
        values[len(mask) + number] = arena.active(mask)[block]
    return values


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_rows_hold_for_whatever_reaches_the_target_and_bounds_for_everything(features):
    arena = Arena(random_problem(31, features=features, blocks=6))
    structure, designs = MarketRows(arena), closed(arena)
    for mask in designs[::3]:
        for witness in arena.evaluate(mask, count=4).witnesses:
            arena.pool.add(witness, mask, master=True)
    reached = np.array([arena.value(mask) for mask in designs])
    bounds = arena.pool.bounds(np.array(designs))
    assert (reached**2 <= bounds * (1 + 1e-9) + 1e-12).all()
    cut = 0
    for target in np.unique(reached[reached > 1e-6])[::-3]:
        rows = arena.pool.rows(float(target**2), structure.variable_of)
        for mask, value in zip(designs, reached, strict=True):
            values = values_of(arena, structure, mask)
            kept = all(int(row.coefficients @ values[row.variables]) >= row.bound for row in rows)
            assert kept or value < target
            cut += not kept
    assert cut > 0


def test_a_witness_is_kept_once_and_the_master_gets_it_when_it_is_told_to():
    arena = Arena(random_problem(1, blocks=5))
    witness = arena.evaluate(arena.market.empty(), count=1).witnesses[0]
    assert arena.pool.add(witness)
    assert arena.pool.rows_known == 0
    assert not arena.pool.add(Witness(witness.support, -witness.vector, 0.0), master=True)
    assert arena.pool.rows_known == 1
    energies, owned = arena.pool.stacked()
    assert energies.shape == (1, len(arena.variable))
    assert owned[0] + energies[0].sum() == pytest.approx(arena.energies(witness).sum())


def test_an_empty_pool_says_nothing():
    arena = Arena(random_problem(1, blocks=4))
    assert np.isinf(arena.pool.bounds(np.zeros((2, len(arena.market.items)), dtype=bool))).all()
    assert arena.pool.rows(1.0, np.arange(len(arena.variable))) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_covering_row_in_whole_numbers_is_never_stronger_than_the_real_one(seed):
    rng = np.random.default_rng(seed)
    energies = np.where(rng.random(6) < 0.3, 1e-14, rng.random(6))
    if seed % 2:
        energies[0] = -0.3
    need = 1.1
    row = _covering(energies, need, (), np.arange(6))
    for chosen in (np.array(bits) for bits in product([0, 1], repeat=6)):
        if energies @ chosen >= need:
            assert row.coefficients @ chosen[row.variables] >= row.bound
    assert row.coefficients.max() <= 2 * SCALE
    gated = _covering(energies, need, (6, 7), np.arange(6))
    for chosen in (np.array(bits) for bits in product([0, 1], repeat=8)):
        if not chosen[6:].all():
            assert gated.coefficients @ chosen[gated.variables] >= gated.bound  # switched off


def test_of_equal_left_sides_the_largest_bound_stays():
    rows: dict[bytes, Row] = {}
    one, two = np.array([0, 1]), np.array([1, 1])
    for bound in (1, 3, 2):
        _keep_stronger(rows, Row(one, two, bound))
    _keep_stronger(rows, Row(one, np.array([1, 2]), 1))
    assert sorted(row.bound for row in rows.values()) == [1, 3]


def test_hull_rows_join_the_witnesses():
    arena = Arena(random_problem(31, blocks=6))
    shares = np.zeros(len(arena.variable))
    everything = arena.value(np.ones(len(arena.market.items), dtype=bool))
    added = [
        arena.pool.add_hull(s, shares, everything**2) for s in combinations(range(arena.n), min(arena.size, arena.n))
    ]
    assert any(added)
    assert arena.pool.rows_known > 0
    full = np.ones(len(arena.variable))
    assert not any(arena.pool.add_hull(s, full, 0.25 * everything**2) for s in combinations(range(arena.n), 2))
