"""What the readers of all tools share: paths into a record, bounded JSON, and the row they make."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError

LARGEST_FILE = 4 * 2**30
"""Bytes of a log that has to be read whole."""
LONGEST_LINE = 256 * 2**20
LONGEST_NAME = 1000


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """One answer: which item, which way of asking, which repeat (from 1), by which model; a text,
    or why there is none.
    """

    id: str
    node: str
    repeat: int = 1
    model: str | None = None
    text: str | None = None
    status: str | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class RecordPaths:
    """Where in a tool's record the item, the node and the answer stand: a dotted path, or `=` and a
    constant.
    """

    item: str | None = None
    node: str | None = None
    answer: str | None = None


def at(record: Any, path: str) -> Any:
    """What stands at a dotted path: keys of tables, places in lists; None where there is
    nothing.
    """
    for part in path.split("."):
        if isinstance(record, dict):
            record = record.get(part)
        elif isinstance(record, list) and part.isdecimal() and int(part) < len(record):
            record = record[int(part)]
        else:
            return None
    return record


def name_at(record: Any, path: str, what: str) -> str:
    """A name (text or a whole number) at a path, or the constant after `=`; InputError when there
    is none.
    """
    found = path[1:] if path.startswith("=") else at(record, path)
    if isinstance(found, bool) or not isinstance(found, str | int) or not str(found).strip():
        seen = "nothing" if found is None else f"{found!r:.40}"
        raise InputError(f"no {what} at {path!r}: {seen} stands there, where text or a whole number is needed")
    if len(str(found)) > LONGEST_NAME:
        raise InputError(f"the {what} at {path!r} has more than {LONGEST_NAME} characters")
    return str(found)


def text_of(found: Any) -> str | None:
    """An answer as text: text itself, parts of a message joined, anything else as JSON; None for
    nothing.
    """
    if found is None or isinstance(found, str):
        return found
    if isinstance(found, list) and found and all(isinstance(part, dict) for part in found):
        texts = [part["text"] for part in found if isinstance(part.get("text"), str)]
        if texts:
            return "".join(texts)
    return json.dumps(found, ensure_ascii=False)


def money(found: Any) -> float | None:
    """A cost that is one: a finite number, 0 or more."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found <= sys.float_info.max else None


def parse(text: str | bytes, where: str) -> Any:
    """JSON as tools write it (NaN among scores is allowed, and is nothing here); InputError is one
    line.
    """
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8 text") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where}: not valid JSON ({str(error).splitlines()[0][:80]})") from None


def whole(path: Path) -> Any:
    """A JSON file, read whole."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"larger than {LARGEST_FILE // 2**30} GB")
        return parse(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), "the file")
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror or error})") from None


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file of JSON lines, with their line numbers."""
    try:
        with path.open("rb") as stream:
            number = 0
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InputError(f"line {number}: longer than {LONGEST_LINE // 2**20} MB")
                if line.strip():
                    record = parse(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, f"line {number}")
                    if not isinstance(record, dict):
                        raise InputError(f"line {number}: must be an object, not {type(record).__name__}")
                    yield number, record
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror or error})") from None


Records = Iterator[tuple[str, dict[str, Any]]]
"""Objects of a log, each with the words for where it stands."""


def by_line(path: Path) -> Records:
    return ((f"line {number}", record) for number, record in _lines(path))


def objects(found: list[Any], what: str) -> Records:
    """The objects of a list, counted from 1; InputError for an entry that is none."""
    for number, one in enumerate(found, start=1):
        if not isinstance(one, dict):
            raise InputError(f"{what} {number}: must be an object")
        yield f"{what} {number}", one


def each(records: Records, rows: Callable[[dict[str, Any]], Iterable[ImportedRow]]) -> Iterator[ImportedRow]:
    """What `rows` makes of every record; InputError says of which one it speaks."""
    for place, record in records:
        try:
            yield from rows(record)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None


def first_record(path: Path) -> dict[str, Any]:
    """The object that a .json file is, or that a .jsonl file begins with."""
    if path.suffix.lower() == ".jsonl":
        return next((record for _, record in _lines(path)), {})
    found = whole(path)
    return found if isinstance(found, dict) else {}
