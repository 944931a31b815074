"""The paper's trichotomy as a rule on certified numbers: buy, measure better, or look at the computation.

The rule is part of the certificate's specification, so that the verifier can re-derive the regime.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ZERO = 1e-9
"""A margin whose witness leaves a residual below this is reported as zero (the paper's rule)."""


class Regime(StrEnum):
    INFORMATION = "information"
    NOISE = "noise"
    COMPUTATION = "computation"


CONSEQUENCE = {
    Regime.INFORMATION: "Information deficit: no proven margin, so no decoder, prompt or further iteration over the same"
    " measurements can guarantee recovery. Buy a relation or anchor that sees the witness.",
    Regime.NOISE: "Noise-limited: identifiable, but the margin is comparable to the uncertainty or the error bound misses"
    " what is acceptable. Better anchors, calibrated weights and lower noise help; a cleverer decoder does not.",
    Regime.COMPUTATION: "Computation: the margin is comfortably above the uncertainty. Failures that remain come from the"
    " parser, the decoder, missing candidates or more wrong answers than k.",
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
    """Information: nothing positive is proven. Noise: nothing bounds what uncertain relations add,
    or uncertainty takes more than half of the margin, or the error
    bound is above the acceptable error, or not better than not decoding at all. Computation: otherwise."""
    if finding.lower <= ZERO:
        return Regime.INFORMATION
    if not finding.bounded or 2.0 * finding.robust_lower < finding.lower:
        return Regime.NOISE
    for limit in (finding.delta, finding.largest_error):
        if limit is not None and finding.bound is not None and finding.bound > limit:
            return Regime.NOISE
    return Regime.COMPUTATION
