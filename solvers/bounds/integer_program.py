"""Support selection with binary variables over a linear outer approximation of the semidefinite relaxation.

Variables: z_i = 1 for nodes in the support (s of them), and X standing for hhᵀ. Linear rows tie them together: tr X = 1,
Σ_a∈i X_aa ≤ z_i, |X_ab| ≤ ½z_i and ½z_j and (X_aa + X_bb)/2, Σ|X_ab| ≤ s·d. Semidefiniteness enters as cuts vᵀXv ≥ 0 from
eigenvectors of the current X, first on the linear relaxation, then around the supports the integer solver proposes.
Every finite set of cuts leaves a relaxation, so min ⟨G, X⟩ is below γ² at any time. The bound is a float of a solver
with tolerances: an estimate, to be re-proved before anybody prints it. One model, two front ends: OR-Tools and PuLP.

What it is for: a second opinion from general solvers on small fields. All pairs of coordinates are variables and the root bound is
weak, so beyond a few dozen coordinates it ends with nothing. The branch and bound that this problem deserves, node in or node
out with a bound on every completion and connectivity built in, is the search itself (`solvers.large`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers.bounds.result import Relaxation
from solvers.groups import column_groups

Array = NDArray[np.float64]
LARGEST = 48  # coordinates: all pairs are variables
ROUNDS = 60  # of cuts on the linear relaxation
PER_ROUND = 8


class FrontEnd(StrEnum):
    ORTOOLS = "ortools"
    PULP = "pulp"


@dataclass(slots=True)
class _Model:
    """min cost·x with rows low ≤ a·x, bounds, and binaries first."""

    cost: Array
    lower: Array
    upper: Array
    binaries: int
    rows: list[tuple[NDArray[np.int64], Array, float]] = field(default_factory=list)

    def add(self, where: Any, values: Any, low: float = 0.0) -> None:
        self.rows.append((np.asarray(where, dtype=np.int64), np.asarray(values, dtype=np.float64), low))


@dataclass(frozen=True, slots=True)
class _Answer:
    point: Array | None
    bound: float
    optimal: bool


def mixed_integer(
    B: Any, groups: Any = None, *, size: int, time_limit: float = 30.0, front_end: FrontEnd | str = FrontEnd.ORTOOLS
) -> Relaxation:
    """γ(size) ≥ the estimate, as far as the solver's tolerances can be trusted."""
    dense = np.asarray(B.toarray() if sparse.issparse(B) else B, dtype=np.float64)
    columns = column_groups(groups, dense.shape[1])
    if dense.shape[1] > LARGEST:
        raise ValueError(
            f"{dense.shape[1]} coordinates are more than {LARGEST}, beyond which it proves nothing in any time worth waiting for; "
            "the search branches on the same choices with better bounds"
        )
    solve = {FrontEnd.ORTOOLS: _ortools, FrontEnd.PULP: _pulp}[FrontEnd(front_end)]
    order = columns.order
    owner = np.repeat(np.arange(len(columns)), columns.sizes)
    gram = dense[:, order].T @ dense[:, order]
    scale = float(np.abs(gram).max()) or 1.0
    search = _Search(gram / scale, owner, min(size, len(columns)), time.monotonic() + time_limit, solve)
    bound, finished = search.run()
    return Relaxation(float(np.sqrt(max(0.0, bound) * scale)), f"mixed-integer ({front_end})", None, finished)


class _Search:
    def __init__(self, gram: Array, owner: NDArray[np.int64], size: int, deadline: float, solve: Any) -> None:
        self.order, self.nodes, self.deadline, self.solve = len(gram), int(owner[-1]) + 1, deadline, solve
        self.place = np.zeros((self.order, self.order), dtype=np.int64)
        left, right = np.triu_indices(self.order)
        self.place[left, right] = self.nodes + np.arange(len(left))
        self.place[right, left] = self.place[left, right]
        self.model = self._base(gram, owner, size)

    def _base(self, gram: Array, owner: NDArray[np.int64], size: int) -> _Model:
        left, right = np.triu_indices(self.order)
        pairs, entries = np.flatnonzero(left != right), len(left)
        total = self.nodes + entries + len(pairs)  # binaries, X, and |X_ab| for a < b
        cost = np.zeros(total)
        cost[self.nodes : self.nodes + entries] = np.where(left == right, 1.0, 2.0) * gram[left, right]
        lower = np.zeros(total)
        lower[self.nodes + pairs] = -0.5
        upper = np.ones(total)
        upper[self.nodes + pairs] = 0.5
        upper[self.nodes + entries :] = 0.5
        model = _Model(cost, lower, upper, self.nodes)
        every = np.arange(self.nodes)
        model.add(every, -np.ones(self.nodes), -float(size))
        diagonal = np.diag(self.place)
        model.add(diagonal, np.ones(self.order), 1.0)
        model.add(diagonal, -np.ones(self.order), -1.0)
        for node in every:
            mine = diagonal[owner == node]
            model.add([node, *mine], [1.0, *(-np.ones(len(mine)))])
        largest = int(np.sort(np.bincount(owner))[-size:].sum())
        sizes = np.arange(self.nodes + entries, total)
        model.add(
            np.concatenate([diagonal, sizes]),
            np.concatenate([-np.ones(self.order), -2 * np.ones(len(sizes))]),
            -float(largest),
        )
        for number, pair in enumerate(pairs):
            x, absolute = self.nodes + pair, self.nodes + entries + number
            a, b = int(left[pair]), int(right[pair])
            model.add([absolute, x], [1.0, -1.0])
            model.add([absolute, x], [1.0, 1.0])
            model.add([diagonal[a], diagonal[b], absolute], [0.5, 0.5, -1.0])
            for member in {int(owner[a]), int(owner[b])}:
                model.add([member, absolute], [0.5, -1.0])
        return model

    def run(self) -> tuple[float, bool]:
        """The best bound met, and whether nothing more was to be gained."""
        bound, quiet = -np.inf, 0
        for _ in range(ROUNDS):
            answer = self.solve(self.model, False, self._left())
            gain = answer.bound - bound
            bound = max(bound, answer.bound)
            quiet = quiet + 1 if gain < 1e-4 else 0
            if answer.point is None or not self._cut(answer.point) or quiet >= 5 or self._left() <= 0:
                break
        for _ in range(20):
            if self._left() <= 0:
                return bound, False
            answer = self.solve(self.model, True, self._left())
            gain = answer.bound - bound
            bound = max(bound, answer.bound)
            if not answer.optimal or answer.point is None:
                return bound, False
            if not self._cut(answer.point) or gain < 1e-6:
                return bound, True
        return bound, False

    def _left(self) -> float:
        return self.deadline - time.monotonic()

    def _cut(self, point: Array) -> bool:
        """Add vᵀXv ≥ 0 for the worst eigenvectors; False when X is semidefinite already."""
        values, vectors = np.linalg.eigh(point[self.place])
        worst = [j for j in range(min(PER_ROUND, self.order)) if values[j] < -1e-6]
        left, right = np.triu_indices(self.order)
        factor = np.where(left == right, 1.0, 2.0)
        for j in worst:
            v = np.where(np.abs(vectors[:, j]) < 1e-7, 0.0, vectors[:, j])
            row = factor * v[left] * v[right]
            kept = np.flatnonzero(row)
            self.model.add(self.nodes + kept, row[kept])
        return bool(worst)


def _ortools(model: _Model, integer: bool, seconds: float) -> _Answer:
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("SCIP" if integer else "GLOP")
    variables = [
        solver.IntVar(0, 1, "") if integer and j < model.binaries else solver.NumVar(float(a), float(b), "")
        for j, (a, b) in enumerate(zip(model.lower, model.upper, strict=True))
    ]
    for where, values, low in model.rows:
        row = solver.Constraint(low, solver.infinity())
        for j, value in zip(where.tolist(), values.tolist(), strict=True):
            row.SetCoefficient(variables[j], value)
    goal = solver.Objective()
    for j in np.flatnonzero(model.cost):
        goal.SetCoefficient(variables[j], float(model.cost[j]))
    goal.SetMinimization()
    solver.SetTimeLimit(max(1, int(1000 * seconds)))
    status = solver.Solve()
    solved = status == pywraplp.Solver.OPTIMAL
    if not integer:
        bound = goal.Value() if solved else -np.inf
    else:
        bound = goal.BestBound() if status in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE) else -np.inf
    point = np.array([v.solution_value() for v in variables]) if solved else None
    return _Answer(point, float(bound), solved)


def _pulp(model: _Model, integer: bool, seconds: float) -> _Answer:
    """CBC through PuLP. A run that is cut off has no bound to offer here (PuLP does not pass CBC's on)."""
    import warnings

    import pulp

    with warnings.catch_warnings():
        # PuLP 3 announces other spellings for PuLP 4; these work from 2.9 on, and CBC comes with the package
        warnings.simplefilter("ignore", DeprecationWarning)
        problem = pulp.LpProblem("support", pulp.LpMinimize)
        variables = [
            pulp.LpVariable(f"x{j}", float(a), float(b), "Integer" if integer and j < model.binaries else "Continuous")
            for j, (a, b) in enumerate(zip(model.lower, model.upper, strict=True))
        ]
        problem += pulp.LpAffineExpression((variables[j], float(model.cost[j])) for j in np.flatnonzero(model.cost))
        for where, values, low in model.rows:
            terms = [(variables[j], v) for j, v in zip(where.tolist(), values.tolist(), strict=True)]
            problem += pulp.LpAffineExpression(terms) >= low
        status = problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=max(1.0, seconds), gapRel=0.0, threads=1))
        if status != pulp.LpStatusOptimal or problem.sol_status != pulp.LpSolutionOptimal:
            return _Answer(None, -np.inf, False)
        return _Answer(np.array([v.value() or 0.0 for v in variables]), float(pulp.value(problem.objective)), True)
