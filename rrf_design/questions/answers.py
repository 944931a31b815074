"""Recorded answers of a data set: rows `id node [repeat model] value|text|status [cost]`, in any
order.

A file of millions of rows is read once, row by row, into a private temporary database, and looked
up item by item from there, so that memory stays constant whatever the order of the rows. All rows
that can't be used are named together, before anything is done.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rrf_design._columns import pyarrow_for
from rrf_design.documents import reason
from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.questions.datasets import DataItem, Dataset
from rrf_design.questions.recipe import Recipe
from rrf_design.questions.tables import Cells, DataTable, RowFaults, open_table
from rrf_design.questions.templates import strict_number
from rrf_design.responses.parsed import RECORDED, recorded_response, unread_status
from rrf_design.texts import whole

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
Entry = TypeVar("Entry")
SHOWN = 8
"""Names that are told in one message."""
KEYS = ("id", "node", "repeat", "model", "value", "text", "status", "cost")
PARTS = 32
"""Files that a folder of answers has, unless somebody says otherwise."""
_PART = re.compile(r"part-(\d+)-of-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer of one node: a value, or a text for the node's parser, or the status that says why
    there is none.
    """

    value: tuple[float, ...] | None = None
    text: str | None = None
    status: str | None = None
    cost: float | None = None
    lost: bool = False
    """The call failed: nobody knows what would have been said."""

    @property
    def response(self) -> dict[str, Any]:
        """As `rrf_design.repairing` takes it, under the node's id."""
        given = {"value": None if self.value is None else list(self.value), "text": self.text, "status": self.status}
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RawItem:
    """One item before anything is read: its row without the truth, what was answered, what people
    said.
    """

    id: str
    cells: Cells
    structure: str
    answers: Mapping[str, RecordedAnswer]
    reviews: Mapping[str, str] = field(default_factory=dict)


class RecordedAnswers:
    """The answers of a data set's items.

    Close it, or use it in a `with` block. `checks`: rows may also say what a check gave, under its
    own id as `node`.
    """

    def __init__(self, dataset: Dataset, source: Any, *, checks: bool = False) -> None:
        self.name = str(source) if isinstance(source, str | os.PathLike) else "the answers"
        self._names = NodeNames(dataset.recipe)
        entries = dataset.recipe.long.get("anchors", ()) if checks else ()
        self._checks = frozenset(str(entry.get("id")) for entry in entries)
        # A temporary file that ends with the connection. Joblib asks for the next items in whatever
        # thread has one to spare,
        # one thread at a time.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("pragma journal_mode = off")
            self._db.execute("create table answers (item text, node text, row integer, answer text)")
            self._db.execute("create table items (item text)")
            self._read(source)
            self._check_items(dataset)
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> RecordedAnswers:
        return self

    def __exit__(self, *exc: object) -> None:
        self._db.close()

    @cached_property
    def priced(self) -> bool:
        """Whether any of them says what it cost."""
        packed = self._db.execute("select 1 from answers where answer not like '%, null]' limit 1")
        return packed.fetchone() is not None

    def of(self, item: str) -> dict[str, RecordedAnswer]:
        """What was answered about one item, by node; nodes without a row are not there."""
        found = self._db.execute("select node, answer from answers where item = ? order by row", (item,))
        return {node: _unpacked(answer) for node, answer in found}

    def chunks(
        self, items: Iterable[DataItem], size: int, reviews: Mapping[str, Mapping[str, str]]
    ) -> Iterator[list[RawItem]]:
        """Items with what was answered and what people said about each, so many at a time."""
        rest = iter(items)
        while chunk := list(islice(rest, size)):
            yield [
                RawItem(item.id, item.seen, item.structure, self.of(item.id), reviews.get(item.id, {}))
                for item in chunk
            ]

    def __len__(self) -> int:
        """Answers in all."""
        (count,) = self._db.execute("select count(*) from answers").fetchone()
        return int(count)

    def _read(self, source: Any) -> None:
        table = open_table(source)
        faults = RowFaults(table.name)
        read = _read_rows(table, faults, self._entry)
        entries = (
            (item, node, number, _packed(answer))
            for number, (item, nodes, one) in read
            for node, answer in _of_call(nodes, one)
        )
        self._db.execute("begin")
        self._db.executemany("insert into answers values (?, ?, ?, ?)", entries)
        self._db.execute("commit")
        self._db.execute("create index by_item on answers (item, node)")
        total = len(self) + faults.count
        twice = (
            "select item, node, row from answers a where exists (select 1 from answers b where b.item = a.item and"
            " b.node = a.node and b.row < a.row)"
        )
        for item, node, row in self._db.execute(f"{twice} order by row limit 1000"):
            faults.add(row, f"a second answer of item {item!r}, node {node!r}; say which repeat it is")
        try:
            faults.refuse(total)
        except InputError as error:
            raise InputError(f"{error}{self._names.other_names()}") from None
        if total == 0:
            raise InputError(f"{table.name}: holds no answers")

    def _entry(self, cells: Cells) -> tuple[str, tuple[str, ...], RecordedAnswer]:
        item, node = (_name(cells.get(key), key) for key in ("id", "node"))
        if node not in self._checks:
            return item, *self._names.answered(node, cells)
        answer = _recorded_answer(cells)
        if answer.text is not None:
            raise InputError(f"check {node!r}: what it gave is a value (a number, or a list of them), not a text")
        return item, (node,), answer

    def _check_items(self, dataset: Dataset) -> None:
        """Answers of items that the table has not: a slip in an id, or another table."""
        self._db.execute("begin")
        self._db.executemany("insert into items values (?)", ((name,) for name in dataset.whole))
        self._db.execute("commit")
        self._db.execute("create index by_name on items (item)")
        query = "from (select distinct item from answers where item not in (select item from items))"
        (count,) = self._db.execute(f"select count(*) {query}").fetchone()
        if count:
            shown = [name for (name,) in self._db.execute(f"select item {query} limit 5")]
            more = f" and {count - len(shown)} more" if count > len(shown) else ""
            raise InputError(f"{self.name}: {dataset.table.name} has no item {', '.join(map(repr, shown))}{more}")
        self._db.execute("drop table items")


def part_of(item: str, parts: int) -> int:
    """The part of so many in which all that belongs to an item lies: the first 32 bits of the
    SHA-256 of its id, modulo their number.
    """
    return int.from_bytes(hashlib.sha256(item.encode("utf-8", "surrogatepass")).digest()[:4], "big") % parts


class AnswerParts:
    """Writes rows of answers into a folder of Parquet files, by the hash of the item's id: what is
    said of one item lies in one file. Use it in a `with` block; the folder is there when it ends.
    """

    BUFFERED = 2**16
    """Rows that are in memory, of all files together."""

    def __init__(self, folder: Path, parts: int = PARTS) -> None:
        if parts < 1:
            raise InputError(f"parts: {parts}; give 1 or more")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder}: is there already; name a folder that is not, or an empty one")
        pyarrow = pyarrow_for(folder / "answers.parquet")
        self._table, self._folder = pyarrow.Table.from_pylist, folder
        kinds = {"repeat": pyarrow.int32(), "cost": pyarrow.float64()}
        self._schema = pyarrow.schema([(key, kinds.get(key, pyarrow.string())) for key in KEYS if key != "value"])
        self._place = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
        self._rows: list[list[dict[str, Any]]] = [[] for _ in range(parts)]
        self._waiting = 0
        try:
            self._place.mkdir(parents=True)
            named = (self._place / f"part-{part:05d}-of-{parts:05d}.parquet" for part in range(parts))
            self._files = [pyarrow.parquet.ParquetWriter(path, self._schema) for path in named]
        except OSError as error:
            raise InputError(f"{folder}: can't be written ({reason(error)})") from None

    def __enter__(self) -> AnswerParts:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            if kind is None:
                self._flush()
            for file in self._files:
                file.close()
            if kind is None:
                if self._folder.exists():
                    self._folder.rmdir()
                self._place.rename(self._folder)
        except OSError as error:
            raise InputError(f"{self._folder}: can't be written ({reason(error)})") from None
        finally:
            shutil.rmtree(self._place, ignore_errors=True)

    def add(self, row: Mapping[str, Any]) -> None:
        """One answer: `id`, `node` and whatever else of KEYS is known, but `value`."""
        cells = {key: whole(cell) if isinstance(cell, str) else cell for key, cell in row.items()}
        self._rows[part_of(str(row["id"]), len(self._files))].append(cells)
        self._waiting += 1
        if self._waiting >= self.BUFFERED:
            self._flush()

    def _flush(self) -> None:
        for rows, file in zip(self._rows, self._files, strict=True):
            if rows:
                file.write_table(self._table(rows, schema=self._schema))
                rows.clear()
        self._waiting = 0


def answer_parts(source: str | os.PathLike[str]) -> list[Path]:
    """The files of a folder of answers, in the order of their numbers; a single Parquet file is
    the only part.
    """
    path = Path(source)
    if path.is_file() and path.suffix.lower() == ".parquet":
        return [path]
    found = {int(name[1]): (int(name[2]), one) for one in path.glob("*") if (name := _PART.fullmatch(one.name))}
    if not found or found.keys() != set(range(len(found))) or {total for total, _ in found.values()} != {len(found)}:
        raise InputError(
            f"{path}: not all the parts of a folder of answers, which rrf-design import LOG... -o FOLDER/ writes"
        )
    return [found[number][1] for number in sorted(found)]


class NodeNames:
    """From what a row calls a question (its node or ask, model and repeat) to the node of the
    recipe.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._nodes = {key: (node,) for key, node in recipe.nodes.items()} | dict(recipe.calls)
        self._ids = set(recipe.nodes.values())
        self._unknown: dict[str, None] = {}
        self._models: dict[str, set[str]] = {}
        for name, entry in recipe.models.items():
            for alias in {name, *_aliases(str(entry["use"]))}:
                self._models.setdefault(alias, set()).add(name)
        for name in recipe.models:
            self._models[name] = {name}  # its own name before anybody's alias

    def answered(self, name: str, cells: Cells) -> tuple[tuple[str, ...], RecordedAnswer]:
        """The nodes that a recorded row answers, and what it says."""
        repeat, model = _repeat(cells), cells.get("model")
        if model is not None and not isinstance(model, str):
            raise InputError(f"model is {model!r:.40}, not text")
        answer, nodes = _recorded_answer(cells), self.nodes(name, model or None, repeat)
        if len(nodes) > 1 and answer.value is not None:
            raise InputError(
                f"node {name!r} gives several fields; give its text, or the value of one field, as {nodes[0]!r}"
            )
        return nodes, answer

    def nodes(self, name: str, model: str | None, repeat: int) -> tuple[str, ...]:
        """The node's id, or those of all fields of an ask that gives several; InputError says what
        there is instead.
        """
        known_as = self._own_name(model)
        if (name, known_as, repeat) in self._nodes:
            return self._nodes[name, known_as, repeat]
        asked = {known for ask, known, _ in self._nodes if ask == name and known is not None}
        # An ask of one model knows no other, whatever a log calls it; among several the row must
        # say which.
        if len(asked) <= 1 and (name, None, repeat) in self._nodes:
            return self._nodes[name, None, repeat]
        if name in self._ids and repeat == 1 and model is None:
            return (name,)
        if name not in {ask for ask, _, _ in self._nodes} | self._ids:
            self._unknown[name] = None
            raise InputError(f"no node {name!r}{suggestion(name, self._ids)}")
        said = f"model {model!r}, repeat {repeat}" if model is not None else f"repeat {repeat}"
        known = ", ".join(nodes[0] for (ask, _, _), nodes in self._nodes.items() if ask == name)
        raise InputError(f"node {name!r} has no {said} in the recipe (it has: {known or name})")

    def other_names(self) -> str:
        """What to do about nodes that nobody knows: a tool's log may call them otherwise."""
        if not self._unknown:
            return ""
        pairs = ",".join(f"{name}=NODE" for name in list(self._unknown)[:SHOWN])
        asks = list(dict.fromkeys(ask for ask, _, _ in self._nodes))
        known = ", ".join(asks[:SHOWN]) + (", ..." if len(asks) > SHOWN else "")
        return (
            f"; if a tool's log calls them otherwise: import LOG --node-names {shlex.quote(pairs)}, NODE one of {known}"
        )

    def _own_name(self, model: str | None) -> str | None:
        """What the recipe calls a model that a log calls by its provider's name, perhaps with a
        date; as it is, if unknown.
        """
        if model is None:
            return None
        for alias in (model, *_aliases(model)):
            if len(self._models.get(alias, ())) == 1:
                return next(iter(self._models[alias]))
        return model


def _aliases(model: str) -> list[str]:
    """openai:gpt-x for openai/gpt-x-2025-01-31, then gpt-x alone."""
    whole = _DATE.sub("", model.replace("/", ":").casefold())
    return [model.replace("/", ":").casefold(), whole, whole.rpartition(":")[2]]


def _of_call(nodes: tuple[str, ...], answer: RecordedAnswer) -> Iterator[tuple[str, RecordedAnswer]]:
    """One answer for each field that is read from it; it is paid for once."""
    yield nodes[0], answer
    for other in nodes[1:]:
        yield other, replace(answer, cost=None if answer.cost is None else 0.0)


def _check_keys(given: Any, where: str) -> None:
    for key in given:
        if key not in KEYS:
            known = suggestion(str(key), KEYS) or f"; answers have the columns {', '.join(KEYS)}"
            raise InputError(f"{f'{where}: ' if where else ''}unknown column {key!r}{known}")
    for key in ("id", "node"):
        if where and key not in given:
            raise InputError(f"{where}: no column {key!r}; answers have the columns {', '.join(KEYS)}")


def _name(cell: Any, key: str) -> str:
    if isinstance(cell, bool) or not isinstance(cell, str | int) or not str(cell).strip():
        raise InputError(f"{key} is {'empty' if cell in (None, '') else f'{cell!r:.40}, not text'}")
    return str(cell)


def _number(cells: Cells, key: str) -> float | None:
    """A number in a column; None where nothing stands there."""
    if cells.get(key) in (None, ""):
        return None
    try:
        return strict_number(cells[key])
    except ValueError as error:
        raise InputError(f"{key} {error}") from None


def _repeat(cells: Cells) -> int:
    number = _number(cells, "repeat")
    if number is not None and (number < 1 or number != int(number)):
        raise InputError(f"repeat is {cells['repeat']!r:.40}; repeats count from 1 on")
    return 1 if number is None else int(number)


def _recorded_answer(cells: Mapping[str, Any]) -> RecordedAnswer:
    """What `value`, `text`, `status` and `cost` of a recorded row say."""
    status, text, value = cells.get("status"), cells.get("text"), cells.get("value")
    status = None if status is None else unread_status(status)
    cost = _number(cells, "cost")
    if cost is not None and cost < 0:
        raise InputError(f"cost is {cells['cost']!r:.40}; costs are not negative")
    if status is not None:
        return RecordedAnswer(status=status, cost=cost)
    if value is not None:
        return RecordedAnswer(value=_value(value), cost=cost)
    if text is None:
        return RecordedAnswer(status="missing", cost=cost)
    if not isinstance(text, str):
        raise InputError(f"text is {text!r:.40}, not text")
    return RecordedAnswer(text=text, cost=cost)


def _value(cell: Any) -> tuple[float, ...]:
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            raise InputError(f"value is {cell!r:.40}, not a list of numbers") from None
    try:
        return tuple(strict_number(one) for one in (cell if isinstance(cell, list | tuple) else [cell]))
    except ValueError as error:
        raise InputError(f"value {error}; raw answers go into text") from None


def _packed(answer: RecordedAnswer) -> str:
    return json.dumps([answer.value, answer.text, answer.status, answer.cost])


def _unpacked(packed: str) -> RecordedAnswer:
    value, text, status, cost = json.loads(packed)
    return RecordedAnswer(None if value is None else tuple(value), text, status, cost)


def logged_answers(source: Any) -> Iterator[tuple[str, str, int, RecordedAnswer]]:
    """Rows `id node repeat value|text|status` of a log as they stand: item, node, repeat, answer.

    No recipe says which nodes there are.
    """
    table = open_table(source)
    faults = RowFaults(table.name)
    found: dict[tuple[str, str, int], RecordedAnswer] = {}
    for number, (place, answer) in _read_rows(table, faults, _logged):
        if place in found:
            faults.add(number, f"a second answer of item {place[0]!r}, node {place[1]!r}, repeat {place[2]}")
        found.setdefault(place, answer)
    faults.refuse(len(found) + faults.count)
    for (item, node, repeat), answer in found.items():
        yield item, node, repeat, answer


def _logged(cells: Cells) -> tuple[tuple[str, str, int], RecordedAnswer]:
    place = (_name(cells.get("id"), "id"), _name(cells.get("node"), "node"), _repeat(cells))
    return place, _recorded_answer(cells)


def _read_rows(table: DataTable, faults: RowFaults, entry: Callable[[Cells], Entry]) -> Iterator[tuple[int, Entry]]:
    """Number and entry of every row that can be used; the others are added to `faults`."""
    if table.columns is not None:
        _check_keys(table.columns, table.name)
    for number, cells, _ in table.rows(faults):
        try:
            # In a table with a header a cell that is empty says nothing; an empty text is an answer
            # where a row need not have it.
            filled = cells if table.columns is None else {key: cell for key, cell in cells.items() if cell != ""}
            if filled.get("format") == RECORDED:  # an answer as a run keeps it, or what a check was told
                said = recorded_response(filled)
                if said is None:
                    continue
                place = {"id": filled.get("item"), "node": filled["node"]}
                filled = place | {key: said[key] for key in said if key != "value"}  # the recipe's parsers read it
            _check_keys(filled, "")
            made = entry(filled)
        except InputError as error:
            faults.add(number, str(error))
        else:
            yield number, made
