from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from scenarios.data_set_promises.panels import Codes
from scenarios.kit.designs import DESIGNS, recovered_placements
from scenarios.premise_on_real_answers import judges
from scenarios.premise_on_real_answers.cells import SILENT, cell, certified, counted, patterns, ratio_interval
from scenarios.premise_on_real_answers.prediction import Played, predicted, repair_error


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


def test_one_wrong_answer_is_repaired_as_in_the_replay() -> None:
    """One-hot answers behave as the paper's scalars: what a design recovers depends on the place
    alone.
    """
    for design in DESIGNS:
        for node, expected in enumerate(recovered_placements(design.name)):
            pattern = tuple(int(place == node) for place in range(4))
            assert repair_error(design.name, pattern) == pytest.approx(expected)


def test_a_shared_error_is_never_repaired_without_an_anchor() -> None:
    assert repair_error("typed_complete", (1, 1, 1, 1)) == 1.0
    assert repair_error("typed_complete", (1, 1, 1, 0)) > 1.0


def test_subsets_are_told_apart_and_unreadable_items_left_out() -> None:
    answers = np.array([[0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [0, 0, -1, 1]])
    rows = {
        row["subset"]: row
        for row in predicted([(answers, np.zeros(6, dtype=np.int64))], permutations=20, bootstrap=5, seed=0)
    }
    assert {name: row["items"] for name, row in rows.items()} == {"one wrong": 2, "more wrong": 2, "any wrong": 4}
    assert rows["one wrong"]["recovered_at_positive_margin"] == 1.0
    assert rows["one wrong"]["unreadable"] == 1


def test_panels_together_are_strata_and_never_share_an_item() -> None:
    answers = np.array([[0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]])
    panel = (answers, np.zeros(4, dtype=np.int64))
    together = Played.together([Played.of([(0, 0, 0, 1), (0, 1, 0, 0)]), Played.of([(0, 0, 1, 0)])])
    assert sorted(set(together.items)) == [0, 1, 2]
    assert together.controls[:, -1].tolist() == [0.0] * 20 + [1.0] * 10
    one, both = (predicted(panels, permutations=20, bootstrap=5, seed=0)[0] for panels in ([panel], [panel, panel]))
    assert both["items"] == 2 * one["items"]
    assert both["spearman"] == pytest.approx(one["spearman"])
    assert one["auc_gain"] is None  # four items are too few for five folds
    assert both["auc_gain"] is not None
