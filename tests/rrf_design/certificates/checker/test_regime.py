"""The trichotomy, case by case."""

from __future__ import annotations

import pytest

from rrf_design.certificates.checker.regime import CONSEQUENCE, Finding, Regime, regime_of


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (Finding(0.0, 0.0, None, None, None), Regime.INFORMATION),
        (Finding(1e-12, 1e-12, 1.0, None, None), Regime.INFORMATION),
        (Finding(1.0, 0.3, None, None, None), Regime.NOISE),
        (Finding(1.0, 1.0, 0.2, 0.1, None), Regime.NOISE),
        (Finding(1.0, 1.0, 5.0, None, 2.0), Regime.NOISE),
        (Finding(1.0, 0.9, 0.05, 0.1, 2.0), Regime.COMPUTATION),
        (Finding(1.0, 1.0, None, 0.1, None), Regime.COMPUTATION),
    ],
)
def test_regime(finding: Finding, expected: Regime) -> None:
    assert regime_of(finding) is expected


def test_every_regime_has_its_consequence() -> None:
    assert set(CONSEQUENCE) == set(Regime)
