"""Every statement says what it speaks of, and the number in it is the one that was tested."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from rrf_design.checker.promise_words import (
    audited_risk,
    number_above,
    percent,
    percent_above,
    percent_below,
    promise,
)
from rrf_design.checker.tails import PromiseScope
from rrf_design.risk import Among, Limit, Statement
from rrf_design.risk import Scope as Sized
from rrf_design.risk.statements import evidence

SURE = Fraction(19, 20)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            Statement.POLICY,
            (
                "Of the 1,319 items, at most 65 (5 %) are wrong under this policy, the pilot's counted as the policy"
                " left them, with confidence 95 %."
            ),
        ),
        (
            Statement.FILE,
            (
                "Of the 1,319 items, at most 65 (5 %) are wrong in the file as it is handed over, with what the pilot"
                " found wrong corrected, with confidence 95 %."
            ),
        ),
        (Statement.REST, "Of the 1,119 items outside the pilot, at most 55 (5 %) are wrong, with confidence 95 %."),
    ],
)
def test_finite_statements_name_their_denominator(statement: Statement, expected: str) -> None:
    assert promise(Fraction("0.05"), PromiseScope(statement, 200, 1319, delivered=False), confidence=SURE) == expected


def test_fresh_items_are_those_drawn_like_the_pilot() -> None:
    said = promise(Fraction("0.025"), PromiseScope("fresh", 200, 900, delivered=True), confidence=SURE)
    assert (
        said
        == "Of the items delivered, at most 2.5 % are wrong, with confidence 95 %, for items drawn like the 200 of the"
        " pilot."
    )


def test_what_random_checks_leave_of_a_table_is_promised_on_average() -> None:
    """K(1 − q) ≤ rN is what is tested, and not how many of K the draw finds: with nearly all items
    piloted, K = 17 of 200 at r = 5 % and q = ½ is proven surely, and more than 10 are left in one
    of six runs.
    """
    risk, half = Fraction(1, 20), Fraction(1, 2)
    tested, scope = Limit(risk / half, among=Among.ALL), Sized(Statement.POLICY, 190, 200)
    seen = range(17 - 10, 18)
    assert all(evidence(tested, scope, 190, x).claim.at_most(1 - SURE) for x in seen)
    assert sum(math.comb(17, left) for left in range(11, 18)) / 2**17 > 0.16
    said = promise(risk, PromiseScope("policy", 190, 200, delivered=False), confidence=SURE, checked_share=half)
    assert said.startswith("Of the 200 items, at most 10 (5 %) are wrong on average over what is checked at random")
    larger = PromiseScope("policy", 200, 1320, delivered=False)
    assert "at most 66 (5 %)" in promise(risk, larger, confidence=SURE, checked_share=half)
    larger = PromiseScope("policy", 200, 1321, delivered=False)
    assert "at most 66.1 (" in promise(risk, larger, confidence=SURE, checked_share=half)


def test_a_number_is_given_only_where_it_is_known() -> None:
    scope = PromiseScope("policy", 200, 1319, delivered=True)
    assert promise(Fraction("0.1"), scope, confidence=SURE, delivers=1001).startswith(
        "Of the 1,001 items delivered, at most 100 (10 %)"
    )
    assert promise(Fraction("0.1"), scope, confidence=SURE).startswith("Of the items delivered, at most 10 %")
    rest = promise(Fraction("0.1"), PromiseScope("rest", 200, 1319, delivered=True), confidence=SURE, delivers=1001)
    assert rest == "Of the items delivered outside the pilot, at most 10 % are wrong, with confidence 95 %."


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.2486, 0.24861, 0.5, 1 / 3, 0.99999, 1.0])
def test_limits_are_rounded_away_from_what_helps(value: float) -> None:
    exact = Fraction(value)
    above, below = percent_above(exact), percent_below(exact)
    assert Fraction(below.rstrip("%")) <= 100 * exact <= Fraction(above.rstrip("%"))
    assert Fraction(above.rstrip("%")) - Fraction(below.rstrip("%")) <= Fraction(1, 100)
    assert exact <= Fraction(number_above(value)) <= exact * Fraction(1001, 1000) + Fraction(1, 10**300)


def test_shares_without_an_end_are_cut_to_the_safe_side() -> None:
    assert percent(Fraction(1, 30)) == "3.33334 %"
    said = promise(Fraction(1, 30), PromiseScope("fresh", 200, 900, delivered=True), confidence=Fraction(2, 3))
    assert "at most 3.33334 % are wrong, with confidence 66.6666 %" in said
    assert percent(Fraction(1, 8)) == "12.5 %"


def test_a_number_that_is_no_share_is_rounded_upwards_too() -> None:
    assert number_above(12.3401) == "12.35"
    assert number_above(123456.0) == "123500"
    assert number_above(float("inf")) == "inf"


def test_a_risk_that_was_seen_to_be_larger_is_not_open() -> None:
    assert audited_risk(0.1, holds=True, population=100, wrong=2) == "The risk of 10 % holds."
    assert "not proven yet: it takes more draws" in audited_risk(0.1, holds=False, population=100, wrong=10)
    assert "it takes more labels" in audited_risk(0.1, holds=False, population=100, wrong=10, waiting=True)
    said = audited_risk(0.1, holds=False, population=1000, wrong=120)
    assert said == "The risk of 10 % does not hold: 120 of 1,000 are known to be wrong."
