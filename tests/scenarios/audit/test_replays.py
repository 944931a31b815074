from __future__ import annotations

import numpy as np
import pytest

from scenarios.audit import figures, replays
from scenarios.published_replay import PUBLISHED, placements
from scenarios.real.designs import DESIGNS, prepared, recovered_placements
from scenarios.statistics import spearman


def test_a_random_placement_has_the_correlation_of_its_rows() -> None:
    """Slow and obvious: fields with an error at a drawn node, repaired by the designs one by one."""
    at = np.random.default_rng(3).integers(4, size=9)
    errors = {design.name: recovered_placements(design.name) for design in DESIGNS}
    rows = [(prepared(d.name, 1).gamma, -round(errors[d.name][node], 9)) for node in at for d in DESIGNS]
    slow = spearman(*(np.round(side, 9) for side in zip(*rows, strict=True)))
    counts = np.bincount(at, minlength=4)
    unseen, swapped = 4 * counts[3] + counts[2], 2 * counts[1] + counts[3]
    assert float(figures.count_correlation(9, unseen, swapped, figures.margins(apart=False))) == pytest.approx(slow)


def test_without_a_model_the_printed_placements_are_possible_draws() -> None:
    rows = {row["stratum"]: row for row in replays.without_a_model()}
    assert set(rows) == {*PUBLISHED, "all four"}
    assert rows["all four"]["inside"]
    assert all(row["low"] < row["without_a_model"] < row["high"] for row in rows.values())
    assert sum(sum(placements(stratum)) for stratum in PUBLISHED) == rows["all four"]["errors"]


def test_fields_are_compared_with_items() -> None:
    rows = {row["stratum"]: row for row in replays.fields_and_items()}
    assert rows["code, Qwen-0.5B"]["more_fields_than_items"]
    assert not rows["code, Phi-3-mini"]["more_fields_than_items_with_a_right_answer"]
    assert replays._judge_items([rows["code, Phi-3-mini"]])[0] is False


def test_counts_that_are_no_multiples_of_four_are_noticed() -> None:
    rows = replays.questions_behind_items()
    assert {row["model"]: row["multiples_of_four"] for row in rows} == {
        "Phi-3-mini": 4,
        "Qwen2.5-0.5B": 4,
        "Qwen2.5-7B": 2,
        "Qwen2.5-14B": 2,
    }
    assert replays._judge_questions(rows)[0]
    assert not replays._judge_questions([{**row, "all_or_none": row["all_or_none"] - 1} for row in rows])[0]


def test_a_regression_is_known_by_its_figures() -> None:
    with_counts = dict.fromkeys(("auc_without_least", "auc_without_largest"), 0.86) | dict.fromkeys(
        ("auc_with_least", "auc_with_largest"), 0.893
    )
    row = {**with_counts, "coefficient_least": 3.1, "coefficient_largest": 3.11}
    assert replays._has_auc(row)
    assert not replays._has_coefficient(row)
    assert replays._has_coefficient({**row, "coefficient_largest": 3.66})
