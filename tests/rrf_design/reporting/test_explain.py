from __future__ import annotations

import pytest

from rrf_design import Problem
from rrf_design.reporting.explain import Cause, explain, wanted_margin, words


def pair(**more: object) -> Problem:
    content = {"nodes": [{"id": "a"}, {"id": "b"}], "relations": [{"id": "r", "tail": "a", "head": "b"}], "anchors": []}
    return Problem(**{**content, **more})  # type: ignore[arg-type]


def test_a_node_that_nothing_touches(problem: Problem) -> None:
    found = explain(problem)
    assert found.cause is Cause.UNTOUCHED
    assert found.margin.support == ("isolate",)
    assert "Nothing in this design touches isolate" in words(found)
    assert not found.enough


def test_a_shared_error_is_called_consistent_and_false() -> None:
    found = explain(pair())
    assert found.cause is Cause.SHARED
    assert found.blind == ("r",)
    assert "consistent, and false" in words(found)
    assert found.mend is None
    assert found.singles == ()


def test_an_error_that_cancels() -> None:
    anchors = [{"id": "sum", "nodes": ["a", "b"], "rows": [[1.0, 1.0]]}]
    found = explain(pair(relations=[], anchors=anchors))
    assert found.cause is Cause.CANCELLING
    assert found.blind == ("sum",)


def test_a_small_margin_names_what_noise_can_hide(problem: Problem) -> None:
    found = explain(problem, ["a3"])
    assert found.cause is Cause.WEAK
    assert found.sees
    assert f"{2 / found.margin.value:.4g} ε" in words(found)


def test_what_is_wanted() -> None:
    assert wanted_margin(pair(target=0.3)) == 0.3
    assert wanted_margin(pair(epsilon=0.1, delta=0.5)) == pytest.approx(0.4)
    assert wanted_margin(pair()) is None


def test_the_json_has_the_margin_and_the_reasons(problem: Problem) -> None:
    made = explain(problem).to_json()
    for key in (
        "k",
        "gamma",
        "lower",
        "upper",
        "status",
        "support",
        "witness",
        "cause",
        "words",
        "blind",
        "purchases",
        "mend",
    ):
        assert key in made
