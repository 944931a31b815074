"""λ is tuned on held-out fields, and never used on one of them."""

from __future__ import annotations

import pytest

import rrf_design as rrf
from rrf_design.repairing import calibrate


def test_by_truth_and_by_residual(equality, answers):
    problem = equality("ring", k=1, epsilon=0.05)
    truth = answers(*[5.0] * 8)
    fields = [{**truth, f"n{i}": 9.0, f"n{i + 1}": 5.02} for i in range(4)]
    by_truth = calibrate(problem, fields, truths=[truth] * 4)
    by_residual = calibrate(problem, fields)
    assert by_truth.criterion == "error"
    assert by_residual.criterion == "residual"
    for found in (by_truth, by_residual):
        assert found.penalty in found.grid
        assert min(found.scores) == found.scores[found.grid.index(found.penalty)]
    fixed = rrf.repair(problem, {**truth, "n6": 1.0}, method="convex", penalty=by_truth)
    assert fixed.support == ("n6",)
    assert fixed.diagnostics.details["penalty"] == by_truth.penalty


def test_a_calibration_field_is_refused(equality, answers):
    problem = equality("star")
    found = calibrate(problem, [answers(1, 1, 4, 1)])
    with pytest.raises(rrf.Refused, match="used to calibrate"):
        rrf.repair(problem, answers(1.0, 1.0, 4.0, 1.0), method="convex", penalty=found)
    with pytest.raises(rrf.Refused, match="used to calibrate"):
        rrf_repair_many(problem, [answers(2, 1, 1, 1), answers(1, 1, 4, 1)], found)


def rrf_repair_many(problem, fields, found):
    from rrf_design.repairing import repair_many

    return repair_many(problem, fields, method="convex", penalty=found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fields": []}, "at least one held-out field"),
        ({"truths": []}, "0 truths for 1 fields"),
        ({"grid": [0.0]}, "positive numbers"),
    ],
)
def test_messages(arguments, message, equality, answers):
    fields = arguments.pop("fields", [answers(1, 1, 4, 1)])
    with pytest.raises(rrf.InputError, match=message):
        calibrate(equality("star"), fields, **arguments)
