"""Exact arithmetic, and nothing but arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rrf_design.errors import InputError
from rrf_design.expression import evaluate


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
