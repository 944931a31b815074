"""A run is watched while it goes on: read, never written, and its counts are those of the run."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition import RunFollower
from rrf_design.models.scripted import ScriptedModel
from rrf_design.studio import Library
from rrf_design.studio._live import _Watched, events
from rrf_design.tables import delivery_of, write_output

from .conftest import made

ITEMS = 24


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run, with where it stood before each of its answers."""
    folder = made(tmp_path_factory.mktemp("live"), [f"r/{n}" for n in range(ITEMS)], {})
    store = folder / "runs.sqlite"
    seen: list[dict[str, Any]] = []
    follower: list[RunFollower] = []

    def say(request: Any) -> str:
        if not follower:
            follower.append(RunFollower("last", store=store))
        follower[0].read()
        follower[0].decide(60.0)
        seen.append(follower[0].progress())
        number = int(re.search(r"(\d+) \+ 10", request.prompt)[1])  # type: ignore[index]
        if number == 5 and "Sum?" in request.prompt:
            return "no idea"
        return str((100 if "cents" in request.prompt else 1) * (number + 10))

    run = rrf.acquire(rrf.dataset(folder / "r.toml"), ScriptedModel(say), budget=0.5, store=store)
    return {"folder": folder, "store": store, "seen": seen, "run": run}


def decided(progress: dict[str, Any]) -> int:
    return sum(progress["verdicts"].values())


def test_verdicts_come_with_the_answers(watched: dict[str, Any]) -> None:
    seen = watched["seen"]
    half = next(one for one in seen if one["calls"] >= len(seen) // 2)
    assert 0.4 <= decided(half) / ITEMS <= 0.6
    assert [one["calls"] for one in seen] == sorted(one["calls"] for one in seen)
    assert seen[-1]["because"] is None
    assert seen[-1]["failures"] == {"parse failure": 1}


def test_at_the_end_the_counts_are_those_of_the_run(watched: dict[str, Any]) -> None:
    follower = RunFollower("last", store=watched["store"])
    follower.read()
    found, run = follower.progress(), watched["run"].to_json()
    assert found["verdicts"] == run["verdicts"]
    assert (found["spent"], found["budget"], found["calls"]) == (run["spent"], 0.5, run["calls"])
    assert found["because"] == run["stopped_because"]
    assert follower.read() == 0


def test_a_row_says_what_was_bought_when_and_why(
    watched: dict[str, Any], open_studio: Callable[..., Any], tmp_path: Path
) -> None:
    for name in ("r.toml", "t.jsonl", "runs.sqlite"):
        (tmp_path / name).write_bytes((watched["folder"] / name).read_bytes())
    write_output(tmp_path / "out.csv", delivery_of(rrf.dataset(tmp_path / "r.toml"), watched["run"]))
    studio = open_studio(tmp_path)
    text = html.unescape(re.sub("<[^>]*>", " ", studio.get("/item", of="out.csv", id="r/5").text))
    assert f"In run {watched['run'].run}." in text
    assert re.search(r"sum +planned before any answer +0 +parse failure", text)
    assert re.search(r"again +planned before any answer +0 +answered: 15", text)
    assert '"text": "no idea"' in text
    assert "5 + 10 of r/5 Sum?" in text
    agreed = studio.get("/item", of="out.csv", id="r/6").text  # no recorded answers lie beside it: those of the run
    assert "3 answers, all of them 16" in agreed
    assert "The field" in agreed
    (tmp_path / "others.jsonl").write_bytes((watched["folder"] / "answers.jsonl").read_bytes())
    mixed = open_studio(tmp_path).get("/item", of="out.csv", id="r/5").text  # those say 15, the table's raw is another
    assert "2 answers, all of them 15" in mixed


def test_the_studio_writes_no_byte_of_a_journal(watched: dict[str, Any], open_studio: Callable[..., Any]) -> None:
    folder = watched["folder"]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    studio = open_studio(folder)
    key = f"runs.sqlite#{watched['run'].run}"
    assert watched["run"].run in studio.get("/").text
    for view in ("live", "document", "progress"):
        assert studio.get(f"/{view}", of=key).status_code == 200
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_viewer_is_told_what_changes_and_of_a_journal_that_is_gone(watched: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite").write_bytes(watched["store"].read_bytes())
    entry = Library([tmp_path]).entry(f"runs.sqlite#{watched['run'].run}")
    now = [0.0]
    follow = _Watched(entry, clock=lambda: now[0])
    told: list[str] = []

    async def listen() -> None:
        async def gone() -> bool:
            now[0] += 2.0
            if len(told) == 2:
                (tmp_path / "runs.sqlite").unlink(missing_ok=True)
            return len(told) == 3

        async def at_once(work: Any) -> Any:
            return work()

        async for text in events(follow, gone, in_thread=at_once, every=0.0):
            told.append(text)

    with ThreadPoolExecutor(1) as other:  # a browser of other tests has a loop in this thread
        other.submit(lambda: asyncio.run(listen())).result()
    assert told[0] == "retry: 1000\n\n"
    first = json.loads(told[1].partition("data: ")[2])
    assert first["items"] == ITEMS
    assert "no journal of runs" in json.loads(told[2].partition("data: ")[2])["trouble"]
