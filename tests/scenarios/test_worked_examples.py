from __future__ import annotations

import numpy as np
import pytest

from scenarios.worked_examples import EXAMPLES, appendix, theorems
from scenarios.worked_examples.cases import Case, gamma, incidence


def test_a_case_agrees_only_with_its_number() -> None:
    assert Case("x", 0.08 + 1e-12, 0.08).agrees
    assert not Case("x", 0.0801, 0.08).agrees
    assert not Case("x", 1.0, holds=False).agrees
    assert not Case("x", 1.0).agrees


@pytest.mark.parametrize(
    "example",
    [
        appendix.noisy_stability,
        appendix.nonlinear_ambiguity,
        appendix.curvature,
        appendix.four_node_spectrum,
        appendix.laplacian_formula,
        appendix.invertible_transports,
        appendix.models_a_and_b,
    ],
)
def test_examples_come_out_as_stated(example: object) -> None:
    cases = example()  # type: ignore[operator]
    assert cases
    assert [case.what for case in cases if not case.agrees] == []


def test_the_laplacian_formula_needs_all_small_principal_parts() -> None:
    """Pairs alone would miss a support of one node that is worse: here an isolated node with a weak
    anchor.
    """
    B = np.vstack([incidence(3, [(0, 1)]), np.diag([1.0, 1.0, 0.1])])
    assert gamma(B) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "name", [name for name, function in EXAMPLES.items() if function.__module__ == theorems.__name__]
)
def test_a_theorem_holds_on_what_is_drawn(name: str) -> None:
    assert [case.what for case in EXAMPLES[name]() if not case.agrees] == []


def test_drawn_operators_have_both_outcomes() -> None:
    """Else the equivalences would be tried on one side only."""
    ranks = {bool(np.linalg.matrix_rank(B) == B.shape[1]) for B in theorems._operators(7, 120)}
    assert ranks == {True, False}
