"""A date as a class: its ISO form, so that two answers agree when they name the same day.

Which number of 03/05/2024 is the month is a convention that a text does not show, so such a date is
read only where the formats are declared; the year first, a month by its name, and a day above 12
leave no choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses._finding import LONGEST
from rrf_design.responses.open_text import unwrapped
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, labelled

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAME = "|".join([*_MONTHS, "sept", *(name[:3] for name in _MONTHS if len(name) > 3)])
_YEAR_FIRST = re.compile(r"(?<![\w.,/-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\w/-]|[.,]\d)")
_YEAR_LAST = re.compile(r"(?<![\w.,/-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?![\w/-]|[.,]\d)")
_DAY_FIRST = re.compile(rf"(?<!\w)(\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)?[ -]({_NAME})\.?,?[ -](\d{{4}})(?!\w)", re.I)
_MONTH_FIRST = re.compile(rf"(?<!\w)({_NAME})\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})(?!\w)", re.I)
_SHORT_YEAR = re.compile(r"(?<![\w.,/-])\d{1,2}([-/.])\d{1,2}\1\d{2}(?![\w/-]|[.,]\d)")
_TIME = re.compile(r"(?<=\d)T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?")
_FEWEST, _LATEST = 1000, 9999


class DateParser(Parser):
    """One day, written in full; ``formats`` are those of `datetime.strptime` that the texts keep
    to, beside the ISO form. With ``days_since`` the text has the number of days from that day on.

    A text that names several days has no answer, and neither has one whose day could be its month.
    """

    name = "date"
    dim = 0

    def __init__(self, formats: Sequence[str] | None = None, *, days_since: str | None = None) -> None:
        try:
            self.start = None if days_since is None else date.fromisoformat(days_since)
        except (ValueError, TypeError):
            raise InputError(f"parser 'date': days_since = {days_since!r} is no day such as 2024-01-31") from None
        listed = [formats] if isinstance(formats, str) else list(formats or ())
        for form in listed:
            try:
                if datetime.strptime(datetime(2001, 12, 31).strftime(form), form).date() != date(2001, 12, 31):
                    raise ValueError
            except (ValueError, TypeError):
                raise InputError(
                    f"parser 'date': {form!r} names no day; a format has a day, a month and a year, as in '%d.%m.%Y'"
                ) from None
        self.formats = tuple(listed)

    def parse(self, text: str) -> Parsed:
        if len(text) > LONGEST:
            return failure(f"a text of more than {LONGEST} characters")
        if self.start is not None:
            return self._counted(text, self.start)
        bare = unwrapped(text).strip("\"'")
        declared = {day for form in self.formats if (day := _by_format(bare, form)) is not None}
        if len(declared) == 1:
            return labelled(declared.pop().isoformat(), strict=True)
        if declared:
            return failure("the declared formats read it as different days", ParseStatus.AMBIGUOUS)
        plain = _TIME.sub("", bare)
        found = set(_named(plain))
        if None in found or (not found and _SHORT_YEAR.search(plain)):
            why = "which number is the month is not said; declare formats, or ask for YYYY-MM-DD"
            return failure(why, ParseStatus.AMBIGUOUS)
        if len(found) != 1:
            why = "several days in the text" if found else "no date in the text"
            return failure(why, ParseStatus.AMBIGUOUS if found else ParseStatus.PARSE_FAILURE)
        shown = "".join(day.isoformat() for day in found if day is not None)
        return labelled(shown, strict=bare == shown)

    def _counted(self, text: str, start: date) -> Parsed:
        """The day so many days after the start."""
        from rrf_design.responses._numeric import IntegerParser

        count = IntegerParser("").parse(text)
        if count.value is None:
            return count
        try:
            day = start + timedelta(days=int(count.value[0]))
        except OverflowError:
            return failure("no calendar has that day", ParseStatus.OUT_OF_RANGE)
        return labelled(day.isoformat(), strict=count.strict_ok)

    @property
    def grammar(self) -> str:
        if self.start is not None:
            return 'root ::= "-"? [0-9]+'
        return 'root ::= [0-9] [0-9] [0-9] [0-9] "-" [0-9] [0-9] "-" [0-9] [0-9]'

    @property
    def spec(self) -> Mapping[str, Any]:
        own = {"formats": list(self.formats)} if self.formats else {}
        return {"name": self.name, **own, **({} if self.start is None else {"days_since": self.start.isoformat()})}


def _by_format(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text, form).date()
    except ValueError:
        return None


def _named(text: str) -> Iterator[date | None]:
    """Every day that the text names in full; None for one that can be read in two ways.

    What is no day of the calendar (31 February) is none.
    """
    for hit in _YEAR_FIRST.finditer(text):
        yield from _days((hit[1], hit[3], hit[4]))
    for hit in _YEAR_LAST.finditer(text):
        ways = {*_days((hit[4], hit[3], hit[1])), *_days((hit[4], hit[1], hit[3]))}
        yield from ways if len(ways) < 2 else (None,)
    for hit in _DAY_FIRST.finditer(text):
        yield from _days((hit[3], _month(hit[2]), hit[1]))
    for hit in _MONTH_FIRST.finditer(text):
        yield from _days((hit[3], _month(hit[1]), hit[2]))


def _days(parts: tuple[str, str | int, str]) -> Iterator[date]:
    year, month, day = (int(part) for part in parts)
    if _FEWEST <= year <= _LATEST:
        try:
            yield date(year, month, day)
        except ValueError:
            return


def _month(name: str) -> int:
    return next(number for number, full in enumerate(_MONTHS, start=1) if full.startswith(name.lower()[:3]))
