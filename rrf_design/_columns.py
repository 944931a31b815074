"""Columns for a problem file: nodes, relations and anchors that lie beside it as one table each.

A column is a key of the entries and a row is an entry; a null cell is an absent key. What a table
of plain columns says is checked a column at a time. That check only ever says yes: whatever it
can't vouch for (a key that speaks of another one, a list, a cell that does not fit) is read row by
row as if it stood in the problem file, which also finds the row and the words for a fault.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError, create_model

from rrf_design import documents
from rrf_design.blocks import Transport
from rrf_design.errors import InputError, MissingDependency
from rrf_design.field import MOST_COORDINATES
from rrf_design.files import SECTIONS, known_keys, one_line, parse_text, read_source
from rrf_design.problem import Problem

ENDINGS = (".parquet", ".arrow", ".feather", ".jsonl")
PLAIN_TEXT = frozenset(
    ("id", "unit", "model", "prompt", "system", "family", "tail", "head", "node", "take", "after", "read_from")
)
"""Keys whose text is always text; in the others, which may hold a list or a table, text that begins
like one is read as JSON.
"""

_REAL = (-np.inf, True)
_AT_LEAST_0 = (0.0, True)
_ABOVE_0 = (0.0, False)
_NUMBERS = {"cost": _AT_LEAST_0, "weight": _ABOVE_0, "sigma": _ABOVE_0, "uncertainty": _AT_LEAST_0}
BULK: Mapping[str, tuple[Mapping[str, bool], Mapping[str, tuple[float, bool]]]] = {
    "nodes": (
        {"id": True, "unit": False, "model": False, "prompt": False, "system": False},
        {"cost": _AT_LEAST_0, "price": _AT_LEAST_0, "tolerance": _ABOVE_0},
    ),
    "relations": ({"id": True, "tail": True, "head": True, "family": False}, {"offset": _REAL, **_NUMBERS}),
    "anchors": ({"id": True, "node": True, "family": False}, {"value": _REAL, **_NUMBERS}),
}
"""By section: keys of text (must every row have it?) and of numbers (least, and whether that one
counts) that no other key of a row speaks of. What is not here is read row by row.
"""


def with_tables(document: dict[str, Any], folder: Path, *, bare: bool) -> dict[str, Any]:
    """The content of a problem file with entries where it names tables; `bare` leaves them as
    unchecked dictionaries, for who still has something to fill in.
    """
    filled = {**document}
    for section in BULK:
        named = document.get(section)
        if isinstance(named, dict) and "table" in named:
            path = folder / _file_name(section, named)
            try:
                filled[section] = _entries(section, path, bare=bare)
            except InputError as error:
                raise InputError(f"{path}: {error}") from None
    return filled


def _file_name(section: str, named: dict[str, Any]) -> str:
    for key in named:
        if key != "table":
            raise InputError(f"{section}: unknown key {key!r}{known_keys(key, ['table'])}")
    if not isinstance(named.get("table"), str) or not named["table"]:
        raise InputError(f"{section}: table must be the name of a file, not {named['table']!r:.60}")
    return str(named["table"])


def _entries(section: str, path: Path, *, bare: bool) -> list[Any]:
    model, ending = SECTIONS[section], path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"tables of {section} end in {', '.join(ENDINGS)}, not {ending or 'nothing'!r}")
    if not path.is_file():
        raise InputError("no such file")
    if ending == ".jsonl":
        rows = _json_lines(path)
        _need_known(model, dict.fromkeys(key for row in rows for key in row))
    else:
        table = _arrow(path)
        _need_known(model, table.column_names)
        if not bare and (built := _in_bulk(section, model, table)) is not None:
            return built
        rows = _arrow_rows(table)
    return rows if bare or _names_a_log(rows) else _row_by_row(section, rows)


def _names_a_log(rows: Sequence[dict[str, Any]]) -> bool:
    return any(isinstance(row.get("estimated_from"), str) for row in rows)


def _need_known(model: type[BaseModel], columns: Sequence[str] | dict[str, None]) -> None:
    known = [field.alias or name for name, field in model.model_fields.items()]
    for place, column in enumerate(columns):
        if column not in known:
            raise InputError(f"unknown column {column!r}{known_keys(column, known)}")
        if column in list(columns)[:place]:
            raise InputError(f"the column {column!r} stands twice")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    rows = []
    text = read_source(path)
    for number, line in documents.text_lines(text):
        try:
            row = parse_text(line, ".json")
            if not isinstance(row, dict):
                raise InputError(f"must be a JSON object, not {type(row).__name__}")
        except InputError as error:
            raise InputError(f"line {number}: {error}") from None
        rows.append({key: cell for key, cell in row.items() if cell is not None})
    return rows


def pyarrow_for(path: str | os.PathLike[str]) -> Any:
    """pyarrow with its Parquet; MissingDependency names the file that needs it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        kind = "Parquet" if Path(path).suffix.lower() == ".parquet" else "Arrow"
        raise MissingDependency(f"{path}: {kind} needs pyarrow: pip install 'rrf-design[parquet]'") from None
    return pyarrow


def _arrow(path: Path) -> Any:
    pyarrow = pyarrow_for(path)
    try:
        if path.suffix.lower() == ".parquet":
            table = pyarrow.parquet.ParquetFile(path).read()
        else:
            with pyarrow.OSFile(str(path)) as stream:
                magic = stream.read(6)
                stream.seek(0)
                opened = pyarrow.ipc.open_file if magic == b"ARROW1" else pyarrow.ipc.open_stream
                table = opened(stream).read_all()
        table.validate(full=True)
        return table
    except Exception as error:  # pyarrow's own errors have many roots
        kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
        raise InputError(f"not {kind} that can be read ({str(error).splitlines()[0][:160]})") from None


def _arrow_rows(table: Any) -> list[dict[str, Any]]:
    """Rows without their null cells; text in a key that may hold a list or a table is JSON if it
    begins like one.
    """
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    for name in table.column_names:
        try:
            cells = table.column(name).to_pylist(maps_as_pydicts="strict")
        except (ValueError, KeyError) as error:
            raise InputError(f"column {name!r} can't be read ({str(error).splitlines()[0][:160]})") from None
        for number, cell in enumerate(cells):
            if cell is not None:
                rows[number][name] = _cell(name, cell, number)
    return rows


def _cell(name: str, cell: Any, number: int) -> Any:
    if isinstance(cell, str) and name not in PLAIN_TEXT and cell[:1] in ("{", "["):
        try:
            return parse_text(cell, ".json")
        except InputError as error:
            raise InputError(f"row {number + 1}: {name}: {error}") from None
    return _without_nulls(cell)


def _without_nulls(cell: Any) -> Any:
    """A struct has every field in every row; those that are null are absent."""
    if isinstance(cell, dict):
        return {key: _without_nulls(item) for key, item in cell.items() if item is not None}
    return [_without_nulls(item) for item in cell] if isinstance(cell, list) else cell


@lru_cache
def _section(section: str) -> type[BaseModel]:
    fields: dict[str, Any] = {section: (Problem.model_fields[section].annotation, ...)}
    return create_model("_Section", **fields)


def _row_by_row(section: str, rows: list[dict[str, Any]]) -> list[Any]:
    """Every row as an entry of the file would be checked; InputError names the first faulty one."""
    try:
        return list(getattr(_section(section)(**{section: rows}), section))
    except ValidationError as error:
        number = error.errors(include_url=False)[0]["loc"][1]
        assert isinstance(number, int)
        raise InputError(f"row {number + 1}: {one_line(error, {section: rows})}") from None


def _in_bulk(section: str, model: type[BaseModel], table: Any) -> list[Any] | None:
    """The entries of a table of plain columns; None where some cell is not plainly right."""
    texts, numbers = BULK[section]
    if any(key not in table.column_names for key, needed in texts.items() if needed):
        return None
    cells: dict[str, list[Any]] = {}
    for name in table.column_names:
        if name in texts:
            found = _texts(table.column(name), needed=texts[name])
        elif name in numbers:
            least, counts = numbers[name]
            found = _numbers(table.column(name), least, counts=counts)
        elif name == "dim":
            found = _dims(table.column(name))
        elif name == "transport":
            found = _scales(table.column(name))
        else:
            return None
        if found is None:
            return None
        cells[name] = found
    return _built(model, cells)


def _texts(column: Any, *, needed: bool) -> list[Any] | None:
    import pyarrow.compute as compute
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (types.is_string(column.type) or types.is_large_string(column.type)) or (needed and column.null_count):
        return None
    if compute.min(compute.binary_length(column)).as_py() == 0:
        return None
    found: list[Any] = column.to_numpy().tolist()
    return found


def _numbers(column: Any, least: float, *, counts: bool) -> list[Any] | None:
    from pyarrow import types

    if not (types.is_integer(column.type) or types.is_float32(column.type) or types.is_float64(column.type)):
        return None
    known = np.asarray(column.drop_null()).astype(np.float64)
    if not np.all(np.isfinite(known) & ((known >= least) if counts else (known > least))):
        return None
    if not column.null_count:
        found: list[Any] = known.tolist()
        return found
    return _spread(column, known)


def _spread(column: Any, known: Any) -> list[Any]:
    """The values that are there at their places, and None elsewhere."""
    found = np.full(len(column), None, dtype=object)
    found[np.asarray(column.is_valid())] = known.tolist()
    spread: list[Any] = found.tolist()
    return spread


def _dims(column: Any) -> list[Any] | None:
    from pyarrow import types

    if not types.is_integer(column.type):
        return None
    known = np.asarray(column.drop_null())
    if np.any(known < 1) or np.any(known > MOST_COORDINATES):
        return None
    return _spread(column, known)


def _scales(column: Any) -> list[Any] | None:
    """Transports of a struct of nothing but `scale`; equal ones are one object."""
    from pyarrow import types

    if not types.is_struct(column.type) or [field.name for field in column.type] != ["scale"]:
        return None
    whole = column.combine_chunks()
    scales = _numbers(whole.field("scale"), -np.inf, counts=True)
    if scales is None:
        return None
    made: dict[Any, Transport] = {}
    found: list[Any] = []
    for there, scale in zip(np.asarray(whole.is_valid()).tolist(), scales, strict=True):
        key = (scale, str(scale))  # 0.0 and -0.0 are equal, and not the same
        if there and key not in made:
            made[key] = Transport(**({} if scale is None else {"scale": scale}))
        found.append(made[key] if there else None)
    return found


def _built(model: type[BaseModel], cells: dict[str, list[Any]]) -> list[Any]:
    """Entries of checked cells: what validation would give, without asking it once a row."""
    usual = {name: field.get_default() for name, field in model.model_fields.items()}
    names = tuple(cells)
    filled = []
    for name in names:
        default = usual[name]
        filled.append(cells[name] if default is None else [default if cell is None else cell for cell in cells[name]])
    given = zip(*(cells[name] for name in names), strict=True)
    sets: dict[tuple[bool, ...], set[str]] = {}
    put, new = object.__setattr__, model.__new__
    result = []
    for row, bare in zip(zip(*filled, strict=True), given, strict=True):
        entry = new(model)
        values = usual.copy()
        values.update(zip(names, row, strict=True))
        there = tuple([cell is not None for cell in bare])
        if (named := sets.get(there)) is None:
            named = sets[there] = {name for name, known in zip(names, there, strict=True) if known}
        put(entry, "__dict__", values)
        put(entry, "__pydantic_fields_set__", named)
        put(entry, "__pydantic_extra__", None)
        put(entry, "__pydantic_private__", None)
        result.append(entry)
    return result
