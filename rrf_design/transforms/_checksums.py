"""Check digits of IBAN, ISBN, EAN, Luhn and VAT numbers, and days that the calendar has.

`refuted` says why a number can't be one of its kind, and nothing where that is not certain: a
country whose rule nobody listed, a number that lost its leading zeros where it was read as a number
(they are put back).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date

_CALLED = re.compile(
    r"\A(?:IBAN|ISBN(?:10(?=\d{9}[\dX]\Z)|13(?=\d{13}\Z))?|(?:EAN|GTIN)(?:13(?=\d{13}\Z)|8(?=\d{8}\Z))?)"
)
"""What a number may be called in front of it."""
_SHAPED_DAY = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")


def refuted(kind: str, text: str) -> str | None:
    """Why this is no number of its kind; None where it may be one.

    >>> from rrf_design.transforms._checksums import refuted
    >>> refuted("iban", "DE88370400440532013000"), refuted("iban", "DE89370400440532013000")
    ('its check digits do not fit', None)
    """
    if kind in ("date", "luhn"):
        return _KINDS[kind](text)
    bare = "".join(filter(str.isalnum, text)).upper()
    return _KINDS[kind](_CALLED.sub("", bare) if kind != "vat" else bare)


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _luhn_fits(digits: str) -> bool:
    doubled = (int(d) * (2 if at % 2 else 1) for at, d in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _said(fits: bool) -> str | None:
    return None if fits else "its check digits do not fit"


def _as_number(text: str) -> int:
    """Letters count from A = 10 on."""
    return int("".join(str(int(character, 36)) for character in text))


def _iban(text: str) -> str | None:
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", text):
        return "it is not two letters, two digits and 11 to 30 more"
    return _said(_as_number(text[4:] + text[:4]) % 97 == 1)


def _isbn(text: str) -> str | None:
    if re.fullmatch(r"\d{1,9}[\dX]", text) and (len(text) == 10 or text.isdigit()):
        ten = text.zfill(10)
        last = 10 if ten[9] == "X" else int(ten[9])
        return _said((_weighted(ten, range(10, 1, -1)) + last) % 11 == 0)
    return _ean(text) if len(text) == 13 else "it has neither 10 nor 13 digits"


def _ean(text: str) -> str | None:
    if not re.fullmatch(r"\d{1,14}", text):
        return "it is not 8, 12, 13 or 14 digits"
    padded = text.zfill(14)  # leading zeros change no check digit
    return _said(_weighted(padded, (3, 1) * 7) % 10 == 0)


def _luhn(text: str) -> str | None:
    digits = re.sub(r"[\s./-]", "", text)  # letters and asterisks may hide some of it
    return _said(_luhn_fits(digits)) if digits.isdigit() and digits.isascii() else None


def _german(digits: str) -> bool:
    product = 10
    for digit in digits[:8]:
        total = (int(digit) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(digits[8])


def _austrian(digits: str) -> bool:
    twice = (2 * int(d) if at % 2 else int(d) for at, d in enumerate(digits[1:8]))
    total = sum(n // 10 + n % 10 for n in twice)
    return (10 - (total + 4) % 10) % 10 == int(digits[8])


def _dutch(digits: str) -> bool:
    old = _weighted(digits[:8], range(9, 1, -1)) % 11 == int(digits[8])
    return old or _as_number("NL" + digits) % 97 == 1


def _french(digits: str) -> bool:
    """The two characters before the SIREN; those with a letter follow another rule."""
    return not digits[:2].isdigit() or (12 + 3 * (int(digits[2:]) % 97)) % 97 == int(digits[:2])


def _portuguese(digits: str) -> bool:
    return (11 - _weighted(digits, range(9, 1, -1)) % 11) % 11 % 10 == int(digits[8])


_COUNTRIES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "AT": (r"U\d{8}", _austrian),
    "BE": (r"[01]?\d{9}", lambda d: 97 - int(d[:-2]) % 97 == int(d[-2:])),
    "DE": (r"\d{9}", _german),
    "FI": (r"\d{8}", lambda d: _weighted(d, (7, 9, 10, 5, 8, 4, 2, 1)) % 11 == 0),
    "FR": (r"[A-Z0-9]{2}\d{9}", _french),
    "IT": (r"\d{11}", _luhn_fits),
    "LU": (r"\d{8}", lambda d: int(d[:6]) % 89 == int(d[6:])),
    "NL": (r"\d{9}B\d{2}", _dutch),
    "PL": (r"\d{10}", lambda d: _weighted(d, (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11 == int(d[9])),
    "PT": (r"\d{9}", _portuguese),
    "SE": (r"\d{12}", lambda d: _luhn_fits(d[:10])),
}
"""Form and rule of the VAT numbers of a country, without its two letters."""


def _vat(text: str) -> str | None:
    rule = _COUNTRIES.get(text[:2])
    if rule is None:
        return None  # another country, or none is named
    form, fits = rule
    if not re.fullmatch(form, text[2:]):
        return f"it has not the form of {text[:2]}"
    return _said(fits(text[2:]))


def _date(text: str) -> str | None:
    """A day in its ISO form that no calendar has."""
    for match in _SHAPED_DAY.finditer(text):
        try:
            date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            return "there is no such day"
    return None


_KINDS: dict[str, Callable[[str], str | None]] = {
    "iban": _iban,
    "isbn": _isbn,
    "ean": _ean,
    "luhn": _luhn,
    "vat": _vat,
    "date": _date,
}
DIGITS = tuple(_KINDS)
"""Kinds of numbers whose digits can be checked."""
