"""Noise radii: large enough, hardly larger, and refused when they are not.

Error bounds: the paper's formulas where they are right, uncertainty where it acts, rounded to
the safe side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi

from rrf_design.checker.noise import (
    ErrorTerms,
    FieldBound,
    NoiseKind,
    Tail,
    Tolerances,
    covers,
    error_section,
    joint_confidence,
    radius,
)
from rrf_design.errors import InputError

from ..conftest import make_record

RANDOM = [NoiseKind.GAUSSIAN, NoiseKind.CHI, NoiseKind.SUBGAUSSIAN, NoiseKind.CORRELATED]


@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("rows", [1, 7, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_radii_cover_and_are_nearly_the_least(kind: NoiseKind, rows: int, confidence: float) -> None:
    epsilon = radius(kind, sigma=0.3, rows=rows, confidence=confidence)
    assert covers(kind, epsilon=epsilon, sigma=0.3, rows=rows, confidence=confidence)
    assert not covers(kind, epsilon=epsilon * (1 - 1e-9), sigma=0.3, rows=rows, confidence=confidence)


def test_the_paper_formula_and_the_exact_quantile() -> None:
    concentration = radius(NoiseKind.GAUSSIAN, sigma=2.0, rows=9, confidence=0.95)
    assert concentration == pytest.approx(2 * (3 + np.sqrt(2 * np.log(20))), rel=1e-12)
    quantile = radius(NoiseKind.CHI, sigma=2.0, rows=9, confidence=0.95)
    assert quantile == pytest.approx(2 * chi.ppf(0.95, 9), rel=1e-12)
    assert quantile < radius(NoiseKind.SUBGAUSSIAN, sigma=2.0, rows=9, confidence=0.95) < concentration


def test_simulated_gaussian_noise_stays_inside_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    norms = np.linalg.norm(rng.standard_normal((20000, 6)), axis=1)
    inside = (norms <= radius(NoiseKind.CHI, sigma=1.0, rows=6, confidence=0.9)).mean()
    assert abs(inside - 0.9) < 0.01


def test_no_rows_no_noise() -> None:
    assert radius(NoiseKind.CHI, sigma=1.0, rows=0, confidence=0.9) == 0.0


@pytest.mark.parametrize(("sigma", "confidence"), [(-1.0, 0.9), (float("nan"), 0.9), (1.0, 1.0), (1.0, 0.0)])
def test_what_is_no_noise_is_an_input_error(sigma: float, confidence: float) -> None:
    with pytest.raises(InputError, match="describe no noise"):
        radius(NoiseKind.CHI, sigma=sigma, rows=3, confidence=confidence)


def test_joint_confidence_is_a_union_bound() -> None:
    assert joint_confidence(None, None) is None
    assert joint_confidence(0.95, None) == 0.95
    joint = joint_confidence(0.95, 0.9)
    assert joint == pytest.approx(0.85)
    assert joint_confidence(0.4, 0.4) == 0.0


PLAIN = make_record(np.eye(2))
UNSURE = make_record([[1.0, -1.0], [0.0, 1.0]], radii=[0.3, 0.4])


def section(record: Any = PLAIN, **more: Any) -> dict[str, Any]:
    return error_section(record, ErrorTerms(**{"lower": 0.5, "upper": 0.6, "epsilon": 0.1, **more}))


def test_two_epsilon_over_gamma() -> None:
    found = section()
    assert found["bound"] == pytest.approx(0.4)
    assert (found["spread"], found["minimax"]) == (0.0, None)


def test_without_a_bound_on_the_field_uncertain_relations_promise_nothing() -> None:
    found = section(UNSURE)
    assert (found["spread"], found["effective_epsilon"], found["bound"]) == (None, None, None)


def test_uncertainty_multiplies_the_field() -> None:
    # node 0: 0.3², node 1: 0.3² + 0.4²
    whole = section(UNSURE, field=FieldBound(amplitude=10.0))
    assert whole["spread"] == pytest.approx(5.0)
    assert whole["bound"] == pytest.approx(2 * 5.1 / 0.5)
    each = section(UNSURE, field=FieldBound(norms={"n0": 10.0, "n1": 0.0}))
    assert each["spread"] == pytest.approx(3.0)
    both = section(UNSURE, field=FieldBound(amplitude=10.0, norms={"n0": 10.0, "n1": 0.0}))
    assert both["spread"] == each["spread"]
    assert section(UNSURE, field=FieldBound(norms={"n0": 10.0}))["spread"] is None


def test_no_margin_no_bound() -> None:
    found = section(lower=0.0, largest_error=2.0)
    assert found["bound"] is None
    assert found["minimax"]["upper"] == 2.0


def test_the_minimax_bracket() -> None:
    found = section(largest_error=10.0, sigma=0.3)
    assert found["minimax"]["lower"] == pytest.approx(0.5 * 0.2 / 0.6)
    assert found["minimax"]["upper"] == pytest.approx(0.4)
    assert found["minimax"]["gaussian_lower"] == pytest.approx(0.5 / 8)
    small = section(largest_error=0.01)
    assert (small["minimax"]["lower"], small["minimax"]["upper"]) == (0.005, 0.01)


def test_separate_tolerances_and_tails() -> None:
    found = section(tolerances=Tolerances(1.0, 2.0, 1.0, 3.0), tail=Tail(0.2, 0.05))
    assert found["tolerances"]["bound"] == pytest.approx(10.0)
    assert found["tail"]["bound"] == pytest.approx(0.2 + 2 * 0.15 / 0.5)


def test_negative_tolerances_are_input_errors() -> None:
    with pytest.raises(InputError, match="relation_truth"):
        Tolerances(-1.0, 0.0, 0.0, 0.0)
    with pytest.raises(InputError, match="tail"):
        Tail(float("nan"), 0.0)


def test_where_nothing_is_uncertain_who_touches_what_is_not_worked_out() -> None:
    """Verifying a small certificate is mostly such work: nothing is done that no claim needs."""
    from rrf_design.checker.noise import _least_spread

    record = make_record(np.eye(3))
    assert _least_spread(record, None, None) == 0
    assert "incidence" not in vars(record)
