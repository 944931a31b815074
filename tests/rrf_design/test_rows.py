"""Rows whitened and weighted: noise within a block, in a family, across blocks."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design.rows import (
    EXACT,
    _checked_covariance,
    block_rows,
    block_target,
    correlated,
    family_scale,
    shrunk,
    spd_factor,
    whitener,
    whitening,
)

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


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0]], "anchor 'a': covariance must be 2×2, not 1×1"),
        ([[1.0, 0.5], [0.4, 1.0]], "anchor 'a': covariance is not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "anchor 'a': covariance is not positive semidefinite"),
        ([[1.0, np.nan], [np.nan, 1.0]], "anchor 'a': covariance holds a number that is not finite"),
        ([[1.0], [1.0, 2.0]], "anchor 'a': covariance must be a matrix of numbers"),
    ],
)
def test_what_is_no_covariance_is_refused_in_one_line(matrix: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _checked_covariance(matrix, rows=2, where="anchor 'a'")
    assert str(caught.value) == message


def test_noisy_directions_have_variance_one_and_exact_ones_none() -> None:
    rng = np.random.default_rng(0)
    for rank in (1, 3, 4):
        half = rng.standard_normal((4, rank))
        covariance = half @ half.T
        white = whitening(covariance, where="a")
        found = np.linalg.eigvalsh(white @ covariance @ white.T)
        np.testing.assert_allclose(found, [0.0] * (4 - rank) + [1.0] * rank, atol=1e-6)
        assert np.linalg.matrix_rank(white) == 4  # the exact rows are still there
        if rank < 4:
            sizes = np.linalg.eigvalsh(white)
            assert sizes[-1] == pytest.approx(EXACT * sizes[rank - 1], rel=1e-6)


def test_variances_near_rounding_never_come_out_above_one() -> None:
    for small in (1e-14, 4e-15, 2e-15, 1e-15, 1e-16, 0.0):
        covariance = np.diag([1.0, 3e-15, small])
        white = whitening(covariance, where="a")
        assert np.linalg.eigvalsh(white @ covariance @ white.T)[-1] <= 1 + 1e-9


def test_a_constraint_up_to_a_part_in_a_million() -> None:
    """Two labels with one and the same noise: their difference is exact, and what is left is one
    label.
    """
    pair = {"id": "a", "nodes": ["x", "y"], "rows": [[1.0, 0.0], [0.0, 1.0]], "covariance": [[1.0, 1.0], [1.0, 1.0]]}
    margin = rrf.Problem(nodes=[{"id": "x"}, {"id": "y"}], anchors=[pair]).margin().value
    # min ‖Σ^(-1/2)h‖ over unit h with h_x = h_y: (1, 1)/√2 has whitened length 1/√2
    assert margin == pytest.approx(1 / np.sqrt(2), rel=1e-6)
    with pytest.raises(InputError, match="covariance is zero; leave it out"):
        rrf.Problem(nodes=[{"id": "x"}, {"id": "y"}], anchors=[{**pair, "covariance": [[0.0, 0.0], [0.0, 0.0]]}])


def test_shrinkage_runs_from_what_was_declared_to_equal_variances() -> None:
    covariance = np.array([[1.0, 0.9], [0.9, 3.0]])
    assert shrunk(covariance, 0.0).tolist() == covariance.tolist()
    assert shrunk(covariance, 1.0).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    with pytest.raises(InputError, match="shrinkage must lie between 0 and 1"):
        shrunk(covariance, 1.5)


def family(correlation: float | None, **settings: Any) -> rrf.Problem:
    more = {} if correlation is None else {"correlation": correlation}
    anchors = [{"id": f"a{i}", "node": "x", "family": "f", "sigma": 0.5, "value": 1.0, **more} for i in range(3)]
    return rrf.Problem(nodes=[{"id": "x"}], anchors=anchors, **settings)


def test_a_family_goes_from_independence_to_copies() -> None:
    found = [family(rho).margin().value ** 2 for rho in (0.0, 0.5, 1.0, None)]
    assert found == pytest.approx([3 / 0.25, 1.5 / 0.25, 1 / 0.25, 1 / 0.25])  # m/(1 + (m − 1)ρ), and one weight shared
    assert correlated(3, 0.1) >= 1.2


def labels(**entry: Any) -> rrf.Problem:
    anchors = [{"id": f"a{i}", "node": f"n{i}", "sigma": 0.5, "value": 0.0, "cost": 1.0} for i in range(3)]
    return rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(3)],
        anchors=anchors,
        noise=[{"id": "annotator", "blocks": ["a0", "a1", "a2"], **entry}] if entry else [],
    )


@pytest.mark.parametrize("seed", range(10))
def test_raised_variances_cover_every_part_that_is_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((3, int(rng.integers(1, 4))))
    sigma = half @ half.T
    sigma *= 0.25 / np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    np.fill_diagonal(sigma, 0.25)
    problem = labels(covariance=sigma.tolist())
    for size in (1, 2, 3):
        for held in combinations(range(3), size):
            rows = problem.operator([f"a{i}" for i in held]).matrix.toarray()
            left = rows[:, list(held)]
            noise = left @ sigma[np.ix_(held, held)] @ left.T
            assert np.linalg.eigvalsh(noise)[-1] <= 1 + 1e-9


def test_a_correlation_is_the_covariance_of_equal_members() -> None:
    sigma = 0.25 * (0.6 + 0.4 * np.eye(3))
    wide, narrow = labels(covariance=sigma.tolist()), labels(correlation=0.6)
    assert wide.margin("all").value == pytest.approx(narrow.margin("all").value, rel=1e-9)
    assert narrow.margin("all").value == pytest.approx(labels().margin("all").value / np.sqrt(2.2))


def test_shared_noise_leaves_the_promised_radius_no_more_often_than_allowed() -> None:
    problem = labels(correlation=0.8)
    radius = problem.design("all").radius(problem)
    assert radius.rows.kind == "correlated"
    draws = np.random.default_rng(3).multivariate_normal(np.zeros(3), 0.25 * (0.8 + 0.2 * np.eye(3)), size=20_000)
    whitened = draws * problem.operator("all").matrix.toarray().diagonal()
    assert (np.linalg.norm(whitened, axis=1) > radius.epsilon).mean() <= 0.05


def test_one_deviation_for_all_rows_covers_what_they_share() -> None:
    alone, shared = family(None, sigma=0.1), family(0.5, sigma=0.1)
    assert shared.design().radius(shared).rows.sigma == pytest.approx(0.1 * np.sqrt(2))
    assert alone.design().radius(alone).rows.kind == "chi"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"correlation": 1.5}, "noise 'annotator': correlation must be less than or equal to 1, not 1.5"),
        ({"correlation": -0.1}, "noise 'annotator': correlation must be greater than or equal to 0, not -0.1"),
        (
            {"correlation": 0.1, "covariance": [[1.0]]},
            "noise 'annotator': give exactly one of correlation and covariance",
        ),
        ({"covariance": [[1.0]]}, "noise 'annotator': covariance must be 3×3, not 1×1"),
        (
            {"covariance": [[0.25, 0.1, 0.0], [0.0, 0.25, 0.0], [0.0, 0.0, 0.25]]},
            "noise 'annotator': covariance is not symmetric",
        ),
        (
            {"covariance": [[0.25, 1.0, 0.0], [1.0, 0.25, 0.0], [0.0, 0.0, 0.25]]},
            "noise 'annotator': covariance is not positive semidefinite",
        ),
        ({"covariance": np.eye(3).tolist()}, "noise 'annotator': its covariance of anchor 'a0' is not what that block declares"),
        ({"blocks": ["a0"], "correlation": 0.5}, "noise 'annotator': blocks must name at least two blocks, and none of them twice"),
        ({"blocks": ["a0", "b0"], "correlation": 0.5}, "noise 'annotator': unknown block 'b0'"),
    ],
)  # fmt: skip
def test_bad_entries_are_refused_in_one_line(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        labels(**entry)
    assert str(caught.value) == message


def test_other_bad_input() -> None:
    with pytest.raises(InputError, match=r"anchor 'a1': correlation 0.2 differs from 0.1 of 'a0' in the same family"):
        rrf.Problem(
            nodes=[{"id": "x"}],
            anchors=[{"id": f"a{i}", "node": "x", "family": "f", "correlation": 0.1 * (i + 1)} for i in range(2)],
        )
    with pytest.raises(InputError, match="anchor 'a': correlation speaks of the members of a family; name the family"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", "correlation": 0.1}])
    bare = [{"id": f"a{i}", "node": "x"} for i in range(2)]
    with pytest.raises(InputError, match="anchor 'a0' declares no noise of its own; give it sigma or covariance"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=bare, noise=[{"id": "n", "blocks": ["a0", "a1"], "correlation": 0.1}])
    noisy = [{**block, "sigma": 1.0} for block in bare]
    twice = [{"id": f"n{i}", "blocks": ["a0", "a1"], "correlation": 0.1} for i in range(2)]
    with pytest.raises(InputError, match="noise 'n1': 'a0' stands in noise 'n0' already; put them into one entry"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=noisy, noise=twice)
