"""Work that is shared out: in order, the same wherever it runs, and never waited for without
end.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest

import rrf_design as rrf
from rrf_design import verify, workers
from rrf_design.cli import main
from rrf_design.errors import RetryLater
from rrf_design.tables import _engine as engine
from rrf_design.tables import structures
from rrf_design.workers import Supply, is_serial, shared_out, supplied
from solvers.tasks import LostWorkError, through_client


def square(number: int) -> int:
    return number * number


def test_order_is_kept() -> None:
    assert list(shared_out((joblib.delayed(square)(n) for n in range(20)), n_jobs=2)) == [n * n for n in range(20)]
    assert is_serial(None)
    assert is_serial(1)
    assert not is_serial(2)


@contextlib.contextmanager
def started(processes: int) -> Iterator[Any]:
    """A real scheduler with so many worker processes, on loopback; it gives up what has killed two
    workers.
    """
    distributed = pytest.importorskip("distributed")
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        cluster = distributed.LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            silence_logs=50,
        )
        try:
            with distributed.Client(cluster) as client:
                yield client
        finally:
            with contextlib.suppress(KeyError):  # Dask looks up the name of a worker that has just left its list
                cluster.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with started(1) as client:
        yield client


RECIPE = {
    "data": {"id": "no"},
    "answer": {"of": "a", "tolerance": 0.1},
    "ask": [{"id": "a", "prompt": "?"}, *({"id": name, "prompt": "?", "like": "a"} for name in ("b", "c"))],
}


ITEMS = 40
ANSWERS = [
    {"id": str(number), "node": node, "value": float(number + (number % 3 == 0 and node == "b"))}
    for number in range(ITEMS)
    for node in ("a", "b", "c")
]


def delivered(killing: Any = None) -> list[dict[str, Any]]:
    """What a repair of the table delivers; `killing` is called when the first rows are there."""
    items = rrf.dataset(RECIPE, [{"no": str(number)} for number in range(ITEMS)])

    def progress(*_: Any) -> None:
        if killing is not None:
            killing()

    return [row.to_json() for row in rrf.repair(items, ANSWERS, progress=progress).rows()]


@pytest.fixture
def enough(cluster: Any) -> Any:
    """Waits until so many worker processes are there."""

    def scaled(processes: int) -> None:
        cluster.cluster.scale(processes)
        cluster.wait_for_workers(processes, timeout=120)

    return scaled


TABLE = {
    "data": {"id": "no"},
    "answer": {"of": "a", "tolerance": 0.1, "epsilon": 0.01},
    "ask": [
        {"id": "a", "prompt": "?"},
        *(
            {"id": name, "prompt": "?", "like": "a", "buy": "if needed", "cost": cost}
            for name, cost in (("b", 1.0), ("c", 1.5))
        ),
    ],
    "check": [
        {"id": "book", "of": "a", "by": {"value": "{{ book }}"}, "when": "{{ book }}", "cost": 0.5},
        {"id": "clerk", "of": "a", "by": {"person": "?"}, "cost": 5.0},
    ],
}
ROWS = [{"no": str(number), "book": "1" if number % 3 else ""} for number in range(12)]


def bought(folder: Path, *cluster: str) -> Any:
    """What `plan` says about a table of two structures: at least cost, and under one budget."""
    return [_said("plan", *_files(folder), *cluster), _said("plan", *_files(folder), "--budget", "9", *cluster)]


def certified(folder: Path, *cluster: str) -> Any:
    """The certificates of a table of two structures, but for how long they took."""
    _said("certify", *_files(folder), "--all", "-o", str(folder / "proofs"), *cluster)
    paths = sorted((folder / "proofs").iterdir())
    assert all(verify(path).valid for path in paths)
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [{key: part for key, part in document.items() if key not in ("provenance", "digest")} for document in found]


def _files(folder: Path) -> list[str]:
    (folder / "rrf.json").write_text(json.dumps(TABLE), encoding="utf-8")
    (folder / "table.json").write_text(json.dumps(ROWS), encoding="utf-8")
    return [str(folder / "rrf.json"), "--data", str(folder / "table.json")]


def _said(*arguments: str) -> tuple[int, Any]:
    """What a verb prints as JSON, and its exit code: whether the goal was reached."""
    code, out, err = _ran(*arguments)
    assert code in (0, 1), err
    return code, json.loads(out)


def _ran(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([*arguments, "--json", "--quiet"])
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_the_same_bits_whatever_the_workers(
    cluster: Any, enough: Any, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`repair`, `plan` and `certify` of a table, in this process and in so many others."""
    monkeypatch.setattr(engine, "CHUNK", 4)
    here = delivered(), bought(tmp_path), certified(tmp_path)
    enough(processes)
    address = ("--cluster", cluster.scheduler.address)
    with joblib.parallel_config(backend="dask", n_jobs=-1):
        there = delivered()
    assert (there, bought(tmp_path, *address), certified(tmp_path, *address)) == here


class Sent:
    """Counts how often it is sent."""

    times = 0

    def __getstate__(self) -> dict[str, Any]:
        Sent.times += 1
        return {"number": 3}


def product(supply: Supply, number: int) -> int:
    return int(supply.get().number * number)


def test_what_all_pieces_need_is_sent_once(cluster: Any) -> None:
    cluster.cluster.scale(2)
    cluster.wait_for_workers(2, timeout=120)
    Sent.times = 0
    with joblib.parallel_config(backend="dask", n_jobs=-1), supplied(Sent()) as supply:
        tasks = (joblib.delayed(product)(supply, number) for number in range(20))
        assert list(shared_out(tasks, n_jobs=-1)) == [3 * number for number in range(20)]
    assert 1 <= Sent.times <= 5  # not with each of the 20 pieces; once, unless a worker went away just then
    assert not any(cluster.run(_left, supply.name).values())


def _left(name: str) -> bool:
    return name in workers._SUPPLIES


def test_without_a_cluster_it_travels_with_the_work() -> None:
    with supplied([7]) as supply:
        assert (supply.get(), supply.value) == ([7], [7])


def test_a_killed_worker_costs_time_only(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are the same; a worker that starts in place of the killed one is sent what it
    needs.
    """
    monkeypatch.setattr(engine, "CHUNK", 4)
    here = delivered()
    cluster.cluster.scale(2)
    cluster.wait_for_workers(2, timeout=120)
    alive, killed = list(cluster.run(os.getpid).values()), list[int]()

    def kill_one() -> None:
        if not killed:
            killed.append(alive[0])
            os.kill(alive[0], signal.SIGKILL)

    with joblib.parallel_config(backend="dask", n_jobs=-1):
        assert delivered(kill_one) == here
    assert killed
    cluster.wait_for_workers(2, timeout=120)
    assert killed[0] not in cluster.run(os.getpid).values()


@pytest.mark.parametrize("verb", [bought, certified])
def test_a_worker_killed_under_plan_and_certify_costs_time_only(
    cluster: Any, enough: Any, tmp_path: Path, verb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = verb(tmp_path)
    enough(2)
    killed = list[int]()
    submit = distributed_client().submit

    def and_kill(self: Any, *args: Any, **kwargs: Any) -> Any:
        """The first piece of work is handed over, and one who may have it dies."""
        future = submit(self, *args, **kwargs)
        if not killed:
            killed.append(next(iter(cluster.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return future

    monkeypatch.setattr(distributed_client(), "submit", and_kill)
    assert verb(tmp_path, "--cluster", cluster.scheduler.address) == here
    assert killed


def distributed_client() -> Any:
    return pytest.importorskip("distributed").Client


def test_work_that_kills_its_workers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a wait: the scheduler gives up a piece of work that has killed two workers, and we hear
    of it.
    """
    monkeypatch.setattr(structures, "curves_of", dies_of)
    with started(2) as client:
        code, out, err = _ran("plan", *_files(tmp_path), "--budget", "9", "--cluster", client.scheduler.address)
    assert code not in (0, 1)
    assert (out, err.count("\n")) == ("", 1)
    assert "killed every worker" in err


def test_certify_ends_where_a_structure_kills_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.certificates.certify", dies_of)
    with (
        started(2),
        joblib.parallel_config(backend="dask", n_jobs=-1),
        pytest.raises(RetryLater, match="killed every worker"),
    ):
        structures.certify_dataset(rrf.dataset(TABLE, ROWS))


def dies_of(*_: Any, **__: Any) -> None:
    os._exit(1)


def test_a_cluster_without_workers_is_an_error() -> None:
    with started(0) as client, pytest.raises(LostWorkError, match=r"no worker for 0\.1 s"):
        list(through_client(client, [joblib.delayed(square)(3)], patience=0.1))
