from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.responses.numerals import BOTH, COMMA, POINT, conventions, hidden, plain, reading, readings

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
