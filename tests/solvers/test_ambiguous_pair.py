"""The pair that nobody can tell apart: both within ε of one measurement, both within their budgets,
as far apart as promised.
"""

from __future__ import annotations

import numpy as np
import pytest
from random_fields import graph_field

from solvers import delivered_margin, margin, rival_pair, suspect_margin

EPSILON, RADIUS = 0.01, 5.0


def _units(groups, vector):
    return sum(bool(np.any(vector[columns])) for columns in groups)


def _admissible(B, found, pair, epsilon):
    assert pair.residual <= epsilon + 1e-12
    for error, disturbance in ((pair.first, pair.first_disturbance), (pair.second, pair.second_disturbance)):
        assert np.linalg.norm(B @ error + disturbance - pair.measured) <= epsilon + 1e-12
        assert _units(found.groups, error) <= found.k


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("k", [1, 2])
def test_both_explain_the_measurement_and_are_as_far_apart_as_the_margin_says(seed, k):
    B = graph_field(8, np.random.default_rng(seed), anchors=0.8)
    found = margin(B, k=k)
    pair = rival_pair(B, found, epsilon=EPSILON, radius=RADIUS)
    _admissible(B, found, pair, EPSILON)
    promised = RADIUS if found.zero else min(RADIUS, 2 * EPSILON / found.value)
    assert pair.distance == pytest.approx(promised, rel=1e-9)
    assert np.linalg.norm(pair.first - pair.second) == pytest.approx(pair.distance)


def test_what_is_delivered_differs_by_the_distance():
    B = np.array([[1.0, 1.0, -1.0], [0.0, 0.0, 1.0], [0.3, 0.0, 0.0]])
    found = delivered_margin(B, None, [2], k=1)
    pair = rival_pair(B, found, epsilon=EPSILON, radius=RADIUS)
    _admissible(B, found, pair, EPSILON)
    assert abs(pair.first[2] - pair.second[2]) == pytest.approx(2 * EPSILON / found.value)
    assert pair.distance <= 2 * EPSILON / found.lower  # and never further apart than the theorem allows


def test_wrong_checks_are_shared_out_too():
    B = np.vstack([np.eye(2)] * 4 + [np.array([[1.0, -1.0]])])
    found = suspect_margin(B, k=1, suspects=1)
    pair = rival_pair(B, found, epsilon=EPSILON, radius=RADIUS)
    _admissible(B, found, pair, EPSILON)
    for disturbance in (pair.first_disturbance, pair.second_disturbance):
        assert np.count_nonzero(disturbance) <= 1
    assert np.linalg.norm(pair.first - pair.second) == pytest.approx(2 * EPSILON / found.value)


def test_at_zero_only_the_radius_limits():
    B = np.array([[-1.0, 1.0]])
    found = margin(B, k=1)
    pair = rival_pair(B, found, epsilon=0.0, radius=RADIUS)
    assert found.zero
    assert pair.distance == RADIUS
    assert pair.residual <= 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1.0, "radius": 1.0}, "epsilon: must be a finite number"),
        ({"epsilon": 1.0, "radius": 0.0}, "radius: must be a finite number above 0"),
        ({"epsilon": 1.0, "radius": np.inf}, "radius: must be a finite number above 0"),
    ],
)
def test_wrong_calls(options, message):
    B = np.eye(2)
    with pytest.raises(ValueError, match=message):
        rival_pair(B, margin(B, k=1), **options)
