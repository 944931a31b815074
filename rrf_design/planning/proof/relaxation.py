"""The linear relaxation of a program, and what it proves without trusting a float.

A linear program in floating point gives prices y of the rows. Whatever they are, Σ b·y − Σ_j max(0, (Aᵀy)_j − c_j) bounds the cost of every
0/1 (indeed every fractional) solution of A x ≥ b from below, so they are rounded to whole multiples of a small unit and the bound
is computed in whole numbers. The program's own optimum is never called a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rrf_design.planning.proof.cuts import Row
    from rrf_design.planning.proof.program import MarketRows

Array = NDArray[np.float64]
FINE = 1 << 24  # prices of rows are whole multiples of 1/FINE per unit of cost


@dataclass(frozen=True, slots=True)
class Fractional:
    """A cheapest fractional solution, and the prices of the rows it was found with."""

    values: Array
    cost: float
    """Of these values: a guide."""
    prices: Array


def safe_cost(rows: Sequence[Row], prices: Array, cost: NDArray[np.int64]) -> int:
    """No 0/1 solution of the rows costs less: exact, from any prices."""
    used = [(row, int(p)) for row, p in zip(rows, np.floor(prices * FINE), strict=True) if p >= 1.0]
    if not used:
        return int(np.minimum(cost, 0).sum())
    seen: dict[int, int] = {}
    total = 0
    for row, price in used:
        total += price * row.bound
        for variable, coefficient in zip(row.variables.tolist(), row.coefficients.tolist(), strict=True):
            seen[variable] = seen.get(variable, 0) + price * coefficient
    for variable, amount in seen.items():
        total -= max(0, amount - int(cost[variable]) * FINE)
    unseen = np.ones(len(cost), dtype=bool)
    unseen[list(seen)] = False
    total += FINE * int(np.minimum(cost[unseen], 0).sum())
    return -(-total // FINE)


class MarketRelaxation:
    """The linear program of one structure over a growing list of rows, solved again and again from its last basis."""

    def __init__(self, structure: MarketRows) -> None:
        self.structure = structure
        self._begin()

    def _begin(self) -> None:
        from ortools.linear_solver import pywraplp

        self.solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self.infinity = self.solver.infinity()
        self.variables = [self.solver.NumVar(0.0, 1.0, "") for _ in range(self.structure.variables)]
        objective = self.solver.Objective()
        for variable, cost in zip(self.variables, self.structure.cost.tolist(), strict=True):
            objective.SetCoefficient(variable, float(cost))
        objective.SetMinimization()
        self.structural = [self._constraint(row) for row in self.structure.rows]
        self.constraints: list[Any] = []
        self._given: list[Row | None] = []

    def _constraint(self, row: Row | None) -> Any:
        constraint = self.solver.Constraint(-self.infinity, self.infinity)
        if row is not None:
            self._set(constraint, row)
        return constraint

    def _set(self, constraint: Any, row: Row) -> None:
        for variable, coefficient in zip(row.variables.tolist(), row.coefficients.tolist(), strict=True):
            constraint.SetCoefficient(self.variables[variable], float(coefficient))
        constraint.SetLb(float(row.bound))

    def solve(self, rows: Sequence[Row | None]) -> Fractional | None:
        """The cheapest fractional solution of the structure with these rows; None when the solver finds none.

        Row i must have the variables it had before; it is looked at only where it is another object. None switches it off.
        """
        for _ in range(2):
            self._update(rows)
            if self.solver.Solve() == self.solver.OPTIMAL:
                break
            self._begin()  # the last basis can lead astray: once more from none
        else:
            return None
        values = np.clip(np.array([v.solution_value() for v in self.variables]), 0.0, 1.0)
        prices = np.array([c.dual_value() for c in (*self.structural, *self.constraints[: len(rows)])])
        return Fractional(values, float(self.structure.cost @ values), np.maximum(prices, 0.0))

    def _update(self, rows: Sequence[Row | None]) -> None:
        for number, row in enumerate(rows):
            if number == len(self.constraints):
                self.constraints.append(self._constraint(row))
                self._given.append(row)
            elif row is not self._given[number]:
                self._given[number] = row
                if row is None:
                    self.constraints[number].SetLb(-self.infinity)
                else:
                    self._set(self.constraints[number], row)
