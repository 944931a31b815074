"""From what a decoder found to a repair in the user's names: judged, valued, bounded and explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from rrf_design.bundles import Given
from rrf_design.repairing.contract import (
    Alternative,
    Array,
    Candidate,
    Certainty,
    DecoderOutcome,
    Diagnostics,
    Repair,
    Task,
    Values,
)
from rrf_design.repairing.judgement import Assessment, judge
from rrf_design.repairing.suspects import rows_of, surely_wrong
from rrf_design.repairing.truths import with_truth
from rrf_design.repairing.values import agreed_values, delivered_bounds, edited_nodes, fixed_values, repaired_values
from rrf_design.verdict import Evidence, Explained, Verdict, decide

if TYPE_CHECKING:
    from rrf_design.repairing.decoding import Decoding
    from rrf_design.repairing.responses_file import ResponseField


def _posterior(task: Task, residual: float, lower: float) -> float:
    return (task.epsilon + residual) / lower + (0.0 if task.radius is None else task.radius.tail)


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
    operator, facts, grounds = task.operator, design.facts, design.grounds(task)
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
    fixed = fixed_values(task)
    values: dict[str, Values | None] = (
        dict.fromkeys(estimate) if unfit else agreed_values(task, outcome, design, found, estimate, fixed=fixed)
    )
    withheld = {"nearest": estimate, "blamed": [operator.node_ids[i] for i in edited]} if values != estimate else {}
    result = Repair(
        repaired=values,
        support=() if unfit else tuple(operator.node_ids[i] for i in edited),
        residual=residual,
        gamma=facts.gamma,
        error_bound=found.error_bound,
        bounds={} if found.error_bound is None else delivered_bounds(task, found.error_bound, fixed=fixed),
        method=outcome.method,
        certainty=found.certainty,
        verdict=verdict,
        assumes=grounds.assumes,
        reason=reason,
        error={} if unfit else operator.unstack(outcome.error, only=edited),
        alternatives=() if unfit else _alternatives(task, outcome, found, edited),
        indistinguishable=tuple(operator.node_ids[i] for i in design.unseen_nodes),
        erased=dict(field.invalid),
        k=task.k,
        epsilon=task.epsilon,
        tolerance=task.tolerance,
        gamma_lower=facts.lower,
        witness=dict(design.witness),
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
        problem_digest=task.problem.digest if digest is None else digest,
        notes=(*notes, *outcome.notes),
        wanted=grounds.wanted,
        robust_lower=design.robust_lower,
        wrong_checks=() if unfit else tuple(operator.block_ids[j] for j in surely_wrong(outcome)),
    )
    if given is None or given.truth is None:
        return result
    return with_truth(task, field, result, estimate, given.truth, given.hidden)


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
    return Evidence(
        explained=explained,
        goal=design.grounds(task).goal,
        lower=design.facts.lower,
        robust_lower=design.robust_lower,
        bound=found.error_bound,
        exact=found.error_bound is not None and found.error_bound <= task.rounding,
        blank=blank,
    )


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
