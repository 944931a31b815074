"""Stopping a session: the first signal lets calls settle, the second books them; nothing is ever left in doubt."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from fields import priced, ring, scripted

from rrf_design.acquisition import Journal, acquire, driving, live, read_run
from rrf_design.acquisition.journal import Kind
from rrf_design.errors import InputError

REMOTE = {"adapter": "shop", "model": "scripted"}


def remote(script: Any, **options: Any) -> Any:
    """A scripted model that counts as somebody else's: what is asked may be charged."""
    model = scripted(script, **options)
    model._identity, model.local = REMOTE, False
    return model


def kinds(tmp_path: Path) -> list[Kind]:
    with Journal(tmp_path / "r.sqlite") as journal:
        return [event.kind for event in journal.events(journal.find("last"))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("slots", [1, 3])
def test_the_first_signal_lets_calls_under_way_settle(tmp_path: Path, number: signal.Signals, slots: int) -> None:
    asked = []

    def script(request: Any) -> str:
        asked.append(request.prompt)
        if "question 2" in request.prompt:
            os.kill(os.getpid(), number)
        return "7"

    before = signal.getsignal(number)
    paused = acquire(ring(), remote(script, slots=slots), store=tmp_path / "r.sqlite", method="witness")
    assert signal.getsignal(number) is before
    assert (paused.stopped_because, paused.detail) == ("paused", "interrupted")
    assert len(paused.items[0].answers) == len(asked) < 6
    assert paused.lost == 0
    done = acquire(resume="last", model=remote(script, slots=slots), store=tmp_path / "r.sqlite")
    assert done.stopped_because == "paused" or len(asked) == 5
    assert Kind.DOUBT not in kinds(tmp_path)
    assert Kind.ABANDONED not in kinds(tmp_path)


@pytest.mark.parametrize("local", [True, False])
def test_the_second_signal_books_what_is_under_way_and_ends_at_once(tmp_path: Path, local: bool) -> None:
    answered = threading.Event()
    first = [True]

    def script(request: Any) -> str:
        if first[0] and "question 1" in request.prompt:
            first[0] = False
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)  # two of one kind at once may arrive as one
            answered.wait(60)
        return "7"

    model = (scripted if local else remote)(script)
    store = tmp_path / "r.sqlite"
    paused = acquire(priced(budget=9.0), model, store=store, method="witness")
    answered.set()
    assert paused.stopped_because == "paused"
    assert paused.lost == (0 if local else 1)  # a question costs 1, and it may have been charged
    assert Kind.DOUBT not in kinds(tmp_path)
    done = acquire(resume="last", model=model, store=store)
    assert Kind.DOUBT not in kinds(tmp_path)
    assert done.stopped_because != "paused"
    assert done.spent <= 9


def test_patience_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "GRACE", 0.0)
    answered = threading.Event()

    def script(request: Any) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        answered.wait(60)
        return "7"

    paused = acquire(ring(), remote(script), store=tmp_path / "r.sqlite", method="witness")
    answered.set()
    assert (paused.stopped_because, paused.calls) == ("paused", 1)
    assert read_run("last", store=tmp_path / "r.sqlite").detail == "interrupted"


def test_an_error_while_fetching_leaves_nothing_in_doubt(tmp_path: Path) -> None:
    def script(request: Any) -> str:
        if "question 2" in request.prompt:
            raise InputError("no recorded answer")
        return "7"

    with pytest.raises(InputError, match="no recorded answer"):
        acquire(ring(), remote(script, slots=3), store=tmp_path / "r.sqlite", method="witness")
    assert Kind.RELEASED in kinds(tmp_path)  # the one that failed, and those of its neighbours that had not begun
    acquire(resume="last", model=remote(lambda request: "7"), store=tmp_path / "r.sqlite")
    assert Kind.DOUBT not in kinds(tmp_path)


def test_a_run_in_a_thread_needs_no_signals(tmp_path: Path) -> None:
    found: list[Any] = []
    work = lambda: found.append(acquire(ring(), scripted(), store=tmp_path / "r.sqlite", method="witness"))  # noqa: E731
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].repaired["n2"] == pytest.approx([7.0])


def test_what_was_reserved_ahead_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen slots and two ahead: at the first signal those that nobody has begun are released, and nothing is lost."""
    begun: list[str] = []
    everybody = threading.Barrier(16, timeout=30)

    def script(request: Any) -> str:
        begun.append(request.prompt)
        if everybody.wait() == 0:
            os.kill(os.getpid(), signal.SIGINT)
        stopped.wait(30)
        return "7"

    stopped = threading.Event()

    def seen(event: Any) -> None:
        if event.kind is Kind.RELEASED:
            stopped.set()

    items = {f"i{j}": ring(name=f"i{j}") for j in range(6)}
    monkeypatch.setattr(live, "Teller", lambda progress: seen)
    paused = acquire(items, remote(script, slots=16), store=tmp_path / "r.sqlite", method="witness", progress=print)
    assert (paused.stopped_because, paused.calls, paused.lost) == ("paused", 16, 0)
    assert len(begun) == 16
    assert kinds(tmp_path).count(Kind.RELEASED) == 2
