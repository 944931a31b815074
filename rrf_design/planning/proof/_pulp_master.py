"""The second front end: PuLP, for CBC, HiGHS or a commercial solver that a user has.

Solvers behind PuLP work in floating point; covering rows are relaxed by more than their feasibility
tolerance, and the gap they prove is stated with it. They can't be interrupted from Python, and
HiGHS must not share a process with OR-Tools. So they work in a process of their own (this module
run as a program), with whatever commands they start: Ctrl-C ends all of them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import weakref
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import IO, Any

import numpy as np

from rrf_design.errors import MissingDependency, RRFError
from rrf_design.planning.proof.cuts import SCALE
from rrf_design.planning.proof.master import Answer, Solved
from rrf_design.planning.proof.program import BinaryProgram

SLACK = 2e-6  # above the solvers' feasibility tolerance of 1e-6, in units of a row's right-hand side


class Pulp:
    """A `Master` whose process starts with the first program, serves all later ones, and ends with
    this object.
    """

    gap = 1e-5

    def __init__(self, solver: str = "") -> None:
        self.solver = solver
        self.name = f"pulp:{solver}" if solver else "pulp"
        self._process: subprocess.Popen[bytes] | None = None

    def ready(self) -> None:
        nothing = np.zeros(1, dtype=np.int64)
        self.solve(BinaryProgram(1, (), 0, nothing, Fraction(1), minimise=False), time_limit=None, seed=0)

    def solve(self, program: BinaryProgram, *, time_limit: float | None, seed: int) -> Solved:
        if self._process is None:
            self._process = self._start()
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            pickle.dump((program, self.solver, time_limit), self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError):
            raise MissingDependency(f"solver: {self.name} ended without an answer; try another solver") from None
        except KeyboardInterrupt:
            self._ended()
            self._process = None
            raise
        if isinstance(answer, Solved):
            return answer
        raise answer

    def _start(self) -> subprocess.Popen[bytes]:
        folder = tempfile.TemporaryDirectory(prefix="rrf-design-")  # PuLP's files, also those of a solve that is ended
        home = str(Path(__file__).parents[3])
        paths = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rrf_design.planning.proof._pulp_master"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a group of its own: the terminal's Ctrl-C comes to us alone, and we end the group
            env={**os.environ, "PYTHONPATH": paths, "TMPDIR": folder.name, "TMP": folder.name, "TEMP": folder.name},
        )
        self._ended = weakref.finalize(self, _end, process, folder)
        return process


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    """End the solver's process with everything it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    folder.cleanup()


def _solve_here(program: BinaryProgram, solver: str, time_limit: float | None) -> Solved:
    """Solve a program in this process."""
    import pulp

    model = pulp.LpProblem("master", pulp.LpMinimize)
    make = getattr(model, "add_variable", pulp.LpVariable)  # PuLP 4 only makes variables of a model
    variables = [make(f"x{i}", cat="Binary") for i in range(program.variables)]
    total = pulp.lpSum(int(c) * v for c, v in zip(program.cost, variables, strict=True) if c)
    model += total if program.minimise else pulp.LpAffineExpression()
    for row in program.rows:
        largest = int(np.abs(row.coefficients).max(initial=0))
        large = largest > SCALE >> 20
        unit = float(max(abs(row.bound), largest)) if large else 1.0  # others count or forbid: small numbers already
        slack = SLACK if large else 0.0
        pairs = zip(row.variables, row.coefficients, strict=True)
        model += pulp.lpSum(float(c) / unit * variables[i] for i, c in pairs) >= row.bound / unit - slack
    status = model.solve(_command(solver, time_limit))
    if status == pulp.LpStatusInfeasible:
        return Solved(Answer.INFEASIBLE)
    asked = {int(i) for row in program.rows for i in row.variables}  # solvers may leave the others without a value
    if status != pulp.LpStatusOptimal or any(variables[i].value() is None for i in asked):
        return Solved(Answer.UNKNOWN)
    values = np.array([(v.value() or 0.0) > 0.5 for v in variables], dtype=bool)
    proven = model.sol_status == pulp.LpSolutionOptimal
    # Floating point tells costs apart to so many digits of all of them: within that, the next whole
    # unit is the bound.
    least = int(program.cost @ values) - Fraction(SLACK) * int(program.cost.sum())
    bound = max(ceil(least), 0) * program.unit if program.minimise and proven else Fraction(0)
    return Solved(Answer.FOUND, values, bound, proven)


def _command(solver: str, time_limit: float | None) -> Any:
    import pulp

    limit = None if time_limit is None else max(time_limit, 0.1)
    known = pulp.listSolvers(onlyAvailable=True)
    if not solver and "COIN_CMD" not in known:  # no CBC on the path: the one that comes with PuLP
        bundled = getattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", None)
        return pulp.COIN_CMD(path=bundled, msg=False, timeLimit=limit, gapRel=0.0)
    name = solver or "COIN_CMD"
    if name not in known:
        raise MissingDependency(f"solver: PuLP finds no {name!r} on this machine; it finds {', '.join(known)}")
    return pulp.getSolver(name, msg=False, timeLimit=limit, gapRel=0.0)


def _serve(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """Solve the programs that come, until there are no more."""
    while True:
        try:
            program, solver, time_limit = pickle.load(tasks)
        except EOFError:
            return
        answer: Solved | RRFError
        try:
            answer = _solve_here(program, solver, time_limit)
        except RRFError as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    kept = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a solver prints must not come between the answers
    _serve(sys.stdin.buffer, kept)
