"""Where the project computes what the paper contains: every numbered statement, table, figure,
algorithm, experiment and worked example, in the paper's order.

An entry names a page and on it a condition, a table, or an example of `worked-examples`; a test
holds every name to the code. The list is `coverage.md`; what only argues, cites or describes is not
in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scenarios.kit import Table


@dataclass(frozen=True, slots=True)
class PaperItem:
    """`where` are places on pages: `PAGE condition KEY`, `PAGE table NAME`, or `worked-examples
    example NAME`.
    """

    section: str
    item: str
    where: tuple[str, ...]


def _parsed(line: str) -> PaperItem:
    section, item, where = line.split(" | ")
    return PaperItem(section, item, tuple(where.split("; ")))


_LISTED = Path(__file__).with_name("coverage.md").read_text(encoding="utf-8").splitlines()[2:]
ITEMS: tuple[PaperItem, ...] = tuple(_parsed(line) for line in _LISTED)


def table() -> Table:
    return Table.of(
        "coverage",
        [{"section": i.section, "in_the_paper": i.item, "computed": "; ".join(i.where)} for i in ITEMS],
        shown=None,
    )
