"""Error bounds from a certified margin: 2ε'/γ and its relatives, computed with outward rounding and checked exactly.

Stability: any k-sparse estimate that fits within the radius is within 2ε'/γ of the truth. ε' = ε + ‖E z*‖: the noise of the rows, and
what uncertain blocks add to it, which grows with the true field z* and not with the error. It is bounded by Σ_i w_i ‖z_i‖² with
w_i = Σ η_b² over the uncertain blocks that name node i, from bounds on the nodes' answers (`norms`) or on the whole field
(`amplitude`); without either, and with uncertain blocks, no error is promised. The minimax bracket says that no
estimator does much better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rrf_design.certificates.checker.exact import float_down, float_up, sqrt_up
from rrf_design.certificates.checker.noise import AnswerNoise
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.errors import InputError, Refused


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
    """What an error has beyond its k largest nodes: the norm of that tail r, and the norm of its image Br."""

    norm: float
    image: float

    def __post_init__(self) -> None:
        if not (0.0 <= self.norm < float("inf") and 0.0 <= self.image < float("inf")):
            raise InputError("tail: norm and image must be numbers of at least 0")


@dataclass(frozen=True, slots=True)
class FieldBound:
    """What bounds the true field on the nodes of uncertain blocks: one norm for all, and norms of single nodes."""

    amplitude: float | None = None
    norms: Mapping[str, float] | None = None
    """Bound on ‖z_i‖ in the node's metric for every node that an uncertain block names; None where one is missing."""


def least_spread(record: OperatorRecord, amplitude: float | None, norms: Mapping[str, float] | None) -> Fraction | None:
    """The smallest bound on ‖E z*‖² that the premises imply; 0 without radii, None where they imply none."""
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
    square = least_spread(record, terms.field.amplitude, terms.field.norms)
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
    """The error that an `error` section promises: with small errors on all answers where it speaks of a tail, else 2ε'/γ."""
    bound: float | None = error["bound"] if error["tail"] is None else error["tail"]["bound"]
    return bound


def check_errors(document: dict[str, Any], record: OperatorRecord) -> None:
    """Refused unless every error bound is at least what the certified numbers imply, in rational arithmetic."""
    claim, noise = document["error"], document["noise"]
    lower, upper = Fraction(document["margin"]["lower"]), Fraction(document["margin"]["upper"])
    epsilon = None if noise["epsilon"] is None else Fraction(noise["epsilon"])
    for key in ("amplitude", "largest_error", "delta"):
        if claim[key] is not None and claim[key] <= 0:
            raise Refused(f"error.{key}: must be positive")
    norms = claim["norms"]
    if not record.radii.any() and not (claim["amplitude"] is norms is None):
        raise Refused("error: amplitude and norms belong to uncertain blocks, and there are none")
    if norms is not None and not all(_is_size(value) for value in norms.values()):
        raise Refused("error.norms: must hold numbers of at least 0")
    square = least_spread(record, claim["amplitude"], norms)
    if (square is None) != (claim["spread"] is None):
        raise Refused(f"error.spread: must be {'null' if square is None else 'a number'} here")
    if square is not None and (claim["spread"] < 0 or Fraction(claim["spread"]) ** 2 < square):
        raise Refused("error.spread: is smaller than radii and field imply")
    spread = None if square is None else Fraction(claim["spread"])
    answers = noise.get("answers") or {"image": 0, "own": 0}
    image, own = Fraction(answers["image"]), Fraction(answers["own"])
    _at_least(claim, "effective_epsilon", None if epsilon is None or spread is None else epsilon + spread + image)
    effective = None if claim["effective_epsilon"] is None else Fraction(claim["effective_epsilon"])
    _at_least(claim, "bound", 2 * effective / lower + own if effective is not None and lower > 0 else None)
    if "answers" in noise and any(claim[key] is not None for key in ("minimax", "tolerances", "tail")):
        raise Refused("error: minimax, tolerances and tail do not go with answers that scatter")
    _check_minimax(claim, noise, epsilon, effective, lower, upper)
    _check_extras(claim, effective, lower)


def _is_size(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")


def _check_minimax(
    claim: dict[str, Any],
    noise: dict[str, Any],
    epsilon: Fraction | None,
    effective: Fraction | None,
    lower: Fraction,
    upper: Fraction,
) -> None:
    bracket = claim["minimax"]
    if (bracket is not None) != (effective is not None and claim["largest_error"] is not None):
        raise Refused("error.minimax: needs a radius and a largest error, and only these")
    if bracket is None or epsilon is None or effective is None:
        return
    largest = Fraction(claim["largest_error"])
    floor = min(largest, 2 * epsilon / upper if upper > 0 else largest) / 2
    ceiling = min(largest, 2 * effective / lower if lower > 0 else largest)
    if not 0 <= Fraction(bracket["lower"]) <= floor or Fraction(bracket["upper"]) < ceiling:
        raise Refused("error.minimax: the bracket is narrower than the margin allows")
    gaussian = noise["kind"] in ("gaussian", "chi")
    if gaussian != (bracket["gaussian_lower"] is not None):
        raise Refused("error.minimax.gaussian_lower: belongs to Gaussian noise, and only there")
    if gaussian:
        sigma = Fraction(noise["sigma"])
        floor = min(largest, sigma / upper if upper > 0 else largest) / 8
        if not 0 <= Fraction(bracket["gaussian_lower"]) <= floor:
            raise Refused("error.minimax.gaussian_lower: is more than the margin allows")


def _check_extras(claim: dict[str, Any], epsilon: Fraction | None, lower: Fraction) -> None:
    part = claim["tolerances"]
    if part is not None:
        values = {key: Fraction(part[key]) for key in Tolerances.__slots__}
        if min(values.values()) < 0:
            raise Refused("error.tolerances: must not be negative")
        square = (values["relation_truth"] + values["relation_estimate"]) ** 2
        square += (values["anchor_truth"] + values["anchor_estimate"]) ** 2
        if (part["bound"] is None) != (lower == 0):
            raise Refused("error.tolerances.bound: needs a positive margin, and only that")
        if part["bound"] is not None and (part["bound"] < 0 or (Fraction(part["bound"]) * lower) ** 2 < square):
            raise Refused("error.tolerances.bound: is smaller than the tolerances imply")
    part = claim["tail"]
    if part is not None:
        if min(part["norm"], part["image"]) < 0:
            raise Refused("error.tail: must not be negative")
        wanted = None
        if epsilon is not None and lower > 0:
            wanted = Fraction(part["norm"]) + 2 * (epsilon + Fraction(part["image"])) / lower
        _at_least(part, "bound", wanted, "error.tail.")


def _at_least(claim: dict[str, Any], key: str, wanted: Fraction | None, where: str = "error.") -> None:
    if (wanted is None) != (claim[key] is None):
        raise Refused(f"{where}{key}: must be {'null' if wanted is None else 'a number'} here")
    if wanted is not None and Fraction(claim[key]) < wanted:
        raise Refused(f"{where}{key}: {claim[key]!r} is smaller than the certified numbers imply")


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
