"""Error bounds from a certified margin: 2ε/γ and its relatives, computed with outward rounding and checked exactly.

Stability: any k-sparse estimate that fits within ε is within 2ε/γ. With operator radius η: 2ε/γ_robust when truth and
decoder share the actual operator, 2(ε + ηR)/γ when the decoder uses the nominal one and errors have norm at most R.
The minimax bracket says that no estimator does much better. `bound` is the largest of those that apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rrf_design.certificates.exact import float_down, float_up, sqrt_up
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


def error_section(
    *,
    lower: float,
    upper: float,
    robust_lower: float,
    eta: float,
    epsilon: float | None,
    sigma: float | None,
    amplitude: float | None,
    delta: float | None,
    confidence: float | None,
    tolerances: Tolerances | None,
    tail: Tail | None,
) -> dict[str, Any]:
    """The `error` section of a certificate; every bound is rounded to the safe side."""
    effective = None
    if epsilon is not None and (amplitude is not None or eta == 0.0):
        effective = float_up(Fraction(epsilon) + Fraction(eta) * Fraction(amplitude or 0.0))
    nominal, robust = _ratio(epsilon, lower), _ratio(epsilon, robust_lower)
    stretched = _ratio(effective, lower)
    minimax = None
    if epsilon is not None and amplitude is not None:
        minimax = {
            "lower": float_down(_least(amplitude, 2 * Fraction(epsilon), upper) / 2),
            "upper": float_up(_least(amplitude, 2 * Fraction(epsilon), lower)),
            "gaussian_lower": None if sigma is None else float_down(_least(amplitude, Fraction(sigma), upper) / 8),
        }
    return {
        "amplitude": amplitude,
        "delta": delta,
        "confidence": confidence,
        "effective_epsilon": effective,
        "nominal": nominal,
        "robust": robust,
        "effective": stretched,
        "bound": _headline(eta, nominal, robust, stretched),
        "minimax": minimax,
        "tolerances": None if tolerances is None else _with_tolerances(tolerances, lower),
        "tail": None if tail is None else _with_tail(tail, epsilon, lower),
    }


def check_errors(document: dict[str, Any]) -> None:
    """Refused unless every error bound is at least what the certified numbers imply, in rational arithmetic."""
    claim, noise, spread = document["error"], document["noise"], document["uncertainty"]
    lower, upper = Fraction(document["margin"]["lower"]), Fraction(document["margin"]["upper"])
    epsilon = None if noise["epsilon"] is None else Fraction(noise["epsilon"])
    eta, robust = Fraction(spread["eta"]), Fraction(spread["robust_lower"])
    for key in ("amplitude", "delta"):
        if claim[key] is not None and claim[key] <= 0:
            raise Refused(f"error.{key}: must be positive")
    amplitude = None if claim["amplitude"] is None else Fraction(claim["amplitude"])
    effective = None
    if epsilon is not None and (amplitude is not None or eta == 0):
        effective = epsilon + eta * (amplitude or 0)
    _at_least(claim, "effective_epsilon", effective)
    stated = None if claim["effective_epsilon"] is None else Fraction(claim["effective_epsilon"])
    _at_least(claim, "nominal", 2 * epsilon / lower if epsilon is not None and lower > 0 else None)
    _at_least(claim, "robust", 2 * epsilon / robust if epsilon is not None and robust > 0 else None)
    _at_least(claim, "effective", 2 * stated / lower if stated is not None and lower > 0 else None)
    expected = _headline(float(eta), claim["nominal"], claim["robust"], claim["effective"])
    if claim["bound"] != expected:
        raise Refused(f"error.bound: is {claim['bound']!r}, but the other bounds give {expected!r}")
    _check_minimax(claim, noise, epsilon, amplitude, lower, upper)
    _check_extras(claim, epsilon, lower)


def _check_minimax(
    claim: dict[str, Any],
    noise: dict[str, Any],
    epsilon: Fraction | None,
    amplitude: Fraction | None,
    lower: Fraction,
    upper: Fraction,
) -> None:
    bracket = claim["minimax"]
    if (bracket is not None) != (epsilon is not None and amplitude is not None):
        raise Refused("error.minimax: needs a noise radius and an amplitude, and only these")
    if bracket is None or epsilon is None or amplitude is None:
        return
    floor = min(amplitude, 2 * epsilon / upper if upper > 0 else amplitude) / 2
    ceiling = min(amplitude, 2 * epsilon / lower if lower > 0 else amplitude)
    if not 0 <= Fraction(bracket["lower"]) <= floor or Fraction(bracket["upper"]) < ceiling:
        raise Refused("error.minimax: the bracket is narrower than the margin allows")
    gaussian = noise["kind"] in ("gaussian", "chi")
    if gaussian != (bracket["gaussian_lower"] is not None):
        raise Refused("error.minimax.gaussian_lower: belongs to Gaussian noise, and only there")
    if gaussian:
        sigma = Fraction(noise["sigma"])
        floor = min(amplitude, sigma / upper if upper > 0 else amplitude) / 8
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


def _headline(eta: float, nominal: float | None, robust: float | None, effective: float | None) -> float | None:
    if eta == 0.0 or robust is None:
        return nominal if eta == 0.0 else None
    return robust if effective is None else max(robust, effective)


def _ratio(epsilon: float | None, margin: float) -> float | None:
    return None if epsilon is None or margin <= 0.0 else float_up(2 * Fraction(epsilon) / Fraction(margin))


def _least(amplitude: float, numerator: Fraction, margin: float) -> Fraction:
    return min(Fraction(amplitude), numerator / Fraction(margin)) if margin > 0.0 else Fraction(amplitude)


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
