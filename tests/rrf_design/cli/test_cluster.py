"""`--cluster`: the same numbers through a scheduler, and one line where it goes away."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.cli import _options as options
from rrf_design.cli.app import app
from rrf_design.errors import RetryLater
from rrf_design.workers import _supplied, shared_out

distributed = pytest.importorskip("distributed")

SCHEDULER = """
import asyncio
from distributed import Scheduler, Worker

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        async with Worker(scheduler.address, nthreads=1, host="127.0.0.1", dashboard=False):
            print(scheduler.address, flush=True)
            await scheduler.finished()

asyncio.run(main())
"""


@pytest.fixture
def scheduler() -> Iterator[tuple[int, str]]:
    """A scheduler with a worker, in a process of its own, and where it is."""
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        subprocess.Popen(
            [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process,
    ):
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
        process.kill()


def through(address: str, killed: int | None = None) -> list[int]:
    """Work of a verb on the cluster; the scheduler is killed before it begins, where that is
    asked for.
    """
    from joblib import delayed

    with options.on_cluster(address):
        if killed is not None:
            os.kill(killed, signal.SIGKILL)
        with _supplied([1]):
            return list(shared_out([delayed(len)([1, 2])], n_jobs=-1))


def test_a_margin_through_it_is_the_margin_and_a_dead_one_is_one_line(
    scheduler: tuple[int, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process, address = scheduler
    problem = rrf.Problem(nodes=[{"id": "a"}, {"id": "b"}], anchors=[{"id": "x", "node": "a", "value": 2}])
    rrf.save(problem, tmp_path / "one.toml")
    for verb in ("margin", "frontier"):
        app([verb, str(tmp_path / "one.toml"), "--json"], standalone_mode=False)
        here = json.loads(capsys.readouterr().out)
        app([verb, str(tmp_path / "one.toml"), "--json", "--cluster", address], standalone_mode=False)
        there = json.loads(capsys.readouterr().out)
        assert {key: here[key] for key in here if "seconds" not in key} == {
            key: there[key] for key in there if "seconds" not in key
        }
    assert through(address) == [2]
    with pytest.raises(RetryLater, match=r"scheduler has gone away|cluster has gone|be reached") as said:
        through(address, killed=process)
    assert said.value.exit_code == 75
    assert "\n" not in str(said.value)
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.ERROR)  # which has a level of its own


def test_passes_over_a_table_are_shared_out_and_say_the_same(
    scheduler: tuple[int, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`estimate`, `pilot` and `scenario run`: the same JSON, but for the time it took."""
    ask = '[[ask]]\nid = "{0}"\nprompt = "{{{{ text }}}}?"\ncost = 1.0\nparse = "decimal"\n'
    recipe = '[data]\ntable = "t.csv"\nid = "no"\ngold = "sum"\n[answer]\nof = "a"\ntolerance = 0.1\n'
    recipe += ask.format("a") + ask.format("b") + 'like = "a"\n[[check]]\nid = "p"\nof = "a"\n'
    (tmp_path / "r.toml").write_text(recipe + 'by = {person = "?"}\ncost = 9.0\n')
    (tmp_path / "t.csv").write_text("no,text,sum\n" + "".join(f"{n},{n} + 1,{n + 1}\n" for n in range(2100)))
    said = "".join(f"{n},{node},{n + 1 + (n % 50 == 0)}\n" for n in range(2100) for node in "ab")
    (tmp_path / "said.csv").write_text("id,node,text\n" + said)
    pilot = ["pilot", tmp_path / "r.toml", "--responses", tmp_path / "said.csv", "--labels", "80", "--risk", "0.1"]
    run = ["scenario", "run", "anchor-transition", "--quick", "--out", tmp_path / "results"]
    for call in (["estimate", tmp_path / "r.toml", "--model", "embedded"], pilot, run):
        told = []
        for further in ([], ["--cluster", scheduler[1]]):
            app([*map(str, call), *further, "--json"], standalone_mode=False)
            told.append(json.loads(capsys.readouterr().out))
        here, there = (timeless(one) for one in told)
        assert here == there, call[0]


def timeless(document: Any) -> Any:
    """Without what depends on the clock."""
    if isinstance(document, dict):
        return {key: timeless(one) for key, one in document.items() if "second" not in key and key not in CLOCKED}
    return [timeless(one) for one in document] if isinstance(document, list) else document


CLOCKED = ("elapsed", "digest", "finished", "started")
