"""Why a repair failed, where the truth is known (paper, "Failure-case taxonomy"): labels for
experiments, never part of a repair itself.

Labels are not exclusive. Only "zero or low margin" is what γ_k captures: the theory predicts
neither candidate recall nor parser correctness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
from scipy import sparse

from rrf_design.repairing._fields import collect
from rrf_design.repairing.contract import Prepared, Repair, Task, Values


class Failure(StrEnum):
    CANDIDATE_ABSENCE = "candidate absence"
    """No correct answer was there to be found: no response is right, or no candidate is."""
    SHARED_ERROR = "shared error"
    """All valid responses agree with each other, and are wrong."""
    BUDGET_VIOLATION = "budget violation"
    """More than k responses are wrong."""
    REPRESENTATION_COLLISION = "representation collision"
    """The represented answers are right, but what they stand for is not (hidden tests fail)."""
    MARGIN = "zero or low margin"
    """The design admits an error of this size that it can't see, or not above the noise."""
    OPTIMISATION = "optimisation"
    """A correct candidate was there and the information sufficed, but the algorithm chose
    otherwise.
    """
    PARSE_FAILURE = "parse failure"
    """Some responses could not be represented."""


def with_truth(one: Prepared, task: Task, result: Repair, estimate: Mapping[str, Values | None]) -> Repair:
    """The repair with every label that applies to its estimate, also where that is not given out as
    a value; none when it is the truth within its own bound.
    """
    asked = {name: value for name, value in (one.truth or {}).items() if name in task.operator.node_index}
    truth = collect(task.problem, asked, nodes=task.operator.node_ids).values
    off = _distance(estimate, truth)
    details = dict(result.diagnostics.details)
    closure, recalled = details.get("candidates"), None
    if closure and truth:  # the method had candidates: the share of nodes where they hold the truth
        hits = [any(np.allclose(v, truth[name], rtol=1e-9, atol=1e-9) for v in closure.get(name, ())) for name in truth]
        details["candidate_recall"] = sum(hits) / len(hits)
        recalled = all(hits)
        result = replace(result, diagnostics=replace(result.diagnostics, details=details))
    collided = one.hidden is not None and not all(one.hidden.values())
    if off <= task.slack + task.epsilon + (result.error_bound or 0.0):
        labels = [Failure.REPRESENTATION_COLLISION] if collided else []
    else:
        labels = _labels(one, task, result, truth, recalled=recalled, collided=collided)
    return replace(result, failures=tuple(labels), truth_error=off)


def _labels(
    one: Prepared, task: Task, result: Repair, truth: Mapping[str, Values], *, recalled: bool | None, collided: bool
) -> list[Failure]:
    answered, tolerance = one.field.values, task.slack + task.epsilon
    known = [name for name in answered if name in truth]
    wrong = [name for name in known if float(np.linalg.norm(np.subtract(answered[name], truth[name]))) > tolerance]
    all_wrong = bool(known) and len(wrong) == len(known)
    absent = all_wrong if recalled is None else not recalled
    size = _distance(answered, {name: truth[name] for name in wrong})
    low = result.gamma_lower <= 0.0 or (result.error_bound is not None and result.error_bound >= size > 0.0)
    agreed = len(known) > 1 and all_wrong and _relation_residual(task) <= tolerance
    decided = {
        Failure.CANDIDATE_ABSENCE: absent,
        Failure.SHARED_ERROR: agreed,
        Failure.BUDGET_VIOLATION: len(wrong) > task.k,
        Failure.REPRESENTATION_COLLISION: collided,
        Failure.MARGIN: low,
        Failure.PARSE_FAILURE: bool(one.field.invalid),
    }
    labels = [label for label, applies in decided.items() if applies]
    sufficed = not (absent or low or len(wrong) > task.k or one.field.invalid)
    return [*labels, Failure.OPTIMISATION] if sufficed or not labels else labels


def _distance(values: Mapping[str, Values | None], truth: Mapping[str, Values]) -> float:
    """‖ẑ − z‖ over the nodes with a known truth; infinite when a node has no value."""
    total = 0.0
    for name, true in truth.items():
        value = values.get(name)
        if value is None:
            return float("inf")
        total += float(np.sum(np.square(np.subtract(value, true))))
    return float(np.sqrt(total))


def _relation_residual(task: Task) -> float:
    """Residual of the responses as given, over relations whose nodes all answered."""
    operator = task.operator
    silent = np.zeros(operator.shape[1], dtype=np.bool_)
    for i in task.erased:
        silent[operator.groups[i]] = True
    touched = sparse.csr_array(abs(operator.matrix)) @ silent.astype(np.float64) > 0
    sizes = np.diff(operator.block_offsets)
    relations = np.repeat(np.array([kind == "relation" for kind in operator.block_kinds], dtype=np.bool_), sizes)
    return float(np.linalg.norm(task.syndrome[relations & ~touched]))


def count_failures(failures: Sequence[tuple[Failure, ...]]) -> dict[str, int]:
    """How often each label occurs over a batch.

    Parameters
    ----------
    failures : the labels of each repair (`Repair.failures`).

    Returns
    -------
    dict
        A count for every label there is.

    >>> from rrf_design.repairing import Failure, count_failures
    >>> count_failures([(Failure.MARGIN,), (), (Failure.MARGIN,)])["zero or low margin"]
    2
    """
    return {str(label): sum(label in labels for labels in failures) for label in Failure}
