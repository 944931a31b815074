"""Group spark, and gauge directions by component with holonomy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from solvers import gauge_directions, group_spark, margin


def test_spark_decides_the_margin():
    chain = np.diff(np.eye(5), axis=0)
    spark = group_spark(chain)
    assert spark.value == 5
    assert not margin(chain, k=2).zero
    assert margin(chain, k=3).zero
    assert np.allclose(chain @ spark.direction, 0)


def test_spark_of_injective_matrices_is_infinite_and_zero_columns_count():
    assert group_spark(np.eye(4)).value == math.inf
    assert group_spark(np.array([[1.0, 0.0]])).value == 1
    searched = group_spark(np.diff(np.eye(6), axis=0), at_most=3)
    assert searched.value is None
    assert searched.searched == 3


def test_gauges_by_component():
    D = np.array([[-1.0, 1, 0, 0, 0], [0, 0, -2, 1, 0]])
    first, second, free = gauge_directions(D)
    assert (first.nodes, second.nodes, free.nodes) == ((0, 1), (2, 3), (4,))
    assert [g.dimension for g in (first, second, free)] == [1, 1, 1]
    assert np.allclose(D @ np.hstack([g.basis for g in (first, second, free)]), 0)
    assert second.basis[3, 0] == pytest.approx(2 * second.basis[2, 0])


def test_gauges_of_a_tall_component_take_no_more_room_than_it():
    D = np.tile([[1.0, -1.0]], (300_000, 1))  # a full U of so many rows would take 670 GiB
    (gauge,) = gauge_directions(D)
    assert np.allclose(gauge.basis[0], gauge.basis[1])


def test_holonomy_shrinks_the_gauge():
    def triangle(angle):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        eye, zero = np.eye(2), np.zeros((2, 2))
        return np.block([[-eye, eye, zero], [zero, -eye, eye], [turn, zero, -eye]])

    assert gauge_directions(triangle(0.0), [2, 2, 2])[0].dimension == 2
    assert gauge_directions(triangle(0.5), [2, 2, 2])[0].dimension == 0


def test_large_components_are_refused():
    path = sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(4000, 4001))
    with pytest.raises(ValueError, match="a component has 4001 coordinates"):
        gauge_directions(path)
