"""Checks that nobody has to be asked, exact arithmetic, and checks that decide an item."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rrf_design as rrf
from rrf_design.checks import (
    FREE,
    cheapest_first,
    decided_premise,
    decided_verdict,
    decides,
    decisive_checks,
    delivered_node,
    evaluate,
    is_person,
    known_value,
    worth_of,
)
from rrf_design.errors import InputError
from rrf_design.verdict import Verdict


def value(dim: int = 1, **anchor: Any) -> Any:
    node = {"id": "n", "dim": dim, "variables": {"a": 1, "b": 3}}
    problem = rrf.Problem(k=1, nodes=[node], anchors=[{"id": "A", "node": "n", "cost": 1.0, **anchor}])
    return known_value(problem, problem.anchors[0])


def test_what_is_computed_is_exact() -> None:
    assert value(source="expression: a / b") == (Fraction(1, 3),)
    assert value(source={"expression": "a + c", "variables": {"c": 5}}) == (6,)
    assert value(dim=2, source="expression: [a, b]") == (1, 3)


def test_values_in_the_file_are_the_decimals_that_were_written() -> None:
    assert value(value=0.1) == (Fraction(1, 10),)
    assert value(dim=2, value=[1.0, 2.5], source="value") == (1, Fraction(5, 2))


@pytest.mark.parametrize("source", ["person", {"command": ["true"]}, {"verifier": "embedded", "prompt": "?"}])
def test_what_has_to_be_fetched_is_not_known(source: Any) -> None:
    assert value(source=source) is None
    assert value(source=source, value=3.0) is None


def test_an_expression_must_fit_its_anchor() -> None:
    with pytest.raises(InputError, match="anchor 'A': the expression gives 2 numbers, but the anchor has 1 rows"):
        value(source="expression: [a, b]")


@pytest.mark.parametrize(("text", "fits"), [("10 ** 308", True), ("10 ** 309", False), ("-(10 ** 309)", False), ("10 ** 400 / 10 ** 399", True)])  # fmt: skip
def test_a_number_beyond_the_doubles_is_refused_where_it_is_made(text: str, fits: bool) -> None:
    anchor = {"id": "x", "node": "n", "source": f"expression: {text}"}
    problem = rrf.Problem(nodes=[{"id": "n"}], anchors=[anchor])
    if fits:
        assert known_value(problem, problem.anchors[0]) is not None
        return
    with pytest.raises(InputError, match="anchor 'x': the expression gives a number that no double can hold"):
        known_value(problem, problem.anchors[0])


def problem(*anchors: dict[str, Any], **settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "total"}, {"id": "parts", "dim": 2}],
        anchors=[{"node": "total", "cost": 1.0, **anchor} for anchor in anchors],
        **{"deliver": ["total"], **settings},
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, True),
        ({"trusted": True}, True),
        ({"trusted": False}, False),
        ({"sigma": 0.5}, False),
        ({"uncertainty": 0.1}, False),
        ({"rows": [[2.0]]}, False),
        ({"node": "parts"}, False),
    ],
)
def test_who_states_the_whole_value_exactly_decides(entry: dict[str, Any], expected: bool) -> None:
    stated = problem({"id": "x", **entry})
    assert decides(stated, stated.anchors[0], "total") is expected


def test_machines_come_before_people_and_the_cheapest_first() -> None:
    found = problem(
        {"id": "clerk", "cost": 0.5, "source": {"person": "Total?"}},
        {"id": "slow", "cost": 3.0},
        {"id": "quick", "cost": 2.0},
        {"id": "noisy", "cost": 0.1, "sigma": 1.0},
    )
    assert [anchor.id for anchor in decisive_checks(found)] == ["quick", "slow", "clerk"]
    assert [anchor.id for anchor in decisive_checks(found, without=["quick"])] == ["slow", "clerk"]
    assert [is_person(anchor) for anchor in decisive_checks(found)] == [False, False, True]


def test_several_delivered_values_are_not_decided_by_one_check() -> None:
    assert decisive_checks(problem({"id": "x"}, deliver=["total", "parts"])) == []
    assert delivered_node(problem({"id": "x"}, deliver=["total", "parts"])) == "total"


def test_a_suspect_check_decides_only_where_it_is_trusted() -> None:
    suspects = problem({"id": "x"}, {"id": "y", "trusted": True}, wrong_checks=1)
    assert [anchor.id for anchor in decisive_checks(suspects)] == ["y"]
    assert [decides(suspects, anchor, "total") for anchor in suspects.anchors] == [False, True]


@pytest.mark.parametrize(
    ("source", "verdict", "premise"),
    [
        ("value", Verdict.CHECKED, "x is right"),
        ({"person": "how much?"}, Verdict.CHECKED, "x is right"),
        ({"tests": [[1]], "expected": [2]}, Verdict.CHECKED, "x is right, which ran the given tests"),
        ({"verifier": "gpt", "prompt": "right?"}, Verdict.CONSISTENT, "the verifier is right (x)"),
    ],
)
def test_a_model_that_verifies_never_makes_a_value_checked(source: Any, verdict: Verdict, premise: str) -> None:
    anchor = problem({"id": "x", "source": source}).anchors[0]
    assert (decided_verdict(anchor), decided_premise(anchor)) == (verdict, premise)


def test_what_a_check_is_worth_and_who_is_asked_first() -> None:
    found = problem(
        {"id": "dear", "cost": 0.3, "source": "person: total?"},
        {"id": "free", "cost": 0.0, "source": "person: total?"},
        {"id": "machine", "cost": 5.0, "source": "judge"},
    )
    assert [anchor.id for anchor in cheapest_first(found.anchors)] == ["machine", "free", "dear"]
    assert worth_of(found.anchors[0]) == 1.0 / 0.3
    assert worth_of(found.anchors[1]) == 1.0 / FREE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os')", "the functions are"),
        ("(1).real", "Attribute is not allowed"),
        ("[x for x in (1, 2)]", "ListComp is not allowed"),
        ("lambda: 1", "Lambda is not allowed"),
        ("'a' * 9", "is not a number"),
        ("True", "is not a number"),
        ("10 ** 10 ** 10", "not between 0 and"),
        ("9 ** 4000", "too large"),
        ("factorial(10 ** 9)", "not between 0 and 300"),
        ("1 / 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("a + 1", "no number called 'a'"),
        ("word + 1", "no number called 'word'"),
        ("1 +", "not an expression"),
        ("gcd(1/2, 3)", "not a whole number"),
        ("[[1]]", "must be a number or a list"),
        ("[]", "must be a number or a list"),
        ("[1] + [2]", "a list stands where a number"),
        ("(" * 500 + "1" + ")" * 500, ""),
        ("1" * 5000, "longer than"),
        ("not 1", "Not is not allowed"),
        ("1 if 1 else 2", "IfExp is not allowed"),
        ("abs(1, 2)", "takes one number"),
        ("abs(x=1)", "the functions are"),
    ],
)
def test_what_is_not_arithmetic_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(text, {"word": "seven"})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(a + b) * 3", 57),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("7 // 2 + 7 % 2", 4),
        ("-2 ** 2", -4),
        ("2 ** -3", Fraction(1, 8)),
        ("max(a, b) - min(a, b)", 5),
        ("1 < 2 <= 2", 1),
        ("1 == 2", 0),
        ("gcd(12, 18) + lcm(4, 6)", 18),
        ("factorial(5) + comb(5, 2)", 130),
        ("floor(7/2) + ceil(7/2) + abs(-1)", 8),
        ("sum(xs)", 6),
    ],
)
def test_values(text: str, value: Fraction) -> None:
    assert evaluate(text, {"a": 12, "b": 7, "xs": [1, 2, 3]}) == (value,)


def test_a_list_is_a_vector() -> None:
    assert evaluate("[a, a / 3]", {"a": 2}) == (Fraction(2), Fraction(2, 3))


@given(st.integers(-999, 999), st.integers(-999, 999), st.integers(1, 99))
def test_agrees_with_python(a: int, b: int, c: int) -> None:
    assert evaluate("(a - b) * c + a // c - b % c", {"a": a, "b": b, "c": c}) == ((a - b) * c + a // c - b % c,)
