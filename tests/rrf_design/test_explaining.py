from __future__ import annotations

import pytest

from rrf_design import Problem
from rrf_design.explaining import Cause, explain, words


def pair(**more: object) -> Problem:
    content = {"nodes": [{"id": "a"}, {"id": "b"}], "relations": [{"id": "r", "tail": "a", "head": "b"}], "anchors": []}
    return Problem(**{**content, **more})


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
    assert explain(pair(target=0.3)).wanted == 0.3
    assert explain(pair(epsilon=0.1, delta=0.5)).wanted == pytest.approx(0.4)
    assert explain(pair(target=0.1, epsilon=0.1, delta=0.5)).wanted == pytest.approx(0.4)
    assert explain(pair()).wanted is None


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


def test_what_is_assumed_decides() -> None:
    nodes = [{"id": f"forward@{m}" if o == 1 else f"backward@{m}", "unit": m, "model": m} for m in "ab" for o in (1, 2)]
    relations = [{"id": f"own {m}", "tail": f"forward@{m}", "head": f"backward@{m}"} for m in "ab"]
    relations.append({"id": "ab", "tail": "forward@a", "head": "forward@b"})
    found = explain(Problem(nodes=nodes, relations=relations))
    assert found.assumptions == {
        "each answer fails on its own": pytest.approx(0.618, abs=1e-3),
        "a model fails as a whole": 0.0,
        "a wording fails in all its asks": 0.0,
    }
    assert "no method can guarantee to find 1 wrong model" in words(found)
    assert "0.618 if each answer fails on its own; 0 if a model fails as a whole" in words(found)
    assert found.to_json()["units"] == ["a", "b"]


def test_what_is_delivered_and_suspected_is_told_as_well() -> None:
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        anchors=[{"id": f"x{i}", "node": "a"} for i in range(3)],
        deliver=["a"],
        wrong_checks=1,
    )
    found = explain(problem)
    assert found.margin.value == pytest.approx(1.0)
    assert found.assumptions["every value must be right"] == 0.0
    assert found.assumptions["no check is wrong"] == pytest.approx(3**0.5)
    plain = explain(problem.model_copy(update={"deliver": None, "wrong_checks": 0}))
    assert plain.assumptions == {}
