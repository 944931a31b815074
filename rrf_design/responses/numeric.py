"""Numbers in text: the paper's integer rule (strict first, else the last standalone integer) and its neighbours.

Standalone means that the digits are the whole number: not a part of a word, of a decimal, of a fraction or of a power.
A thousands comma belongs to its number: reading "12,345" as 345 would invent an answer nobody gave.
"""

from __future__ import annotations

import re
from fractions import Fraction

from rrf_design.responses.parsed import Parsed, Parser, failure, numbers

_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-"})  # typographic minus and en dash, as models write them
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)"
# A sign counts only where no operand stands before it: "12-7" holds 12 and 7, not 12 and -7.
_SIGN = r"(?:(?<![\w)\]%.])[+-])?"
_BEFORE = r"(?<![\w.^/])(?<![\^/] )"
_AFTER = r"(?!\w|\.\d|\s*/\s*\d|\s*\^)"
_STANDALONE = re.compile(rf"{_SIGN}{_BEFORE}{_DIGITS}{_AFTER}", re.ASCII)
_STRICT_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_UNSIGNED = rf"{_DIGITS}(?:\.\d+)?(?:[eE][+-]?\d{{1,3}})?|\.\d+(?:[eE][+-]?\d{{1,3}})?"
_DECIMAL = re.compile(rf"{_SIGN}{_BEFORE}(?:{_UNSIGNED}){_AFTER}", re.ASCII)
_STRICT_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_RATIONAL = re.compile(
    rf"{_SIGN}(?<![\w.^/])(?:{_DIGITS}\s*/\s*{_DIGITS}(?!\w|[./]\d)|(?:{_UNSIGNED})(?!\w|\.\d|\s*/\s*\d))",
    re.ASCII,
)
_STRICT_RATIONAL = re.compile(r"[+-]?\d+(?:/\d+)?", re.ASCII)
# Longer digit strings are no answer to anything, and converting them costs quadratic time.
_MOST_DIGITS = 400


def _value(token: str) -> Fraction | None:
    """The exact number a token stands for; None for a zero denominator."""
    token = token.replace(",", "")
    if "/" in token:
        top, bottom = (part.strip() for part in token.split("/"))
        return Fraction(int(top), int(bottom)) if int(bottom) else None
    return Fraction(token)


class _NumberParser(Parser):
    """One number: the strict pattern on the whole text, else the first or last hit of the loose one."""

    loose: re.Pattern[str] | None
    strict: re.Pattern[str]
    what: str
    first: bool = False

    def parse(self, text: str) -> Parsed:
        text = text.translate(_MINUS)
        bare = text.strip()
        token: str | None = bare if self.strict.fullmatch(bare) else None
        strict = token is not None
        if token is None and self.loose is not None:
            hits = [hit.group() for hit in self.loose.finditer(text)]
            token = (hits[0] if self.first else hits[-1]) if hits else None
        if token is None:
            return failure(f"no {self.what} in the text")
        if sum(character.isdigit() for character in token) > _MOST_DIGITS:
            return failure(f"a number of more than {_MOST_DIGITS} digits")
        value = _value(token)
        if value is None:
            return failure(f"{token!r} divides by zero")
        return numbers([value], strict=strict, canonical=str(value))


class IntegerParser(_NumberParser):
    """``integer-strict``, ``integer-last``, ``integer-first``."""

    strict = _STRICT_INTEGER
    what = "standalone integer"

    def __init__(self, which: str) -> None:
        self.name = f"integer-{which}"
        self.loose = None if which == "strict" else _STANDALONE
        self.first = which == "first"
        if which == "strict":
            self.what = "bare signed integer"

    @property
    def grammar(self) -> str:
        return 'root ::= "-"? [0-9]+'


class RationalParser(_NumberParser):
    """The last fraction, decimal or integer, as an exact rational in lowest terms."""

    name = "rational"
    loose = _RATIONAL
    strict = _STRICT_RATIONAL
    what = "rational number"

    @property
    def grammar(self) -> str:
        return 'root ::= "-"? [0-9]+ ("/" [1-9] [0-9]*)?'


class DecimalParser(_NumberParser):
    """The last decimal number (an integer is one), scientific notation included."""

    name = "decimal"
    loose = _DECIMAL
    strict = _STRICT_DECIMAL
    what = "decimal number"

    @property
    def grammar(self) -> str:
        return 'root ::= "-"? [0-9]+ ("." [0-9]+)?'
