"""Noise radii: a radius ε that holds with the stated confidence, from what is known about the
noise.

Deterministic: declared. Gaussian: σ(√m + √(2 log 1/δ)) by concentration, or the exact χ quantile,
which is smaller. Sub-Gaussian with independent coordinates and proxy variance σ²: σ√(m + 2√(m t) +
2t), t = log 1/δ. All are rounded up in ball arithmetic, and `covers` is how the verifier checks
one: it asks whether the radius is large enough, not how it was found.

From a certified margin and such a radius follow the error bounds, 2ε'/γ and its relatives; they are
computed with outward rounding and checked exactly.

Stability: any k-sparse estimate that fits within the radius is within 2ε'/γ of the truth. ε' = ε +
‖E z*‖: the noise of the rows, and what uncertain blocks add to it, which grows with the true field
z* and not with the error. It is bounded by Σ_i w_i ‖z_i‖² with w_i = Σ η_b² over the uncertain
blocks that name node i, from bounds on the nodes' answers (`norms`) or on the whole field
(`amplitude`); without either, and with uncertain blocks, no error is promised. The minimax bracket
says that no estimator does much better.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil, log
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.checker.exact import float_down, float_up, rational, sqrt_up
from rrf_design.checker.record import OperatorRecord
from rrf_design.errors import InputError, Refused

if TYPE_CHECKING:
    from flint import arb

PRECISION = 200


class NoiseKind(StrEnum):
    NONE = "none"
    """Nothing is known about the noise; only the margin is certified."""
    DETERMINISTIC = "deterministic"
    GAUSSIAN = "gaussian"
    CHI = "chi"
    SUBGAUSSIAN = "subgaussian"
    CORRELATED = "correlated"
    """Gaussian, shared between rows: the variance of no direction is above σ².

    Such noise is inside the χ quantile as well.
    """

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
    """The radius ε of a random noise: ‖ξ‖ ≤ ε with this confidence, rounded up so that `covers`
    holds.

    Parameters
    ----------
    kind
        How the noise is distributed; deterministic noise has the radius that was declared.
    sigma
        Its standard deviation (or proxy) in each row, or in any direction where it is correlated.
    rows
        How many rows carry it.
    confidence
        The probability that it is no longer.

    Returns ------- ε: the χ quantile (chi, correlated), or σ(√m + √(2 log 1/δ)) and σ√(m + 2√(m t)
    + 2t), t = log 1/δ, for Gaussian and sub-Gaussian noise.

    >>> from rrf_design.certificates import NoiseKind, radius
    >>> round(radius(NoiseKind.CHI, sigma=0.1, rows=3, confidence=0.95), 4)
    0.2795
    """
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
    from flint import arb, ctx

    if sigma == 0.0 or rows == 0:
        return epsilon >= 0.0
    with ctx.workprec(PRECISION):
        if kind in (NoiseKind.CHI, NoiseKind.CORRELATED):
            ratio = arb(rational(epsilon)) / arb(rational(sigma))
            inside = (ratio * ratio / 2).gamma_lower(arb(rows) / 2, regularized=1)
            return bool(inside >= arb(rational(confidence)))
        return bool(arb(rational(epsilon)) >= _formula(kind, sigma, rows, confidence))


def _formula(kind: NoiseKind, sigma: float, rows: int, confidence: float) -> arb:
    from flint import arb, ctx, fmpq

    with ctx.workprec(PRECISION):
        t = -(arb(fmpq(1) - rational(confidence)).log())
        m = arb(rows)
        if kind is NoiseKind.GAUSSIAN:
            return arb(rational(sigma)) * (m.sqrt() + (2 * t).sqrt())
        return arb(rational(sigma)) * (m + 2 * (m * t).sqrt() + 2 * t).sqrt()


@dataclass(frozen=True, slots=True)
class AnswerNoise:
    """Answers that scatter: n with a standard deviation per node.

    ‖Bn‖ ≤ image and ‖n_D‖ ≤ own, both, with probability `confidence`.
    """

    nodes: Mapping[str, float]
    """Node id to the standard deviation of each coordinate of its answer, repeats taken into
    account.
    """
    image: float
    own: float
    confidence: float


def _scattered(squares: arb, norm2: arb, confidence: float) -> arb:
    """‖A‖_F + ‖A‖·√(2t), t = log 2/(1 − confidence): the length of An, n standard normal, is below
    that in all but half of 1 − confidence.

    ‖An‖ is ‖A‖-Lipschitz in n and has mean at most ‖A‖_F; two such statements together have the
    confidence.
    """
    from flint import arb, fmpq

    t = -((arb(fmpq(1) - rational(confidence)) / 2).log())
    return squares.sqrt() + (2 * t * norm2).sqrt()


def covers_answers(claim: AnswerNoise, columns: Callable[[str], Any], delivered: Collection[str]) -> bool:
    """Are both radii large enough, for certain?

    `columns` gives the columns of B of a node, as a sparse matrix.
    """
    from flint import arb, ctx, fmpq

    with ctx.workprec(PRECISION):
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
        image = _scattered(arb(total), arb(norm2), claim.confidence)
        alone = _scattered(arb(own), arb(widest), claim.confidence)
        return bool(arb(rational(claim.image)) >= image and arb(rational(claim.own)) >= alone)


def inflation(*, rows: int, repeats: int, confidence: float) -> float:
    """c with Σ ⪯ c·Σ̂ in all but 1 − confidence of the logs: Σ̂ is the sample covariance of so many
    Gaussian repeats of these rows.

    One row: the χ² quantile. More: the smallest eigenvalue of a Wishart matrix is at least (1 −
    √(m/ν) − √(2t/ν))², ν = repeats − 1. InputError where there are too few repeats for any c.
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
    from flint import arb, ctx, fmpq

    with ctx.workprec(PRECISION):
        degrees, missed = arb(repeats - 1), arb(fmpq(1) - rational(confidence))
        if repeats < 2 or factor < 1.0:
            return False
        if rows == 1:
            below = (degrees / (2 * arb(rational(factor)))).gamma_lower(degrees / 2, regularized=1)
            return bool(below <= missed)
        root = 1 - (arb(rows) / degrees).sqrt() - (-2 * missed.log() / degrees).sqrt()
        return bool(root > 0 and arb(rational(factor)) * root * root >= 1)


def joint_confidence(*confidences: float | None) -> float | None:
    """Union bound over the statements that are random; None when none is. Rounded down."""
    random = [Fraction(c) for c in confidences if c is not None]
    if not random:
        return None
    from rrf_design.checker.exact import float_down

    return max(0.0, float_down(1 - sum((1 - c for c in random), Fraction(0))))


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Separate residual tolerances of relations and anchors, for the truth and for the estimate."""

    relation_truth: float
    relation_estimate: float
    anchor_truth: float
    anchor_estimate: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise InputError(f"tolerances: {name} must be a number of at least 0, not {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Tail:
    """What an error has beyond its k largest nodes: the norm of that tail r, and the norm of its
    image Br.
    """

    norm: float
    image: float

    def __post_init__(self) -> None:
        if not (0.0 <= self.norm < float("inf") and 0.0 <= self.image < float("inf")):
            raise InputError("tail: norm and image must be numbers of at least 0")


@dataclass(frozen=True, slots=True)
class FieldBound:
    """What bounds the true field on the nodes of uncertain blocks: one norm for all, and norms of
    single nodes.
    """

    amplitude: float | None = None
    norms: Mapping[str, float] | None = None
    """Bound on ‖z_i‖ in the node's metric for every node that an uncertain block names; None where
    one is missing.
    """


def _least_spread(
    record: OperatorRecord, amplitude: float | None, norms: Mapping[str, float] | None
) -> Fraction | None:
    """The smallest bound on ‖E z*‖² that the premises imply; 0 without radii, None where they imply
    none.
    """
    uncertain = np.flatnonzero(record.radii > 0)
    if not len(uncertain):
        return Fraction(0)
    starts, touched = record.incidence.indptr, record.incidence.indices
    weights: dict[int, Fraction] = {}
    for j in uncertain:
        square = Fraction(float(record.radii[j])) ** 2
        for i in touched[starts[j] : starts[j + 1]].tolist():
            weights[i] = weights.get(i, Fraction(0)) + square
    if not weights:
        return Fraction(0)
    found = [] if amplitude is None else [Fraction(amplitude) ** 2 * max(weights.values())]
    names = {i: record.node_ids[i] for i in weights}
    if norms is not None and all(name in norms for name in names.values()):
        found.append(sum((w * Fraction(norms[names[i]]) ** 2 for i, w in weights.items()), Fraction(0)))
    return min(found, default=None)


@dataclass(frozen=True, slots=True)
class ErrorTerms:
    """What the error bounds are made from; None where nothing is known or asked."""

    lower: float
    upper: float
    epsilon: float | None
    sigma: float | None = None
    field: FieldBound = FieldBound()
    largest_error: float | None = None
    """R of the minimax theorem: no error is larger."""
    delta: float | None = None
    confidence: float | None = None
    tolerances: Tolerances | None = None
    tail: Tail | None = None
    answers: AnswerNoise | None = None


def error_section(record: OperatorRecord, terms: ErrorTerms) -> dict[str, Any]:
    """The `error` section of a certificate; every bound is rounded to the safe side."""
    square = _least_spread(record, terms.field.amplitude, terms.field.norms)
    spread = None if square is None else sqrt_up(square)
    effective = None
    if terms.epsilon is not None and spread is not None:
        image = Fraction(0 if terms.answers is None else terms.answers.image)
        effective = float_up(Fraction(terms.epsilon) + Fraction(spread) + image)
    minimax = None
    if terms.epsilon is not None and effective is not None and terms.largest_error is not None:
        largest, twice = terms.largest_error, 2 * Fraction(terms.epsilon)
        gaussian = None if terms.sigma is None else float_down(_least(largest, Fraction(terms.sigma), terms.upper) / 8)
        minimax = {
            "lower": float_down(_least(largest, twice, terms.upper) / 2),
            "upper": float_up(_least(largest, 2 * Fraction(effective), terms.lower)),
            "gaussian_lower": gaussian,
        }
    return {
        "amplitude": terms.field.amplitude,
        "norms": None if terms.field.norms is None else dict(terms.field.norms),
        "spread": spread,
        "largest_error": terms.largest_error,
        "delta": terms.delta,
        "confidence": terms.confidence,
        "effective_epsilon": effective,
        "bound": _ratio(effective, terms.lower, Fraction(0 if terms.answers is None else terms.answers.own)),
        "minimax": minimax,
        "tolerances": None if terms.tolerances is None else _with_tolerances(terms.tolerances, terms.lower),
        "tail": None if terms.tail is None else _with_tail(terms.tail, effective, terms.lower),
    }


def promised(error: Mapping[str, Any]) -> float | None:
    """The error that an `error` section promises: with small errors on all answers where it speaks
    of a tail, else 2ε'/γ.
    """
    bound: float | None = error["bound"] if error["tail"] is None else error["tail"]["bound"]
    return bound


def check_errors(document: dict[str, Any], record: OperatorRecord) -> str:
    """Refused unless what the `error` section assumes is possible, and every bound in it is at
    least, and its probability at most, what the certified numbers imply: the section is made again.
    """
    claim, noise = document["error"], document["noise"]
    for key in ("amplitude", "largest_error", "delta"):
        if claim[key] is not None and claim[key] <= 0:
            raise Refused(f"error.{key}: must be positive")
    norms, tolerances, tail = claim["norms"], claim["tolerances"], claim["tail"]
    if not record.radii.any() and not (claim["amplitude"] is norms is None):
        raise Refused("error: amplitude and norms belong to uncertain blocks, and there are none")
    if norms is not None and not all(_is_size(value) for value in norms.values()):
        raise Refused("error.norms: must hold numbers of at least 0")
    sizes = {key: () if part is None else part.values() for key, part in (("tolerances", tolerances), ("tail", tail))}
    for key, numbers in sizes.items():
        if any(number is not None and number < 0 for number in numbers):
            raise Refused(f"error.{key}: must not be negative")
    scatter = AnswerNoise(**noise["answers"]) if "answers" in noise else None
    if scatter is not None and any(claim[key] is not None for key in ("minimax", "tolerances", "tail")):
        raise Refused("error: minimax, tolerances and tail do not go with answers that scatter")
    parts = (noise, noise.get("answers"), noise.get("estimated"), document["uncertainty"])
    rates = (document["protection"] or {}).get("rates")
    made = error_section(
        record,
        ErrorTerms(
            lower=document["margin"]["lower"],
            upper=document["margin"]["upper"],
            epsilon=noise["epsilon"],
            sigma=noise["sigma"] if noise["kind"] in (NoiseKind.GAUSSIAN, NoiseKind.CHI) else None,
            field=FieldBound(claim["amplitude"], norms),
            largest_error=claim["largest_error"],
            delta=claim["delta"],
            confidence=joint_confidence(*(part["confidence"] for part in (*parts, rates) if part is not None)),
            tolerances=None if tolerances is None else Tolerances(*(tolerances[key] for key in Tolerances.__slots__)),
            tail=None if tail is None else Tail(tail["norm"], tail["image"]),
            answers=scatter,
        ),
    )
    _check_covered(claim, made, "error")
    return f"error bound {promised(claim)!r}"


def _is_size(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")


FLOORS = ("lower", "gaussian_lower", "confidence")
"""Entries of an `error` section that may be smaller than what is proven; others may be larger."""


def _check_covered(claim: Mapping[str, Any], made: Mapping[str, Any], where: str) -> None:
    for key, value in made.items():
        told, place = claim[key], f"{where}.{key}"
        if (value is None) != (told is None):
            raise Refused(f"{place}: must be {'null' if value is None else 'a number'} here")
        if isinstance(value, Mapping):
            _check_covered(told, value, place)
        elif value is not None and key in FLOORS and not 0 <= told <= value:
            raise Refused(f"{place}: {told!r} is more than the certified numbers imply")
        elif value is not None and key not in FLOORS and told < value:
            raise Refused(f"{place}: {told!r} is smaller than the certified numbers imply")


def _ratio(epsilon: float | None, margin: float, own: Fraction) -> float | None:
    return None if epsilon is None or margin <= 0.0 else float_up(2 * Fraction(epsilon) / Fraction(margin) + own)


def _least(largest: float, numerator: Fraction, margin: float) -> Fraction:
    return min(Fraction(largest), numerator / Fraction(margin)) if margin > 0.0 else Fraction(largest)


def _with_tolerances(part: Tolerances, lower: float) -> dict[str, Any]:
    values = {key: getattr(part, key) for key in Tolerances.__slots__}
    square = (Fraction(part.relation_truth) + Fraction(part.relation_estimate)) ** 2
    square += (Fraction(part.anchor_truth) + Fraction(part.anchor_estimate)) ** 2
    bound = None if lower <= 0.0 else sqrt_up(square / Fraction(lower) ** 2)
    return {**values, "bound": bound}


def _with_tail(part: Tail, epsilon: float | None, lower: float) -> dict[str, Any]:
    bound = None
    if epsilon is not None and lower > 0.0:
        bound = float_up(Fraction(part.norm) + 2 * (Fraction(epsilon) + Fraction(part.image)) / Fraction(lower))
    return {"norm": part.norm, "image": part.image, "bound": bound}
