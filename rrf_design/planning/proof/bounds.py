"""Upper bounds on what a budget can buy, from witness cuts alone; no search, and safe against a
solver's tolerances.

Any weights λ ≥ 0 with Σλ = 1 over cuts give γ² ≤ Σ_j x_j w_j + w₀, a knapsack whose fractional
optimum is found by sorting. A linear program only chooses the weights; the bound is computed from
them afresh.

What the linear relaxation of a program proves owes nothing to a float. A linear program in floating
point gives prices y of the rows. Whatever they are, Σ b·y − Σ_j max(0, (Aᵀy)_j − c_j) bounds the
cost of every 0/1 (indeed every fractional) solution of A x ≥ b from below, so they are rounded to
whole multiples of a small unit and the bound is computed in whole numbers. The program's own
optimum is never called a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.planning.supports import Witness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.planning.proof.cuts import CutRow
    from rrf_design.planning.proof.program import MarketRows

Array = NDArray[np.float64]
LP_ROUNDS = 25
LP_CUTS = 40
MOST_CUTS = 6000


def knapsack(gains: Array, prices: Array, budget: float | None) -> float:
    """Largest Σ gains·x with Σ prices·x ≤ budget and 0 ≤ x ≤ 1, rounded up."""
    gains = np.maximum(gains, 0.0)
    up = 1 + 1e-12 + 4 * len(gains) * 2.0**-53  # above the rounding of prices, of their running sums and of the total
    if budget is None:
        return float(gains.sum()) * up
    ratio = np.full(len(gains), np.inf)
    with np.errstate(over="ignore"):  # infinite is what the ratio of a price of nothing is
        np.divide(gains, prices, out=ratio, where=prices > 0)
    order = np.argsort(-ratio, kind="stable")
    left = budget * up - np.concatenate([[0.0], np.cumsum(prices[order])[:-1]])
    share = np.ones(len(order))
    np.divide(left, prices[order], out=share, where=prices[order] > 0)
    return float(gains[order] @ np.clip(share, 0.0, 1.0)) * up


def bound_from_cuts(evaluator: Evaluator, budget: float | None, weights: Array | None = None) -> float:
    """On the objective of every design within the budget: the best single cut, or the weighted sum
    of cuts.
    """
    energies, owned = evaluator.pool.stacked()
    kept = evaluator.pool.ungated()
    if not len(kept):
        return ceiling(evaluator)
    energies, owned, prices = energies[kept], owned[kept], _prices(evaluator)
    if weights is not None:
        share = np.maximum(weights, 0.0)
        share = share / share.sum()
        square = float(share @ owned) + knapsack(share @ energies, prices, budget)
    else:
        square = min(o + knapsack(e, prices, budget) for e, o in zip(energies, owned, strict=True))
    return min(float(np.sqrt(max(square, 0.0))) * (1 + 1e-12), ceiling(evaluator))


def _prices(evaluator: Evaluator) -> Array:
    """Floor price of every variable block; owned blocks that wait for a query are free."""
    items = evaluator.block_item[evaluator.variable]
    return np.where(items >= 0, evaluator.market.floor_prices[items], 0.0) if len(items) else np.zeros(0)


def ceiling(evaluator: Evaluator) -> float:
    """A bound that no amount of money can pass: single nodes, delivered where only some are, with
    every block bought.
    """
    deliver, squares = evaluator.operator.premise.deliver, evaluator.node_squares
    wanted = [deliver is None or name in deliver for name in evaluator.operator.node_ids]
    always = [s for s, there, one in zip(squares, evaluator.always, wanted, strict=False) if there and one]
    best = min(always) if always else max(squares, default=evaluator.scale**2)
    return float(np.sqrt(best)) * (1 + 1e-12)


def relaxation_bound(evaluator: Evaluator, budget: float | None, *, deadline: float | None = None) -> float:
    """The bound of the linear relaxation, tightened by cuts at its fractional solutions; needs the
    table of supports.
    """
    import time

    from scipy.optimize import linprog

    best = bound_from_cuts(evaluator, budget)
    table, width = evaluator.table, len(evaluator.variable)
    if table is None or evaluator.market.node_items or width == 0:
        return best
    prices = _prices(evaluator)
    for _ in range(LP_ROUNDS):
        energies, owned = evaluator.pool.stacked()
        if not len(owned) or len(owned) > MOST_CUTS or (deadline is not None and time.monotonic() > deadline):
            break
        rows = np.hstack([-energies, np.ones((len(owned), 1))])
        limits = owned
        if budget is not None:
            rows, limits = np.vstack([rows, np.append(prices, 0.0)]), np.append(owned, budget)
        solved = linprog(
            np.append(np.zeros(width), -1.0),
            A_ub=rows,
            b_ub=limits,
            bounds=[(0, 1)] * width + [(0, evaluator.scale**2 * 4 * evaluator.n)],
            method="highs",
        )
        if solved.status != 0:
            break
        weights = -solved.ineqlin.marginals[: len(owned)]
        if weights.sum() > 0:
            best = min(best, bound_from_cuts(evaluator, budget, weights))
        top = float(solved.x[-1])
        added = [evaluator.pool.add(w) for w in table.fractional(solved.x[:-1], below=top * (1 - 1e-3), count=LP_CUTS)]
        if not any(added):
            break
    return best


def lifted(evaluator: Evaluator, witness: Witness, present: NDArray[np.bool_], target: float, order: Array) -> Witness:
    """A stronger cut from the same support: its worst direction after adding all blocks that still
    leave it below `target`.

    `present` says which blocks the design holds. A design that holds only these misses the
    (squared) target, so one of the others must be bought; the fewer are left, the stronger the cut.
    `order` ranks blocks, lowest added first.
    """
    columns = evaluator.columns_of(witness.support)
    touching = sorted({j for i in witness.support for j in evaluator.touching[i]}, key=lambda j: order[j])
    gram = np.zeros((len(columns), len(columns)))
    absent = []
    for j in touching:
        part = evaluator.block_gram(j, columns)
        if present[j]:
            gram += part
        elif part.any():
            absent.append(part)
    for part in absent:
        if np.linalg.eigvalsh(gram + part)[0] < target * (1 - 1e-6):
            gram = gram + part
    return Witness(witness.support, np.linalg.eigh(gram)[1][:, 0].copy(), witness.value)


MISSED = 1e-7  # of its bound: by so much a solution misses a row
CROWDED = 3  # rows of a linear program per tight one before it begins anew
FEW = 200
FINE = 1 << 24  # prices of rows are whole multiples of 1/FINE per unit of cost


@dataclass(frozen=True, slots=True)
class Fractional:
    """A cheapest fractional solution, and the prices of the rows it was found with."""

    values: Array
    cost: float
    """Of these values: a guide."""
    prices: Array


def safe_cost(rows: Sequence[CutRow], prices: Array, cost: NDArray[np.int64]) -> int:
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
    """The linear program of one structure over a growing list of rows, solved again and again from
    its last basis.

    Most rows of a long list are slack: only those that a solution has missed are given to the
    solver, and it begins anew from the tight ones when too many are not.
    """

    def __init__(self, structure: MarketRows) -> None:
        self.structure = structure
        self.values: Array = np.zeros(structure.variables)
        self._begin()

    def _begin(self) -> None:
        from ortools.linear_solver import pywraplp

        self.solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self.solver.SetSolverSpecificParametersAsString("use_dual_simplex: true use_preprocessing: false")
        self.infinity = self.solver.infinity()
        self.variables = [self.solver.NumVar(0.0, 1.0, "") for _ in range(self.structure.variables)]
        objective = self.solver.Objective()
        for variable, cost in zip(self.variables, self.structure.cost.tolist(), strict=True):
            objective.SetCoefficient(variable, float(cost))
        objective.SetMinimization()
        self.structural = [self._constraint(row) for row in self.structure.rows]
        self.given: dict[int, tuple[Any, CutRow | None]] = {}
        """Rows that the solver has, by number."""

    def _constraint(self, row: CutRow) -> Any:
        constraint = self.solver.Constraint(-self.infinity, self.infinity)
        self._set(constraint, row)
        return constraint

    def _set(self, constraint: Any, row: CutRow) -> None:
        for variable, coefficient in zip(row.variables.tolist(), row.coefficients.tolist(), strict=True):
            constraint.SetCoefficient(self.variables[variable], float(coefficient))
        constraint.SetLb(float(row.bound))

    def solve(self, rows: Sequence[CutRow | None]) -> Fractional | None:
        """The cheapest fractional solution of the structure with these rows; None when the solver
        finds none.

        CutRow i must have the variables it had before; it is looked at only where it is another
        object. None switches it off.
        """
        there = [(number, row) for number, row in enumerate(rows) if row is not None]
        matrix, bounds = _stacked([row for _, row in there], self.structure.variables)
        scales = np.maximum(np.abs(bounds), 1.0)
        self._update(rows)
        missed = np.flatnonzero(bounds - matrix @ self.values > MISSED * scales)
        while True:
            for at in missed:
                number, row = there[at]
                if number not in self.given:
                    self.given[number] = (self._constraint(row), row)
            if not self._optimal():
                return None
            self.values = np.clip(np.array([v.solution_value() for v in self.variables]), 0.0, 1.0)
            missed = np.flatnonzero(bounds - matrix @ self.values > MISSED * scales)
            missed = np.array([at for at in missed if there[at][0] not in self.given], dtype=np.int64)
            if not len(missed):
                break
        prices = np.zeros(len(self.structural) + len(rows))
        prices[: len(self.structural)] = [c.dual_value() for c in self.structural]
        prices[[len(self.structural) + i for i in self.given]] = [c.dual_value() for c, _ in self.given.values()]
        tight = [i for i in self.given if prices[len(self.structural) + i] > 0.0]
        if len(self.given) > CROWDED * len(tight) + FEW:
            self._restart(tight)
        return Fractional(self.values, float(self.structure.cost @ self.values), np.maximum(prices, 0.0))

    def _optimal(self) -> bool:
        if self.solver.Solve() == self.solver.OPTIMAL:
            return True
        self._restart(list(self.given))  # the last basis can lead astray: once more from none
        return bool(self.solver.Solve() == self.solver.OPTIMAL)

    def _restart(self, kept: list[int]) -> None:
        """A new solver with some of the rows that this one has."""
        rows = [(number, self.given[number][1]) for number in kept]
        self._begin()
        self.given = {number: (self._constraint(row), row) for number, row in rows if row is not None}

    def _update(self, rows: Sequence[CutRow | None]) -> None:
        for number, (constraint, known) in self.given.items():
            row = rows[number]
            if row is None:
                constraint.SetLb(-self.infinity)
            elif row is not known:
                self._set(constraint, row)
            self.given[number] = (constraint, row)


def _stacked(rows: Sequence[CutRow], variables: int) -> tuple[Any, Array]:
    """Left sides of rows as a sparse matrix, and their bounds."""
    from scipy.sparse import csr_array

    ends = np.cumsum([0, *(len(row.variables) for row in rows)])
    none = np.zeros(0, dtype=np.int64)
    entries = np.concatenate([none, *(row.coefficients for row in rows)]).astype(np.float64)
    columns = np.concatenate([none, *(row.variables for row in rows)])
    matrix = csr_array((entries, columns, ends), shape=(len(rows), variables))
    return matrix, np.array([float(row.bound) for row in rows])
