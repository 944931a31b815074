"""Convex repair: group basis pursuit denoising, or its penalised form when a λ is given.

A positive margin does not certify it (kernel (1, 0.4, 0.4)); its answer is judged like any other: when it edits at
most k nodes and reaches ε, the stability theorem applies to it, and otherwise nothing is promised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rrf_design.errors import InputError
from rrf_design.repairing.contract import Array, Decoder, DecoderOutcome, Task
from solvers.decoding import GroupProblem, group_bpdn, group_lasso
from solvers.decoding.spans import project_out, span_of

ACTIVE = 1e-5
"""A node counts as edited when its error is longer than this share of the longest one."""


class Convex(Decoder):
    """Options: `penalty` (λ of the penalised form, or a `PenaltyCalibration`), `weights` by node id, `max_iterations`."""

    name = "convex"
    options = ("penalty", "weights", "max_iterations")

    def decode(self, task: Task) -> DecoderOutcome:
        prepared = prepare(task)
        penalty = task.options.get("penalty")
        limits: dict[str, Any] = {"time_limit": task.time_limit}
        if task.options.get("max_iterations") is not None:
            limits["max_iterations"] = int(task.options["max_iterations"])
        s = prepared.reduce(task.syndrome)
        try:
            if penalty is None:
                found = group_bpdn(prepared.problem, syndrome=s, epsilon=task.epsilon + task.tolerance, **limits)
            else:
                found = group_lasso(
                    prepared.problem, syndrome=s, penalty=float(getattr(penalty, "penalty", penalty)), **limits
                )
        except ValueError as fault:
            raise InputError(f"convex repair: {fault}") from None
        error = prepared.expand(found.error)
        notes = [] if found.converged else ["the iteration stopped before its duality gap closed"]
        refitted = _refit(task, error)
        if refitted is not None:
            error = refitted
            notes.append("values were refitted by least squares on the edited nodes")
        else:
            error = _fill_erased(task, error)
        return DecoderOutcome(
            error=error,
            method="convex" if penalty is None else "convex, penalised",
            complete=found.converged,
            gap=found.gap,
            objective=found.objective,
            iterations=found.iterations,
            notes=tuple(notes),
            details={"penalty": found.penalty, "converged": found.converged, "convex_residual": found.residual},
        )


class AnsweredProblem:
    """The convex problem on the answered nodes, with erased columns projected out; `expand` is the way back."""

    def __init__(self, task: Task) -> None:
        operator = task.operator
        self.kept = [i for i in range(len(operator.node_ids)) if i not in set(task.erased)]
        columns = np.concatenate([operator.groups[i] for i in self.kept]) if self.kept else np.zeros(0, dtype=np.int64)
        gone = np.concatenate([operator.groups[i] for i in task.erased]) if task.erased else np.zeros(0, dtype=np.int64)
        if not self.kept:
            raise InputError("no node has a valid response; there is nothing to repair")
        self.basis = span_of(operator.matrix[:, gone].toarray())
        matrix = project_out(operator.matrix.tocsc(), self.basis) if task.erased else operator.matrix
        sizes = [len(operator.groups[i]) for i in self.kept]
        self.problem = GroupProblem(matrix[:, columns], sizes, weights=_weights(task, self.kept))
        self.columns, self.size = columns, operator.shape[1]

    def reduce(self, syndrome: Array) -> Array:
        return np.asarray(syndrome - self.basis @ (self.basis.T @ syndrome))

    def expand(self, error: Array) -> Array:
        """Over all coordinates, with nodes that are edited by rounding only set to zero."""
        norms = self.problem.norms(error)
        error = np.where(np.repeat(norms > ACTIVE * norms.max(initial=0.0), self.problem.sizes), error, 0.0)
        result = np.zeros(self.size)
        result[self.columns] = error
        return result


def prepare(task: Task) -> AnsweredProblem:
    return AnsweredProblem(task)


def _weights(task: Task, kept: list[int]) -> list[float] | None:
    given = task.options.get("weights")
    if given is None:
        return None
    names = [task.operator.node_ids[i] for i in kept]
    missing = [name for name in names if name not in given]
    if missing:
        raise InputError(f"weights: none for node {missing[0]!r}")
    return [float(given[name]) for name in names]


def _refit(task: Task, error: Array) -> Array | None:
    """Least squares on the edited and erased nodes, when they are few enough and it reaches ε."""
    active = [i for i, part in enumerate(task.operator.groups) if error[part].any()]
    if len(active) > task.k:
        return None
    fitted = _least_squares(task, [*task.erased, *active], task.syndrome)
    residual = float(np.linalg.norm(task.operator.matrix @ fitted - task.syndrome))
    return fitted if residual <= task.epsilon + task.tolerance else None


def _fill_erased(task: Task, error: Array) -> Array:
    if not task.erased:
        return error
    return error + _least_squares(task, list(task.erased), task.syndrome - task.operator.matrix @ error)


def _least_squares(task: Task, nodes: list[int], target: Array) -> Array:
    result = np.zeros(task.operator.shape[1])
    if nodes:
        columns = np.concatenate([task.operator.groups[i] for i in nodes])
        part = task.operator.matrix[:, columns].tocsc()
        rows = np.unique(part.indices)
        if len(rows):
            result[columns] = np.linalg.lstsq(part[rows].toarray(), target[rows], rcond=1e-10)[0]
    return result
