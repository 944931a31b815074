"""Mended designs reach the target within the money, by the compiled way and the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from small import all_designs, cheapest_reaching, random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.mending import Exchange, Mender
from rrf_design.planning.proof.neighbourhoods import Neighbourhoods
from rrf_design.planning.proof.program import MarketRows
from rrf_design.planning.proof.weak import WeakSupports


def reach(arena: Arena, start: np.ndarray, threshold: float, budget, *, compiled: bool) -> np.ndarray | None:
    weak, hoods, structure = WeakSupports(arena), Neighbourhoods(arena), MarketRows(arena)
    if compiled:
        units = None if budget is None else int(budget / structure.unit)
        search = Exchange(weak, hoods, structure.cost[: len(arena.market.items)])
        return search.reach(start, threshold**2, units, deadline=None, effort=20.0, seed=1)
    mender = Mender(weak, hoods, threshold**2, np.random.default_rng(1))
    return mender.reach(start, budget, deadline=None, effort=20.0)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize("seed", [2, 5, 6, 7])
def test_the_cheapest_design_is_found_on_small_fields(seed, compiled):
    problem = random_problem(seed, nodes=5, blocks=8, k=1 + seed % 2)
    arena = Arena(problem)
    designs = all_designs(problem)
    top = max(value for _, value, _ in designs)
    assert top > 0.1
    for share in (0.5, 0.95):
        least = cheapest_reaching(designs, share * top)
        for start in (arena.market.empty(), np.ones(len(arena.market.items), dtype=bool)):
            found = reach(arena, start, share * top, least, compiled=compiled)
            assert found is not None
            assert arena.market.cost(found) == least
            assert arena.value(found) >= share * top * (1 - 1e-9)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
def test_what_nothing_reaches_is_not_found(compiled):
    arena = Arena(random_problem(10, nodes=6, blocks=8))
    assert reach(arena, arena.market.empty(), 100.0, None, compiled=compiled) is None


def test_rules_are_kept():
    problem = random_problem(3, nodes=5, blocks=8, features=("rules", "links"))
    arena = Arena(problem)
    for cost, value, _ in all_designs(problem)[::7]:
        if value > 1e-3:
            found = reach(arena, arena.market.empty(), value, cost, compiled=False)
            if found is not None and not arena.market.broken(found):
                assert arena.market.cost(found) <= cost
                assert (arena.market.close(found) == found).all()
