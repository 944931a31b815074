"""No plan costs more than its budget, and the judge would see one that did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rrf_design as rrf
from scenarios.decimal_budgets import budget_case


@pytest.mark.parametrize("seed", range(9))
def test_plans_are_held_against_every_choice(seed: int) -> None:
    assert budget_case(seed) == {"over": False, "worse": False, "optimal": True}


def test_the_judge_sees_a_plan_that_is_over_and_one_that_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = rrf.plan

    def everything(problem: Any, **options: Any) -> Any:
        return replace(honest(problem, **options), selected=tuple(problem.on_sale))

    monkeypatch.setattr(rrf, "plan", everything)
    assert budget_case(0)["over"]

    def nothing(problem: Any, **options: Any) -> Any:
        return replace(honest(problem, **options), selected=(), gamma=0.0)

    monkeypatch.setattr(rrf, "plan", nothing)
    assert budget_case(0)["worse"]
