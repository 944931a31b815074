"""What lies in the folders, stores and documents that the studio was given: each with its sentence,
how many rows have which verdict, what it cost, when, and what to do next.

Folders are looked through at every request for the list, so what a verb writes meanwhile appears;
what did not change is not read again. Nothing outside of what was given can be named: a key is
looked up among what was found, never opened as a path.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from rrf_design.acquisition import Journal, answer_log, read_run
from rrf_design.acquisition.journal import Event
from rrf_design.acquisition.redaction import without_password
from rrf_design.acquisition.stores import has_table
from rrf_design.errors import InputError, RRFError
from rrf_design.files import digest, from_document, load
from rrf_design.problem import Problem
from rrf_design.questions.recipe import Recipe, load_recipe
from rrf_design.questions.tables import RowFaults, open_table
from rrf_design.reporting.documents import PageSource, fragments, has_page, read
from rrf_design.reporting.pages import Markup
from rrf_design.studio._index import Delivered, TableIndex
from rrf_design.studio.labels import LabelStore, is_label_store
from rrf_design.verdict import Verdict, table_sentence

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
STORES = (".sqlite", ".sqlite3", ".db")
DEEPEST = 4
MOST = 5000
"""Files of a folder that are looked at."""
RUNS = 20
"""Runs that are looked through for what was bought of a row."""
LARGE = 8_000_000
"""Bytes. Of a larger document the list shows what its head says; its page is made when asked."""
HEAD = 65_536
_KIND = re.compile(rb'"format":\s*"(rrf-[a-z-]+)')
_LONG_AGO = datetime.fromtimestamp(0, tz=UTC)
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """One thing that was found."""

    key: str
    """What addresses call it: its path below what was given, with the run of a store."""
    kind: str
    """"table", "document", "run" or "labels"."""
    path: Path | None
    title: str = ""
    sentence: str = ""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    at: datetime | None = None
    next: str = ""
    format: str = ""
    run: str = ""
    store: str = ""
    rows: int | None = None
    thumbnail: Markup | None = None
    trouble: str = ""
    """Why it can't be shown."""


class Library:
    """What the studio shows. Safe for several threads."""

    def __init__(self, places: Sequence[str | os.PathLike[str]] = (".",)) -> None:
        self.places = [str(place) for place in places] or ["."]
        self._lock = threading.RLock()
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._found: dict[str, LibraryEntry] = {}
        self._looked = 0.0
        for place in self.places:
            if "://" not in place and not Path(place).exists():
                raise InputError(f"{place}: no such file or folder")
        self.look()

    def look(self) -> list[LibraryEntry]:
        """Everything there is now, the newest first."""
        found: dict[str, LibraryEntry] = {}
        for key, path in self._files():
            for entry in self._entries(key, path):
                found.setdefault(entry.key, entry)
        for place in self.places:
            if "://" in place:
                for entry in self._server(without_password(place), place):
                    found.setdefault(entry.key, entry)
        with self._lock:
            self._found, self._looked = found, time.monotonic()
        return self.entries()

    def entries(self) -> list[LibraryEntry]:
        """What was found at the last look, the newest first."""
        return sorted(self._found.values(), key=lambda entry: entry.at or _LONG_AGO, reverse=True)

    def entry(self, key: str) -> LibraryEntry:
        """What an address names; InputError where it is not there (any more)."""
        if key not in self._found:
            self.look()
        if key not in self._found:
            raise InputError(f"there is no {key!r:.80} here; the list shows what there is")
        return self._found[key]

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Every file that may be something, with its key."""
        several = len(self.places) > 1
        for place in self.places:
            path = Path(place)
            if "://" in place:
                continue
            if not path.is_dir():
                yield path.name if not several else str(path), path
                continue
            seen = 0
            for folder, folders, names in os.walk(path):
                below = Path(folder).relative_to(path)
                folders[:] = sorted(n for n in folders if n[:1] not in "._" and n not in _SKIPPED)
                if len(below.parts) >= DEEPEST:
                    folders.clear()
                for name in sorted(names):
                    seen += 1
                    if seen > MOST:
                        return
                    inside = str(below / name)
                    yield inside if not several else str(path / inside), Path(folder, name)

    def _entries(self, key: str, path: Path) -> Iterator[LibraryEntry]:
        ending = path.suffix.lower()
        if ending not in (".json", *TABLES, *STORES):
            return
        try:
            seen = path.stat()
        except OSError:
            return
        if ending in STORES:
            yield from self._store(key, path)
            return
        make = self._document if ending == ".json" else self._table
        entry = self._once(("entry", key, path, seen.st_mtime_ns, seen.st_size), lambda: _sound(make, key, path))
        if entry is not None:
            yield replace(entry, at=datetime.fromtimestamp(seen.st_mtime, tz=UTC))

    def _once(self, key: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """Made once for a file as it is; what was made of it before it changed is forgotten."""
        with self._lock:
            if key not in self._kept:
                made = make()
                for other in [other for other in self._kept if other[:3] == key[:3]]:
                    del self._kept[other]
                self._kept[key] = made
            return self._kept[key]  # type: ignore[no-any-return]

    def _document(self, key: str, path: Path) -> LibraryEntry | None:
        with path.open("rb") as stream:
            head = stream.read(HEAD)
        named = _KIND.search(head)
        if named is None:
            return None
        kind = named[1].decode()
        if kind == "rrf-delivery" and (told := _delivery_head(head)) is not None:
            return _table_entry(key, path, told["verdicts"], None, title=f"{told['recipe']}: {path.name}", kind=kind)
        if not has_page(kind):
            return None
        if path.stat().st_size > LARGE:
            return LibraryEntry(key, "document", path, path.name, "A large document: open it to see it.", format=kind)
        source = read(path)
        parts = fragments(source if source.problem is not None else replace(source, problem=self._owner(source)))
        verdicts = source.data.get("verdicts") or {}
        cost = source.data.get("spent", source.data.get("cost"))
        return LibraryEntry(
            key,
            "document",
            path,
            parts.title,
            parts.sentence,
            verdicts if isinstance(verdicts, dict) else {},
            cost if isinstance(cost, int | float) else None,
            next=NEXT.get(kind, "").format(path=path.name),
            format=kind,
            thumbnail=None if verdicts else parts.thumbnail,
        )

    def _table(self, key: str, path: Path) -> LibraryEntry | None:
        if Delivered.of(_columns(path)) is None:
            return None
        index = self._index(path)
        return _table_entry(key, path, index.verdicts, index.cost, title=path.name, rows=index.count)

    def tables(self, folder: Path | None) -> list[LibraryEntry]:
        """The delivered tables in a folder, or in all: those with the rows' own columns first."""
        found = [entry for entry in self._found.values() if entry.kind == "table" and entry.path is not None]
        here = [e for e in found if folder is None or (e.path is not None and e.path.parent == folder)]
        return sorted(here, key=lambda entry: (entry.format != "", -(entry.at or _LONG_AGO).timestamp()))

    def index(self, path: Path) -> TableIndex:
        """The rows of a delivered table, without those that somebody is to look at blindly."""
        made = self._index(path)
        made.hide(self.blind())
        return made

    def _index(self, path: Path) -> TableIndex:
        seen = path.stat()
        recipe = self.recipe(path)
        column = None if recipe is None else recipe.data.id
        key = ("index", path, None, seen.st_mtime_ns, seen.st_size, column)
        return self._once(key, lambda: TableIndex(path, id_column=column))

    def blind(self) -> frozenset[str]:
        """Rows that wait for a look at which no model's answer may be known."""
        if time.monotonic() - self._looked > 1.0:  # a verb may have begun to ask meanwhile
            self.look()
        found: set[str] = set()
        for store in self.label_stores().values():
            found |= store.blind_ids()
        return frozenset(found)

    def label_stores(self) -> dict[str, LabelStore]:
        """Every store of labels, by its key."""
        with self._lock:
            found = {key: entry for key, entry in self._found.items() if entry.kind == "labels"}
        return {
            key: self._labels(entry.path or entry.store)
            for key, entry in found.items()
            if entry.path is None or entry.path.exists()
        }

    def _labels(self, place: Path | str) -> LabelStore:
        which = place.stat().st_ino if isinstance(place, Path) else None
        return self._once(("labels", place, None, which), lambda: LabelStore(place))

    def _store(self, key: str, path: Path) -> Iterator[LibraryEntry]:
        if is_label_store(path):
            at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
            yield replace(_review_entry(key, self._labels(path)), path=path, at=at)
        elif has_table(path, "rrf_runs"):
            yield from self._runs(key, str(path), path)

    def _server(self, key: str, address: str) -> Iterator[LibraryEntry]:
        """A database may have runs, labels, or both."""
        try:
            asks = is_label_store(address)
            if asks:
                yield replace(_review_entry(key, self._labels(address)), store=address)
            runs = list(self._runs(key, address, None))
        except RRFError as error:
            yield LibraryEntry(key, "run", None, key, store=address, trouble=str(error))
            return
        yield from (run for run in runs if not (asks and run.trouble))

    def _runs(self, key: str, store: str, path: Path | None) -> Iterator[LibraryEntry]:
        try:
            with Journal(store, read_only=True) as journal:
                runs = journal.summaries()
        except RRFError as error:
            yield LibraryEntry(key, "run", path, key, store=store, trouble=str(error))
            return
        for run in runs:
            open_still = run.stopped_because in ("unfinished", "paused", "pending")
            many = f"{run.items:,} item{'s' * (run.items != 1)}, {run.purchases:,} purchase{'s' * (run.purchases != 1)}"
            yield LibraryEntry(
                f"{key}#{run.run}",
                "run",
                path,
                f"Run: {run.name}",
                f"{many}; {'not finished' if open_still else f'ended: {run.stopped_because}'}.",
                at=datetime.fromisoformat(run.created),
                next="Watch it" if open_still else f"rrf-design show {run.run}",
                run=run.run,
                store=store,
            )

    def events(self, folder: Path, item: str) -> tuple[LibraryEntry, Sequence[Event]] | None:
        """What happened to an item in the newest run that has it: of the runs whose journal lies in
        the folder or on a server.
        """
        runs = [e for e in self.entries() if e.kind == "run" and not e.trouble]
        for entry in [e for e in runs if e.path is None or e.path.parent == folder][:RUNS]:
            with suppress(RRFError), Journal(entry.store, read_only=True) as journal:
                chains = journal.chains(entry.run)
                if chains.per_item and (found := journal.events_of(entry.run, [item], chains)[item]):
                    return entry, found
        return None

    def recipe(self, path: Path) -> Recipe | None:
        """The recipe that a table or document was made with: the one it names, or the only one in
        its folder.
        """
        folder = path.parent
        named = None
        if path.suffix.lower() == ".json":
            with path.open("rb") as stream:
                told = _delivery_head(stream.read(HEAD))
            named = None if told is None else folder / str(told["recipe"])
        found = [named] if named is not None and named.is_file() else sorted(folder.glob("*.toml"))
        recipes = [recipe for one in found if (recipe := self._recipe(one)) is not None]
        return recipes[0] if len(recipes) == 1 else None

    def _recipe(self, path: Path) -> Recipe | None:
        def made() -> Recipe | None:
            try:
                recipe = load_recipe(path)
            except (RRFError, ValueError, OSError):
                return None
            return recipe if recipe.nodes else None

        return self._once(("recipe", path, None, path.stat().st_mtime_ns), made)

    def answers(self, folder: Path) -> list[_AnswerLines]:
        """The files of recorded answers in a folder."""
        found = []
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() in TABLES and path.is_file():
                seen = path.stat()
                key = ("answers", path, None, seen.st_mtime_ns, seen.st_size)
                made = self._once(key, lambda path=path: _AnswerLines(path) if _are_answers(path) else None)  # type: ignore[misc]
                if made is not None:
                    found.append(made)
        return found

    def prepare(self, folder: Path) -> None:
        """Go through large files of answers before somebody opens a row, beside other work."""

        def read() -> None:
            with suppress(RRFError, OSError, ValueError):
                for lines in self.answers(folder):
                    lines.of("")

        def begin() -> threading.Thread:
            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            return thread

        if any(path.stat().st_size > LARGE for path in folder.glob("*.*") if path.suffix.lower() in TABLES):
            self._once(("prepared", folder, None), begin)

    def handed_in(self, folder: Path, recipe: Recipe, name: str) -> Mapping[str, Any]:
        """The row of the recipe's own table that has this id; nothing where it is not there."""
        column = recipe.data.id
        if recipe.data.table is None or column is None or not (path := folder / recipe.data.table).is_file():
            return {}
        seen = path.stat()
        key = ("own", path, None, seen.st_mtime_ns, seen.st_size, column)
        lines = self._once(key, lambda: _AnswerLines(path, column=column))
        return next(iter(lines.of(name)), {})

    def source(self, entry: LibraryEntry) -> PageSource:
        """A document, or a run as its journal has it now, for its page."""
        if entry.kind != "run":
            assert entry.path is not None
            source = read(entry.path)
            return source if source.problem is not None else replace(source, problem=self._owner(source))
        with Journal(entry.store, read_only=True) as journal:
            problems = {item: from_document(text) for item, text in journal.problems(entry.run).items()}
        found = read(read_run(entry.run, store=entry.store), problem=problems)
        return replace(found, answers=answer_log(entry.run, store=entry.store))

    def _owner(self, source: PageSource) -> Problem | None:
        """The problem that a document belongs to, where its file lies beside it: by its digest."""
        carried = source.data.get("problem")
        wanted = carried.get("digest") if isinstance(carried, dict) else source.data.get("digest", carried)
        if source.path is None or not isinstance(wanted, str):
            return None
        for path in sorted(source.path.parent.glob("*.toml")):
            found = self._once(("problem", path, None, path.stat().st_mtime_ns), lambda path=path: _loaded(path))  # type: ignore[misc]
            if found is not None and digest(found) == wanted:
                return found
        return None


def _loaded(path: Path) -> Problem | None:
    try:
        return load(path)
    except (RRFError, ValueError, OSError):
        return None


class _AnswerLines:
    """The rows of a file by the item they are about: recorded answers, or the table itself."""

    def __init__(self, path: Path, *, column: str = "id") -> None:
        self.path, self._table, self._column = path, open_table(path), column
        self._lock = threading.Lock()

    @cached_property
    def _places(self) -> tuple[Any, Any, Any]:
        """Number and place of each row by a hash of its id, in order of these: some 24 bytes a
        row, however many there are.
        """
        import numpy as np

        marks, numbers, places = array("q"), array("q"), array("q")
        for name, number, place in self._rows():
            marks.append(hash(name))
            numbers.append(number)
            places.append(place)
        found = [np.array(one, dtype=np.int64) for one in (marks, numbers, places)]
        order = np.argsort(found[0], kind="stable")
        return found[0][order], found[1][order], found[2][order]

    def _rows(self) -> Iterator[tuple[str, int, int]]:
        if self.path.suffix.lower() != ".jsonl" or self._column != "id":
            for number, cells, place in self._table.rows(RowFaults(self._table.name)):
                yield str(cells.get(self._column)), number, place
            return
        place = 0
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if (named := _ID.search(line)) is not None:
                    text = named[1]
                    plain = text[:1] == b'"' and b"\\" not in text
                    yield text[1:-1].decode("utf-8", "replace") if plain else str(json.loads(text)), number, place
                place += len(line)

    def of(self, item: str) -> list[dict[str, Any]]:
        """The rows about one item."""
        with self._lock:
            marks, numbers, places = self._places
        first, last = (int(marks.searchsorted(hash(item), side)) for side in ("left", "right"))
        rows = [dict(self._table.at(int(numbers[at]), int(places[at]))) for at in range(first, last)]
        return [row for row in rows if str(row.get(self._column)) == item]


_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)')

NEXT = {
    "rrf-plan": "rrf-design certify PROBLEM --plan {path}",
    "rrf-certificate": "rrf-design verify {path}",
    "rrf-policy": "rrf-design acquire RECIPE --policy {path}",
    "rrf-policy-run": "rrf-design audit {path}",
    "rrf-audit": "rrf-design verify {path}",
    "rrf-delivered": "rrf-design verify {path} --delivered TABLE",
}
"""What is done with a document of each kind."""


def _table_entry(
    key: str, path: Path, verdicts: Mapping[str, int], cost: float | None, *, title: str, kind: str = "", **more: Any
) -> LibraryEntry:
    counts = {verdict.value: int(verdicts.get(verdict.value, 0)) for verdict in Verdict}
    open_still = sum(count for name, count in counts.items() if not Verdict(name).passes)
    following = "every row is checked: hand it over"
    if counts[Verdict.CONSISTENT.value]:
        following = (
            "rrf-design deliver RECIPE --responses ANSWERS --risk 5% -o TABLE proves how many are wrong, at most"
        )
    if open_still:
        following = f"look at the {open_still:,} open rows: --review labels.sqlite asks people for them here"
    return LibraryEntry(
        key, "table", path, title, table_sentence(counts), counts, cost, next=following, format=kind, **more
    )


def _review_entry(key: str, store: LabelStore) -> LibraryEntry:
    counts, name = store.counts(), store.shown if store.path is None else store.path.name
    waits = "1 row waits" if counts.open == 1 else f"{counts.open:,} rows wait"
    said = "1 label" if counts.labels == 1 else f"{counts.labels:,} labels"
    return LibraryEntry(
        key,
        "labels",
        None,
        f"Review: {name}",
        f"{said} so far; {waits} for a person{', blindly' if counts.blind else ''}.",
        next="Review" if counts.open else f"repeat the verb with --review {name} (and --resume)",
    )


def _sound(make: Callable[[str, Path], LibraryEntry | None], key: str, path: Path) -> LibraryEntry | None:
    """What was made of a file; one that can't be read says why, and hides nothing else."""
    try:
        return make(key, path)
    except (RRFError, OSError, ValueError, KeyError, TypeError) as error:
        return LibraryEntry(
            key, "document", path, path.name, trouble=str(error).splitlines()[0][:300] or type(error).__name__
        )


def _delivery_head(head: bytes) -> dict[str, Any] | None:
    """What a delivery says of all its items, which stands before them."""
    cut = head.find(b'"items": [')
    if cut < 0:
        return None
    try:
        found = json.loads(head[:cut].rstrip().removesuffix(b",") + b"}")
        return found if {"recipe", "verdicts"} <= found.keys() else None
    except (ValueError, AttributeError):
        return None


def _columns(path: Path) -> tuple[str, ...]:
    """The columns of a table; none where it is no table."""
    try:
        table = open_table(path)
        if table.columns is not None:
            return tuple(table.columns)
        first = next(iter(table.rows(RowFaults(table.name))), None)
    except (RRFError, OSError):
        return ()
    return () if first is None else tuple(first[1])


def _are_answers(path: Path) -> bool:
    columns = set(_columns(path))
    return {"id", "node"} <= columns and bool(columns & {"text", "value", "status"})
