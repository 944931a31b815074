"""The candidate-field energy as an integer program for CP-SAT, with an honest gap.

One Boolean per candidate, one per joint entry of a table, tied by marginals. CP-SAT minimises integers, so costs are
scaled and rounded: a field's rounded energy is off by at most half a unit per table. The winner is evaluated again
exactly, and the gap is that value minus the solver's bound less this rounding, so it is a bound on the true energy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rrf_design.errors import RetryLater
from rrf_design.repairing.energy import Energy

LARGEST_TOTAL = 2.0**46
"""Scaled energies stay below this, far from 64-bit overflow."""


@dataclass(frozen=True, slots=True)
class Assignment:
    choice: tuple[int, ...]
    gap: float
    complete: bool


def solve(energy: Energy, *, time_limit: float | None, seed: int) -> Assignment:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    picks = [[model.new_bool_var(f"x{i}_{c}") for c in range(size)] for i, size in enumerate(energy.sizes)]
    for part in picks:
        model.add_exactly_one(part)
    worst = sum(float(factor.table.max()) for factor in energy.factors)
    scale = LARGEST_TOTAL / max(worst, 1e-300)
    terms: list[Any] = []
    for f, factor in enumerate(energy.factors):
        costs = np.rint(factor.table * scale).astype(np.int64)
        if len(factor.nodes) == 1:
            terms += [int(cost) * pick for cost, pick in zip(costs, picks[factor.nodes[0]], strict=True)]
            continue
        joint = {
            place: model.new_bool_var(f"y{f}_{'_'.join(map(str, place))}")
            for place in product(*map(range, costs.shape))
        }
        for axis, i in enumerate(factor.nodes):
            for c in range(costs.shape[axis]):
                model.add(sum(var for place, var in joint.items() if place[axis] == c) == picks[i][c])
        terms += [int(costs[place]) * var for place, var in joint.items()]
    model.minimize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # one worker is repeatable
    solver.parameters.random_seed = seed
    if time_limit is not None:
        solver.parameters.max_time_in_seconds = time_limit
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise RetryLater(f"CP-SAT found no candidate field within {time_limit} s; raise the time limit")
    choice = tuple(next(c for c, pick in enumerate(part) if solver.boolean_value(pick)) for part in picks)
    rounding = 0.5 * len(energy.factors)
    bound = (solver.best_objective_bound - rounding) / scale
    return Assignment(choice, max(0.0, energy.value(choice) - bound), status == cp_model.OPTIMAL)
