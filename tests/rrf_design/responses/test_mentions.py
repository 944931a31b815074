from __future__ import annotations

from fractions import Fraction

import pytest

from rrf_design.responses.mentions import _factor, _in_a_word, _is_operand, _obstacle_around, _sign, mentions_in
from rrf_design.responses.numerals import BOTH, plain, reading


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
    """The fast way remembers what stands beside numerals; the slow one looks at it anew for each of them."""
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
