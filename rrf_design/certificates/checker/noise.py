"""Noise radii: a radius ε that holds with the stated confidence, from what is known about the noise.

Deterministic: declared. Gaussian: σ(√m + √(2 log 1/δ)) by concentration, or the exact χ quantile, which is smaller.
Sub-Gaussian with independent coordinates and proxy variance σ²: σ√(m + 2√(m t) + 2t), t = log 1/δ. All are rounded up in
ball arithmetic, and `covers` is how the verifier checks one: it asks whether the radius is large enough, not how it
was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from flint import arb, ctx, fmpq

from rrf_design.certificates.checker.exact import rational
from rrf_design.errors import InputError

PRECISION = 200


class NoiseKind(StrEnum):
    NONE = "none"
    """Nothing is known about the noise; only the margin is certified."""
    DETERMINISTIC = "deterministic"
    GAUSSIAN = "gaussian"
    CHI = "chi"
    SUBGAUSSIAN = "subgaussian"

    @property
    def random(self) -> bool:
        return self in (NoiseKind.GAUSSIAN, NoiseKind.CHI, NoiseKind.SUBGAUSSIAN)


@dataclass(frozen=True, slots=True)
class NoiseRadius:
    """‖ξ‖ ≤ epsilon, always (deterministic) or with probability at least `confidence`."""

    kind: NoiseKind
    epsilon: float | None
    sigma: float | None = None
    confidence: float | None = None
    rows: int = 0
    """Rows that carry noise."""
    blocks: tuple[str, ...] | None = None
    """The row blocks that carry noise; None for all."""


def radius(kind: NoiseKind, *, sigma: float, rows: int, confidence: float) -> float:
    """The radius of a random noise, rounded up so that `covers` holds."""
    if not sigma >= 0.0 or not 0.0 < confidence < 1.0 or rows < 0:
        raise InputError(f"noise: sigma = {sigma!r}, confidence = {confidence!r}, rows = {rows!r} describe no noise")
    if sigma == 0.0 or rows == 0:
        return 0.0
    if kind is NoiseKind.CHI:
        from scipy.stats import chi

        guess = float(sigma * chi.ppf(confidence, rows))
    else:
        guess = float(_formula(kind, sigma, rows, confidence).mid())
    step = 1e-15
    while not covers(kind, epsilon=guess, sigma=sigma, rows=rows, confidence=confidence):
        guess *= 1.0 + step
        step *= 2.0
    return guess


def covers(kind: NoiseKind, *, epsilon: float, sigma: float, rows: int, confidence: float) -> bool:
    """Is P(‖ξ‖ ≤ epsilon) ≥ confidence certain for this noise?"""
    if sigma == 0.0 or rows == 0:
        return epsilon >= 0.0
    before = ctx.prec
    ctx.prec = PRECISION
    try:
        if kind is NoiseKind.CHI:
            ratio = arb(rational(epsilon)) / arb(rational(sigma))
            inside = (ratio * ratio / 2).gamma_lower(arb(rows) / 2, regularized=1)
            return bool(inside >= arb(rational(confidence)))
        return bool(arb(rational(epsilon)) >= _formula(kind, sigma, rows, confidence))
    finally:
        ctx.prec = before


def _formula(kind: NoiseKind, sigma: float, rows: int, confidence: float) -> arb:
    before = ctx.prec
    ctx.prec = PRECISION
    try:
        t = -(arb(fmpq(1) - rational(confidence)).log())
        m = arb(rows)
        if kind is NoiseKind.GAUSSIAN:
            return arb(rational(sigma)) * (m.sqrt() + (2 * t).sqrt())
        return arb(rational(sigma)) * (m + 2 * (m * t).sqrt() + 2 * t).sqrt()
    finally:
        ctx.prec = before


def joint_confidence(*confidences: float | None) -> float | None:
    """Union bound over the statements that are random; None when none is. Rounded down."""
    random = [Fraction(c) for c in confidences if c is not None]
    if not random:
        return None
    from rrf_design.certificates.checker.exact import float_down

    return max(0.0, float_down(1 - sum((1 - c for c in random), Fraction(0))))
