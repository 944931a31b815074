"""certify: the paper's audit recipe on one design, written down as a certificate that anybody can re-prove.

Fix coordinates, norms, weights and k; assemble B; prove the lower bound on the best rung that size and time allow; store
support and witness and check them directly; at zero margin give the indistinguishable pair, at a positive one the
sensitivity along the witness; whiten, and subtract what the operator's own uncertainty may cost.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.certificate import Certificate
from rrf_design.certificates.document import FORMAT, VERSION, content_digest
from rrf_design.certificates.errors import Tail, Tolerances, error_section
from rrf_design.certificates.ladder import Progress, Rung, climb
from rrf_design.certificates.noise import NoiseKind, joint_confidence
from rrf_design.certificates.nullspace import nullspace_section
from rrf_design.certificates.record import record_of
from rrf_design.certificates.regime import CONSEQUENCE, ZERO, Finding, regime
from rrf_design.certificates.sections import (
    assumption_lines,
    audit_section,
    bare_record,
    budget_sections,
    conditional_section,
    declared_noise,
    file_name,
    further_budgets,
    metrics_section,
    noise_section,
    positive,
    uncertainty_section,
    unwhitened_section,
    witness_section,
)
from rrf_design.certificates.uncertainty import Uncertainty
from rrf_design.errors import InputError
from rrf_design.files import digest
from rrf_design.margins import check_k

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection

VERIFY_RATIO = 2.0  # seconds to verify against seconds to search: about the median of the published benchmark
VERIFY_LEAST = 0.01


def certify(
    problem: Problem,
    select: Selection = None,
    *,
    k: int | None = None,
    rung: Rung | str = Rung.AUTO,
    require: float | None = None,
    epsilon: float | None = None,
    sigma: float | None = None,
    confidence: float | None = None,
    noise: NoiseKind | str | None = None,
    amplitude: float | None = None,
    delta: float | None = None,
    uncertainty: Uncertainty | None = None,
    tolerances: Tolerances | None = None,
    tail: Tail | None = None,
    budgets: Sequence[int] | None = None,
    supports: Sequence[Sequence[str]] | None = None,
    front_end: str = "ortools",
    time_limit: float | None = 60.0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """What can be promised about the owned blocks plus `select`.

    `epsilon`, `sigma`, `confidence`, `amplitude` and `delta` replace the problem's. `noise` chooses how sigma becomes a radius
    ("gaussian", "chi", "subgaussian"; default chi). `budgets` are further values of k to certify; `supports` a family of node
    sets for a bound that holds relative to it only. `time_limit` applies to each search. `progress` hears of the share done and the bounds
    proven so far. InputError for what doesn't fit.
    """
    from rrf_design import __version__

    budget = check_k(k, problem.k)
    if rung not in set(Rung):
        raise InputError(f"rung: {rung!r} is not one of {', '.join(Rung)}")
    if front_end not in ("ortools", "pulp"):
        raise InputError(f"front_end: {front_end!r} is not one of ortools, pulp")
    operator = problem.operator(select)
    spread = Uncertainty() if uncertainty is None else uncertainty
    radii = np.array(operator.radii)
    for name, value in spread.radii.items():
        if name not in problem.block_by_id:
            raise InputError(f"uncertainty: {name!r} is not a block of this problem")
        if name in operator.block_index:
            radii[operator.block_index[name]] = value
    record = record_of(operator, radii=radii)
    options: dict[str, Any] = {"time_limit": time_limit, "n_jobs": n_jobs, "front_end": front_end}
    began = time.monotonic()
    standing = climb(record, budget, rung=Rung(rung), progress=progress, **options)
    searched = time.monotonic() - began
    witness, image2, upper = witness_section(record, standing.support, standing.direction)
    lower = min(standing.lower, upper)
    exact = lower >= upper * (1 - 1e-6) or upper <= ZERO

    def told(done: float, *_: float) -> None:  # what follows changes nothing about these bounds
        if progress is not None:
            progress(done, lower, upper)

    told(1.0)
    loss = uncertainty_section(record, lower, standing, 2 * budget, spread, time_limit, told)
    known = declared_noise(problem, operator, epsilon=epsilon, sigma=sigma, confidence=confidence, kind=noise)
    joint = joint_confidence(known.confidence, spread.confidence)
    error = error_section(
        lower=lower,
        upper=upper,
        robust_lower=loss["robust_lower"],
        eta=loss["eta"],
        epsilon=known.epsilon,
        sigma=known.sigma if known.kind in (NoiseKind.GAUSSIAN, NoiseKind.CHI) else None,
        amplitude=positive(problem.amplitude if amplitude is None else amplitude, "amplitude"),
        delta=positive(problem.delta if delta is None else delta, "delta"),
        confidence=joint,
        tolerances=tolerances,
        tail=tail,
    )
    bare = bare_record(problem, select)
    verdict = regime(Finding(lower, loss["robust_lower"], error["bound"], error["delta"], error["amplitude"]))
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "problem": {"name": problem.name, "digest": digest(problem), "selected": list(problem.resolve(select))},
        "operator": record.to_document(file=file_name(record)),
        "k": budget,
        "metrics": metrics_section(problem, operator),
        "margin": {
            "lower": lower,
            "upper": upper,
            "status": "exact" if exact else "bounded",
            "rung": standing.rung,
            "proof": standing.proof,
        },
        "witness": witness,
        "conditional": None if supports is None else conditional_section(record, supports),
        "uncertainty": loss,
        "noise": noise_section(known),
        "error": error,
        "regime": {"name": str(verdict), "consequence": CONSEQUENCE[verdict]},
        "budgets": budget_sections(record, further_budgets(budgets, budget, record), options, told),
        "nullspace": nullspace_section(record, budget),
        "unwhitened": None if bare is None else unwhitened_section(bare, budget, options, told),
        "audit": audit_section(witness, image2, upper, budget),
        "assumptions": assumption_lines(budget, known, spread, record, tail),
        "provenance": {"package": f"rrf-design {__version__}", "notes": list(standing.notes)},
    }
    document["digest"] = content_digest(document)
    return Certificate(
        document, record, require, bare=bare, verification_seconds=VERIFY_RATIO * searched + VERIFY_LEAST
    )
