"""Plans keep every rule of a market, and are what they are called."""

from __future__ import annotations

import pytest

from scenarios.bundled_plans import DrawnMarket, bundle_case


@pytest.mark.parametrize("seed", range(16))
def test_plans_are_held_against_every_choice(seed: int) -> None:
    found = bundle_case(seed)
    assert (found["over"], found["illegal"], found["worse"]) == (0, 0, 0)


def test_the_market_knows_its_rules() -> None:
    seen = set()
    for seed in range(200):
        market = DrawnMarket(seed)
        for first, second in market.requires:
            assert not market.legal(tuple({first, *market.touched[first]} & set(market.cost) - {second}))
            seen.add("requires")
        for pair in market.excludes:
            assert not market.legal(pair)
            seen.add("excludes")
        if market.tier and market.steps[0] != market.steps[1]:
            assert market.price(tuple(market.tier[:2])) == sum(market.steps)
            seen.add("tier")
    assert seen == {"requires", "excludes", "tier"}
