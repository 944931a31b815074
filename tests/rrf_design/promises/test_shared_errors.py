"""Which errors go together: counts as an obvious loop makes them, groups, and what to buy next."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.risk import rate_bound

NODES = ("first", "again", "cents", "other")


def drawn(items: int = 60) -> tuple[Any, list[dict[str, Any]], np.ndarray]:
    """Truth 10: `again` repeats the errors of `first`, `cents` makes half of them, `other` its
    own.
    """
    rng = np.random.default_rng(5)
    said = np.full((items, 4), 10.0)
    for item in range(items):
        if rng.random() < 0.4:
            said[item, :2] = 7.0
            said[item, 2] = 7.0 if rng.random() < 0.5 else 8.0
        if rng.random() < 0.3:
            said[item, 3] = 9.0
    recipe = {
        "data": {"id": "no", "gold": "truth"},
        "answer": {"of": "first", "tolerance": 0.01},
        "ask": [
            {"id": "first", "prompt": "{{ no }}?"},
            {"id": "again", "like": "first", "prompt": "{{ no }}, please?", "cost": 1.0, "buy": "if needed"},
            {"id": "cents", "like": "first", "transform": "cents", "cost": 2.0, "buy": "if needed"},
            {"id": "other", "like": "first", "prompt": "And {{ no }}?", "cost": 4.0, "buy": "if needed"},
        ],
    }
    rows = [{"no": str(item), "truth": 10} for item in range(items)]
    factor = {"cents": 100.0}
    answers = [
        {"id": str(item), "node": node, "value": said[item, at] * factor.get(node, 1.0)}
        for item in range(items)
        for at, node in enumerate(NODES)
    ]
    return rrf.dataset(recipe, rows), answers, said


def test_pairs_and_threes_are_counted_as_a_loop_counts_them() -> None:
    data, answers, said = drawn()
    found = rrf.measure(data, answers).content["shared_errors"]
    for size, listed in ((2, found["pairs"]), (3, found["threes"])):
        assert {tuple(entry["nodes"]) for entry in listed} == set(combinations(NODES, size))
        for entry in listed:
            places = [NODES.index(node) for node in entry["nodes"]]
            same = sum(len({*row[places]}) == 1 and row[places[0]] != 10.0 for row in said)
            assert entry["same_wrong"] == same
            assert entry["bound"] == rate_bound(60, same, 0.95)
            assert entry["least"] <= same / 60 <= entry["bound"]


def test_what_shares_its_errors_is_one_group_and_is_not_bought_next() -> None:
    data, answers, said = drawn()
    measured = rrf.measure(data, answers)
    found = measured.content["shared_errors"]
    (group,) = found["groups"]
    assert set(NODES[:2]) <= set(group["nodes"]) <= set(NODES[:3])
    first = found["next"][0]
    assert first["node"] in ("cents", "other")
    before = int((said[:, 0] != 10.0).sum())
    falls = {
        node: (before - int(((said[:, 0] != 10.0) & (said[:, 0] == said[:, at])).sum())) / 60 / cost
        for at, (node, cost) in enumerate(zip(NODES, (0, 1.0, 2.0, 4.0), strict=True))
        if at
    }
    assert first["fall_per_cost"] == pytest.approx(max(falls.values()))
    assert first["node"] == max(falls, key=lambda node: falls[node])
    assert set(found["best_three"]["nodes"]) == set(NODES[1:])  # there is no other set of three
    most = (max(Counter(value for value in row if value != 10.0).values(), default=0) for row in said)
    assert found["best_three"]["hidden_wrong"] == sum(alike >= 3 for alike in most)
    assert any(text.startswith(f"buy next {first['node']!r}") for text in measured.proposals)


def test_of_few_items_nothing_is_proposed() -> None:
    data, answers, _ = drawn(12)
    found = rrf.measure(data, answers).content["shared_errors"]
    assert (found["groups"], found["next"], found["threes"], found["best_three"]) == ([], [], [], None)
    assert len(found["pairs"]) == 6


BY_HAND = {
    # One letter an item, t is the truth, - was never answered; 24 items.
    "first": "tttttttttxxxxxxxxyyyyttt",
    "again": "tttttttttxxxxxxxxyyyytt-",
    "cents": "ttttttxxtxxxxttttyttttt-",
    "other": "tttttxttttttttttxyzzttzz",
}
PRICES = {"again": 1.0, "cents": 2.0, "other": 5.0}
VALUES = {"t": 10, "x": 7, "y": 8, "z": 9}


def clopper(items: int, wrong: int, confidence: float) -> float:
    """The largest rate at which so few wrong ones are not too rare, by bisection of a plain sum."""
    low, high = wrong / items, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        chance = sum(math.comb(items, w) * rate**w * (1 - rate) ** (items - w) for w in range(wrong + 1))
        low, high = (rate, high) if chance > 1 - confidence else (low, rate)
    return high


def test_a_log_by_hand_is_counted_as_one_would_on_paper() -> None:
    asks: list[dict[str, Any]] = [{"id": "first", "prompt": "{{ no }}?"}]
    asks += [
        {"id": n, "like": "first", "prompt": f"{n} {{{{ no }}}}?", "cost": c, "buy": "if needed"}
        for n, c in PRICES.items()
    ]
    recipe = {"data": {"id": "no", "gold": "t"}, "answer": {"of": "first", "tolerance": 0.01}, "ask": asks}
    log = [
        {"id": str(at), "node": node, "value": VALUES[mark]}
        for node, marks in BY_HAND.items()
        for at, mark in enumerate(marks)
        if mark != "-"
    ]
    found = rrf.measure(rrf.dataset(recipe, [{"no": str(at), "t": 10} for at in range(24)]), log)
    shared = found.content["shared_errors"]
    counted = {tuple(pair["nodes"]): (pair["both_wrong"], pair["same_wrong"]) for pair in shared["pairs"]}
    # Answers that never came are wrong, and agree with nobody.
    assert counted["first", "again"] == (12, 12)
    assert counted["first", "cents"] == (5, 5)
    assert counted["first", "other"] == (4, 2)
    assert counted["cents", "other"] == (2, 1)  # the 18th; and the last, where one of them never came
    for pair in shared["pairs"]:
        assert pair["bound"] == pytest.approx(clopper(24, pair["same_wrong"], 0.95), abs=1e-9)
    (group,) = shared["groups"]
    assert set(group["nodes"]) >= {"first", "again"}
    steps = [(step["node"], step["before"], step["after"]) for step in shared["next"]]
    assert steps == [("cents", 12, 5), ("other", 5, 1)]  # 7 of 24 for 2, not 10 of 24 for 5; then 4 of 24 for 5
    assert shared["next"][0]["fall_per_cost"] == pytest.approx(7 / 24 / 2)
    assert shared["next"][1]["bound"] == pytest.approx(clopper(24, 1, 1 - 0.05 / 16), abs=1e-9)
    assert shared["best_three"]["hidden_wrong"] == 6  # 10th to 13th, 17th and 18th: three or four say one wrong value
