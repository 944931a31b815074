"""Links of the journal's rows, and the chains that they make.

A link is a SHA-256 over the link of the row before in the chain and everything that the row says;
it stands in the row's own text, as the last key.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PER_ITEM = 3
"""The first format with a chain for every item."""
LINKED = ("seq", "kind", "purchase", "attempt", "at", "body")
"""What a row's link speaks of, beside its item."""


class Chains:
    """The chains of a run and the last link of each: one for every item and one for the rest, by
    the item's column and None; before format 3 one for all; none in a run without links.
    """

    def __init__(self, start: str, format_version: int) -> None:
        self._start = start
        self.linked, self.per_item = bool(start), format_version >= PER_ITEM
        self.last: dict[str | None, str] = {}

    def of(self, row: Any) -> str | None:
        """The chain of a row that was read."""
        return row.item if self.per_item else None

    def next(self, cells: Mapping[str, Any], before: str | None = None) -> str:
        """The link of a row with these cells: after that link, else after the last one of its
        chain, else after the header.
        """
        chain = cells["item"] if self.per_item else None
        before = before or self.last.get(chain)
        if before is None:
            before = self._start if chain is None else link(self._start, chain)
        own = () if chain is None else (chain,)
        return link(before, *(cells[name] for name in LINKED), *own)

    def seal(self, rows: Iterable[dict[str, Any]]) -> dict[str | None, str]:
        """Put their links into rows that are about to be written; the last link of each of their
        chains.
        """
        ahead: dict[str | None, str] = {}
        for row in rows if self.linked else ():
            chain = row["item"] if self.per_item else None
            ahead[chain] = self.next(row, ahead.get(chain))
            row["body"] = with_link(row["body"], ahead[chain])
        return ahead


_LINK = re.compile(r'"link":"([0-9a-f]{64})"\}')
_LENGTH = len('"link":""}') + 64


def link(before: str, *cells: str | int | float | None) -> str:
    """The link of a row that says `cells` and follows the row with the link `before`."""
    total = hashlib.sha256(before.encode())
    for cell in cells:
        part = b"-" if cell is None else b"=" + str(cell).encode("utf-8", "surrogatepass")
        total.update(b"\n%d\n" % len(part) + part)
    return total.hexdigest()


def with_link(text: str, mark: str) -> str:
    """The text of a JSON object, with its link as the last key."""
    return f'{text[:-1]}{"," if len(text) > 2 else ""}"link":"{mark}"}}'


def without_link(text: str) -> tuple[str, str]:
    """The text as it was before it got its link, and the link; an empty link where it has none."""
    found = _LINK.fullmatch(text, max(0, len(text) - _LENGTH))
    return (text[: found.start()].removesuffix(",") + "}", found[1]) if found else (text, "")


def texts_digest(rows: Iterable[Sequence[str]]) -> str:
    """One digest over rows of texts, in order."""
    mark = ""
    for row in rows:
        mark = link(mark, *row)
    return mark
