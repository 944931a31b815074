"""Parsers of numbers: how numerals are written, what stands around them, and which is meant."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.errors import InputError
from rrf_design.responses import Parser, parsers
from rrf_design.responses._finding import LONGEST, MOST_MARKS, marked
from rrf_design.responses._numerals import (
    BOTH,
    COMMA,
    POINT,
    _factor,
    _in_a_word,
    _is_bound,
    _is_operand,
    _obstacle_around,
    _sign,
    _unfinished,
    conventions,
    hidden,
    mentions_in,
    plain,
    reading,
    readings,
)
from rrf_design.responses.parsed import ParseStatus

GROUPS = {POINT: (COMMA, " ", "\u00a0", "'", "_", ""), COMMA: (POINT, " ", "\u00a0", "'", "_", "")}


def written(whole: int, decimals: str, decimal: str, group: str) -> str:
    """The slow obvious writer: three digits at a time from the right."""
    digits = str(whole)
    pieces: list[str] = []
    while len(digits) > 3:
        digits, piece = digits[:-3], digits[-3:]
        pieces.insert(0, piece)
    text = group.join([digits, *pieces])
    return f"{text}{decimal}{decimals}" if decimals else text


@settings(deadline=None)
@given(st.integers(0, 10**12), st.text("0123456789", max_size=6), st.sampled_from(BOTH), st.integers(0, 5))
def test_what_is_written_is_read_or_refused_and_never_misread(
    whole: int, decimals: str, decimal: str, style: int
) -> None:
    text = written(whole, decimals, decimal, GROUPS[decimal][style])
    meant = Fraction(f"{whole}.{decimals or 0}")
    assert reading(text, decimal) == meant
    found = readings(text)
    assert found == {meant} or len(found) == 2


@pytest.mark.parametrize("text", ["1,234,56", "1,23.4", "1.2.3", "0,123,456", "1'23", "1 2345", "1,234.567.8", "12_34"])
def test_what_fits_no_convention(text: str) -> None:
    assert not readings(text)


def test_characters_and_indian_groups() -> None:
    assert readings("12,34,567.50") == {Fraction("1234567.5")}
    assert not readings("12,34,56")
    assert plain("\u2212\uff11\uff12\u00a0\u202f\u2009'\u2019\u2044") == "-12\u00a0\u00a0\u00a0''/"
    assert plain("\u0661\u0662 \u0967") == "12 1"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("12.50 and 1,234", (POINT,)),
        ("12,50 and 1.234", (COMMA,)),
        ("12.50 and 12,50", BOTH),
        ("(3,5) and 1,000", BOTH),
        ("on 17.11.2024 we had 1,000", BOTH),
        ("$1,000", (POINT,)),
        ("1,234,567", (POINT,)),
        ("nothing", BOTH),
    ],
)
def test_what_a_text_shows(text: str, left: tuple[str, ...]) -> None:
    assert conventions(text) == left


@pytest.mark.parametrize("text", ["1\u200b2", "\u202e12", "1\u0662", "1\u0336", "1.\u200d5", "\u0661\u0967"])
def test_hidden_digits(text: str) -> None:
    assert hidden(text)


@pytest.mark.parametrize("text", ["12", "\u200e12\u200f", "\u0661\u0662", "caf\u00e9 12"])
def test_nothing_hidden(text: str) -> None:
    assert hidden(text) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("at least ", ""),
        ("At most $", ""),
        ("no more than ", ""),
        ("x >= ", ""),
        ("x \u2265", ""),
        ("h\u00f6chstens ", ""),
        ("", " or more"),
        ("", " at least."),
        ("", " \u2264 x"),
        ("", "-odd"),
    ],
)
def test_bounds(left: str, right: str) -> None:
    assert _is_bound(left, right)
    parsed = parsers.get("decimal").parse(f"{left}42{right}")
    assert parsed.status is ParseStatus.AMBIGUOUS


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("about ", ""),
        ("\u2248 ", ""),
        ("The maximum is ", ""),
        ("at last ", ""),
        ("=> ", ""),
        ("-> ", ""),
        ("moreover ", ""),
        ("the discovery of ", ""),
        ("", " apples"),
        ("", " or so"),
        ("", " <b>"),
        ("", "<|im_end|>"),
        ("", " min"),
        ("", " plus tax"),
    ],
)
def test_what_is_none(left: str, right: str) -> None:
    assert not _is_bound(left, right)
    assert parsers.get("decimal").parse(f"{left}42{right}").canonical == "42"


@pytest.mark.parametrize(
    ("left", "right", "word"),
    [
        ("sqrt(", ")", "calculation"),
        ("half of ", "", "calculation"),
        ("", " pi", "calculation"),
        ("", " squared", "power"),
        ("", "\u2082", "base"),
        ("", "\u2030", "thousand"),
        ("", "!", "factorial"),
        ("n = ", "!", "factorial"),
    ],
)
def test_what_is_still_to_be_computed(left: str, right: str, word: str) -> None:
    assert word in (_unfinished(left, right) or "")


@pytest.mark.parametrize(
    ("left", "right"), [("The answer is ", "!"), ("Answer:", "!"), ("catalog ", ""), ("behalf of ", ""), ("", " pies")]
)
def test_what_is_done(left: str, right: str) -> None:
    assert _unfinished(left, right) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5 -3", [5, -3]),
        ("12-7", [None]),
        ("(3, -4)", [3, -4]),
        ("on 2024-11-17 at 12:30 the 5th of x2", []),
        ("1.2 x 10^5 or 7", [120000, 7]),
        ("3\u00bd", [Fraction(7, 2)]),
        ("2 million and 3 hundred", [2_000_000, 300]),
        ("5k, 3x, 2\u03c0, 2^3", [None, None, None, None]),
        ("-$5, $-5, \u2212\u20ac5", [-5, -5, -5]),
        ("-z\u0142 12; \u2212CHF 12.50", [-12, Fraction(-25, 2)]),
        ("-dinar 12", [None]),  # a currency that nobody listed, or a bullet: no plain 12
        ("pre-tax 12", [12]),
        ("x - 3", [3]),
        ("1,234", [None]),
    ],
)
def test_values_in_order(text: str, values: list[int | Fraction | None]) -> None:
    assert [mention.value for mention in mentions_in(plain(text), BOTH)] == values


def test_what_is_known_of_a_mention() -> None:
    share, part, spaced, bracketed = mentions_in("19% of 3 + x is 12 500 or (7)", BOTH)
    assert share.percent
    assert part.operand
    assert spaced.spaced
    assert bracketed.bracketed
    (unclear,) = mentions_in("1,234", BOTH)
    assert unclear.value is None
    assert unclear.whole == 1234
    assert "may be 1.234 or 1234" in unclear.why
    (zero,) = mentions_in("1/0", BOTH)
    assert zero.impossible


def test_what_was_read_before_changes_no_reading() -> None:
    """The fast way remembers what stands beside numerals; the slow one looks at it anew for each of
    them.
    """
    beside = (
        "{} EUR",
        "-{}",
        "{}k",
        "between {} and 9",
        "not {}",
        "{} May",
        "({})",
        "${}",
        "x - {}",
        "{}%",
        "#{}",
        "{}...",
        "{}e3",
    )
    written = ("12.50", "1,234", "3-4", "7", "1.234,50", "3/4", "12:30")
    texts = [around.format(number) for number in written for around in beside]
    warm = [list(mentions_in(text, BOTH)) for text in texts * 2][len(texts) :]
    for text, found in zip(texts, warm, strict=True):
        for remembered in (_factor, _in_a_word, _is_operand, _obstacle_around, _sign, reading):
            remembered.cache_clear()
        assert list(mentions_in(text, BOTH)) == found


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


def test_what_is_no_plain_number_is_a_failure() -> None:
    assert parsers.get("integer").parse("The answer is 12.5.").status is ParseStatus.PARSE_FAILURE
    assert parsers.get("integer").parse("3 apples and 4 pears").status is ParseStatus.AMBIGUOUS
    assert RATIONAL.parse("1/0").status is ParseStatus.PARSE_FAILURE
    assert DECIMAL.parse("1.5e999").status is ParseStatus.OUT_OF_RANGE
    assert LAST.parse(str(2**53)).value == (2.0**53,)
    assert LAST.parse(str(2**53 + 1)).status is ParseStatus.OUT_OF_RANGE
    assert LAST.parse("9" * 100_000).status is ParseStatus.PARSE_FAILURE


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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.14", 3.14),
        ("about -2.5e3 m", -2500.0),
        ("1,234.5 and done", 1234.5),
        ("5", 5.0),
        ("v1.2.3 or 7", 7.0),
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
def test_decimals(text: str, value: float) -> None:
    assert DECIMAL.parse(text).value == (value,)


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
