from __future__ import annotations

import numpy as np
import pytest

from scenarios.premise.prediction import Played, predicted, repair_error
from scenarios.real.designs import DESIGNS, recovered_placements


def test_one_wrong_answer_is_repaired_as_in_the_replay() -> None:
    """One-hot answers behave as the paper's scalars: what a design recovers depends on the place alone."""
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
