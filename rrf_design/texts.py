"""Broken Unicode: a model may answer with half a surrogate pair or a NUL, and it must be kept, sent on and shown all the same.

Kept means word for word: JSON has an escape for every code unit. Sent and shown means readable: what UTF-8 can't say becomes
the replacement character, what a terminal would obey becomes a visible sign.
"""

from __future__ import annotations

import json
import re
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,' ]*")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def json_text(document: Any, **options: Any) -> str:
    """A document as JSON that UTF-8 can hold: readable, with halves of surrogate pairs as escapes that read back."""
    return escaped(json.dumps(document, **({"ensure_ascii": False} | options)))


def escaped(text: str) -> str:
    """JSON text with halves of surrogate pairs as escapes; only strings can hold them, so it stays JSON."""
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def whole(text: str) -> str:
    """The text as UTF-8 can say it."""
    return _HALF.sub(REPLACEMENT, text)


def showable(text: str) -> str:
    """The text as a terminal may see it: no half characters, and no control characters but line ends and tabs."""
    return _CONTROL.sub(REPLACEMENT, whole(text))


def sheet_text(text: str) -> str:
    """The text for a list that people open in a spreadsheet: what it would take for a formula (a model may write one) stays text."""
    text = showable(text)
    formula = text.lstrip()[:1] in ("=", "+", "-", "@") and _NUMBER.fullmatch(text.strip()) is None
    return f"'{text}" if formula and text.strip() else text


def column(text: str) -> str:
    """The text for a database column: as it is where every database can hold it, as JSON where not."""
    plain = "\x00" not in text and _HALF.search(text) is None and not text.startswith("json:")
    return text if plain else f"json:{json.dumps(text)}"


def from_column(text: str) -> str:
    """The way back from `column`."""
    return str(json.loads(text[5:])) if text.startswith("json:") else text
