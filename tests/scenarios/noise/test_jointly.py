"""The hand-written rows are those of the problem, and whitened together they give what certify does."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.joined import joined_problem
from scenarios.noise.jointly import enumerated, joint_case


def test_rows_by_hand_give_the_margin_of_everything() -> None:
    for seed in range(15):
        problem, rows, whole, _ = joint_case(seed)
        together, chosen = joined_problem(problem, "all")
        by_hand = enumerated(rows, whole, list(range(len(rows))))
        assert together.margin(chosen).value == pytest.approx(by_hand, rel=1e-7, abs=1e-7)
        assert np.allclose(whole, whole.T)
