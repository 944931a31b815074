"""Dates as classes: ISO out, and no guess at which number is the month."""

from __future__ import annotations

import pytest

from rrf_design.errors import InputError
from rrf_design.responses import parsers

ISO = "2024-03-05"


@pytest.mark.parametrize(
    "text", [ISO, f"The date is {ISO}.", "5 March 2024", "March 5th, 2024", "2024/3/5", f"`{ISO}`", f"{ISO}T10:00:00Z"]
)
def test_a_day_written_in_full_is_its_iso_form(text: str) -> None:
    assert parsers.get("date").parse(text).label == ISO


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("05/03/2024", "ambiguous"),
        ("5.3.24", "ambiguous"),
        (f"from {ISO} to 2024-04-05", "ambiguous"),
        ("2024-02-31", "parse failure"),
        ("31/02/2024", "parse failure"),
        ("2024-03-05-17", "parse failure"),
        ("soon", "parse failure"),
    ],
)
def test_what_names_no_single_day_has_no_answer(text: str, status: str) -> None:
    assert parsers.get("date").parse(text).status.value == status


def test_a_day_above_twelve_and_equal_numbers_leave_no_choice() -> None:
    read = parsers.get("date").parse
    assert read("25/03/2024").label == read("03/25/2024").label == "2024-03-25"
    assert read("05/05/2024").label == "2024-05-05"


def test_declared_formats_say_which_number_is_the_month() -> None:
    european, american = ({"name": "date", "formats": [form]} for form in ("%d.%m.%Y", "%m/%d/%Y"))
    assert parsers.get(european).parse("05.03.2024").label == ISO
    assert parsers.get(american).parse("03/05/2024").label == ISO
    both = {"name": "date", "formats": ["%d/%m/%Y", "%m/%d/%Y"]}
    assert parsers.get(both).parse("03/05/2024").status.value == "ambiguous"


def test_a_date_stands_in_a_field_of_json() -> None:
    inside = parsers.get({"name": "json", "field": "due.date", "of": "date"})
    assert inside.parse('{"due": {"date": "5 March 2024"}}').label == ISO


@pytest.mark.parametrize("form", ["%d.%m", "day", "%H:%M"])
def test_a_format_that_names_no_day_is_refused(form: str) -> None:
    with pytest.raises(InputError, match="names no day"):
        parsers.get({"name": "date", "formats": [form]})
