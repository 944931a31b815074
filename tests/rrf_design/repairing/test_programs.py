"""Whole programs are chosen by scaled signatures; invalid ones never count as zeros."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing import select_program
from rrf_design.repairing._repairs import _modified_tokens, _scale_problem, robust_scale


def test_the_outlier_is_not_chosen(equality, answers):
    good = (1.0, 1000.0, 0.0)
    choice = select_program(equality("complete", dim=3), answers((1.0, 1000.0, 5.0), good, good, good))
    assert choice.node == "n1"
    assert choice.equivalent == ("n2", "n3")
    assert choice.distance == pytest.approx(0.0, abs=1e-9)
    assert choice.target == pytest.approx(good)
    assert choice.repair.support == ("n0",)


def test_scaling_lets_small_coordinates_count(equality, answers):
    np.testing.assert_allclose(robust_scale(np.array([[1.0, -900.0, 0.0], [3.0, 1000.0, 0.0]])), [2.0, 950.0, 1.0])


def test_an_invalid_program_is_erased_and_never_chosen(equality, answers):
    signatures = answers({"status": "compile failure"}, (0.0, 2.0), (0.0, 2.0), (0.0, 2.0))
    choice = select_program(equality("complete", dim=2), signatures)
    assert choice.repair.erased == {"n0": "compile failure"}
    assert choice.node == "n1"
    with pytest.raises(rrf.InputError, match="no program ran"):
        select_program(equality("complete", dim=2), answers(None, None, None, None))


def test_anchor_of_the_public_reference(equality, answers):
    problem = equality("star", dim=2, anchors={0: [4.0, 40.0]})
    choice = select_program(problem, answers((4.0, 40.0), (5.0, 50.0), (4.0, 40.0), (4.0, 40.0)))
    assert choice.target == pytest.approx((4.0, 40.0))
    assert choice.repair.support == ("n1",)


def test_scaled_problem_is_the_same_problem():
    """Residual zero before exactly when residual zero after, with typed transports and anchor
    rows.
    """
    problem = rrf.Problem(
        nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}],
        relations=[{"id": "r", "tail": "a", "head": "b", "transport": {"permute": [1, 0]}, "offset": [1.0, 2.0]}],
        anchors=[
            {"id": "x", "node": "a", "rows": [[1.0, 1.0]], "value": 7.0},
            {"id": "y", "node": "b", "value": [5.0, 5.0]},
        ],
    )
    valid = {"a": np.array([3.0, 4.0]), "b": np.array([5.0, 5.0])}
    scale = np.array([2.0, 10.0])
    assert np.linalg.norm(problem.operator().syndrome(valid)) == 0.0
    scaled = _scale_problem(problem, scale)
    assert np.linalg.norm(scaled.operator().syndrome({n: v / scale for n, v in valid.items()})) < 1e-12


def test_signatures_of_one_length(answers):
    problem = rrf.Problem(nodes=[{"id": "n0", "dim": 1}, {"id": "n1", "dim": 2}])
    with pytest.raises(rrf.InputError, match="one length"):
        select_program(problem, answers(1.0, (1.0, 2.0)))


def test_modified_tokens_are_counted_after_the_choice():
    problem = rrf.Problem(
        nodes=[{"id": name} for name in "abc"],
        relations=[{"id": x + y, "tail": x, "head": y} for x, y in ("ab", "bc", "ca")],
    )
    sources = {
        "a": "def f(x):\n    return x + 2\n",
        "b": "def f(x):\n    # one more\n    return x + 1\n",
        "c": "def f(x): return x + 1",
    }
    choice = select_program(problem, {"a": [9.0], "b": [1.0], "c": [1.0]}, sources=sources)
    assert (choice.node, choice.modified_tokens) == ("b", 1)
    assert select_program(problem, {"a": [1.0], "b": [1.0], "c": [1.0]}, sources=sources).modified_tokens == 0
    assert select_program(problem, {"a": [1.0], "b": [1.0], "c": [1.0]}).modified_tokens is None


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [("", "", 0), ("x", "", 1), ("def f(:", "def f(;", 1), ("a = 'ä", "a = 'ö", 1), ("\x00", "\x00", 0)],
)
def test_tokens_of_anything(before, after, changed):
    assert _modified_tokens(before, after) == changed
