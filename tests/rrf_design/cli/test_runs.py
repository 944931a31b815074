"""What runs were, how far they are, what is said about going on, and which models they ask."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rrf_design.acquisition import acquire
from rrf_design.acquisition.redaction import HIDDEN
from rrf_design.cli import main
from rrf_design.cli.live_models import Live
from rrf_design.cli.output import Printer, RunEvents, RunProgress
from rrf_design.cli.run_results import tell_next
from rrf_design.errors import InputError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.problem import Problem
from rrf_design.promises.buying import LiveModels


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


def play(progress: RunProgress, clock: Clock, items: int) -> None:
    for i in range(items):
        clock.now += 1.0
        progress((i + 1) / items, None, f"{i + 1} of {items} items")


def test_a_log_has_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    play(RunProgress(terminal=False, clock=clock), clock, 300)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert [line.split()[0] for line in seen.err.splitlines()] == ["60", "120", "180", "240", "300"]


def test_a_terminal_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = RunProgress(terminal=True, clock=clock)
    play(progress, clock, 20)
    progress.close()
    text = capsys.readouterr().err
    assert "\n" not in text
    assert "20 of 20 items" in text
    assert text.endswith("\r")


def test_news_is_told_at_once_and_shows_nothing_that_rings(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(terminal=False, clock=Clock())
    progress(None, None, "  bell \x07: answered = 7  [0.5]")
    progress(None, None, "stopped: target reached")
    assert capsys.readouterr().err.splitlines() == ["  bell \ufffd: answered = 7  [0.5]", "stopped: target reached"]


def test_programs_get_events_every_few_seconds_and_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    events = RunEvents(clock=lambda: now[0])
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
    options = {name: more.pop(name) for name in ("review_file", "table_of") if name in more}
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
    assert (
        bare == f"2 questions wait for people: write them with --review-file, then go on with: {start} --reviews FILE"
    )
    written = told(capsys, open_reviews=1, review_file=Path("who.csv"), **base)
    assert written.startswith("1 question waits for people: they are in who.csv; ")
    assert written.endswith(f"{start} --reviews who.csv")
    assert "--review-file" not in written


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
        "rrf_design.cli.live_models.agreed", lambda spending, *, said, quiet: asked.append(said) or said
    )
    consent = chosen(["embedded"], yes=yes).options["consent"]
    assert consent("what it costs", said) is agreed
    assert asked == [agreed]
