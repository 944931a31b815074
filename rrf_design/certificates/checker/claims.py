"""Claims of a certificate that follow from its margin by arithmetic: each is checked here, in rationals or balls.

What needs the operator's supports is in `verify`. Each function raises Refused, or says what it found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from rrf_design.certificates.checker.document import NUMBER, matches
from rrf_design.certificates.checker.errors import check_errors as check_bounds
from rrf_design.certificates.checker.errors import promised
from rrf_design.certificates.checker.exact import dominated, squared_norm
from rrf_design.certificates.checker.noise import (
    AnswerNoise,
    NoiseKind,
    covers,
    covers_answers,
    covers_estimate,
    joint_confidence,
)
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.certificates.checker.regime import CONSEQUENCE, ZERO, Finding, regime_of
from rrf_design.certificates.checker.wording import NORM, WEIGHTS, assumption_lines
from rrf_design.errors import Refused

Document = dict[str, Any]
DIGEST = re.compile(r"[0-9a-f]{64}")


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
    if "estimated" in claim:
        _check_estimates(claim["estimated"], claim.get("answers", {}).get("nodes", {}), record)
    if "answers" in claim:
        _check_answers(claim["answers"], document, record)
    if kind is NoiseKind.CORRELATED:
        _check_shared(claim["shared"], blocks)
    return f"{kind}, radius {claim['epsilon']!r}"


def _check_estimates(claim: dict[str, Any], scattered: dict[str, Any], record: OperatorRecord) -> None:
    """That estimates were raised by enough, and how sure that is of all of them together. Nodes must be among those that scatter."""
    sizes = dict(zip(record.block_ids, record.block_sizes.tolist(), strict=True))
    spans = dict(zip(record.node_ids, record.node_sizes.tolist(), strict=True))
    nodes = claim.get("nodes", [])
    for kind, entries, known in (("block", claim["blocks"], sizes), ("node", nodes, spans)):
        names = [entry[kind] for entry in entries]
        if len(set(names)) < len(names) or not set(names) <= set(known):
            raise Refused(f"noise.estimated.{kind}s: must name different {kind}s of the operator")
        for entry in entries:
            enough = entry["rows"] >= known[entry[kind]] or (kind == "block" and entry["rows"] == 1)
            if not enough or not 0.0 < entry["confidence"] < 1.0:
                raise Refused(
                    f"noise.estimated: rows are at least those of the {kind}, or 1, and a confidence lies between 0 and 1"
                )
            keys = ("rows", "repeats", "confidence")
            if not covers_estimate(entry["inflation"], **{key: entry[key] for key in keys}):
                raise Refused(f"noise.estimated: {entry[kind]!r} is raised by too little for so few repeats")
    if not {entry["node"] for entry in nodes} <= set(scattered):
        raise Refused("noise.estimated.nodes: must be nodes whose answers scatter")
    joint = joint_confidence(*(entry["confidence"] for entry in [*claim["blocks"], *nodes]))
    if joint is None or not 0.0 < claim["confidence"] <= joint:
        raise Refused("noise.estimated.confidence: is more than the estimates leave together")


def _check_answers(entry: dict[str, Any], document: Document, record: OperatorRecord) -> None:
    """That answers which scatter as stated stay within both radii."""
    place = {name: index for index, name in enumerate(record.node_ids)}
    matches(list(entry["nodes"].values()), [NUMBER], "noise.answers.nodes")
    if not entry["nodes"] or not set(entry["nodes"]) <= set(place) or min(entry["nodes"].values()) <= 0.0:
        raise Refused("noise.answers.nodes: must give nodes of the operator a positive standard deviation")
    if not 0.0 < entry["confidence"] < 1.0 or document["noise"]["epsilon"] is None:
        raise Refused("noise.answers: needs a confidence between 0 and 1, and a radius of the rows")
    guarded = document["protection"]
    delivered = record.node_ids if guarded is None else guarded["deliver"]

    def columns(name: str) -> Any:
        return record.by_column[:, record.columns_of([place[name]])]

    if not covers_answers(AnswerNoise(**entry), columns, delivered):
        raise Refused("noise.answers: a radius is too small for the stated confidence")


def _check_shared(entries: list[dict[str, Any]], blocks: Sequence[str]) -> None:
    """That raised variances cover what is shared: R ⪯ c·I, exactly, R being the covariance of rows that were whitened block by block."""
    seen: set[str] = set()
    for place, entry in enumerate(entries):
        where, own = f"noise.shared[{place}]", set(entry["blocks"])
        if not own or len(own) < len(entry["blocks"]) or own & seen or not own <= set(blocks):
            raise Refused(f"{where}.blocks: must name noisy blocks, each in one entry")
        seen |= own
        if entry["members"] < len(own) or (entry["correlation"] is None) == (entry["covariance"] is None):
            raise Refused(f"{where}: needs a correlation or a covariance, of at least its blocks")
        if entry["correlation"] is not None:
            rho = Fraction(entry["correlation"])
            covered = 0 <= rho <= 1 and Fraction(entry["dilation"]) >= 1 + (entry["members"] - 1) * rho
        else:
            matches(entry["covariance"], [[NUMBER]], f"{where}.covariance")
            covered = dominated(entry["covariance"], entry["dilation"])
        if not covered:
            raise Refused(f"{where}.dilation: does not cover the noise that is shared")
    if not seen:
        raise Refused("noise.shared: names no block")


def check_errors(document: Document, record: OperatorRecord) -> str:
    """Error bounds, and the probability they hold with."""
    check_bounds(document, record)
    error, noise = document["error"], document["noise"]
    scatter = noise["answers"]["confidence"] if "answers" in noise else None
    rates = (document["protection"] or {}).get("rates")
    judged = None if rates is None else rates["confidence"]
    guessed = noise["estimated"]["confidence"] if "estimated" in noise else None
    joint = joint_confidence(noise["confidence"], scatter, judged, guessed, document["uncertainty"]["confidence"])
    if (joint is None) != (error["confidence"] is None) or (joint is not None and error["confidence"] > joint):
        raise Refused("error.confidence: is more than noise and uncertainty leave together")
    return f"error bound {promised(error)!r}"


def check_regime(document: Document) -> str:
    """The regime, and its consequence in the specified words."""
    error = document["error"]
    name = regime_of(
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


def check_sentences(document: Document, record: OperatorRecord) -> str:
    """Every sentence is the one that the certificate's own numbers give; what is information names only what the operator has."""
    lines = assumption_lines(document, nodes=len(record.node_ids), uncertain=bool(record.radii.any()))
    if document["assumptions"] != lines:
        told = next((line for line in lines if line not in document["assumptions"]), "")
        raise Refused(f"assumptions: are not those of this certificate{f'; missing: {told}' if told else ''}")
    metrics, problem = document["metrics"], document["problem"]
    if (metrics["norm"], metrics["weights"]) != (NORM, WEIGHTS):
        raise Refused("metrics: norm and weights are not in the specified words")
    names: tuple[tuple[str, list[str], set[str]], ...] = (
        ("metrics.fibers", metrics["fibers"], set(record.node_ids)),
        ("metrics.whitened", metrics["whitened"], set(record.block_ids)),
        ("problem.selected", problem["selected"], {*record.node_ids, *record.block_ids}),
    )
    for where, listed, known in names:
        if len(set(listed)) != len(listed) or not set(listed) <= known:
            raise Refused(f"{where}: must name different entries of the operator")
    if not DIGEST.fullmatch(problem["digest"]):
        raise Refused("problem.digest: is no SHA-256 digest")
    return f"{len(lines)} assumptions are those of the numbers"


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
