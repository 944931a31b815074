"""One process per run, enforced by the system and not by a row that a crash would leave behind.

SQLite: an exclusive `flock` on a small file beside the database. PostgreSQL: a session-level advisory lock. Both end
with their process, however it ends, so a killed run can be resumed at once and a living one can't be entered twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rrf_design.errors import Refused

if TYPE_CHECKING:
    from sqlalchemy import Connection


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
        # The file may have been removed by a holder that ended between our open and our lock: then try again.
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
    """Hold PostgreSQL's lock on a number made of the run's name, for as long as the connection lives."""
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
