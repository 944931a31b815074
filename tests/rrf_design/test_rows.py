"""Whitening, weights and metrics of one block, against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rrf_design import InputError, Problem
from rrf_design.rows import block_rows, block_target, family_scale, spd_factor, whitener

SIGMA = [[2.0, 0.6], [0.6, 1.0]]


def anchored(block: dict[str, Any], **settings: Any) -> Problem:
    return Problem(nodes=[{"id": "n", "dim": 2}], anchors=[{"id": "a", "node": "n", **block}], **settings)


def white(block: dict[str, Any], **settings: Any) -> Any:
    problem = anchored(block, **settings)
    return whitener(problem, problem.anchors[0], 2)


def test_without_noise_nothing_is_done() -> None:
    assert white({}) is None


def test_sigma_divides() -> None:
    assert np.allclose(white({"sigma": 4}), np.eye(2) / 4)


def test_covariance_is_whitened_to_the_identity() -> None:
    w = white({"covariance": SIGMA})
    assert np.allclose(w @ np.array(SIGMA) @ w.T, np.eye(2))
    assert np.allclose(w, w.T)  # Σ^(-1/2) itself, as in the paper


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_shrinkage_is_the_papers_estimate(tau: float) -> None:
    w = white({"covariance": SIGMA}, shrinkage=tau)
    shrunk = (1 - tau) * np.array(SIGMA) + tau * np.trace(SIGMA) / 2 * np.eye(2)
    assert np.allclose(w @ shrunk @ w.T, np.eye(2))


def test_the_floor_holds_in_every_direction() -> None:
    w = white({"covariance": [[1.0, 0.0], [0.0, 1e-12]]}, variance_floor=0.25)
    assert np.allclose(w, np.diag([1.0, 2.0]))
    assert np.allclose(white({"sigma": 1e-9}, variance_floor=0.25), 2 * np.eye(2))


@pytest.mark.parametrize("settings", [{"variance_floor": 0.01}, {"shrinkage": 0.5}])
def test_floor_and_shrinkage_leave_no_direction_of_a_singular_covariance_exact(settings: dict[str, float]) -> None:
    singular = {"covariance": [[1.0, 1.0], [1.0, 1.0]]}
    assert np.linalg.norm(white(singular, **settings), 2) < np.linalg.norm(white(singular), 2) / 10


@pytest.mark.parametrize("settings", [{"variance_floor": 10.0}, {"shrinkage": 0.9}])
def test_no_floor_makes_an_indefinite_covariance_one(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match="not positive semidefinite"):
        white({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, **settings)


def test_a_metric_gives_the_declared_length() -> None:
    r = np.array([0.3, -2.0])
    for metric in (3.0, SIGMA):
        w = white({"metric": metric})
        assert (w @ r) @ (w @ r) == pytest.approx(r @ (np.array(metric) * (np.eye(2) if metric == 3.0 else 1.0)) @ r)


def test_a_family_shares_its_weight() -> None:
    entries = [{"id": f"a{i}", "node": "n", "family": "f", "weight": 3.0} for i in range(4)]
    problem = Problem(nodes=[{"id": "n"}], anchors=[*entries, {"id": "own", "node": "n", "weight": 3.0}])
    assert family_scale(problem, problem.anchors[0]) == pytest.approx(np.sqrt(3 / 4))
    assert family_scale(problem, problem.anchors[4]) == pytest.approx(np.sqrt(3))


def test_rows_of_a_relation_to_itself_are_added() -> None:
    problem = Problem(
        nodes=[{"id": "n", "dim": 2}],
        relations=[{"id": "r", "tail": "n", "head": "n", "transport": {"permute": [1, 0]}, "offset": 0.5}],
    )
    rows = block_rows(problem, problem.relations[0])
    assert np.array_equal(rows["n"], [[1, -1], [-1, 1]])
    assert np.array_equal(block_target(problem.relations[0], 2), [0.5, 0.5])


def test_an_anchor_over_several_nodes_is_cut_at_them() -> None:
    problem = Problem(
        nodes=[{"id": "p"}, {"id": "q", "dim": 2}],
        anchors=[{"id": "a", "nodes": ["q", "p"], "rows": [[1.0, 2.0, 3.0], [0.0, 0.0, 4.0]]}],
    )
    rows = block_rows(problem, problem.anchors[0])
    assert np.array_equal(rows["q"], [[1, 2], [0, 0]])
    assert np.array_equal(rows["p"], [[3], [4]])
    assert np.isnan(block_target(problem.anchors[0], 2)).all()


def test_the_factor_of_a_metric() -> None:
    factor = spd_factor(tuple(map(tuple, SIGMA)), 2, "here")
    assert np.allclose(factor @ factor.T, SIGMA)
    with pytest.raises(InputError, match="here must be 3×3"):
        spd_factor(tuple(map(tuple, SIGMA)), 3, "here")
