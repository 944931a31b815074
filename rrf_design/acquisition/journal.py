"""The journal: append-only events per run, from which a run's whole state is folded again.

Every purchase is an *intent* with its reserved price, committed before anything leaves the machine,
and a *settled* fact committed when the answer is there. A committed event survives a killed
process, always. It survives a power cut too on PostgreSQL and, on SQLite (WAL), with
synchronous=FULL, which is the default; a run where nothing can be charged twice (local models and
sources only) is content with NORMAL, where a power cut may take the last moments and they are done
again. The database itself refuses a second settlement of one purchase and a second writer at one
position. Texts pass the redactor before they are stored.

Rows are linked, so that a changed, lost, doubled or exchanged row is noticed and never believed:
each row carries a SHA-256 over the link of the row before it in its chain and everything it says
itself, its place in the run included. Every item has a chain, and what is of no item has one, so
whoever writes about an item needs to know the rows of that item only. A chain goes back to the
run's header, and the header names a digest of the run's problems. What a disk, a careless `update`
or a merge of two files does to a row breaks its link. This is no signature: who knows the recipe
can write all chains anew. Nor can rows be missed that were cut off at the end, because a killed
process leaves the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rrf_design.acquisition._chains import LINKED, Chains, link, texts_digest, with_link, without_link
from rrf_design.acquisition.redaction import Redactor, password_of, without_password
from rrf_design.acquisition.stores import add_item_column, no_journal, open_engine, store_address, tables
from rrf_design.errors import InputError, Refused, RetryLater
from rrf_design.texts import column, from_column

if TYPE_CHECKING:
    from sqlalchemy import Connection

FORMAT = 3
"""Since 2 rows are linked, in one chain; since 3 every item has a chain and an event when it is
decided. Older runs are read and gone on with as they are.
"""
_THERE = ("already exists", "duplicate key", "duplicate column")
_BROKEN = ("malformed", "not a database", "no such table", "is corrupt", "not decode to UTF-8")
_ROWS = """
insert into rrf_events (run, seq, kind, purchase, attempt, at, body, item)
select * from json_to_recordset(cast(:rows as json))
  as r (run text, seq int, kind text, purchase text, attempt int, at float8, body text, item text)
"""
_MANY = 500
"""Rows, or names in a query, that are handled together."""


class Kind(StrEnum):
    """What an event says. A run's state is the fold of its events in order, and nothing else."""

    SCHEDULE = "schedule"  # purchases decided on; agnostic: before any answer, and anew where something failed
    ROUND = "round"  # what is asked for next, together, and the margin this was decided on
    SESSION = "session"  # a process began or went on with the run
    INTENT = "intent"  # a purchase is about to be made; its price is reserved from here on
    REPEATED = "repeated"  # one more call for a purchase under way is about to be made, after so many that count
    BATCHED = (
        "batched"  # purchases are about to be handed in together, under a token; then again, with the batch's name
    )
    SETTLED = "settled"  # what became of it, and what it cost
    DROPPED = "dropped"  # left out of its round: there is no money for it any more
    RELEASED = "released"  # nobody was reached, so nothing was bought: the reservation ends
    ABANDONED = "abandoned"  # the session was ended without waiting for it: its price is lost, it can be made again
    DOUBT = "doubt"  # found after a crash: an intent without an outcome, and what the policy made of it
    STOPPED = "stopped"  # why one item of the run stopped
    DECIDED = "decided"  # what the answers of an item that stopped amount to: its repair
    ENDED = "ended"  # why the session ended; the last one speaks for the run
    RESULT = "result"  # before format 3: the repairs of all items, when all was over


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal.

    `purchase` names what it is about, `attempt` counts repeated intents.
    """

    kind: Kind
    body: Mapping[str, Any]
    purchase: str | None = None
    attempt: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What `runs` lists."""

    run: str
    name: str
    created: str
    stopped_because: str
    purchases: int
    items: int


class Journal:
    """An open store.

    Not for several threads at once: the loop is the only writer, calls run beside it.

    `create` makes a run; `holding` makes this process its only writer; `append` commits events in
    one transaction or raises `RetryLater` with nothing written.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | None = None,
        *,
        redactor: Redactor | None = None,
        make: bool = True,
        read_only: bool = False,
    ) -> None:
        """Open the store; with `make=False` only where there is one: who looks for a run must not
        make a journal. With `read_only` not a byte of it is written, no table is made, and no run
        waits for the reader.
        """
        missing = None if make and not read_only else no_journal(store)
        if missing is not None:
            raise InputError(f"{missing}: no journal of runs; `acquire` makes one, --store or RRF_STORE names another")
        address = store_address(store)
        self.shown = without_password(address)
        self._redactor = redactor or Redactor(password_of(address))
        file = address.removeprefix("sqlite:///") if address.startswith("sqlite:///") else ""
        self.path = Path(file) if file and file != ":memory:" else None
        self._engine = open_engine(address, self.path, self.shown, read_only=read_only)
        self._runs, self._problems, self._events = tables()
        self._tails: dict[str, tuple[int, Chains]] = {}
        """How many events a run has, and the last links of its chains."""
        self._checked = False
        self._mine: set[str] = set()
        self._doing("opened")
        with self._errors("opened"):
            self._connection: Connection = self._engine.connect()
            if not read_only:
                self._make_tables()
        self._absolute = None if self.path is None else self.path.absolute()
        self._file = self._on_disk()

    def _on_disk(self) -> tuple[int, int] | None:
        """Which file SQLite's database is now; None where there is none at its address."""
        with contextlib.suppress(OSError):
            found = None if self._absolute is None else os.stat(self._absolute)
            return None if found is None else (found.st_dev, found.st_ino)
        return None

    def _still_there(self, run: str) -> None:
        """A deleted file takes rows as if nothing had happened, and nobody can read them."""
        if self._on_disk() != self._file:
            raise Refused(
                f"run {run}: its journal {self.shown} was deleted or replaced while the run went on, so nothing of it"
                " can be shown or resumed; begin the run again"
            )

    def _make_tables(self) -> None:
        """Another program may make the same journal at this moment: what it was faster with is
        there at the next look.
        """
        from sqlalchemy.exc import DBAPIError

        tables = self._runs.metadata
        for left in range(len(tables.tables) + 1, -1, -1):
            try:
                with self._connection.begin():
                    tables.create_all(self._connection)
                add_item_column(self._connection, self._events)
                return
            except DBAPIError as error:
                if not left or not any(sign in str(error) for sign in _THERE):
                    raise

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._connection.close()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, header: Mapping[str, Any], problems: Mapping[str, Mapping[str, Any]]) -> str:
        """A new run with its header and problems; returns its name, which sorts by time."""
        now = datetime.now(UTC)
        run, created = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}", now.isoformat(timespec="microseconds")
        rows = [
            {"run": run, "position": i, "item": column(item), "document": json.dumps(document)}
            for i, (item, document) in enumerate(problems.items())
        ]
        text = self._redactor.json(
            {**header, "stored": texts_digest((str(row["item"]), str(row["document"])) for row in rows)}
        )
        mark = link("", run, FORMAT, created, text)
        row = {"run": run, "format": FORMAT, "created": created, "header": with_link(text, mark)}
        with self._errors("written"), self._connection.begin():
            self._connection.execute(self._runs.insert(), row)
            self._connection.execute(self._problems.insert(), rows)
        self._tails[run] = 0, Chains(mark, FORMAT)
        self._mine.add(run)
        return run

    def append(self, run: str, events: Sequence[Event]) -> None:
        """Commit the events together; after this returns they survive whatever happens to the
        process.
        """
        if not events:
            return
        if run not in self._tails:
            for _ in self._read(run):
                pass
        first, chains = self._tails[run]
        self._doing("written")
        from sqlalchemy.exc import IntegrityError

        rows = self._rows_of(run, events, first)
        with self._errors("written"):
            try:
                with self._connection.begin():
                    ahead = chains.seal(rows)
                    self._put(rows)
            except IntegrityError:
                raise Refused(f"run {run}: its journal has changed under this process; nothing was written") from None
        self._still_there(run)
        chains.last.update(ahead)
        self._tails[run] = first + len(rows), chains

    @contextlib.contextmanager
    def transaction(self, what: str) -> Iterator[Connection]:
        """For those who write events together with more: all of it is committed, or nothing."""
        self._doing(what)
        with self._errors(what), self._connection.begin():
            yield self._connection

    def insert(self, run: str, events: Sequence[Event], first: int, chains: Chains) -> dict[str | None, str]:
        """In an open transaction: write events from this place on; the last links of their chains,
        to be believed once that is committed.
        """
        rows = self._rows_of(run, events, first)
        self._follow(run, chains, (row["item"] for row in rows))
        ahead = chains.seal(rows)
        self._put(rows)
        return ahead

    def _put(self, rows: list[dict[str, Any]]) -> None:
        """PostgreSQL: as one statement, because others may wait meanwhile."""
        from sqlalchemy import text

        if rows and self.shared:
            self._connection.execute(text(_ROWS), {"rows": json.dumps(rows)})
        elif rows:
            self._connection.execute(self._events.insert(), rows)

    def _rows_of(self, run: str, events: Sequence[Event], first: int) -> list[dict[str, Any]]:
        """Events as rows without their links, the first at this place."""
        bodies = self._redactor.jsons([event.body for event in events])
        return [
            {
                "run": run,
                "seq": first + i,
                "kind": event.kind.value,
                "item": column(event.body["item"]) if "item" in event.body else None,
                "purchase": None if event.purchase is None else column(event.purchase),
                "attempt": event.attempt,
                "at": float(event.at or time.time()),
                "body": body,
            }
            for i, (event, body) in enumerate(zip(events, bodies, strict=True))
        ]

    def events(self, run: str, *, after: int = 0) -> tuple[Event, ...]:
        """All that was appended, in order; Refused where a row is not the one that was written.

        `after`: only what came after the first so many, which somebody has read before; each row is
        held against the one before it in its chain all the same.
        """
        return tuple(self._read(run, after))

    def _read(self, run: str, after: int = 0) -> Iterator[Event]:
        """The events one by one, so that nobody has to hold all of them."""
        header, mark = self._header(run)
        chains = Chains(mark, header["format_version"])
        if not after:
            self._sound(run)
        first, number, lost = max(0, after - 1), after, bool(after)
        query = self._selected(run, chains).where(self._events.c.seq >= first).order_by(self._events.c.seq)
        query = query.execution_options(yield_per=_MANY)
        with self._errors("read"), self._connection.begin(), self._connection.execute(query) as found:
            for part in found.partitions():
                rows = list(part)
                if lost:
                    known = rows.pop(0)
                    if known.seq != first:
                        break
                    lost = False
                    chains.last[chains.of(known)] = without_link(str(known.body))[1]
                if after:
                    self._follow(run, chains, map(chains.of, rows), before=after)
                for row in rows:
                    yield self._event(run, row, chains, number)
                    number += 1
        if lost:
            raise damaged(f"run {run}", f"it no longer has the {after:,} events that were read", self.shown)
        if not after:
            self._tails[run] = number, chains

    def chains(self, run: str) -> Chains:
        """The chains of a run of which nothing was read yet."""
        header, mark = self._header(run)
        return Chains(mark, header["format_version"])

    def events_of(self, run: str, items: Collection[str], chains: Chains | None = None) -> dict[str, list[Event]]:
        """The events of some items of a run whose items have chains of their own; Refused as in
        `events`. The `chains` that are given know their last links then.
        """
        chains, table = chains or self.chains(run), self._events
        result: dict[str, list[Event]] = {item: [] for item in items}
        with self._errors("read"), self._connection.begin():
            for names in _portions([column(item) for item in items]):
                query = self._selected(run, chains).where(table.c.item.in_(names)).order_by(table.c.seq)
                for row in self._connection.execute(query):
                    result[from_column(row.item)].append(self._event(run, row, chains, None))
        return result

    def _selected(self, run: str, chains: Chains) -> Any:
        from sqlalchemy import select

        names = (*LINKED, "item") if chains.per_item else LINKED  # a file of older runs may not have it
        return select(*(self._events.c[name] for name in names)).where(self._events.c.run == run)

    def _event(self, run: str, row: Any, chains: Chains, number: int | None) -> Event:
        """The event of a row, held against the one before it; `number` is its place where that is
        known.
        """
        where, body = f"run {run}, event {row.seq if number is None else number}", row.body
        if chains.linked:
            body, said = without_link(str(row.body))
            cells = {**row._mapping, "body": body}
            mark = chains.next(cells)
            chains.last[chains.of(row)] = mark
            if said != mark or number not in (None, row.seq):
                raise damaged(where, "its row is not the one that was written", self.shown)
        try:
            purchase = None if row.purchase is None else from_column(row.purchase)
            return Event(Kind(row.kind), json.loads(body), purchase, row.attempt, row.at)
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise damaged(where, f"a row of kind {str(row.kind)[:20]!r} that can't be read", self.shown) from None

    def _follow(self, run: str, chains: Chains, keys: Iterable[str | None], *, before: int | None = None) -> None:
        """Look up the last links of chains that were not read yet: all of them, or of what came
        before a place. In the transaction that is open.
        """
        from sqlalchemy import func, or_, select

        table = self._events
        missing = [key for key in dict.fromkeys(keys) if key not in chains.last]
        for names in _portions(missing):
            named = table.c.item.in_([name for name in names if name is not None])
            last = select(func.max(table.c.seq)).where(table.c.run == run)
            last = last.where(or_(named, table.c.item.is_(None)) if None in names else named)
            last = last if before is None else last.where(table.c.seq < before)
            places = last.group_by(table.c.item)
            query = select(table.c.item, table.c.body).where(table.c.run == run, table.c.seq.in_(places))
            for row in self._connection.execute(query):
                chains.last[row.item] = without_link(str(row.body))[1]

    def replay(self, run: str, apply: Callable[[Event], None]) -> None:
        """Apply all events of a run in order; Refused where one does not follow from those before
        it.
        """
        for number, event in enumerate(self._read(run)):
            try:
                apply(event)
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as fault:
                reason = f"it does not follow from those before it ({type(fault).__name__})"
                raise damaged(f"run {run}, event {number}", reason, self.shown) from None

    def _sound(self, run: str) -> None:
        """SQLite: a damaged index hides rows, and a run without its last rows would buy them again;
        so an old run's file is gone through once.
        """
        if self._engine.dialect.name != "sqlite" or self._checked or run in self._mine:
            return
        with self._errors("read"):
            found = self._connection.exec_driver_sql("pragma integrity_check(1)").scalar()
            self._connection.rollback()
        if found != "ok":
            raise damaged(f"run {run}", "the file of its journal is broken", self.shown)
        self._checked = True

    def length(self, run: str) -> int:
        """How many events the run has, without reading them."""
        from sqlalchemy import func, select

        query = select(func.count()).select_from(self._events).where(self._events.c.run == run)
        with self._errors("read"), self._connection.begin():
            return int(self._connection.execute(query).scalar_one())

    def documents(self, run: str, places: Collection[int]) -> dict[str, dict[str, Any]]:
        """Some of the run's problems, by their positions. The digests in its header say whether
        they are those that were written.
        """
        table = self._problems
        query = table.select().where(table.c.run == run, table.c.position.in_(places)).order_by(table.c.position)
        with self._errors("read"), self._connection.begin():
            return {from_column(row.item): json.loads(row.document) for row in self._connection.execute(query)}

    @property
    def shared(self) -> bool:
        """Whether several processes can work on one of its runs."""
        return self._engine.dialect.name == "postgresql"

    def header(self, run: str) -> dict[str, Any]:
        """The run's header; InputError when its format is newer than this program, Refused when it
        was changed.
        """
        return self._header(run)[0]

    def _header(self, run: str) -> tuple[dict[str, Any], str]:
        """The header and its link, which is empty in a run of a format without links."""
        with self._errors("read"), self._connection.begin():
            row = self._connection.execute(self._runs.select().where(self._runs.c.run == run)).one_or_none()
        if row is None:
            raise InputError(f"{self.shown}: there is no run {run!r}; see `rrf-design runs`")
        if row.format > FORMAT:
            raise InputError(f"run {run}: its format {row.format} is newer than this program, which reads {FORMAT}")
        text, mark = without_link(str(row.header))
        if mark != (link("", run, row.format, row.created, text) if row.format > 1 else "") or row.format < 1:
            raise damaged(f"run {run}", "its header is not the one that was written", self.shown)
        try:
            header = dict(json.loads(text))
        except (TypeError, ValueError, RecursionError):
            raise damaged(f"run {run}", "its header can't be read", self.shown) from None
        return header | {"run": run, "created": row.created, "format_version": row.format}, mark

    def problems(self, run: str) -> dict[str, dict[str, Any]]:
        stored = self.header(run).get("stored")
        query = self._problems.select().where(self._problems.c.run == run).order_by(self._problems.c.position)
        with self._errors("read"), self._connection.begin():
            rows = self._connection.execute(query).all()
        if stored is not None and stored != texts_digest((str(row.item), str(row.document)) for row in rows):
            raise damaged(f"run {run}", "its problems are not those that were written", self.shown)
        try:
            return {from_column(row.item): json.loads(row.document) for row in rows}
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise damaged(f"run {run}", "its problems can't be read", self.shown) from None

    def find(self, given: str) -> str:
        """The run that a name, the beginning of one, or "last" means."""
        from sqlalchemy import select

        with self._errors("read"), self._connection.begin():
            names = list(
                self._connection.execute(
                    select(self._runs.c.run).order_by(self._runs.c.created, self._runs.c.run)
                ).scalars()
            )
        if given == "last" and names:
            return str(names[-1])
        fitting = [name for name in names if name.startswith(given)]
        if given in fitting or len(fitting) == 1:
            return given if given in fitting else str(fitting[0])
        if fitting:
            raise InputError(f"{self.shown}: {given!r} fits {len(fitting)} runs; write more of its name")
        raise InputError(f"{self.shown}: there is no run {given!r}; see `rrf-design runs`")

    def summaries(self) -> tuple[RunSummary, ...]:
        """All runs, newest first."""
        from sqlalchemy import func, select

        events, problems = self._events, self._problems
        with self._errors("read"), self._connection.begin():
            execute = self._connection.execute
            runs = execute(self._runs.select().order_by(self._runs.c.created.desc(), self._runs.c.run)).all()
            items = dict(_pairs(execute(select(problems.c.run, func.count()).group_by(problems.c.run))))
            settled = select(events.c.run, func.count()).where(events.c.kind == Kind.SETTLED.value)
            counts = dict(_pairs(execute(settled.group_by(events.c.run))))
            ended = select(events.c.run, events.c.body).where(events.c.kind == Kind.ENDED.value)
            endings = dict(_pairs(execute(ended.order_by(events.c.run, events.c.seq))))
        return tuple(
            RunSummary(
                run=row.run,
                name=str(_said(row.header, "name", "")),
                created=row.created,
                stopped_because=str(
                    _said(endings.get(row.run, '{"because": "unfinished"}'), "because", "can't be read")
                ),
                purchases=counts.get(row.run, 0),
                items=items.get(row.run, 0),
            )
            for row in runs
        )

    def survive_power_cuts(self, wanted: bool) -> None:
        """SQLite: whether every commit waits for the disk. PostgreSQL is told by its own
        settings.
        """
        self._pragma(f"synchronous={'full' if wanted else 'normal'}")

    def wait_at_most(self, seconds: float) -> None:
        """SQLite: how long to wait for another program's lock before giving up."""
        self._pragma(f"busy_timeout={round(1000 * seconds)}")

    @property
    def synchronous(self) -> int | None:
        """SQLite's setting as it is: 1 for NORMAL, 2 for FULL."""
        return self._pragma("synchronous")

    def _pragma(self, text: str) -> int | None:
        if self._engine.dialect.name != "sqlite":
            return None
        with self._errors("opened"):
            cursor = self._connection.connection.cursor()
            row = cursor.execute(f"pragma {text}").fetchone()
            cursor.close()
        return None if row is None else int(row[0])

    @contextlib.contextmanager
    def holding(self, run: str) -> Iterator[None]:
        """Be the only process that works on this run, or be refused."""
        from rrf_design.acquisition.stores import advisory_lock, file_lock

        lock: contextlib.AbstractContextManager[None]
        if self.path is not None:
            lock = file_lock(self.path, run)
        elif self._engine.dialect.name == "postgresql":
            lock = advisory_lock(self._connection, run)
        else:
            lock = contextlib.nullcontext()  # a database in memory belongs to its process
        with lock:
            self._tails.pop(run, None)
            yield

    def _doing(self, what: str) -> None:
        """A seam for failing doubles: tests let this raise what a full disk or a lost server
        would.
        """

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        try:
            yield
        except (DBAPIError, OSError) as error:
            broken = any(sign in str(error) for sign in _BROKEN)
            raise (InputError if broken else RetryLater)(self._message(what, error)) from None
        except (SQLAlchemyError, UnicodeDecodeError) as error:
            raise InputError(self._message(what, error)) from None

    def _message(self, what: str, error: Exception) -> str:
        reason = str(getattr(error, "orig", None) or error).strip().split("\n")[0][:120]
        advice = "then resume the run"
        if isinstance(error, UnicodeDecodeError) or any(sign in reason for sign in _BROKEN):
            advice = "the file is damaged or no database; restore it from a copy, or name another with --store"
        elif "full" in reason or "No space" in reason or "disk I/O" in reason or "too large" in reason:
            advice = "free some disk space, then resume the run"
        elif "locked" in reason:
            advice = "another program holds the database; let it finish, then resume the run"
        return self._redactor.text(f"the journal {self.shown} can't be {what} ({reason}); {advice}")


def _said(text: Any, key: str, otherwise: str) -> Any:
    """One entry of a stored object, for a list of many runs: one that is damaged must not hide the
    others.
    """
    try:
        return json.loads(text)[key]
    except (TypeError, ValueError, LookupError, RecursionError):
        return otherwise


def _pairs(rows: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(row[0], row[1]) for row in rows]


def _portions(names: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(names), _MANY):
        yield names[first : first + _MANY]


def damaged(what: str, reason: str, shown: str) -> Refused:
    return Refused(
        f"{what}: {reason}; the journal was changed or is damaged, and nothing of the run is believed; restore {shown}"
        " from a copy"
    )
