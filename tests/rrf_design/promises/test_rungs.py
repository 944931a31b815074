from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from rrf_design.derive import on_sale
from rrf_design.problem import Problem
from rrf_design.promises.rungs import MOST_STRUCTURES, climbs_of, common


def star(prices: dict[str, float], hub: str = "a") -> Problem:
    return Problem(
        name="star",
        deliver=[hub],
        nodes=[{"id": name} for name in prices],
        relations=[{"id": f"{name} like {hub}", "tail": hub, "head": name} for name in prices if name != hub],
    )


def cheapest(problem: Problem, prices: dict[str, float], k: int, wanted: float) -> float:
    """By plain enumeration: what the cheapest set of asks costs that has the wanted margin at k."""
    sold = on_sale(problem, prices)
    sets = (names for size in range(1, len(prices) + 1) for names in combinations(prices, size))
    return min(
        sum(prices[n] for n in names) for names in sets if sold.margin(select=list(names), k=k).lower >= wanted - 1e-9
    )


def test_rungs_are_the_cheapest_designs_of_their_margin() -> None:
    prices = {"a": 2.0, "b": 1.0, "c": 8.0, "d": 1.0, "e": 4.0, "f": 1.0}
    problem = star(prices)
    sold = on_sale(problem, prices)
    found = climbs_of(problem, prices)
    assert found
    for climb in found:
        for answers, k in climb.rungs:
            held = list(climb.order[:answers])
            if k:
                margin = sold.margin(select=held, k=k).lower
                assert margin > 0
                assert sum(prices[n] for n in held) == pytest.approx(cheapest(problem, prices, k, margin))


def test_a_climb_asks_more_and_allows_more_from_rung_to_rung_and_its_margin_never_falls() -> None:
    prices = dict.fromkeys("abcdefgh", 1.0)
    found = climbs_of(star(prices), prices)
    for climb in found:
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(climb.rungs))
        leads = [answers - 2 * k for answers, k in climb.rungs]  # all answer one question, so the margin is √lead
        assert leads == sorted(leads)
        assert all(b - a <= 1 for a, b in pairwise(leads))
        assert climb.level == (len(set(leads)) == 1 and [k for _, k in climb.rungs] in ([0, 1], [0, 1, 2]))
        assert climb.rungs[0][0] >= 2
    assert {climb.order for climb in found} == {tuple("abcdefgh")}  # equals as the recipe has them
    assert len({climb.rungs for climb in found}) == len(found) < 60


def test_too_many_asks_or_too_few_get_no_climbs() -> None:
    many = dict.fromkeys((f"n{at}" for at in range(13)), 1.0)
    assert climbs_of(star(many, "n0"), many) == []
    assert climbs_of(star({"a": 1.0}), {"a": 1.0}) == []


def test_the_most_common_structures_speak() -> None:
    shapes = [object() for _ in range(MOST_STRUCTURES + 1)]
    listed = [shape for at, shape in enumerate(shapes) for _ in range(at + 1)]
    assert common(listed) == shapes[:0:-1]
