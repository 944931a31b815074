"""Margins of delivered values on hostile fields hold in rationals, and the judge would see one that did not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import solvers
from scenarios.hostile_fields import FAMILIES, field
from scenarios.protected_fields import protected_case

FINE = dict.fromkeys(("lower_ok", "upper_ok", "proved_ok", "refused_ok"), True)


@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_of_delivered_values_are_bounds_and_the_checker_agrees(family: str) -> None:
    """At the ends of the range of doubles, bounds were rounded to the nearest number on their way back from a scaled field."""
    for seed in range(3, 9):
        assert protected_case(*field(family, seed), seed) == FINE


def test_the_judge_sees_a_bound_on_the_wrong_side(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("delivered_margin", "suspect_margin"):
        honest: Any = getattr(solvers, name)

        def raised(*given: Any, honest: Any = honest, **options: Any) -> Any:
            found = honest(*given, **options)
            return replace(found, lower=found.upper * 1.01, upper=found.upper * 1.02)

        monkeypatch.setattr(solvers, name, raised)
    found = protected_case(*field("gaussian", 0), 0)
    assert not found["lower_ok"]
    assert not found["proved_ok"]
