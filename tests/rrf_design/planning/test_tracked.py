"""The greedy that follows the margin through purchases buys what the greedy with a table buys."""

from __future__ import annotations

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning import arena as module
from rrf_design.planning.arena import Arena
from rrf_design.planning.contract import Order
from rrf_design.planning.greedy import witness_greedy
from rrf_design.planning.tracked import Tracked, local_to_blocks


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_the_designs_and_the_bound_holds(seed, features):
    arena = Arena(random_problem(seed, features=features, blocks=7))
    start = arena.market.empty()
    tracked = Tracked(arena, Order(budget=6.0), start)
    steps = tracked.run()
    before = start
    for step in steps:
        assert (step.before == before).all()
        assert step.value == pytest.approx(arena.value(step.after), rel=1e-7, abs=1e-9)
        assert step.energy > 0.0
        before = step.after
    assert float(arena.market.cost(before)) <= 6.0
    bought = [
        mask for mask in map(np.array, np.ndindex(*(2,) * len(start))) if arena.market.cost(mask.astype(bool)) <= 6
    ]
    assert tracked.upper >= max(arena.value(mask.astype(bool)) for mask in bought) * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_it_reaches_what_the_greedy_with_a_table_reaches(seed):
    arena = Arena(random_problem(seed, blocks=7))
    start = arena.market.empty()
    plain = witness_greedy(arena, Order(), start=start)
    tracked = Tracked(arena, Order(), start).run()
    assert bool(plain) == bool(tracked)
    if plain:
        assert tracked[-1].value == pytest.approx(plain[-1].value, rel=1e-6, abs=1e-9)


def test_only_what_is_allowed_is_bought_and_a_target_ends_it():
    arena = Arena(random_problem(1, blocks=7))
    allowed = np.arange(len(arena.market.items)) < 3
    steps = Tracked(arena, Order(), arena.market.empty(), allowed=allowed).run()
    assert all(step.item < 3 for step in steps)
    whole = Tracked(arena, Order(), arena.market.empty()).run()
    short = Tracked(arena, Order(target=1e-6), arena.market.empty()).run()
    assert len(short) <= len(whole)
    assert all(step.value < 1e-6 for step in short[:-1])


def test_it_is_for_large_fields_whose_queries_are_asked(monkeypatch):
    assert not local_to_blocks(Arena(random_problem(1)))
    monkeypatch.setattr(module, "TABLE_SUPPORTS", 0)
    assert local_to_blocks(Arena(random_problem(1)))
    assert not local_to_blocks(Arena(random_problem(1, features=("nodes",))))
    assert not local_to_blocks(Arena(random_problem(1, features=("radii",))))
