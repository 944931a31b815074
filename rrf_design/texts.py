"""Texts and numbers as they are kept, sent on and shown.

A model may answer with half a surrogate pair or a NUL. Kept means word for word: JSON has an escape
for every code unit. Sent and shown means readable: what UTF-8 can't say becomes the replacement
character, and what a terminal would obey becomes a visible sign.

Answers, delivered values, prices and costs are shown with `digits`: with the digits they have
(11879.56), and without those that rounding left behind (0.1 + 0.2). Bounds have no last digit: they
are cut to the side on which what is shown as proven is proven.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9.,' ]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def json_text(document: Any, **options: Any) -> str:
    """A document as JSON that UTF-8 can hold: readable, with halves of surrogate pairs as escapes
    that read back.
    """
    return escaped(json.dumps(document, **({"ensure_ascii": False} | options)))


def escaped(text: str) -> str:
    """JSON text with halves of surrogate pairs as escapes; only strings can hold them, so it stays
    JSON.
    """
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def whole(text: str) -> str:
    """The text as UTF-8 can say it."""
    return _HALF.sub(REPLACEMENT, text)


def showable(text: str) -> str:
    """The text as a terminal may see it: no half characters, and no control characters but line
    ends and tabs.
    """
    return _CONTROL.sub(REPLACEMENT, whole(text))


def sheet_text(text: str) -> str:
    """The text for a table that people open in a spreadsheet: what it would take for a formula (a
    model may write one) has an apostrophe before it, and stays text.
    """
    return f"'{text}" if _formula(text) else text


def from_sheet(text: str) -> str:
    """The way back from `sheet_text`."""
    return text[1:] if text[:1] == "'" and _formula(text) else text


def _formula(text: str) -> bool:
    """Whether a spreadsheet would run it, behind whatever apostrophes: those of a text that has
    them already are told from ours by one more.
    """
    bare = text.lstrip("'")
    begins = bare[:1] in ("\t", "\r") or bare.lstrip()[:1] in ("=", "+", "-", "@")
    return begins and bool(bare.strip()) and _NUMBER.fullmatch(bare.strip()) is None


def column(text: str) -> str:
    """The text for a database column: as it is where every database can hold it, as JSON where
    not.
    """
    plain = "\x00" not in text and _HALF.search(text) is None and not text.startswith("json:")
    return text if plain else f"json:{json.dumps(text)}"


def from_column(text: str) -> str:
    """The way back from `column`."""
    return str(json.loads(text[5:])) if text.startswith("json:") else text


def digits(value: float) -> str:
    """At least three decimals of anything below a thousand million, and never more digits than a
    float holds.
    """
    return f"{value:.12g}" if abs(value) < 1e9 else f"{value:.15g}"


def rounded_down(value: float, digits: int) -> float:
    """So many significant digits of a finite number, cut off: never above it."""
    return _cut(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int) -> float:
    """The same, never below it."""
    return _cut(value, digits, ROUND_CEILING)


def _cut(value: float, digits: int, rounding: str) -> float:
    exact = Decimal(value)
    place = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return float(exact.quantize(place, rounding=rounding)) if value else 0.0


def cell_text(cell: Any) -> str:
    """A cell as CSV has it: text as it is, nothing for nothing, lists and tables as JSON."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    return cell_json(cell) if isinstance(cell, bool | list | tuple | dict) else str(cell)


def cell_texts(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    """Many rows of cells as CSV has them."""
    return [[cell_text(cell) for cell in row] for row in rows]


def cell_json(value: Any) -> str:
    """JSON in which a `Decimal` keeps its digits; what is not finite is null."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{json.dumps(str(key), ensure_ascii=False)}: {cell_json(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(cell_json, value)) + "]"
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else "null"
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else "null"
    if value is None or isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)  # dates and the like, as they show themselves
