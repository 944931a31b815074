"""Hull cuts: no design that reaches the target is ever cut off, whatever shortens the lists, and
most others are.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof import cuts
from rrf_design.planning.proof.cuts import _counts_up_to, _weights_for
from rrf_design.planning.proof.program import MarketRows

FEATURES = [(), ("dims",), ("nodes",), ("noise",), ("nodes", "dims", "noise")]


def every_design(evaluator: Evaluator) -> list[np.ndarray]:
    """All closed designs in which something has been asked."""
    items = len(evaluator.market.items)
    masks = [
        evaluator.market.close((np.arange(items)[None] == np.array(c)[:, None]).any(axis=0)) for c in _subsets(items)
    ]
    return [mask for mask in {m.tobytes(): m for m in masks}.values() if evaluator.opened(mask).any()]


def _subsets(items: int) -> list[list[int]]:
    return [list(c) for count in range(items + 1) for c in combinations(range(items), count)]


def left_minus_bound(evaluator: Evaluator, structure: MarketRows, mask: np.ndarray, target: float) -> np.ndarray:
    """What a design leaves of each row of the pool; negative where it breaks one."""
    values = np.zeros(structure.variables, dtype=np.int64)
    values[: len(mask)] = mask
    for number, block in enumerate(structure.waiting):
        values[len(mask) + number] = evaluator.active(mask)[block]
    rows = evaluator.pool.rows(target, structure.variable_of)
    return np.array([int(row.coefficients @ values[row.variables]) - row.bound for row in rows])


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
@pytest.mark.parametrize("short", [False, True], ids=["whole lists", "short lists"])
def test_rows_hold_for_every_design_that_reaches_the_target(features, short, monkeypatch):
    if short:
        monkeypatch.setattr(cuts, "MOST_COUNTS", 8)
        monkeypatch.setattr(cuts, "MOST_KINDS", 3)
    rng = np.random.default_rng(len(features))
    evaluator = Evaluator(random_problem(31, features=features, blocks=7))
    structure = MarketRows(evaluator)
    designs = every_design(evaluator)
    reached = np.array([evaluator.value(mask) for mask in designs])
    targets = np.unique(reached[reached > 1e-6])[::-4]
    size = min(evaluator.size, evaluator.n)
    for target in targets:
        for support in combinations(range(evaluator.n), size):
            evaluator.pool.add_hull(support, 0.5 * rng.random(len(evaluator.variable)), float(target**2))
    assert evaluator.pool.rows_known > 0
    for target in targets:  # a row made for one target is asked about all of them, in both directions
        for mask, value in zip(designs, reached, strict=True):
            if value >= target:
                assert (left_minus_bound(evaluator, structure, mask, float(target**2)) >= 0).all()


def test_designs_below_the_target_are_cut_off():
    evaluator = Evaluator(random_problem(5, blocks=7))
    structure = MarketRows(evaluator)
    designs = every_design(evaluator)
    reached = np.array([evaluator.value(mask) for mask in designs])
    target = float(np.quantile(reached[reached > 0], 0.7))
    for mask in designs:
        shares = evaluator.active(mask)[evaluator.variable].astype(float)
        for support in combinations(range(evaluator.n), min(evaluator.size, evaluator.n)):
            evaluator.pool.add_hull(support, shares, target**2)
    broken = [(left_minus_bound(evaluator, structure, mask, target**2) < 0).any() for mask in designs]
    assert broken == (reached < target * (1 - 1e-9)).tolist()


def test_a_support_that_nothing_on_sale_can_help_is_said_to_be_hopeless():
    evaluator = Evaluator(random_problem(5, blocks=7))
    assert evaluator.pool.add_hull((0, 1), np.ones(len(evaluator.variable)), 1e6)
    row = evaluator.pool.rows(1e6, MarketRows(evaluator).variable_of)[0]
    assert len(row.variables) == 0
    assert row.bound == 1


def test_counts_and_weights_are_listed_without_repetition():
    assert _counts_up_to((1, 2)).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert _counts_up_to(()).shape == (1, 0)
    tried = _weights_for(3)
    assert len(np.unique(tried, axis=0)) == len(tried)
    assert [1.0, 2.0, 3.0] in tried.tolist()
    assert [2.0, 2.0, 2.0] not in tried.tolist()
