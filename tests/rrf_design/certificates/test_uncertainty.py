"""Radii from calibration and parsers, and the bound per support."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.certificates.uncertainty import (
    Uncertainty,
    bootstrap_radius,
    concentration_radius,
    parser_radius,
    robust_floor,
)
from rrf_design.errors import InputError

from .conftest import make_record


def test_bootstrap_covers_the_mean_about_as_often_as_promised() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for trial in range(60):
        samples = rng.normal(1.0, 0.5, (40, 2, 2))
        reach = bootstrap_radius(samples, confidence=0.9, draws=200, seed=trial)
        inside += np.linalg.norm(samples.mean(axis=0) - 1.0, 2) <= reach
    assert inside >= 48


def test_bootstrap_is_repeatable() -> None:
    samples = np.random.default_rng(0).normal(size=(10, 1, 2))
    assert bootstrap_radius(samples, seed=1) == bootstrap_radius(samples, seed=1)


def test_concentration_shrinks_with_repeats_and_always_holds() -> None:
    rng = np.random.default_rng(0)
    samples = rng.uniform(-0.5, 0.5, (400, 2, 2))
    few, many = (concentration_radius(samples[:n], deviation=1.0, confidence=0.95) for n in (40, 400))
    assert many < few
    assert np.linalg.norm(samples.mean(axis=0), 2) <= many


def test_parser_error_rates() -> None:
    assert parser_radius(0, 100, effect=2.0, confidence=0.95) == pytest.approx(2 * (1 - 0.05 ** (1 / 100)), rel=1e-9)
    assert parser_radius(5, 5, effect=2.0) == pytest.approx(2.0)
    assert parser_radius(3, 50, effect=1.0) > 3 / 50


@pytest.mark.parametrize("call", [lambda: parser_radius(3, 2, effect=1.0), lambda: bootstrap_radius(np.zeros((2, 2)))])
def test_input_errors(call: object) -> None:
    with pytest.raises(InputError, match="uncertainty"):
        call()  # type: ignore[operator]
    with pytest.raises(InputError, match="radius of 'a'"):
        Uncertainty({"a": -1.0})
    with pytest.raises(InputError, match="confidence"):
        Uncertainty({}, confidence=1.0)


def test_the_largest_threshold_is_found() -> None:
    matrix = np.diag([1.0, 0.5, 0.9])
    record = make_record(matrix, radii=[0.5, 0.0, 0.3])
    assert robust_floor(record, 2, start=0.5) == pytest.approx(0.5, rel=1e-8)
    record = make_record(matrix, radii=[0.7, 0.0, 0.3])
    assert robust_floor(record, 2, start=0.5) == pytest.approx(0.3, rel=1e-8)
    record = make_record(matrix, radii=[2.0, 0.0, 0.3])
    assert robust_floor(record, 2, start=0.5) == 0.0
