"""Where journals lie: the address that a user's word for a store means, the database behind it, and its three tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.redaction import without_password
from rrf_design.errors import InputError, MissingDependency

if TYPE_CHECKING:
    from sqlalchemy import Engine

DEFAULT_STORE = "rrf-runs.sqlite"
"""In the working directory; `--store` or the environment variable RRF_STORE names another place."""


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


def open_engine(address: str, path: Path | None, shown: str) -> Engine:
    import sqlalchemy

    if path is not None and str(path) and not path.absolute().parent.is_dir():
        raise InputError(f"store {shown}: the folder {path.parent} does not exist")
    sqlite = address.startswith("sqlite")
    try:
        # A busy database is waited for; ten seconds is longer than any of our transactions.
        options: dict[str, Any] = {"connect_args": {"timeout": 10}} if sqlite else {"pool_pre_ping": True}
        engine = sqlalchemy.create_engine(address, **options)
    except ImportError:
        raise MissingDependency(f"store {shown}: PostgreSQL needs psycopg; pip install 'psycopg[binary]'") from None
    except sqlalchemy.exc.ArgumentError:
        raise InputError(f"store {shown}: not an address a database can be found at") from None
    if sqlite:
        sqlalchemy.event.listen(engine, "connect", _pragmas)
    return engine


def _pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("pragma journal_mode=wal")
    cursor.execute("pragma synchronous=full")
    cursor.close()


def tables() -> tuple[Any, Any, Any]:
    from sqlalchemy import Column, Float, Integer, MetaData, String, Table, Text, UniqueConstraint

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
        # One outcome per attempt at a purchase: what was settled can't be settled again. (NULLs are never equal.)
        UniqueConstraint("run", "kind", "purchase", "attempt"),
    )
    return runs, problems, events
