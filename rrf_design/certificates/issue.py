"""certify: the paper's audit recipe on one design, written down as a certificate that anybody can re-prove.

Fix coordinates, norms, weights and k; assemble B; prove the lower bound on the best rung that size and time allow; store
support and witness and check them directly; at zero margin give the indistinguishable pair, at a positive one the
sensitivity along the witness; whiten, and subtract what the operator's own uncertainty may cost.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rrf_design.bundles import Backend, Claims, bundled
from rrf_design.certificates.certificate import Certificate
from rrf_design.certificates.checker.document import FORMAT, VERSION, check_form, content_digest
from rrf_design.certificates.checker.errors import ErrorTerms, FieldBound, Tail, error_section, promised
from rrf_design.certificates.checker.noise import NoiseKind, NoiseRadius, joint_confidence
from rrf_design.certificates.checker.regime import CONSEQUENCE, ZERO, Finding, regime_of
from rrf_design.certificates.checker.wording import assumption_lines
from rrf_design.certificates.convex import no_nullspace, nullspace_section
from rrf_design.certificates.ladder import Rung, climb
from rrf_design.certificates.protecting import (
    climb_protected,
    protected_witness,
    protection_section,
    unwhitened_protected,
)
from rrf_design.certificates.recording import record_of
from rrf_design.certificates.rivals import plain_witness, rivals_section
from rrf_design.certificates.sections import (
    audit_section,
    bare_operator,
    budget_sections,
    conditional_section,
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
from rrf_design.derive import with_radii
from rrf_design.errors import InputError, Refused
from rrf_design.files import digest
from rrf_design.goal import Goal, Standing
from rrf_design.itemwise import for_each_item
from rrf_design.margins import check_k
from rrf_design.noise import Noise, largest_norm, node_weights

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection
    from solvers.result import Progress

SECONDS = 60.0  # for each search, where nobody says otherwise
VERIFY_RATIO = 2.0  # seconds to verify against seconds to search: about the median of the published benchmark
VERIFY_LEAST = 0.01


@bundled(noise=Noise, claims=Claims, backend=Backend)
@for_each_item("rrf_design.handover", "certify_dataset")
def certify(
    problem: Problem,
    select: Selection = None,
    *,
    k: int | None = None,
    rung: Rung | str = Rung.AUTO,
    require: float | None = None,
    noise: Noise | None = None,
    claims: Claims | None = None,
    backend: Backend | None = None,
) -> Certificate:
    """What can be promised about the owned blocks plus `select`.

    `noise` (epsilon, or sigma with confidence and kind; amplitude) replaces the problem's where it says something. `claims` are what is
    to be said beside the margin: `delta` instead of the problem's, `largest_error` (R of the minimax theorem), `budgets` (further
    values of k), `supports` (a family of node sets for a bound that holds relative to it only), uncertainty, tolerances, tail.
    `backend` says how the work is done; its `time_limit` (default: a minute) applies to each search, its `progress` hears of the share done and the bounds
    proven so far. InputError for what doesn't fit.

    The promise: every estimate with at most k wrong answers that fits within ε' is within 2ε'/γ of the truth. Returns a `Certificate`:
    `gamma_lower` and `gamma_upper`, `robust_lower`, `error_bound` (None where nothing can be promised), `regime`, and the document to save.

    >>> import rrf_design as rrf
    >>> problem = rrf.Problem(
    ...     k=1,
    ...     epsilon=0.1,
    ...     nodes=[{"id": "plain"}, {"id": "reworded"}, {"id": "capital"}],
    ...     relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
    ...     anchors=[
    ...         {"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0},
    ...         {"id": "atlas", "node": "capital", "value": 1.0, "cost": 2.0},
    ...     ],
    ... )
    >>> made = rrf.certify(problem, ["calculator", "atlas"])
    >>> made.regime.value, rrf.verify(made).valid
    ('computation', True)
    """
    from rrf_design import __version__

    budget = check_k(k, problem.k)
    if rung not in set(Rung):
        raise InputError(f"rung: {rung!r} is not one of {', '.join(Rung)}")
    asked, given = claims or Claims(), noise or Noise()
    means = Backend.of(backend, "certify", "n_jobs", "time_limit", "front_end", "progress")
    if means.front_end not in ("ortools", "pulp"):
        raise InputError(f"front_end: {means.front_end!r} is not one of ortools, pulp")
    time_limit = SECONDS if means.time_limit is None else means.seconds
    progress: Progress | None = means.progress
    spread = Uncertainty() if asked.uncertainty is None else asked.uncertainty
    original, problem = problem, with_radii(problem, spread.radii)
    design = problem.design(select)
    operator = design.slice(problem)
    guarded = not operator.premise.plain
    if guarded:
        _refuse_unguarded(budgets=asked.budgets, supports=asked.supports, largest_error=asked.largest_error)
    record = record_of(operator)
    options: dict[str, Any] = {"time_limit": time_limit, "n_jobs": means.n_jobs, "front_end": means.front_end}
    began = time.monotonic()
    protection: dict[str, Any] | None = None
    if guarded:
        proven, found = climb_protected(
            operator, budget, rung=Rung(rung), time_limit=time_limit, n_jobs=means.n_jobs, progress=progress
        )
        protection = protection_section(operator, found, budget, proven.lower)
        witness, image2, upper = protected_witness(record, protection, found)
    else:
        proven = climb(record, budget, rung=Rung(rung), progress=progress, **options)
        witness, image2, upper = witness_section(record, proven.support, proven.direction)
        found = plain_witness(operator, proven.support, proven.direction, value=upper, k=budget)
    searched = time.monotonic() - began
    lower = min(proven.lower, upper)
    exact = lower >= upper * (1 - 1e-6) or upper <= ZERO

    def told(done: float | None, *_: object) -> None:  # what follows changes nothing about these bounds
        if progress is not None:
            progress(done, (lower, upper), "")

    told(1.0)
    loss = uncertainty_section(record, lower, proven, 2 * budget, spread, time_limit, told, protection)
    reach = design.radius(problem, given)
    known = reach.rows
    tail = asked.tail
    if reach.answers is not None:
        for name in ("largest_error", "tolerances", "tail"):
            if getattr(asked, name) is not None:
                raise InputError(f"{name}: is not certified where answers scatter; leave it out")
    elif tail is None and reach.tail:
        tail = Tail(reach.tail, reach.image)
    if not reach.declared and reach.spread:  # undeclared is exact, here as everywhere; what is uncertain counts
        known = NoiseRadius(NoiseKind.DETERMINISTIC, 0.0, rows=known.rows)
    error = error_section(
        record,
        ErrorTerms(
            lower=lower,
            upper=upper,
            epsilon=known.epsilon,
            sigma=known.sigma if known.kind in (NoiseKind.GAUSSIAN, NoiseKind.CHI) else None,
            field=_field_bound(problem, operator, given.amplitude),
            largest_error=positive(asked.largest_error, "largest_error"),
            delta=positive(problem.delta if asked.delta is None else asked.delta, "delta"),
            confidence=joint_confidence(reach.confidence, operator.premise.sure, spread.confidence),
            tolerances=asked.tolerances,
            tail=tail,
            answers=reach.answers,
        ),
    )
    standing = Standing(Goal(problem.target, error["delta"]), budget, lower, loss["robust_lower"], reach)
    bare = bare_operator(problem, select)
    verdict = regime_of(
        Finding(
            lower,
            loss["robust_lower"],
            promised(error),
            error["delta"],
            error["largest_error"],
            error["spread"] is not None,
        )
    )
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "problem": {"name": problem.name, "digest": digest(original), "selected": list(problem.resolve(select))},
        "operator": record.to_document(file=file_name(record)),
        "k": budget,
        "metrics": metrics_section(problem, operator),
        "margin": {
            "lower": lower,
            "upper": upper,
            "status": "exact" if exact else "bounded",
            "rung": proven.rung,
            "proof": proven.proof,
        },
        "witness": witness,
        "conditional": None if asked.supports is None else conditional_section(record, asked.supports),
        "protection": protection,
        "uncertainty": loss,
        "noise": noise_section(replace(reach, rows=known), problem, operator),
        "error": error,
        "regime": {"name": str(verdict), "consequence": CONSEQUENCE[verdict]},
        "budgets": []
        if guarded
        else budget_sections(record, further_budgets(asked.budgets, budget, record), options, told),
        "nullspace": no_nullspace() if guarded else nullspace_section(record, budget),
        "audit": audit_section(witness, image2, upper, budget, operator.premise),
        "rivals": rivals_section(
            operator, record, found, noise=known, largest_error=asked.largest_error, protection=protection
        ),
        "provenance": {
            "package": f"rrf-design {__version__}",
            "notes": list(proven.notes),
            "unwhitened": _unwhitened(bare, budget, options, told),
        },
    }
    document["assumptions"] = assumption_lines(document, nodes=len(record.node_ids), uncertain=bool(record.radii.any()))
    try:
        document["digest"] = content_digest(document)
        check_form(document)
    except (ValueError, Refused) as fault:  # a bound that no double holds
        raise InputError(f"these numbers can't be certified; rescale the problem ({fault})") from None
    return Certificate(
        document,
        record,
        require,
        verification_seconds=VERIFY_RATIO * searched + VERIFY_LEAST,
        standing=standing,
    )


def _refuse_unguarded(**asked: Any) -> None:
    """What is proved of nodes only; nothing is certified that the verifier could not re-prove."""
    for name, value in asked.items():
        if value:
            raise InputError(f"{name}: is not certified with units, delivered values or suspect checks; leave it out")


def _unwhitened(bare: Operator | None, k: int, options: dict[str, Any], told: Progress) -> dict[str, Any] | None:
    if bare is None:
        return None
    if not bare.premise.plain:
        return unwhitened_protected(bare, k, options["time_limit"])
    return unwhitened_section(record_of(bare), k, options, told)


def _field_bound(problem: Problem, operator: Operator, amplitude: float | None) -> FieldBound:
    """What is known of the true field on the nodes of uncertain blocks."""
    named = list(node_weights(operator))
    sizes = {name: largest_norm(problem, operator, name) for name in named}
    known = {name: size for name, size in sizes.items() if size is not None}
    reach = problem.amplitude if amplitude is None else amplitude
    return FieldBound(reach if named else None, known if named and len(known) == len(named) else None)
