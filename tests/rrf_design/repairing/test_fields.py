"""Tasks: syndrome, erased nodes, radius, tolerance, replaced anchor values."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing.fields import make_task, with_anchor_values


def test_syndrome_is_what_the_error_causes(equality, answers):
    """s = B y − c = B e, with e = y − z."""
    problem = equality("star", anchors={0: 5.0})
    operator = problem.operator()
    task, _ = make_task(problem, operator, answers(5, 5, 9, 5))
    np.testing.assert_allclose(task.syndrome, operator.matrix @ np.array([0.0, 0.0, 4.0, 0.0]))


def test_erased_columns_drop_out(equality, answers):
    task, field = make_task(equality("star"), equality("star").operator(), answers(5, None, 9, 5))
    assert task.erased == (1,)
    assert field.invalid == {"n1": "missing"}
    assert task.response[1] == 0.0  # a placeholder that no decoder may read


def test_tolerance_follows_the_size_of_the_numbers(equality, answers):
    small, _ = make_task(equality("star"), equality("star").operator(), answers(1, 1, 1, 1))
    large, _ = make_task(equality("star"), equality("star").operator(), answers(1e9, 1e9, 1e9, 1e9))
    assert large.tolerance == pytest.approx(1e9 * small.tolerance)


def test_anchor_values_are_weighted_and_whitened_like_their_rows():
    def build(value):
        return rrf.Problem(
            nodes=[{"id": "a", "dim": 2}],
            anchors=[
                {
                    "id": "x",
                    "node": "a",
                    "value": value,
                    "weight": 3.0,
                    "family": "f",
                    "covariance": [[2.0, 0.5], [0.5, 1.0]],
                },
                {"id": "y", "node": "a", "value": [0.0, 0.0], "weight": 3.0, "family": "f"},
            ],
        )

    replaced = with_anchor_values(build([0.0, 0.0]), build([0.0, 0.0]).operator(), {"x": [4.0, -1.0]})
    np.testing.assert_allclose(replaced.target, build([4.0, -1.0]).operator().target)


def test_an_anchor_value_must_be_finite(equality, answers):
    with pytest.raises(rrf.InputError, match="not finite"):
        rrf.repair(equality("star", anchors={0: 1.0}), answers(1, 1, 1, 1), anchors={"a0": float("nan")})


def test_confidence_is_part_of_the_reason(equality, answers):
    fixed = rrf.repair(equality("star", sigma=0.01, confidence=0.9), answers(1, 1, 5, 1))
    assert "with probability at least 0.9" in fixed.reason
    assert "probability" not in rrf.repair(equality("star", epsilon=0.01), answers(1, 1, 5, 1)).reason
