"""The values of a repair: what is edited, what is determined, on what all explanations agree, and within which bound.

A value is given only where something vouches for it. Outside of what is delivered, and where checks may be wrong, that is
the node's own margin; at margin zero it is that every explanation has the same value; and an exact check speaks for itself.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from rrf_design.blocks import Anchor
from rrf_design.repairing.contract import Certainty, DecoderOutcome, Task, Values
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.judgement import Assessment, own_units
from rrf_design.rows import family_scale


def edited_nodes(task: Task, outcome: DecoderOutcome) -> tuple[int, ...]:
    """Nodes whose answer is changed. A unit is solved for as a whole: what rounding alone moves there is not edited."""
    if not outcome.error.any():
        return ()
    slack = task.slack if task.operator.premise.units else 0.0
    sizes = np.maximum.reduceat(np.abs(outcome.error), task.operator.node_offsets[:-1])  # every node has a column
    return tuple(i for i in np.flatnonzero(sizes > slack).tolist() if i not in task.erased)


def repaired_values(
    task: Task, design: Decoding, outcome: DecoderOutcome, edited: tuple[int, ...]
) -> dict[str, Values | None]:
    """ẑ = y − ê; untouched responses stay as they were given, values that nothing determines are None."""
    changed = (*task.erased, *edited)
    moved = task.operator.unstack(task.response - outcome.error, only=changed)
    result: dict[str, Values | None] = {**task.values, **moved}
    claimed = task.erased if outcome.heuristic or task.count(edited) > task.k else changed
    for i in {*outcome.unknown, *(design.undetermined(claimed) if claimed else ())}:
        result[task.operator.node_ids[i]] = None
    return {name: result[name] for name in task.operator.node_ids}


def agreed_values(
    task: Task,
    outcome: DecoderOutcome,
    design: Decoding,
    found: Assessment,
    estimate: dict[str, Values | None],
    *,
    fixed: Mapping[str, Values],
) -> dict[str, Values | None]:
    """Values only where every explanation that is known has the same: at margin zero, and for what is not delivered.

    `fixed` are those that trusted checks state (`fixed_values`): they go before all others.
    """
    lone = found.certainty in (Certainty.UNIQUE, Certainty.BOUNDED) or design.facts.bound
    lone |= found.certainty is Certainty.AMBIGUOUS and bool(task.operator.premise.wrong_checks)
    open_ = {task.operator.node_ids[i] for i in design.open_nodes} if lone else set()
    estimate = {name: fixed.get(name, None if name in open_ else value) for name, value in estimate.items()}
    if found.certainty is not Certainty.AMBIGUOUS:
        return estimate
    slack = task.slack
    open_nodes = {i for other in found.hidden for i in other.support}
    if not (
        outcome.proved and outcome.complete
    ):  # explanations may be missing: only a node's own margin vouches for it then
        open_nodes |= design.unprotected
    for other in outcome.explanations:
        apart = np.abs(other.error - outcome.error) > slack
        open_nodes |= {i for i, part in enumerate(task.operator.groups) if apart[part].any()}
        open_nodes |= design.moving(other.support)
    gone = {task.operator.node_ids[i] for i in open_nodes}.difference(fixed)
    return {name: None if name in gone else value for name, value in estimate.items()}


def fixed_values(task: Task) -> dict[str, Values]:
    """Values of nodes that a trusted check states as they are."""
    operator, result = task.operator, dict[str, Values]()
    for name in operator.anchor_ids:
        block = task.problem.block_by_id[name]
        if not (isinstance(block, Anchor) and block.trusted and block.rows is None and block.metric is None):
            continue
        j = operator.block_index[name]
        target = operator.target[int(operator.block_offsets[j]) : int(operator.block_offsets[j + 1])]
        if len(block.nodes) == 1 and not np.isnan(target).any():
            value = target / family_scale(task.problem, block)
            given = None if block.value is None else np.atleast_1d(np.asarray(block.value, dtype=np.float64))
            same = given is not None and np.allclose(given, value, rtol=1e-12, atol=0.0)
            result[block.nodes[0]] = tuple(float(x) for x in (given if same and given is not None else value))
    return result


def delivered_bounds(task: Task, bound: float, *, fixed: Container[str]) -> dict[str, float]:
    """By node, of what is delivered; a trusted check that fixes a node leaves no error there."""
    own = own_units(task, bound)
    return {name: 0.0 if name in fixed else own[name] for name in task.operator.premise.wanted(own)}
