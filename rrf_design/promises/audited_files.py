"""Is this file what was audited? The population's digest, made again from the delivered table.

An audit speaks of the values it was drawn from, row by row. A file that was changed afterwards, by a row, an answer or their order, is not proven by it, and its digest shows it.
The certificate names the columns of ids and answers, under that digest, and no other is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rrf_design.documents import kind_of, read
from rrf_design.errors import InputError, Refused
from rrf_design.promises.delivered_tables import DeliveredTable, read_delivered

RUNS = ("rrf-policy-run", "rrf-delivery")


def check_delivered(audit: Mapping[str, Any], path: str | os.PathLike[str]) -> DeliveredTable:
    """What the audit was drawn from, if this file has it; Refused says what is different. The audit has been proven already."""
    size, name = int(audit["record"]["population"]), Path(path).name
    table = _reading(path, audit["columns"])
    if len(table) != size:
        raise Refused(f"{name}: it has {len(table):,} values; {size:,} were audited")
    if table.digest == audit["record"]["digest"]:
        return table
    drawn = zip(audit["record"]["draws"], audit["items"], strict=True)
    named = all(table.ids[place] == item for place, item in drawn)
    raise Refused(
        f"{name}: {'an id or an answer has' if named else 'ids, or the order of the rows, have'} changed since the audit; what is there now was not audited"
    )


def compared(table: DeliveredTable) -> str:
    """In which columns a file was found to be what was audited; a run has none."""
    if not any(table.rows):
        return "by its items"
    names = "the numbers of the rows" if table.id_column is None else f"column {table.id_column!r:.80}"
    return f"ids: {names}, answers: column {table.answer_column!r:.80}"


def _reading(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> DeliveredTable:
    """The file with the columns that were audited."""
    if Path(path).suffix.lower() == ".json":
        document = read(path, what="run")
        if kind_of(document) in RUNS:
            return _run(document, Path(path).name, columns)
    try:
        return read_delivered(path, id_column=columns["id"], answer_column=columns["answer"])
    except InputError as error:
        if not Path(path).is_file():
            raise
        raise Refused(f"{error}; the audit is of ids and answers in the columns that it names") from None


def _run(document: Any, name: str, columns: Mapping[str, Any]) -> DeliveredTable:
    try:
        entries = [entry for entry in document["items"] if entry["answer"] not in (None, "")]
        ids = tuple(str(entry["id"]) for entry in entries)
        answers = tuple(entry["answer"] for entry in entries)
        return DeliveredTable(name, ids, answers, ({},) * len(ids), columns["id"], columns["answer"])
    except (KeyError, TypeError):
        raise InputError(f"{name}: this run has no items with an id and an answer") from None
