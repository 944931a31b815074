"""Hull cuts: no design that reaches the target is ever cut off, whatever shortens the lists, and most others are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof import hulls
from rrf_design.planning.proof.hulls import counts_up_to, weights_for
from rrf_design.planning.proof.program import MarketRows

FEATURES = [(), ("dims",), ("nodes",), ("noise",), ("nodes", "dims", "noise")]


def every_design(arena: Arena) -> list[np.ndarray]:
    """All closed designs in which something has been asked."""
    items = len(arena.market.items)
    masks = [arena.market.close((np.arange(items)[None] == np.array(c)[:, None]).any(axis=0)) for c in _subsets(items)]
    return [mask for mask in {m.tobytes(): m for m in masks}.values() if arena.opened(mask).any()]


def _subsets(items: int) -> list[list[int]]:
    return [list(c) for count in range(items + 1) for c in combinations(range(items), count)]


def left_minus_bound(arena: Arena, structure: MarketRows, mask: np.ndarray, target: float) -> np.ndarray:
    """What a design leaves of each row of the pool; negative where it breaks one."""
    values = np.zeros(structure.variables, dtype=np.int64)
    values[: len(mask)] = mask
    for number, block in enumerate(structure.waiting):
        values[len(mask) + number] = arena.active(mask)[block]
    rows = arena.pool.rows(target, structure.variable_of)
    return np.array([int(row.coefficients @ values[row.variables]) - row.bound for row in rows])


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
@pytest.mark.parametrize("short", [False, True], ids=["whole lists", "short lists"])
def test_rows_hold_for_every_design_that_reaches_the_target(features, short, monkeypatch):
    if short:
        monkeypatch.setattr(hulls, "MOST_COUNTS", 8)
        monkeypatch.setattr(hulls, "MOST_KINDS", 3)
    rng = np.random.default_rng(len(features))
    arena = Arena(random_problem(31, features=features, blocks=7))
    structure = MarketRows(arena)
    designs = every_design(arena)
    reached = np.array([arena.value(mask) for mask in designs])
    targets = np.unique(reached[reached > 1e-6])[::-4]
    size = min(arena.size, arena.n)
    for target in targets:
        for support in combinations(range(arena.n), size):
            arena.pool.add_hull(support, 0.5 * rng.random(len(arena.variable)), float(target**2))
    assert arena.pool.rows_known > 0
    for target in targets:  # a row made for one target is asked about all of them, in both directions
        for mask, value in zip(designs, reached, strict=True):
            if value >= target:
                assert (left_minus_bound(arena, structure, mask, float(target**2)) >= 0).all()


def test_designs_below_the_target_are_cut_off():
    arena = Arena(random_problem(5, blocks=7))
    structure = MarketRows(arena)
    designs = every_design(arena)
    reached = np.array([arena.value(mask) for mask in designs])
    target = float(np.quantile(reached[reached > 0], 0.7))
    for mask in designs:
        shares = arena.active(mask)[arena.variable].astype(float)
        for support in combinations(range(arena.n), min(arena.size, arena.n)):
            arena.pool.add_hull(support, shares, target**2)
    broken = [(left_minus_bound(arena, structure, mask, target**2) < 0).any() for mask in designs]
    assert broken == (reached < target * (1 - 1e-9)).tolist()


def test_a_support_that_nothing_on_sale_can_help_is_said_to_be_hopeless():
    arena = Arena(random_problem(5, blocks=7))
    assert arena.pool.add_hull((0, 1), np.ones(len(arena.variable)), 1e6)
    row = arena.pool.rows(1e6, MarketRows(arena).variable_of)[0]
    assert len(row.variables) == 0
    assert row.bound == 1


def test_counts_and_weights_are_listed_without_repetition():
    assert counts_up_to((1, 2)).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert counts_up_to(()).shape == (1, 0)
    tried = weights_for(3)
    assert len(np.unique(tried, axis=0)) == len(tried)
    assert [1.0, 2.0, 3.0] in tried.tolist()
    assert [2.0, 2.0, 2.0] not in tried.tolist()
