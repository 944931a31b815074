"""The sentences of a certificate: every one is a function of what is proved or assumed in it, so
`verify` writes them again and compares.

A number that nobody re-proves is a premise, and each premise is said in words under `assumptions`:
whoever changes the number has to change the sentence, and whoever changes the sentence alone is
refused. What remains is information (`INFORMATION`): the certificate claims nothing with it, and
`verify` says so.

`regime_of` is the paper's trichotomy as a rule on certified numbers: buy, measure better, or look
at the computation. It is part of the certificate's specification, so that the verifier can
re-derive the regime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import floor
from typing import Any

NORM = (
    "Euclidean in whitened coordinates: a field's length is taken in the declared fiber metrics, a residual's in the"
    " declared row metrics or covariances"
)
WEIGHTS = "the members of a family that are held share its weight, w/m each"
DECLARED_WEIGHTS = "the declared members of a family share its weight, w/m each"
"""What 0.2 wrote, and divided by; the rows themselves are in the certificate."""
INFORMATION = (
    "problem.name",
    "problem.digest",
    "problem.selected",
    "metrics.fibers",
    "metrics.whitened",
    "margin.rung",
    "uncertainty.source",
    "pilot.table",
    "pilot.recipe",
    "provenance",
)
"""Entries that say where a certificate comes from.

They are of their form and name what the operator has; nothing else is checked of them.
"""
ON_TRUST = (
    "that the operator is that of the problem, what is assumed (the sentences under assumptions say all of it), and"
    f" the marks of a pilot; information, not proven: {', '.join(INFORMATION)}"
)
MOST_LISTED = 12

Document = Mapping[str, Any]


def assumption(
    k: int,
    units: int,
    noise: str = "",
    *,
    called: str = "answers",
    wrong_checks: int = 0,
    checks: int = 0,
    sure: float | None = None,
) -> str:
    """The premise in words: at most 1 of 3 models is wrong; at most 1 of 4 answers and at most 1 of
    2 checks are wrong.
    """
    if 0 < units <= k and not wrong_checks and sure is None:
        many = (
            f"any of the {units} {called} may be wrong"
            if units > 1
            else f"the only {called.removesuffix('s')} may be wrong"
        )
        return f"{many}, and {noise}" if noise else many
    if k == 0:
        many = f"no {called.removesuffix('s')}" if not wrong_checks else f"none of the {called}"
    else:
        many = f"at most {k} of {units} {called}"
    if wrong_checks:
        many += f" and at most {wrong_checks} of {checks} checks"
        many += "" if sure is None else f" (with probability {floor(sure * 10_000) / 10_000:g})"
    elif sure is not None:
        many += f" and no check with a rate (with probability {floor(sure * 10_000) / 10_000:g})"
    many += " are wrong" if wrong_checks or sure is not None or k > 1 else " is wrong"
    return f"{many}, and {noise}" if noise else many


def assumption_lines(document: Document, *, nodes: int, uncertain: bool) -> list[str]:
    """The sentences under `assumptions`, from everything else in the document; `uncertain`: some
    block of its operator has a radius.
    """
    return [
        *_wrong_answers(document, nodes),
        "Relations, transports, anchors and parsers are those of the operator in this certificate.",
        "The error bounds hold for every estimate with at most k wrong answers whose residual is within the radius.",
        *_noise(document["noise"]),
        *(_field(document) if uncertain else ()),
        *_errors(document["error"]),
    ]


def _wrong_answers(document: Document, nodes: int) -> list[str]:
    k, guarded, tail = document["k"], document["protection"], document["error"]["tail"]
    beyond = "" if tail is None else ", up to the stated tail"
    if guarded is None:
        return [f"At most {k} of the {nodes} answers are wrong{beyond}."]
    units, checks = guarded["units"], len(guarded["suspects"])
    together = any(len(unit) > 1 for unit in units)
    words = assumption(
        k,
        len(units),
        called="units" if together else "answers",
        wrong_checks=min(guarded["wrong_checks"], checks),
        checks=checks,
        sure=guarded["rates"]["confidence"] if "rates" in guarded else None,
    )
    lines = [f"{words[0].upper()}{words[1:]}{beyond}."]
    if together:
        lines.append("The nodes of a unit may all be wrong together.")
    if len(guarded["deliver"]) < nodes:
        lines.append(f"Only the values of {', '.join(guarded['deliver'])} are promised.")
    if "rates" in guarded:
        rates = ", ".join(repr(rate) for rate in guarded["rates"]["rates"])
        lines.append(f"Checks with a rate are wrong independently, at most this often: {rates}.")
    return lines


def _listed(numbers: Mapping[str, Any], where: str) -> str:
    """Names with their numbers; where they would be a page of their own, where they stand."""
    if len(numbers) > MOST_LISTED:
        return f"those of {len(numbers)} entries under {where}"
    return ", ".join(f"{name} {number!r}" for name, number in sorted(numbers.items()))


def _together(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= MOST_LISTED else f"{len(names)} blocks"


def _noise(noise: Document) -> list[str]:
    lines = []
    kind, rows, sigma, sure = (noise[key] for key in ("kind", "rows", "sigma", "confidence"))
    others = "" if noise["blocks"] is None else "; the other rows carry none"
    if kind == "deterministic":
        lines.append(f"The noise of all rows together is at most {noise['epsilon']!r}.")
    elif kind == "correlated":
        lines.append(
            f"The noise of {rows} rows is Gaussian and partly shared; no combination of them has a standard deviation"
            f" above {sigma!r}; the radius holds with probability {sure!r}{others}."
        )
        for entry in noise["shared"]:
            how = f"correlation {entry['correlation']!r}" if entry["covariance"] is None else "the stated covariance"
            lines.append(f"{_together(entry['blocks'])} of {entry['members']} declared share noise with {how}.")
    elif kind != "none":
        lines.append(
            f"The noise of {rows} rows is {kind} with standard deviation {sigma!r} in each; the radius holds"
            f" with probability {sure!r}{others}."
        )
    if "answers" in noise:
        scatter = _listed(noise["answers"]["nodes"], "noise.answers")
        lines.append(
            f"The answers of {len(noise['answers']['nodes'])} nodes scatter independently, Gaussian, with these"
            f" standard deviations: {scatter}; what that adds holds with probability"
            f" {noise['answers']['confidence']!r}."
        )
    if "estimated" in noise:
        guessed = noise["estimated"]
        counts = {one["block"]: one["repeats"] for one in guessed["blocks"]}
        counts |= {one["node"]: one["repeats"] for one in guessed.get("nodes", ())}
        what = "blocks and nodes" if "nodes" in guessed else "blocks"
        repeats = _listed(counts, "noise.estimated")
        lines.append(
            f"Noise was estimated from independent Gaussian repeats of these {what}: {repeats}; it is no larger than"
            f" taken with probability {noise['estimated']['confidence']!r}."
        )
    return lines


def _field(document: Document) -> list[str]:
    """What uncertain blocks are off by, and on how large a field."""
    spread, error = document["uncertainty"], document["error"]
    held = "for certain" if spread["confidence"] is None else f"together with probability {spread['confidence']!r}"
    lines = [
        f"A block is off by at most its radius, on the nodes that it names; the radii ({spread['source']}) hold {held}."
    ]
    if error["amplitude"] is not None:
        lines.append(f"On these nodes the true field is at most {error['amplitude']!r} long.")
    if error["norms"] is not None:
        sizes = _listed(error["norms"], "error.norms")
        lines.append(f"The true values of single nodes are at most so long: {sizes}.")
    return lines


def _errors(error: Document) -> list[str]:
    lines = []
    if error["largest_error"] is not None:
        lines.append(f"For the minimax bracket: no error is longer than {error['largest_error']!r}.")
    if error["tolerances"] is not None:
        part = error["tolerances"]
        sides = (
            f"{kind} by at most {part[f'{kind}_truth']!r} by the truth and {part[f'{kind}_estimate']!r} by the estimate"
            for kind in ("relation", "anchor")
        )
        lines.append(f"For the bound with tolerances: rows of each kind together are missed, {', '.join(sides)}.")
    if error["tail"] is not None:
        norm, image = error["tail"]["norm"], error["tail"]["image"]
        lines.append(
            f"The tail: beside the wrong answers all together are off by at most {norm!r}, which moves the rows by at"
            f" most {image!r}."
        )
    return lines


ZERO = 1e-9
"""A margin whose witness leaves a residual below this is reported as zero (the paper's rule)."""


class Regime(StrEnum):
    INFORMATION = "information"
    NOISE = "noise"
    COMPUTATION = "computation"


CONSEQUENCE = {
    Regime.INFORMATION: (
        "Information deficit: no proven margin, so no decoder, prompt or further iteration over the same"
        " measurements can guarantee recovery. Buy a relation or anchor that sees the witness."
    ),
    Regime.NOISE: (
        "Noise-limited: identifiable, but the margin is comparable to the uncertainty or the error bound misses"
        " what is acceptable. Better anchors, calibrated weights and lower noise help; a cleverer decoder does not."
    ),
    Regime.COMPUTATION: (
        "Computation: the margin is comfortably above the uncertainty. Failures that remain come from the"
        " parser, the decoder, missing candidates or more wrong answers than k."
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What the regime is decided from."""

    lower: float
    robust_lower: float
    bound: float | None
    """2ε'/γ; None when there is no noise radius or no positive margin."""
    delta: float | None
    largest_error: float | None
    bounded: bool = True
    """Whether anything bounds what uncertain blocks add to the noise."""


def regime_of(finding: Finding) -> Regime:
    """Information: nothing positive is proven.

    Noise: nothing bounds what uncertain relations add, or uncertainty takes more than half of the
    margin, or the error bound is above the acceptable error, or not better than not decoding at
    all. Computation: otherwise.
    """
    if finding.lower <= ZERO:
        return Regime.INFORMATION
    if not finding.bounded or 2.0 * finding.robust_lower < finding.lower:
        return Regime.NOISE
    for limit in (finding.delta, finding.largest_error):
        if limit is not None and finding.bound is not None and finding.bound > limit:
            return Regime.NOISE
    return Regime.COMPUTATION
