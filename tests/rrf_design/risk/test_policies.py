"""Many policies at once: rungs, orders, strata."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import (
    UNREADABLE,
    Among,
    Gate,
    Ladder,
    Last,
    Limit,
    Scope,
    Statement,
    Stratum,
    Stream,
    assess,
    attained_size,
    bound,
    choose,
    dilute,
    draw_order,
    fit_crowd,
    front,
    fronts,
    half_depth,
    lead_family,
    passing_count,
    replay,
    staggered,
    stratified_bound,
    stratified_order,
    stratified_risk,
    trusted_risk,
)
from rrf_design.risk._statements import evidence
from rrf_design.risk._strata import binomial_is_heaviest


@dataclass(frozen=True)
class Toy:
    name: str
    cost: Any
    delivered: Any
    wrong: Any
    checked_share: Any = 0
    delivers: Any = None
    late: Any = None


def toy(name: str, cost: float, n: int = 400, wrong: int = 0, withheld: int = 0) -> Toy:
    """The first `wrong` items are wrong, the last `withheld` are not delivered."""
    marks = np.arange(n)
    return Toy(name, [cost] * n, marks < n - withheld, marks < wrong)


CAREFUL, FAIR, BOLD = toy("careful", 9.0, wrong=2), toy("fair", 5.0, wrong=8), toy("bold", 1.0, wrong=30)


def test_the_cheapest_proven_policy_is_chosen_and_of_equals_the_better() -> None:
    assert choose([CAREFUL, FAIR, BOLD], 0.05, 0.95) == "fair"
    assert choose([BOLD], 0.05, 0.95) is None
    assert choose([CAREFUL, FAIR, BOLD], 0.2, 0.95) == "bold"
    twin = toy("twin", 5.0, wrong=3)
    assert choose([FAIR, twin], 0.05, 0.95) == choose([twin, FAIR], 0.05, 0.95) == "twin"
    assert choose([FAIR, toy("copy", 5.0, wrong=8)], 0.05, 0.95) == "fair"


def test_an_order_stops_at_its_first_failure() -> None:
    assert choose([CAREFUL, FAIR, BOLD], 0.05, 0.95, order=["careful", "fair", "bold"]) == "fair"
    assert choose([CAREFUL, FAIR, BOLD], 0.05, 0.95, order=["careful", "bold", "fair"]) == "careful"
    assert choose([CAREFUL, FAIR, BOLD], 0.05, 0.95, order=["bold", "fair"]) is None
    assert choose([CAREFUL, FAIR], 0.05, 0.95, order=[]) is None


def test_only_what_is_delivered_counts() -> None:
    """Wrong items that are withheld are harmless; a denominator without them is smaller too."""
    hidden = Toy("hidden", [1.0] * 100, np.arange(100) >= 20, np.arange(100) < 20)
    found = assess([hidden], 0.05, 0.95)
    (count,) = found.policies[0].counts
    assert (count.counted, count.marked) == (80, 0)
    over_all = assess([hidden], Limit.of(0.05, among=Among.ALL), 0.95)
    assert over_all.policies[0].counts[0].counted == 100


def test_the_level_of_discrimination_is_exact() -> None:
    """59 clean labels prove 5 % at 95 %, 58 do not."""
    assert choose([toy("clean", 1.0, n=59)], 0.05, 0.95) == "clean"
    assert choose([toy("clean", 1.0, n=58)], 0.05, 0.95) is None


def test_all_wrong_and_none_delivered_prove_nothing() -> None:
    assert choose([toy("all wrong", 1.0, n=50, wrong=50)], 0.9, 0.5) is None
    assert choose([toy("silent", 1.0, n=50, withheld=50)], 0.5, 0.5) is None


def test_statements_need_a_population_and_differ() -> None:
    policy = replace(toy("p", 1.0, n=400, wrong=7), delivers=734)
    answers = {s: choose([policy], 0.05, 0.95, population=734, statement=s) for s in ("policy", "file", "rest")}
    assert answers == {"policy": "p", "file": "p", "rest": "p"}
    harder = replace(toy("p", 1.0, n=400, wrong=17), delivers=734)
    assert choose([harder], 0.05, 0.95, population=734, statement="file") == "p"
    assert choose([harder], 0.05, 0.95, population=734, statement="rest") is None
    assert assess([policy], 0.05, 0.95, population=734).scope.statement is Statement.POLICY
    assert assess([policy], 0.05, 0.95).scope.statement is Statement.FRESH


def test_a_scope_with_a_depth_goes_further_down_a_chain() -> None:
    """Three, then four wrong in 400 of 1,319: at depth 0 the second gate is closed, at depth 2 the
    third policy is reached.
    """
    family = [toy("first", 3.0, wrong=3), toy("second", 2.0, wrong=4), toy("third", 1.0, wrong=4)]
    limit = Limit.of(0.02, among=Among.ALL)
    order = ["first", "second", "third"]
    flat, deep = Scope(Statement.FILE, 400, 1319), Scope(Statement.FILE, 400, 1319, depth=2)
    assert choose(family, limit, 0.95, order=order, statement=flat) == "second"
    assert choose(family, limit, 0.95, order=order, statement=deep) == "third"
    clean = [toy("clean", 9.0), *family]
    told = assess(clean, limit, 0.95, order=["clean", *order], statement=deep)
    assert [p.proven for p in told.policies] == [False, True, True, True]


def test_random_checks_ease_the_test() -> None:
    strict = toy("strict", 1.0, n=100)
    assert choose([strict], 0.02, 0.95) is None
    assert choose([replace(strict, checked_share=0.5)], 0.02, 0.95) == "strict"
    with pytest.raises(InputError, match="random checks change"):
        choose([replace(strict, checked_share=0.5, delivers=500)], 0.02, 0.95, population=500, statement="file")


def test_several_limits_at_once() -> None:
    policy = Toy("p", [1.0] * 200, [True] * 200, [False] * 200, late=np.arange(200) < 30)
    wrong, late = Limit.of(0.05), Limit.of(0.25, column="late", among=Among.ALL)
    assert choose([policy], [wrong, late], 0.95) == "p"
    assert choose([policy], [wrong, replace(late, share=Fraction(1, 10))], 0.95) is None
    found = assess([policy], [wrong, late], 0.95)
    assert [(c.column, c.marked) for c in found.policies[0].counts] == [("wrong", 0), ("late", 30)]


def test_a_sequential_pilot_may_be_looked_at_but_needs_more_labels() -> None:
    assert choose([toy("clean", 1.0, n=59)], 0.05, 0.95, sequential=True) is None
    assert choose([toy("clean", 1.0, n=130)], 0.05, 0.95, sequential=True) == "clean"
    with pytest.raises(InputError, match="speaks of fresh items"):
        choose([CAREFUL], 0.05, 0.95, sequential=True, population=900)


def test_streams_are_an_order_too() -> None:
    streams = [Stream(Fraction(1, 2), ("bold",)), Stream(Fraction(1, 2), ("careful", "fair"))]
    assert choose([CAREFUL, FAIR, BOLD], 0.05, 0.95, order=streams) == "fair"


def test_the_record_says_what_was_tested_and_how() -> None:
    found = assess([CAREFUL, FAIR, BOLD], 0.05, 0.95, order=["careful", "bold"], ordered_by="by hand, before the pilot")
    told = {policy.name: policy for policy in found.policies}
    assert told["careful"].proven
    assert told["fair"].level == 0
    assert not told["fair"].proven
    assert told["bold"].level == Fraction(1, 20)
    assert found.ordered_by == "by hand, before the pilot"
    assert assess([FAIR], 0.05, 0.95).ordered_by == "Holm's method"


def test_the_promise_is_kept_when_all_policies_are_just_too_risky() -> None:
    """An adversary offers twenty policies with a risk just above the limit: something is proven in
    at most 5 % of pilots (4 standard errors allowed).
    """
    rng = np.random.default_rng(8)
    pilots, fooled = 400, 0
    for _ in range(pilots):
        family = [Toy(f"p{i}", [1.0] * 120, [True] * 120, rng.random(120) < 0.0501) for i in range(20)]
        fooled += choose(family, 0.05, 0.95) is not None
    assert fooled / pilots <= 0.05 + 4 * (0.05 * 0.95 / pilots) ** 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: choose([], 0.05, 0.95), "no policies"),
        (lambda: choose([FAIR, FAIR], 0.05, 0.95), "two policies are called 'fair'"),
        (lambda: choose([FAIR, toy("b", 1.0, n=3)], 0.05, 0.95), "different numbers of items"),
        (lambda: choose([Toy("", [1], [True], [False])], 0.05, 0.95), "has no name"),
        (lambda: choose([Toy("x", [1], [True], [2])], 0.05, 0.95), "wrong should hold true or false"),
        (lambda: choose([Toy("x", [1], [True], [False, True])], 0.05, 0.95), "wrong has 2 items, cost has 1"),
        (lambda: choose([Toy("x", ["a"], [True], [False])], 0.05, 0.95), "cost should be an array of numbers"),
        (lambda: choose([Toy("x", [float("nan")], [True], [False])], 0.05, 0.95), "cost should be one finite number"),
        (lambda: choose([FAIR], 1.5, 0.95), "risk is 1.5"),
        (lambda: choose([FAIR], "low", 0.95), "risk should be a number"),  # type: ignore[arg-type]
        (lambda: choose([FAIR], [], 0.95), "risk should be a number or a list of Limit"),
        (lambda: choose([FAIR], 0.05, 1), "confidence is 1"),
        (lambda: choose([FAIR], 0.05, 0.95, order=["fare"]), "there is no policy 'fare'"),
        (lambda: choose([FAIR], 0.05, 0.95, statement="file"), "give population="),
        (lambda: choose([FAIR], 0.05, 0.95, population=10), "population is 10, but 400"),
        (lambda: choose([FAIR], 0.05, 0.95, population=900, statement="mine"), "statement should be one of"),
        (
            lambda: choose([FAIR], 0.05, 0.95, statement=Scope(Statement.FRESH, 9)),
            "the scope speaks of 9 piloted items",
        ),
        (
            lambda: choose([FAIR], [Limit.of(0.1)] * 2, 0.95, statement=Scope(Statement.FILE, 400, 900, 1)),
            "a depth is for one limit",
        ),
        (lambda: choose([replace(FAIR, delivers=3)], 0.05, 0.95), "delivers is 3"),
        (
            lambda: choose([replace(toy("p", 1.0, withheld=100), delivers=950)], 0.05, 0.95, population=1000),
            "delivers 950 of 1000 items; what it withheld of the 400 piloted leaves at most 900",
        ),
        (lambda: choose([replace(FAIR, checked_share=0.99)], 0.05, 0.95), "nothing is left to test"),
        (lambda: choose([FAIR], Limit.of(0.1, column="missing"), 0.95), "missing should be an array"),
        (lambda: lead_family(3, [[0, 1]]), "should name each of the 3 nodes once"),
        (lambda: replay([], [[0, 1]], prices=[1], check=1.0), "want \\(items, nodes\\), \\(nodes,\\)"),
        (lambda: replay([], [[0, 1]], prices=[1, 1], check=1.0, gold=[1, 2]), "gold has shape"),
        (lambda: dilute(replay(lead_family(1, [[0]]), [[0]], prices=[1], check=1.0)[0], 1.0, check=1.0), "q is 1.0"),
        (lambda: stratified_bound([], 0, 0.9), "strata is empty"),
        (lambda: stratified_bound([Stratum(5, 2)], 3, 0.9), "wrong is 3"),
        (lambda: Stratum(3, 4), "a stratum's draws is 4"),
        (lambda: stratified_risk([Stratum(3, 0)], 0.1), "nothing was drawn"),
    ],
)
def test_bad_input_is_one_line(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def plain(
    ladder: Ladder, said: list[int], gold: int, prices: list[float], check: float
) -> tuple[float, bool, bool, bool]:
    """Cost, delivered, wrong, checked of one item.

    Stops where no completion of the answers could change the outcome.
    """
    cost, votes = 0.0, Counter[int]()
    for asked, node in enumerate(ladder.order[: ladder.within], start=1):
        cost += prices[node]
        if said[node] != UNREADABLE:
            votes[said[node]] += 1
        left = ladder.within - asked
        ranked = votes.most_common()
        top = ranked[0][1] if ranked else 0
        second = ranked[1][1] if len(ranked) > 1 else 0
        if ladder.gate is Gate.LEAD:
            accepted, hopeless = top - second >= ladder.number, top - second + left < ladder.number
        else:
            accepted, hopeless = top >= ladder.within - ladder.number, top + left < ladder.within - ladder.number
        if accepted:
            return cost, True, ranked[0][0] != gold, False
        if hopeless:
            break
    if ladder.last is Last.GOLD:
        return cost + check, True, False, True
    return cost, False, False, False


@pytest.mark.parametrize("last", list(Last))
@pytest.mark.parametrize("values", [2, 4])
def test_every_ladder_agrees_with_its_twin(last: Last, values: int) -> None:
    rng = np.random.default_rng(values)
    answers = rng.integers(-1, values, size=(40, 6))
    gold = rng.integers(-2, values, size=40)
    prices = [1.0, 1.0, 2.0, 2.0, 8.0, 8.0]
    ladders = lead_family(6, [range(6), range(5, -1, -1), [2, 0, 4, 1, 3, 5]], last=last)
    assert len({ladder.name for ladder in ladders}) == len(ladders)
    for ladder, found in zip(ladders, replay(ladders, answers, prices=prices, check=30.0, gold=gold), strict=True):
        expected = [plain(ladder, row.tolist(), int(g), prices, 30.0) for row, g in zip(answers, gold, strict=True)]
        told = list(
            zip(
                found.cost.tolist(),
                found.delivered.tolist(),
                found.wrong.tolist(),
                found.checked.tolist(),
                strict=True,
            )
        )
        assert told == expected


def test_nothing_is_accepted_that_nobody_said() -> None:
    silent = np.full((3, 4), UNREADABLE)
    for found in replay(lead_family(4, [range(4)]), silent, prices=np.ones(4), check=5.0, gold=np.zeros(3, dtype=int)):
        assert found.checked.all()
        assert not found.wrong.any()


def test_giving_up_early_saves_calls_and_changes_no_outcome() -> None:
    """A lead of four within four is lost with the first disagreement: two calls are paid, not
    four.
    """
    (found,) = replay([Ladder((0, 1, 2, 3), Gate.LEAD, 4, 4)], [[0, 1, 0, 0]], prices=np.ones(4), check=10.0)
    assert found.cost.tolist() == [12.0]


@pytest.mark.parametrize("seed", range(3))
def test_rungs_one_after_the_other_are_the_plain_rule(seed: int) -> None:
    """Ask T answers, count the largest camp, accept or go on: slowly, and without stopping
    early.
    """
    draw = np.random.default_rng(seed)
    codes = draw.integers(-1, 3, size=(300, 7))
    rungs = ((2, 0), (4, 1), (7, 2))
    ladder = Ladder((0, 1, 2, 3, 4, 5, 6), Gate.EXPLAINED, 2, 7, earlier=rungs[:2])
    (found,) = replay([ladder], codes, prices=np.ones(7), check=100.0, gold=np.zeros(300, dtype=int))
    for row, value, checked, cost in zip(codes, found.value, found.checked, found.cost, strict=True):
        told, needed = UNREADABLE, 7
        for answers, k in rungs:
            held = [int(code) for code in row[:answers] if code != UNREADABLE]
            top = max((held.count(code) for code in held), default=0)
            if top >= answers - k:
                told, needed = max(held, key=held.count), answers
                break
        assert (int(value), bool(checked)) == (told, told == UNREADABLE)
        assert cost - (100.0 if checked else 0.0) <= needed
    assert len(set(found.value.tolist())) == 4


def test_silence_has_its_price() -> None:
    ladder = Ladder((0, 1), Gate.LEAD, 2, 2, Last.ABSTAIN)
    (found,) = replay([ladder], [[0, 0], [0, 1]], prices=[1, 1], check=10.0, withheld=4.0)
    assert found.cost.tolist() == [2.0, 6.0]
    assert found.delivered.tolist() == [True, False]


def test_without_gold_nothing_is_wrong_and_arrays_are_frozen() -> None:
    (found,) = replay([Ladder((0, 1), Gate.LEAD, 1, 1)], [[0, 1]], prices=[1, 1], check=10.0)
    assert not found.wrong.any()
    with pytest.raises(ValueError, match="read-only"):
        found.cost[0] = 0.0


def test_dilution_adds_the_expected_price_of_random_checks() -> None:
    ladder = Ladder((0, 1), Gate.LEAD, 2, 2)
    (found,) = replay([ladder], [[0, 0], [0, 1]], prices=[1, 1], check=10.0, gold=[1, 1])
    half = dilute(found, 0.5, check=10.0)
    assert half.cost.tolist() == [7.0, 12.0]
    assert float(half.checked_share) == 0.5
    assert half.name != found.name


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
def test_bad_input_is_one_line_of_orders(chains: list[list[str]], limit: Limit, words: str) -> None:
    with pytest.raises(InputError, match=words):
        staggered(chains, limit, SCOPE, confidence=0.95)


LEVEL = Fraction(1, 10)


def counts(stratum: Stratum, wrong: int) -> list[Fraction]:
    """The chance of each number of wrong items in the draw of one stratum."""
    population, drawn = stratum.population, stratum.drawn
    whole = math.comb(population, drawn)
    return [Fraction(math.comb(wrong, x) * math.comb(population - wrong, drawn - x), whole) for x in range(drawn + 1)]


def _together(rooms: list[Stratum], hidden: tuple[int, ...]) -> list[Fraction]:
    """The chance of each number of wrong items in the draw of all strata."""
    chances = [Fraction(1)]
    for room, wrong in zip(rooms, hidden, strict=True):
        here = counts(room, wrong)
        chances = [
            sum((chances[i] * here[x - i] for i in range(len(chances)) if 0 <= x - i < len(here)), Fraction(0))
            for x in range(len(chances) + len(here) - 1)
        ]
    return chances


@pytest.mark.parametrize("strata", [[(12, 6), (8, 4)], [(12, 8), (8, 3)], [(5, 5), (10, 3), (6, 3)], [(15, 7)]])
def test_no_way_to_hide_wrong_items_misleads_too_often(strata: list[tuple[int, int]]) -> None:
    rooms = [Stratum(*sizes) for sizes in strata]
    drawn = sum(room.drawn for room in rooms)
    bounds = [stratified_bound(rooms, x, 0.9) for x in range(drawn + 1)]
    assert min(bounds) < sum(room.population for room in rooms)
    for hidden in itertools.product(*(range(room.population + 1) for room in rooms)):
        missed = sum(chance for x, chance in enumerate(_together(rooms, hidden)) if bounds[x] < sum(hidden))
        assert missed <= LEVEL


@pytest.mark.parametrize("strata", [[(4, 2), (4, 2)], [(6, 4), (6, 5)], [(3, 1), (5, 3)]])
def test_where_the_binomial_is_called_heaviest_no_way_to_hide_is_heavier(strata: list[tuple[int, int]]) -> None:
    """Every risk, every level at which a count passes: what the test of fresh items lets through,
    under every forbidden way to be wrong, against that level.
    """
    rooms = [Stratum(*sizes) for sizes in strata]
    population, drawn = sum(room.population for room in rooms), sum(room.drawn for room in rooms)
    allowed = excluded = 0
    for first in range(1, population):
        risk = Fraction(first, population) - Fraction(1, 1000)
        tested = stratified_risk(rooms, risk)
        levels = [_binomial(drawn, tested, x) for x in range(drawn)]
        for x, level in enumerate(levels):
            if level > Fraction(1, 2):
                continue
            worst = max(
                sum(_together(rooms, hidden)[: x + 1], Fraction(0))
                for hidden in itertools.product(*(range(room.population + 1) for room in rooms))
                if sum(hidden) >= first
            )
            if binomial_is_heaviest(drawn, tested, level):
                allowed += 1
                assert worst <= level
            else:
                excluded += worst > level
    assert allowed > 0
    assert excluded > 0


def _binomial(drawn: int, rate: Fraction, seen: int) -> Fraction:
    return sum((math.comb(drawn, j) * rate**j * (1 - rate) ** (drawn - j) for j in range(seen + 1)), Fraction(0))


@pytest.mark.parametrize("drawn", [59, 200, 1000])
def test_at_risks_and_levels_that_are_promised_the_binomial_is_heaviest(drawn: int) -> None:
    for risk, level in itertools.product(("0.001", "0.01", "0.1", "0.3", "0.9"), ("0.01", "0.05", "0.25")):
        assert binomial_is_heaviest(drawn, Fraction(risk), Fraction(level))


def test_one_stratum_is_a_simple_draw_with_a_slightly_larger_bound() -> None:
    exact, ours = bound(2000, 200, 3, 0.95), stratified_bound([Stratum(2000, 200)], 3, 0.95)
    assert exact <= ours <= 1.15 * exact


def test_proportional_draws_leave_the_risk_as_it_is() -> None:
    assert stratified_risk([Stratum(100, 10), Stratum(300, 30)], 0.05) == Fraction(1, 20)
    assert stratified_risk([Stratum(100, 20), Stratum(300, 20)], 0.05) == Fraction(1, 30)


def test_every_beginning_of_the_order_is_nearly_proportional() -> None:
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    order = stratified_order(labels, 4, digest="d")
    assert sorted(order) == list(range(100))
    for stop in range(1, 101):
        drawn = [labels[place] for place in order[:stop]]
        for label, part in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
            assert abs(drawn.count(label) - part * stop) <= 1.5
    assert stratified_order(labels, 5, digest="d") != order


def test_members_of_a_stratum_are_drawn_equally_often() -> None:
    labels = ["a"] * 4 + ["b"] * 6
    firsts = np.bincount([next(p for p in stratified_order(labels, s, digest="d") if p >= 4) for s in range(3000)])
    assert ((firsts[4:] - 500) ** 2 / 500).sum() < 25.7  # the 99.99 % point of chi-square with 5 degrees of freedom


def test_draws_are_fair_permutations_by_seed_and_digest() -> None:
    whole = draw_order(100, 1, digest="sha256:0123")
    assert sorted(whole) == list(range(100))
    assert draw_order(100, 1, digest="sha256:0123", count=7) == whole[:7]
    assert draw_order(100, 2, digest="sha256:0123") != whole
    assert draw_order(100, 1, digest="other") != whole
    # Each of ten items is drawn first about equally often over seeds (chi-square below its 99.99
    # % point, 33.7).
    firsts = np.bincount([draw_order(10, seed, digest="sha256:0123", count=1)[0] for seed in range(4000)], minlength=10)
    assert ((firsts - 400) ** 2 / 400).sum() < 33.7
