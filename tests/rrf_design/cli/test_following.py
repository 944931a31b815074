"""Following a run: fresh while it goes on, final when it is done, and never for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition import Journal
from rrf_design.cli.init import template
from rrf_design.cli.report import EVERY, ended_politely, follow
from rrf_design.files import from_document
from rrf_design.models.scripted import ScriptedModel
from rrf_design.reporting.documents import PageSource

Run = Callable[..., Any]
REFRESH = 'http-equiv="refresh"'


def page_of(source: PageSource) -> str:
    return f"page of {source.data['stopped_because']}{REFRESH if source.refresh else ''}"


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the journal says, look by look; the page is a line about it."""
    monkeypatch.setattr("rrf_design.cli.report.render", page_of)
    return []


def source(**data: Any) -> PageSource:
    return PageSource("rrf-run", {"stopped_because": "unfinished", "open_reviews": 0, **data})


def test_the_page_is_written_when_the_journal_has_grown_and_ends_with_the_run(
    tmp_path: Path, states: list[dict[str, Any]]
) -> None:
    out, loads, pages = tmp_path / "x.html", [], []
    lengths = iter([1, 1, 5, 9])
    found = iter([source(), source(), source(stopped_because="target reached")])

    def load() -> PageSource:
        loads.append(1)
        return next(found)

    done = follow(out, load, lambda: next(lengths), seconds=100, wait=lambda _: pages.append(out.read_text()))
    assert done
    assert len(loads) == 3  # not when nothing was new
    assert all(REFRESH in page for page in pages)
    assert out.read_text() == "page of target reached"


def test_a_person_is_waited_for(tmp_path: Path, states: list[dict[str, Any]]) -> None:
    waiting = source(stopped_because="target reached", open_reviews=1)
    said: list[str] = []
    assert not follow(
        tmp_path / "x.html",
        lambda: waiting,
        iter(range(9)).__next__,
        seconds=3 * EVERY,
        wait=lambda _: None,
        tell=said.append,
    )
    assert said == ["(the run waits for people, 1 question; followed until they have answered)"]


def test_sigterm_ends_it_as_ctrl_c_does() -> None:
    with pytest.raises(KeyboardInterrupt), ended_politely():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_it_ends_in_time_and_claims_no_freshness_then(tmp_path: Path, states: list[dict[str, Any]]) -> None:
    out = tmp_path / "x.html"
    waits: list[float] = []
    assert not follow(out, source, lambda: 1, seconds=5 * EVERY, wait=waits.append)
    assert len(waits) == 5
    assert REFRESH not in out.read_text()


def test_ctrl_c_ends_it_with_a_page_that_stays(tmp_path: Path, states: list[dict[str, Any]]) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "x.html"
    assert not follow(out, source, lambda: 1, seconds=100, wait=interrupt)
    assert REFRESH not in out.read_text()


def test_a_real_run_is_followed_to_its_end(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(template("paraphrase"), encoding="utf-8")
    Path("script.json").write_text('{"rules": [{"pattern": ".*", "text": "42"}]}')
    whole = run("acquire", "p.toml", "--model", "scripted:script.json", "--quiet", "--store", "all.sqlite", "--json")
    assert whole.code == 0
    with Journal("all.sqlite") as journal:
        name = journal.find("last")
        header, problems, events = journal.header(name), journal.problems(name), journal.events(name)
    with Journal("going.sqlite") as journal:  # the same run, of which only the beginning has happened yet
        going = journal.create(header, problems)
        journal.append(going, events[: len(events) // 2])
    pages = []

    def goes_on(_: float) -> None:
        pages.append(Path("x.html").read_text(encoding="utf-8"))
        with Journal("going.sqlite") as journal:
            assert journal.length(going) == len(journal.events(going)) == len(events) // 2
            journal.append(going, events[len(events) // 2 :])

    monkeypatch.setattr(follow, "__kwdefaults__", {"wait": goes_on})
    made = run("report", "last", "--store", "going.sqlite", "--follow", "-o", "x.html", "--json")
    assert made.json["finished"]
    assert len(pages) == 1
    assert REFRESH in pages[0]
    assert "The run is not finished (unfinished): this is how it stands." in pages[0]
    final = Path("x.html").read_text(encoding="utf-8")
    assert REFRESH not in final
    assert "Questions and raw answers" in final


def test_only_runs_are_followed(run: Run, tmp_path: Path) -> None:
    made = run("report", tmp_path / "plan.json", "--follow", "-o", tmp_path / "x.html")
    assert made.code == 2
    assert "a run of the journal" in made.err


def test_a_run_that_is_going_on_is_followed_by_another_process(tmp_path: Path) -> None:
    """The run waits for an answer until the other process has written its page; then it ends, and
    so does the other.
    """
    store, page, asked, go_on = tmp_path / "runs.sqlite", tmp_path / "x.html", threading.Event(), threading.Event()

    def answer(request: Any) -> str:
        asked.set()
        assert go_on.wait(120)
        return "42"

    def acquired() -> None:
        rrf.acquire(from_document(tomllib.loads(template("paraphrase"))), ScriptedModel(answer), store=store)

    run = threading.Thread(target=acquired)
    run.start()
    assert asked.wait(120)
    told = ["report", "last", "--follow", "--store", str(store), "-o", str(page), "--json", "--follow-seconds", "240"]
    follower = subprocess.Popen(
        [sys.executable, "-c", "import sys; from rrf_design.cli import main; main(sys.argv[1:])", *told],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        while not page.exists() and follower.poll() is None:
            asked.wait(0.05)
            asked.clear()
        assert REFRESH in page.read_text(encoding="utf-8")
        go_on.set()
        out, _ = follower.communicate(timeout=240)
    finally:
        go_on.set()
        follower.kill()
        run.join()
    assert json.loads(out)["finished"]
    assert REFRESH not in page.read_text(encoding="utf-8")
