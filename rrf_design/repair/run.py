"""repair: validate, decode, judge, translate into the user's names."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rrf_design.errors import InputError
from rrf_design.repair.contract import (
    GUARANTEES,
    Alternative,
    Array,
    Candidate,
    Decoder,
    Diagnostics,
    Outcome,
    Repair,
    Task,
    Told,
    Values,
)
from rrf_design.repair.design import Design
from rrf_design.repair.fields import make_task
from rrf_design.repair.judgement import Verdict, judge, own_units

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection
    from rrf_design.repair.responses_file import ResponseField

DENSE_SUPPORTS = 20_000
"""Prefixes that an exact search may walk through on a dense field before `auto` prefers the convex decoder."""


def _exact() -> Decoder:
    from rrf_design.repair.exact import Exact

    return Exact()


def _convex() -> Decoder:
    from rrf_design.repair.convex import Convex

    return Convex()


def _discrete(solver: str) -> Callable[[], Decoder]:
    def build() -> Decoder:
        from rrf_design.repair.discrete import Discrete

        return Discrete(solver)

    return build


def _baseline(name: str) -> Callable[[], Decoder]:
    def build() -> Decoder:
        from rrf_design.repair.baselines import BASELINES

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


def repair(
    problem: Problem,
    responses: Any,
    *,
    select: Selection = None,
    method: str = "auto",
    k: int | None = None,
    epsilon: float | None = None,
    candidates: Mapping[str, Any] | None = None,
    truth: Mapping[str, Any] | None = None,
    hidden: Mapping[str, bool] | None = None,
    anchors: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    progress: Told | None = None,
    **options: Any,
) -> Repair:
    """Which responses were wrong, and what they should have been.

    `responses` maps node ids to numbers, lists, raw text (for nodes with a parser) or None, or is a path. `method` is
    auto, exact, convex, discrete, min-sum, majority, median or mode. ε is the argument, else the problem's epsilon,
    else the radius of its sigma and confidence, else 0 with the stated rounding tolerance. `truth` is used for nothing
    but the failure labels. `progress` is called now and then with the share that is done and what is
    known so far. `options` go to the decoder (convex: penalty, weights; discrete: solver, beta, mu, depth).
    """
    operator = problem.operator(select)
    task, field = make_task(
        problem,
        operator,
        responses,
        k=k,
        epsilon=epsilon,
        candidates=candidates,
        anchors=anchors,
        options=options,
        n_jobs=n_jobs,
        time_limit=time_limit,
        seed=seed,
        progress=progress,
    )
    decoder, why = choose(method, task)
    refuse_calibration_fields(task)
    started = time.perf_counter()
    design = Design.of(task)
    outcome = decoder.decode(task)
    if progress is not None:
        design.watch(_so_far(task, outcome))
    return finish(
        task,
        field,
        outcome,
        design,
        selected=problem.resolve(select),
        truth=truth,
        hidden=hidden,
        seconds=time.perf_counter() - started,
        notes=(why,) if why else (),
    )


def _so_far(task: Task, outcome: Outcome) -> Callable[[float, float, float], None]:
    """Progress of the margin, which comes last: the answer is there, what it is worth is not."""
    edited = [name for name, i in task.operator.node_index.items() if outcome.error[task.operator.groups[i]].any()]
    found = ", ".join(name for name in edited if task.operator.node_index[name] not in task.erased) or "no answer"

    def told(share: float, lower: float, upper: float) -> None:
        assert task.progress is not None
        task.progress(share, f"found wrong: {found}; without its margin yet, γ is between {lower:.4g} and {upper:.4g}")

    return told


def choose(method: str, task: Task) -> tuple[Decoder, str]:
    """The decoder, and for "auto" the reason (paper's Algorithm 1: exact where feasible, candidates where given, else convex)."""
    from rrf_design.files import suggestion

    if method not in METHODS:
        hint = suggestion(method, METHODS) or f"; known: {', '.join(METHODS)}"
        raise InputError(f"unknown method {method!r}{hint}")
    name, why = _automatic(task) if method == "auto" else (method, "")
    decoder = _DECODERS[name]()
    for option in task.options:
        if option not in decoder.options:
            others = [other for other in _DECODERS if option in _DECODERS[other]().options]
            hint = f"; it belongs to {' and '.join(others)}" if others else suggestion(option, decoder.options)
            raise InputError(f"method {name} has no option {option!r}{hint}")
    return decoder, why


def _automatic(task: Task) -> tuple[str, str]:
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
    from rrf_design.repair.calibration import Calibration

    penalty = task.options.get("penalty")
    if isinstance(penalty, Calibration):
        penalty.check(task)


def finish(
    task: Task,
    field: ResponseField,
    outcome: Outcome,
    design: Design,
    *,
    selected: tuple[str, ...] = (),
    truth: Mapping[str, Any] | None = None,
    hidden: Mapping[str, bool] | None = None,
    seconds: float = 0.0,
    notes: tuple[str, ...] = (),
    digest: str | None = None,
) -> Repair:
    """An outcome in the user's names, with verdict and diagnostics."""
    from rrf_design.files import digest as digest_of

    operator, facts = task.operator, design.facts
    misfit = operator.matrix @ outcome.error - task.syndrome
    residual = float(np.linalg.norm(misfit))
    edited = tuple(
        i for i, part in enumerate(operator.groups) if i not in set(task.erased) and outcome.error[part].any()
    )
    verdict = judge(task, outcome, design, support=edited, residual=residual)
    repaired = _repaired(task, design, outcome, edited)
    blank = tuple(name for name, value in repaired.items() if value is None)
    if blank and verdict.certainty in GUARANTEES:
        reason = f"{verdict.reason} But nothing determines the value of {', '.join(blank)}."
        verdict = Verdict(verdict.certainty, reason, verdict.error_bound, False)
    relation, anchor = _by_kind(task, misfit)
    result = Repair(
        repaired=repaired,
        support=tuple(operator.node_ids[i] for i in edited),
        residual=residual,
        gamma=facts.gamma,
        error_bound=verdict.error_bound,
        bounds={} if verdict.error_bound is None else own_units(task, verdict.error_bound),
        method=outcome.method,
        certainty=verdict.certainty,
        guaranteed=verdict.guaranteed,
        reason=verdict.reason,
        error=operator.unstack(outcome.error, only=edited),
        alternatives=_alternatives(task, outcome, verdict, edited),
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
            posterior_bound=(task.epsilon + residual) / facts.lower if verdict.error_bound is not None else None,
            complete=outcome.complete,
            iterations=outcome.iterations,
            seconds=seconds,
            seed=task.seed,
            details={"margin_method": facts.method, **outcome.details},
        ),
        selected=selected,
        problem_digest=digest_of(task.problem) if digest is None else digest,
        notes=(*notes, *outcome.notes),
    )
    return result if truth is None else _with_truth(task, field, result, truth, hidden)


def _repaired(task: Task, design: Design, outcome: Outcome, edited: tuple[int, ...]) -> dict[str, Values | None]:
    """ẑ = y − ê; untouched responses stay as they were given, values that nothing determines are None."""
    changed = (*task.erased, *edited)
    moved = task.operator.unstack(task.response - outcome.error, only=changed)
    result: dict[str, Values | None] = {**task.values, **moved}
    claimed = task.erased if outcome.heuristic or len(edited) > task.k else changed
    for i in {*outcome.unknown, *(design.undetermined(claimed) if claimed else ())}:
        result[task.operator.node_ids[i]] = None
    return {name: result[name] for name in task.operator.node_ids}


def _alternatives(task: Task, outcome: Outcome, verdict: Verdict, edited: tuple[int, ...]) -> tuple[Alternative, ...]:
    others = [item for item in outcome.explanations if item.support != edited]
    found = [_alternative(task, item.error, item, free=0) for item in others]
    found += [_alternative(task, outcome.error + item.error, item, free=1) for item in verdict.hidden]
    return tuple(found)


def _alternative(task: Task, error: Array, item: Candidate, *, free: int) -> Alternative:
    names = tuple(task.operator.node_ids[i] for i in item.support)
    values = task.operator.unstack(task.response - error, only=item.support)
    return Alternative(names, {name: None if free else values[name] for name in names}, item.residual, item.edge, free)


def _by_kind(task: Task, misfit: Array) -> tuple[float, float]:
    sizes = np.diff(task.operator.block_offsets)
    anchors = np.repeat(np.array([kind == "anchor" for kind in task.operator.block_kinds], dtype=np.bool_), sizes)
    return float(np.linalg.norm(misfit[~anchors])), float(np.linalg.norm(misfit[anchors]))


def _with_truth(
    task: Task, field: ResponseField, result: Repair, truth: Mapping[str, Any], hidden: Mapping[str, bool] | None
) -> Repair:
    from dataclasses import replace

    from rrf_design.repair.responses_file import collect
    from rrf_design.repair.taxonomy import Evidence, classify, truth_error

    known = collect(
        task.problem, {n: v for n, v in truth.items() if n in task.operator.node_index}, nodes=task.operator.node_ids
    )
    evidence = Evidence(
        truth=known.values,
        values=field.values,
        repaired=result.repaired,
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
