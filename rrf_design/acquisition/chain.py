"""Links between the rows of a journal, so that a changed, lost, doubled or exchanged row is noticed and never believed.

Each row carries a SHA-256 over the link of the row before it and everything it says itself; the first goes back to the run's header, and the header
names a digest of the run's problems. What a disk, a careless `update` or a merge of two files does to a row breaks its link. This is no signature: who knows the
recipe can write the whole chain anew. Nor can rows be missed that were cut off at the end, because a killed process leaves the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rrf_design.errors import Refused

Event = TypeVar("Event")
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


def damaged(what: str, reason: str, shown: str) -> Refused:
    return Refused(
        f"{what}: {reason}; the journal was changed or is damaged, and nothing of the run is believed; restore {shown} from a copy"
    )


def replay(events: Iterable[Event], apply: Callable[[Event], None], *, run: str, shown: str) -> None:
    """Apply what a journal says, in order; Refused where an event does not follow from those before it."""
    for number, event in enumerate(events):
        try:
            apply(event)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as fault:
            kind = type(fault).__name__
            raise damaged(
                f"run {run}, event {number}", f"it does not follow from those before it ({kind})", shown
            ) from None
