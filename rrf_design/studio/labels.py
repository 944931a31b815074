"""Questions for people and what they said, in a SQLite file or tables of a PostgreSQL database of
their own.

A verb that takes `--review FILE` takes such a store in its place (`review_file`): it reads labels
and writes questions as rows of today's review file, and the store keeps them for the studio. A run
has one writer, so labels never lie in a journal.

A question is *blind* where its label is to prove something: then the store holds nothing that was
answered, because the verb does not write it there, and questions come in the drawn order. Labels of
blind questions and of others are kept apart by the verb that asked (`queue`), and each verb is
given its own alone, so that no label that was given with the answers in sight enters a bound.

Several people may work at once. A question that is shown to one of them is theirs for two minutes
(`LEASE`), prolonged while they look; then it is free again. A label is there, once and on the disk,
before the next question is given.

On request some rows are labelled twice, by somebody else and without the first label in sight. The
second label is kept beside the first and changes nothing: it says how far people agree.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.redaction import without_password
from rrf_design.acquisition.stores import has_table, store_address
from rrf_design.errors import InputError, MissingDependency, RetryLater
from rrf_design.questions.tables import RowFaults, open_table
from rrf_design.responses.parsers import check_review
from rrf_design.texts import cell_text, column, from_column, json_text, sheet_text, showable

if TYPE_CHECKING:
    from rrf_design.promises import DeliverySession

ENDINGS = (".sqlite", ".sqlite3", ".db")
LEASE = 120.0
"""Seconds for which a question belongs to whom it was shown."""
LONGEST = 100_000
"""Characters of a label."""
WORDS = ("question", "text", "prompt", "model_answer", "raw", "reason")
"""Columns with the words of others: no formulas in a spreadsheet."""
_NAMED = "queue text, id text, part text"
_TABLES = (
    f"create table if not exists rrf_questions ({_NAMED}, place integer, blind integer, open integer, row text,"
    " primary key (queue, id, part))",
    f"create table if not exists rrf_labels ({_NAMED}, value text, who text, at double precision, stamp text,"
    " taken integer, primary key (queue, id, part))",
    f"create table if not exists rrf_label_leases ({_NAMED}, who text, until double precision,"
    " primary key (queue, id, part))",
    f"create table if not exists rrf_second ({_NAMED}, value text, who text, at double precision, stamp text,"
    " primary key (queue, id, part))",
    "create table if not exists rrf_twice (many integer)",
    f"create table if not exists rrf_later ({_NAMED}, at double precision, primary key (queue, id, part))",
)
_ONE = "where queue = ? and id = ? and part = ?"
_ALONE = 7205759403792794
"""PostgreSQL's lock that a change holds, as SQLite's `begin immediate` does: of the whole store."""


def is_label_store(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a store of labels; nothing is written to find out.

    >>> is_label_store("no-such-file.sqlite")
    False
    """
    if not _is_address(path):
        return has_table(Path(path), "rrf_questions")
    server = _Server(str(path))
    try:
        return server.execute("select to_regclass('rrf_questions')").fetchone()[0] is not None
    finally:
        server.close()


def _is_address(place: object) -> bool:
    return "://" in str(place)


class _Server:
    """A PostgreSQL database as this module uses SQLite: the same statements, one connection, made
    anew after the server was away.
    """

    def __init__(self, address: str) -> None:
        self.shown = without_password(address)
        self._address = store_address(address).replace("+psycopg", "", 1)
        if not self._address.startswith("postgresql://"):
            raise InputError(f"{self.shown}: a store of labels is a SQLite file or a postgresql:// address")
        self._own: Any = None

    def execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        try:
            import psycopg
        except ImportError:
            raise MissingDependency(f"{self.shown}: PostgreSQL needs psycopg; pip install 'psycopg[binary]'") from None
        try:
            if self._own is None:
                self._own = psycopg.connect(self._address, autocommit=True, connect_timeout=10)
                self._own.execute("set lock_timeout = '10s'; set idle_in_transaction_session_timeout = '60s'")
            return self._own.execute(text.replace("?", "%s"), _bound(values))
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            self.close()
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise RetryLater(f"{self.shown}: the store of labels did not answer ({why}); try again") from None
        except psycopg.Error as error:
            raise InputError(f"{self.shown}: {str(error).splitlines()[0]}") from None

    def close(self) -> None:
        if self._own is not None:
            self._own.close()
        self._own = None

    __del__ = close


class _File:
    """A SQLite file, by the same two methods."""

    def __init__(self, path: Path) -> None:
        self._own = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
        self._own.execute("pragma synchronous = full")
        self.close = self._own.close

    def execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        return self._own.execute(text, _bound(values))


def _bound(values: Sequence[Any]) -> list[Any]:
    """Texts as every database can hold them."""
    return [column(value) if isinstance(value, str) else value for value in values]


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked now."""

    queue: str
    """The verb that asks."""
    id: str
    part: str
    """The check that is asked for, where a row has several."""
    blind: bool
    row: Mapping[str, Any]
    """As the review file has it."""
    second: bool = False
    """Somebody else has labelled it, and is not told of it."""


@dataclass(frozen=True, slots=True)
class _Counts:
    """How much of a store is done."""

    open: int
    labels: int
    blind: bool
    """Whether any open question is blind."""


class LabelStore:
    """A store of questions and labels. Safe for several threads and processes."""

    def __init__(
        self, path: str | os.PathLike[str], *, make: bool = False, clock: Callable[[], float] | None = None
    ) -> None:
        self.path = None if _is_address(path) else Path(path)
        """None where it lies on a server."""
        self.shown = without_password(str(path))
        if not make and self.path is not None and not self.path.exists():
            raise InputError(f"{path}: no such store of labels")
        self._lock = threading.RLock()
        try:
            self._db = _Server(str(path)) if self.path is None else _File(self.path)
            if not make:
                self._db.execute("select 1 from rrf_questions limit 1")
            self._clock = clock or (self._servers_time if self.path is None else time.time)
            with self._changing() if self.path is None else nullcontext():
                for text in _TABLES:
                    self._db.execute(text)
        except sqlite3.Error as error:
            raise InputError(f"{path}: is no store of labels, and can't be made one ({error})") from None

    def _servers_time(self) -> float:
        """One clock for all who share the store."""
        return float(self._db.execute("select extract(epoch from clock_timestamp())").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        """One change, whole and on the disk, or none of it."""
        with self._lock:
            try:
                self._db.execute("begin immediate" if self.path is not None else "begin")
                try:
                    if self.path is None:
                        self._db.execute(f"select pg_advisory_xact_lock({_ALONE})")
                    yield self._db
                except BaseException:
                    with suppress(RetryLater):  # a connection that is gone has taken nothing
                        self._db.execute("rollback")
                    raise
                self._db.execute("commit")
            except sqlite3.OperationalError as error:
                raise RetryLater(f"{self.shown}: the label was not saved ({error}); try again") from None

    def ask(self, queue: str, rows: Sequence[Mapping[str, Any]], *, blind: bool) -> None:
        """These questions are open now, in this order; others of the queue are closed. Labels
        stay.
        """
        with self._changing() as db:
            db.execute("update rrf_questions set open = 0 where queue = ?", (queue,))
            for place, row in enumerate(rows):
                key = (queue, *_key(row))
                db.execute(
                    "insert into rrf_questions values (?, ?, ?, ?, ?, 1, ?) on conflict (queue, id, part) do update"
                    " set place = excluded.place, blind = excluded.blind, open = 1, row = excluded.row",
                    (*key, place, int(blind), json_text({k: v for k, v in row.items() if k != "value"}, default=str)),
                )

    def progress(self, who: str) -> tuple[int, int, int]:
        """How many questions are open, how many labels there are, and how many are one's own."""
        found = self.counts()
        with self._lock:
            (own,) = self._db.execute("select count(*) from rrf_labels where who = ?", (who,)).fetchone()
        return found.open, found.labels, own

    def counts(self) -> _Counts:
        with self._lock:
            (labels,) = self._db.execute("select count(*) from rrf_labels").fetchone()
            still, blind = self._db.execute(
                f"select count(*), max(blind) from rrf_questions q where open = 1 and {_UNLABELLED}"
            ).fetchone()
        return _Counts(still, labels, bool(blind))

    def blind_ids(self) -> frozenset[str]:
        """Rows whose answers nobody may see yet."""
        query = f"select distinct id from rrf_questions q where open = 1 and blind = 1 and {_UNLABELLED}"
        again = f"select id from ({_SECOND}) x where blind = 1"
        with self._lock:
            return frozenset(from_column(name) for (name,) in self._db.execute(f"{query} union {again}"))

    def twice(self, many: int) -> None:
        """Have so many more of the labelled rows labelled by a second person."""
        with self._changing() as db:
            (so_far,) = db.execute("select coalesce(sum(many), 0) from rrf_twice").fetchone()
            (labels,) = db.execute("select count(*) from rrf_labels").fetchone()
            if (more := min(many, labels - so_far)) > 0:
                db.execute("insert into rrf_twice values (?)", (more,))

    def agreement(self) -> tuple[int, int]:
        """How many rows were labelled twice, and on how many of them both say the same."""
        query = "select a.value, b.value from rrf_labels a join rrf_second b using (queue, id, part)"
        with self._lock:
            pairs = [(json.loads(a), json.loads(b)) for a, b in self._db.execute(query)]
        return len(pairs), sum(cell_text(a).strip() == cell_text(b).strip() for a, b in pairs)

    def next(self, who: str) -> Question | None:
        """The first open question that is nobody else's, which is theirs from now on; None where
        there is none.
        """
        now = self._clock()
        with self._changing() as db:
            found = db.execute(
                "select q.queue, q.id, q.part, q.blind, q.row from rrf_questions q"
                " left join rrf_label_leases l using (queue, id, part) left join rrf_later s using (queue, id, part)"
                f" where open = 1 and {_UNLABELLED} and (l.until is null or l.until < ? or l.who = ?)"
                " order by (l.who = ?) is not true, s.at is not null, s.at, q.queue, q.place limit 1",
                (now, who, who),
            ).fetchone()
            second = found is None
            if found is None:
                found = db.execute(
                    f"select x.queue, x.id, x.part, x.blind, x.row from ({_SECOND}) x left join rrf_label_leases l"
                    " using (queue, id, part) where x.who <> ? and (l.until is null or l.until < ? or l.who = ?)"
                    " order by (l.who = ?) is not true, x.place limit 1",
                    (who, now, who, who),
                ).fetchone()
            if found is None:
                return None
            (queue, name, part), (blind, row) = map(from_column, found[:3]), found[3:]
            self._lease((queue, name, part), who)
        return Question(queue, name, part, bool(blind), json.loads(row), second)

    def label(self, question: tuple[str, str, str], value: Any, who: str, *, stamp: str, second: bool = False) -> str:
        """Save what somebody said; "saved", or "taken" where somebody else was faster.

        `stamp` names this one act: sent twice, it counts once.
        """
        _check(value)
        with self._changing() as db:
            if second:
                return self._label_again(db, question, value, who, stamp)
            asked = db.execute(f"select open from rrf_questions {_ONE}", question).fetchone()
            if asked is None or not asked[0]:
                raise InputError(f"row {question[1]!r:.60} is not asked about any more")
            there = db.execute(f"select stamp from rrf_labels {_ONE}", question).fetchone()
            if there is not None:
                return "saved" if there[0] == stamp else "taken"
            last = db.execute("select max(at) from rrf_labels where who = ?", (who,)).fetchone()[0] or 0.0
            at = max(self._clock(), last + 1e-6)  # `undo` takes back the last one
            entry = (*question, json_text(value), who, at, stamp)
            db.execute("insert into rrf_labels values (?, ?, ?, ?, ?, ?, ?, 0)", entry)
            self._release(question)
        return "saved"

    def _label_again(self, db: Any, question: tuple[str, str, str], value: Any, who: str, stamp: str) -> str:
        first = db.execute(f"select who from rrf_labels {_ONE}", question).fetchone()
        if first is None or from_column(first[0]) == who:
            raise InputError(f"row {question[1]!r:.60} is not asked about a second time")
        there = db.execute(f"select stamp from rrf_second {_ONE}", question).fetchone()
        if there is not None:
            return "saved" if there[0] == stamp else "taken"
        entry = (*question, json_text(value), who, self._clock(), stamp)
        db.execute("insert into rrf_second values (?, ?, ?, ?, ?, ?, ?)", entry)
        self._release(question)
        return "saved"

    def later(self, question: tuple[str, str, str], who: str) -> None:
        """Let go of a question: it comes again after the others."""
        with self._changing() as db:
            db.execute(f"delete from rrf_later {_ONE}", question)
            db.execute("insert into rrf_later values (?, ?, ?, ?)", (*question, self._clock()))
            self._release(question, who)

    def undo(self, who: str) -> Question | None:
        """Take back one's last label that no verb has read yet; its question is one's own again."""
        with self._changing() as db:
            found = db.execute(
                "select queue, id, part from rrf_labels where who = ? and taken = 0 order by at desc limit 1",
                (who,),
            ).fetchone()
            if found is None:
                return None
            queue, name, part = key = tuple(map(from_column, found))
            for place in ("rrf_labels", "rrf_second", "rrf_later"):
                db.execute(f"delete from {place} {_ONE}", key)
            db.execute("delete from rrf_label_leases where who = ?", (who,))
            self._lease(key, who)
            blind, row = db.execute(f"select blind, row from rrf_questions {_ONE}", key).fetchone()
        return Question(queue, name, part, bool(blind), json.loads(row))

    def prolong(self, who: str) -> None:
        """Whoever looks at a question keeps it."""
        with self._changing() as db:
            now = self._clock()
            db.execute("update rrf_label_leases set until = ? where who = ? and until >= ?", (now + LEASE, who, now))

    def _lease(self, question: Sequence[str], who: str) -> None:
        self._release(question)
        values = (*question, who, self._clock() + LEASE)
        self._db.execute("insert into rrf_label_leases values (?, ?, ?, ?, ?)", values)

    def _release(self, question: Sequence[str], who: str | None = None) -> None:
        """Whoever has the question, or this one alone, has it no more."""
        whose = "" if who is None else " and who = ?"
        values = question if who is None else (*question, who)
        self._db.execute(f"delete from rrf_label_leases {_ONE}{whose}", values)

    def said(self, queue: str) -> dict[str, Any]:
        """What people said of each row, of the questions that are open."""
        query = (
            "select q.id, b.value from rrf_questions q join rrf_labels b using (queue, id, part)"
            " where q.open = 1 and q.queue = ?"
        )
        with self._lock:
            return {from_column(name): json.loads(value) for name, value in self._db.execute(query, (queue,))}

    def reject(self, question: tuple[str, str, str], why: str) -> None:
        """A label can't be read: it is gone, and the question is open again and says why."""
        with self._changing() as db:
            db.execute(f"delete from rrf_labels {_ONE}", question)
            (row,) = db.execute(f"select row from rrf_questions {_ONE}", question).fetchone()
            told = json_text({**json.loads(row), "trouble": why})
            db.execute(f"update rrf_questions set row = ? {_ONE}", (told, *question))

    def rows(self, queue: str | None = None) -> list[dict[str, Any]]:
        """Every question as a row of the review file, `value` filled in where somebody said it."""
        query = (
            "select q.row, b.value from rrf_questions q left join rrf_labels b using (queue, id, part)"
            " where (b.value is not null or q.open = 1) and (q.queue = ? or cast(? as text) is null)"
            " order by b.value is not null, q.queue, q.place"
        )
        with self._lock:
            found = self._db.execute(query, (queue, queue)).fetchall()
        return [{**json.loads(row), "value": "" if said is None else json.loads(said)} for row, said in found]

    def queues(self) -> list[str]:
        """The verbs that asked."""
        with self._lock:
            return [
                from_column(name)
                for (name,) in self._db.execute("select distinct queue from rrf_questions order by queue")
            ]

    def file(self, form: str, queue: str | None = None, *, closed: frozenset[str] = frozenset()) -> str:
        """Today's review file: CSV, or JSON lines; without what was answered about rows that are
        closed, which are those that somebody is to look at blindly.
        """
        rows = self.rows(queue)
        if closed:
            rows = [row if not closed.intersection(_names(row)) else _without_answers(row) for row in rows]
        if form == "jsonl":
            return "".join(json_text(row) + "\n" for row in rows)
        columns = list(dict.fromkeys(key for row in rows for key in row if key != "value")) or ["id"]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*columns, "value"])
        for row in rows:
            cells = {key: cell_text(row.get(key)) for key in (*columns, "value")}
            shown = [sheet_text(showable(cells[key])) if key in WORDS else cells[key] for key in columns]
            writer.writerow([*shown, cells["value"]])
        return text.getvalue()

    def taken(self, queue: str, keys: Sequence[tuple[str, str]]) -> None:
        """A verb has read these labels: they can't be taken back any more."""
        with self._changing() as db:
            for key in keys:
                db.execute(f"update rrf_labels set taken = 1 {_ONE}", (queue, *key))


_UNLABELLED = "not exists (select 1 from rrf_labels b where b.queue = q.queue and b.id = q.id and b.part = q.part)"


_SECOND = (
    "select q.queue, q.id, q.part, q.blind, q.row, q.place, b.who from rrf_labels b join rrf_questions q"
    " using (queue, id, part) where not exists (select 1 from rrf_second c where c.queue = q.queue and c.id = q.id"
    " and c.part = q.part) order by b.at limit (select case when left_over > 0 then left_over else 0 end from (select"
    " coalesce(sum(many), 0) - (select count(*) from rrf_second) as left_over from rrf_twice) y)"
)
"""Labelled questions that wait for a second person."""

ANSWERS = ("raw", "verdict", "reason", "model_answer", "rank", "gain_per_cost")
"""Columns of a review file that say, or let guess, what was answered."""


def _names(row: Mapping[str, Any]) -> set[str]:
    return {str(row.get("id")), str(row.get("item") or row.get("id"))}


def _without_answers(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: "" if key in ANSWERS else cell for key, cell in row.items()}


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row.get("id")), str(row.get("check") or "")


def _check(value: Any) -> None:
    check_review(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise InputError("the label is empty; ? says that nobody can tell")
    if len(str(value)) > LONGEST:
        raise InputError(f"the label has more than {LONGEST:,} characters")


def is_store(place: str | os.PathLike[str] | None) -> bool:
    """Whether a verb was given a store of labels, not a file."""
    return place is not None and (_is_address(place) or Path(place).suffix.lower() in ENDINGS)


def shown(place: str | os.PathLike[str]) -> str:
    """The name of a store or file, without a password."""
    return without_password(os.fspath(place))


def how_to_answer(place: str | os.PathLike[str] | None) -> str:
    """What a person does with the questions that were written there.

    >>> how_to_answer(Path("labels.sqlite"))
    'answer with rrf-design studio labels.sqlite'
    """
    if place is None:
        return "ask people with --review FILE"
    if is_store(place):
        return f"answer with rrf-design studio {shown(place)}"
    return f"fill in the column value in {shown(place)} (? where nobody can tell)"


@contextmanager
def review_file(place: str | os.PathLike[str] | None, queue: str, *, blind: bool) -> Iterator[Path | None]:
    """The review file that a verb reads and writes: the one it was given, or, where it was given a
    store of labels, a file that stands for it while the verb works.

    >>> with review_file(Path("review.csv"), "repair", blind=False) as path:
    ...     print(path)
    review.csv
    """
    if place is None or not is_store(place):
        yield None if place is None else Path(place)
        return
    store = LabelStore(place, make=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "labels.jsonl"
            known = store.rows(queue)
            if known:
                path.write_text("".join(json_text(row) + "\n" for row in known), encoding="utf-8")
            before = _written(path)
            yield path
            store.taken(queue, [_key(row) for row in known if row["value"] != ""])
            store.ask(queue, [] if _written(path) == before else _open_rows(path), blind=blind)
    finally:
        store.close()


def ask_on(
    place: str | os.PathLike[str],
    session: DeliverySession,
    *,
    pause: Callable[[], None] = lambda: time.sleep(0.5),
) -> None:
    """Ask what a session wants to know, and take labels as they come, until it has no question.

    Parameters
    ----------
    place : path
        The store of labels; people answer in the studio meanwhile.
    session : DeliverySession
        What `rrf_design.deliver` gives to its `ask`.
    pause : callable
        Called while nobody has answered.
    """
    store, asked = LabelStore(place, make=True), list[str]()
    try:
        while looks := session.next():
            if asked != (asked := [look.id for look in looks]):
                rows = [{"id": look.id, "question": look.question, "text": look.text} for look in looks]
                store.ask("deliver", rows, blind=True)
            said = store.said("deliver")
            for look in looks:
                if look.id not in said or not session.waits(look.id):
                    continue
                try:
                    session.label(look.id, said[look.id])
                except InputError as error:
                    store.reject(("deliver", look.id, ""), str(error))
                else:
                    store.taken("deliver", [(look.id, "")])
            if not said:
                pause()
        store.ask("deliver", [], blind=True)
    finally:
        store.close()


def _written(path: Path) -> tuple[int, int] | None:
    """Which file it is: a verb that asks writes it anew, one that has no question leaves it."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.is_file() else None


def _open_rows(path: Path) -> list[dict[str, Any]]:
    """The questions that a verb left without a value."""
    if not path.stat().st_size:
        return []
    table = open_table(path)
    rows = [dict(cells) for _, cells, _ in table.rows(RowFaults(table.name))]
    return [row for row in rows if row.get("value") in (None, "", [])]
