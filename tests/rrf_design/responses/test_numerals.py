"""Bounds and calculations that are not done: what stands around a numeral, in both directions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.responses import parsers
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


def test_indian_groups() -> None:
    assert readings("12,34,567.50") == {Fraction("1234567.5")}
    assert not readings("12,34,56")


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


def test_characters() -> None:
    assert plain("\u2212\uff11\uff12\u00a0\u202f\u2009'\u2019\u2044") == "-12\u00a0\u00a0\u00a0''/"
    assert plain("\u0661\u0662 \u0967") == "12 1"


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
