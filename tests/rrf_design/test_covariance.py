"""Correlated noise: messages, whitening against its definition, families from copies to independence, noiseless rows."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.covariance import (
    checked_covariance,
    family_covariance,
    joint_covariance,
    shrinkage_sweep,
    shrunk,
    whiten,
)
from rrf_design.errors import InputError


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
def test_what_is_no_covariance_is_refused_in_one_line(matrix, message):
    with pytest.raises(InputError) as caught:
        checked_covariance(matrix, rows=2, where="anchor 'a'")
    assert str(caught.value) == message


def test_whitened_noise_is_independent_whatever_the_rank():
    rng = np.random.default_rng(0)
    for rank in (0, 1, 3, 4):
        half = rng.standard_normal((4, rank))
        covariance = half @ half.T
        rows, target = rng.standard_normal((4, 5)), rng.standard_normal(4)
        found = whiten(rows, target, covariance)
        assert found.rows.shape == (rank, 5)
        assert found.exact_rows.shape == (4 - rank, 5)
        np.testing.assert_allclose(found.back @ found.back.T, covariance, atol=1e-12)
        noise = half @ rng.standard_normal(rank)  # of that covariance
        moved = whiten(rows, target + noise, covariance)
        np.testing.assert_allclose(moved.exact_target, found.exact_target, atol=1e-7)  # never touched by noise
        inverse = np.linalg.pinv(covariance, rcond=1e-10)
        np.testing.assert_allclose(found.rows.T @ found.rows, rows.T @ inverse @ rows, rtol=1e-6, atol=1e-9)


def test_a_family_goes_from_independence_to_copies():
    sigmas = [0.5, 0.5, 0.5]
    ones = np.ones((3, 1))
    weights = []
    for correlation in (0.0, 0.5, 1.0):
        covariance = family_covariance(sigmas, correlation=correlation, where="family 'f'")
        white = whiten(ones, np.zeros(3), covariance)
        weights.append(float((white.rows.T @ white.rows)[0, 0]))
    assert weights == pytest.approx([3 / 0.25, 1.5 / 0.25, 1 / 0.25])  # m, m/(1 + (m − 1)ρ), and one weight shared
    copies = whiten(ones, np.zeros(3), family_covariance(sigmas, correlation=1.0, where="f"))
    np.testing.assert_allclose(copies.exact_rows, 0.0, atol=1e-12)  # copies agree exactly, and say nothing by it
    with pytest.raises(InputError, match="correlation must lie between 0 and 1, not 2"):
        family_covariance(sigmas, correlation=2, where="f")
    with pytest.raises(InputError, match="every sigma"):
        family_covariance([-1.0], correlation=0.0, where="f")


def test_two_anchors_of_one_annotator():
    own = [np.eye(1), 4.0 * np.eye(1)]
    joint = joint_covariance(own, {(0, 1): np.array([[1.0]])}, where="annotator")
    assert joint.tolist() == [[1.0, 1.0], [1.0, 4.0]]
    with pytest.raises(InputError, match="annotator: the covariance of blocks 0 and 1 must be 1×1"):
        joint_covariance(own, {(0, 1): np.ones((2, 1))}, where="annotator")
    with pytest.raises(InputError, match="there is no pair of blocks 1 and 0"):
        joint_covariance(own, {(1, 0): np.ones((1, 1))}, where="annotator")
    with pytest.raises(InputError, match="not positive semidefinite"):
        joint_covariance(own, {(0, 1): np.array([[3.0]])}, where="annotator")


def test_shrinkage_runs_from_what_was_declared_to_equal_variances():
    covariance = np.array([[1.0, 0.9], [0.9, 3.0]])
    assert shrunk(covariance, 0.0).tolist() == covariance.tolist()
    assert shrunk(covariance, 1.0).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    sweep = shrinkage_sweep(covariance, [0.0, 0.5, 1.0], lambda sigma: float(np.linalg.eigvalsh(sigma)[0]))
    assert [tau for tau, _ in sweep] == [0.0, 0.5, 1.0]
    assert [value for _, value in sweep] == sorted(value for _, value in sweep)
    with pytest.raises(InputError, match="shrinkage must lie between 0 and 1"):
        shrunk(covariance, 1.5)
