"""Answers kept across runs: a question that was answered once is not paid for again.

The key is the request with its repeat index and the identity of the backend, so another wording,
temperature, repeat or version of the weights is another question. One SQLite file in a folder, JSON
inside; several runs may use it at once. Only texts that can be parsed are kept: a refusal, a cut or
an empty answer may end better the next time.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rrf_design.errors import InputError, RetryLater
from rrf_design.models.base import Model, Reply, Request, key
from rrf_design.texts import json_text

if TYPE_CHECKING:
    from sqlalchemy import Connection

FILE = "answers.sqlite"
PERSON = "person"
"""Under this name `cache list` shows what people said."""
FOLDER = "RRF_CACHE"
"""Environment variable with the folder, or "off"."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What `cache list` shows of one model's answers."""

    model: str
    answers: int
    first: float
    last: float
    """Seconds since 1970."""


def _default_folder() -> Path:
    """Where answers are kept if nobody says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "rrf-design"


def folder_of(given: str | os.PathLike[str] | None) -> Path | None:
    """The folder that `--cache` (or RRF_CACHE) means; None for "off"."""
    text = os.fspath(given) if given is not None else os.environ.get(FOLDER) or _default_folder()
    return None if str(text) == "off" else Path(text)


class AnswerCache:
    """An open cache.

    `keep` only notes an answer and is safe from any thread; `write` stores what was noted, `find`
    looks up; both belong to the thread that opened it.
    """

    def __init__(self, folder: str | os.PathLike[str], *, make: bool = True) -> None:
        import sqlalchemy as sql

        self.path = Path(folder) / FILE
        if not make and not self.path.exists():
            raise InputError(f"{self.path}: no answers are kept there")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path.parent}: can't keep answers there ({error.strerror})") from None
        self._noted: deque[dict[str, Any]] = deque()
        self._engine = sql.create_engine(f"sqlite:///{self.path}")
        self._table = sql.Table(
            "rrf_answers",
            sql.MetaData(),
            sql.Column("key", sql.String, primary_key=True),
            sql.Column("model", sql.String, nullable=False),
            sql.Column("at", sql.Float, nullable=False),
            sql.Column("reply", sql.String, nullable=False),
        )
        with self._connection() as connection:
            self._table.metadata.create_all(connection)

    def find(self, request: Request, model: Model) -> Reply | None:
        """The kept reply. It costs nothing now: no calls, no tokens, no time."""
        with self._connection() as connection:
            query = self._table.select().where(self._table.c.key == key(request, model.identity))
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        document = json.loads(row.reply)
        free = {"usage": {"input_tokens": 0, "output_tokens": 0, "calls": 0, "estimated": False}, "latency": 0.0}
        return Reply.from_document({**document, **free, "attempts": 0, "detail": "kept from an earlier run"})

    def keep(self, request: Request, reply: Reply, model: Model) -> None:
        if reply.parseable:
            text = json_text(reply.document(), separators=(",", ":"))
            row = {"key": key(request, reply.identity), "model": model.name, "at": time.time(), "reply": text}
            self._noted.append(row)

    def said(self, name: str) -> str | None:
        """What a person said in an earlier run, under the key of what was shown to them."""
        with self._connection() as connection:
            query = self._table.select().where(self._table.c.key == name)
            row = connection.execute(query).one_or_none()
        return None if row is None else str(json.loads(row.reply)["said"])

    def keep_said(self, name: str, said: str) -> None:
        """What a person said; the last word counts."""
        row = {"key": name, "model": PERSON, "at": time.time(), "reply": json_text({"said": said})}
        with self._connection() as connection:
            connection.execute(self._table.delete().where(self._table.c.key == name))
            connection.execute(self._table.insert(), [row])

    def write(self) -> None:
        """Store what was noted; what another run stored meanwhile stays."""
        from sqlalchemy.dialects.sqlite import insert

        noted = [self._noted.popleft() for _ in range(len(self._noted))]
        if noted:
            with self._connection() as connection:
                connection.execute(insert(self._table).on_conflict_do_nothing(), noted)

    def summary(self) -> tuple[Kept, ...]:
        import sqlalchemy as sql

        at, model = self._table.c.at, self._table.c.model
        query = sql.select(model, sql.func.count(), sql.func.min(at), sql.func.max(at)).group_by(model).order_by(model)
        with self._connection() as connection:
            return tuple(Kept(*row) for row in connection.execute(query))

    def clear(self, model: str | None = None) -> int:
        """Forget the answers of one model, or all; returns how many."""
        doomed = self._table.delete()
        if model is not None:
            doomed = doomed.where(self._table.c.model == model)
        with self._connection() as connection:
            return connection.execute(doomed).rowcount

    def close(self) -> None:
        self.write()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        from sqlalchemy.exc import DBAPIError

        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            reason = str(error.orig).split("\n")[0]
            raise RetryLater(
                f"{self.path}: the kept answers can't be used ({reason}); try again, or --cache off"
            ) from None
