"""repair: validate, decode, judge, translate into the user's names."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rrf_design.bundles import Backend, Given, bundled, refuse_unused
from rrf_design.errors import InputError
from rrf_design.goal import Goal
from rrf_design.itemwise import itemwise
from rrf_design.noise import Noise
from rrf_design.repairing.contract import (
    Alternative,
    Array,
    Candidate,
    Certainty,
    Decoder,
    DecoderOutcome,
    Diagnostics,
    Repair,
    Task,
    Values,
)
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.judgement import Assessment, judge
from rrf_design.repairing.suspects import rows_of, surely_wrong
from rrf_design.repairing.uncertain import widened
from rrf_design.repairing.values import agreed_values, delivered_bounds, edited_nodes, repaired_values
from rrf_design.verdict import Evidence, Explained, Verdict, assumed, decide

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection
    from rrf_design.repairing.responses_file import ResponseField
    from solvers.result import Progress

DENSE_SUPPORTS = 20_000
"""Prefixes that an exact search may walk through on a dense field before `auto` prefers the convex decoder."""


def _exact() -> Decoder:
    from rrf_design.repairing.exact import Exact

    return Exact()


def _convex() -> Decoder:
    from rrf_design.repairing.convex import Convex

    return Convex()


def _discrete(solver: str) -> Callable[[], Decoder]:
    def build() -> Decoder:
        from rrf_design.repairing.discrete import Discrete

        return Discrete(solver)

    return build


def _baseline(name: str) -> Callable[[], Decoder]:
    def build() -> Decoder:
        from rrf_design.repairing.baselines import BASELINES

        return BASELINES[name]()

    return build


_DECODERS: dict[str, Callable[[], Decoder]] = {
    "exact": _exact,
    "convex": _convex,
    "discrete": _discrete("auto"),
    "min-sum": _discrete("min-sum"),
    "majority": _baseline("majority"),
    "median": _baseline("median"),
    "mode": _baseline("mode"),
}
METHODS = ("auto", *_DECODERS)
MEANS = ("n_jobs", "time_limit", "seed", "progress", "options")
"""What a repair takes of a `Backend`."""


@bundled(noise=Noise, given=Given, backend=Backend, rest="backend")
@itemwise("rrf_design.handover", "repair_dataset")
def repair(
    problem: Problem,
    responses: Any,
    *,
    select: Selection = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    given: Given | None = None,
    backend: Backend | None = None,
) -> Repair:
    """Which responses were wrong, and what they should have been; of a data set, in every item (`repair_dataset`).

    `responses` maps node ids to numbers, lists, raw text (for nodes with a parser) or None, or is a path. `method` is
    auto, exact, convex, discrete, min-sum, majority, median or mode. ε is that of `noise`, else the problem's epsilon,
    else the radius of its sigma and confidence, else 0 with the stated rounding tolerance. `given` is what is known beside the
    answers: candidates, anchor values, and the truth, which is used for nothing but the failure labels. `backend` says how the work is
    done; its `options` go to the decoder (convex: penalty, weights; discrete: solver, beta, mu, depth).

    Responses are y = z + e, and ‖B e − s‖ ≤ ε for the syndrome s = B y − c: the error with the fewest wrong nodes is sought. Returns
    a `Repair`: `repaired` values (None where nothing vouches for one), the wrong nodes (`support`), `verdict` with what it `assumes`,
    `error_bound`, and other explanations (`alternatives`).

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
    >>> answers = {"plain": 42, "reworded": 17, "capital": 1}
    >>> fixed = rrf.repair(problem, answers, select=["calculator", "atlas"])
    >>> fixed.verdict.value, fixed.support, fixed.repaired["reworded"]
    ('certified', ('reworded',), (42.0,))
    """
    beside, means = given or Given(), Backend.of(backend, "repair", *MEANS)
    refuse_unused(beside, "repair of one problem", ("candidates", "anchors", "truth", "hidden"))
    if problem.nonlinear:
        from rrf_design.repairing.locally import repair_locally

        other = {"select": select, "method": None if method == "auto" else method, "candidates": beside.candidates}
        other |= {"truth": beside.truth, "anchors": beside.anchors, **means.options}
        return repair_locally(problem, responses, k=k, noise=noise, seed=means.seed, other=other)
    operator = problem.operator(select)
    task, field = make_task(problem, operator, responses, k=k, noise=noise, given=beside, backend=means)
    decoder, why = choose(method, task)
    refuse_calibration_fields(task)
    started = time.perf_counter()
    design = Decoding.of(task)
    task, outcome = decode(task, decoder, design)
    if means.progress is not None:
        design.watch(_so_far(task, outcome))
    return finish(
        task,
        field,
        outcome,
        design,
        selected=problem.resolve(select),
        given=beside,
        seconds=time.perf_counter() - started,
        notes=(why,) if why else (),
    )


def _posterior(task: Task, residual: float, lower: float) -> float:
    return (task.epsilon + residual) / lower + (0.0 if task.radius is None else task.radius.tail)


def decode(task: Task, decoder: Decoder, design: Decoding) -> tuple[Task, DecoderOutcome]:
    """The decoder's outcome at the radius that the truth keeps to, and the task with that radius."""
    wider = widened(task, decoder, design)
    if wider is not None:
        return wider, decoder.decode(wider)
    note = (
        "relations are uncertain by more than the margin allows, and nothing bounds the true answers; give their nodes a"
        " range, or the problem an amplitude"
    )
    found = decoder.decode(task)
    return task, replace(found, boundless=True, notes=(*found.notes, note))


def _so_far(task: Task, outcome: DecoderOutcome) -> Progress:
    """Progress of the margin, which comes last: the answer is there, what it is worth is not."""
    edited = [name for name, i in task.operator.node_index.items() if outcome.error[task.operator.groups[i]].any()]
    found = ", ".join(name for name in edited if task.operator.node_index[name] not in task.erased) or "no answer"

    def told(share: float | None, bounds: tuple[float, float] | None, _: str) -> None:
        assert task.progress is not None
        lower, upper = bounds or (0.0, float("inf"))
        words = f"found wrong: {found}; without its margin yet, γ is between {lower:.4g} and {upper:.4g}"
        task.progress(share, bounds, words)

    return told


def choose(method: str, task: Task) -> tuple[Decoder, str]:
    """The decoder, and for "auto" the reason (paper's Algorithm 1: exact where feasible, candidates where given, else convex)."""
    from rrf_design.files import suggestion

    if method not in METHODS:
        hint = suggestion(method, METHODS) or f"; known: {', '.join(METHODS)}"
        raise InputError(f"unknown method {method!r}{hint}")
    name, why = _automatic(task) if method == "auto" else (method, "")
    decoder = _DECODERS[name]()
    _refuse_units(decoder, task)
    for option in task.options:
        if option not in decoder.options:
            others = [other for other in _DECODERS if option in _DECODERS[other]().options]
            hint = f"; it belongs to {' and '.join(others)}" if others else suggestion(option, decoder.options)
            raise InputError(f"method {name} has no option {option!r}{hint}")
    return decoder, why


def _refuse_units(decoder: Decoder, task: Task) -> None:
    """Better no answer than one that counts something else."""
    premise = task.operator.premise
    if decoder.counts_units or not (premise.units or premise.wrong_checks):
        return
    what = "units of several nodes" if premise.units else "checks that may be wrong"
    raise InputError(f"method {decoder.name}: it knows nothing of {what}; use method exact")


def _automatic(task: Task) -> tuple[str, str]:
    premise = task.operator.premise
    if premise.units or premise.wrong_checks:
        also = "; candidates are not used" if task.candidates else ""
        return "exact", f"exact, the only method that knows units and checks that may be wrong{also}"
    if task.candidates:
        return "discrete", "discrete, because candidates were given"
    nodes = len(task.operator.node_ids) - len(task.erased)
    prefixes = np.prod([float(nodes - i) for i in range(max(0, min(task.k, nodes) - 2))])
    rows, columns = task.operator.shape
    filled = task.operator.matrix.nnz / max(1, rows * columns)
    if task.k <= 2 or filled <= 0.2 or prefixes <= DENSE_SUPPORTS:
        return "exact", "exact, because the support search is feasible"
    why = f"convex, because an exact search at k = {task.k} on a dense field of {nodes} nodes is not feasible"
    return "convex", why


def refuse_calibration_fields(task: Task) -> None:
    """A λ tuned on this very field would make the method an oracle."""
    from rrf_design.repairing.calibration import PenaltyCalibration

    penalty = task.options.get("penalty")
    if isinstance(penalty, PenaltyCalibration):
        penalty.check(task)


def finish(
    task: Task,
    field: ResponseField,
    outcome: DecoderOutcome,
    design: Decoding,
    *,
    selected: tuple[str, ...] = (),
    given: Given | None = None,
    seconds: float = 0.0,
    notes: tuple[str, ...] = (),
    digest: str | None = None,
) -> Repair:
    """An outcome in the user's names, with verdict and diagnostics; `digest` is the problem's, where it is known already."""
    from rrf_design.files import digest as digest_of

    operator, facts = task.operator, design.facts
    misfit = operator.matrix @ outcome.error - task.syndrome
    if outcome.checks:
        misfit[rows_of(task, outcome.checks)] = 0.0  # what is set aside is not explained
    residual = float(np.linalg.norm(misfit))
    edited = edited_nodes(task, outcome)
    found = judge(task, outcome, design, support=edited, residual=residual)
    estimate = repaired_values(task, design, outcome, edited)
    blank = operator.premise.wanted(name for name, value in estimate.items() if value is None)
    verdict = decide(_evidence(task, outcome, design, found, blank))
    reason = found.reason
    if blank and found.error_bound is not None:
        reason = f"{reason} But nothing determines the value of {', '.join(blank)}."
    if verdict is Verdict.INCOMPLETE and field.invalid:
        reason = f"There is no readable answer of {_some(tuple(field.invalid))}; {reason}"
    unfit = found.certainty is Certainty.UNEXPLAINED  # what fits nothing is no repair, whoever found it
    if unfit:
        reason = f"{reason} No values are given: {_next_step(task)}"
    relation, anchor = _by_kind(task, misfit)
    values: dict[str, Values | None] = (
        dict.fromkeys(estimate) if unfit else agreed_values(task, outcome, design, found, estimate)
    )
    withheld = {"nearest": estimate, "blamed": [operator.node_ids[i] for i in edited]} if values != estimate else {}
    result = Repair(
        repaired=values,
        support=() if unfit else tuple(operator.node_ids[i] for i in edited),
        residual=residual,
        gamma=facts.gamma,
        error_bound=found.error_bound,
        bounds={} if found.error_bound is None else delivered_bounds(task, found.error_bound),
        method=outcome.method,
        certainty=found.certainty,
        verdict=verdict,
        assumes=_assumes(task),
        reason=reason,
        error={} if unfit else operator.unstack(outcome.error, only=edited),
        alternatives=() if unfit else _alternatives(task, outcome, found, edited),
        indistinguishable=tuple(operator.node_ids[i] for i in design.unseen_nodes),
        erased=dict(field.invalid),
        k=task.k,
        epsilon=task.epsilon,
        tolerance=task.tolerance,
        gamma_lower=facts.lower,
        witness=operator.unstack(facts.direction, only=facts.support),
        diagnostics=Diagnostics(
            objective=outcome.objective,
            relation_residual=relation,
            anchor_residual=anchor,
            active_groups=len(edited),
            gap=outcome.gap,
            best_smaller=outcome.best_smaller,
            posterior_bound=_posterior(task, residual, facts.lower) if found.error_bound is not None else None,
            complete=outcome.complete,
            iterations=outcome.iterations,
            seconds=seconds,
            seed=task.seed,
            details={
                "margin_method": facts.method,
                **withheld,
                **outcome.details,
            },
        ),
        selected=selected,
        problem_digest=digest_of(task.problem) if digest is None else digest,
        notes=(*notes, *outcome.notes),
        wanted=_wanted(task),
        robust_lower=design.robust_lower,
        wrong_checks=() if unfit else tuple(operator.block_ids[j] for j in surely_wrong(outcome)),
    )
    if given is None or given.truth is None:
        return result
    return _with_truth(task, field, result, estimate, given.truth, given.hidden)


_EXPLAINED = {
    Certainty.UNIQUE: Explained.UNIQUELY,
    Certainty.UNIQUE_HERE: Explained.UNIQUELY,
    Certainty.BOUNDED: Explained.OTHERWISE,
    Certainty.AMBIGUOUS: Explained.OTHERWISE,
    Certainty.UNEXPLAINED: Explained.NOT,
    Certainty.UNDECIDED: Explained.OPEN,
    Certainty.HEURISTIC: Explained.OPEN,
}


def _evidence(
    task: Task, outcome: DecoderOutcome, design: Decoding, found: Assessment, blank: tuple[str, ...]
) -> Evidence:
    explained = _EXPLAINED[found.certainty]
    if explained is Explained.NOT and not (outcome.proved and not outcome.explanations):
        explained = Explained.OPEN  # this method found nothing that fits; that is no proof that nothing does
    rounding = 1e-9 * max(1.0, float(np.abs(task.response).max(initial=0.0)))
    return Evidence(
        explained=explained,
        goal=Goal.of(task.problem),
        lower=design.facts.lower,
        robust_lower=design.robust_lower,
        bound=found.error_bound,
        exact=found.error_bound is not None and found.error_bound <= rounding,
        blank=blank,
    )


def _assumes(task: Task) -> str:
    unread = {task.operator.node_ids[i] for i in task.erased}
    others = bool(task.operator.premise.suspects.intersection(task.operator.block_ids))
    noise = "" if task.radius is None else task.radius.words(others=others)
    return assumed(task.operator, task.k, noise, unread=unread)


def _wanted(task: Task) -> float | None:
    if task.radius is None:
        return None
    wish = Goal.of(task.problem).wanted(task.radius)
    return None if wish == float("inf") else wish


def _some(names: tuple[str, ...], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _next_step(task: Task) -> str:
    """What whoever reads a contradiction can do: look at the rows that the answers break most."""
    operator = task.operator
    count = len(operator.block_ids)
    owner = np.repeat(np.arange(count), np.diff(operator.block_offsets))
    silent = np.zeros(operator.shape[1], dtype=bool)
    for i in task.erased:
        silent[operator.groups[i]] = True
    told = sparse.csr_array(abs(operator.matrix)) @ silent.astype(np.float64) == 0
    energy = np.bincount(owner, weights=np.square(task.syndrome) * told, minlength=count)
    worst = [operator.block_ids[j] for j in np.argsort(-energy, kind="stable")[:3] if energy[j] > task.tolerance**2]
    look = f"look at {', '.join(worst)}, which the answers break most; " if worst else ""
    return f"{look}ask again, buy a check, or allow for more wrong answers than k = {task.k}."


def _alternatives(
    task: Task, outcome: DecoderOutcome, found: Assessment, edited: tuple[int, ...]
) -> tuple[Alternative, ...]:
    others = [item for item in outcome.explanations if (item.support, item.checks) != (edited, outcome.checks)]
    listed = [_alternative(task, item.error, item, free=0) for item in others]
    listed += [_alternative(task, outcome.error + item.error, item, free=1) for item in found.hidden]
    return tuple(listed)


def _alternative(task: Task, error: Array, item: Candidate, *, free: int) -> Alternative:
    names = tuple(task.operator.node_ids[i] for i in item.support)
    values = task.operator.unstack(task.response - error, only=item.support)
    repaired = {name: None if free else values[name] for name in names}
    checks = tuple(task.operator.block_ids[j] for j in item.checks)
    return Alternative(names, repaired, item.residual, item.edge, free, checks)


def _by_kind(task: Task, misfit: Array) -> tuple[float, float]:
    anchors = task.operator.of_anchors
    return float(np.linalg.norm(misfit[~anchors])), float(np.linalg.norm(misfit[anchors]))


def _with_truth(
    task: Task,
    field: ResponseField,
    result: Repair,
    estimate: Mapping[str, Values | None],
    truth: Mapping[str, Any],
    hidden: Mapping[str, bool] | None,
) -> Repair:
    """Why the estimate is not the truth, also where it is not given out as a value."""
    from rrf_design.repairing.responses_file import collect
    from rrf_design.repairing.taxonomy import FailureEvidence, classify, truth_error

    known = collect(
        task.problem, {n: v for n, v in truth.items() if n in task.operator.node_index}, nodes=task.operator.node_ids
    )
    evidence = FailureEvidence(
        truth=known.values,
        values=field.values,
        repaired=estimate,
        erased=field.invalid,
        k=task.k,
        gamma_lower=result.gamma_lower,
        error_bound=result.error_bound,
        relation_residual=_agreement(task),
        tolerance=max(task.tolerance, 1e-9 * max(1.0, float(np.abs(task.response).max(initial=0.0)))) + task.epsilon,
        recall=result.diagnostics.details.get("recall"),
        hidden=hidden,
    )
    recall = _recall(task, known.values, result)
    if recall is not None:
        evidence = replace(evidence, recall=recall == 1.0)
        details = {**result.diagnostics.details, "candidate_recall": recall}
        result = replace(result, diagnostics=replace(result.diagnostics, details=details))
    return replace(result, failures=classify(evidence), truth_error=truth_error(evidence))


def _recall(task: Task, truth: Mapping[str, Values], result: Repair) -> float | None:
    """Share of nodes whose candidates hold the truth, when the method had candidates."""
    closure = result.diagnostics.details.get("candidates")
    if not closure or not truth:
        return None
    hits = [
        any(np.allclose(value, truth[name], rtol=1e-9, atol=1e-9) for value in closure.get(name, ())) for name in truth
    ]
    return sum(hits) / len(hits)


def _agreement(task: Task) -> float:
    """Residual of the responses as given, over relations whose nodes all answered."""
    operator = task.operator
    silent = np.zeros(operator.shape[1], dtype=np.bool_)
    for i in task.erased:
        silent[operator.groups[i]] = True
    touched = sparse.csr_array(abs(operator.matrix)) @ silent.astype(np.float64) > 0
    sizes = np.diff(operator.block_offsets)
    relations = np.repeat(np.array([kind == "relation" for kind in operator.block_kinds], dtype=np.bool_), sizes)
    return float(np.linalg.norm(task.syndrome[relations & ~touched]))
