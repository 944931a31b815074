"""Operator uncertainty: where the radii η_j of the row blocks come from.

Declared in the problem; or estimated from repeated queries, by a bootstrap or by matrix Bernstein concentration; or
from a parser's error rate. `robust_floor` then finds the largest t with σ_min(B_S) ≥ t + η_S for every support.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.checker.exact import Verdict
from rrf_design.certificates.checker.proofs import prove_floor, support_radii
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.errors import InputError, Refused


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Radii by block id in the norm of the assembled operator, with where they come from.

    `confidence` is None for radii that hold for certain, otherwise the probability that all of them hold together.
    """

    radii: Mapping[str, float] = field(default_factory=dict)
    source: str = "declared in the problem"
    confidence: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.radii.items():
            if not 0.0 <= value < float("inf"):
                raise InputError(f"uncertainty: the radius of {name!r} must be a number of at least 0, not {value!r}")
        if self.confidence is not None and not 0.0 < self.confidence < 1.0:
            raise InputError(f"uncertainty: confidence must lie between 0 and 1, not {self.confidence!r}")


def bootstrap_radius(samples: Any, *, confidence: float = 0.95, draws: int = 2000, seed: int = 0) -> float:
    """Radius around the mean of repeated estimates of one block, (repeats, rows, columns), by resampling the repeats.

    An estimate in the statistical sense: it is asymptotic, and the certificate says so.
    """
    stack = _repeats(samples, least=5)
    generator = np.random.default_rng(seed)
    mean = stack.mean(axis=0)
    picks = generator.integers(0, len(stack), size=(draws, len(stack)))
    flat = stack.reshape(len(stack), -1)
    means = np.array([flat[pick].mean(axis=0) for pick in picks]).reshape(draws, *mean.shape)
    gaps = np.linalg.norm(means - mean, 2, axis=(1, 2))
    return float(np.quantile(gaps, confidence, method="higher"))


def concentration_radius(samples: Any, *, deviation: float, confidence: float = 0.95) -> float:
    """The same by matrix Bernstein, which holds for every number of repeats.

    `deviation` bounds ‖X − E X‖ of one repeat for certain; the variance is taken at its worst, deviation².
    """
    stack = _repeats(samples, least=1)
    if not 0.0 <= deviation < float("inf"):
        raise InputError(f"uncertainty: deviation must be a number of at least 0, not {deviation!r}")
    count, rows, columns = stack.shape
    t = float(np.log((rows + columns) / (1.0 - confidence)))
    first = deviation * t / 3.0
    return float((first + np.sqrt(first * first + 2.0 * count * deviation**2 * t)) / count * (1 + 1e-12))


def parser_radius(errors: int, trials: int, *, effect: float, confidence: float = 0.95) -> float:
    """Radius from a parser's error rate: misreading happens with a probability of at most p (Clopper and Pearson), and
    one misreading moves the rows of the block by at most `effect` in norm, so their mean moves by at most p·effect."""
    if not (isinstance(errors, int) and isinstance(trials, int) and 0 <= errors <= trials and trials > 0):
        raise InputError(f"uncertainty: {errors!r} errors in {trials!r} trials is no error rate")
    from scipy.stats import beta

    p = 1.0 if errors == trials else float(beta.ppf(confidence, errors + 1, trials - errors))
    return p * effect * (1 + 1e-12)


def robust_floor(
    record: OperatorRecord,
    size: int,
    *,
    start: float,
    time_limit: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> float | None:
    """The largest provable t with σ_min(B_S) ≥ t + η_S for all supports; None when it can't be settled in time.

    Thresholds only: a refuted t names a support, whose own value is the next t. `start` is any upper bound.
    """
    value = start
    for _ in range(64):
        if value <= 0.0:
            return 0.0
        try:
            proof = prove_floor(record, size, floor=value, with_radii=True, time_limit=time_limit, progress=progress)
        except Refused:  # too dense to enumerate
            return None
        if proof.verdict is Verdict.PROVED:
            return value
        if not proof.support:
            return None
        radii = np.sqrt(sum(r * r for r in support_radii(record, proof.support)))
        part = record.dense_part(proof.support)
        sigma = float(np.linalg.svd(part, compute_uv=False)[-1]) if part.shape[0] >= part.shape[1] else 0.0
        value = min(value * (1 - 1e-9), (sigma - float(radii)) * (1 - 1e-10) - 1e-15)
    return None


def _repeats(samples: Any, *, least: int) -> NDArray[np.float64]:
    stack = np.asarray(samples, dtype=np.float64)
    if stack.ndim != 3 or len(stack) < least or not np.isfinite(stack).all():
        raise InputError(
            f"uncertainty: expected at least {least} repeats as (repeats, rows, columns), got {stack.shape}"
        )
    return stack
