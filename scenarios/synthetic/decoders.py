"""The two decoders of the protocol on one instance: exact support search, and the group-proximal method.

The penalty of the proximal method is chosen on calibration fields and frozen. Success thresholds are fixed here, before
any result: a decoder has to bring back the field, not merely lower its residual.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solvers.decoding import SupportDecoder, group_lasso

Array = NDArray[np.float64]

EXACT_SUCCESS = 1e-6
"""Relative field error below which exact repair of a noiseless instance counts as success."""
CONVEX_SUCCESS = 5e-2
"""The same for the penalised decoder, which shrinks every error by design."""
PENALTIES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Calibration grid for λ, relative to the smallest λ that returns no edit at all."""


@dataclass(frozen=True, slots=True)
class DecodedField:
    """What a decoder returned, beside the truth."""

    relative_error: float
    """‖ẑ − z*‖ / max(‖z*‖, 1e-12)"""
    absolute_error: float
    localization: float
    """Share of corrupted nodes among the k largest edits."""
    residual: float
    explanations: int
    """How many minimal supports explain the syndrome (exact decoder), 0 when none does or nobody counted."""
    converged: bool = True
    """False: an iterative decoder stopped before its gap closed. Never to be mixed with those that did."""


def exact(
    B: Array, groups: Sequence[int], syndrome: Array, *, k: int, truth: Array, error: Array, epsilon: float = 0.0
) -> DecodedField:
    """Smallest support within ε; among equals the first, as in the paper's enumeration."""
    found = SupportDecoder(B, list(groups)).decode(syndrome, k=k, epsilon=epsilon, tolerance=1e-9 * (1.0 + epsilon))
    if found.explanations:
        least = min(len(e.support) for e in found.explanations)
        chosen = min((e for e in found.explanations if len(e.support) == least), key=lambda e: e.support)
        estimate, residual = chosen.error, chosen.residual
    else:
        estimate, residual = found.error, found.residual
    return _judge(estimate, residual, k=k, truth=truth, error=error, explanations=len(found.explanations))


def convex(
    B: Array, groups: Sequence[int], syndrome: Array, *, k: int, truth: Array, error: Array, penalty: float
) -> DecodedField:
    """Penalised group-ℓ₁ with λ = `penalty` times the λ at which everything is shrunk to zero."""
    top = _largest_penalty(B, groups, syndrome)
    if top == 0.0:
        return _judge(np.zeros(B.shape[1]), 0.0, k=k, truth=truth, error=error, explanations=0)
    found = group_lasso(B, list(groups), syndrome=syndrome, penalty=penalty * top, tolerance=1e-8)
    judged = _judge(found.error, found.residual, k=k, truth=truth, error=error, explanations=0)
    return replace(judged, converged=bool(found.converged))


def calibrate(instances: Iterable[tuple[Array, Sequence[int], Array, int, Array, Array]]) -> float:
    """The penalty of the grid with the least median relative error on calibration instances, converged runs only."""
    cases = list(instances)
    scores = []
    for penalty in PENALTIES:
        found = [
            convex(B, groups, s, k=k, truth=truth, error=error, penalty=penalty)
            for B, groups, s, k, truth, error in cases
        ]
        errors = [one.relative_error for one in found if one.converged]
        scores.append(float(np.median(errors)) if errors else np.inf)
    return PENALTIES[int(np.argmin(scores))]


def _largest_penalty(B: Array, groups: Sequence[int], syndrome: Array) -> float:
    correlation = B.T @ syndrome
    cuts = np.cumsum(groups)[:-1]
    return max((float(np.linalg.norm(part)) for part in np.split(correlation, cuts)), default=0.0)


def _judge(estimate: Array, residual: float, *, k: int, truth: Array, error: Array, explanations: int) -> DecodedField:
    edits = np.asarray(estimate).reshape(truth.shape)
    # y = z* + e and ẑ = y − ê, so ẑ − z* = e − ê.
    miss = float(np.linalg.norm(error - edits))
    sizes = np.linalg.norm(edits, axis=1)
    largest = {int(i) for i in np.argsort(-sizes, kind="stable")[:k] if sizes[i] > 0}
    wrong = {int(i) for i in np.flatnonzero(np.linalg.norm(error, axis=1))}
    return DecodedField(
        miss / max(float(np.linalg.norm(truth)), 1e-12),
        miss,
        len(largest & wrong) / max(len(wrong), 1),
        residual,
        explanations,
    )
