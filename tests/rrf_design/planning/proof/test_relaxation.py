"""Whatever prices a linear program returns, the cost they prove is never above that of a whole solution."""

from __future__ import annotations

from itertools import product

import numpy as np
from small import random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.cuts import Row
from rrf_design.planning.proof.program import MarketRows
from rrf_design.planning.proof.relaxation import MarketRelaxation, safe_cost


def random_rows(rng: np.random.Generator, variables: int, count: int) -> list[Row]:
    rows = []
    for _ in range(count):
        used = np.sort(rng.choice(variables, size=int(rng.integers(1, variables + 1)), replace=False))
        coefficients = rng.integers(-1, 5, size=len(used))
        rows.append(Row(used, coefficients, int(rng.integers(0, max(int(np.maximum(coefficients, 0).sum()), 1) + 1))))
    return rows


def test_no_prices_prove_too_much():
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(60):
        rows, cost = random_rows(rng, 6, 5), rng.integers(0, 9, size=6)
        best = least(rows, cost)
        if best is None:
            continue
        seen += 1
        for prices in (rng.random(5) * 3, np.zeros(5), rng.random(5) * 1e7, rng.random(5) * 1e-9):
            assert safe_cost(rows, prices, cost) <= best
    assert seen > 20


def least(rows: list[Row], cost: np.ndarray) -> int | None:
    """The cheapest whole solution, by looking at all."""
    found = [
        int(cost @ x)
        for x in map(np.array, product([0, 1], repeat=len(cost)))
        if all(int(row.coefficients @ x[row.variables]) >= row.bound for row in rows)
    ]
    return min(found, default=None)


def test_the_linear_bound_is_proven_in_full_and_follows_its_rows():
    """Three of three at 2, 3 and 4, then two of them, then none: rows change their bound and are switched off."""
    structure = MarketRows(Arena(random_problem(1, blocks=4)))
    relaxation = MarketRelaxation(structure)
    variables = np.flatnonzero(structure.cost)[:3]
    for need in (3, 2, 1, 2):
        row = Row(variables, np.ones(3, dtype=np.int64), need)
        solved = relaxation.solve([row])
        cheapest = int(np.sort(structure.cost[variables])[:need].sum())
        proven = safe_cost([*structure.rows, row], solved.prices, structure.cost)
        assert proven == cheapest
        assert solved.cost >= proven - 1e-6
    assert relaxation.solve([None]).cost == 0.0
