"""Parsers of numbers: the number that the answer is, and the paper's rule of the first or last
standalone integer.

Both read through one tokenizer (``numerals``, ``mentions``). Where a number is picked that a reader
would have to guess at, the result is ``ambiguous``: an erasure, never a value and never the next
best number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses._finding import FoundNumber, Page, page, the_number
from rrf_design.responses._numerals import BOTH, MOST_DIGITS, Mention
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, numbers

_STRICT_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_STRICT_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_STRICT_RATIONAL = re.compile(r"[+-]?\d+(?:/\d+)?", re.ASCII)


# What needs no looking around: one way to read it, whatever the convention. Three decimals may be
# thousands, and are not here.
_PLAIN = re.compile(r"[+-]?[0-9]{1,15}(?:\.(?:[0-9]{1,2}|[0-9]{4,15}))?", re.ASCII)


def check_decimal(decimal: object, parser: str) -> str | None:
    """The declared decimal mark; None leaves it to what the text shows."""
    if decimal is not None and decimal not in BOTH:
        raise InputError(f'parser {parser!r}: decimal is {decimal!r}; it must be "." or ","')
    return decimal if isinstance(decimal, str) else None


def _parsed_number(found: FoundNumber, *, strict: bool, whole: bool = False) -> Parsed:
    """What was found as a reading; ``whole`` refuses fractions."""
    if found.value is None:
        return failure(found.why, ParseStatus.AMBIGUOUS if found.ambiguous else ParseStatus.PARSE_FAILURE)
    if whole and found.value.denominator != 1:
        return failure("the number is not whole")
    return numbers([found.value], strict=strict, canonical=str(found.value))


class _NumberParser(Parser):
    """One number; ``strict`` is the format that was asked for, and is read as it stands."""

    strict: re.Pattern[str]
    whole: bool = False

    def __init__(self, decimal: str | None = None) -> None:
        self.decimal = check_decimal(decimal, self.name)

    def parse(self, text: str) -> Parsed:
        bare = text.strip()
        strict = self.strict.fullmatch(bare) is not None
        if strict and self.decimal != "," and _PLAIN.fullmatch(bare) is not None:
            return _parsed_number(FoundNumber(Fraction(bare)), strict=True, whole=self.whole)
        return self.searched(text, bare, strict=strict)

    def searched(self, text: str, bare: str, *, strict: bool) -> Parsed:
        """The reading of any text: what it marks as its answer, found by looking at all of it."""
        if strict and len(bare) > MOST_DIGITS:
            return failure(f"a number of more than {MOST_DIGITS} digits")
        prepared = page(text, self.decimal)
        found = prepared if isinstance(prepared, FoundNumber) else self.find(prepared)
        return _parsed_number(found, strict=strict, whole=self.whole)

    def find(self, prepared: Page) -> FoundNumber:
        return the_number(prepared, whole=self.whole)

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name} if self.decimal is None else {"name": self.name, "decimal": self.decimal}


class IntegerParser(_NumberParser):
    """``integer-strict``, ``integer-last``, ``integer-first``: by place in the text; ``integer``:
    by what it marks.
    """

    strict = _STRICT_INTEGER
    whole = True

    def __init__(self, which: str = "", decimal: str | None = None) -> None:
        self.name = f"integer-{which}" if which else "integer"
        self._which = which
        super().__init__(decimal)

    def parse(self, text: str) -> Parsed:
        if self._which == "strict" and _STRICT_INTEGER.fullmatch(text.strip()) is None:
            return failure("no bare signed integer in the text")
        return super().parse(text)

    def find(self, prepared: Page) -> FoundNumber:
        if not self._which:
            return the_number(prepared, whole=True)
        return _by_place(prepared, first=self._which == "first")

    @property
    def grammar(self) -> str:
        return 'root ::= "-"? [0-9]+'


def _by_place(prepared: Page, *, first: bool) -> FoundNumber:
    """The first or last number, which must then be a readable whole one; parts of a fraction or a
    power are none.

    A share in percent beside amounts, and a number in brackets with nothing before it, are remarks
    as likely as answers.
    """
    found = [mention for mention in prepared.mentions() if not _part(prepared.text, mention)]
    if not found:
        return FoundNumber(None, "no standalone integer in the text")
    chosen = found[0 if first else -1]
    value = chosen.whole if chosen.value is None else chosen.value
    if value is None:
        return FoundNumber(None, chosen.why, ambiguous=not chosen.impossible)
    if (chosen.percent and not all(mention.percent for mention in found)) or (chosen.spaced and len(found) > 1):
        return FoundNumber(None, f"{chosen.text!r} may be a remark or two numbers", ambiguous=True)
    before = prepared.text[: chosen.start].rpartition("(")[0].rstrip()[-1:]
    if chosen.bracketed and before in ("", ":", "="):
        return FoundNumber(None, f"{chosen.text!r} stands in brackets: a remark, or a negative amount", ambiguous=True)
    return FoundNumber(value)


def _part(text: str, mention: Mention) -> bool:
    around = text[max(0, mention.start - 2) : mention.start].rstrip()[-1:], text[mention.end : mention.end + 2].strip()
    return "/" in mention.text or around[0] in ("/", "^") or around[1].startswith(("^", "**"))


class RationalParser(_NumberParser):
    """The number the answer is: a fraction, decimal or integer, as an exact rational in lowest
    terms.
    """

    name = "rational"
    strict = _STRICT_RATIONAL

    @property
    def grammar(self) -> str:
        return 'root ::= "-"? [0-9]+ ("/" [1-9] [0-9]*)?'


class DecimalParser(_NumberParser):
    """The number the answer is, scientific notation and fractions included."""

    name = "decimal"
    strict = _STRICT_DECIMAL

    @property
    def grammar(self) -> str:
        return 'root ::= "-"? [0-9]+ ("." [0-9]+)?'
