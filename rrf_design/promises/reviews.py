"""Truth from people: a file with one line for each item that somebody has to look at, filled in and
read back.

Rows are in the order of the draw; a row says nothing about which answer the policies would accept,
so that nobody is led.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rrf_design.documents import write_rows
from rrf_design.errors import InputError
from rrf_design.problem import Problem
from rrf_design.questions.tables import RowFaults, open_table
from rrf_design.responses.parsers import check_review
from rrf_design.texts import from_sheet

COLUMNS = ("id", "question", "text", "value")
WORDS = ("question", "text")
"""Columns with the words of others: no formulas in a spreadsheet."""


def write_reviews(path: str | os.PathLike[str], rows: Iterable[tuple[str, str, str]]) -> int:
    """(id, question, text) of each item; `value` is left empty for the reviewer.

    How many are asked.

    What people wrote into the file stays: values, columns of their own, and items that are not
    asked about any more.
    """
    check_review_file(path)
    there = _filled(path) if Path(path).is_file() else {}
    asked = [{"id": name, "question": question, "text": text} for name, question, text in rows]
    entries: list[dict[str, Any]] = [{**there.pop(e["id"], {"value": ""}), **e} for e in asked]
    entries += there.values()
    write_rows(path, entries, dict.fromkeys((*COLUMNS, *(key for entry in entries for key in entry))), words=WORDS)
    return len(asked)


def _filled(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """The entries of a file in which somebody wrote something, as they stand there."""
    known, found = read_reviews(path), dict[str, dict[str, Any]]()
    sheet = check_review_file(path) == ".csv"
    table = open_table(path)
    for _, cells, _ in table.rows(RowFaults(table.name)):
        name = str(cells["id"])
        own = {key: value for key, value in cells.items() if key not in COLUMNS and value not in (None, "")}
        if name in known or own:
            blank = dict.fromkeys(COLUMNS, "")
            words = {key: from_sheet(str(cells[key])) for key in WORDS if sheet and key in cells}
            found.setdefault(name, {**blank, **cells, **words, "id": name, "value": known.get(name, "")})
    return found


def read_reviews(path: str | os.PathLike[str], *, only: Sequence[str] | None = None) -> dict[str, Any]:
    """What people wrote, by item; empty values are left out.

    InputError for an item that was not asked about (`only`), or one with two values.
    """
    check_review_file(path)
    table = open_table(path)
    faults = RowFaults(table.name)
    wanted = None if only is None else set(only)
    found: dict[str, Any] = {}
    total = 0
    for number, cells, _ in table.rows(faults):
        total += 1
        name, value = cells.get("id"), cells.get("value")
        if not isinstance(name, str | int) or not str(name):
            raise InputError(f"{table.name}, entry {number}: the column id is missing or empty")
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        try:
            check_review(value)
        except InputError as error:
            raise InputError(f"{table.name}, entry {number}: item {str(name)!r}: {error}") from None
        if wanted is not None:
            refuse_strangers([str(name)], wanted, f"{table.name}, entry {number}: ")
        if found.setdefault(str(name), value) != value:
            raise InputError(f"{table.name}, entry {number}: item {str(name)!r} has two different values")
    faults.refuse(total + faults.unread)
    return found


def refuse_strangers(said: Iterable[str], known: Collection[str], where: str = "") -> None:
    """InputError for an item that people said something about and nobody asked them about."""
    for name in said:
        if name not in known:
            raise InputError(f"{where}item {name!r} was not asked about")


def joined_reviews(paths: Sequence[str | os.PathLike[str]], *, only: Sequence[str] | None = None) -> dict[str, Any]:
    """What people wrote into several files; InputError where two of them say something else of one
    item, or one speaks of an item that is none (`only`).
    """
    found: dict[str, Any] = {}
    for path in paths:
        for name, value in read_reviews(path, only=only).items():
            if found.setdefault(name, value) != value:
                raise InputError(f"{path}: item {name!r} has another value there than in a review file before it")
    return found


def check_review_file(path: str | os.PathLike[str]) -> str:
    """Its ending; InputError for one that is no review file's."""
    form = Path(path).suffix.lower()
    if form not in (".csv", ".jsonl"):
        raise InputError(f"{path}: review files end in .csv or .jsonl")
    return form


def row_text(cells: Mapping[str, Any], *, hidden: Collection[str | None] = ()) -> str:
    """A row for whoever says what is right: what was asked about, and nothing of what was
    answered.
    """
    return "; ".join(f"{key}: {value}" for key, value in cells.items() if key not in hidden)


def person_question(problem: Problem, check: str | None = None) -> str | None:
    """What a person is asked by this check, or by the first that asks one; None where none does."""
    for anchor in problem.anchors:
        source = anchor.source
        if (check is None or anchor.id == check) and isinstance(source, Mapping) and "person" in source:
            return str(source["person"])
    return None
