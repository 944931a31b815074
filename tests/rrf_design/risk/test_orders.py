"""Fronts, and chains that use what whole counts leave over."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import (
    Among,
    Last,
    Limit,
    Scope,
    Statement,
    assess,
    attained_size,
    fit_crowd,
    front,
    fronts,
    half_depth,
    lead_family,
    passing_count,
    replay,
    staggered,
    trusted_risk,
)
from rrf_design.risk.statements import evidence

LIMIT = Limit.of(0.05, among=Among.ALL)
SCOPE = Scope(Statement.FRESH, 200)


def test_the_front_is_what_nothing_else_beats() -> None:
    rng = np.random.default_rng(0)
    risks, costs = rng.random(60).round(1), rng.random(60).round(1)
    places = front(risks, costs)
    for place in range(60):
        better = (
            (risks <= risks[place]) & (costs <= costs[place]) & ((risks < risks[place]) | (costs < costs[place]))
        ).any()
        if place in places:
            assert not better
        else:
            assert better or any(risks[place] == risks[p] and costs[place] == costs[p] for p in places)
    assert [risks[p] for p in places] == sorted(risks[p] for p in places)
    assert [costs[p] for p in places] == sorted((costs[p] for p in places), reverse=True)


def test_trusted_risk_is_the_mean_doubt_in_what_is_accepted() -> None:
    answers = np.array([[0, 0], [0, 1]])
    (both,) = replay(lead_family(2, [[0, 1]])[2:3], answers, prices=[1, 1], check=9.0)
    assert both.name.startswith("lead 2")
    trust = [[0.9, 0.9], [0.5, 0.2]]
    assert trusted_risk(trust, answers, [both]).tolist() == pytest.approx([0.05])
    (shy,) = replay(lead_family(2, [[0, 1]], last=Last.ABSTAIN)[2:3], answers, prices=[1, 1], check=9.0)
    assert trusted_risk(trust, answers, [shy], among=Among.DELIVERED).tolist() == pytest.approx([0.1])


@pytest.mark.parametrize("scope", [SCOPE, Scope(Statement.POLICY, 200, 1319), Scope(Statement.REST, 200, 1319)])
def test_passing_count_is_the_last_that_passes(scope: Scope) -> None:
    for level in (Fraction(1, 20), Fraction(1, 400), Fraction(1, 10**9)):
        count = passing_count(LIMIT, scope, level)
        passes = [x for x in range(201) if evidence(LIMIT, scope, 200, x).gate.at_most(level)]
        assert count == max(passes, default=-1)


def test_attained_size_is_enough_and_no_more() -> None:
    size = attained_size(LIMIT, SCOPE, Fraction(1, 20))
    assert passing_count(LIMIT, SCOPE, size) == passing_count(LIMIT, SCOPE, Fraction(1, 20))
    assert size <= Fraction(1, 20)
    assert attained_size(LIMIT, Scope(Statement.FRESH, 10), Fraction(1, 20)) == 0


def test_staggered_chains_are_never_worse_than_the_first_alone() -> None:
    """On random panels: whatever the first chain proves by itself is proven beside the others too,
    and sometimes more.
    """
    rng = np.random.default_rng(4)
    more = 0
    for _ in range(25):
        gold = rng.integers(0, 4, size=400)
        right = rng.random((400, 5)) < rng.uniform(0.6, 0.97, size=5)
        answers = np.where(right, gold[:, None], (gold[:, None] + rng.integers(1, 4, size=(400, 5))) % 4)
        ladders = lead_family(5, [range(5), range(4, -1, -1)])
        prices = np.array([1, 1, 2, 4, 8])
        other = replay(ladders, answers[200:], prices=prices, check=30.0)
        chains = [
            [other[place].name for place in chain]
            for chain in fronts(fit_crowd(answers[200:]), answers[200:], other, prices=prices)
        ]
        pilot = replay(ladders, answers[:200], prices=prices, check=30.0, gold=gold[:200])
        streams = staggered(chains, LIMIT, SCOPE, confidence=0.95)
        assert sum(stream.share for stream in streams) <= 1
        alone, beside = (
            {p.name for p in assess(pilot, LIMIT, 0.95, order=order).policies if p.proven}
            for order in (chains[0], streams)
        )
        assert beside >= alone
        more += beside > alone
    assert more > 0


def test_half_a_depth_is_half_of_what_one_claim_allows() -> None:
    scope = Scope(Statement.FILE, 400, 1319)
    limit = Limit.of(0.02, among=Among.ALL)
    allowed = [x for x in range(401) if evidence(limit, scope, 400, x).claim.at_most(Fraction(1, 20))]
    found = half_depth(limit, scope, confidence=0.95)
    assert found.depth == max(allowed) // 2 > 0
    assert passing_count(limit, found, Fraction(1, 20)) > passing_count(limit, scope, Fraction(1, 20))


def test_too_small_a_pilot_leaves_one_chain() -> None:
    (only,) = staggered([["a"], ["b"]], LIMIT, Scope(Statement.FRESH, 10), confidence=0.95)
    assert only.names == ("a",)


@pytest.mark.parametrize(
    ("chains", "limit", "words"),
    [([["a"]], Limit.of(0.05), "a denominator known before looking"), ([], LIMIT, "no chain of names")],
)
def test_bad_input_is_one_line(chains: list[list[str]], limit: Limit, words: str) -> None:
    with pytest.raises(InputError, match=words):
        staggered(chains, limit, SCOPE, confidence=0.95)
