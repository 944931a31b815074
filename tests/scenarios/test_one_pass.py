"""One pass on recorded answers and in nasty tables: the same rows for all, judged as it says."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rrf_design.promises import OnePass
from scenarios import one_pass
from scenarios.one_pass.looks import LABELS, pass_part, pass_parts
from scenarios.one_pass.nasty_tables import NASTY, simulate_passes


@pytest.mark.parametrize("name", NASTY)
def test_the_promise_is_kept_in_nasty_tables(name: str) -> None:
    """5 % of tables may break it; more than four deviations above that would be no chance."""
    found = simulate_passes(name, times=30, seed=1)
    assert found["false"] <= 0.05 * 30 + 4 * (0.05 * 0.95 * 30) ** 0.5


def test_nasty_tables_hide_more_errors_than_may_be_left() -> None:
    for make, rows, risk, settings in NASTY.values():
        answers, gold = make(np.random.default_rng(3), rows, **settings)
        first = OnePass(
            answers, risk=Fraction(str(risk)), confidence=Fraction(19, 20), seed=0, digest=lambda picks, withheld: ""
        )
        assert int((first.picks.code != gold).sum()) > first.allowed


def test_one_pass_and_the_three_steps_are_played_on_the_same_rows(made_up_answers: Path) -> None:
    context: Any = SimpleNamespace(quick=True)
    part = pass_parts(context, made_up_answers)[1]
    assert set(part) == {"one pass", "rows", "risk"}
    settings: Any = {"check": 30, "passes": 3, "others": 60, "seed": 0}
    (row,) = pass_part(settings, made_up_answers, part)
    assert 0 < row["one pass"] <= part["rows"]
    assert row["one pass"] <= row["three steps, best pilot"] + 2 * row["±"]
    assert row["its labels"] in LABELS
    assert 0 <= row["one random sequence"] <= part["rows"]


ROW = {
    **{"cell": "c", "rows": 300, "one pass": 100.0, "±": 2.0, "three steps, best pilot": 130.0},
    **{"one random sequence": 120.0, "of all rows": 1 / 3, "prototype": 99},
}
KEPT = {"simulation": "s", "times": 2000, "false": 100, "rate": 0.05}


def judged(row: dict[str, Any], kept: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    told: dict[str, tuple[bool, str]] = {}
    page: Any = SimpleNamespace(quick=False, check=lambda key, good, words: told.update({key: (good, words)}))
    one_pass._judge(page, [row], [kept])
    return told


def test_looks_are_judged_against_the_prototype_and_the_three_steps() -> None:
    assert all(good for good, _ in judged(ROW, KEPT).values())
    more = judged({**ROW, "one pass": 140.0}, {**KEPT, "rate": 0.08})
    assert not any(good for good, _ in more.values())
    assert more["prototype"][1] == "1 of 1 cells with more; 1.414 of its looks in the median; c: 140 ± 2, prototype 99"
    assert more["kept"][1] == "most: 8.00% of 2,000 (s)"
