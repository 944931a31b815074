"""`choose` and `assess`: what is proven, what it costs, and every way to ask for it wrongly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import Among, Limit, Scope, Statement, Stream, assess, choose


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


def test_the_cheapest_proven_policy_is_chosen() -> None:
    assert choose([CAREFUL, FAIR, BOLD], 0.05, 0.95) == "fair"
    assert choose([BOLD], 0.05, 0.95) is None
    assert choose([CAREFUL, FAIR, BOLD], 0.2, 0.95) == "bold"


def test_of_equally_cheap_ones_the_one_that_was_wrong_least_often_is_chosen() -> None:
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
    ],
)
def test_bad_input_is_one_line(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
