"""The rows of one delivered table, in memory as what a list of them shows: filtered, searched,
sorted and paged by SQLite. The whole row is read from its file again when somebody opens it.

Cells are cut for the list and for the search (`CELL`, `SEARCHED`), so that 100,000 rows take some
100 MB; `TableIndex.row` has them whole.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from array import array
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.questions.tables import DataTable, RowFaults, open_table
from rrf_design.tables.rows import COLUMNS, OF_FIELD, OF_ROW
from rrf_design.texts import cell_text, column, from_column, from_sheet, whole
from rrf_design.verdict import Verdict

CELL = 160
"""Characters of a cell that a list shows."""
SEARCHED = 1000
"""Characters of a row that are searched."""
UNSEARCHED = ("assumes", "bound", "changed", "cost", "rank")
PAGE = 50
KEPT = 8
"""Orders of a table that are kept: paging through one of them costs nothing."""
MOST_COLUMNS = 80
LARGEST = 250_000_000
"""Bytes of a table beyond which its list lies in a temporary file, not in memory."""
NAMING = 12
"""Only one of the first columns names the rows."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Which columns of a table are ours, and what they hold."""

    own: tuple[str, ...]
    """The columns of the table that was handed in."""
    ours: Mapping[str, str]
    """What is said of a row, such as `verdict` or `rank`, to the name of its column."""
    fields: tuple[str, ...] = ()
    """The columns of its values, where a row delivers several."""

    @classmethod
    def of(cls, columns: Sequence[str]) -> Delivered | None:
        """None for a table that was not delivered: ours are the last columns, in a fixed order."""
        names, size = list(columns), len(COLUMNS)
        if len(names) > size and [_bare(name) for name in names[-size:]] == list(COLUMNS):
            return cls(tuple(names[:-size]), dict(zip(COLUMNS, names[-size:], strict=True)))
        end = len(names) - len(OF_ROW)
        if end <= 0 or [_bare(name) for name in names[end:]] != list(OF_ROW):
            return None
        ours, fields = dict(zip(OF_ROW, names[end:], strict=True)), list[str]()
        while end >= len(OF_FIELD):
            block = names[end - len(OF_FIELD) : end]
            if any(not name.endswith(f"_{part}") for name, part in zip(block[1:], OF_FIELD[1:], strict=True)):
                break
            fields.insert(0, block[0])
            end -= len(OF_FIELD)
        return cls(tuple(names[:end]), ours, tuple(fields)) if fields else None


def _bare(name: str) -> str:
    while name.startswith("rrf_"):
        name = name.removeprefix("rrf_")
    return name


@dataclass(frozen=True, slots=True)
class ListView:
    """What somebody looks at: the state of a list, as it stands in its address."""

    search: str = ""
    verdict: str = ""
    only: str = ""
    """"changed" or "waiting"; all rows without it."""
    sort: str = ""
    descending: bool = False
    page: int = 1
    column: str = ""
    holds: str = ""
    """Only rows with this text in that column."""
    who: str = ""
    """Only rows in which the answer of this node was found wrong."""

    def filters(self) -> ListView:
        return replace(self, page=1)

    def query(self) -> dict[str, str]:
        """What of it is not as it is anyway, for an address."""
        found = {"q": self.search, "verdict": self.verdict, "only": self.only, "who": self.who, "sort": self.sort}
        found |= {"column": self.column, "holds": self.holds} if self.column and self.holds else {}
        found |= {"desc": "1" if self.descending else "", "page": str(self.page) if self.page > 1 else ""}
        return {name: text for name, text in found.items() if text}

    @classmethod
    def of(cls, query: Mapping[str, str]) -> ListView:
        page = query.get("page", "1")
        number = int(page) if page.isascii() and page.isdigit() and len(page) < 9 else 1
        return cls(
            query.get("q", "")[:200],
            query.get("verdict", ""),
            query.get("only", ""),
            query.get("sort", ""),
            query.get("desc") == "1",
            max(1, number),
            query.get("column", "") if query.get("holds") else "",
            query.get("holds", "")[:200],
            query.get("who", ""),
        )


class TableIndex:
    """One table. Several threads may ask; one at a time is answered."""

    def __init__(self, path: Path, *, id_column: str | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._table, self.delivered, rows, faults = _opened(path)
        self.columns = [*self.delivered.own, *(self.delivered.fields or ())]
        self.columns += [name for name in self.delivered.ours.values() if name not in self.columns]
        self.columns = self.columns[:MOST_COLUMNS]
        own = self.delivered.own
        self.id_column = id_column if id_column in own else "id" if "id" in own else None
        self._orders: OrderedDict[tuple[Any, ...], tuple[array[int], dict[str, int]]] = OrderedDict()
        self._hidden: frozenset[str] = frozenset()
        self._searched: tuple[str, ...] = ()
        place = ":memory:" if path.stat().st_size < LARGEST else ""  # else a file that ends with the connection
        self._db = sqlite3.connect(place, check_same_thread=False, isolation_level=None)
        self._fill(rows)
        self.unread = faults.count
        """Rows of the file that can't be read, and are not here."""
        self.verdicts, self.cost = self._totals()

    def _fill(self, rows: Iterator[tuple[int, int, Mapping[str, Any]]]) -> None:
        cells = ", ".join(f"c{i}" for i in range(len(self.columns)))
        self._db.execute(
            "create table rows (n integer primary key, number integer, place integer, id text, verdict text,"
            f" rank integer, changed integer, cost real, {cells})"
        )
        self._db.execute("create table wrong (n integer, node text)")
        self._db.execute("create table looks (n integer primary key, look text)")  # of its own: searched in one go
        marks = ", ".join("?" * (8 + len(self.columns)))
        searched = [name for name in self.columns if name not in self._unsearched]
        plain = [True] * len(self.columns)
        numbers = list(range(len(plain)))
        count, looks, wrong = 0, list[tuple[int, str]](), list[tuple[int, str]]()

        def made() -> Iterator[tuple[Any, ...]]:
            nonlocal count, numbers
            for number, place, row in rows:
                found = [_cut(row.get(name)) for name in self.columns]
                for i in numbers:
                    text = found[i]
                    if plain[i] and text and not _is_number(text):
                        plain[i] = False
                        numbers = [j for j in numbers if j != i]
                name = "" if self.id_column is None else column(cell_text(row.get(self.id_column)))
                looks.append((count, _look(row, searched)))
                wrong.extend((count, column(str(node))) for node in (row.get("wrong") or () if self.tells_who else ()))
                yield (count, number, place, name, *self._said(row), *found)
                count += 1

        entries = made()
        self._db.execute("begin")
        while chunk := list(islice(entries, 2000)):
            self._db.executemany(f"insert into rows values ({marks})", chunk)
            self._db.executemany("insert into looks values (?, ?)", looks)
            self._db.executemany("insert into wrong values (?, ?)", wrong)
            looks.clear()
            wrong.clear()
        self.count = count
        self.numeric = {name for name, is_plain in zip(self.columns, plain, strict=True) if is_plain}
        self._name_rows()
        self._db.execute("create index by_id on rows (id)")
        self._db.execute("create index by_verdict on rows (verdict)")
        self._db.execute("create index by_node on wrong (node)")
        self._db.execute("create table hits (n integer primary key)")
        self._db.execute("create table hidden (id text primary key)")
        self._db.execute("create table masked (n integer primary key)")
        self._db.execute("commit")

    def _name_rows(self) -> None:
        """Where nobody says which column names the rows: the first one that has another cell in
        each, else the rows' numbers.
        """
        if self.id_column is not None:
            return
        for at in range(min(NAMING, len(self.delivered.own))):
            query = f"select count(distinct c{at}), max(length(c{at})) from rows where c{at} <> ''"
            distinct, longest = self._db.execute(query).fetchone()
            if distinct == self.count and (longest or 0) < CELL:
                self.id_column = self.columns[at]
                self._db.execute(f"update rows set id = c{at}")
                return
        self._db.execute("update rows set id = cast(number as text)")

    @property
    def _unsearched(self) -> frozenset[str]:
        """Columns whose words stand in every row."""
        return frozenset(self.delivered.ours.get(name, "") for name in UNSEARCHED)

    def _said(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        ours = self.delivered.ours
        changed = row.get(ours.get("changed", ""))
        if self.delivered.fields:
            changed = any(_true(row.get(f"{name}_changed")) for name in self.delivered.fields)
        return (
            _verdict(row.get(ours["verdict"])),
            _whole_number(row.get(ours["rank"])),
            int(_true(changed)),
            _number(row.get(ours["cost"])) or 0.0,
        )

    def _totals(self) -> tuple[dict[str, int], float]:
        counts = dict(self._db.execute("select verdict, count(*) from rows group by verdict"))
        (cost,) = self._db.execute("select total(cost) from rows").fetchone()
        return {verdict.value: counts.get(verdict.value, 0) for verdict in Verdict}, float(cost)

    def hide(self, ids: Collection[str]) -> None:
        """Leave out these rows wherever rows are listed, found or opened: somebody is to look at
        them without knowing what was answered. Where it is not said which column names the rows,
        every row is left out that could have one of these names.
        """
        wanted = frozenset(ids)
        with self._lock:
            if wanted == self._hidden:
                return
            self._hidden = wanted
            self._orders.clear()
            self._db.execute("begin")
            self._db.execute("delete from hidden")
            self._db.execute("delete from masked")
            self._db.executemany("insert or ignore into hidden values (?)", ((column(name),) for name in wanted))
            named = [f"c{at}" for at in range(min(NAMING, len(self.delivered.own)))]
            for name in ("id", "cast(number as text)", *named) if wanted else ():
                query = f"select n from rows where {name} in (select id from hidden)"
                self._db.execute(f"insert or ignore into masked {query}")
            self._db.execute("commit")

    @property
    def masked(self) -> int:
        """How many rows are left out."""
        with self._lock:
            return int(self._db.execute("select count(*) from masked").fetchone()[0])

    @property
    def tells_who(self) -> bool:
        """Whether it says which answers were found wrong: a delivery does, a table has no column
        for it, and one of that name is of who handed it in.
        """
        return isinstance(self._table, _DocumentRows)

    def wrong(self) -> dict[str, int]:
        """In how many of the rows that may be shown each node was found wrong, most first."""
        query = (
            "select node, count(*) from wrong where n not in (select n from masked) group by node order by 2 desc, 1"
        )
        with self._lock:
            return {from_column(node): count for node, count in self._db.execute(query)}

    def rows(self, view: ListView) -> list[dict[str, Any]]:
        """The rows of one page of a view, each with its cells by column, cut."""
        with self._lock:
            order, _ = self._order(view)
            start = (view.page - 1) * PAGE
            wanted = order[start : start + PAGE]
            marks = ", ".join("?" * len(wanted))
            cursor = self._db.execute(f"select * from rows where n in ({marks})", wanted.tolist())
            names = [entry[0] for entry in cursor.description]
            found = {row[0]: dict(zip(names, row, strict=True)) for row in cursor}
        return [self._shown(found[n]) for n in wanted]

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        cells = {name: from_column(row[f"c{i}"]) for i, name in enumerate(self.columns)}
        return {"n": row["n"], "id": from_column(row["id"]), "verdict": row["verdict"], "cells": cells}

    def found(self, view: ListView) -> tuple[int, dict[str, int]]:
        """How many rows a view has, and how many of each verdict whatever verdict it asks for."""
        with self._lock:
            order, counts = self._order(view)
            return len(order), counts

    def _order(self, view: ListView) -> tuple[array[int], dict[str, int]]:
        key = tuple(view.filters().query().items())
        if key in self._orders:
            self._orders.move_to_end(key)
            return self._orders[key]
        where = ["1"]
        if self._hidden:
            where.append("n not in (select n from masked)")
        if words := [whole(word).replace("\0", "") for word in view.search.casefold().split()]:
            self._find(words)
            where.append("n in (select n from hits)")
        if view.only == "changed":
            where.append("changed = 1")
        elif view.only == "waiting":
            where.append("rank is not null")
        values: list[str] = []
        if view.holds and view.column in self.columns:
            where.append(f"instr(lower(c{self.columns.index(view.column)}), lower(?)) > 0")
            values.append(whole(view.holds).replace("\0", ""))
        if view.who:
            where.append("n in (select n from wrong where node = ?)")
            values.append(column(view.who))
        count = f"select verdict, count(*) from rows where {' and '.join(where)} group by verdict"
        counts = Counter(dict(self._db.execute(count, values)))
        if view.verdict:
            where.append("verdict = ?")
            values.append(view.verdict)
        rows = self._db.execute(f"select n from rows where {' and '.join(where)} {self._sorted(view)}", values)
        self._orders[key] = array("l", (n for (n,) in rows)), counts
        if len(self._orders) > KEPT:
            self._orders.popitem(last=False)
        return self._orders[key]

    def _find(self, words: Sequence[str]) -> None:
        """The rows with all of these words, kept until others are searched for."""
        if tuple(words) == self._searched:
            return
        self._searched = tuple(words)
        self._db.execute("delete from hits")
        found = " and ".join(["instr(look, ?) > 0"] * len(words))
        self._db.execute(f"insert into hits select n from looks where {found}", list(words))

    def _sorted(self, view: ListView) -> str:
        """By a column, empty cells last; else what people should look at first, then the table's
        order.
        """
        down = " desc" if view.descending else ""
        if view.sort in self.columns:
            at = f"c{self.columns.index(view.sort)}"
            value = f"cast({at} as real)" if view.sort in self.numeric else f"{at} collate nocase"
            return f"order by {at} = '', {value}{down}, n"
        return f"order by n{down}"

    def beside(self, view: ListView, n: int) -> tuple[int, int, str | None, str | None]:
        """Where a row stands in a view (0 where it does not), how many there are, and the ids
        before and after it.
        """
        with self._lock:
            order, _ = self._order(view)
            try:
                at = order.index(n)
            except ValueError:
                return 0, len(order), None, None
            around = [order[i] if 0 <= i < len(order) else None for i in (at - 1, at + 1)]
            names = [None if i is None else self._db.execute("select id from rows where n = ?", (i,)) for i in around]
            before, after = (None if rows is None else from_column(rows.fetchone()[0]) for rows in names)
        return at + 1, len(order), before, after

    def said(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Id, verdict and values of every row that may be shown."""
        names = self.delivered.fields or (self.delivered.ours.get("answer", ""),)
        at = [f"c{self.columns.index(name)}" for name in names if name in self.columns]
        query = f"select id, verdict, {', '.join(at) or 'null'} from rows where n not in (select n from masked)"
        with self._lock:
            found = self._db.execute(f"{query} order by n").fetchall()
        for name, verdict, *values in found:
            yield from_column(name), (verdict, ", ".join(from_column(text) for text in values if text))

    def row(self, name: str) -> tuple[int, Mapping[str, Any]] | None:
        """The place and the whole cells of the row of this id; None where there is none, or none
        that may be shown.
        """
        query = "select n, number, place from rows where id = ? and n not in (select n from masked)"
        with self._lock:
            found = self._db.execute(query, (column(name),)).fetchone()
        if found is None:
            return None
        n, number, place = found
        return n, _from_sheets(self._table.at(number, place), self.path)


def _opened(path: Path) -> tuple[DataTable, Delivered, Iterator[tuple[int, int, Mapping[str, Any]]], RowFaults]:
    """The table, which of its columns are ours, its rows, and what can't be read of it."""
    table = _DocumentRows(path) if path.suffix.lower() == ".json" else open_table(path)
    faults = RowFaults(table.name)
    rows: Iterator[Any] = ((number, place, cells) for number, cells, place in table.rows(faults))
    columns = table.columns
    if columns is None:
        first = next(rows, None)
        if first is None:
            raise InputError(f"{path}: holds no rows")
        columns, rows = tuple(first[2]), _before(first, rows)
    delivered = Delivered.of(columns)
    if delivered is None:
        raise InputError(f"{path}: not a delivered table: it does not end in the columns {', '.join(COLUMNS)}")
    return table, delivered, rows, faults


def _before(first: Any, rows: Iterable[Any]) -> Iterator[Any]:
    yield first
    yield from rows


class _DocumentRows(DataTable):
    """The items of an `rrf-delivery` document, one on each line after the head."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)

    def rows(self, faults: RowFaults) -> Iterator[Any]:
        number = 0
        with self.path.open("rb") as stream:
            place = len(stream.readline())
            for line in stream:
                if line.startswith(b"{"):
                    number += 1
                    yield number, self._cells(line), place
                place += len(line)

    def at(self, number: int, place: int) -> Mapping[str, Any]:
        with self.path.open("rb") as stream:
            stream.seek(place)
            return self._cells(stream.readline())

    @staticmethod
    def _cells(line: bytes) -> dict[str, Any]:
        """The delivered columns, behind everything else that the document says of an item."""
        item = json.loads(line.rstrip().removesuffix(b","))
        if "values" in item:
            item |= {"answer": {one["field"]: one["answer"] for one in item["values"]}, "raw": None}
        said = {name: item.get(name) for name in COLUMNS}
        return {"id": item["id"], "wrong": item.get("wrong"), "unread": item.get("unread")} | said


def _from_sheets(cells: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Words of models as they were said: a spreadsheet's table has an apostrophe before what would
    be a formula.
    """
    if path.suffix.lower() not in (".csv", ".tsv"):
        return cells
    delivered = Delivered.of(tuple(cells))
    ours = () if delivered is None else delivered.ours.values()
    return {key: from_sheet(cell) if key in ours and isinstance(cell, str) else cell for key, cell in cells.items()}


def _cut(cell: Any) -> str:
    """The beginning of a cell, as a database can hold it."""
    if type(cell) is str and len(cell) <= CELL and cell.isascii() and "\0" not in cell and cell[:5] != "json:":
        return cell  # most cells of most tables
    text = cell if isinstance(cell, str) else ", ".join(map(str, cell)) if isinstance(cell, list) else cell_text(cell)
    return column(text if len(text) <= CELL else f"{text[:CELL]}…")


def _look(row: Mapping[str, Any], columns: Iterable[str]) -> str:
    """What is searched: every cell, so much of them that all have a place."""
    texts = [cell if type(cell := row.get(name)) is str else cell_text(cell) for name in columns]
    room = SEARCHED if sum(map(len, texts)) <= SEARCHED else max(CELL, SEARCHED // max(1, len(texts)))
    joined = "\x1f".join([text[:room] for text in texts])
    return (joined.lower() if joined.isascii() else whole(joined.casefold())).replace("\0", "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(cell: Any) -> float | None:
    try:
        return None if cell in (None, "") else float(cell)
    except (TypeError, ValueError):
        return None


def _whole_number(cell: Any) -> int | None:
    found = _number(cell)
    return None if found is None or found != found or abs(found) > 1e15 else int(found)


def _true(cell: Any) -> bool:
    return cell is True or (isinstance(cell, str) and cell.strip().lower() in ("true", "1", "yes"))


def _verdict(cell: Any) -> str:
    try:
        return Verdict(str(cell)).value
    except ValueError:
        return Verdict.INCOMPLETE.value
