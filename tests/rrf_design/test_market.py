"""Prices and rules: exact bills, bundles, and contradictions said in one line."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from small import all_designs, random_problem

import rrf_design as rrf
from rrf_design.errors import BudgetError, InputError
from rrf_design.market import Market, exact
from rrf_design.planning import plan


def anchors(*entries, **settings):
    return rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y", "cost": 0.25}],
        anchors=[{"node": "x", "cost": 1.0, **entry} for entry in entries],
        **settings,
    )


def test_rules_that_contradict_themselves():
    with pytest.raises(InputError, match="rule 'r': at_least = 2 is more than at_most = 1"):
        plan(
            anchors({"id": "a"}, {"id": "b"}, rules=[{"id": "r", "blocks": ["a", "b"], "at_least": 2, "at_most": 1}]),
            budget=1.0,
        )
    with pytest.raises(InputError, match="rule 'r': at_least = 3, but it names only 2 blocks"):
        plan(anchors({"id": "a"}, {"id": "b"}, rules=[{"id": "r", "blocks": ["a", "b"], "at_least": 3}]), budget=1.0)


def test_rules_that_contradict_each_other():
    problem = anchors(
        {"id": "a", "excludes": ["b"]}, {"id": "b"}, rules=[{"id": "both", "blocks": ["a", "b"], "at_least": 2}]
    )
    with pytest.raises(InputError, match=r"no design satisfies them all \(rule 'both'"):
        plan(problem, budget=5.0)


def test_a_block_in_two_tiers():
    tiers = [{"id": "t", "blocks": ["a"], "prices": [1.0]}, {"id": "u", "blocks": ["a"], "prices": [2.0]}]
    with pytest.raises(InputError, match="tier 'u': 'a' is priced by tier 't' already"):
        Market(anchors({"id": "a"}, tiers=tiers))


def test_demanded_purchases_that_the_budget_does_not_cover():
    problem = anchors({"id": "a"}, {"id": "b", "cost": 3.0}, rules=[{"id": "r", "blocks": ["b"], "at_least": 1}])
    with pytest.raises(BudgetError, match="the least that must be bought costs 3") as caught:
        plan(problem, budget=2.0)
    assert (caught.value.needed, caught.value.available) == (3.0, 2.0)


def test_prices_are_decimals():
    problem = anchors(*({"id": f"a{i}", "cost": 0.1} for i in range(3)))
    assert len(plan(problem, budget=0.3).selected) == 3
    assert 0.1 + 0.1 + 0.1 > 0.3


def test_queries_are_paid_once_and_come_with_their_blocks():
    problem = anchors({"id": "a"}, {"id": "b", "node": "y"}, {"id": "c", "node": "y"})
    market = Market(problem)
    assert market.cost(market.mask(("b", "c"))) == Fraction("2.25")
    assert market.names(market.mask(("b",))) == ("y", "b")
    assert market.names(market.drop(market.mask(("a", "b")), market.index["b"])) == ("a",)


def test_requirements_come_along_and_exclusions_hold():
    problem = anchors(
        {"id": "a", "requires": ["b"]}, {"id": "b", "requires": ["c"]}, {"id": "c", "excludes": ["d"]}, {"id": "d"}
    )
    market = Market(problem)
    assert market.names(market.mask(("a",))) == ("a", "b", "c")
    assert not market.extendable(market.mask(("a", "d")))
    assert market.names(market.drop(market.mask(("a",)), market.index["c"])) == ()


def test_what_excludes_an_owned_block_can_not_be_bought():
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[{"id": "own", "node": "x"}, {"id": "a", "node": "x", "cost": 1.0, "excludes": ["own"]}],
    )
    found = plan(problem, budget=1.0)
    assert found.selected == ()
    assert "can't be bought beside what they exclude: a" in found.notes


@pytest.mark.parametrize("seed", range(4))
def test_bills_agree_with_the_definition(seed):
    problem = random_problem(seed, features=("nodes", "tiers", "rules", "links"), blocks=6)
    market = Market(problem)
    listed = {names: cost for cost, _, names in all_designs(problem, value=lambda names: 0.0)}
    for names, cost in listed.items():
        assert market.cost(market.mask(names)) == cost
        assert market.broken(market.mask(names)) == ""


@pytest.mark.parametrize("features", [(), ("tiers",), ("nodes", "tiers", "links")], ids="-".join)
def test_what_some_items_add_is_the_difference_of_two_bills(features):
    market = Market(random_problem(17, features=features, blocks=8))
    rng = np.random.default_rng(0)
    for _ in range(30):
        held = market.close(rng.random(len(market.items)) < 0.3)
        more = market.close(rng.random(len(market.items)) < 0.3)
        added = market.extra(market.names(more), set(market.names(held)))
        assert added == market.cost(held | more) - market.cost(held)


def test_money_is_the_number_that_was_written():
    binary = Fraction(0.1)
    assert exact(binary) == binary  # a fraction stays what it is
    assert exact(0.1) == exact("0.1") == Fraction(1, 10)  # also after an equal number of another type
    assert exact(3) == 3
