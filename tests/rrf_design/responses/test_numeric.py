"""Parsers of numbers, and which number of a text is the answer."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.errors import InputError
from rrf_design.responses import Parser, ParseStatus, parsers
from rrf_design.responses._finding import LONGEST, MOST_MARKS, marked

STRICT, LAST, FIRST = (parsers.get(f"integer-{which}") for which in ("strict", "last", "first"))
RATIONAL, DECIMAL = parsers.get("rational"), parsers.get("decimal")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("12 + 7 = 19", 12, 19),
        ("5 -3", 5, -3),
        ("x=-3", -3, -3),
        ("the answer is 1,234,567.", 1234567, 1234567),
        ("12,345", 12345, 12345),
        ("(3, -4)", 3, -4),
        ("**42**", 42, 42),
        ("It's 7.", 7, 7),
        ("\u22124 degrees", -4, -4),
        ("2^3 = 8", 8, 8),
        ("10/2 = 5", 5, 5),
        ("the 5th of 6", 6, 6),
        ("Step 1: add.\nAnswer: 30\n", 1, 30),
        ("+8", 8, 8),
        ("007", 7, 7),
    ],
)
def test_standalone_integers(text: str, first: int, last: int) -> None:
    assert FIRST.parse(text).value == (float(first),)
    assert LAST.parse(text).value == (float(last),)


@pytest.mark.parametrize("text", ["", "none", "3.14", "1/2", "3 / 4", "x2", "5th", "2^3", "-", "seven"])
def test_no_integer_is_a_failure_and_never_zero(text: str) -> None:
    for parser in (STRICT, LAST, FIRST):
        parsed = parser.parse(text)
        assert parsed.status is ParseStatus.PARSE_FAILURE
        assert parsed.value is None
        assert not parsed.ok
        assert parsed.detail


@pytest.mark.parametrize(
    ("text", "parser"),
    [
        ("1,234.50", LAST),
        ("5 items, 12.50 in all", LAST),
        ("3.14 or 2.71, so 3", FIRST),
        ("12-7=5", FIRST),
        ("1,2,3", LAST),
        ("1.234", LAST),
        ("416 incl. 19% VAT", LAST),
        ("416.14 (incl. 19% VAT)", LAST),
        ("(12)", LAST),
        ("9 is 2x", LAST),
        ("in all 5k", LAST),
    ],
)
def test_a_number_that_is_no_readable_integer_is_not_passed_over(text: str, parser: Parser) -> None:
    assert not parser.parse(text).ok


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("170,00 EUR", 170),
        ("1e5", 100000),
        ("1,234", 1234),
        ("20%", 20),
        ("2 million", 2000000),
        ("3 apples of 7. Answer: 4", 4),
    ],
)
def test_the_whole_number_that_the_answer_is(text: str, value: int) -> None:
    assert parsers.get("integer").parse(text).value == (float(value),)


def test_a_fraction_is_no_integer() -> None:
    assert parsers.get("integer").parse("The answer is 12.5.").status is ParseStatus.PARSE_FAILURE
    assert parsers.get("integer").parse("3 apples and 4 pears").status is ParseStatus.AMBIGUOUS


def test_the_declared_mark_is_part_of_the_parser() -> None:
    german = parsers.get({"name": "decimal", "decimal": ","})
    assert german.parse("1.234").value == (1234.0,)
    assert german.parse("12.5").status is ParseStatus.AMBIGUOUS
    assert dict(german.spec) == {"name": "decimal", "decimal": ","}
    with pytest.raises(InputError, match="decimal is ';'"):
        parsers.get({"name": "decimal", "decimal": ";"})


def test_strict_format_is_recorded() -> None:
    assert STRICT.parse(" -17\n").strict_ok
    assert LAST.parse("-17").strict_ok
    assert LAST.parse("17 apples").ok
    assert not LAST.parse("17 apples").strict_ok
    assert not LAST.parse("1,234").strict_ok
    assert STRICT.parse("17 apples").status is ParseStatus.PARSE_FAILURE


def test_large_integers_are_not_rounded() -> None:
    assert LAST.parse(str(2**53)).value == (2.0**53,)
    assert LAST.parse(str(2**53 + 1)).status is ParseStatus.OUT_OF_RANGE
    assert LAST.parse("9" * 100_000).status is ParseStatus.PARSE_FAILURE


@pytest.mark.parametrize(
    ("text", "value", "strict"),
    [
        ("1/3", "1/3", True),
        ("-4/6", "-2/3", True),
        ("it is 3 / 4", "3/4", False),
        ("1/2 + 1/4 = 3/4.", "3/4", False),
        ("0.125", "1/8", False),
        ("7", "7", True),
    ],
)
def test_rationals(text: str, value: str, strict: bool) -> None:
    parsed = RATIONAL.parse(text)
    assert (parsed.canonical, parsed.strict_ok) == (value, strict)
    assert parsed.value == (float(Fraction(value)),)


def test_division_by_zero_is_a_failure() -> None:
    assert RATIONAL.parse("1/0").status is ParseStatus.PARSE_FAILURE


@pytest.mark.parametrize(
    ("text", "value"),
    [("3.14", 3.14), ("about -2.5e3 m", -2500.0), ("1,234.5 and done", 1234.5), ("5", 5.0), ("v1.2.3 or 7", 7.0)],
)
def test_decimals(text: str, value: float) -> None:
    assert DECIMAL.parse(text).value == (value,)


def test_overflow_is_out_of_range() -> None:
    assert DECIMAL.parse("1.5e999").status is ParseStatus.OUT_OF_RANGE


@settings(deadline=None)
@given(st.integers(-(2**53), 2**53))
def test_every_integer_reads_back(number: int) -> None:
    for parser in (STRICT, LAST, FIRST, RATIONAL, DECIMAL):
        parsed = parser.parse(str(number))
        assert parsed.value == (float(number),)
        assert parsed.strict_ok
    assert LAST.parse(f"The answer is {number}.").value == (float(number),)
    assert LAST.parse(f"so it is {number:,}").value == (float(number),)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for parser in (STRICT, LAST, FIRST, RATIONAL, DECIMAL):
        parsed = parser.parse(text)
        assert parsed.ok == (parsed.status is ParseStatus.PARSED)


@settings(deadline=None)
@given(st.text(alphabet="0123456789 .,/-+^eE%()", max_size=30))
def test_any_digits_are_read_or_refused(text: str) -> None:
    for parser in (STRICT, LAST, FIRST, RATIONAL, DECIMAL):
        parser.parse(text)


def test_the_short_way_agrees_with_the_long_one() -> None:
    """A bare number is read without looking around; whatever it is, the search through the whole
    text reads the same.
    """
    chance = random.Random(3)
    shapes = ["{}", "-{}", "+{}", " {}\n", "{}.", "0{}", "{}.0", "{}.50", "{}.125", "{}.1250", "{},50", "{}e2", "{}/4"]
    for name in ("decimal", "rational", "integer", "integer-last", "integer-first"):
        for decimal in (None, ".", ","):
            parser = parsers.get({"name": name, **({} if decimal is None else {"decimal": decimal})})
            for _ in range(60):
                text = chance.choice(shapes).format(chance.randrange(10 ** chance.randrange(1, 17)))
                bare = text.strip()
                slow = parser.searched(text, bare, strict=parser.strict.fullmatch(bare) is not None)  # type: ignore[attr-defined]
                assert parser.parse(text) == slow, (name, decimal, text)


DECIMAL = parsers.get("decimal")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("First 3, then 5.\n#### 8", 8.0),
        ("The answer is 5. It has nothing to do with 7.", 5.0),
        ('{"reasoning": "the answer is 5 at first", "answer": "6"}', 6.0),
        ("3 and 4 make\n\n**7**", 7.0),
        ("There are 3 and 4. So, she has 7.", 7.0),
        ("3 * 4 = 12, 12 + 1 = 13 eggs.", 13.0),
        ("Fr. 697.68 + Fr. 139.54 = Fr. 837.22", 837.22),
        ("268,17 \u20ac + 53,63 \u20ac = EUR 321,80", 321.8),
        ("12 (of 20)", 12.0),
        ("twelve, that is 12, yes 12", 12.0),
        ("\\boxed{\\frac{1}{2}} follows from 3", 0.5),
    ],
)
def test_the_marked_number(text: str, value: float) -> None:
    assert DECIMAL.parse(text).value == (value,)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 5. No, the answer is 6.",
        "\\boxed{5} and \\boxed{6}",
        "Answer: 5 or 6",
        "She has 3 and 4.",
        "x = 3, y = 4",
        "the net amount + USD 3.75",
        "The answer is not 5.",
        "12 (or 13)",
        "Therefore it is between 3 and 5.",
    ],
)
def test_several_numbers(text: str) -> None:
    assert DECIMAL.parse(text).status is ParseStatus.AMBIGUOUS


def test_more_than_anybody_reads() -> None:
    assert not DECIMAL.parse("7" * (LONGEST + 1)).ok
    assert DECIMAL.parse("the answer is 5. " * (MOST_MARKS + 1)).status is ParseStatus.AMBIGUOUS
    assert marked("Answer: 5\n" * (MOST_MARKS + 1)) is None
    assert DECIMAL.parse("x 7 " * 20_000).status is ParseStatus.AMBIGUOUS


SIZE = 100_000
HOSTILE = ["9", "1 ", "1,", "1.1,", "(", "[", "{", '{"a":', '"', "*", "\\boxed{", "#", "answer: ", "answer to ", "<a", "\\text{", "1\u200b",
           "\u0661", "a=1 ", "$", "minus ", "\ud800", "\\", "(or ", "Output (a) ", '"a": "', "1e", "\u202e", "\u00bd", "not ", "A. \n"]  # fmt: skip
SPECS: list[Any] = ["decimal", "integer-last", {"name": "json", "field": "a"}, {"name": "choice", "options": ["Output (a)", "B"]},
         "literal", {"name": "literal", "bare": "string"}, "label", "call", "yes-no"]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_long_hostile_texts_are_read_or_refused(piece: str) -> None:
    text = (piece * (SIZE // len(piece) + 1))[:SIZE]
    for spec in SPECS:
        parsed = parsers.get(spec).parse(text)
        assert parsed.ok == (parsed.status is ParseStatus.PARSED)
