"""Convex repair: group basis pursuit denoising, or its penalised form when a λ is given; and λ from
held-out fields (paper, "Regularization and validation").

A positive margin does not certify it (kernel (1, 0.4, 0.4)); its answer is judged like any other:
when it edits at most k nodes and reaches ε, the stability theorem applies to it, and otherwise
nothing is promised.

`calibrate` remembers by digest the fields that it tuned λ on; repairing one of them with that λ is
refused, because choosing λ by looking at a test answer would turn the method into an oracle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError, Refused
from rrf_design.noise import Noise
from rrf_design.repairing.contract import Array, Decoder, DecoderOutcome, Task
from solvers.decoding import GroupProblem, group_bpdn, group_lasso
from solvers.decoding.spans import project_out, span_of

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection

ACTIVE = 1e-5
"""A node counts as edited when its error is longer than this share of the longest one."""


class Convex(Decoder):
    """Options: `penalty` (λ of the penalised form, or a `PenaltyCalibration`), `weights` by node
    id, `max_iterations`, `coordinatewise` (Σ|eᵢ| over coordinates instead of lengths of nodes: few
    coordinates of an answer are wrong. k still counts nodes, in the refit and in what is promised).
    """

    name = "convex"
    options = ("penalty", "weights", "max_iterations", "coordinatewise")

    def decode(self, task: Task) -> DecoderOutcome:
        penalty = task.work.options.get("penalty")
        if isinstance(penalty, PenaltyCalibration):  # a λ tuned on this very field would make the method an oracle
            penalty.check(task)
        single = bool(task.work.options.get("coordinatewise"))
        prepared = _AnsweredProblem(task, single=single)
        limits: dict[str, Any] = {"time_limit": task.work.time_limit}
        if task.work.options.get("max_iterations") is not None:
            limits["max_iterations"] = int(task.work.options["max_iterations"])
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
        refitted = _refit(task, error, single=single)
        if refitted is not None:
            error = refitted
            notes.append(f"values were refitted by least squares on the edited {'coordinates' if single else 'nodes'}")
        else:
            error = _fill_erased(task, error)
        return DecoderOutcome(
            error=error,
            method="convex" + (", penalised" if penalty is not None else "") + (", coordinatewise" if single else ""),
            complete=found.converged,
            gap=found.gap,
            objective=found.objective,
            iterations=found.iterations,
            notes=tuple(notes),
            details={"penalty": found.penalty, "converged": found.converged, "convex_residual": found.residual},
        )


class _AnsweredProblem:
    """The convex problem on the answered nodes, with erased columns projected out; `expand` is the
    way back.
    """

    def __init__(self, task: Task, *, single: bool = False) -> None:
        operator = task.operator
        self.kept = [i for i in range(len(operator.node_ids)) if i not in set(task.erased)]
        columns = np.concatenate([operator.groups[i] for i in self.kept]) if self.kept else np.zeros(0, dtype=np.int64)
        gone = np.concatenate([operator.groups[i] for i in task.erased]) if task.erased else np.zeros(0, dtype=np.int64)
        if not self.kept:
            raise InputError("no node has a valid response; there is nothing to repair")
        self.basis = span_of(operator.matrix[:, gone].toarray())
        matrix = project_out(operator.matrix.tocsc(), self.basis) if task.erased else operator.matrix
        sizes = [len(operator.groups[i]) for i in self.kept]
        weights = _weights(task, self.kept)
        if single:  # every coordinate is a group of its own, with the weight of its node
            weights = None if weights is None else np.repeat(weights, sizes).tolist()
            sizes = [1] * len(columns)
        self.problem = GroupProblem(matrix[:, columns], sizes, weights=weights)
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


def _weights(task: Task, kept: list[int]) -> list[float] | None:
    given = task.work.options.get("weights")
    if given is None:
        return None
    names = [task.operator.node_ids[i] for i in kept]
    missing = [name for name in names if name not in given]
    if missing:
        raise InputError(f"weights: none for node {missing[0]!r}")
    return [float(given[name]) for name in names]


def _refit(task: Task, error: Array, *, single: bool = False) -> Array | None:
    """Least squares on what is edited and erased, where few enough nodes are and it reaches ε."""
    active = [i for i, part in enumerate(task.operator.groups) if error[part].any()]
    if len(active) > task.k:
        return None
    groups = task.operator.groups
    edited = [np.flatnonzero(error)] if single else [groups[i] for i in active]
    fitted = _least_squares(task, [*(groups[i] for i in task.erased), *edited], task.syndrome)
    residual = float(np.linalg.norm(task.operator.matrix @ fitted - task.syndrome))
    return fitted if residual <= task.epsilon + task.tolerance else None


def _fill_erased(task: Task, error: Array) -> Array:
    if not task.erased:
        return error
    erased = [task.operator.groups[i] for i in task.erased]
    return error + _least_squares(task, erased, task.syndrome - task.operator.matrix @ error)


def _least_squares(task: Task, parts: list[NDArray[np.int64]], target: Array) -> Array:
    result = np.zeros(task.operator.shape[1])
    if parts:
        columns = np.concatenate(parts)
        part = task.operator.matrix[:, columns].tocsc()
        rows = np.unique(part.indices)
        if len(rows):
            result[columns] = np.linalg.lstsq(part[rows].toarray(), target[rows], rcond=1e-10)[0]
    return result


@dataclass(frozen=True, slots=True)
class PenaltyCalibration:
    """The chosen λ, and how every λ of the grid did on the calibration fields."""

    penalty: float
    grid: tuple[float, ...]
    scores: tuple[float, ...]
    """By λ, lower is better: mean error where truths were given, else mean distance of the residual
    from ε.
    """
    criterion: str
    fields: frozenset[str]
    """Digests of the fields it was tuned on."""

    def check(self, task: Task) -> None:
        if _field_digest(task) in self.fields:
            raise Refused(
                "this field was used to calibrate the penalty; a calibrated λ may only be used on other fields"
            )


def _field_digest(task: Task) -> str:
    """Responses and anchor values of one field; the design itself may differ."""
    content = {
        "values": {name: list(value) for name, value in sorted(task.values.items())},
        "target": [float(x) for x in task.operator.target],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def calibrate(
    problem: Problem,
    fields: Sequence[Any],
    *,
    truths: Sequence[Mapping[str, Any]] | None = None,
    grid: Sequence[float] | None = None,
    select: Selection = None,
    epsilon: float | None = None,
    count: int = 25,
) -> PenaltyCalibration:
    """λ of the penalised convex decoder, tuned on held-out fields.

    The penalised form is min ½‖B e − s‖² + λ Σ ωᵢ‖eᵢ‖.

    Parameters
    ----------
    problem : the problem that all fields share.
    fields : the responses of each held-out field, as `repair` takes them.
    truths : true values by node id, one mapping for each field; λ is then chosen by the mean error,
        else by the mean distance of the residual from ε.
    grid : the values of λ to try; by default `count` of them, from the least that edits nothing
        down to a ten-thousandth of it.
    select : what is bought, as in `repair`.
    epsilon : noise radius; None: the problem's.
    count : how many values the default grid has.

    Returns
    -------
    PenaltyCalibration
        The chosen `penalty` with all scores; as `penalty=` of `repair` it is refused for the fields
        it was tuned on.

    >>> import rrf_design as rrf
    >>> from rrf_design.repairing import calibrate
    >>> problem = rrf.Problem(
    ...     nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
    ...     relations=[{"id": x + y, "tail": x, "head": y} for x, y in ("ab", "bc", "ca")],
    ... )
    >>> calibrate(problem, [{"a": 1, "b": 1, "c": 4}], truths=[{"a": 1, "b": 1, "c": 1}]).criterion
    'error'
    """
    from rrf_design.repairing._fields import make_task
    from solvers.decoding import lasso_path

    if not fields:
        raise InputError("calibrate: give at least one held-out field")
    if truths is not None and len(truths) != len(fields):
        raise InputError(f"calibrate: {len(truths)} truths for {len(fields)} fields")
    operator = problem.operator(select)
    tasks = [make_task(problem, operator, responses, noise=Noise(epsilon=epsilon))[0] for responses in fields]
    prepared = [_AnsweredProblem(task) for task in tasks]
    reduced = [part.reduce(task.syndrome) for part, task in zip(prepared, tasks, strict=True)]
    if grid is None:
        top = max(
            part.problem.dual_norm(part.problem.transposed @ s) for part, s in zip(prepared, reduced, strict=True)
        )
        grid = np.geomspace(top or 1.0, 1e-4 * (top or 1.0), count).tolist()
    values = tuple(sorted((float(x) for x in grid), reverse=True))
    if not values or values[-1] <= 0.0:
        raise InputError("calibrate: the grid must hold positive numbers")
    scores = np.zeros(len(values))
    for number, (task, part, s) in enumerate(zip(tasks, prepared, reduced, strict=True)):
        path = lasso_path(part.problem, syndrome=s, penalties=values)
        for position, point in enumerate(path):
            if truths is None:
                scores[position] += abs(point.residual - task.epsilon)
            else:
                field = {name: truths[number].get(name, task.values.get(name)) for name in operator.node_ids}
                missing = [name for name, value in field.items() if value is None]
                if missing:
                    raise InputError(f"calibrate: field {number + 1}: no truth for node {missing[0]!r}")
                error = task.response - operator.stack(field)
                scores[position] += float(np.linalg.norm((part.expand(point.error) - error)[part.columns]))
    scores /= len(tasks)
    best = int(np.argmin(scores))
    return PenaltyCalibration(
        penalty=values[best],
        grid=values,
        scores=tuple(float(x) for x in scores),
        criterion="residual" if truths is None else "error",
        fields=frozenset(_field_digest(task) for task in tasks),
    )
