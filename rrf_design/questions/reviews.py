"""Files that people fill in: an entry for each question, with an empty `value`, and what they
wrote read back.

CSV and JSON lines have one entry a line; `.json` is the list of tasks that Label Studio imports,
and its export is read back. An entry is known by its `id`, and by its `check` where an item may
have several. Written again over the same file, what people wrote stays: values, and columns of
their own. Which entries there are, and in which order, is up to the verb that asks.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rrf_design.documents import write_text
from rrf_design.errors import InputError
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.tables import RowFaults, open_table
from rrf_design.responses.parsers import check_review
from rrf_design.texts import cell_json, cell_text, escaped, from_sheet, sheet_text, showable

FORMS = (".csv", ".jsonl", ".json")
WORDS = ("question", "text", "prompt", "model_answer", "raw", "reason")
"""Columns with the words of others: no formulas in a spreadsheet."""

Key = TypeVar("Key")
Entry = dict[str, Any]


def check_review_file(path: str | os.PathLike[str]) -> str:
    """Its ending; InputError for one that is no review file's."""
    form = Path(path).suffix.lower()
    if form not in FORMS:
        raise InputError(
            f"{path}: review files end in .csv or .jsonl, or in .json (Label Studio), not {form or 'nothing'!r}"
        )
    return form


def write_review_file(
    path: str | os.PathLike[str], questions: Iterable[Mapping[str, Any]], columns: Collection[str]
) -> int:
    """Write an entry for each question, `value` empty unless somebody filled it in there; then what
    was filled in and is asked no more. The number of questions is returned.
    """
    form = check_review_file(path)
    there = _filled(Path(path), columns) if Path(path).is_file() and Path(path).stat().st_size else {}
    entries = []
    for question in questions:
        kept = there.pop(_key(question), {})
        own = {name: cell for name, cell in kept.items() if name not in question}
        entries.append({**question, **own, "value": kept.get("value", "")})
    asked = len(entries)
    entries += there.values()
    if form == ".csv":
        write_text(path, _sheet(entries, dict.fromkeys((*columns, *(name for one in entries for name in one)))))
    elif form == ".jsonl":
        write_text(path, "".join(escaped(cell_json(one)) + "\n" for one in entries))
    else:
        write_text(path, "[" + ",\n ".join(escaped(cell_json({"data": one})) for one in entries) + "]\n")
    return asked


def read_review_file(source: Any, key: Callable[[str, str], Key]) -> dict[Key, Any]:
    """What people wrote, by `key(id, check)`; entries without a value are left out.

    `source` is a path, or rows with id, check and value. `key` raises InputError for what was not
    asked about. All faults are named together, two values for one key among them.
    """
    faults, total = RowFaults(_name(source)), 0
    found: dict[Key, Any] = {}
    for number, cells in _entries(source, faults):
        total += 1
        name, check = _key(cells)
        value = cells.get("value")
        try:
            check_review(value)
        except InputError as error:
            faults.add(number, f"item {name!r}: {error}")
            continue
        if said(value) == "":
            continue
        if not name:
            faults.add(number, "the column id is missing or empty")
            continue
        try:
            if said(found.setdefault(key(name, check), value)) != said(value):
                raise InputError(f"item {name!r} has two different values in this file")
        except InputError as error:
            faults.add(number, str(error))
    faults.refuse(total + faults.unread)
    return found


@dataclass(frozen=True, slots=True)
class Reviews:
    """What people said, by item and check, in their own words."""

    by_item: Mapping[str, Mapping[str, str]]

    def of(self, item: str) -> Mapping[str, str]:
        return self.by_item.get(item, {})


def read_reviews(source: Any, dataset: Dataset) -> Reviews:
    """What people filled in; rows without a value stay open.

    `source` is a path, or rows with id, check and value.
    """
    if isinstance(source, Reviews):
        return source
    checks = {anchor.id for one in dataset.structures.values() for anchor in one.example.anchors}

    def asked(item: str, check: str) -> tuple[str, str]:
        if item not in dataset:
            raise InputError(f"there is no item {item!r}")
        if check not in checks:
            raise InputError(f"there is no check {check!r}; the checks are {', '.join(sorted(checks)) or 'none'}")
        return item, check

    by_item: dict[str, dict[str, str]] = {}
    for (item, check), value in read_review_file(source, asked).items():
        by_item.setdefault(item, {})[check] = said(value)
    return Reviews(by_item)


def said(value: Any) -> str:
    """What stands in the column `value`, as text: JSON lines may have numbers or a list of them."""
    parts = value if isinstance(value, list | tuple) else [value]
    return "; ".join("" if part is None else str(part).strip() for part in parts)


def _sheet(entries: Sequence[Entry], columns: Collection[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(name, one.get(name)) for name in columns] for one in entries)
    return text.getvalue()


def _cell(name: str, value: Any) -> str:
    """Ids, and what people write, are read back as they stand."""
    return sheet_text(showable(cell_text(value))) if name in WORDS else cell_text(value)


def _filled(path: Path, columns: Collection[str]) -> dict[tuple[str, str], Entry]:
    """The entries in which somebody wrote something, as they stand there; InputError for a file
    that was made for something else, which is not written over.
    """
    faults, total = RowFaults(str(path)), 0
    found: dict[tuple[str, str], Entry] = {}
    heads = [open_table(path).columns] if path.suffix.lower() == ".csv" else ()
    for names in (*heads, *(cells for _, cells in _entries(path, RowFaults(str(path))))):
        if missing := [f"{name!r}" for name in ("id", "value") if name not in (names or ())]:
            raise InputError(
                f"{path}: is there already and is no review file (it has no {' and no '.join(missing)}): choose"
                " another name"
            )
    for _, cells in _entries(path, faults):
        total += 1
        entry = {name: from_sheet(cell) if _is_word(path, name, cell) else cell for name, cell in cells.items()}
        own = [name for name, cell in entry.items() if name not in columns and cell not in (None, "")]
        if said(entry.get("value")) or own:
            earlier = found.setdefault(_key(cells), entry)
            earlier["value"] = earlier.get("value") or entry.get("value") or ""
    faults.refuse(total + faults.unread)
    return found


def _is_word(path: Path, name: str, cell: Any) -> bool:
    return name in WORDS and isinstance(cell, str) and path.suffix.lower() == ".csv"


def _key(entry: Mapping[str, Any]) -> tuple[str, str]:
    name, check = (entry.get(key) for key in ("id", "check"))
    return cell_text(name).strip(), cell_text(check).strip()


def _name(source: Any) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "the reviews"


def _entries(source: Any, faults: RowFaults) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if isinstance(source, str | os.PathLike) and check_review_file(source) == ".json":
        return enumerate(_label_studio(Path(source)), start=1)
    return ((number, cells) for number, cells, _ in open_table(source).rows(faults))


def _label_studio(path: Path) -> Iterator[Entry]:
    """The data of the tasks in a Label Studio file, each with the value of its last annotation that
    was not cancelled.
    """
    try:
        tasks = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: can't be read as JSON ({error})") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InputError(f"{path}: not a list of tasks as Label Studio exports them")
    for task in tasks:
        data = task.get("data")
        if not isinstance(data, dict):
            raise InputError(f"{path}: a task without data; export as JSON, not as JSON-MIN")
        yield {**data, "value": _annotated(task) or data.get("value")}


def _annotated(task: Mapping[str, Any]) -> str:
    done = [one for one in task.get("annotations") or () if isinstance(one, dict) and not one.get("was_cancelled")]
    for annotation in reversed(done):
        for result in annotation.get("result") or ():
            value = result.get("value") if isinstance(result, dict) else None
            for key in ("text", "number", "choices", "rating", "taxonomy"):
                given = value.get(key) if isinstance(value, dict) else None
                while isinstance(given, list) and given:
                    given = given[0]
                if given not in (None, "", []):
                    return str(given)
    return ""
