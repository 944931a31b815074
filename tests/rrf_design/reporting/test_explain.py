from __future__ import annotations

import pytest

from rrf_design import Problem
from rrf_design.reporting.explain import Cause, explain, price, wanted_margin, with_needs, words


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


def test_every_purchase_named_has_the_margin_it_claims(problem: Problem) -> None:
    found = explain(problem)
    assert found.singles
    for offer in found.singles:
        assert problem.margin(offer.ids).value == pytest.approx(offer.gamma)
        assert offer.cost == price(problem, offer.ids)


def test_the_mend_reaches_what_is_wanted_and_needs_all_of_it(problem: Problem) -> None:
    found = explain(problem)
    assert found.wanted == 0.4
    assert found.mend is not None
    assert problem.margin(found.mend.ids).lower >= 0.4
    for left_out in found.mend.ids:
        fewer = [name for name in found.mend.ids if name != left_out]
        assert problem.margin(fewer).lower < 0.4


def test_a_cheap_single_purchase_wins_over_a_dear_one() -> None:
    anchors = [{"id": "dear", "node": "a", "cost": 4.0}, {"id": "cheap", "node": "a", "sigma": 2.0, "cost": 1.0}]
    found = explain(pair(anchors=anchors))
    assert found.mend is not None
    assert found.mend.ids == ("cheap",)


def test_needs_are_bought_along(problem: Problem) -> None:
    assert with_needs(problem, "r3u", set()) == ("unasked", "r3u")
    assert price(problem, ("unasked", "r3u")) == 1.0


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
