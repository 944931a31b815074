"""The simulations find what they look for: none where the promise holds, plenty where a bound is made too small."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.promises import coverage


@pytest.mark.parametrize("name", list(coverage.SIMULATIONS))
def test_promises_are_false_rarely_enough(name: str) -> None:
    found = coverage.simulate(name, times=60, seed=1)
    assert found["false"] <= 10


def test_a_bound_without_margin_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive estimate instead of the bound is below the truth about half of the time."""
    monkeypatch.setattr(coverage, "bound", lambda population, drawn, wrong, confidence: population * wrong // drawn)
    rng = np.random.default_rng(0)
    assert coverage.false_bounds(rng, 400, population=2000, wrong=100, drawn=200) > 100


def test_a_choice_without_correction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Testing each of forty policies at the full level proves something false too often."""
    from rrf_design.risk import choose

    def each(family: list[coverage._Drawn], risk: float, confidence: float) -> str | None:
        return next((p.name for p in family if choose([p], risk, confidence)), None)

    monkeypatch.setattr(coverage, "choose", each)
    assert coverage.false_choices(np.random.default_rng(0), 150, policies=40, labels=100, risk=0.05) > 25
