"""On which line of a recipe an entry or a key stands, so that an error in a row leads back to what was written.

The TOML parser keeps no lines. This finds the heads `[answer]` and `[[ask]]` and the keys below them, past texts of several
lines; it is for messages only, and where it finds nothing (a recipe in JSON) the message goes without.
"""

from __future__ import annotations

import re
from collections import Counter

_HEAD = re.compile(r"\s*\[(\[?)\s*([\w-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r'\s*"?([\w-]+)"?\s*=')

Places = dict[tuple[str, int, str], int]
"""Line by section, place of the entry in its section, and key ("" for the head)."""


def lines_by_entry(text: str) -> Places:
    """Where each entry and each of its keys begins; lines count from 1."""
    found: Places = {}
    seen: Counter[str] = Counter()
    section, place, closing = "", 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            closing = "" if line.count(closing) % 2 else closing
            continue
        head, key = _HEAD.match(line), _KEY.match(line)
        if head is not None:
            section = head[2]
            place = seen[section] if head[1] else 0
            seen[section] += 1
            found.setdefault((section, place, ""), number)
        elif key is not None:
            found.setdefault((section, place, key[1]), number)
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2:
                closing = quotes
                break
    return found
