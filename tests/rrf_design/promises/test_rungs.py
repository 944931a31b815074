from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from rrf_design.derive import on_sale
from rrf_design.problem import Problem
from rrf_design.promises.policies import MOST_STRUCTURES, CheckRung, check_rungs, climbs_of, common, rungs_by_hand


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


def with_checks(prices: dict[str, float], *checks: dict[str, object], **more: object) -> Problem:
    plain = star(prices)
    return Problem(
        name="checked",
        deliver=["a"],
        nodes=[{"id": node.id} for node in plain.nodes],
        relations=[{"id": r.id, "tail": r.tail, "head": r.head} for r in plain.relations],
        anchors=[{"node": "a", **check} for check in checks],
        **more,
    )


TESTS = {"id": "tests", "source": {"command": ["x"]}, "cost": 5.0}
LEDGER = {"id": "ledger", "value": 1.0, "cost": 7.0}
JUDGE = {"id": "judge", "source": {"verifier": "m", "prompt": "{{ b }} or {{ answer }}?"}, "cost": 2.0, "sigma": 0.05}
CLERK = {"id": "clerk", "source": {"person": "?"}, "cost": 1.0}
PRICES = {"a": 2.0, "b": 1.0, "c": 8.0, "d": 1.0}


def test_where_every_answer_may_be_wrong_the_frontier_names_the_checks_that_decide() -> None:
    """No answer is asked for a value that is known, only those that a check is made from otherwise;
    people are no rung here; the cheapest first.
    """
    found = check_rungs(with_checks(PRICES, TESTS, LEDGER, CLERK), PRICES, {"tests", "ledger", "clerk"})
    assert found == [
        CheckRung(("a", "tests"), None),
        CheckRung(("ledger",), None),
        CheckRung(("a", "tests", "ledger"), None),
    ]
    assert check_rungs(with_checks(PRICES, TESTS, LEDGER), PRICES, {"ledger"}) == [CheckRung(("ledger",), None)]
    assert check_rungs(with_checks(PRICES, CLERK), PRICES, {"clerk"}) == []


def test_designs_with_a_judge_are_the_cheapest_that_reach_the_goal() -> None:
    """Held to plain enumeration over all sets of asks and checks.

    A judge is shown what its prompt names; one that is too noisy for the goal is on no rung of its
    own.
    """
    problem = with_checks(PRICES, TESTS, JUDGE, delta=0.4)
    found = check_rungs(problem, PRICES, {"tests", "judge"})
    assert CheckRung(("a", "tests"), None) in found
    cost = {**PRICES, "tests": 5.0, "judge": 2.0}
    sold = on_sale(problem, PRICES)
    sold = sold.model_copy(update={"anchors": problem.anchors})
    for k in (None, 1, 2):
        rung = next(one for one in found if one.k == k and "judge" in one.steps)
        assert rung.steps.index("judge") > max(rung.steps.index("a"), rung.steps.index("b"))
        reaching = []
        for size in range(1, len(cost) + 1):
            for names in combinations(cost, size):
                design = sold.design(list(names))
                asked = [name for name in names if name in PRICES]
                if asked and "a" in asked and {"tests", "judge"} & set(names):
                    margin = design.margin(len(PRICES) if k is None else k)
                    if margin.lower > 1e-9 and design.standing(sold, margin=margin).reached:
                        reaching.append(sum(cost[name] for name in names))
        # Its prompt names b, whose answer is then needed, too.
        assert sum(cost[step] for step in rung.steps) <= min(reaching) + PRICES["b"]
    noisy = with_checks(PRICES, {**JUDGE, "sigma": 5.0}, delta=0.4)
    assert check_rungs(noisy, PRICES, {"judge"}) == []


def test_a_quorum_of_checks_that_may_be_wrong_is_a_rung() -> None:
    three = [{"id": f"j{n}", "source": {"command": ["x"]}, "cost": 3.0 - n, "trusted": False} for n in range(3)]
    problem = with_checks(PRICES, *three, wrong_checks=1)
    assert CheckRung(("a", "j2", "j1"), None) in check_rungs(problem, PRICES, {"j0", "j1", "j2"})


def test_rungs_by_hand() -> None:
    problem = with_checks(PRICES, TESTS, JUDGE)
    assert rungs_by_hand(problem, ["judge", "tests"]) == [CheckRung(("a", "b", "judge", "tests"), None)]
    assert [rung.k for rung in rungs_by_hand(problem, ["judge"])] == [None, 1, 2]
    assert rungs_by_hand(problem, ["nobody"]) == []


def test_many_asks_leave_the_cheapest_checks_that_decide() -> None:
    many = dict.fromkeys((f"n{at}" for at in range(13)), 1.0)
    problem = with_checks({"a": 1.0, **many}, TESTS, LEDGER, JUDGE | {"source": {"verifier": "m", "prompt": "?"}})
    names = {"tests", "ledger", "judge"}
    assert check_rungs(problem, many, names) == [CheckRung(("a", "tests"), None), CheckRung(("ledger",), None)]
