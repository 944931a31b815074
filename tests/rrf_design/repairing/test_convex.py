"""Convex repair in the user's terms; the optimisation itself is tested in tests/solvers/decoding. Λ
is tuned on held-out fields, and never used on one of them.
"""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing import calibrate


def test_positive_margin_but_convex_failure():
    """Kernel (1, 0.4, 0.4): exact repair succeeds with a guarantee, the relaxation edits two nodes
    and promises nothing.
    """
    B = np.linalg.svd(np.array([[1.0, 0.4, 0.4]]))[2][1:]
    problem = rrf.from_matrix(B, k=1)
    anchors = {"row0": 0.0, "row1": 0.0}
    responses = {"n0": 1.0, "n1": 0.0, "n2": 0.0}  # the valid field is zero
    exact = rrf.repair(problem, responses, anchors=anchors, method="exact")
    assert exact.gamma > 0
    assert exact.guaranteed
    assert exact.repaired["n0"] == pytest.approx((0.0,), abs=1e-12)
    convex = rrf.repair(problem, responses, anchors=anchors, method="convex", truth={"n0": 0.0, "n1": 0.0, "n2": 0.0})
    assert convex.support == ("n1", "n2")
    assert convex.certainty == "heuristic"
    assert not convex.guaranteed
    assert convex.failures == ("optimisation",)


def test_penalised_form(equality, answers):
    fixed = rrf.repair(equality("complete", epsilon=0.5), answers(1, 1, 4, 1), method="convex", penalty=0.1)
    assert fixed.method == "convex, penalised"
    assert fixed.diagnostics.details["penalty"] == 0.1
    assert fixed.support == ("n2",)
    assert (fixed.certainty, fixed.verdict) == (
        "bounded",
        "ambiguous",
    )  # within its bound, but others may explain it too
    wish = equality("complete", epsilon=0.5, delta=1.0)
    assert rrf.repair(wish, answers(1, 1, 4, 1), method="convex", penalty=0.1).verdict == "consistent"


def test_an_unconverged_run_says_so(equality, answers):
    fixed = rrf.repair(equality("ring", k=2), answers(1, 1, 4, 1, 1, 1, 0, 1), method="convex", max_iterations=1)
    assert not fixed.diagnostics.complete
    assert any("duality gap" in note for note in fixed.notes)


def test_weights_by_node(equality, answers):
    weights = answers(1.0, 1.0, 1.0, 1.0)
    assert rrf.repair(equality("complete"), answers(1, 1, 4, 1), method="convex", weights=weights).support == ("n2",)
    with pytest.raises(rrf.InputError, match="none for node 'n1'"):
        rrf.repair(equality("complete"), answers(1, 1, 4, 1), method="convex", weights={"n0": 1.0})


def test_radius_that_no_error_reaches():
    problem = rrf.Problem(
        nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 0.0}, {"id": "y", "node": "a", "value": 2.0}]
    )
    with pytest.raises(rrf.InputError, match="raise epsilon"):
        rrf.repair(problem, {"a": 1.0}, method="convex", epsilon=0.5)
    assert rrf.repair(problem, {"a": 1.0}, method="exact", epsilon=0.5).certainty == "unexplained"


def test_large_sparse_field_is_repaired():
    rng = np.random.default_rng(0)
    n = 400
    edges = [(i, int(j)) for i in range(n) for j in rng.choice(n, 4, replace=False) if i != j]
    problem = rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(n)],
        relations=[{"id": f"r{e}", "tail": f"n{a}", "head": f"n{b}"} for e, (a, b) in enumerate(edges)],
        k=1,
    )
    responses = {f"n{i}": 5.0 for i in range(n)}
    responses["n17"] = 9.0
    fixed = rrf.repair(problem, responses, method="convex")
    assert fixed.support == ("n17",)
    assert fixed.repaired["n17"] == pytest.approx((5.0,), abs=1e-6)


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

    return repair_many(problem, fields, method="convex", options={"penalty": found})


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
