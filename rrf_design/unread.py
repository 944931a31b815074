"""The margin of a design some of whose answers could not be read: what a repair promises, and what a run is to buy for.

An unread answer y_R says nothing, but it is known to say nothing. Two explanations of the same measurements may both fill R as they
like and differ on at most 2k other units, so

    γ(k | R) = min ‖B h‖ over unit h on R and at most 2k units beside it

takes the place of γ_k in every promise (`solvers.decoding.erasures`). The rows that touch R stay: a check of what could not be read, or two
relations through it, still say something about the others. And R itself has to be determined, unless it is not delivered.
`protected_unread` is asked by repair and by the loop, so that a run ends where a repair is certified, and not elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.premise import Premise, Protected, delivered_columns, protected

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.repairing.parts import Parts
    from solvers import Margin
    from solvers.decoding import ErasureMargin


def protected_unread(
    operator: Operator,
    k: int,
    *,
    unread: Sequence[int],
    premise: Premise | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
) -> Protected:
    """γ(k | R) of an operator whose nodes R, by index, were asked and not read, under its own premise or another one.

    Where it can't be computed, `bound` is set: `lower` is proven, `upper` infinite, and the witness only the worst direction known.
    """
    from rrf_design.repairing.parts import Parts
    from solvers.decoding import erasure_margin

    told = operator.premise if premise is None else premise
    gone = tuple(sorted(unread))
    parts = Parts.of(operator, gone)
    options: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit}
    if told.deliver is not None or told.wrong_checks:
        return _around(operator, k, told, parts, gone, options)
    found = erasure_margin(operator.matrix, parts.groups, known=parts.known, k=k, **options)
    return _named(operator, k, parts, told, found)


def _around(
    operator: Operator, k: int, premise: Premise, parts: Parts, gone: tuple[int, ...], options: dict[str, Any]
) -> Protected:
    """Where only some values are delivered, or checks may be wrong: exactly where that can be looked at, else a lower bound."""
    from solvers.decoding import WrongChecks, unread_margin

    exact = unread_margin(
        operator.matrix,
        parts.groups,
        delivered_columns(operator, premise),
        known=parts.known,
        size=2 * k,
        checks=WrongChecks(
            blocks=np.diff(operator.block_offsets).tolist(),
            suspects=[j for j, name in enumerate(operator.block_ids) if name in premise.suspects],
            most=2 * premise.wrong_checks,
        ),
        time_limit=options["time_limit"],
    )
    if exact is not None and (exact.lower > 0.0 or exact.value == 0.0):
        return _named(operator, k, parts, premise, exact)
    return _bounded(operator, k, premise, parts, gone, options)


def _bounded(
    operator: Operator, k: int, premise: Premise, parts: Parts, gone: tuple[int, ...], options: dict[str, Any]
) -> Protected:
    """A lower bound, with the worst direction that was met on the way to it.

    What the blocks measure that name no unread node is a part of what is measured: the margin of that part holds for delivered nodes
    that were answered. Without suspect checks, so does the margin of the whole field given the unread ones.
    """
    from solvers.decoding import erasure_margin

    lower, direction = 0.0, np.zeros(operator.shape[1])
    missing = {operator.node_ids[i] for i in gone}.intersection(premise.wanted(operator.node_ids))
    if missing:
        direction[operator.groups[operator.node_index[min(missing)]][0]] = 1.0
    else:
        answered = np.ones(len(operator.node_ids), dtype=np.bool_)
        answered[list(gone)] = False
        found = protected(operator.restrict(_untouched(operator, gone), answered), k, premise=premise, **options)
        lower = found.solved.lower
        direction[np.concatenate([operator.groups[i] for i in np.flatnonzero(answered)])] = found.solved.direction
    if not premise.wrong_checks:
        whole = erasure_margin(operator.matrix, parts.groups, known=parts.known, k=k, **options)
        if whole.lower > lower or missing:
            lower, direction = max(lower, whole.lower), whole.direction.copy()
    nodes = tuple(i for i, own in enumerate(operator.groups) if direction[own].any())
    solved = _margin(k, parts, (lower, lower, inf), parts.covering(nodes), direction, "erasures, lower bound")
    return Protected(solved, nodes, _units(operator, parts, premise, solved.support), others=lower, bound=True)


def _untouched(operator: Operator, gone: tuple[int, ...]) -> NDArray[np.bool_]:
    """(blocks,): those without an entry at an unread node."""
    silent = np.zeros(operator.shape[1])
    for i in gone:
        silent[operator.groups[i]] = 1.0
    touched = abs(operator.matrix) @ silent > 0
    owner = np.repeat(np.arange(len(operator.block_ids)), np.diff(operator.block_offsets))
    hits = np.bincount(owner, weights=touched, minlength=len(operator.block_ids))
    return np.asarray(hits == 0)


def _named(operator: Operator, k: int, parts: Parts, premise: Premise, found: ErasureMargin) -> Protected:
    bounds = (found.value, found.lower, max(found.upper, found.lower))
    solved = _margin(k, parts, bounds, found.support, found.direction.copy(), f"erasures, {found.method}")
    nodes = tuple(sorted(i for part in found.support for i in parts.members[part]))
    solved = replace(solved, status=found.status)
    return Protected(solved, nodes, _units(operator, parts, premise, found.support), others=found.others)


def _units(operator: Operator, parts: Parts, premise: Premise, support: tuple[int, ...]) -> tuple[str, ...]:
    names = (operator.node_ids[parts.members[part][0]] for part in support)
    return tuple(dict.fromkeys(premise.unit(name).removeprefix("\0") for name in names))


def _margin(
    k: int,
    parts: Parts,
    bounds: tuple[float, float, float],
    support: tuple[int, ...],
    direction: NDArray[np.float64],
    method: str,
) -> Margin:
    from solvers import Margin, Status

    value, lower, upper = bounds
    return Margin(
        value=value,
        lower=lower,
        upper=upper,
        support=support,
        direction=direction,
        status=Status.BOUNDED,
        method=method,
        support_size=2 * k,
        groups=parts.groups,
    )
