"""Rows of the pool in whole numbers: every design that reaches the target keeps all of them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof.cuts import SCALE, CutRow, _covering, _keep_stronger
from rrf_design.planning.proof.program import MarketRows
from rrf_design.planning.supports import Witness

FEATURES = [(), ("dims",), ("nodes",), ("noise",), ("radii",), ("radii", "nodes")]


def closed(evaluator: Evaluator) -> list[np.ndarray]:
    every = (np.array(bits, dtype=bool) for bits in product([False, True], repeat=len(evaluator.market.items)))
    return [m for m in every if (evaluator.market.close(m) == m).all() and evaluator.opened(m).any()]


def values_of(evaluator: Evaluator, structure: MarketRows, mask: np.ndarray) -> np.ndarray:
    values = np.zeros(structure.variables, dtype=np.int64)
    values[: len(mask)] = mask
    for number, block in enumerate(structure.waiting):
        values[len(mask) + number] = evaluator.active(mask)[block]
    return values


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_rows_hold_for_whatever_reaches_the_target_and_bounds_for_everything(features):
    evaluator = Evaluator(random_problem(31, features=features, blocks=6))
    structure, designs = MarketRows(evaluator), closed(evaluator)
    for mask in designs[::3]:
        for witness in evaluator.evaluate(mask, count=4).witnesses:
            evaluator.pool.add(witness, mask, master=True)
    reached = np.array([evaluator.value(mask) for mask in designs])
    bounds = evaluator.pool.bounds(np.array(designs))
    assert (reached**2 <= bounds * (1 + 1e-9) + 1e-12).all()
    cut = 0
    for target in np.unique(reached[reached > 1e-6])[::-3]:
        rows = evaluator.pool.rows(float(target**2), structure.variable_of)
        for mask, value in zip(designs, reached, strict=True):
            values = values_of(evaluator, structure, mask)
            kept = all(int(row.coefficients @ values[row.variables]) >= row.bound for row in rows)
            assert kept or value < target
            cut += not kept
    assert cut > 0


def test_a_witness_is_kept_once_and_the_master_gets_it_when_it_is_told_to():
    evaluator = Evaluator(random_problem(1, blocks=5))
    witness = evaluator.evaluate(evaluator.market.empty(), count=1).witnesses[0]
    assert evaluator.pool.add(witness)
    assert evaluator.pool.rows_known == 0
    assert not evaluator.pool.add(Witness(witness.support, -witness.vector, 0.0), master=True)
    assert evaluator.pool.rows_known == 1
    energies, owned = evaluator.pool.stacked()
    assert energies.shape == (1, len(evaluator.variable))
    assert owned[0] + energies[0].sum() == pytest.approx(evaluator.energies(witness).sum())


def test_an_empty_pool_says_nothing():
    evaluator = Evaluator(random_problem(1, blocks=4))
    assert np.isinf(evaluator.pool.bounds(np.zeros((2, len(evaluator.market.items)), dtype=bool))).all()
    assert evaluator.pool.rows(1.0, np.arange(len(evaluator.variable))) == []


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
    rows: dict[bytes, CutRow] = {}
    one, two = np.array([0, 1]), np.array([1, 1])
    for bound in (1, 3, 2):
        _keep_stronger(rows, CutRow(one, two, bound))
    _keep_stronger(rows, CutRow(one, np.array([1, 2]), 1))
    assert sorted(row.bound for row in rows.values()) == [1, 3]


def test_hull_rows_join_the_witnesses():
    evaluator = Evaluator(random_problem(31, blocks=6))
    shares = np.zeros(len(evaluator.variable))
    everything = evaluator.value(np.ones(len(evaluator.market.items), dtype=bool))
    added = [
        evaluator.pool.add_hull(s, shares, everything**2)
        for s in combinations(range(evaluator.n), min(evaluator.size, evaluator.n))
    ]
    assert any(added)
    assert evaluator.pool.rows_known > 0
    full = np.ones(len(evaluator.variable))
    assert not any(evaluator.pool.add_hull(s, full, 0.25 * everything**2) for s in combinations(range(evaluator.n), 2))
