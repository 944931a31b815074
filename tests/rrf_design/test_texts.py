"""Texts and numbers as they are kept, sent on and shown."""

from __future__ import annotations

import json

import pytest

from rrf_design.texts import column, digits, from_column, json_text, rounded_down, rounded_up, showable, whole

BROKEN = "half \ud83d, NUL \x00, bell \x07, whole \N{SNOWMAN}"


def test_json_keeps_every_character_and_can_be_written() -> None:
    text = json_text({"text": BROKEN, BROKEN: 1}, indent=1)
    assert json.loads(text.encode()) == {"text": BROKEN, BROKEN: 1}
    assert "\N{SNOWMAN}" in text


def test_what_is_sent_and_shown_is_readable() -> None:
    assert whole(BROKEN).encode()
    assert whole("as it is \x00") == "as it is \x00"
    assert showable(BROKEN) == "half \ufffd, NUL \ufffd, bell \ufffd, whole \N{SNOWMAN}"
    assert showable("two\nlines\tand a tab") == "two\nlines\tand a tab"


@pytest.mark.parametrize("text", ["", "plain", BROKEN, 'json:"x"', "json:"])
def test_columns_have_a_way_back(text: str) -> None:
    assert from_column(column(text)) == text
    assert "\x00" not in column(text)
    column(text).encode()  # every database can hold it


def test_what_a_spreadsheet_would_run_stays_text() -> None:
    from rrf_design.texts import sheet_text

    for text in ("=1+1", "+cmd|'/c calc'!A1", "-2+3", "@SUM(A1)", "  =1", "\t=1"):
        assert sheet_text(text).startswith("'")
    for text in ("", "-5", "+5", "-1,234.50", "-.5", "-1.5e-07", "plain", "5 = 5", "'plain'"):
        assert sheet_text(text) == text


@pytest.mark.parametrize(
    "text", ["=1", "'=1", "''=1", "'", "'-5", "-5", "\tx", "\r=x", " =1", "' =1", "'\t'", "-", "x'="]
)
def test_what_a_spreadsheet_must_not_run_has_a_way_back(text: str) -> None:
    from rrf_design.texts import from_sheet, sheet_text

    assert from_sheet(sheet_text(text)) == text
    assert sheet_text(text)[:1] not in ("=", "+", "@", "\t", "\r")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (11879.56, "11879.56"),
        (0.1 + 0.2, "0.3"),
        (42.0, "42"),
        (-0.005, "-0.005"),
        (123456789.125, "123456789.125"),
        (9876543210.99, "9876543210.99"),
    ],
)
def test_amounts_keep_their_digits_and_no_others(value: float, shown: str) -> None:
    assert digits(value) == shown


@pytest.mark.parametrize("value", [0.7653668646536427, 1 / 3, -2.5e-7, 123456.789, 0.1, 5e-324, 0.0])
@pytest.mark.parametrize("many", [1, 4, 7])
def test_bounds_are_cut_to_the_side_on_which_they_hold(value: float, many: int) -> None:
    below, above = rounded_down(value, many), rounded_up(value, many)
    assert below <= value <= above
    for shown in (below, above):
        assert float(f"{shown:.{many}g}") == shown
    assert above - below <= abs(value) * 10.0 ** (1 - many) * 1.01
