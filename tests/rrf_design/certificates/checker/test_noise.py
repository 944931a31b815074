"""Noise radii: large enough, hardly larger, and refused when they are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi

from rrf_design.certificates.checker.noise import NoiseKind, covers, joint_confidence, radius
from rrf_design.errors import InputError

RANDOM = [NoiseKind.GAUSSIAN, NoiseKind.CHI, NoiseKind.SUBGAUSSIAN, NoiseKind.CORRELATED]


@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("rows", [1, 7, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_radii_cover_and_are_nearly_the_least(kind: NoiseKind, rows: int, confidence: float) -> None:
    epsilon = radius(kind, sigma=0.3, rows=rows, confidence=confidence)
    assert covers(kind, epsilon=epsilon, sigma=0.3, rows=rows, confidence=confidence)
    assert not covers(kind, epsilon=epsilon * (1 - 1e-9), sigma=0.3, rows=rows, confidence=confidence)


def test_the_paper_formula_and_the_exact_quantile() -> None:
    concentration = radius(NoiseKind.GAUSSIAN, sigma=2.0, rows=9, confidence=0.95)
    assert concentration == pytest.approx(2 * (3 + np.sqrt(2 * np.log(20))), rel=1e-12)
    quantile = radius(NoiseKind.CHI, sigma=2.0, rows=9, confidence=0.95)
    assert quantile == pytest.approx(2 * chi.ppf(0.95, 9), rel=1e-12)
    assert quantile < radius(NoiseKind.SUBGAUSSIAN, sigma=2.0, rows=9, confidence=0.95) < concentration


def test_simulated_gaussian_noise_stays_inside_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    norms = np.linalg.norm(rng.standard_normal((20000, 6)), axis=1)
    inside = (norms <= radius(NoiseKind.CHI, sigma=1.0, rows=6, confidence=0.9)).mean()
    assert abs(inside - 0.9) < 0.01


def test_no_rows_no_noise() -> None:
    assert radius(NoiseKind.CHI, sigma=1.0, rows=0, confidence=0.9) == 0.0


@pytest.mark.parametrize(("sigma", "confidence"), [(-1.0, 0.9), (float("nan"), 0.9), (1.0, 1.0), (1.0, 0.0)])
def test_what_is_no_noise_is_an_input_error(sigma: float, confidence: float) -> None:
    with pytest.raises(InputError, match="describe no noise"):
        radius(NoiseKind.CHI, sigma=sigma, rows=3, confidence=confidence)


def test_joint_confidence_is_a_union_bound() -> None:
    assert joint_confidence(None, None) is None
    assert joint_confidence(0.95, None) == 0.95
    joint = joint_confidence(0.95, 0.9)
    assert joint == pytest.approx(0.85)
    assert joint_confidence(0.4, 0.4) == 0.0
