"""Why a repair is not the truth, where the truth is known: labels for experiments, never part of a repair itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from rrf_design.repairing.contract import Repair, Task, Values
from rrf_design.repairing.responses_file import ResponseField, collect
from rrf_design.repairing.taxonomy import FailureEvidence, classify, truth_error


def with_truth(
    task: Task,
    field: ResponseField,
    result: Repair,
    estimate: Mapping[str, Values | None],
    truth: Mapping[str, Any],
    hidden: Mapping[str, bool] | None,
) -> Repair:
    """Why the estimate is not the truth, also where it is not given out as a value."""
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
        tolerance=task.slack + task.epsilon,
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
