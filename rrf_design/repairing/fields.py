"""From a problem and its responses to a task: operator, syndrome, erased nodes, ε and what rounding may hide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.blocks import Anchor
from rrf_design.bundles import Backend, Given
from rrf_design.errors import InputError
from rrf_design.known import known_value
from rrf_design.margins import check_k
from rrf_design.noise import Noise, Radius, radius_of
from rrf_design.repairing.contract import Array, Task, Values
from rrf_design.repairing.responses_file import ResponseField, collect

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem

ROUNDING = 1e-12
"""Of the sizes that are added up in B y − c: the rounding of sums of thousands of terms, less than any deliberate ε."""

LARGEST = 1e150


def make_task(
    problem: Problem,
    operator: Operator,
    responses: Any,
    *,
    k: int | None = None,
    noise: Noise | None = None,
    given: Given | None = None,
    backend: Backend | None = None,
    radius: Radius | None = None,
) -> tuple[Task, ResponseField]:
    """The task, and the responses it was made from; anchor values that are `given` replace the problem's for this field.

    `radius` is that of problem, operator and noise, for callers that make many tasks of them.
    """
    beside, means = given or Given(), backend or Backend()
    field = collect(problem, responses, nodes=operator.node_ids)
    values = {**computed_values(problem, operator), **(beside.anchors or {})}
    if values:
        operator = with_anchor_values(problem, operator, values)
    if not field.values:
        why = ", ".join(f"{name}: {reason}" for name, reason in list(field.invalid.items())[:6])
        raise InputError(f"no node has a valid response ({why}); there is nothing to repair")
    filled = {
        name: field.values.get(name, (0.0,) * problem.node_by_id[name].dim)  # placeholders: their columns drop out
        for name in operator.node_ids
    }
    response = operator.stack(filled)
    if np.isnan(operator.target).any():
        operator.syndrome(filled)  # names the anchor whose value is missing
    if max(float(np.abs(part).max(initial=0.0)) for part in (response, operator.target)) > LARGEST:
        raise InputError(f"responses or anchor values are beyond {LARGEST:g}, where squares overflow; use other units")
    syndrome: Array = operator.matrix @ response - operator.target
    sizes = operator.magnitudes @ np.abs(response) + np.abs(operator.target)
    radius = radius_of(problem, operator, noise) if radius is None else radius
    samples = {
        **field.samples,
        **({} if beside.candidates is None else _candidates(problem, operator, beside.candidates)),
    }
    task = Task(
        problem=problem,
        operator=operator,
        response=response,
        syndrome=syndrome,
        erased=tuple(operator.node_index[name] for name in operator.node_ids if name in field.invalid),
        k=check_k(k, problem.k),
        epsilon=radius.epsilon,
        radius=radius,
        tolerance=_rounding(operator) * float(np.linalg.norm(sizes)),
        values=field.values,
        candidates=samples,
        options=means.options,
        n_jobs=means.n_jobs,
        time_limit=means.seconds,
        progress=means.progress,
        seed=means.seed,
    )
    return task, field


def _rounding(operator: Operator) -> float:
    """A bound on the relative rounding of the sums in B y − c, so that no true explanation is lost to it."""
    return max(ROUNDING, (operator.longest_row + 2) * 2.0**-52)


def computed_values(problem: Problem, operator: Operator) -> dict[str, tuple[float, ...]]:
    """Values of the design's anchors that nobody has to be asked for: what an expression gives, exactly, goes before all."""
    result = {}
    for name in operator.anchor_ids:
        block = problem.block_by_id[name]
        if isinstance(block, Anchor) and block.source is not None:
            found = known_value(problem, block)
            if found is not None:
                result[name] = tuple(float(number) for number in found)
    return result


def with_anchor_values(problem: Problem, operator: Operator, anchors: Mapping[str, Any]) -> Operator:
    """The operator with other values for some anchors: the same B, so that factorisations stay valid."""
    target: Array = operator.target.copy()
    for name, value in anchors.items():
        j = operator.block_index.get(name)
        if j is None or operator.block_kinds[j] != "anchor":
            raise InputError(f"anchors: {name!r} is not an anchor of this design")
        rows = slice(int(operator.block_offsets[j]), int(operator.block_offsets[j + 1]))
        target[rows] = _scaled_value(problem, name, value)
    return operator.aiming(target)


def _scaled_value(problem: Problem, name: str, value: Any) -> Array:
    """An anchor's value weighted and whitened as its rows are."""
    from rrf_design.rows import block_rows, block_target, family_scale, whitener

    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if not np.isfinite(numbers).all():
        raise InputError(f"anchors: the value of {name!r} is not finite")
    given = tuple(float(x) for x in numbers)
    block = problem.block_by_id[name].model_copy(update={"value": given[0] if len(given) == 1 else given})
    height = next(iter(block_rows(problem, block).values())).shape[0]
    try:
        bare = block_target(block, height)
    except ValueError as error:
        raise InputError(f"anchors: {name!r}: {error}") from None
    white = whitener(problem, block, height)
    scale = family_scale(problem, block)
    return np.asarray(scale * (bare if white is None else white @ bare))


def _candidates(problem: Problem, operator: Operator, candidates: Mapping[str, Any]) -> dict[str, tuple[Values, ...]]:
    from rrf_design.repairing.responses_file import parse_samples

    for name in candidates:
        if name not in operator.node_index:
            raise InputError(f"candidates: no node {name!r} in this design")
    return {name: parse_samples(problem, name, list(entries)) for name, entries in candidates.items()}
