"""Hull rows hold for every design that reaches the target, at every target they are asked about,
and cut off what misses it.

Left sides with their bounds: kept once, raised when more is learnt, and never asked twice for
what lies between.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof import _neighbourhoods as neighbourhoods
from rrf_design.planning.proof._neighbourhoods import HOPELESS, HullPool, HullRow, Neighbourhoods, _Side
from rrf_design.problem import Problem


def every_mask(evaluator: Evaluator) -> np.ndarray:
    return np.array(list(product([False, True], repeat=len(evaluator.market.items))))


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
@pytest.mark.parametrize("short", [False, True], ids=["whole lists", "members taken for granted"])
def test_rows_hold_for_every_design_that_reaches_the_target(features, short, monkeypatch):
    if short:
        monkeypatch.setattr(neighbourhoods, "TAKEN", (0.3,))
    rng = np.random.default_rng(len(features))
    evaluator = Evaluator(random_problem(31, features=features, blocks=7, k=2))
    masks = every_mask(evaluator)
    reached = np.array([evaluator.value(mask) for mask in masks])
    targets = np.unique(reached[reached > 1e-3])[::-5]
    pool = HullPool(evaluator)
    for target in targets:
        for size in (1, 2, 3, 4, 5, 6):  # of more than four nodes: regions of supports
            for support in combinations(range(evaluator.n), size):
                for shares in (
                    0.6 * rng.random(len(evaluator.variable)),
                    np.round(rng.random(len(evaluator.variable))),
                ):
                    row = pool.hoods[support].separate(shares, float(target**2))
                    if row is not None:
                        pool.add(row, float(target**2))
    assert len(pool.sides) > 5
    bought = masks[:, evaluator.block_item[evaluator.variable]].astype(np.int64)
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
    """With radii, for every design that reaches a target: where a mask has no room for all nodes,
    rows only ask for less.
    """
    monkeypatch.setattr(neighbourhoods, "BITS", bits)
    evaluator = Evaluator(random_problem(62, features=("radii",), blocks=7, k=2), objective="robust")
    assert evaluator.robust
    masks = every_mask(evaluator)
    reached = np.array([evaluator.value(mask) for mask in masks])
    bought = masks[:, evaluator.block_item[evaluator.variable]].astype(np.int64)
    rng, pool = np.random.default_rng(3), HullPool(evaluator)
    for target in np.unique(reached[reached > 1e-3])[::-7]:
        for support in (some for size in (1, 2, 3, 4) for some in combinations(range(evaluator.n), size)):
            assert len(pool.hoods[support].spread.supports) == (len(support) <= bits)
            row = pool.hoods[support].separate(np.round(rng.random(len(evaluator.variable))), float(target**2))
            if row is not None:
                pool.add(row, float(target**2))
        good = bought[reached >= target]
        for side, bound in zip(pool.sides, pool.bounds(float(target**2)), strict=True):
            assert (good[:, side.blocks] @ side.coefficients >= bound).all()
    assert pool.sides


def test_a_support_of_64_nodes_is_asked_as_if_nothing_were_uncertain():
    """k = 32: one node more than a mask holds.

    Half an anchor at each end misses the row that a whole one at either keeps.
    """
    problem = Problem(
        k=32,
        nodes=[{"id": f"n{i}"} for i in range(64)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}", "uncertainty": 1e-4} for i in range(63)],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in (0, 63)],
    )
    robust, plain = Evaluator(problem, objective="robust"), Evaluator(problem, objective="gamma")
    assert robust.table is None  # of all sizes from 1 to 64 there are too many, though of 64 nodes there is one
    assert plain.table is not None
    rows = [Neighbourhoods(evaluator)[tuple(range(64))].separate(np.zeros(2), 1e-4) for evaluator in (robust, plain)]
    assert all(row is not None and (row.weights.tolist(), row.bound) == ([1, 1], 1) for row in rows)


def test_a_region_asks_for_what_all_its_supports_need_together():
    """A triangle whose pairs each need an anchor: half an anchor at every node is enough for the
    pairs, but two are needed.
    """
    problem = Problem(
        k=1,
        nodes=[{"id": f"n{i}"} for i in range(3)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % 3}"} for i in range(3)],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in range(3)],
    )
    hoods = Neighbourhoods(Evaluator(problem))
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
    evaluator = Evaluator(random_problem(8, blocks=8, k=1))
    one, two = HullPool(evaluator), HullPool(evaluator)
    for support in combinations(range(evaluator.n), 2):
        for target in (0.3, 0.9):
            row = one.hoods[support].separate(0.4 * rng.random(len(evaluator.variable)), target)
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
    evaluator = Evaluator(random_problem(5, blocks=7))
    pool = HullPool(evaluator)
    hoods = Neighbourhoods(evaluator)
    for support in combinations(range(evaluator.n), 2):
        row = hoods[support].separate(np.zeros(len(evaluator.variable)), 0.5)
        if row is not None:
            pool.add(row, 0.5)
    variable_of = np.arange(len(evaluator.variable))
    for target in (0.5, 1e-8, 0.5, 1e-8):
        rows = [row for row in pool.rows(target, variable_of) if row is not None]
        assert all(row.bound >= 1 for row in rows)
        assert all(len(row.variables) == 0 or row.coefficients.any() for row in rows)


def test_only_equal_matrices_are_one_kind():
    evaluator = Evaluator(random_problem(2, blocks=9))
    for support in combinations(range(evaluator.n), 2):
        hood = Neighbourhoods(evaluator)[support]
        at = 0
        columns = evaluator.columns_of(support)
        for number, size in enumerate(hood.sizes):
            for member in hood.members[at : at + size]:
                assert np.array_equal(
                    evaluator.block_gram(int(evaluator.variable[member]), columns), hood.parts[number]
                )
            at += size


class Hood:
    """A neighbourhood whose bound at a target is what the test says; counts how often it is
    asked.
    """

    def __init__(self, support, members, bound):
        self.support, self.members, self._bound, self.asked = support, np.array(members), bound, []

    def bound(self, weights, target):
        self.asked.append(target)
        return self._bound(target)


def steps(target: float) -> int | None:
    return None if target > 9.0 else int(target)


@pytest.fixture
def pool() -> HullPool:
    return HullPool(Evaluator(random_problem(1, blocks=5)))


def test_a_bound_between_two_equal_ones_needs_no_search():
    hood = Hood((0,), [0], lambda target: 2 if target < 5.0 else steps(target))
    side = _Side(np.array([0]), np.array([1]), [(hood, np.array([1]))])
    assert [side.bound(t) for t in (1.0, 4.0, 2.0, 3.0, 7.0, 9.5, 20.0)] == [2, 2, 2, 2, 7, HOPELESS, HOPELESS]
    assert hood.asked == [1.0, 4.0, 7.0, 9.5]
    assert [target for target, _ in side.known] == [1.0, 2.0, 3.0, 4.0, 7.0, 9.5, 20.0]


def test_the_largest_bound_of_all_supports_counts():
    low, high = Hood((0,), [0], lambda target: 1), Hood((1,), [0], steps)
    side = _Side(np.array([0]), np.array([1]), [(low, np.array([1])), (high, np.array([1]))])
    assert (side.bound(3.0), side.bound(9.5)) == (3, HOPELESS)


def test_a_row_is_kept_once_and_raised_by_a_larger_bound(pool):
    weak, strong = Hood((0, 1), [4, 2], lambda target: 1), Hood((1, 2), [2, 4], lambda target: 3)
    assert pool.add(HullRow(weak, np.array([1, 2]), 1), 2.0)
    assert not pool.add(HullRow(weak, np.array([1, 2]), 1), 2.0)
    assert pool.learnt == 1
    assert pool.sides[0].blocks.tolist() == [2, 4]
    assert pool.sides[0].coefficients.tolist() == [2, 1]
    assert pool.add(HullRow(strong, np.array([2, 1]), 3), 2.0)  # the same left side, found around another support
    assert len(pool.sides) == 1
    assert pool.learnt == 2
    assert pool.bounds(2.0).tolist() == [3]
    assert pool.add(HullRow(strong, np.array([2, 1]), None), 2.5)
    assert not pool.add(HullRow(strong, np.array([2, 1]), 100), 2.5)  # nothing is larger than hopeless


def test_rows_are_cut_down_to_their_bound_and_say_nothing_at_zero(pool):
    hood = Hood((0, 1), [0, 1, 2], lambda target: int(target))
    pool.add(HullRow(hood, np.array([1, 0, 5]), 2), 2.0)
    pool.add(HullRow(Hood((3,), [0, 1, 2], lambda target: None), np.zeros(3, np.int64), None), 2.0)
    variable_of = np.array([10, 11, 12])
    row, hopeless = pool.rows(2.0, variable_of)
    assert row is not None
    assert (row.variables.tolist(), row.coefficients.tolist(), row.bound) == ([10, 12], [1, 2], 2)
    assert hopeless is not None
    assert (len(hopeless.variables), hopeless.bound) == (0, 1)  # 0 ≥ 1: no design reaches this target
    assert pool.rows(0.5, variable_of)[0] is None
