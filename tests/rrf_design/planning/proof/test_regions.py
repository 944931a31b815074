"""Regions are connected, larger than a support, no larger than asked for, and each is listed once; they raise the linear bound."""

from __future__ import annotations

import numpy as np
import pytest
from small import all_designs, cheapest_reaching, random_problem

from rrf_design.planning import Order
from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.prover import Prover
from rrf_design.planning.proof.regions import WIDEST, around, grown, stages
from rrf_design.planning.proof.weak import WeakSupports


def connected(weak: WeakSupports, shares: np.ndarray, region: tuple[int, ...]) -> bool:
    pointer, neighbours = weak.graph(weak.held(shares) > 0.0)
    reached, left = {region[0]}, [region[0]]
    while left:
        node = left.pop()
        for other in neighbours[pointer[node] : pointer[node + 1]].tolist():
            if other in region and other not in reached:
                reached.add(other)
                left.append(other)
    return reached == set(region)


@pytest.mark.parametrize("k", [1, 2])
def test_regions_are_connected_and_listed_once(k):
    arena = Arena(random_problem(7, nodes=9, blocks=20, k=k))
    weak = WeakSupports(arena)
    shares = np.random.default_rng(k).random(len(arena.variable))
    size = arena.size
    one = list(grown(weak, shares, 2.0, more=1))
    two = list(grown(weak, shares, 2.0, more=2))
    wide = list(around(weak, shares, 2.0, tight=[*one, *two]))
    assert one
    assert two
    assert wide
    for listed, lengths in ((one, {size + 1}), (two, {size + 1, size + 2}), (wide, range(size + 1, WIDEST + 1))):
        assert len(set(listed)) == len(listed)
        assert all(len(region) in lengths and connected(weak, shares, region) for region in listed)


@pytest.mark.parametrize("seed", range(6))
def test_the_linear_bound_rises_and_stays_below_the_cheapest_design(seed):
    problem = random_problem(seed + 20, nodes=7, blocks=10, k=1 + seed % 2)
    designs, arena = all_designs(problem), Arena(problem)
    values = sorted({value for _, value, _ in designs if value > 1e-3})
    for target in values[len(values) // 2 :: 20]:
        least = cheapest_reaching(designs, target)
        single, wide = Prover(arena, Order()), Prover(arena, Order())
        single.regions = 0
        _, alone = single.relax(target * (1 - 1e-9), None, deadline=None)
        _, together = wide.relax(target * (1 - 1e-9), None, deadline=None)
        assert alone <= together <= least


def test_wide_nodes_and_small_fields_have_none():
    known = {k: stages(WeakSupports(Arena(random_problem(1, nodes=9, blocks=12, k=k)))) for k in (1, 2, 3)}
    assert known == {1: 1, 2: 3, 3: 0}
    assert stages(WeakSupports(Arena(random_problem(1, nodes=3, blocks=6, k=2)))) == 0
