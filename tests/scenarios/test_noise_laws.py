from __future__ import annotations

import math

import numpy as np
import pytest

from scenarios import noise_laws
from scenarios.noise_laws import shared
from solvers import margin


def test_rows_as_one_block_have_the_margin_of_the_matrix() -> None:
    matrix = noise_laws.rows()
    assert noise_laws.field(matrix).margin().value == pytest.approx(margin(matrix, k=1).value)
    sigma = np.diag(np.linspace(1.0, 2.0, len(matrix)))
    slow = margin(np.linalg.inv(np.sqrt(sigma)) @ matrix, k=1).value
    assert noise_laws.field(matrix, sigma).margin().value == pytest.approx(slow)


def test_every_law_has_unit_variance_but_the_median_less() -> None:
    rng = np.random.default_rng(0)
    spread = {law: float(noise_laws.draw(law, (4000, 10), rng).std()) for law in noise_laws.LAWS}
    assert all(spread[law] == pytest.approx(1.0, abs=0.1) for law in noise_laws.LAWS[:-1])
    assert spread[noise_laws.LAWS[-1]] < 0.5


def test_two_checks_are_worth_what_their_covariance_says() -> None:
    """a² = 1ᵀΣ⁻¹1 = 2/(1 + ρ) in the paper's two-node formula."""
    found = noise_laws.whitening(0.5, trials=100, seed=0)
    a2 = 2 / 1.5
    assert found["margin"] == pytest.approx(math.sqrt((2 + a2 - math.sqrt(a2**2 + 4)) / 2))
    assert found["margin_of_one_check"] < found["margin"] < found["margin_if_independent"]


def test_the_two_points_are_no_easier_than_the_bound() -> None:
    found = noise_laws.lower_bound(1.0, trials=1000, seed=0)
    assert found["least_over_bound"] >= 1
    assert found["lower_bound"] == 0.125


def test_radii_cover_bounded_noise_and_the_tail_bound_holds() -> None:
    assert noise_laws.coverage("signs", 0.01, trials=200, seed=0)["outside"] == 0
    assert noise_laws.tail(trials=10, seed=1)["broken"] == 0


def test_noise_that_blocks_share_is_covered_whatever_is_held() -> None:
    found = shared.batch(range(12))
    assert found["held"] > 60
    assert found["singular"] > 0
    assert found["uncovered"] == found["wrong"] == found["above"] == 0


def test_the_oracle_sees_what_is_not_covered() -> None:
    sigma = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert not shared.at_most_identity(np.eye(2), sigma)
    assert shared.at_most_identity(np.eye(2) / np.sqrt(1.5), sigma)
    assert not shared.at_most_identity(np.eye(2) / np.sqrt(1.4999), sigma)


def test_only_the_aware_radius_holds() -> None:
    found = shared.coverage(0.9, trials=2000, seed=0)
    assert found["outside"] <= found["allowed"] < found["outside_if_taken_for_independent"]
