"""Front ends find what all rows allow, at least cost where they are asked to, and call infeasible
only what is.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.planning.proof.cuts import CutRow
from rrf_design.planning.proof.master import Answer, OrTools, front_end
from rrf_design.planning.proof.program import BinaryProgram


def program(seed: int, *, minimise: bool, hint: bool = False) -> BinaryProgram:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(4):
        where = np.sort(rng.choice(6, size=3, replace=False))
        rows.append(CutRow(where, rng.integers(-2, 6, size=3), int(rng.integers(1, 7))))
    cost = rng.integers(1, 9, size=6)
    first = np.ones(6, dtype=bool) if hint else None
    return BinaryProgram(6, tuple(rows), 0, cost, Fraction(1, 4), minimise=minimise, hint=first)


def solutions(given: BinaryProgram) -> list[np.ndarray]:
    every = (np.array(bits) for bits in product([0, 1], repeat=given.variables))
    return [x for x in every if all(r.coefficients @ x[r.variables] >= r.bound for r in given.rows)]


@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_what_is_found_is_what_enumeration_finds(seed, minimise):
    given = program(seed, minimise=minimise, hint=seed % 2 == 0)
    every = solutions(given)
    found = OrTools().solve(given, time_limit=None, seed=0)
    if not every:
        assert found.answer is Answer.INFEASIBLE
        assert found.values is None
        return
    assert found.answer is Answer.FOUND
    assert found.values is not None
    assert any((found.values == x).all() for x in every)
    least = min(int(given.cost @ x) for x in every) * given.unit
    assert found.cost_bound <= least
    assert found.proven is minimise
    if minimise:
        assert int(given.cost @ found.values) * given.unit == least == found.cost_bound


def test_no_rows_and_no_variables():
    empty = BinaryProgram(0, (), 0, np.zeros(0, np.int64), Fraction(1), minimise=True)
    found = OrTools().solve(empty, time_limit=1.0, seed=0)
    assert (found.answer, found.proven, found.cost_bound) == (Answer.FOUND, True, 0)
    impossible = BinaryProgram(0, (CutRow(np.zeros(0, np.int64), np.zeros(0, np.int64), 1),), 0, np.zeros(0, np.int64), Fraction(1), minimise=True)  # fmt: skip
    assert OrTools().solve(impossible, time_limit=1.0, seed=0).answer is Answer.INFEASIBLE


def test_a_row_without_coefficients_never_reaches_a_solver():
    row = CutRow(np.array([0]), np.array([0]), 0)
    bad = BinaryProgram(1, (row,), 0, np.ones(1, np.int64), Fraction(1), minimise=True)
    with pytest.raises(AssertionError, match="says nothing"):
        OrTools().solve(bad, time_limit=None, seed=0)


def test_front_ends_by_name():
    assert front_end().name == "ortools"
    assert front_end("pulp").name.startswith("pulp")
    with pytest.raises(InputError, match='solver: \'gurobi\' is not known; use "ortools", "pulp" or "pulp:NAME"'):
        front_end("gurobi")
    OrTools().ready()
