"""A sum suffices on all coordinates, on sets of them, and with radii part by part; what is lent
errs on the side of yes.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from uncertain_kinds import Uncertain

from solvers.kernels.covering_minimum import definite, enough, raised, suffices, unsure

ALL = np.zeros((0, 0), dtype=np.int64)


def test_definiteness_is_of_the_shifted_sum():
    one, other, work = np.eye(2), np.ones((2, 2)), np.zeros((2, 2))
    assert definite(one, other, 1.0, 0.99, work)
    assert not definite(one, other, 1.0, 1.01, work)
    assert not definite(one, other, -1.0, 0.0, work)


def test_on_sets_of_coordinates_each_is_looked_at():
    matrix, work = np.array([[1.0, 0.9], [0.9, 1.0]]), np.zeros((2, 2))
    assert enough(np.array([[0, -1], [1, -1]]), matrix, matrix, 0.0, 0.5, work)
    assert not enough(np.array([[0, -1], [0, 1]]), matrix, matrix, 0.0, 0.5, work)
    assert not enough(ALL, matrix, matrix, 0.0, 0.5, work)


def test_a_radius_raises_the_threshold_by_what_its_root_adds():
    assert raised(0.25, 0.5, 0.0) == 0.25
    assert raised(0.25, 0.5, 0.04) == pytest.approx(0.49)
    assert raised(0.25, 0.5, 0.04) <= 0.49


@pytest.mark.parametrize("seed", range(60))
def test_counts_suffice_when_every_part_they_join_reaches(seed):
    field = Uncertain(seed)
    work = np.zeros_like(field.owned)
    for counts in product(*(range(size + 1) for size in field.sizes)):
        total = field.owned + np.tensordot(np.array(counts, float), field.parts, 1)
        given = np.array(counts, dtype=np.int64)
        found = suffices(ALL, field.spread, given, len(given), total, total, 0.0, field.root**2, field.root, work)
        assert found == field.reaches(counts)
        for known in range(len(counts)):  # what comes later is lent: never a no where the whole says yes
            lent = suffices(ALL, field.spread, given, known, total, total, 0.0, field.root**2, field.root, work)
            assert lent or not found


def test_what_joins_or_is_uncertain_may_do_harm():
    spread = (np.array([1, 3, 2]), np.array([0.0, 0.0, 0.1]))
    assert [unsure(spread, k) for k in range(3)] == [False, True, True]
