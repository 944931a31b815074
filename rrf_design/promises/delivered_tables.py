"""What was delivered, as an audit takes it: the rows of a table, of a run or of a document that have an answer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rrf_design.documents import checked, kind_of
from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.promises.reviews import row_text
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.delivery import DELIVERED, delivered_names
from rrf_design.questions.faults import RowFaults
from rrf_design.questions.tables import Cells, open_table


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

    @property
    def columns(self) -> dict[str, str | None]:
        return {"id": self.id_column, "answer": self.answer_column}

    @property
    def digest(self) -> str:
        """Of every id and answer, and of the columns they stand in: an audit is of no other column."""
        pairs = [[name, str(answer)] for name, answer in zip(self.ids, self.answers, strict=True)]
        return canonical_digest({"columns": self.columns, "delivered": pairs})

    @property
    def results(self) -> set[str]:
        """The columns that were delivered: they stand behind those of the input, whatever these are called."""
        names = list(self.rows[0]) if self.rows else []
        behind = names[names.index(self.answer_column) :] if self.answer_column in names else []
        return {name for name in behind if _plain_name(name) in DELIVERED}

    def __len__(self) -> int:
        return len(self.ids)

    def shown(self, place: int, *, without: str | None = None) -> str:
        """A row for whoever says what is right: what was asked about, and nothing of what was answered."""
        return row_text(self.rows[place], hidden={*self.results, without})


def read_delivered(
    path: str | os.PathLike[str], *, id_column: str | None = None, answer_column: str | None = None
) -> DeliveredTable:
    """Rows with an answer, by the column of ids or else the number of the row. Without a name, answers are in the last column that a delivery calls so."""
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
            f"{table.name}: no column {wanted!r}; audit a table that repair or acquire delivered (known: {', '.join(columns[:8])})"
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
    return DeliveredTable(table.name, ids, answers, tuple(cells for _, cells in kept), id_column, answer)


def _plain_name(column: str) -> str:
    """What a delivered column is called where the input has no column of that name (`questions.delivery.delivered_names`)."""
    while column.startswith("rrf_"):
        column = column.removeprefix("rrf_")
    return column


def delivered_items(
    name: str, dataset: Dataset, results: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> DeliveredTable:
    """What a run over a data set delivered: each input row beside its result."""
    found = [
        (item.id, result["answer"], dict(cells))
        for item, (cells, result) in zip(dataset.items_in_order(), results, strict=True)
        if result["answer"] not in (None, "")
    ]
    if not found:
        raise InputError(f"{name}: no item has an answer; there is nothing to audit")
    ids, answers, rows = zip(*found, strict=True)
    return DeliveredTable(name, ids, answers, rows, dataset.recipe.data.id, delivered_names(dataset.columns)["answer"])


def read_run_document(document: Any, name: str, dataset: Dataset) -> DeliveredTable:
    """The items of a document that `acquire` or `repair` wrote about this data set."""
    kind = kind_of(document)
    if kind not in ("rrf-policy-run", "rrf-delivery"):
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
            f"{name}: it has {len(listed):,} items, and the table {len(dataset):,}; audit it with the table it was made from"
        )
    return delivered_items(name, dataset, ((item.cells, items[item.id]) for item in dataset.items_in_order()))
