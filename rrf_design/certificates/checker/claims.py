"""Claims of a certificate that follow from its margin by arithmetic: each is checked here, in rationals or balls.

What needs the operator's supports is in `verify`. Each function raises Refused, or says what it found.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rrf_design.certificates.checker.errors import check_errors as check_bounds
from rrf_design.certificates.checker.errors import promised
from rrf_design.certificates.checker.exact import squared_norm
from rrf_design.certificates.checker.noise import NoiseKind, covers, joint_confidence
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.certificates.checker.regime import CONSEQUENCE, ZERO, Finding, regime
from rrf_design.errors import Refused

Document = dict[str, Any]


def check_uncertainty(document: Document, record: OperatorRecord) -> str:
    """η, and what it leaves of the margin."""
    claim = document["uncertainty"]
    eta, lower = Fraction(claim["eta"]), Fraction(document["margin"]["lower"])
    guarded = document["protection"]
    if guarded is not None and len(guarded["deliver"]) < len(record.node_ids):  # E acts on what is not delivered, too
        lower = min(lower, Fraction(guarded["field_lower"] or 0))
    if guarded is not None and record.radii.any() and claim["support_lower"]:
        raise Refused("uncertainty.support_lower: is not proved under a premise")
    if guarded is not None and not record.radii.any():
        lower = Fraction(document["margin"]["lower"])
    if claim["eta"] < 0 or eta * eta < squared_norm(record.radii[record.radii > 0]):
        raise Refused("uncertainty.eta: is smaller than the root of the sum of squared radii")
    if claim["global_lower"] != 0.0 and not 0 < Fraction(claim["global_lower"]) <= lower - eta:
        raise Refused("uncertainty.global_lower: is more than the margin minus eta")
    known = [claim["global_lower"]] + ([] if claim["support_lower"] is None else [claim["support_lower"]])
    if claim["robust_lower"] != max(known):
        raise Refused("uncertainty.robust_lower: is not the larger of the two bounds")
    if claim["confidence"] is not None and not 0.0 < claim["confidence"] < 1.0:
        raise Refused("uncertainty.confidence: must lie between 0 and 1")
    return f"eta = {claim['eta']!r}"


def check_noise(document: Document, record: OperatorRecord) -> str:
    """The noise radius, and the rows it is about."""
    claim = document["noise"]
    if claim["kind"] not in set(NoiseKind):
        raise Refused(f"noise.kind: {claim['kind']!r} is unknown")
    kind = NoiseKind(claim["kind"])
    blocks = record.block_ids if claim["blocks"] is None else claim["blocks"]
    sizes = dict(zip(record.block_ids, record.block_sizes.tolist(), strict=True))
    if len(set(blocks)) != len(blocks) or not set(blocks) <= set(sizes):
        raise Refused("noise.blocks: must name different blocks of the operator")
    if claim["rows"] != sum(sizes[name] for name in blocks):
        raise Refused(f"noise.rows: says {claim['rows']}, but those blocks have {sum(sizes[name] for name in blocks)}")
    if (claim["epsilon"] is None) != (kind is NoiseKind.NONE) or (claim["epsilon"] or 0.0) < 0.0:
        raise Refused("noise.epsilon: must be a radius, and only where there is noise")
    given = (claim["sigma"] is not None, claim["confidence"] is not None)
    if given != (kind.random, kind.random):
        raise Refused("noise: sigma and confidence belong to random noise, and only there")
    if kind.random:
        if claim["sigma"] <= 0.0 or not 0.0 < claim["confidence"] < 1.0:
            raise Refused("noise: sigma must be positive and confidence between 0 and 1")
        keys = ("epsilon", "sigma", "rows", "confidence")
        if not covers(kind, **{key: claim[key] for key in keys}):
            raise Refused("noise.epsilon: is too small for the stated confidence")
    return f"{kind}, radius {claim['epsilon']!r}"


def check_errors(document: Document, record: OperatorRecord) -> str:
    """Error bounds, and the probability they hold with."""
    check_bounds(document, record)
    error, noise = document["error"], document["noise"]
    joint = joint_confidence(noise["confidence"], document["uncertainty"]["confidence"])
    if (joint is None) != (error["confidence"] is None) or (joint is not None and error["confidence"] > joint):
        raise Refused("error.confidence: is more than noise and uncertainty leave together")
    return f"error bound {promised(error)!r}"


def check_regime(document: Document) -> str:
    """The regime, and its consequence in the specified words."""
    error = document["error"]
    name = regime(
        Finding(
            lower=document["margin"]["lower"],
            robust_lower=document["uncertainty"]["robust_lower"],
            bound=promised(error),
            delta=error["delta"],
            largest_error=error["largest_error"],
            bounded=error["spread"] is not None,
        )
    )
    claim = document["regime"]
    if claim["name"] != name or claim["consequence"] != CONSEQUENCE[name]:
        raise Refused(f"regime: is {name}, not {claim['name']!r}, or its consequence is not the specified one")
    return str(name)


def _units(document: Document, nodes: list[str]) -> int:
    if document["protection"] is None:
        return len(nodes)
    return sum(not set(nodes).isdisjoint(unit) for unit in document["protection"]["units"])


def check_audit(document: Document, image2: Fraction) -> str:
    """The witness's residual, and the pair or the sensitivity that follows from it."""
    claim, upper = document["audit"], document["margin"]["upper"]
    if Fraction(claim["residual"]) ** 2 < image2 or claim["residual"] < 0:
        raise Refused("audit.residual: the witness leaves more than that")
    if (claim["pair"] is not None) != (upper <= ZERO) or (claim["sensitivity"] is None) != (upper <= ZERO):
        raise Refused("audit: a pair belongs to a zero margin, a sensitivity to a positive one")
    if claim["pair"] is not None:
        first, second = claim["pair"]["first"], claim["pair"]["second"]
        if sorted(first + second) != sorted(document["witness"]["support"]):
            raise Refused("audit.pair: is not a division of the witness")
        if max(_units(document, first), _units(document, second)) > document["k"]:
            raise Refused("audit.pair: has more than k nodes on one side")
    elif not Fraction(999, 1000) <= Fraction(claim["sensitivity"]) * Fraction(upper) <= 1:
        raise Refused("audit.sensitivity: is not one over the margin of the witness")
    return "witness checked directly"
