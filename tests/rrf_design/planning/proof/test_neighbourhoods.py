"""Hull rows hold for every design that reaches the target, at every target they are asked about, and cut off what misses it."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof import neighbourhoods
from rrf_design.planning.proof.hull_pool import HOPELESS, HullPool
from rrf_design.planning.proof.neighbourhoods import Neighbourhoods
from rrf_design.problem import Problem


def every_mask(arena: Arena) -> np.ndarray:
    return np.array(list(product([False, True], repeat=len(arena.market.items))))


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
@pytest.mark.parametrize("short", [False, True], ids=["whole lists", "members taken for granted"])
def test_rows_hold_for_every_design_that_reaches_the_target(features, short, monkeypatch):
    if short:
        monkeypatch.setattr(neighbourhoods, "TAKEN", (0.3,))
    rng = np.random.default_rng(len(features))
    arena = Arena(random_problem(31, features=features, blocks=7, k=2))
    masks = every_mask(arena)
    reached = np.array([arena.value(mask) for mask in masks])
    targets = np.unique(reached[reached > 1e-3])[::-5]
    pool = HullPool(arena)
    for target in targets:
        for size in (1, 2, 3, 4, 5, 6):  # of more than four nodes: regions of supports
            for support in combinations(range(arena.n), size):
                for shares in (0.6 * rng.random(len(arena.variable)), np.round(rng.random(len(arena.variable)))):
                    row = pool.hoods[support].separate(shares, float(target**2))
                    if row is not None:
                        pool.add(row, float(target**2))
    assert len(pool.sides) > 5
    bought = masks[:, arena.block_item[arena.variable]].astype(np.int64)
    for target in [
        *targets,
        *(0.5 * (targets[1:] + targets[:-1])),
        0.1 * targets[-1],
    ]:  # re-targeted, in both directions
        good = bought[reached >= target]
        for side, bound in zip(pool.sides, pool.bounds(float(target**2)), strict=True):
            assert bound != HOPELESS or not len(good)
            assert (good[:, side.blocks] @ side.coefficients >= bound).all()


@pytest.mark.parametrize("bits", [1, 2, 63], ids="{} bits".format)
def test_rows_around_more_nodes_than_a_mask_holds_still_hold(bits, monkeypatch):
    """With radii, for every design that reaches a target: where a mask has no room for all nodes, rows only ask for less."""
    monkeypatch.setattr(neighbourhoods, "BITS", bits)
    arena = Arena(random_problem(62, features=("radii",), blocks=7, k=2), objective="robust")
    assert arena.robust
    masks = every_mask(arena)
    reached = np.array([arena.value(mask) for mask in masks])
    bought = masks[:, arena.block_item[arena.variable]].astype(np.int64)
    rng, pool = np.random.default_rng(3), HullPool(arena)
    for target in np.unique(reached[reached > 1e-3])[::-7]:
        for support in (some for size in (1, 2, 3, 4) for some in combinations(range(arena.n), size)):
            assert len(pool.hoods[support].spread.supports) == (len(support) <= bits)
            row = pool.hoods[support].separate(np.round(rng.random(len(arena.variable))), float(target**2))
            if row is not None:
                pool.add(row, float(target**2))
        good = bought[reached >= target]
        for side, bound in zip(pool.sides, pool.bounds(float(target**2)), strict=True):
            assert (good[:, side.blocks] @ side.coefficients >= bound).all()
    assert pool.sides


def test_a_support_of_64_nodes_is_asked_as_if_nothing_were_uncertain():
    """k = 32: one node more than a mask holds. Half an anchor at each end misses the row that a whole one at either keeps."""
    problem = Problem(
        k=32,
        nodes=[{"id": f"n{i}"} for i in range(64)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}", "uncertainty": 1e-4} for i in range(63)],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in (0, 63)],
    )
    robust, plain = Arena(problem, objective="robust"), Arena(problem, objective="gamma")
    assert robust.table is None  # of all sizes from 1 to 64 there are too many, though of 64 nodes there is one
    assert plain.table is not None
    rows = [Neighbourhoods(arena)[tuple(range(64))].separate(np.zeros(2), 1e-4) for arena in (robust, plain)]
    assert all(row is not None and (row.weights.tolist(), row.bound) == ([1, 1], 1) for row in rows)


def test_a_region_asks_for_what_all_its_supports_need_together():
    """A triangle whose pairs each need an anchor: half an anchor at every node is enough for the pairs, but two are needed."""
    problem = Problem(
        k=1,
        nodes=[{"id": f"n{i}"} for i in range(3)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % 3}"} for i in range(3)],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in range(3)],
    )
    hoods = Neighbourhoods(Arena(problem))
    target, shares = 1.2, np.full(3, 0.5)
    assert len(hoods[0, 1].sets) == 0
    assert all(hoods[pair].separate(shares, target) is None for pair in combinations(range(3), 2))
    triangle = hoods[0, 1, 2]
    assert triangle.sets.tolist() == [[0, 1], [0, 2], [1, 2]]
    row = triangle.separate(shares, target)
    assert row is not None
    assert row.weights.tolist() == [1, 1, 1]
    assert row.bound == 2
    assert triangle.bound(np.array([1, 1, 0]), target) == 1


def test_a_bound_asked_again_or_from_elsewhere_is_the_same():
    rng = np.random.default_rng(3)
    arena = Arena(random_problem(8, blocks=8, k=1))
    one, two = HullPool(arena), HullPool(arena)
    for support in combinations(range(arena.n), 2):
        for target in (0.3, 0.9):
            row = one.hoods[support].separate(0.4 * rng.random(len(arena.variable)), target)
            if row is not None:
                one.add(row, target)
                two.add(row, target)
    targets = [0.05, 0.2, 0.35, 0.5, 0.9, 1.5, 40.0]
    rising = [one.bounds(t).tolist() for t in targets]
    falling = [two.bounds(t).tolist() for t in reversed(targets)][::-1]
    assert rising == falling
    assert rising == [one.bounds(t).tolist() for t in targets]
    fresh = [[_search(side, t) for side in one.sides] for t in targets]
    assert rising == fresh


def _search(side, target: float) -> int:
    found = [hood.bound(weights, target) for hood, weights in side.around]
    return HOPELESS if None in found else max(found)


def test_a_row_that_asks_nothing_is_not_given_to_a_solver():
    arena = Arena(random_problem(5, blocks=7))
    pool = HullPool(arena)
    hoods = Neighbourhoods(arena)
    for support in combinations(range(arena.n), 2):
        row = hoods[support].separate(np.zeros(len(arena.variable)), 0.5)
        if row is not None:
            pool.add(row, 0.5)
    variable_of = np.arange(len(arena.variable))
    for target in (0.5, 1e-8, 0.5, 1e-8):
        rows = [row for row in pool.rows(target, variable_of) if row is not None]
        assert all(row.bound >= 1 for row in rows)
        assert all(len(row.variables) == 0 or row.coefficients.any() for row in rows)


def test_only_equal_matrices_are_one_kind():
    arena = Arena(random_problem(2, blocks=9))
    for support in combinations(range(arena.n), 2):
        hood = Neighbourhoods(arena)[support]
        at = 0
        columns = arena.columns_of(support)
        for number, size in enumerate(hood.sizes):
            for member in hood.members[at : at + size]:
                assert np.array_equal(arena.block_gram(int(arena.variable[member]), columns), hood.parts[number])
            at += size
