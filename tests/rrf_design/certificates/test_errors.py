"""Error bounds: the paper's formulas, rounded to the safe side."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.certificates.errors import Tail, Tolerances, error_section
from rrf_design.errors import InputError

BASE: dict[str, Any] = {
    "lower": 0.5,
    "upper": 0.6,
    "robust_lower": 0.5,
    "eta": 0.0,
    "epsilon": 0.1,
    "sigma": None,
    "amplitude": None,
    "delta": None,
    "confidence": None,
    "tolerances": None,
    "tail": None,
}


def test_two_epsilon_over_gamma() -> None:
    section = error_section(**BASE)
    assert section["bound"] == section["nominal"] == pytest.approx(0.4)
    assert section["minimax"] is None


def test_operator_uncertainty_takes_the_worse_of_robust_and_effective() -> None:
    section = error_section(**{**BASE, "robust_lower": 0.4, "eta": 0.1, "amplitude": 3.0})
    assert section["robust"] == pytest.approx(0.5)
    assert section["effective_epsilon"] == pytest.approx(0.4)
    assert section["bound"] == section["effective"] == pytest.approx(1.6)
    unknown = error_section(**{**BASE, "robust_lower": 0.4, "eta": 0.1})
    assert unknown["effective"] is None
    assert unknown["bound"] == unknown["robust"]


def test_no_margin_no_bound() -> None:
    section = error_section(**{**BASE, "lower": 0.0, "robust_lower": 0.0, "amplitude": 2.0})
    assert section["bound"] is None
    assert section["minimax"]["upper"] == 2.0
    assert error_section(**{**BASE, "eta": 0.6, "robust_lower": 0.0})["bound"] is None


def test_the_minimax_bracket() -> None:
    section = error_section(**{**BASE, "amplitude": 10.0, "sigma": 0.3})
    assert section["minimax"]["lower"] == pytest.approx(0.5 * 0.2 / 0.6)
    assert section["minimax"]["upper"] == pytest.approx(0.4)
    assert section["minimax"]["gaussian_lower"] == pytest.approx(0.5 / 8)
    small = error_section(**{**BASE, "amplitude": 0.01})
    assert (small["minimax"]["lower"], small["minimax"]["upper"]) == (0.005, 0.01)


def test_separate_tolerances_and_tails() -> None:
    section = error_section(**{**BASE, "tolerances": Tolerances(1.0, 2.0, 1.0, 3.0), "tail": Tail(0.2, 0.05)})
    assert section["tolerances"]["bound"] == pytest.approx(10.0)
    assert section["tail"]["bound"] == pytest.approx(0.2 + 2 * 0.15 / 0.5)


def test_negative_tolerances_are_input_errors() -> None:
    with pytest.raises(InputError, match="relation_truth"):
        Tolerances(-1.0, 0.0, 0.0, 0.0)
    with pytest.raises(InputError, match="tail"):
        Tail(float("nan"), 0.0)
