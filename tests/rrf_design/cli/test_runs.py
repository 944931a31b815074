"""Runs listed, shown and followed; models that fail."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition import Journal, acquire
from rrf_design.acquisition.redaction import HIDDEN
from rrf_design.cli import main
from rrf_design.cli._live_models import Live
from rrf_design.cli._run_results import tell_next
from rrf_design.cli.init import _template
from rrf_design.cli.output import Printer, _RunEvents, _RunProgress
from rrf_design.cli.report import EVERY, _ended_politely, follow
from rrf_design.errors import InputError
from rrf_design.files import from_document
from rrf_design.models.scripted import ScriptedModel
from rrf_design.problem import Problem
from rrf_design.promises._buying import LiveModels
from rrf_design.reporting.documents import PageSource


@pytest.fixture
def store(tmp_path: Path) -> str:
    problem = Problem(
        name="pair",
        k=1,
        nodes=[{"id": "x", "prompt": "x?"}, {"id": "y", "prompt": "y?"}],
        relations=[{"id": "xy", "tail": "x", "head": "y"}],
        anchors=[{"id": "a", "node": "x", "value": 7.0, "cost": 1.0}],
    )
    acquire(problem, ScriptedModel(lambda request: "7"), store=tmp_path / "r.sqlite", method="witness", budget=1.0)
    return str(tmp_path / "r.sqlite")


def call(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_runs(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("runs", "--store", store, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in document["runs"]] == ["pair"]
    assert document["runs"][0]["purchases"] == 3
    assert call("runs", "--store", store) == 0
    assert "pair" in capsys.readouterr().out
    assert call("runs", "--store", str(tmp_path / "empty.sqlite")) == 0
    assert "no runs yet" in capsys.readouterr().out


def test_show(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("show", "last", "--store", store, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [p["name"] for p in document["purchases"]] == ["x", "y", "a"]
    files = [str(tmp_path / "run.json"), str(tmp_path / "log.jsonl")]
    assert call("show", "last", "--store", store, "-o", files[0], "--answers", files[1]) == 0
    assert "revealed" in capsys.readouterr().out
    assert json.loads(Path(files[0]).read_text()) == document
    assert len(Path(files[1]).read_text().splitlines()) == 2


def test_who_only_reads_makes_no_journal(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RRF_STORE", raising=False)
    assert "no runs yet" in run("runs").out
    assert run("runs", "--json").json["runs"] == []
    made = run("show", "last")
    assert (made.code, made.err.count("\n")) == (2, 1)
    assert "no journal of runs" in made.err
    assert run("report", "last", "-o", "x.html").code == 2
    assert list(tmp_path.iterdir()) == []


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def play(progress: _RunProgress, clock: Clock, items: int) -> None:
    for i in range(items):
        clock.now += 1.0
        progress((i + 1) / items, None, f"{i + 1} of {items} items")


def test_a_log_has_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    play(_RunProgress(terminal=False, clock=clock), clock, 300)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert [line.split()[0] for line in seen.err.splitlines()] == ["60", "120", "180", "240", "300"]


def test_a_terminal_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = _RunProgress(terminal=True, clock=clock)
    play(progress, clock, 20)
    progress.close()
    text = capsys.readouterr().err
    assert "\n" not in text
    assert "20 of 20 items" in text
    assert text.endswith("\r")


def test_news_is_told_at_once_and_shows_nothing_that_rings(capsys: pytest.CaptureFixture[str]) -> None:
    progress = _RunProgress(terminal=False, clock=Clock())
    progress(None, None, "  bell \x07: answered = 7  [0.5]")
    progress(None, None, "stopped: target reached")
    assert capsys.readouterr().err.splitlines() == ["  bell \ufffd: answered = 7  [0.5]", "stopped: target reached"]


def test_programs_get_events_every_few_seconds_and_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    events = _RunEvents(clock=lambda: now[0])
    for second in range(12):
        now[0] = float(second)
        events.event({"event": "progress", "calls": second})
    events.close()
    events.close()
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["calls"] for line in said] == [5, 10, 11]
    events(0.5, None, "half")
    events.close()
    assert json.loads(capsys.readouterr().err) == {"event": "progress", "share": 0.5, "words": "half"}


def told(capsys: pytest.CaptureFixture[str], *, store: str | None = None, **more: Any) -> str:
    options = {name: more.pop(name) for name in ("review", "table_of") if name in more}
    run: Any = SimpleNamespace(**{"run": "r1", "stopped_because": "paused", "open_reviews": 0, "header": {}, **more})
    tell_next(run, store=store, **options)
    return capsys.readouterr().out.strip()


def test_a_stopped_run_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == "Go on with: rrf-design acquire --resume r1"
    assert told(capsys, store="x.sqlite") == "Go on with: rrf-design acquire --resume r1 --store x.sqlite"
    assert told(capsys, stopped_because="goal reached") == ""
    table = "r.toml --data 't 1.csv' -o d.csv"
    assert told(capsys, table_of=table) == f"Go on with: rrf-design acquire {table} --resume r1"


def test_what_is_never_kept_has_to_be_given_again(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"use": "openai:m", "base_url": f"http://me:{HIDDEN}@host/v1"}
    said = told(capsys, header={"models": {"model": entry}}, store="postgresql://me:hunter2-abc@host/db")
    assert "--base-url ADDRESS (once more: its password is never kept)" in said
    assert "hunter2" not in said
    assert "--base-url" not in told(capsys, header={"models": {"model": {"use": "openai:m", "base_url": "http://h"}}})


@pytest.mark.parametrize("table", ["", "r.toml --data t.csv"])
def test_open_questions_say_where_they_are(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    base = {"stopped_because": "waiting for review", "table_of": table}
    start = f"rrf-design acquire {table} --resume r1" if table else "rrf-design acquire --resume r1"
    bare = told(capsys, open_reviews=2, **base)
    assert bare == f"2 questions wait for people: write them with --review, then go on with: {start} --review FILE"
    written = told(capsys, open_reviews=1, review="who.csv", **base)
    assert written.startswith("1 question waits for people: fill in the column value in who.csv ")
    assert written.endswith(f"{start} --review who.csv")
    stored = told(capsys, open_reviews=1, review="postgresql://me:hunter2@host/db", **base)
    assert "answer with rrf-design studio postgresql://me:***@host/db, then go on" in stored


def chosen(model: list[str] | None = None, **options: Any) -> LiveModels:
    with Live(model, **options).models(Printer(quiet=True), None) as found:
        return found


def test_only_what_is_given_is_passed_on() -> None:
    bare = chosen(["embedded"])
    assert bare.model == "embedded"
    assert bare.store is None
    assert bare.options["model_options"] == {}
    full = chosen(
        ["a=embedded", "b=openai:x"],
        store="j.sqlite",
        base_url="http://here",
        slots=3,
        money=2.5,
        prices=Path("p.toml"),
    )
    assert isinstance(full.model, dict)
    assert set(full.model) == {"a", "b"}
    assert full.store == "j.sqlite"
    assert full.options["model_options"] == {"base_url": "http://here", "slots": 3}
    assert (full.options["money"], full.options["prices"]) == (2.5, Path("p.toml"))


def test_no_model_is_none() -> None:
    assert chosen(None).model is None
    assert chosen([]).model is None


def test_two_models_need_names() -> None:
    with pytest.raises(InputError, match="several models need names"):
        chosen(["embedded", "openai:x"])


@pytest.mark.parametrize(("cache", "kept"), [("off", False), ("here", True)])
def test_where_answers_are_kept(cache: str, kept: bool, tmp_path: Path) -> None:
    found = chosen(["embedded"], cache=str(tmp_path / cache) if kept else cache).options["cache"]
    assert (found is not None) is kept


@pytest.mark.parametrize(("yes", "said", "agreed"), [(True, False, True), (False, True, True), (False, False, False)])
def test_consent_is_given_by_yes_or_by_a_limit(
    monkeypatch: pytest.MonkeyPatch, yes: bool, said: bool, agreed: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "rrf_design.cli._live_models._agreed", lambda spending, *, said, quiet: asked.append(said) or said
    )
    consent = chosen(["embedded"], yes=yes).options["consent"]
    assert consent("what it costs", said) is agreed
    assert asked == [agreed]


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
    with pytest.raises(KeyboardInterrupt), _ended_politely():
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
    Path("p.toml").write_text(_template("paraphrase"), encoding="utf-8")
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
        rrf.acquire(from_document(tomllib.loads(_template("paraphrase"))), ScriptedModel(answer), store=store)

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


PROBLEM = """[[nodes]]
id = "a"
prompt = "6 * 7?"
[[anchors]]
id = "x"
node = "a"
value = 42.0
"""
SECRET = "sk-the-wrong-one-0123456789"


class Provider(ThreadingHTTPServer):
    """Knows two models and one key, and answers 42."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts = 0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        key = self.headers.get("authorization") or self.headers.get("x-api-key") or ""
        if not key.endswith("right"):
            return self.reply({"error": {"type": "authentication_error", "message": f"wrong key {key}"}}, 401)
        listed = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in ("big-1", "small-1")]
        name = self.path.partition("/models")[2].partition("?")[0].strip("/")
        if name and name not in ("big-1", "small-1"):
            return self.reply({"error": {"code": "model_not_found", "message": "no"}}, 404)
        return self.reply({"object": "list", "data": listed} if not name else listed[0])

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.posts += 1
        message = {"role": "assistant", "content": "42"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self.reply({"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 1}})

    def reply(self, document, status=200):
        payload = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider():
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "OPENAI_API_KEY",
        "RRF_OPENAI_API_KEY",
        "RRF_OPENAI_BASE_URL",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "RRF_STORE",
    ):
        monkeypatch.delenv(name, raising=False)
    Path("p.toml").write_text(PROBLEM)
    return tmp_path


def refused(run, *options):
    """The one line, of a call that left no run behind."""
    ran = run("acquire", "p.toml", "--budget", "1", "-q", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    assert SECRET not in ran.err
    assert "no runs yet" in run("runs").out or not Path("rrf-runs.sqlite").exists()
    return ran.err


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("gpt-4o", "unknown model 'gpt-4o'; did you mean 'openai:gpt-4o'?"),
        ("opnai:gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("claude-haiku-4-5", "did you mean 'anthropic:claude-haiku-4-5'?"),
        ("openai:gpt-4o", "set OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "set ANTHROPIC_API_KEY, in the environment or in .env"),
    ],
)
def test_names_and_missing_keys(run, here, model, line):
    assert line in refused(run, "--model", model)


def test_a_provider_whose_extra_is_not_installed(run, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "any_llm", None)
    assert "pip install 'rrf-design[providers]'" in refused(run, "--model", "anthropic:claude-haiku-4-5")


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_wrong_key(run, here, provider, monkeypatch, kind):
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", SECRET)
    url = f"http://127.0.0.1:{provider.server_port}" + ("/v1" if kind == "openai" else "")
    line = refused(run, "--model", f"{kind}:big-1", "--base-url", url)
    assert f"model {kind}:big-1: the server refuses the key in {kind.upper()}_API_KEY" in line
    assert provider.posts == 0


def test_a_model_that_does_not_exist(run, here, provider, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "right")
    url = f"http://127.0.0.1:{provider.server_port}/v1"
    line = refused(run, "--model", "openai:big-2", "--base-url", url)
    assert "the server has no such model, or this key may not use it; did you mean 'big-1'?" in line
    assert provider.posts == 0
    assert run("acquire", "p.toml", "--model", "openai:big-1", "--base-url", url).code == 0
    assert provider.posts == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_an_address_where_nobody_answers(run, here, monkeypatch, kind):
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", "right")
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        line = refused(run, "--model", f"{kind}:m", "--base-url", url)
    assert f"model {kind}:m: nobody answers at {url}; start the server there, or correct base_url" in line
