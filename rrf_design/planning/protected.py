"""Designs under a premise (units, delivered values, suspect checks): their value by the engine, and witnesses as cuts.

γ_{k,a,D}(x)² ≤ ‖B_{−R}(x)h‖² = Σ_{j∉R} x_j ‖C_j h‖² for every h on at most 2k units with ‖h_D‖ = 1 and every set R of at most 2a suspect
blocks: the same linear cuts as for plain margins (docs/algorithms.md, facts 11, 19 and 30), and more rows never lower the value.
Tables of supports, hulls and trackers know nothing of a premise and are not used; so proofs take longer, and are proofs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask
from rrf_design.planning.contract import Objective
from rrf_design.planning.supports import Witness
from rrf_design.premise import delivered_columns, unit_groups

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.planning.arena import Arena, Evaluation
    from solvers import SupportValue

FURTHER = 1.05  # further witnesses are those within this factor of the margin, unless a level is given
SMALLEST = 1e-9  # of the scale: the same where the margin is zero


def evaluate(arena: Arena, mask: Mask, *, count: int, below: float | None) -> Evaluation:
    """Value and witnesses of a design, worst first; the value is what a plan reports for it."""
    from rrf_design.planning.arena import Evaluation

    design = arena.design(mask)
    found = design.margin(arena.k)
    value = found.value
    if arena.objective is Objective.ROBUST:
        value = min(value, design.robust_lower(found))
    operator = found.operator
    removed = tuple(arena.operator.block_index[name] for name in found.wrong)
    first = _witness(arena, operator, found.solved.direction, found.value, removed)
    listed = [] if count == 1 or operator.premise.wrong_checks else _others(arena, operator, found.value, below, count)
    others = [_witness(arena, operator, np.asarray(s.direction), s.value) for s in listed]
    return Evaluation(value, (first, *(w for w in others if w.support != first.support))[:count])


def _others(
    arena: Arena, operator: Operator, value: float, below: float | None, count: int
) -> tuple[SupportValue, ...]:
    from solvers import delivered_supports_below, supports_below

    _, groups = unit_groups(operator)
    level = max(value * FURTHER, SMALLEST * arena.scale) if below is None else below
    size = min(arena.size, len(groups))
    if operator.premise.deliver is None:
        found = supports_below(operator.matrix, groups, size=size, threshold=level, limit=count)
    else:
        wanted = delivered_columns(operator)
        found = delivered_supports_below(operator.matrix, groups, wanted, size=size, threshold=level, limit=count)
    return found.supports


def _witness(
    arena: Arena, operator: Operator, direction: NDArray[np.float64], value: float, removed: tuple[int, ...] = ()
) -> Witness:
    """A direction over the columns of a design as a witness over the nodes of the arena that it moves."""
    moved = [i for i, part in enumerate(operator.groups) if np.any(direction[part] != 0.0)]
    place = arena.operator.node_index
    vector = np.concatenate([direction[operator.groups[i]] for i in moved])
    return Witness(tuple(place[operator.node_ids[i]] for i in moved), vector, value, removed)
