"""Repair where relations are uncertain: the radius that the truth is sure to keep to, once answers are there.

The true error e* has ‖B e* − s‖ ≤ ε + ‖E z*‖, and z* is not known. Any estimate ê with at most k wrong nodes bounds it
(docs/algorithms.md, fact 18): with r̂ = ‖B ê − s‖, N = √Σ η_b² ‖ẑ_{T_b}‖² and γ − η > 0, ρ = ‖ẑ − z*‖ ≤ (r̂ + ε + N)/(γ − η), so
‖E z*‖ ≤ N + η ρ. Where the field was bounded beforehand (ranges, an amplitude), the smaller radius counts. Without either,
no radius is certain, and nothing may be excluded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rrf_design.noise import UP, apart, spread_at

if TYPE_CHECKING:
    from rrf_design.repairing.contract import Decoder, DecoderOutcome, Task
    from rrf_design.repairing.decoding import Decoding


def widened(task: Task, decoder: Decoder, design: Decoding) -> Task | None:
    """The task with a radius that the truth keeps to; itself where nothing is uncertain, None where no radius is certain."""
    if not task.operator.uncertain or task.radius is None:
        return task
    known = task.radius.total
    radii = [] if known is None else [known]
    if design.robust_lower > 0.0 and not task.operator.premise.wrong_checks:  # a check set aside bounds nothing
        given = task.operator.unstack(task.response)
        first = decoder.decode(replace(task, epsilon=task.epsilon + spread_at(task.operator, given)))
        if supported(task, first):
            distance, spread = _distance(task, first, design)
            radii.append((task.epsilon + spread + design.looseness * (distance + _tail(task))) * UP)
    return replace(task, epsilon=min(radii)) if radii else None


def supported(task: Task, outcome: DecoderOutcome) -> bool:
    """Whether the estimate has at most k wrong nodes, so that the bounds speak of it."""
    gone = set(task.erased)
    edited = [i for i, part in enumerate(task.operator.groups) if i not in gone and outcome.error[part].any()]
    return task.count(tuple(edited)) <= task.k


def error_bound(task: Task, outcome: DecoderOutcome, design: Decoding, lower: float) -> float:
    """Bound on the error of an explanation: 2ε'/γ, or with uncertain relations the smaller of that and fact 18."""
    tail = _tail(task)
    plain = apart(task.epsilon, lower) + tail
    if not task.operator.uncertain or task.radius is None or design.robust_lower <= 0.0:
        return plain
    if task.operator.premise.wrong_checks:
        return plain
    base = replace(task, epsilon=task.radius.epsilon)
    return min(plain, _distance(base, outcome, design)[0] + tail)


def _tail(task: Task) -> float:
    """How far answers that count as right may be off, all together."""
    return 0.0 if task.radius is None else task.radius.tail


def _distance(task: Task, outcome: DecoderOutcome, design: Decoding) -> tuple[float, float]:
    """ρ and N for an estimate; `task.epsilon` is the radius of the rows alone."""
    estimate = task.operator.unstack(task.response - outcome.error)
    spread = spread_at(task.operator, estimate)
    residual = float(np.linalg.norm(task.operator.matrix @ outcome.error - task.syndrome)) + task.tolerance
    loose = design.looseness * _tail(task)  # E acts on what the small errors leave of the field, too
    return (residual + task.epsilon + spread + loose) / design.robust_lower * UP, spread
