"""How good a verifier is, measured on items whose truth is known: the sigma that its anchors must
declare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rrf_design.errors import InputError


@dataclass(frozen=True, slots=True)
class VerifierCalibration:
    """How far a verifier was from known truths: declare `sigma` in its anchors."""

    sigma: float
    """Upper confidence limit of the root mean square error, bias included."""
    rms: float
    bias: float
    count: int
    unread: int


def calibrate(errors: Sequence[float], *, unread: int = 0, confidence: float = 0.95) -> VerifierCalibration:
    """Measure a verifier from its errors (verdict minus truth) on items whose truth is known.

    The bound treats the errors as centred Gaussians of unknown variance: sum of squares over a
    chi-square quantile.
    """
    if len(errors) < 2:
        raise InputError("calibration needs at least two verdicts with known truth")
    if not all(map(math.isfinite, errors)):
        raise InputError(
            "an error of the verifier is not a finite number; count verdicts that could not be read as unread"
        )
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {confidence:g}; it lies strictly between 0 and 1")
    from scipy.stats import chi2

    squares = math.fsum(error * error for error in errors)
    quantile = float(chi2.ppf(1.0 - confidence, len(errors)))
    return VerifierCalibration(
        sigma=math.sqrt(squares / quantile),
        rms=math.sqrt(squares / len(errors)),
        bias=math.fsum(errors) / len(errors),
        count=len(errors),
        unread=unread,
    )
