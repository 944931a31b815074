"""The judges know a false claim; a small run meets its conditions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from scenarios.declared_relations import QUESTIONS, SCENARIO, _covers, declared
from scenarios.runner import run_scenario


def test_the_judge_of_norms_is_exact() -> None:
    assert _covers(np.array([[3.0], [4.0]]), Fraction(5))
    assert not _covers(np.array([[3.0], [4.0]]), Fraction(5) - Fraction(1, 10**30))


@pytest.mark.parametrize("question", QUESTIONS[:3])
def test_hand_written_rows_are_those_of_the_problem(question: str) -> None:
    for seed in range(20):
        problem, matrix, units, deliver = declared(seed, question)
        assert np.array_equal(problem.operator().matrix.toarray(), matrix)
        assert sorted(i for unit in units for i in unit) == list(range(matrix.shape[1]))
        assert deliver


def test_a_small_run_meets_its_conditions(tmp_path: Path) -> None:
    published = run_scenario(SCENARIO, tmp_path, quick=True, changes={"fields": 8})
    assert not published.violated
