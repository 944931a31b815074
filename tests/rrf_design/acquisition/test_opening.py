"""How an empty field begins, and the problem that is left after purchases and failures."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from fields import pairs, priced, ring

import rrf_design as rrf
from rrf_design.acquisition import opening
from rrf_design.acquisition.opening import (
    cost_of_goal,
    deciding_check,
    first_bundle,
    next_bundle,
    reached,
    reaching_bundle,
    what_is_left,
)
from rrf_design.acquisition.shop import Shop


def test_the_first_questions_reach_the_goal_at_least_cost() -> None:
    problem = priced(target=0.3)
    bundle = first_bundle(Shop(problem), (), (), most=None)
    assert bundle is not None
    assert problem.margin(bundle.names).lower >= 0.3
    assert bundle.price == Shop(problem).price(bundle.names)


def test_without_enough_money_for_the_goal_any_margin_will_do() -> None:
    problem = priced(target=1.2)
    bundle = first_bundle(Shop(problem), (), (), most=Fraction(3))
    assert bundle is not None
    assert bundle.price <= 3
    assert first_bundle(Shop(problem), (), (), most=Fraction(1, 2)) is None


def test_what_failed_is_not_asked_again() -> None:
    design = Shop(priced(target=0.3))
    bundle = first_bundle(design, ("n0", "n1"), ("n0", "n1"), most=None)
    assert bundle is not None
    assert not {"n0", "n1"} & set(bundle.names)
    assert first_bundle(design, (), [f"n{i}" for i in range(5)], most=None) is None


@pytest.mark.parametrize("problem", [ring(), priced(), priced(free=2)])
def test_the_problem_that_is_left_has_the_same_margins(problem: rrf.Problem) -> None:
    """What is held is owned, what failed is gone: any further purchase gives the margin that the design has."""
    held, failed = {"n0", "n1", "n2", "n3", "a3"}, {"a3"}
    left = what_is_left(problem, held, failed)
    assert left is not None
    for more in ((), ("a0",), ("a0", "a2")):
        design = Shop(problem).margin({*held, *more}, failed)
        assert left.margin(more).value == pytest.approx(design.value, abs=1e-9)
        assert set(left.resolve(more)) == set(more)


def test_tiers_and_rules_go_on_where_they_are() -> None:
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}],
        anchors=[{"id": f"A{i}", "node": "a", "value": 1.0, "cost": 9.0} for i in range(3)],
        tiers=[{"id": "t", "blocks": ["A0", "A1", "A2"], "prices": [5.0, 2.0]}],
        rules=[{"id": "r", "blocks": ["A0", "A1", "A2"], "at_least": 1, "at_most": 2}],
    )
    left = what_is_left(problem, {"A0"}, ())
    assert left is not None
    assert (left.tiers[0].prices, left.tiers[0].blocks) == ((2.0,), ("A1", "A2"))
    assert (left.rules[0].at_least, left.rules[0].at_most) == (0, 1)
    assert what_is_left(problem, (), {"a", "b"}) is None


def test_the_cost_of_a_goal_is_that_of_the_purchases_that_reach_it() -> None:
    design = Shop(pairs(3, target=0.3))
    assert cost_of_goal(design, (), ()) == 3
    assert cost_of_goal(design, ("a0", "a1"), ()) == 1
    assert cost_of_goal(design, ("a0", "a1", "a2"), ()) == 0
    assert cost_of_goal(design, ("a0",), ("a0",)) is None


def test_a_field_without_any_readable_answer_is_decided_by_a_check_of_what_it_delivers() -> None:
    design = Shop(ring(deliver=["n3"]))
    every = [f"n{i}" for i in range(5)]
    assert deciding_check(design, every, every, most=None) == ("a3",)
    assert deciding_check(design, every, every, most=Fraction(1)) == ()
    assert deciding_check(design, [*every, "a3"], every, most=None) == ()
    assert deciding_check(Shop(ring()), every, every, most=None) == ()  # one check does not decide five values


def test_where_no_single_purchase_helps_the_cheapest_few_that_do_are_bought_together() -> None:
    """All that was asked is unread; a further question says something only beside a check of one of those."""
    problem = rrf.Problem(
        k=1,
        target=0.3,
        nodes=[{"id": "lost"}, {"id": "more", "cost": 1.0}],
        relations=[{"id": "same", "tail": "lost", "head": "more"}],
        anchors=[{"id": "clerk", "node": "lost", "value": 7.0, "cost": 2.0}],
    )
    design = Shop(problem)
    bundle = next_bundle(design, ("lost",), ("lost",), most=None)
    assert bundle is not None
    assert (set(bundle.names), bundle.price) == ({"more", "clerk"}, 3)
    assert reached(design, ("lost", *bundle.names), ("lost",))


def unread_market(seed: int) -> tuple[Shop, list[str], list[str]]:
    """Five wordings, some of which are there and some of those unread; the rest, relations and checks at drawn prices."""
    rng = np.random.default_rng(seed)
    given = int(rng.integers(2, 5))
    price = [float(p) for p in rng.integers(1, 7, size=16)]
    nodes = [{"id": f"n{i}", **({} if i < given else {"cost": price[i]})} for i in range(5)]
    pairs_of = list(combinations(range(5), 2))
    chosen = [pairs_of[i] for i in rng.choice(len(pairs_of), size=5, replace=False)]
    relations = [{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}"} for i, j in chosen]
    anchors = [{"id": f"a{i}", "node": f"n{i}", "cost": price[5 + i]} for i in range(5)]
    problem = rrf.Problem(
        k=1, target=float(rng.choice([0.2, 0.4, 0.6])), nodes=nodes, relations=relations, anchors=anchors
    )
    there = [f"n{i}" for i in range(given)]
    return Shop(problem), there, there[: int(rng.integers(1, given))]


@pytest.mark.parametrize("seed", range(20))
def test_the_way_to_the_goal_is_the_cheapest_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against every set of things on sale, with the margins of a repair whose answers could not all be read."""
    monkeypatch.setattr(opening, "LOOKED_AT", 10_000)
    design, held, failed = unread_market(seed)
    wares = [name for b in design.candidates(held, failed, most=None) for name in b.names]
    wares = list(dict.fromkeys(wares))
    ways = [
        design.price(names, held)
        for size in range(len(wares) + 1)
        for names in combinations(wares, size)
        if reached(design, {*held, *names}, failed)
    ]
    found = reaching_bundle(design, held, failed, most=None)
    if reached(design, held, failed):
        assert not min(ways)
    elif found is None:
        assert not ways
    else:
        assert found.price == design.price(found.names, held) == min(ways)
        assert reached(design, {*held, *found.names}, failed)
        assert next_bundle(design, held, failed, most=None) == found
        assert reaching_bundle(design, held, failed, most=found.price - Fraction(1, 2)) is None
