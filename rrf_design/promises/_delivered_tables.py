"""What was delivered, read back: the rows of a table, a run or a document that have an answer.

An audit is drawn from such a table, and `check_delivered` says whether a file is what was audited.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rrf_design.documents import checked, kind_of, read
from rrf_design.errors import InputError, Refused
from rrf_design.files import canonical_digest
from rrf_design.promises._truths import row_text
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.tables import Cells, RowFaults, open_table
from rrf_design.tables.rows import COLUMNS, delivered_names
from rrf_design.texts import from_sheet
from rrf_design.verdict import Verdict

RUNS = ("rrf-policy-run", "rrf-delivery")
"""Documents that hold what was delivered."""


@dataclass(frozen=True, slots=True)
class DeliveredTable:
    """The rows of a delivered table that have an answer."""

    name: str
    ids: tuple[str, ...]
    answers: tuple[Any, ...]
    rows: tuple[Cells, ...]
    id_column: str | None = None
    """What names the rows; None: their numbers."""
    answer_column: str = "answer"
    checked: int = 0
    """How many more values were delivered and checked: an audit does not draw them."""
    verdicts: tuple[Any, ...] = ()
    """Of each row, where the file says it."""

    @property
    def delivered(self) -> int:
        """How many values were delivered, checked ones among them."""
        return len(self) + self.checked

    def unchecked(self) -> DeliveredTable:
        """Without the rows that somebody or something checked already."""
        kept = [at for at, verdict in enumerate(self.verdicts) if verdict != Verdict.CHECKED.value]
        if len(kept) == len(self.verdicts):
            return self
        if not kept:
            raise InputError(f"{self.name}: every row with an answer was checked; there is nothing left to audit")

        def of(values: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(values[at] for at in kept)

        return replace(
            self,
            ids=of(self.ids),
            answers=of(self.answers),
            rows=of(self.rows),
            verdicts=of(self.verdicts),
            checked=self.checked + len(self) - len(kept),
        )

    @property
    def columns(self) -> dict[str, str | None]:
        return {"id": self.id_column, "answer": self.answer_column}

    @property
    def digest(self) -> str:
        """Of every id and answer, and of the columns they stand in: an audit is of no other
        column.
        """
        pairs = [[name, str(answer)] for name, answer in zip(self.ids, self.answers, strict=True)]
        return canonical_digest({"columns": self.columns, "delivered": pairs})

    @property
    def results(self) -> set[str]:
        """The columns that were delivered: they stand behind those of the input, whatever these are
        called.
        """
        names = list(self.rows[0]) if self.rows else []
        behind = names[names.index(self.answer_column) :] if self.answer_column in names else []
        return {name for name in behind if _plain_name(name) in COLUMNS}

    def __len__(self) -> int:
        return len(self.ids)

    def shown(self, place: int, *, without: str | None = None) -> str:
        """A row for whoever says what is right: what was asked about, and nothing of what was
        answered.
        """
        return row_text(self.rows[place], hidden={*self.results, without})


def read_delivered(
    path: str | os.PathLike[str], *, id_column: str | None = None, answer_column: str | None = None
) -> DeliveredTable:
    """Rows with an answer, by the column of ids or else the number of the row.

    Without a name, answers are in the last column that a delivery calls so.
    """
    table = open_table(path)
    faults = RowFaults(table.name)
    rows = [(number, dict(cells)) for number, cells, _ in table.rows(faults)]
    faults.refuse(len(rows) + faults.unread)
    columns = list(table.columns or dict.fromkeys(key for _, cells in rows for key in cells))
    wanted = answer_column or "answer"
    named = [
        name for name in columns if name == answer_column or (answer_column is None and _plain_name(name) == wanted)
    ]
    answer = named[-1] if named else None
    if answer is None:
        raise InputError(
            f"{table.name}: no column {wanted!r}; audit a table that repair or acquire delivered (known:"
            f" {', '.join(columns[:8])})"
        )
    if id_column is not None and id_column not in columns:
        raise InputError(f"{table.name}: no column {id_column!r} of ids")
    kept = [(number, cells) for number, cells in rows if cells.get(answer) not in (None, "")]
    if not kept:
        raise InputError(f"{table.name}: no row has an answer; there is nothing to audit")
    ids = tuple(str(number if id_column is None else cells[id_column]) for number, cells in kept)
    if len(set(ids)) != len(ids):
        raise InputError(f"{table.name}: ids in column {id_column!r} are not unique")
    answers = tuple(cells[answer] for _, cells in kept)
    if Path(path).suffix.lower() in (".csv", ".tsv"):
        answers = tuple(map(from_sheet, answers))
    behind = columns[columns.index(answer) :]
    said = next((name for name in behind if _plain_name(name) == "verdict"), None)
    verdicts = () if said is None else tuple(cells.get(said) for _, cells in kept)
    cells = tuple(cells for _, cells in kept)
    return DeliveredTable(table.name, ids, answers, cells, id_column, answer, verdicts=verdicts)


def _plain_name(column: str) -> str:
    """What a delivered column is called where the input has no column of that name
    (`tables.rows.delivered_names`).
    """
    while column.startswith("rrf_"):
        column = column.removeprefix("rrf_")
    return column


def delivered_items(
    name: str, dataset: Dataset, results: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> DeliveredTable:
    """What a run over a data set delivered: each input row beside its result."""
    found = [
        (item.id, result["answer"], dict(cells), result.get("verdict"))
        for item, (cells, result) in zip(dataset.items_in_order(), results, strict=True)
        if result["answer"] not in (None, "")
    ]
    if not found:
        raise InputError(f"{name}: no item has an answer; there is nothing to audit")
    ids, answers, rows, verdicts = zip(*found, strict=True)
    column = delivered_names(dataset.columns)["answer"]
    return DeliveredTable(name, ids, answers, rows, dataset.recipe.data.id, column, verdicts=verdicts)


def read_run_document(document: Any, name: str, dataset: Dataset) -> DeliveredTable:
    """The items of a document that `acquire` or `repair` wrote about this data set."""
    kind = kind_of(document)
    if kind not in RUNS:
        raise InputError(f"{name}: audit what was delivered, a table or a run of one; this is {kind!r}")
    data = checked(document, kind, what="run")
    listed = data.get("items")
    if not isinstance(listed, list) or not all(
        isinstance(entry, Mapping) and {"id", "answer"} <= set(entry) for entry in listed
    ):
        raise InputError(f"{name}: this run has no items with an id and an answer")
    items = {str(entry["id"]): entry for entry in listed}
    missing = next((item.id for item in dataset.items_in_order() if item.id not in items), None)
    if missing is not None:
        raise InputError(f"{name}: it has no item {missing!r}; audit it with the table it was made from")
    if len(listed) != len(dataset):
        raise InputError(
            f"{name}: it has {len(listed):,} items, and the table {len(dataset):,}; audit it with the table it was made"
            " from"
        )
    return delivered_items(name, dataset, ((item.cells, items[item.id]) for item in dataset.items_in_order()))


def check_delivered(audit: Mapping[str, Any], path: str | os.PathLike[str]) -> DeliveredTable:
    """What the audit was drawn from, if this file has it; Refused says what is different.

    The audit has been proven already.
    """
    size, name = int(audit["record"]["population"]), Path(path).name
    table = _reading(path, audit["columns"])
    table = table.unchecked() if "checked" in audit else table
    if len(table) != size:
        raise Refused(f"{name}: it has {len(table):,} values; {size:,} were audited")
    if table.digest == audit["record"]["digest"]:
        return table
    drawn = zip(audit["record"]["draws"], audit["items"], strict=True)
    named = all(table.ids[place] == item for place, item in drawn)
    raise Refused(
        f"{name}: {'an id or an answer has' if named else 'ids, or the order of the rows, have'} changed since the"
        " audit; what is there now was not audited"
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
        verdicts = tuple(entry.get("verdict") for entry in entries)
        rows: tuple[Cells, ...] = ({},) * len(ids)
        return DeliveredTable(name, ids, answers, rows, columns["id"], columns["answer"], verdicts=verdicts)
    except (KeyError, TypeError):
        raise InputError(f"{name}: this run has no items with an id and an answer") from None
