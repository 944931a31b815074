"""Noise radii: a radius ε that holds with the stated confidence, from what is known about the noise.

Deterministic: declared. Gaussian: σ(√m + √(2 log 1/δ)) by concentration, or the exact χ quantile, which is smaller.
Sub-Gaussian with independent coordinates and proxy variance σ²: σ√(m + 2√(m t) + 2t), t = log 1/δ. All are rounded up in
ball arithmetic, and `covers` is how the verifier checks one: it asks whether the radius is large enough, not how it
was found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil, log
from typing import Any

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
    CORRELATED = "correlated"
    """Gaussian, shared between rows: the variance of no direction is above σ². Such noise is inside the χ quantile as well."""

    @property
    def random(self) -> bool:
        return self not in (NoiseKind.NONE, NoiseKind.DETERMINISTIC)


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
    if kind in (NoiseKind.CHI, NoiseKind.CORRELATED):
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
        if kind in (NoiseKind.CHI, NoiseKind.CORRELATED):
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


@dataclass(frozen=True, slots=True)
class AnswerNoise:
    """Answers that scatter: n with a standard deviation per node. ‖Bn‖ ≤ image and ‖n_D‖ ≤ own, both, with probability `confidence`."""

    nodes: Mapping[str, float]
    """Node id to the standard deviation of each coordinate of its answer, repeats taken into account."""
    image: float
    own: float
    confidence: float


def scattered(squares: arb, norm2: arb, confidence: float) -> arb:
    """‖A‖_F + ‖A‖·√(2t), t = log 2/(1 − confidence): the length of An, n standard normal, is below that in all but half of 1 − confidence.

    ‖An‖ is ‖A‖-Lipschitz in n and has mean at most ‖A‖_F; two such statements together have the confidence.
    """
    t = -((arb(fmpq(1) - rational(confidence)) / 2).log())
    return squares.sqrt() + (2 * t * norm2).sqrt()


def covers_answers(claim: AnswerNoise, columns: Callable[[str], Any], delivered: Collection[str]) -> bool:
    """Are both radii large enough, for certain? `columns` gives the columns of B of a node, as a sparse matrix."""
    before = ctx.prec
    ctx.prec = PRECISION
    try:
        total, tallest, rows = fmpq(0), fmpq(0), dict[int, fmpq]()
        own, widest = fmpq(0), fmpq(0)
        for name, deviation in claim.nodes.items():
            part, size = columns(name).tocsc(), rational(deviation)
            if name in delivered:
                own, widest = own + part.shape[1] * size * size, max(widest, size * size)
            for column in range(part.shape[1]):
                height = fmpq(0)
                span = slice(int(part.indptr[column]), int(part.indptr[column + 1]))
                for row, value in zip(part.indices[span].tolist(), part.data[span].tolist(), strict=True):
                    entry = abs(rational(value)) * size
                    total, height = total + entry * entry, height + entry
                    rows[row] = rows.get(row, fmpq(0)) + entry
                tallest = max(tallest, height)
        norm2 = min(total, tallest * max(rows.values(), default=fmpq(0)))  # ‖A‖² ≤ ‖A‖₁‖A‖_∞
        image = scattered(arb(total), arb(norm2), claim.confidence)
        alone = scattered(arb(own), arb(widest), claim.confidence)
        return bool(arb(rational(claim.image)) >= image and arb(rational(claim.own)) >= alone)
    finally:
        ctx.prec = before


def inflation(*, rows: int, repeats: int, confidence: float) -> float:
    """c with Σ ⪯ c·Σ̂ in all but 1 − confidence of the logs: Σ̂ is the sample covariance of so many Gaussian repeats of these rows.

    One row: the χ² quantile. More: the smallest eigenvalue of a Wishart matrix is at least (1 − √(m/ν) − √(2t/ν))², ν = repeats − 1.
    InputError where there are too few repeats for any c.
    """
    degrees = repeats - 1
    if rows == 1 and degrees >= 1:
        from scipy.stats import chi2

        guess = float(degrees / chi2.ppf(1.0 - confidence, degrees))
    else:
        root = 1.0 - (rows / max(degrees, 1)) ** 0.5 - (-2.0 * log(1.0 - confidence) / max(degrees, 1)) ** 0.5
        if degrees < 1 or root <= 1e-3:
            least = ceil((rows**0.5 + (-2.0 * log(1.0 - confidence)) ** 0.5) ** 2) + 2
            raise InputError(
                f"{repeats} repeats are too few to bound the covariance of {rows} rows; take at least {least}"
            )
        guess = 1.0 / root**2
    step = 1e-15
    while not covers_estimate(guess, rows=rows, repeats=repeats, confidence=confidence):
        guess *= 1.0 + step
        step *= 2.0
    return guess


def covers_estimate(factor: float, *, rows: int, repeats: int, confidence: float) -> bool:
    """Is that factor large enough, for certain?"""
    before = ctx.prec
    ctx.prec = PRECISION
    try:
        degrees, missed = arb(repeats - 1), arb(fmpq(1) - rational(confidence))
        if repeats < 2 or factor < 1.0:
            return False
        if rows == 1:
            below = (degrees / (2 * arb(rational(factor)))).gamma_lower(degrees / 2, regularized=1)
            return bool(below <= missed)
        root = 1 - (arb(rows) / degrees).sqrt() - (-2 * missed.log() / degrees).sqrt()
        return bool(root > 0 and arb(rational(factor)) * root * root >= 1)
    finally:
        ctx.prec = before


def joint_confidence(*confidences: float | None) -> float | None:
    """Union bound over the statements that are random; None when none is. Rounded down."""
    random = [Fraction(c) for c in confidences if c is not None]
    if not random:
        return None
    from rrf_design.certificates.checker.exact import float_down

    return max(0.0, float_down(1 - sum((1 - c for c in random), Fraction(0))))
