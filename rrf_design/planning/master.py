"""Front ends that solve a `Program`: OR-Tools (CP-SAT) by default, and PuLP for the solvers a user may have.

CP-SAT reasons in whole numbers, so "infeasible" is a proof. Measured on fields of 24 nodes with 64 candidates it also is
an order of magnitude faster on these covering programs than SCIP or HiGHS. MILP solvers behind PuLP work in floating
point; their covering rows are relaxed by more than their feasibility tolerance, and the gap they prove is stated with it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from rrf_design.errors import InputError, MissingDependency
from rrf_design.planning.cuts import SCALE
from rrf_design.planning.program import Program


class Answer(StrEnum):
    FOUND = "found"
    """Variables that satisfy every row; with `proven`, of least cost."""
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    """Time ran out."""


@dataclass(frozen=True, slots=True)
class Solved:
    answer: Answer
    values: np.ndarray | None = None  # (variables,) of bool
    cost_bound: Fraction = Fraction(0)
    """No solution costs less (only when minimising)."""
    proven: bool = False


class Master(Protocol):
    name: str
    gap: float
    """Relative distance between incumbent and bound below which this solver's arithmetic can't tell designs apart."""

    def solve(self, program: Program, *, time_limit: float | None, seed: int) -> Solved: ...


def front_end(name: str = "ortools") -> Master:
    """ "ortools", "pulp" (its default solver, CBC), or "pulp:NAME" for a solver that PuLP knows, as "pulp:HiGHS"."""
    if name == "ortools":
        return OrTools()
    kind, _, solver = name.partition(":")
    if kind == "pulp":
        return Pulp(solver)
    raise InputError(f'solver: {name!r} is not known; use "ortools", "pulp" or "pulp:NAME"')


class OrTools:
    name = "ortools"
    gap = 1e-9

    def solve(self, program: Program, *, time_limit: float | None, seed: int) -> Solved:
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        variables = [model.new_bool_var("") for _ in range(program.variables)]
        for row in program.rows:
            chosen = [variables[i] for i in row.variables]
            model.add(cp_model.LinearExpr.weighted_sum(chosen, row.coefficients.tolist()) >= row.bound)
        # Where any solution will do, the cost still steers the search: proofs take half the time.
        model.minimize(cp_model.LinearExpr.weighted_sum(variables, program.cost.tolist()))
        if program.hint is not None:
            for variable, value in zip(variables, program.hint, strict=False):
                model.add_hint(variable, bool(value))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed
        solver.parameters.linearization_level = (
            2  # the linear relaxation is what refutes covering rows: 30 times faster
        )
        solver.parameters.stop_after_first_solution = not program.minimise
        if time_limit is not None:
            solver.parameters.max_time_in_seconds = max(time_limit, 0.01)
        status = _interruptible(solver, model)
        if status == cp_model.INFEASIBLE:
            return Solved(Answer.INFEASIBLE)
        bound = Fraction(int(np.floor(solver.best_objective_bound)) if program.minimise else 0) * program.unit
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Solved(Answer.UNKNOWN, cost_bound=max(bound, Fraction(0)))
        values = np.array([solver.boolean_value(v) for v in variables], dtype=bool)
        return Solved(Answer.FOUND, values, bound, proven=status == cp_model.OPTIMAL)


def _interruptible(solver: Any, model: Any) -> Any:
    """Solve in a thread of its own, so that Ctrl-C reaches this one at once; the search is then told to stop."""
    solver.parameters.catch_sigint_signal = False  # it would end this solve only, and the interrupt would be lost
    with ThreadPoolExecutor(max_workers=1) as pool:
        status = pool.submit(solver.solve, model)
        try:
            while True:
                try:
                    return status.result(timeout=0.5)
                except TimeoutError:
                    continue
        except BaseException:
            solver.stop_search()
            raise


class Pulp:
    gap = 1e-5
    SLACK = 2e-6  # above the solvers' feasibility tolerance of 1e-6, in units of a row's right-hand side

    def __init__(self, solver: str = "") -> None:
        self.solver = solver
        self.name = f"pulp:{solver}" if solver else "pulp"

    def solve(self, program: Program, *, time_limit: float | None, seed: int) -> Solved:
        import pulp

        model = pulp.LpProblem("master", pulp.LpMinimize)
        make = getattr(model, "add_variable", pulp.LpVariable)  # PuLP 4 only makes variables of a model
        variables = [make(f"x{i}", cat="Binary") for i in range(program.variables)]
        total = pulp.lpSum(int(c) * v for c, v in zip(program.cost, variables, strict=True) if c)
        model += total if program.minimise else pulp.LpAffineExpression()
        for number, row in enumerate(program.rows):
            large = number >= program.hard and int(np.abs(row.coefficients).max(initial=0)) > SCALE >> 20
            unit = float(SCALE) if large else 1.0  # rows that forbid a pattern are small numbers already
            slack = 0.0 if unit == 1.0 else self.SLACK
            pairs = zip(row.variables, row.coefficients, strict=True)
            model += pulp.lpSum(float(c) / unit * variables[i] for i, c in pairs) >= row.bound / unit - slack
        status = model.solve(self._command(time_limit))
        if status == pulp.LpStatusInfeasible:
            return Solved(Answer.INFEASIBLE)
        if status != pulp.LpStatusOptimal or any(v.value() is None for v in variables):
            return Solved(Answer.UNKNOWN)
        values = np.array([v.value() > 0.5 for v in variables], dtype=bool)
        proven = model.sol_status == pulp.LpSolutionOptimal
        bound = Fraction(int(program.cost @ values)) * program.unit if program.minimise and proven else Fraction(0)
        return Solved(Answer.FOUND, values, bound, proven)

    def _command(self, time_limit: float | None) -> object:
        import pulp

        limit = None if time_limit is None else max(time_limit, 0.1)
        known = pulp.listSolvers(onlyAvailable=True)
        if not self.solver and "COIN_CMD" not in known:  # no CBC on the path: the one that comes with PuLP
            bundled = getattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", None)
            return pulp.COIN_CMD(path=bundled, msg=False, timeLimit=limit)
        name = self.solver or "COIN_CMD"
        if name not in known:
            raise MissingDependency(f"solver: PuLP finds no {name!r} on this machine; it finds {', '.join(known)}")
        return pulp.getSolver(name, msg=False, timeLimit=limit)
