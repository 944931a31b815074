"""One statement or printed figure of the paper that does not hold as it stands: what is computed,
and how it is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Slip:
    """`compute` gives the rows of a table, `judge` whether they show what the protocol says and
    with which numbers, `note` a paragraph from them.
    """

    key: str
    caption: str
    compute: Callable[[], Rows]
    judge: Callable[[Rows], tuple[bool, str]]
    note: Callable[[Rows], str]
