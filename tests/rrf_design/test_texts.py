"""Broken Unicode: kept word for word, sent and shown readably."""

from __future__ import annotations

import json

import pytest

from rrf_design.texts import column, from_column, json_text, showable, whole

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
    for text in ("", "-5", "+5", "-1,234.50", "plain", "5 = 5"):
        assert sheet_text(text) == text
