"""Where journals lie: the address that a user's word for a store means, the database behind it, its
three tables, and the lock that leaves a run to one process.

The lock is the system's and not a row that a crash would leave behind. SQLite: an exclusive `flock`
on a small file beside the database. PostgreSQL: a session-level advisory lock. Both end with their
process, however it ends, so a killed run can be resumed at once and a living one can't be entered
twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.redaction import without_password
from rrf_design.errors import InputError, MissingDependency, Refused

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

DEFAULT_STORE = "rrf-runs.sqlite"
"""In the working directory; `--store` or the environment variable RRF_STORE names another place."""


_HEARTBEAT = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""PostgreSQL: a server that can't be reached any more is noticed after half a minute, not after a
quarter of an hour. The address may say otherwise.
"""


def store_address(store: str | os.PathLike[str] | None) -> str:
    """The database address that `--store` means: an address, a path, or the default."""
    given = os.fspath(store) if store is not None else os.environ.get("RRF_STORE", DEFAULT_STORE)
    if "://" not in given:
        return f"sqlite:///{given}"
    scheme, rest = given.split("://", 1)
    if scheme in ("postgresql", "postgres"):
        return f"postgresql+psycopg://{rest}"
    if scheme in ("sqlite", "postgresql+psycopg"):
        return given
    raise InputError(f"store {without_password(given)!r}: use a path, sqlite:///PATH or postgresql://...")


def no_journal(store: str | os.PathLike[str] | None) -> str | None:
    """The file that a journal would be in and is not."""
    address = store_address(store)
    file = address.removeprefix("sqlite:///")
    return file if file != address and file != ":memory:" and not Path(file).exists() else None


def open_engine(address: str, path: Path | None, shown: str, *, read_only: bool = False) -> Engine:
    import sqlalchemy

    if path is not None and str(path) and not path.absolute().parent.is_dir():
        raise InputError(f"store {shown}: the folder {path.parent} does not exist")
    sqlite = address.startswith("sqlite")
    if sqlite and read_only and path is not None:
        file = path
        return sqlalchemy.create_engine("sqlite://", creator=lambda: _reader(file), poolclass=sqlalchemy.NullPool)
    try:
        # A busy database is waited for; ten seconds is longer than any of our transactions.
        arguments = (
            {"timeout": 10} if sqlite else {name: n for name, n in _HEARTBEAT.items() if f"{name}=" not in address}
        )
        options: dict[str, Any] = {"connect_args": arguments, "pool_pre_ping": not sqlite}
        engine = sqlalchemy.create_engine(address, **options)
    except ImportError:
        raise MissingDependency(f"store {shown}: PostgreSQL needs psycopg; pip install 'psycopg[binary]'") from None
    except sqlalchemy.exc.ArgumentError:
        raise InputError(f"store {shown}: not an address a database can be found at") from None
    if sqlite:
        sqlalchemy.event.listen(engine, "connect", _pragmas)
    return engine.execution_options(postgresql_readonly=True) if read_only and not sqlite else engine


def _reader(path: Path) -> Any:
    """A connection to an SQLite file that can't write.

    Without a log beside the file nobody writes to it at this moment, and then it is read as it
    lies there: opening it otherwise would make that log.
    """
    import sqlite3
    from urllib.parse import quote

    way = f"file:{quote(str(path.absolute()))}?mode=ro"
    if not path.with_name(f"{path.name}-wal").exists():
        way += "&immutable=1"
    return sqlite3.connect(way, uri=True, timeout=10, check_same_thread=False)


def has_table(path: Path, name: str) -> bool:
    """Whether a file is an SQLite database with this table; nothing is written to find out."""
    import sqlite3

    try:
        with path.open("rb") as stream:
            if stream.read(15) != b"SQLite format 3":
                return False
        with contextlib.closing(_reader(path)) as database:
            found = database.execute("select 1 from sqlite_master where type = 'table' and name = ?", (name,))
            return found.fetchone() is not None
    except (OSError, sqlite3.Error):
        return False


def _pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("pragma journal_mode=wal")
    cursor.execute("pragma synchronous=full")
    cursor.close()


def tables() -> tuple[Any, Any, Any]:
    from sqlalchemy import Column, Float, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

    data = MetaData()
    runs = Table(
        "rrf_runs",
        data,
        Column("run", String(64), primary_key=True),
        Column("format", Integer, nullable=False),
        Column("created", String(40), nullable=False),
        Column("header", Text, nullable=False),
    )
    problems = Table(
        "rrf_problems",
        data,
        Column("run", String(64), primary_key=True),
        Column("position", Integer, primary_key=True),
        Column("item", Text, nullable=False),
        Column("document", Text, nullable=False),
    )
    events = Table(
        "rrf_events",
        data,
        Column("run", String(64), primary_key=True),
        Column("seq", Integer, primary_key=True),
        Column("kind", String(16), nullable=False),
        Column("purchase", Text),
        Column("attempt", Integer, nullable=False),
        Column("at", Float, nullable=False),
        Column("body", Text, nullable=False),
        Column("item", Text),  # since format 3: whose chain the row is in
        # One outcome per attempt at a purchase: what was settled can't be settled again. (NULLs are
        # never equal.)
        UniqueConstraint("run", "kind", "purchase", "attempt"),
    )
    Index("rrf_events_item", events.c.run, events.c.item, events.c.seq)
    return runs, problems, events


def lease_tables() -> tuple[Any, Any]:
    """The books of runs that processes share, and the leases on their items; on PostgreSQL only."""
    from sqlalchemy import Column, Float, Index, Integer, MetaData, Numeric, String, Table, Text

    data = MetaData()
    sums = ("price", "money", "calls")
    books = Table(
        "rrf_books",
        data,
        Column("run", String(64), primary_key=True),
        Column("events", Integer, nullable=False),
        Column("open", Integer, nullable=False),
        *(Column(name, Numeric, nullable=False) for name in sums),
        *(Column(f"most_{name}", Numeric) for name in sums),
    )
    leases = Table(
        "rrf_leases",
        data,
        Column("run", String(64), primary_key=True),
        Column("position", Integer, primary_key=True),
        Column("item", Text, nullable=False),
        Column("holder", Text),
        Column("fence", Integer, nullable=False),
        Column("expires", Float, nullable=False),
        Column("state", Integer, nullable=False),
    )
    Index("rrf_leases_item", leases.c.run, leases.c.item, unique=True)
    Index("rrf_leases_open", leases.c.run, leases.c.position, postgresql_where=leases.c.state == 0)
    return books, leases


def add_item_column(connection: Connection, events: Any) -> None:
    """A store that was made before format 3 gets what its new runs need; its old runs stay as they
    are.
    """
    from sqlalchemy import inspect, text

    with connection.begin():
        there = {column["name"] for column in inspect(connection).get_columns("rrf_events")}
        if "item" not in there:
            connection.execute(text("alter table rrf_events add column item text"))
            for index in events.indexes:
                index.create(connection, checkfirst=True)


def _refused(run: str, holder: str) -> Refused:
    who = f"process {holder}" if holder else "another process"
    return Refused(f"run {run}: {who} is working on it; wait for it to end, or end it, and then resume")


@contextlib.contextmanager
def file_lock(database: Path, run: str) -> Iterator[None]:
    """Hold the run's lock file; it is removed on a clean end and harmless when it stays."""
    import fcntl

    database = Path(os.path.realpath(database))  # one lock, by whatever links the file is reached
    path = database.with_name(f".{database.name}.{run}.lock")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            os.close(handle)
            raise _refused(run, holder) from None
        # The file may have been removed by a holder that ended between our open and our lock: then
        # try again.
        try:
            same = os.path.samestat(os.fstat(handle), os.stat(path))
        except FileNotFoundError:
            same = False
        if same:
            break
        os.close(handle)
    try:
        with contextlib.suppress(OSError):  # a full disk must not stand in the way of the lock itself
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(handle)


@contextlib.contextmanager
def advisory_lock(connection: Connection, run: str) -> Iterator[None]:
    """Hold PostgreSQL's lock on a number made of the run's name, for as long as the connection
    lives.
    """
    from sqlalchemy import text

    number = int.from_bytes(hashlib.sha256(f"rrf-design run {run}".encode()).digest()[:8], "big", signed=True)
    with connection.begin():
        held = connection.execute(text("select pg_try_advisory_lock(:n)"), {"n": number}).scalar()
        holder = ""
        if not held:
            seen = text(
                "select pid from pg_locks where locktype = 'advisory' and granted"
                " and ((classid::bigint << 32) | objid::bigint) = :n"
            )
            holder = f"{connection.execute(seen, {'n': number}).scalar() or ''}"
    if not held:
        raise _refused(run, f"(server side {holder})" if holder else "")
    try:
        yield
    finally:
        # A dead connection has released the lock already.
        with contextlib.suppress(Exception), connection.begin():
            connection.execute(text("select pg_advisory_unlock(:n)"), {"n": number})
