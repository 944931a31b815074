"""Tuning λ of the penalised convex decoder on held-out fields only (paper, "Regularization and validation").

The fields it was tuned on are remembered by digest; repairing one of them with that λ is refused, because choosing λ
by looking at a test answer would turn the method into an oracle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.errors import InputError, Refused
from rrf_design.noise import Noise
from rrf_design.repairing.contract import Task

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection


@dataclass(frozen=True, slots=True)
class PenaltyCalibration:
    """The chosen λ, and how every λ of the grid did on the calibration fields."""

    penalty: float
    grid: tuple[float, ...]
    scores: tuple[float, ...]
    """By λ, lower is better: mean error where truths were given, else mean distance of the residual from ε."""
    criterion: str
    fields: frozenset[str]
    """Digests of the fields it was tuned on."""

    def check(self, task: Task) -> None:
        if field_digest(task) in self.fields:
            raise Refused(
                "this field was used to calibrate the penalty; a calibrated λ may only be used on other fields"
            )


def field_digest(task: Task) -> str:
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
    """λ from a logarithmic grid, by the error on calibration truths or, without them, by the residual alone."""
    from rrf_design.repairing.convex import prepare
    from rrf_design.repairing.fields import make_task
    from solvers.decoding import lasso_path

    if not fields:
        raise InputError("calibrate: give at least one held-out field")
    if truths is not None and len(truths) != len(fields):
        raise InputError(f"calibrate: {len(truths)} truths for {len(fields)} fields")
    operator = problem.operator(select)
    tasks = [make_task(problem, operator, responses, noise=Noise(epsilon=epsilon))[0] for responses in fields]
    prepared = [prepare(task) for task in tasks]
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
        fields=frozenset(field_digest(task) for task in tasks),
    )
