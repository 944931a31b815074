"""How good a verifier is: the error with its bias, rounded up to a confidence limit."""

from __future__ import annotations

import math

import pytest
from scipy.stats import chi2

from rrf_design.acquisition.sources import calibrate
from rrf_design.errors import InputError


def test_the_error_with_its_bias_is_rounded_up() -> None:
    found = calibrate([1.0, -1.0, 2.0, 0.0], unread=1)
    assert found.rms == pytest.approx((6 / 4) ** 0.5)
    assert found.bias == 0.5
    assert (found.count, found.unread) == (4, 1)
    assert found.sigma == pytest.approx(math.sqrt(6 / chi2.ppf(0.05, 4)))
    assert calibrate([1.0, -1.0] * 500).sigma == pytest.approx(1.0, rel=0.05)


def test_more_confidence_is_a_larger_sigma() -> None:
    sigmas = [calibrate([1.0, -2.0, 0.5], confidence=confidence).sigma for confidence in (0.5, 0.9, 0.99)]
    assert sigmas == sorted(sigmas)
    assert sigmas[0] < sigmas[-1]


@pytest.mark.parametrize(
    ("errors", "confidence", "message"),
    [
        ([1.0], 0.95, "at least two"),
        ([1.0, float("nan")], 0.95, "not a finite number"),
        ([float("inf"), 1.0], 0.95, "not a finite number"),
        ([1.0, 2.0], 1.0, "strictly between 0 and 1"),
        ([1.0, 2.0], 0.0, "strictly between 0 and 1"),
        ([1.0, 2.0], 95.0, "confidence is 95"),
    ],
)
def test_refusals(errors: list[float], confidence: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(errors, confidence=confidence)
