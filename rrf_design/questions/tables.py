"""Tables as people have them: CSV, TSV, JSON, JSON lines and Parquet files, data frames, any
iterable of mappings.

A cell stays what it is: `007` is not seven, `1.10` is not 1.1, and nothing is a date. Files are
read row by row, so that a million rows need the memory of one; only a JSON array is read whole, and
what can be iterated but once is kept. Rows that can't be read go to the caller's `RowFaults` and
are left out, so that all of them can be named together: who mends a table wants all of its faults
at once, before anything is bought.
"""

from __future__ import annotations

import csv
import math
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rrf_design import documents
from rrf_design.errors import InputError
from rrf_design.files import suggestion

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
LONGEST_LINE = 64 * 2**20
"""Bytes. An unclosed quote takes the rest of the file for one cell; this is where it ends."""
Cells = Mapping[str, Any]


class _TableRow(NamedTuple):
    """One row: its number (from 1), its cells by column, and where `DataTable.at` finds it
    again.
    """

    number: int
    cells: Cells
    place: int


class DataTable(ABC):
    """A named sequence of rows that can be gone through again and again."""

    name: str
    columns: tuple[str, ...] | None = None
    """In order, where the table has a header; None where each row has its own keys."""

    @abstractmethod
    def rows(self, faults: RowFaults) -> Iterator[_TableRow]:
        """All rows that can be read; the others are added to `faults`."""

    @abstractmethod
    def at(self, number: int, place: int) -> Cells:
        """The cells of one row, by what `rows` said of it."""


def open_table(source: Any, *, separator: str | None = None, encoding: str = "utf-8") -> DataTable:
    """The table that a path, a data frame, or an iterable of mappings is; InputError says what it
    is not.
    """
    if isinstance(source, DataTable):
        return source
    if isinstance(source, str | os.PathLike):
        return _open_file(Path(source), separator=separator, encoding=encoding)
    if isinstance(source, Mapping):
        raise InputError("a table is an iterable of rows, each a mapping from column to cell; this is one mapping")
    frame = _frame(source)
    if frame is not None:
        return _FrameTable(frame)
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return _RowsTable(source)
    raise InputError(f"a table is a path, a data frame or an iterable of mappings, not {type(source).__name__}")


def _open_file(path: Path, *, separator: str | None, encoding: str) -> DataTable:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"{path}: tables end in {', '.join(ENDINGS)}, not {ending or 'nothing'!r}")
    try:
        with path.open("rb") as stream:
            opening = stream.read(4)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can't be read ({getattr(error, 'strerror', None) or error})") from None
    if ending == ".parquet":
        return _ParquetTable(path)
    _refuse_other_formats(path, opening)
    if ending == ".json":
        return _RowsTable(_json_rows(path), name=str(path))
    if ending == ".jsonl":
        return _JsonLinesTable(path)
    return _CsvTable(
        path, separator=separator or ("\t" if ending == ".tsv" else ","), told=separator, encoding=encoding
    )


def _refuse_other_formats(path: Path, opening: bytes) -> None:
    if not opening:
        raise InputError(f"{path}: the file is empty")
    if opening[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in opening:
        raise InputError(f"{path}: this is UTF-16 or no text at all; save it as UTF-8")
    if opening[:4] == b"PK\x03\x04":
        raise InputError(f"{path}: this is a zip file (a spreadsheet?); save it as CSV")
    if opening[:4] == b"PAR1":
        raise InputError(f"{path}: this is a Parquet file; call it .parquet")


class _Lines:
    """Lines of a file, decoded, with the place where each began.

    A bad line raises, and the next one can still be read.
    """

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self.stream, self.encoding = stream, encoding
        self.number = 0
        self.place = stream.tell()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self.stream.readline(LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.place += len(line)
        if len(line) > LONGEST_LINE:
            raise _BadLine(f"a line of more than {LONGEST_LINE // 2**20} MB")
        if b"\0" in line:
            raise _BadLine(f"a NUL character at {line.index(0) + 1} of line {self.number}: damaged, or no text")
        try:
            text = line.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise _BadLine(
                f"not {self.encoding.upper()} text (byte {line[error.start]:#04x} at {error.start + 1} of line"
                f" {self.number}; if it is Latin-1, say encoding = 'latin-1' in [data])"
            ) from None
        return text.removeprefix("\ufeff") if self.number == 1 else text


class _BadLine(Exception):
    pass


class _CsvTable(DataTable):
    """Comma or tab separated, quotes doubled, any line ends, a byte order mark or none.

    Every cell is text.
    """

    def __init__(self, path: Path, *, separator: str, told: str | None, encoding: str) -> None:
        self.path, self.name, self.separator = path, str(path), separator
        self.encoding = _known_encoding(path, encoding)
        if len(separator) != 1 or separator in '"\r\n':
            raise InputError(f"{path}: separator = {separator!r} must be one character")
        if csv.field_size_limit() < LONGEST_LINE:
            csv.field_size_limit(LONGEST_LINE)
        with path.open("rb") as stream:
            self.columns = self._header(_Lines(stream, self.encoding), told)

    def _header(self, lines: _Lines, told: str | None) -> tuple[str, ...]:
        try:
            cells = next((row for row in self._reader(lines) if row), None)
        except (_BadLine, csv.Error) as error:
            hint = "; its lines end in lone carriage returns" if "new-line character" in str(error) else ""
            raise InputError(f"{self.name}: line 1: {error}{hint}") from None
        if cells is None:
            raise InputError(f"{self.name}: the file is empty")
        if len(cells) == 1 and told is None:
            for other in ";\t|":
                if other in cells[0] and other != self.separator:
                    raise InputError(
                        f"{self.name}: one column {cells[0][:60]!r}; if it is separated by {other!r}, say separator ="
                        f' "{other}" in [data]'
                    )
        twice = [name for name, count in Counter(cells).items() if count > 1 and name]
        if twice:
            raise InputError(
                f"{self.name}: the column {', '.join(map(repr, twice))} stands twice; columns need names of their own"
            )
        if "" in cells:
            places = ", ".join(str(place) for place, cell in enumerate(cells, start=1) if not cell)
            raise InputError(f"{self.name}: column {places} has no name in the first line")
        return tuple(cells)

    def _reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self.separator, strict=True)

    def rows(self, faults: RowFaults) -> Iterator[_TableRow]:
        assert self.columns is not None
        width, number = len(self.columns), 0
        with self.path.open("rb") as stream:
            lines = _Lines(stream, self.encoding)
            reader = self._reader(lines)
            header = False
            while True:
                place, line = lines.place, lines.number + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except (_BadLine, csv.Error) as error:
                    number += 1
                    faults.skip(number, f"{_csv_words(error)} (line {line})")
                    continue
                if not cells:
                    continue  # a blank line
                if not header:
                    header = True
                    continue
                number += 1
                if len(cells) != width:
                    faults.skip(number, f"{len(cells)} cells where the header has {width} (line {line})")
                    continue
                yield _TableRow(number, dict(zip(self.columns, cells, strict=True)), place)

    def at(self, number: int, place: int) -> Cells:
        assert self.columns is not None
        with self.path.open("rb") as stream:
            stream.seek(place)
            try:
                cells = next(self._reader(_Lines(stream, self.encoding)), [])
            except (_BadLine, csv.Error):
                cells = []
        if len(cells) != len(self.columns):
            raise InputError(f"{self.name}: row {number} is no longer where it was; the file has changed")
        return dict(zip(self.columns, cells, strict=True))


TOGETHER = 1000
"""Lines that are read at once."""


class _JsonLinesTable(DataTable):
    """One JSON object a line. Numbers with a point are `Decimal`, so that 1.10 stays 1.10."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)

    def rows(self, faults: RowFaults) -> Iterator[_TableRow]:
        number = 0
        with self.path.open("rb") as stream:
            lines = _Lines(stream, "utf-8")
            while read := self._some(lines):
                values = iter(
                    documents.loads_each([line for _, _, line in read if isinstance(line, str)], parse_float=Decimal)
                )
                for place, at, line in read:
                    number += 1
                    if isinstance(line, _BadLine):
                        faults.skip(number, str(line))
                        continue
                    try:
                        row = _object(line, next(values))
                    except InputError as error:
                        faults.skip(number, f"{error} (line {at})")
                    else:
                        yield _TableRow(number, row, place)

    @staticmethod
    def _some(lines: _Lines) -> list[tuple[int, int, str | _BadLine]]:
        """The next lines that are not blank, each with where it begins and its number."""
        found: list[tuple[int, int, str | _BadLine]] = []
        while len(found) < TOGETHER:
            place = lines.place
            try:
                line = next(lines)
            except StopIteration:
                break
            except _BadLine as error:
                found.append((place, lines.number, error))
            else:
                if line.strip():
                    found.append((place, lines.number, line))
        return found

    def at(self, number: int, place: int) -> Cells:
        with self.path.open("rb") as stream:
            stream.seek(place)
            try:
                return _json_object(next(_Lines(stream, "utf-8"), ""))
            except (_BadLine, InputError):
                raise InputError(f"{self.name}: row {number} is no longer where it was; the file has changed") from None


class _RowsTable(DataTable):
    """Mappings from a program.

    What can be iterated but once is kept in memory; the rest is iterated again.
    """

    def __init__(self, rows: Iterable[Any], *, name: str = "the table") -> None:
        self.name = name
        self._rows = list(rows) if isinstance(rows, Iterator) else rows

    def rows(self, faults: RowFaults) -> Iterator[_TableRow]:
        for number, row in enumerate(self._rows, start=1):
            if not isinstance(row, Mapping):
                faults.skip(number, f"must map columns to cells, not {type(row).__name__}")
            elif not all(isinstance(key, str) for key in row):
                faults.skip(number, "columns must have text for names")
            else:
                yield _TableRow(number, row, number - 1)

    def at(self, number: int, place: int) -> Cells:
        if isinstance(self._rows, Sequence):
            found: Cells = self._rows[place]
            return found
        return next(row.cells for row in self.rows(RowFaults(self.name)) if row.place == place)


class _FrameTable(DataTable):
    """A data frame of pandas, polars, pyarrow, duckdb ..., through narwhals.

    A missing value is no value.
    """

    def __init__(self, frame: Any, *, name: str = "the data frame") -> None:
        self.name, self._frame = name, frame
        self.columns = tuple(map(str, frame.columns))

    def rows(self, faults: RowFaults) -> Iterator[_TableRow]:
        for number, row in enumerate(self._frame.iter_rows(named=True, buffer_size=1024), start=1):
            yield _TableRow(number, {str(key): _present(cell) for key, cell in row.items()}, number - 1)

    def at(self, number: int, place: int) -> Cells:
        row = self._frame[place : place + 1].rows(named=True)[0]
        return {str(key): _present(cell) for key, cell in row.items()}


class _ParquetTable(DataTable):
    """A Parquet file, batch by batch."""

    BATCH = 1024

    def __init__(self, path: Path) -> None:
        from rrf_design._columns import pyarrow_for

        self.path, self.name = path, str(path)
        parquet = pyarrow_for(path).parquet
        try:
            self._file = parquet.ParquetFile(path)
            self.columns = tuple(self._file.schema_arrow.names)
        except Exception as error:  # pyarrow's own errors have many roots
            raise InputError(f"{path}: not a Parquet file that can be read ({_first_line(error)})") from None
        if len(set(self.columns)) != len(self.columns):
            raise InputError(f"{path}: a column stands twice; columns need names of their own")

    def __reduce__(self) -> tuple[type[_ParquetTable], tuple[Path]]:
        return _ParquetTable, (self.path,)

    def rows(self, faults: RowFaults) -> Iterator[_TableRow]:
        number = 0
        for batch in self._file.iter_batches(batch_size=self.BATCH):
            for row in batch.to_pylist():
                number += 1
                yield _TableRow(number, row, number - 1)

    def at(self, number: int, place: int) -> Cells:
        before = 0
        for group in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(group).num_rows
            if place < before + size:
                found: Cells = self._file.read_row_group(group).slice(place - before, 1).to_pylist()[0]
                return found
            before += size
        raise InputError(f"{self.name}: row {number} is no longer where it was; the file has changed")


def need_column(table: DataTable, column: str, role: str) -> None:
    """InputError unless a table with a header has this column."""
    if table.columns is not None and column not in table.columns:
        raise InputError(f"{table.name}: no column {column!r} for the {role}{suggestion(column, table.columns)}")


def _frame(source: Any) -> Any:
    """The source as a narwhals frame, or None if it is no data frame."""
    import narwhals as nw

    found: Any = nw.from_native(source, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        return found.collect()
    return found if isinstance(found, nw.DataFrame) else None


def _present(cell: Any) -> Any:
    """A cell of a frame: a plain number for numpy's, nothing for what is missing."""
    if type(cell).__module__ == "numpy" and hasattr(cell, "item"):
        cell = cell.item()
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _json_object(line: str) -> dict[str, Any]:
    (found,) = documents.loads_each([line], parse_float=Decimal)
    return _object(line, found)


def _object(line: str, found: Any) -> dict[str, Any]:
    found = _sound(line, found)
    if not isinstance(found, dict):
        raise InputError(f"must be a JSON object, not {type(found).__name__}")
    return found


def _json_rows(path: Path) -> list[Any]:
    try:
        found = _json(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (at byte {error.start})") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(found, list):
        raise InputError(f"{path}: must be a list of objects, one for each row; one object a line is .jsonl")
    return found


def _json(text: str) -> Any:
    (found,) = documents.loads_each([text], parse_float=Decimal)
    return _sound(text, found)


def _sound(text: str, found: Any) -> Any:
    """What was read of a text; InputError where it is no JSON, or none that UTF-8 can say."""
    if isinstance(found, ValueError):
        raise InputError(str(found) if isinstance(found, InputError) else f"not valid JSON: {_first_line(found)}")
    if "\\u" in text and _halved(found):
        raise InputError("half a character (a lone surrogate) is not valid Unicode text")
    return found


def _halved(value: Any) -> bool:
    """Whether some text in it holds half a character, which JSON can say and UTF-8 can't."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        return any(_halved(key) or _halved(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_halved, value))


def _known_encoding(path: Path, encoding: str) -> str:
    try:
        if "a\n".encode(encoding) == b"a\n":
            return encoding
    except (LookupError, ValueError):
        raise InputError(f"{path}: unknown encoding {encoding!r}") from None
    raise InputError(f"{path}: encoding {encoding!r} can't be read row by row; save the file as UTF-8")


def _csv_words(error: Exception) -> str:
    text = str(error)
    if "expected after" in text:
        return "text after a closing quote; quotes inside a quoted cell are doubled"
    if "unexpected end of data" in text:
        return "a quote that is never closed"
    if "field larger" in text:
        return "a cell that is too long; is a quote never closed?"
    if "new-line character" in text:
        return "a lone carriage return in a cell without quotes"
    return text


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:160]


SHOWN = 10
"""Faults that are told one by one; the rest is counted."""


class RowFaults:
    """Collects what is wrong with the rows of one table; `refuse` raises them as one line."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.told: list[tuple[int, str]] = []
        self._rows: set[int] = set()
        self.unread = 0
        """Rows that the table left out because they could not be read."""

    def skip(self, row: int, message: str) -> None:
        """A row that can't even be read."""
        self.unread += 1
        self.add(row, message)

    def add(self, row: int, message: str) -> None:
        self._rows.add(row)
        if len(self.told) < SHOWN:
            self.told.append((row, message))

    @property
    def count(self) -> int:
        """Rows with at least one fault."""
        return len(self._rows)

    def refuse(self, total: int) -> None:
        """InputError if there is any fault; `total` is the number of rows seen."""
        if not self._rows:
            return
        shown = len({row for row, _ in self.told})
        more = f"; and {self.count - shown} more" if self.count > shown else ""
        told = "; ".join(f"row {row}: {message}" for row, message in sorted(self.told))
        raise InputError(f"{self.table}: {self.count} of {total} rows can't be used: {told}{more}")
