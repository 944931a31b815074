"""Runs of this program: `show --answers FILE.jsonl`, an answer a line.

Item and node are those of the run; a question that was asked several times has a node for each.
What checks were told is left out: it is no answer to a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rrf_design.errors import InputError
from rrf_design.responses.imports.records import ImportedRow, RecordPaths, lines, name_at
from rrf_design.responses.parsed import recorded_response


def read(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one run."""
    for number, record in lines(path):
        try:
            said = recorded_response(record)
            if said is not None:
                item = name_at(record, where.item or "item", "item")
                node = name_at(record, where.node or "node", "node")
                yield ImportedRow(item, node, text=said.get("text"), status=said.get("status"))
        except InputError as error:
            raise InputError(f"line {number}: {error}") from None
