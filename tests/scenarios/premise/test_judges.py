from __future__ import annotations

import numpy as np

from scenarios.premise import judges
from scenarios.promises.panels import Codes

NODES = [f"{judge}/{prompt}/{order}" for judge in "ABC" for prompt in "pqr" for order in ("ab", "ba")]


def _bench(answers: Codes, gold: Codes) -> judges.JudgeBench:
    """Codes 0 and 1 are the first and the second output."""
    return judges.JudgeBench.of(NODES, answers, gold, gold == 0)


def test_who_always_takes_what_is_shown_first_is_found_out() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, size=200)
    answers = np.repeat(gold[:, None], len(NODES), axis=1)
    for number, node in enumerate(NODES):
        if node.startswith("A"):
            answers[:, number] = 0 if node.endswith("ab") else 1
    rows = {(row["judge"], row["prompt"]): row for row in judges.bias(_bench(answers, gold), draws=100, seed=0)}
    assert rows["A", "p"]["first_shown_wins"] == 1.0
    assert rows["A", "p"]["order_changes_verdict"] == 1.0
    assert rows["B", "p"]["low"] <= 0.5 <= rows["B", "p"]["high"]
    assert rows["B", "q"]["accuracy_ab"] == 1.0


def test_asks_of_one_judge_that_fail_together_are_told_from_independent_ones() -> None:
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 2, size=600)
    wrong = {judge: rng.random(600) < 0.3 for judge in "ABC"}
    answers = np.stack([np.where(wrong[node[0]], 1 - gold, gold) for node in NODES], axis=1)
    rows = {row["kind"]: row for row in judges.together(_bench(answers, gold), draws=50, seed=0)}
    assert rows["same judge, other prompt"]["low"] > 2.5
    assert 0.7 < rows["other judge, same prompt"]["together_over_independent"] < 1.3


def test_a_wrong_judge_breaks_many_asks_and_one_unit() -> None:
    gold = np.zeros(10, dtype=np.int64)
    answers = np.zeros((10, len(NODES)), dtype=np.int64)
    answers[:5, :6] = 1
    rows = {(row["field"], row["unit"]): row for row in judges.units(_bench(answers, gold), k=1, draws=20, seed=0)}
    both = "judges with one prompt, both orders"
    assert all(row["patterns"] and not row["disagree_with_counting"] for row in rows.values())
    assert rows[both, "ask"]["premise_false"] == 0.5
    assert rows[both, "judge"]["premise_false"] == 0.0
    assert rows[both, "judge"]["certified"] == 1.0
    own = rows["prompts of one judge, both orders", "prompt"]
    assert own["premise_false"] == 5 / 30
    assert own["wrong_if_certified"] == 5 / 30


def test_the_two_judges_that_fail_together_are_named() -> None:
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 2, size=600)
    shared = rng.random(600) < 0.3
    wrong = {"A": shared, "B": shared, "C": rng.random(600) < 0.3}
    answers = np.stack([np.where(wrong[node[0]], 1 - gold, gold) for node in NODES], axis=1)
    rows = judges.together_by_unit(_bench(answers, gold), draws=50, seed=0)
    found = {(row["first"], row["second"]): row for row in rows if row["unit"] == "judge"}
    assert found["A", "B"]["low"] > 2.5
    assert found["A", "C"]["high"] < 1.5
    assert {row["unit"] for row in rows} == {"judge", "prompt"}


def test_repair_with_units_and_counting_agree_on_unread_and_split_units() -> None:
    rng = np.random.default_rng(3)
    gold = np.zeros(80, dtype=np.int64)
    answers = rng.choice([0, 0, 0, 1, -1], size=(80, len(NODES)))
    rows = judges.units(_bench(answers, gold), k=1, draws=5, seed=0)
    assert sum(row["patterns"] for row in rows) > 300
    assert sum(row["disagree_with_counting"] for row in rows) == 0
