"""Code: repair the field of execution signatures, then choose a whole generated program (paper,
"Code repair").

Coordinates of a signature have very different sizes, so they are divided by a robust scale of what
was observed. The exact decoder repairs the scaled field; because a repaired signature is no source
code, the answer is the generated program whose own signature is nearest to the coordinatewise
median of the repaired field. Nothing is edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.errors import InputError
from rrf_design.repairing.contract import Array, Repair, Values
from rrf_design.repairing.fields import collect
from rrf_design.repairing.repairs import repair

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection


@dataclass(frozen=True, slots=True)
class ProgramChoice:
    """The chosen program by the node that wrote it."""

    node: str
    equivalent: tuple[str, ...]
    """Nodes whose programs have the same public signature: indistinguishable here, whatever their
    source is.
    """
    distance: float
    """From its scaled signature to the target, 0 when a program behaves exactly as the repaired
    field says.
    """
    target: Values
    """Median of the repaired signatures, in the original units."""
    scale: Values
    repair: Repair


def select_program(
    problem: Problem, signatures: Mapping[str, Any], *, select: Selection = None, k: int | None = None, **options: Any
) -> ProgramChoice:
    """Choose among programs by public signatures: the program nearest to the median of the repaired
    signatures, each coordinate divided by its median magnitude.

    Parameters
    ----------
    problem : a node for each program, relations between their signatures.
    signatures : the outputs of each program on public tests, by node id; None or a status where a
        program is invalid, never zeros.
    select, k, options : as in `repair`, which is called with the method "exact".

    Returns
    -------
    ProgramChoice
        The chosen node, those that behave alike, and the repair.

    >>> import rrf_design as rrf
    >>> from rrf_design.repairing import select_program
    >>> problem = rrf.Problem(
    ...     nodes=[{"id": name, "dim": 2} for name in "abc"],
    ...     relations=[{"id": x + y, "tail": x, "head": y} for x, y in ("ab", "bc", "ca")],
    ... )
    >>> choice = select_program(problem, {"a": [1, 2], "b": [1, 2], "c": [9, 2]})
    >>> choice.node, choice.equivalent
    ('a', ('b',))
    """
    operator = problem.operator(select)
    field = collect(problem, signatures, nodes=operator.node_ids)
    dims = {problem.node_by_id[name].dim for name in operator.node_ids}
    if len(dims) != 1:
        raise InputError("signatures must have one length, but the nodes of this design differ in dimension")
    if not field.values:
        raise InputError("no program ran; there is nothing to choose from")
    scale = robust_scale(np.array(list(field.values.values())))
    scaled = _scale_problem(problem, scale)
    values: dict[str, Any] = {name: tuple(np.array(value) / scale) for name, value in field.values.items()}
    values.update({name: {"status": status} for name, status in field.invalid.items()})
    fixed = repair(scaled, values, select=select, k=k, method="exact", **options)
    known = np.array([value for value in fixed.nearest.values() if value is not None])
    target = np.median(known, axis=0)
    distances = {name: float(np.linalg.norm(np.array(values[name]) - target)) for name in field.values}
    node = min(distances, key=lambda name: (distances[name], operator.node_index[name]))
    same = tuple(name for name in field.values if name != node and field.values[name] == field.values[node])
    return ProgramChoice(node, same, distances[node], _tuple(target * scale), _tuple(scale), fixed)


def robust_scale(signatures: Array) -> Array:
    """Median magnitude of each coordinate; 1 where that is 0.

    Signatures are (programs, coordinates).
    """
    size = np.median(np.abs(signatures), axis=0)
    return np.where(size > 0.0, size, 1.0)


def _scale_problem(problem: Problem, scale: Array) -> Problem:
    """The same problem for z/scale: transports S⁻¹TS, offsets S⁻¹o, anchor rows A S (identity
    anchors keep unit rows).
    """
    relations = []
    for relation in problem.relations:
        entry = relation.model_dump(by_alias=True, exclude_defaults=True)
        if relation.pair is None:  # sums and differences of z/scale with offsets S⁻¹o; declared rows C S
            if relation.rows is not None:
                entry["rows"] = {name: (np.array(part) * scale).tolist() for name, part in relation.rows.items()}
            else:
                entry["offset"] = (np.broadcast_to(np.asarray(relation.offset), scale.shape) / scale).tolist()
            relations.append(entry)
            continue
        tail, head = (problem.node_by_id[name] for name in relation.pair)
        matrix = relation.transport.as_matrix(tail_dim=tail.dim, head_dim=head.dim)
        moved = matrix * scale / scale[:, None]
        offset = np.broadcast_to(np.asarray(relation.offset, dtype=np.float64), (head.dim,)) / scale
        entry.update(transport={"matrix": moved.tolist()}, offset=offset.tolist())
        relations.append(entry)
    anchors = []
    for anchor in problem.anchors:
        entry = anchor.model_dump(by_alias=True, exclude_defaults=True)
        repeated = np.tile(scale, len(anchor.nodes))
        if anchor.rows is None:
            if anchor.value is not None:
                entry["value"] = (np.atleast_1d(np.asarray(anchor.value, dtype=np.float64)) / repeated).tolist()
        else:
            entry["rows"] = (np.array(anchor.rows) * repeated).tolist()
        anchors.append(entry)
    document = problem.model_dump(by_alias=True, exclude_defaults=True)
    document.update(relations=relations, anchors=anchors)
    from rrf_design.problem import Problem as Build

    return Build(**document)


def _tuple(vector: Array) -> Values:
    return tuple(float(x) for x in vector)
