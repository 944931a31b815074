"""The judge itself: it knows a wrong bound when it sees one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scenarios.rigour import FAMILIES, SCENARIO, exactly_above, field
from scenarios.runner import run_scenario


def test_the_judge_is_exact() -> None:
    columns = np.diag([1.0, 0.5])
    assert exactly_above(columns, 0.5, strictly=False)
    assert not exactly_above(columns, 0.5, strictly=True)
    assert not exactly_above(columns, float(np.nextafter(0.5, 1)), strictly=False)
    assert exactly_above(np.array([[1.0, 1.0]]), 0.0, strictly=False)
    assert not exactly_above(np.array([[1.0, 1.0]]), 1e-200, strictly=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_fields_are_repeatable_and_fit_their_groups(family: str) -> None:
    matrix, sizes, k = field(family, 3)
    again, _, _ = field(family, 3)
    assert (matrix == again).all()
    assert matrix.shape[1] == sum(sizes)
    assert k in (1, 2)


def test_a_small_run_meets_its_conditions(tmp_path: Path) -> None:
    published = run_scenario(SCENARIO, tmp_path, quick=True, changes={"fields": 24})
    assert not published.violated
