"""The journal and its stores: in order, whole, and nothing of it changed unnoticed."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import resource
import sqlite3
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from rrf_design.acquisition._chains import link, texts_digest, with_link, without_link
from rrf_design.acquisition.journal import FORMAT, Event, Journal, Kind
from rrf_design.acquisition.stores import store_address
from rrf_design.errors import InputError, Refused, RetryLater


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "runs.sqlite") if request.param == "sqlite" else request.getfixturevalue("server")


def begin(journal: Journal, **header: Any) -> str:
    return journal.create({"name": "a run", **header}, {"": {"nodes": []}})


def test_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite").write_text("this is a text, and long enough to be taken for a header" * 20)
    with pytest.raises(InputError, match=r"not a database.*; the file is damaged or no database; restore it"):
        Journal(tmp_path / "runs.sqlite")


def test_events_come_back_in_order_and_whole(store: str) -> None:
    event = Event(
        Kind.INTENT, {"item": "", "name": "ä\n'\"", "price": 0.1, "deep": [1, None, {"x": True}]}, "n1", 2, 12.5
    )
    with Journal(store) as journal:
        run = begin(journal, seed=3)
        journal.append(run, [Event(Kind.SESSION, {}, at=1.0), event])
        journal.append(run, [Event(Kind.ENDED, {"because": "done"}, at=2.0)])
    with Journal(store) as journal:
        assert journal.events(run)[1] == event
        assert [e.kind for e in journal.events(run)] == [Kind.SESSION, Kind.INTENT, Kind.ENDED]
        assert journal.header(run)["seed"] == 3
        assert journal.header(run)["format_version"] == FORMAT
        assert journal.problems(run) == {"": {"nodes": []}}
        summary = next(s for s in journal.summaries() if s.run == run)
        assert (summary.stopped_because, summary.purchases, summary.items, summary.name) == ("done", 0, 1, "a run")


def test_events_are_read_on_from_where_one_was(store: str) -> None:
    with Journal(store) as journal, Journal(store, read_only=True) as viewer:
        run = begin(journal)
        journal.append(run, [Event(Kind.SESSION, {}), Event(Kind.STOPPED, {"item": "a"})])
        assert len(viewer.events(run)) == 2
        assert viewer.events(run, after=2) == ()
        journal.append(run, [Event(Kind.STOPPED, {"item": "b"})])
        assert [event.body["item"] for event in viewer.events(run, after=2)] == ["b"]
        with pytest.raises(Refused, match="no longer has the 5 events"):
            viewer.events(run, after=5)
        table = journal._events
        with journal._connection.begin():
            changed = table.update().where(table.c.run == run, table.c.seq == 2).values(body='{"item": "c"}')
            journal._connection.execute(changed)
        with pytest.raises(Refused, match="not the one that was written"):
            viewer.events(run, after=2)


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    with pytest.raises(InputError, match="no journal of runs"):
        Journal(store, read_only=True)
    with Journal(store) as journal:
        run = begin(journal)
        journal.append(run, [Event(Kind.SESSION, {})])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with Journal(store, read_only=True) as viewer:
        assert [each.run for each in viewer.summaries()] == [run]
        assert len(viewer.events(run)) == 1
        with pytest.raises(RetryLater, match="readonly"):
            viewer.append(run, [Event(Kind.ENDED, {"because": "done"})])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    sqlite3.connect(tmp_path / "other.sqlite").execute("create table t (x)").connection.close()
    with Journal(tmp_path / "other.sqlite", read_only=True) as viewer, pytest.raises(InputError, match="no such table"):
        viewer.summaries()


def test_a_reader_of_postgresql_can_not_write(server: str) -> None:
    with Journal(server) as journal:
        run = begin(journal)
    with Journal(server, read_only=True) as viewer:
        assert viewer.events(run) == ()
        with pytest.raises(RetryLater, match="read-only"):
            viewer.append(run, [Event(Kind.ENDED, {"because": "done"})])


def test_a_purchase_is_settled_once_only(store: str) -> None:
    with Journal(store) as journal:
        run = begin(journal)
        journal.append(run, [Event(Kind.SETTLED, {}, "n1", 0)])
        with pytest.raises(Refused, match="nothing was written"):
            journal.append(run, [Event(Kind.SESSION, {}), Event(Kind.SETTLED, {}, "n1", 0)])
        assert len(journal.events(run)) == 1
        journal.append(run, [Event(Kind.SETTLED, {}, "n1", 1)])  # another attempt is another matter


def test_a_writer_that_was_overtaken_is_refused(store: str) -> None:
    with Journal(store) as first, Journal(store) as second:
        run = begin(first)
        second.append(run, [Event(Kind.SESSION, {})])
        with pytest.raises(Refused, match="changed under this process"):
            first.append(run, [Event(Kind.SESSION, {})])


def test_finding_runs(store: str) -> None:
    with Journal(store) as journal:
        first, second = begin(journal), begin(journal)
        assert journal.find(first) == first
        assert journal.find("last") == second
        with pytest.raises(InputError, match="there is no run 'zzz'"):
            journal.find("zzz")
        with pytest.raises(InputError, match=r"fits \d+ runs"):
            journal.find(first[:2])
        with pytest.raises(InputError, match="there is no run"):
            journal.header("nothing")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.sqlite") as journal:
        run = begin(journal)
    with sqlite3.connect(tmp_path / "r.sqlite") as database:
        database.execute("update rrf_runs set format = 99")
    database.close()
    with Journal(tmp_path / "r.sqlite") as journal, pytest.raises(InputError, match="format 99 is newer"):
        journal.header(run)


@pytest.mark.parametrize(
    "change",
    [
        "update rrf_events set body = replace(body, '1.5', '0.5')",
        "update rrf_events set kind = 'round' where seq = 1",
        "update rrf_events set attempt = 3 where seq = 1",
        "update rrf_events set at = at + 1 where seq = 1",
        "update rrf_events set purchase = 'n2' where seq = 1",
        "delete from rrf_events where seq = 0",
        "update rrf_events set seq = 5 where seq = 2",
        "update rrf_runs set header = replace(header, 'a run', 'my run')",
        "update rrf_runs set created = 'yesterday'",
        "update rrf_runs set format = 1",
        "update rrf_runs set format = 0",
        "update rrf_problems set document = '{}'",
        "delete from rrf_problems",
    ],
)
def test_what_was_changed_is_refused(tmp_path: Path, change: str) -> None:
    """Whether rows were edited, lost or exchanged: nobody is told another price, answer or problem
    than was written.
    """
    with Journal(tmp_path / "r.sqlite") as journal:
        run = begin(journal)
        journal.append(run, [Event(Kind.SESSION, {}), Event(Kind.SETTLED, {"price": 1.5}, "n1", 0)])
        journal.append(run, [Event(Kind.ENDED, {"because": "x"})])
    with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        database.execute(change)
    with (
        Journal(tmp_path / "r.sqlite") as journal,
        pytest.raises(Refused, match="changed or is damaged, and nothing of the run is believed"),
    ):
        (journal.problems(run), journal.events(run))


def test_a_run_of_the_first_format_goes_on_without_links(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.sqlite") as journal:
        run = begin(journal)
    with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        database.execute('update rrf_runs set format = 1, header = \'{"name": "old"}\'')
    with Journal(tmp_path / "r.sqlite") as journal:
        journal.append(run, [Event(Kind.SESSION, {"a": 1})])
        assert [dict(event.body) for event in journal.events(run)] == [{"a": 1}]
        assert journal.problems(run) == {"": {"nodes": []}}
    with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        assert database.execute("select body from rrf_events").fetchone() == ('{"a":1}',)
        database.execute("update rrf_events set body = '{'")
    with Journal(tmp_path / "r.sqlite") as journal, pytest.raises(Refused, match="event 0: a row of kind 'session'"):
        journal.events(run)


def test_every_item_has_a_chain_of_its_own(store: str) -> None:
    """Who has read the rows of one item knows that they are whole, whatever lies between them."""
    said = [
        Event(Kind.SESSION, {}),
        *(Event(Kind.ROUND, {"item": i, "names": [i]}) for i in "abab"),
        Event(Kind.ENDED, {}),
    ]
    with Journal(store) as journal:
        run = begin(journal)
        journal.append(run, said)
    with Journal(store) as journal:
        found = journal.events_of(run, ["b", "none"])
        assert [event.body["names"] for event in found["b"]] == [["b"], ["b"]]
        assert found["none"] == []
        journal.append(run, [Event(Kind.STOPPED, {"item": "b"})])  # goes on where the chain was
        assert [e.kind for e in journal.events(run, after=6)] == [Kind.STOPPED]
        table = journal._events
        with journal._connection.begin():
            moved = table.update().where(table.c.run == run, table.c.seq == 2).values(item="a")
            journal._connection.execute(moved)
    with Journal(store) as journal:
        for read in (journal.events, lambda run: journal.events_of(run, ["b"])):
            with pytest.raises(Refused, match="not the one that was written"):
                read(run)


def test_a_run_of_the_second_format_goes_on_in_one_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.acquisition.journal.FORMAT", 2)
    with Journal(tmp_path / "r.sqlite") as journal:
        run = begin(journal)
        journal.append(
            run, [Event(Kind.ROUND, {"item": "a", "names": []}), Event(Kind.ROUND, {"item": "b", "names": []})]
        )
    monkeypatch.undo()
    with Journal(tmp_path / "r.sqlite") as journal:
        journal.append(run, [Event(Kind.STOPPED, {"item": "a"})])
        assert journal.header(run)["format_version"] == 2
        assert len(journal.events(run)) == 3
        header, cells = journal._header(run)[1], ["seq", "kind", "purchase", "attempt", "at", "body"]
        with journal._connection.begin():
            rows = journal._connection.execute(journal._events.select().order_by(journal._events.c.seq)).all()
    for row in rows:
        body, said = without_link(row.body)
        header = link(header, *(body if name == "body" else getattr(row, name) for name in cells))
        assert said == header


def test_a_store_of_an_older_program_is_read_as_it_is_and_then_gets_its_column(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.sqlite") as journal:
        run = begin(journal)
    with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        database.execute("drop index rrf_events_item")
        database.execute("alter table rrf_events drop column item")
        header = json.dumps({"name": "old"})
        mark = link("", run, 2, "then", header)
        database.execute("update rrf_runs set format = 2, created = 'then', header = ?", (with_link(header, mark),))
    with Journal(tmp_path / "r.sqlite", read_only=True) as viewer:
        assert viewer.events(run) == ()
    with Journal(tmp_path / "r.sqlite") as journal:
        other = begin(journal)
        journal.append(run, [Event(Kind.SESSION, {})])
        journal.append(other, [Event(Kind.ROUND, {"item": "a"})])
        assert len(journal.events(run)) == len(journal.events_of(other, ["a"])["a"]) == 1


def test_one_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.sqlite") as journal:
        first, second = begin(journal), begin(journal)
        journal.append(first, [Event(Kind.ENDED, {"because": "done"})])
    with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        database.execute("update rrf_runs set header = '{' where run = ?", (second,))
        database.execute("update rrf_events set body = '[]'")
    with Journal(tmp_path / "r.sqlite") as journal:
        rows = {row.run: (row.name, row.stopped_because) for row in journal.summaries()}
    assert rows == {first: ("a run", "can't be read"), second: ("", "unfinished")}


def test_a_store_reached_by_a_link_has_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "linked.sqlite").symlink_to(tmp_path / "r.sqlite")
    with Journal(tmp_path / "r.sqlite") as one, Journal(tmp_path / "linked.sqlite") as other:
        run = begin(one)
        with one.holding(run), pytest.raises(Refused, match="is working on it"), other.holding(run):
            pass


def test_one_holder_at_a_time(store: str) -> None:
    with Journal(store) as first, Journal(store) as second:
        run, other = begin(first), begin(first)
        with first.holding(run):
            with pytest.raises(Refused, match=f"run {run}: process .* is working on it"), second.holding(run):
                pass
            with second.holding(other):
                pass
        with second.holding(run):
            pass


def _hold(store: str, run: str, ready: Any) -> None:
    journal = Journal(store)
    with journal.holding(run):
        ready.send(True)
        ready.recv()


def test_a_killed_holder_holds_nothing(store: str) -> None:
    with Journal(store) as journal:
        run = begin(journal)
        here, there = multiprocessing.get_context("spawn").Pipe()
        child = multiprocessing.get_context("spawn").Process(target=_hold, args=(store, run, there))
        child.start()
        assert here.recv()
        with pytest.raises(Refused), journal.holding(run):
            pass
        child.kill()
        child.join()
        for _ in range(1000):  # PostgreSQL notices the lost connection on its own time
            try:
                with journal.holding(run):
                    break
            except Refused:
                continue
        else:
            pytest.fail("the lock outlived its process")


def test_another_programs_write_lock_is_a_clear_message(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.sqlite") as journal:
        run = begin(journal)
        journal.wait_at_most(0)
        other = sqlite3.connect(tmp_path / "r.sqlite", isolation_level=None)
        other.execute("begin immediate")
        with pytest.raises(RetryLater, match="another program holds the database"):
            journal.append(run, [Event(Kind.SESSION, {})])
        other.execute("rollback")
        other.close()
        journal.append(run, [Event(Kind.SESSION, {})])
        assert len(journal.events(run)) == 1


class FullDisk(Journal):
    """A journal whose disk is full from the given write on."""

    writes_left = 0

    def _doing(self, what: str) -> None:
        if what == "written":
            if self.writes_left == 0:
                raise RetryLater(self._message(what, OSError(errno.ENOSPC, "No space left on device")))
            self.writes_left -= 1


def test_full_disk_says_what_to_do(tmp_path: Path) -> None:
    with FullDisk(tmp_path / "r.sqlite") as journal:
        run = begin(journal)
        with pytest.raises(RetryLater, match="free some disk space, then resume the run"):
            journal.append(run, [Event(Kind.SESSION, {})])


def _fill(path: str, run: str, result: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    journal = Journal(path)
    written = 0
    try:
        for _ in range(100):
            journal.append(run, [Event(Kind.SESSION, {"ballast": "x" * 9000})])
            written += 1
    except RetryLater as error:
        result.send((written, str(error)))


def test_a_disk_that_really_fills_up_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Journal(path) as journal:
        run = begin(journal)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=_fill, args=(str(path), run, there))
    child.start()
    written, message = here.recv()
    child.join()
    assert "free some disk space" in message
    with Journal(path) as journal:
        assert len(journal.events(run)) == written > 0
        journal.append(run, [Event(Kind.ENDED, {"because": "went on"})])


def test_server_gone_is_a_clear_message_without_the_password() -> None:
    with pytest.raises(RetryLater) as caught:
        Journal("postgresql://me:hush-hush@127.0.0.1:1/runs")
    assert "hush-hush" not in str(caught.value)
    assert "can't be opened" in str(caught.value)


def test_power_cuts(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.sqlite") as journal:
        assert journal.synchronous == 2  # FULL
        journal.survive_power_cuts(False)
        assert journal.synchronous == 1  # NORMAL


def test_secrets_do_not_reach_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted-key-000111222")
    with Journal(tmp_path / "r.sqlite") as journal:
        run = begin(journal, note="key planted-key-000111222")
        journal.append(run, [Event(Kind.SETTLED, {"detail": "wrong key: planted-key-000111222"}, "n1")])
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"planted-key" not in content
    assert b"wrong key: [hidden]" in content


def test_two_programs_may_make_a_journal_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one makes the tables between the look for them and the making."""
    from sqlalchemy import MetaData, text

    store, make, calls = tmp_path / "runs.sqlite", MetaData.create_all, []

    def late(metadata: MetaData, bind: Any, **options: Any) -> None:
        calls.append(bind)
        if len(calls) == 1:
            make(metadata, bind, **options)
            bind.execute(text("CREATE TABLE rrf_runs (run TEXT)"))
        make(metadata, bind, **options)

    monkeypatch.setattr(MetaData, "create_all", late)
    with Journal(store) as journal:
        assert journal.summaries() == ()
    assert len(calls) == 2


@pytest.mark.parametrize("text", ["{}", '{"a":1}', '{"link":"x"}', '{"a":"\\"link\\":\\"0"}'])
def test_a_link_comes_off_again(text: str) -> None:
    mark = link("", text)
    linked = with_link(text, mark)
    assert json.loads(linked)["link"] == mark
    assert without_link(linked) == (text, mark)
    assert without_link(text) == (text, "")


def test_different_rows_have_different_links() -> None:
    rows = [
        (),
        ("",),
        (None,),
        ("None",),
        ("-",),
        ("a", "b"),
        ("ab",),
        ("a", "b", ""),
        ("a\n1\n=b",),
        (1,),
        (1.0,),
        ("\ud800",),
    ]
    links = [link("", *row) for row in rows] + [link("x"), texts_digest([]), texts_digest([("a",), ("b",)])]
    assert all(first != second for first, second in combinations(links, 2))


@pytest.mark.parametrize(
    "fault", [KeyError("x"), TypeError(), ValueError("a\nb"), AttributeError(), ZeroDivisionError()]
)
def test_an_event_that_does_not_follow_is_refused(tmp_path: Path, fault: Exception) -> None:
    def apply(event: Event) -> None:
        if event.kind is Kind.ENDED:
            raise fault

    with Journal(tmp_path / "runs.sqlite") as journal:
        run = journal.create({}, {"": {}})
        journal.append(run, [Event(Kind.SESSION, {}), Event(Kind.SESSION, {}), Event(Kind.ENDED, {})])
        with pytest.raises(Refused, match=f"run {run}, event 2: it does not follow") as caught:
            journal.replay(run, apply)
    assert "\n" not in str(caught.value)


def test_addresses() -> None:
    assert store_address("runs.sqlite") == "sqlite:///runs.sqlite"
    assert store_address("postgresql://a@b/c") == "postgresql+psycopg://a@b/c"
    with pytest.raises(InputError, match=r"use a path, sqlite:///PATH or postgresql"):
        store_address("mysql://me:secret@host/db")
    with pytest.raises(InputError) as caught:
        store_address("mysql://me:secret@host/db")
    assert "secret" not in str(caught.value)


def test_default_store_can_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RRF_STORE", raising=False)
    assert store_address(None) == "sqlite:///rrf-runs.sqlite"
    monkeypatch.setenv("RRF_STORE", "elsewhere.sqlite")
    assert store_address(None) == "sqlite:///elsewhere.sqlite"


def test_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Journal(tmp_path / "no" / "runs.sqlite")
