"""The conformance suites: they pass what is ours and a part of somebody else's, and name the
promise that another breaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import solvers
from rrf_design.models import Attempt, Model, Outcome, Request, Usage
from rrf_design.planning import Order, Plan, planner
from rrf_design.planning.evaluator import Evaluator
from rrf_design.testing import check_model, check_planner, check_solver


def test_our_solver_and_planner_conform() -> None:
    check_solver(solvers.margin)
    check_planner(planner("greedy"))
    check_planner(planner("optimal"))


class Cautious:
    """Somebody else's planner: buys what another would, and claims nothing."""

    name = "cautious"

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        found = planner("greedy").plan(evaluator, goal)
        return replace(found, method=self.name)


def test_a_third_partys_planner_joins() -> None:
    check_planner(Cautious())


class Spendthrift(Cautious):
    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        return super().plan(evaluator, replace(goal, budget=goal.budget + 3.0))  # type: ignore[operator]


class Boastful(Cautious):
    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        return replace(super().plan(evaluator, goal), gamma=1.5)


class Hopeful(Cautious):
    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        found = super().plan(evaluator, goal)
        return replace(found, upper_bound=0.0)


@pytest.mark.parametrize(
    ("faulty", "words"), [(Spendthrift(), "spends"), (Boastful(), "says 1.5"), (Hopeful(), "the bound 0.0 is below")]
)
def test_a_planner_that_breaks_a_promise_is_told_which(faulty: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_planner(faulty)


def test_a_third_partys_solver_joins() -> None:
    def enumerating(B: Any, groups: Any, *, k: int) -> Any:
        return solvers.margin(B, groups, k=k, method="enumerate")

    check_solver(enumerating)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda found: {"lower": found.upper + 1.0, "value": found.upper + 1.0, "upper": found.upper + 1.0},
            "lower bound",
        ),
        (lambda found: {"lower": 0.0, "status": solvers.Status.EXACT}, "called exact"),
    ],
)
def test_a_solver_that_breaks_a_promise_is_told_which(change: Any, words: str) -> None:
    class Result:
        def __init__(self, found: Any, changed: Mapping[str, Any]) -> None:
            for name in ("lower", "upper", "value", "support", "direction", "status"):
                setattr(self, name, changed.get(name, getattr(found, name)))

    def faulty(B: Any, groups: Any, *, k: int) -> Any:
        found = solvers.margin(B, groups, k=k)
        return Result(found, change(found))

    with pytest.raises(AssertionError, match=words):
        check_solver(faulty)


def test_a_solver_must_not_touch_the_matrix() -> None:
    def careless(B: Any, groups: Any, *, k: int) -> Any:
        found = solvers.margin(np.array(B), groups, k=k)
        B[0, 0] += 1.0
        return found

    with pytest.raises(AssertionError, match="matrix was changed"):
        check_solver(careless)


class Echo(Model):
    """Somebody else's adapter: two methods, as the contract says."""

    name = "echo"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"adapter": "echo", "model": "none"}

    def attempt(self, request: Request) -> Attempt:
        return Attempt(
            Outcome.ANSWERED,
            "5",
            usage=Usage(calls=1, input_tokens=4, output_tokens=1),
            raw_request={"prompt": request.prompt},
            raw_response={"text": "5"},
        )


def test_a_third_partys_adapter_joins() -> None:
    check_model(Echo())


class Nameless(Echo):
    @property
    def identity(self) -> Mapping[str, Any]:
        return {}


class Wordy(Echo):
    def attempt(self, request: Request) -> Attempt:
        usage = Usage(calls=1, input_tokens=4, output_tokens=request.max_tokens + 1)
        return replace(super().attempt(request), usage=usage)


class Forgetful(Echo):
    def attempt(self, request: Request) -> Attempt:
        return replace(super().attempt(request), raw_request={})


class Deaf(Echo):
    def check(self, request: Request) -> None:
        pass


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        (Nameless(), "names no adapter"),
        (Wordy(), "more tokens"),
        (Forgetful(), "does not hold the prompt"),
        (Deaf(), "a grammar was ignored"),
    ],
)
def test_an_adapter_that_breaks_a_promise_is_told_which(faulty: Model, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_model(faulty)
