"""One run of digits and separators is one numeral: read whole, or not at all.

A numeral is read under a convention: which mark separates the decimals, "." or ",". Nobody says which one they use, so
a numeral counts as read only if every convention that it fits gives the same number: ``1,234.50``, ``1.234,50``,
``12.5``, ``170,00``, ``12'345`` and ``1,234,567`` do, ``1,234`` and ``1.234`` do not. A declared convention, or other
numerals of the same text that fit one convention only, settles those.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

POINT, COMMA = ".", ","
BOTH = (POINT, COMMA)
# Longer digit strings are no answer to anything, and converting them costs quadratic time.
MOST_DIGITS = 400

HARD = "\u00a0"  # stands for every space that keeps digits together
ARABIC_DECIMAL, ARABIC_GROUP = "\u066b", "\u066c"
RUN = rf"[0-9]+(?:[.,'_ {HARD}{ARABIC_DECIMAL}{ARABIC_GROUP}][0-9]+)*"
_SEPARATOR = re.compile(r"[^0-9]")
_GROUPING = (COMMA, POINT, " ", HARD, "'", "_", ARABIC_GROUP)
_NUMERAL = re.compile(RUN)
_DATE = re.compile(r"(?:[0-3]?[0-9]\.[01]?[0-9]\.(?:[0-9]{2}|[0-9]{4})|[0-9]{4}\.[01]?[0-9]\.[0-3]?[0-9])")

_INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_HIDING = re.compile(
    "[\u202d\u202e]"  # an override shows the characters in another order than they stand
    rf"|\d[.,'{ARABIC_DECIMAL}{ARABIC_GROUP}]?[{_INVISIBLE}]+[.,'{ARABIC_DECIMAL}{ARABIC_GROUP}]?\d"
    rf"|\d[{_INVISIBLE}]*[\u0300-\u036f\u20d0-\u20f0]"  # struck out, overlined, enclosed
)
_STRETCH = re.compile(r"\d(?:[.,'_ ]?\d)+")
_CHARACTERS = {
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2013\ufe63\uff0d"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"), HARD),
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u00b4\uff07"), "'"),
    **dict.fromkeys(map(ord, "\u2044\u2215\uff0f"), "/"),
    **{ord("\uff0c"): ",", ord("\uff0e"): ".", ord("\uff05"): "%", ord("\u066a"): "%", ord("\uff04"): "$"},
    **{ord("\uffe5"): "\u00a5", ord("\ufe69"): "$", ord("\uff0b"): "+", ord("\uff1d"): "=", ord("\uff1a"): ":"},
}
_FORMATTING = re.compile(f"[{_INVISIBLE}]")


class _Table(dict[int, "str | int"]):
    """Translation of single characters; digits of every script become ASCII digits."""

    def __missing__(self, code: int) -> str | int:
        digit = unicodedata.decimal(chr(code), None)
        self[code] = code if digit is None else str(digit)
        return self[code]


_TABLE = _Table(_CHARACTERS)


def hidden(text: str) -> str | None:
    """Why what is shown may differ from what is stored, or None: invisible, struck-out, mixed or reordered digits."""
    if text.isascii():
        return None
    if _HIDING.search(text):
        return "invisible or reordering characters at its digits"
    for stretch in _STRETCH.finditer(text):
        digits = [c for c in stretch.group() if c.isdecimal()]
        if len({ord(c) - unicodedata.decimal(c) for c in digits}) > 1:
            return "digits of several scripts in one number"
    return None


def plain(text: str) -> str:
    """The text with ASCII digits, one kind of minus, hard space, apostrophe and slash, and no invisible characters."""
    return text if text.isascii() else _FORMATTING.sub("", text).translate(_TABLE)


@lru_cache(256)  # one numeral is looked at for the conventions of its text, and again for its value
def reading(run: str, decimal: str) -> Fraction | None:
    """The number a run stands for when ``decimal`` separates its decimals; None if it does not fit."""
    marks = _SEPARATOR.findall(run)
    groups = _SEPARATOR.split(run)
    if sum(map(len, groups)) > MOST_DIGITS:
        return None
    decimals = ""
    if marks and marks[-1] in (decimal, ARABIC_DECIMAL):
        decimals = groups.pop()
        marks.pop()
    if marks and not _grouped(marks, groups, decimal):
        return None
    return Fraction(int("".join(groups) + decimals), 10 ** len(decimals))


def _grouped(marks: list[str], groups: list[str], decimal: str) -> bool:
    """Digits in threes, or as in India in twos before the last three, between one and the same mark."""
    mark = marks[0]
    if set(marks) != {mark} or mark == decimal or mark not in _GROUPING:
        return False
    head, *middle, tail = map(len, groups)
    if groups[0].startswith("0") or tail != 3:
        return False
    threes = head <= 3 and all(size == 3 for size in middle)
    indian = mark == COMMA and bool(middle) and head <= 2 and all(size == 2 for size in middle)
    return threes or indian


def readings(run: str, decimals: Iterable[str] = BOTH) -> frozenset[Fraction]:
    """All numbers the run may stand for under the given conventions."""
    return frozenset(value for decimal in decimals if (value := reading(run, decimal)) is not None)


def is_date(run: str) -> bool:
    return _DATE.fullmatch(run) is not None


# A symbol before the amount and a comma before three digits: nobody writes dollars with three decimals and a comma.
_MONEY_COMMA = re.compile(r"[$\u00a3\u20b9] ?[0-9]{1,3},[0-9]{3}(?![0-9.,])")


def conventions(text: str) -> tuple[str, ...]:
    """The conventions that the numerals of a (plain) text leave open: one if all that show one show the same, else both.

    What shows one: both marks in a numeral, several groups, decimals that are no group of three. A comma before one
    digit may be a list (``3,5``) and shows nothing.
    """
    shown: set[str] = {POINT} if _MONEY_COMMA.search(text) else set()
    for match in _NUMERAL.finditer(text):
        run = match.group()
        if len(run) > 40 or is_date(run) or ("." not in run and "," not in run):
            continue
        fits = [decimal for decimal in BOTH if reading(run, decimal) is not None]
        pair = run.count(",") == 1 and "." not in run and len(run.rpartition(",")[2]) == 1 and not run.startswith("0,")
        if len(fits) == 1 and not pair:
            shown.add(fits[0])
            if len(shown) > 1:
                break
    return (shown.pop(),) if len(shown) == 1 else BOTH
