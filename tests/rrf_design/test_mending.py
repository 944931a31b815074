from __future__ import annotations

import pytest

from rrf_design import Problem, mending
from rrf_design.explaining import explain


def pair(**more: object) -> Problem:
    content = {"nodes": [{"id": "a"}, {"id": "b"}], "relations": [{"id": "r", "tail": "a", "head": "b"}], "anchors": []}
    return Problem(**{**content, **more})  # type: ignore[arg-type]


def test_every_purchase_named_has_the_margin_it_claims(problem: Problem) -> None:
    found = explain(problem)
    assert found.singles
    for offer in found.singles:
        assert problem.margin(offer.ids).value == pytest.approx(offer.gamma)
        assert offer.cost == float(problem.design(offer.ids).price)


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
    names, price = problem.structure.market.offer("r3u", set())
    assert (names, price) == (("unasked", "r3u"), 1)


def test_a_tier_is_priced_as_the_market_prices_it() -> None:
    tiers = [{"id": "t", "blocks": ["one", "two"], "prices": [5.0, 2.0]}]
    anchors = [{"id": name, "node": node, "cost": 9.0} for name, node in (("one", "a"), ("two", "b"))]
    found = explain(pair(anchors=anchors, tiers=tiers, target=0.9))
    assert [offer.cost for offer in found.singles] == [5.0, 5.0]
    assert found.mend is not None
    assert (found.mend.ids, found.mend.cost) == (("one", "two"), 7.0)


def test_the_cheapest_is_proven_where_the_planner_is_asked(problem: Problem) -> None:
    found = explain(problem)
    assert found.proven
    assert found.mend is not None


def test_without_the_planner_nothing_is_claimed(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mending, "PLANNED", 0)
    found = explain(problem)
    assert not found.proven
    assert found.mend is not None
    assert problem.margin(found.mend.ids).lower >= 0.4


def test_what_is_selected_already_is_not_bought_again() -> None:
    anchors = [{"id": "one", "node": "a", "cost": 1.0}, {"id": "two", "node": "b", "cost": 1.0}]
    tier = [{"id": "t", "blocks": ["one", "two"], "prices": [1.0]}]
    found = explain(pair(anchors=anchors, tiers=tier, target=0.9), ["one"])
    assert found.mend is not None
    assert found.mend.ids == ("two",)
    assert found.mend.cost == 1.0


def test_that_nothing_helps_is_proven_too() -> None:
    found = explain(pair(anchors=[{"id": "x", "node": "a", "cost": 1.0}], target=5.0))
    assert found.mend is None
    assert found.proven
