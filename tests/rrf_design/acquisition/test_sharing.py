"""One budget over all items: goals first, the cheapest before the dearer, and never more than there is."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random

from rrf_design.acquisition.sharing import Proposal, share
from rrf_design.acquisition.shop import Bundle


def wish(price: float, *, goal: float | None = None, sees: float = 1.0, more: int = 0) -> Proposal:
    bundles = tuple(Bundle((f"b{i}",), Fraction(str(price)), sees) for i in range(1 + more))
    return Proposal(bundles, None if goal is None else Fraction(str(goal)))


def test_without_a_budget_everybody_buys() -> None:
    assert set(share({"a": wish(5), "b": Proposal((), None)}, None)) == {"a"}


def test_money_is_kept_for_goals_that_it_reaches() -> None:
    """Three items need two purchases each; there is money for four purchases, so one item waits."""
    found = share({item: wish(1, goal=2) for item in "abc"}, Fraction(4))
    assert set(found) == {"a", "b"}


def test_what_reaches_no_goal_goes_by_what_it_sees_per_cost() -> None:
    found = share({"a": wish(2, sees=1.0), "b": wish(1, sees=1.0), "c": wish(1, sees=0.2)}, Fraction(3))
    assert list(found) == ["b", "a"]


def test_goals_come_before_the_rest() -> None:
    assert set(share({"a": wish(1, sees=9.0), "b": wish(1, goal=3, sees=0.1)}, Fraction(3))) == {"b"}


def test_somebody_buys_and_nobody_overspends() -> None:
    """Random wishes, each affordable alone as the loop makes them: a wave never stands still and never exceeds the money."""
    rng = Random(7)
    for _ in range(200):
        left = rng.randint(1, 9)
        goals = [None, *range(1, 12)]
        wishes = {
            str(i): wish(rng.randint(1, left), goal=rng.choice(goals), sees=rng.random(), more=rng.randint(0, 2))
            for i in range(rng.randint(1, 6))
        }
        found = share(wishes, Fraction(left))
        assert found
        assert sum((b.price for bundles in found.values() for b in bundles), Fraction(0)) <= left


def test_as_many_goals_as_the_money_allows() -> None:
    """Against every subset: no other choice reaches more goals."""
    rng = Random(11)
    for _ in range(100):
        costs = [rng.randint(1, 6) for _ in range(5)]
        left = rng.randint(1, 15)
        found = share({str(i): wish(1, goal=cost) for i, cost in enumerate(costs)}, Fraction(left))
        best = max(n for n in range(6) if any(sum(c) <= left for c in combinations(costs, n)))
        assert best == 0 or len(found) == best
