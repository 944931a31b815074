"""What may happen to a journal on a disk: rows changed, lost, doubled, exchanged, of another kind;
a file cut off or overwritten.

A run is played once with a scripted model. Then its database is damaged, one way at a time, and
looked at and gone on with. Either the damage is refused in one line, or nothing of what the run
says differs from what it said before: nothing bought is forgotten, nothing bought again, no price,
answer or verdict is another.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.acquisition import read_run
from rrf_design.errors import RRFError
from scenarios.kit.sealing import at

SAID = ("verdict", "spent", "money", "calls", "purchases", "gamma_lower", "repaired", "stopped_because")
HOSTILE: tuple[Any, ...] = (
    None,
    -1,
    0,
    1e308,
    float("nan"),
    "x",
    [],
    {},
    True,
    10**400,
    "\x00",
    [1],
    {"a": 1},
    "\ud800",
)
PAGE = 4096
TABLES = ("rrf_problems", "rrf_runs", "rrf_events")
Store = Path | str
"""A file, or the address of a PostgreSQL server."""


class PlayedRun:
    """One run in a folder of its own, with what it says, and copies of it to damage."""

    def __init__(self, folder: Path, server: str | None = None) -> None:
        from rrf_design.models.scripted import ScriptedModel

        self.folder, self.path = folder, folder / "whole.sqlite"
        self.asked = 0

        def answer(request: Any) -> str:
            self.asked += 1
            return "12" if "2?" in request.prompt else "7"

        self.model = ScriptedModel(answer)
        names = [f"n{i}" for i in range(4)]
        problem = rrf.Problem(
            name="ring",
            k=1,
            budget=3.0,
            nodes=[{"id": name, "prompt": f"{name[1:]}?"} for name in names],
            relations=[{"id": f"r{i}", "tail": names[i], "head": names[(i + 1) % 4]} for i in range(4)],
            anchors=[{"id": f"a{i}", "node": name, "value": 7.0, "cost": 1.0} for i, name in enumerate(names)],
        )
        self.server = server
        self.said = _said(rrf.acquire(problem, model=self.model, store=self.path if server is None else server))
        if server is None:
            with contextlib.closing(sqlite3.connect(self.path)) as database:
                database.execute("pragma wal_checkpoint(truncate)")
        else:
            with _rows(server) as rows:
                self.kept = {name: rows.execute(f"select * from {name}").fetchall() for name in TABLES}

    def copy(self) -> Store:
        """A whole one, ready to be damaged: a copy of the file, or the rows of the server as they
        were.
        """
        if self.server is not None:
            with _rows(self.server) as rows:
                rows.execute(f"truncate {', '.join(TABLES)} cascade")
                for name, kept in self.kept.items():
                    for row in kept:
                        rows.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)
            return self.server
        damaged = self.folder / "damaged.sqlite"
        for path in self.folder.glob("damaged.sqlite*"):
            path.unlink()
        shutil.copy(self.path, damaged)
        return damaged


def _said(run: Any) -> dict[str, Any]:
    document = json.loads(json.dumps(run.to_json()))
    return {key: document[key] for key in SAID}


def journal_case(played: PlayedRun, seed: int) -> dict[str, Any]:
    """Damage a copy of the run, then show it and go on with it: what was `believed` although it is
    not what was written.
    """
    rng = np.random.default_rng(seed)
    known = sorted(DAMAGES if played.server is None else set(DAMAGES) - FILES)
    name = known[seed % len(known)]
    path = played.copy()
    with contextlib.suppress(_Impossible):  # the server does not let it happen
        DAMAGES[name](rng, path)
    row: dict[str, Any] = {"trick": name, "believed": False, "raised": False, "refused": 0}
    played.asked = 0
    looks: tuple[Callable[[], Any], ...] = (
        lambda: read_run("last", store=path),
        lambda: rrf.acquire(model=played.model, resume="last", store=path),
    )
    for look in looks:
        try:
            row["believed"] |= _said(look()) != played.said
        except RRFError as error:
            row["refused"] += 1
            row["raised"] |= "\n" in str(error)
        except Exception:
            row["raised"] = True
    row["believed"] |= played.asked > 0  # everything had been bought: whoever asks again pays twice
    return row


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ([path] if path else []) + [place for key, part in inner for place in _places(part, (*path, key))]


def _changed(rng: Any, text: str) -> str:
    """The JSON text with one thing in it removed, or another."""
    document = json.loads(text)
    places = _places(document)
    place = places[int(rng.integers(len(places)))]
    holder = at(document, place[:-1])
    if rng.random() < 0.3:
        del holder[place[-1]]
    else:
        holder[place[-1]] = HOSTILE[int(rng.integers(len(HOSTILE)))]
    return json.dumps(document)


class _Impossible(Exception):
    """A damage that the database refuses: a text where a number belongs."""


class _Server:
    """A connection to PostgreSQL that takes the statements of the other."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Any = ()) -> Any:
        return self.connection.execute(statement.replace("?", "%s"), tuple(values))


@contextlib.contextmanager
def _rows(path: Store) -> Any:
    if isinstance(path, str):
        import psycopg

        try:
            with psycopg.connect(path) as connection:
                yield _Server(connection)
        except (psycopg.Error, UnicodeError) as error:
            raise _Impossible from error
        return
    with contextlib.closing(sqlite3.connect(path)) as database:
        yield database
        database.commit()


def _pick(rng: Any, database: Any, kinds: str = "") -> tuple[int, str, str]:
    where = f"where kind in ({kinds})" if kinds else ""
    rows = database.execute(f"select seq, kind, body from rrf_events {where} order by seq").fetchall()
    seq, kind, body = rows[int(rng.integers(len(rows)))]
    return int(seq), str(kind), str(body)


def _body(rng: Any, path: Store) -> None:
    with _rows(path) as database:
        seq, _, body = _pick(rng, database)
        database.execute("update rrf_events set body = ? where seq = ?", (_changed(rng, body), seq))


def _money(rng: Any, path: Store) -> None:
    """As one would who wants to have spent less, or to have been told something else."""
    with _rows(path) as database:
        seq, _, body = _pick(rng, database, "'intent', 'settled'")
        document = json.loads(body)
        document["price"] = float(document["price"]) + 0.25
        if document.get("value") and rng.random() < 0.5:
            document["value"] = [float(document["value"][0]) + 1.0]
        text = json.dumps(document, separators=(",", ":"))
        database.execute("update rrf_events set body = ? where seq = ?", (text, seq))


def _lost(rng: Any, path: Store) -> None:
    """A row in the middle; rows cut off at the end look like a process that was killed, and are
    asked for again.
    """
    with _rows(path) as database:
        last = database.execute("select max(seq) from rrf_events").fetchone()[0]
        database.execute("delete from rrf_events where seq = ?", (int(rng.integers(last)),))


def _doubled(rng: Any, path: Store) -> None:
    with _rows(path) as database:
        seq, _, _ = _pick(rng, database)
        database.execute(
            "insert into rrf_events (run, seq, kind, purchase, attempt, at, body, item)"
            " select run, (select max(seq) + 1 from rrf_events), kind, purchase, attempt + 7, at, body, item"
            " from rrf_events where seq = ?",
            (seq,),
        )


def _exchanged(rng: Any, path: Store) -> None:
    with _rows(path) as database:
        count = database.execute("select count(*) from rrf_events").fetchone()[0]
        first, second = rng.choice(count, 2, replace=False)
        for old, new in ((int(first), -1), (int(second), int(first)), (-1, int(second))):
            database.execute("update rrf_events set seq = ? where seq = ?", (new, old))


def _kind(rng: Any, path: Store) -> None:
    with _rows(path) as database:
        seq, kind, _ = _pick(rng, database)
        other = [name for name in ("round", "ended", "result", "session", "from a later version", "") if name != kind]
        database.execute(
            "update rrf_events set kind = ?, attempt = attempt + 9 where seq = ?",
            (other[int(rng.integers(len(other)))], seq),
        )


def _cell(rng: Any, path: Store) -> None:
    name = ("attempt", "at", "purchase", "item")[int(rng.integers(4))]
    value = (-5, 2**62, "x", b"\xff\xfe", 1.5, "json:{", "json:3")[int(rng.integers(7))]
    with _rows(path) as database:
        database.execute(f"update rrf_events set {name} = ? where seq = ?", (value, _pick(rng, database)[0]))


def _header(rng: Any, path: Store) -> None:
    with _rows(path) as database:
        text = database.execute("select header from rrf_runs").fetchone()[0]
        database.execute("update rrf_runs set header = ?", (_changed(rng, text),))


def _version(rng: Any, path: Store) -> None:
    """Another version's header: of the future, or one from before rows were linked."""
    with _rows(path) as database:
        database.execute("update rrf_runs set format = ?", (int(rng.choice([-1, 0, 1, 2, 99])),))


def _problem(rng: Any, path: Store) -> None:
    with _rows(path) as database:
        text = database.execute("select document from rrf_problems").fetchone()[0]
        database.execute("update rrf_problems set document = ?", (_changed(rng, text),))


def _text(rng: Any, path: Store) -> None:
    with _rows(path) as database:
        seq, _, body = _pick(rng, database)
        texts = ("", "{", "null", "[]", "3", '{"a":1}', body[:-3], body + " ", "[" * 100_000)
        database.execute("update rrf_events set body = ? where seq = ?", (texts[int(rng.integers(len(texts)))], seq))


def _in_bytes(change: Callable[[Any, bytearray], None]) -> Callable[[Any, Path], None]:
    """A damage of the file itself, from what it does to the bytes."""

    def damage(rng: Any, path: Path) -> None:
        content = bytearray(path.read_bytes())
        change(rng, content)
        path.write_bytes(content)

    return damage


def _cut(rng: Any, content: bytearray) -> None:
    del content[int(rng.integers(len(content))) :]


def _noise(rng: Any, content: bytearray) -> None:
    for _ in range(int(rng.choice([1, 20]))):
        content[int(rng.integers(len(content)))] = int(rng.integers(256))


def _zeros(rng: Any, content: bytearray) -> None:
    start = int(rng.integers(len(content) - PAGE))
    content[start : start + PAGE] = bytes(PAGE)


def _pages(rng: Any, content: bytearray) -> None:
    first, second = (PAGE * int(page) for page in rng.choice(len(content) // PAGE, 2, replace=False))
    kept = bytes(content[first : first + PAGE])
    content[first : first + PAGE] = content[second : second + PAGE]
    content[second : second + PAGE] = kept


DAMAGES: dict[str, Callable[[Any, Any], None]] = {
    "an event changed": _body,
    "money or an answer changed": _money,
    "a row lost": _lost,
    "a row doubled": _doubled,
    "rows exchanged": _exchanged,
    "a row of another kind": _kind,
    "a cell changed": _cell,
    "the header changed": _header,
    "another version": _version,
    "the problem changed": _problem,
    "a text that is no event": _text,
    "file cut off": _in_bytes(_cut),
    "bytes overwritten": _in_bytes(_noise),
    "a page of zeros": _in_bytes(_zeros),
    "pages exchanged": _in_bytes(_pages),
}
FILES = frozenset(list(DAMAGES)[-4:])
"""Damages of a file; a server's files are its own affair."""


@contextlib.contextmanager
def postgres() -> Any:
    """The address of a PostgreSQL server of one's own, on a socket; None where there is none to be
    had (`pip install pgserver`).
    """
    try:
        with warnings.catch_warnings():  # about where it would put its files if it were not told
            warnings.simplefilter("ignore")
            import pgserver
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="rrf-damaged-", ignore_cleanup_errors=True) as folder:
        found = pgserver.get_server(folder)
        try:
            yield found.get_uri()
        finally:
            found.cleanup()
