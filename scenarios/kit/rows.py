"""Rows of results: taken from finished parts, counted, grouped and summarised.

A row is a mapping from column to cell, all rows of a table with the same keys. Names of columns are
given as one text with blanks between them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from scenarios.kit.scenario import Done, Part

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def values(done: Sequence[Done], has: str = "", **part: Any) -> list[Any]:
    """What the parts returned; of those alone that have the entry `has` and these entries."""
    return [
        one.value
        for one in done
        if (not has or has in one.part) and all(one.part.get(key) == wanted for key, wanted in part.items())
    ]


def rows_of(done: Sequence[Done], has: str = "", **part: Any) -> list[Any]:
    """The rows of parts that return lists of rows; selected as `values` does."""
    return [row for value in values(done, has, **part) for row in value]


def batches(whole: int, size: int, **head: Any) -> Iterator[Part]:
    """Parts `first`, `count` that cover 0 to `whole`, each with the entries of `head`."""
    for first in range(0, whole, size):
        yield {**head, "first": first, "count": min(size, whole - first)}


def seeds_of(part: Part) -> range:
    """The seeds of a batch."""
    return range(part["first"], part["first"] + part["count"])


def where(rows: Rows, **cells: Any) -> list[Any]:
    """The rows with these cells."""
    return [row for row in rows if all(row[name] == cell for name, cell in cells.items())]


def column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


def curve(rows: Rows, x: str, y: str) -> tuple[list[Any], list[Any]]:
    """Two columns, as a picture takes them."""
    return column(rows, x), column(rows, y)


def pick(row: Mapping[str, Any], names: str) -> Row:
    return {name: row[name] for name in names.split()}


def totals(rows: Rows, names: str) -> Row:
    """The sum of each column; rows without it count nothing."""
    return {name: sum(row.get(name, 0) for row in rows) for name in names.split()}


def count(rows: Rows, name: str) -> int:
    """In how many rows the column is true."""
    return sum(bool(row[name]) for row in rows)


def missing(rows: Rows, name: str) -> int:
    """In how many rows the column is false."""
    return len(rows) - count(rows, name)


def mean(found: Sequence[float]) -> float | None:
    import numpy as np

    return float(np.mean(found)) if len(found) else None


def median(found: Sequence[float]) -> float | None:
    return float(statistics.median(found)) if found else None


AGGREGATES: Mapping[str, Callable[[Any], Any]] = {
    "count": len,
    "first": lambda cells: cells[0],
    "sum": sum,
    "mean": mean,
    "median": median,
    "least": lambda cells: min(cells, default=None),
    "largest": lambda cells: max(cells, default=None),
}


def summary(rows: Rows, columns: str) -> Row:
    """One row from many: `name=mean` is the mean of the column `name`, `name=mean:column` that of
    another, `median:column` is called median_column; `name=count` counts the rows.
    """
    result: Row = {}
    for word in columns.split():
        name, _, rest = word.rpartition("=")
        kind, _, source = rest.partition(":")
        cells = rows if kind == "count" else [row[source or name] for row in rows]
        result[name or f"{kind}_{source}"] = AGGREGATES[kind](cells)
    return result


def groups(rows: Rows, by: str) -> dict[tuple[Any, ...], list[Any]]:
    """Rows by the cells of these columns, in the order in which they come."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in by.split()), []).append(row)
    return found


def grouped(rows: Rows, by: str, columns: str) -> list[Row]:
    """A `summary` of each group, after the cells that it has in common."""
    return [{**pick(group[0], by), **summary(group, columns)} for group in groups(rows, by).values()]
