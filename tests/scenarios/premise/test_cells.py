from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from scenarios.premise.cells import SILENT, cell, certified, counted, patterns, ratio_interval


def test_patterns_say_who_agrees_and_who_is_right() -> None:
    answers = np.array([[0, 1, 0, 2], [0, 0, -1, 1], [0, 1, 2, 0]])
    gold = np.array([1, -2, 0])
    assert patterns(answers, gold) == [(1, 0, 1, 2), (1, 1, SILENT, 2), (0, 1, 2, 0)]


@pytest.mark.parametrize("k", [1, 2])
def test_repair_certifies_what_counting_certifies(k: int) -> None:
    every = list(dict.fromkeys(patterns(np.array(list(product((-1, 0, 1, 2), repeat=4))), np.zeros(256, dtype=int))))
    longer = [pattern + tail for pattern in every[::3] for tail in ((0,), (0, 1))] if k == 2 else []
    for found in (every, [p for p in longer if len(p) == 5], [p for p in longer if len(p) == 6]):
        if found:
            assert certified(found, k) == {pattern: counted(pattern, k) for pattern in found}


def test_a_shared_error_is_certified_and_counted_as_wrong() -> None:
    answers = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 0]])
    gold = np.array([0, 1, 0, -2])
    found = cell(answers, gold, nodes=3, k=1)
    assert found["margin_certified"] == 4
    assert found["premise_false"] == 3
    assert found["value_certified"] == 3
    assert found["value_wrong"] == 2
    assert found["wrong_though_premise_true"] == 0
    assert found["premise_false_and_noticed"] == 1


def test_intervals_resample_items_and_hold_the_value() -> None:
    hits, tries = np.array([2.0, 0.0] * 50), np.full(100, 2.0)
    value, low, high = ratio_interval(hits, tries, draws=400, seed=0)
    assert value == 0.5
    assert 0.35 < low < 0.45 < 0.55 < high < 0.65
    assert np.isnan(ratio_interval(hits, np.zeros(100), draws=5, seed=0)[0])
