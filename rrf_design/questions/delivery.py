"""The delivered table: the input's rows, order and columns, and beside them what may be believed of each.

Written whole or not at all. Cells are written as they were read; what a spreadsheet would take for a formula is data here and
stays data (the documentation says how to open such a file).
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError, MissingDependency
from rrf_design.files import writing

DELIVERED = ("answer", "raw", "verdict", "assumes", "bound", "changed", "cost", "reason", "rank")
FORMS = (".csv", ".tsv", ".jsonl", ".parquet")
Rows = Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
"""Each input row with its result, whose keys are among DELIVERED."""


def delivered_names(columns: Iterable[str]) -> dict[str, str]:
    """What each delivered column is called: its own name, with `rrf_` before it where the input has that already."""
    taken, found = set(columns), {}
    for name in DELIVERED:
        free = name
        while free in taken:
            free = f"rrf_{free}"
        taken.add(free)
        found[name] = free
    return found


def deliver(path: str | os.PathLike[str], rows: Rows, columns: Sequence[str]) -> int:
    """Write the delivered table; the ending chooses the form. `columns` are all of the input's; the number of rows is returned."""
    form = Path(path).suffix.lower()
    if form not in FORMS:
        raise InputError(f"{path}: delivered tables end in {', '.join(FORMS)}, not {form or 'nothing'!r}")
    names = delivered_names(columns)
    merged = ({**row, **{names[key]: result.get(key) for key in DELIVERED}} for row, result in rows)
    every = (*columns, *names.values())
    if form == ".parquet":
        return _write_parquet(path, merged, every)
    with writing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        try:
            count = _write_lines(text, merged) if form == ".jsonl" else _write_csv(text, merged, every, form)
        finally:
            text.detach()
    return count


def _write_csv(text: io.TextIOWrapper, rows: Iterator[dict[str, Any]], columns: Sequence[str], form: str) -> int:
    writer = csv.writer(text, delimiter="\t" if form == ".tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow([cell_text(row.get(name)) for name in columns])
        count += 1
    return count


def _write_lines(text: io.TextIOWrapper, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    for row in rows:
        text.write(json_text(row) + "\n")
        count += 1
    return count


def _write_parquet(path: str | os.PathLike[str], rows: Iterator[dict[str, Any]], columns: Sequence[str]) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependency(f"{path}: Parquet needs pyarrow: pip install 'rrf-design[parquet]'") from None
    cells: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        for name, column in cells.items():
            column.append(row.get(name))

    def array(column: list[Any]) -> Any:
        try:
            return pyarrow.array(column)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
            return pyarrow.array(
                [None if cell is None else cell_text(cell) for cell in column]
            )  # cells of several kinds

    table = pyarrow.table([array(column) for column in cells.values()], names=list(cells))
    with writing(path) as stream:
        pyarrow.parquet.write_table(table, stream)
    return int(table.num_rows)


def cell_text(cell: Any) -> str:
    """A cell as CSV has it: text as it is, nothing for nothing, lists and tables as JSON."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    return json_text(cell) if isinstance(cell, bool | list | tuple | dict) else str(cell)


def json_text(value: Any) -> str:
    """JSON in which a `Decimal` keeps its digits; what is not finite is null."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{json.dumps(str(key), ensure_ascii=False)}: {json_text(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else "null"
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else "null"
    if value is None or isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)  # dates and the like, as they show themselves
