"""Left sides with their bounds: kept once, raised when more is learnt, and never asked twice for what lies between."""

from __future__ import annotations

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.hull_pool import HOPELESS, HullPool, _Side
from rrf_design.planning.proof.neighbourhoods import HullRow


class Hood:
    """A neighbourhood whose bound at a target is what the test says; counts how often it is asked."""

    def __init__(self, support, members, bound):
        self.support, self.members, self._bound, self.asked = support, np.array(members), bound, []

    def bound(self, weights, target):
        self.asked.append(target)
        return self._bound(target)


def steps(target: float) -> int | None:
    return None if target > 9.0 else int(target)


@pytest.fixture
def pool() -> HullPool:
    return HullPool(Arena(random_problem(1, blocks=5)))


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
