"""One statement or printed figure of the paper that does not hold as it stands: what is computed, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.base import ConditionVerdict, Expectation, Table

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Slip:
    """`compute` gives the rows of a table, `judge` whether they show what `text` says and with which numbers, `note` a paragraph from them."""

    key: str
    text: str
    paper: str
    caption: str
    compute: Callable[[], Rows]
    judge: Callable[[Rows], tuple[bool, str]]
    note: Callable[[Rows], str]
    revised: str = ""

    @property
    def expectation(self) -> Expectation:
        return Expectation(self.key, self.text, self.paper, self.revised)

    def verdict(self, rows: Rows) -> ConditionVerdict:
        return ConditionVerdict.of(self.key, *self.judge(rows))

    def table(self, rows: Rows) -> Table:
        return Table.of(self.key, rows, caption=self.caption)
