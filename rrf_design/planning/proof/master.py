"""Front ends that solve a `BinaryProgram`: OR-Tools (CP-SAT) by default, and PuLP (`pulp_master`)
for solvers a user may have.

CP-SAT reasons in whole numbers, so "infeasible" is a proof. Measured on fields of 24 nodes with 64
candidates it also is an order of magnitude faster on these covering programs than SCIP or HiGHS.
A program of few variables is settled by looking at all their values: importing OR-Tools takes as
long as the rest of a start.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from rrf_design.errors import InputError, MissingDependency
from rrf_design.planning.proof.program import BinaryProgram


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
    """No solution costs less."""
    proven: bool = False


class Master(Protocol):
    name: str
    gap: float
    """Relative distance between incumbent and bound below which this solver's arithmetic can't tell
    designs apart.
    """

    def ready(self) -> None:
        """Raise what would keep this solver from working, before any work is done."""
        ...

    def solve(self, program: BinaryProgram, *, time_limit: float | None, seed: int) -> Solved: ...


def front_end(name: str = "ortools") -> Master:
    """ "ortools", "pulp" (its default solver, CBC), or "pulp:NAME" for a solver that PuLP knows, as
    "pulp:HiGHS".
    """
    if name == "ortools":
        return OrTools()
    kind, _, solver = name.partition(":")
    if kind == "pulp":
        from rrf_design.planning.proof._pulp_master import Pulp

        return Pulp(solver)
    raise InputError(f'solver: {name!r} is not known; use "ortools", "pulp" or "pulp:NAME"')


FEW = 10
"""Variables of a program up to which all their values are looked at."""


class OrTools:
    name = "ortools"
    gap = 1e-9

    def __init__(self, *, few: int = FEW) -> None:
        self.few = few

    def ready(self) -> None:
        if find_spec("ortools") is None:
            raise MissingDependency("planning with proofs needs OR-Tools; get it with: pip install ortools")

    def solve(self, program: BinaryProgram, *, time_limit: float | None, seed: int) -> Solved:
        for row in program.rows:
            assert len(row.variables) == 0 or row.coefficients.any(), "a row without coefficients says nothing"
        if program.variables <= self.few and (found := _all_looked_at(program)) is not None:
            return found
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
        solver.parameters.cp_model_probing_level = 0  # small programs, solved often: probing costs more than it saves
        # Looking for rows included in others, OR-Tools 9.15 calls feasible programs infeasible.
        solver.parameters.presolve_inclusion_work_limit = 0
        solver.parameters.stop_after_first_solution = not program.minimise
        if time_limit is not None:
            solver.parameters.max_time_in_seconds = max(time_limit, 0.01)
        status = _interruptible(solver, model)
        if status == cp_model.INFEASIBLE:
            return Solved(Answer.INFEASIBLE)
        bound = Fraction(int(np.floor(solver.best_objective_bound))) * program.unit  # holds whenever the search stops
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Solved(Answer.UNKNOWN, cost_bound=max(bound, Fraction(0)))
        values = np.array([solver.boolean_value(v) for v in variables], dtype=bool)
        return Solved(Answer.FOUND, values, bound, proven=program.minimise and status == cp_model.OPTIMAL)


def _all_looked_at(program: BinaryProgram) -> Solved | None:
    """The cheapest of all values of few variables; None where sums may be too large for the
    arithmetic.
    """
    rows = program.rows
    largest = max((int(np.abs(row.coefficients).sum(dtype=np.float64)) for row in rows), default=0)
    if max(largest, int(np.abs(program.cost).sum(dtype=np.float64))) > 2**60:
        return None
    count = program.variables
    # Of equal cost, that comes first which has the first variables.
    every = (np.arange(2**count)[::-1, None] >> np.arange(count)[::-1]) & 1
    for row in rows:
        every = every[every[:, row.variables] @ row.coefficients >= row.bound]
    if not len(every):
        return Solved(Answer.INFEASIBLE)
    costs = every @ program.cost
    best = int(np.argmin(costs))
    return Solved(
        Answer.FOUND, every[best].astype(bool), Fraction(int(costs[best])) * program.unit, proven=program.minimise
    )


def _interruptible(solver: Any, model: Any) -> Any:
    """Solve in a thread of its own, so that Ctrl-C reaches this one at once; the search is then
    told to stop.
    """
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
