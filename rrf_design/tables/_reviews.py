"""The review list: what people should look at first, in a form they can fill in, and what they
said, read back.

CSV and JSON lines have one row for each question, with an empty `value` to fill in; `.json` is the
list of tasks that Label Studio imports, and its export is read back. What was left empty stays
open; faults are named together.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.review import label_studio_rows
from rrf_design.documents import writing
from rrf_design.errors import InputError
from rrf_design.questions.datasets import DataItem, Dataset
from rrf_design.questions.tables import RowFaults, open_table
from rrf_design.responses.parsers import check_review
from rrf_design.texts import cell_json, cell_text, from_sheet, sheet_text, showable

if TYPE_CHECKING:
    from rrf_design.tables.delivered import Delivery

COLUMNS = ("rank", "id", "check", "question", "raw", "verdict", "reason", "cost", "value")
WORDS = ("question", "raw", "reason")
FORMS = (".csv", ".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class Reviews:
    """What people said, by item and check, in their own words."""

    by_item: Mapping[str, Mapping[str, str]]

    def of(self, item: str) -> Mapping[str, str]:
        return self.by_item.get(item, {})


def write_reviews(path: str | os.PathLike[str], delivery: Delivery) -> int:
    """Write the questions for people, the most urgent first; the number of them is returned.

    What people wrote into the file stays, behind what is open.
    """
    form = _form(path)
    there = _filled(Path(path), form) if Path(path).is_file() else {}
    asked = sorted(_questions(delivery), key=lambda row: row["rank"])
    rows = [row | {"value": there.pop((row["id"], row["check"]), row)["value"]} for row in asked]
    rows += there.values()
    if form == ".json":
        tasks = [{"data": row} for row in rows]
        text = json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"
    elif form == ".jsonl":
        text = "".join(cell_json(row) + "\n" for row in rows)
    else:
        sheet = io.StringIO()
        writer = csv.writer(sheet, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([_cell(name, row[name]) for name in COLUMNS] for row in rows)
        text = sheet.getvalue()
    with writing(path) as stream:
        stream.write(text.encode("utf-8", "replace"))
    return len(asked)


def _filled(path: Path, form: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a list in which somebody wrote a value, by item and check."""
    faults = RowFaults(path.name)
    rows = label_studio_rows(path) if form == ".json" else (cells for _, cells, _ in open_table(path).rows(faults))
    kept = [{name: cells.get(name) for name in COLUMNS} for cells in rows if cells.get("value") not in (None, "", [])]
    faults.refuse(len(kept) + faults.unread)
    if form == ".csv":
        kept = [row | {name: from_sheet(cell_text(row[name])) for name in WORDS} for row in kept]
    return {(str(row["id"]), str(row["check"])): row for row in kept}


def _cell(name: str, value: Any) -> str:
    """Ids, and what people write, are read back as they stand; the words of models and tables are
    no formulas.
    """
    return sheet_text(showable(cell_text(value))) if name in WORDS else cell_text(value)


def _questions(delivery: Delivery) -> Iterator[dict[str, Any]]:
    for item, row, rank in delivery.ranked():
        if rank is None:
            continue
        several = len(row.values) > 1
        for value in row.values:
            check = value.check if several and value.open else None if several else row.check
            if check is None:
                continue
            anchor = item.problem.block_by_id[check]
            yield {
                "rank": rank,
                "id": row.id,
                "check": check,
                "question": _question(anchor, item),
                "raw": value.raw,
                "verdict": value.verdict.value,
                "reason": value.reason,
                "cost": anchor.cost,
                "value": "",
            }


def _question(anchor: Any, item: DataItem) -> str:
    source = anchor.source
    text = source.get("person") if isinstance(source, Mapping) else str(source).partition(":")[2].strip()
    return str(text) if text and text is not True else str(item.prompts.get(anchor.nodes[0], anchor.nodes[0]))


def read_reviews(source: Any, dataset: Dataset) -> Reviews:
    """What people filled in; rows without a value stay open.

    `source` is a path, or rows with id, check and value.
    """
    if isinstance(source, Reviews):
        return source
    name = str(source) if isinstance(source, str | os.PathLike) else "the reviews"
    if isinstance(source, str | os.PathLike) and _form(source) == ".json":
        source = list(label_studio_rows(Path(source)))
    checks = {anchor.id for one in dataset.structures.values() for anchor in one.example.anchors}
    faults, total = RowFaults(name), 0
    found: dict[tuple[str, str], str] = {}
    said: dict[str, dict[str, str]] = {}
    for number, cells, _ in open_table(source).rows(faults):
        total += 1
        try:
            check_review(cells.get("value"))
        except InputError as error:
            faults.add(number, str(error))
            continue
        item, check, value = (
            str(cells.get(key) if cells.get(key) is not None else "").strip() for key in ("id", "check", "value")
        )
        if not value:
            continue
        if item not in dataset:
            faults.add(number, f"there is no item {item!r}")
        elif check not in checks:
            faults.add(number, f"there is no check {check!r}; the checks are {', '.join(sorted(checks)) or 'none'}")
        elif found.setdefault((item, check), value) != value:
            faults.add(number, f"check {check!r} of item {item!r} has two different values in this list")
        else:
            said.setdefault(item, {})[check] = value
    faults.refuse(total + faults.unread)
    return Reviews(said)


def _form(path: str | os.PathLike[str]) -> str:
    form = Path(path).suffix.lower()
    if form not in FORMS:
        raise InputError(f"{path}: review lists end in {', '.join(FORMS)} (Label Studio), not {form or 'nothing'!r}")
    return form
