"""Work that is shared out: in order, the same wherever it runs, and never waited for without end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import joblib
import pytest

import rrf_design as rrf
from rrf_design import workers
from rrf_design.errors import RetryLater
from rrf_design.handover import repairing
from rrf_design.workers import Supply, is_serial, shared_out, supplied


def square(number: int) -> int:
    return number * number


def dies(number: int) -> int:
    if number == 1:
        os._exit(1)
    return number


def test_order_is_kept() -> None:
    assert list(shared_out((joblib.delayed(square)(n) for n in range(20)), n_jobs=2)) == [n * n for n in range(20)]
    assert is_serial(None)
    assert is_serial(1)
    assert not is_serial(2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A real scheduler with worker processes, on loopback."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
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


def delivered_by(cluster: Any, processes: int) -> list[dict[str, Any]]:
    """The same on a cluster of so many worker processes."""
    cluster.cluster.scale(processes)
    cluster.wait_for_workers(processes, timeout=120)
    with joblib.parallel_config(backend="dask", n_jobs=-1):
        return delivered()


def test_one_and_two_workers_give_the_same_rows(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairing, "CHUNK", 4)
    here = delivered()
    for processes in (1, 2):
        assert delivered_by(cluster, processes) == here


class Sent:
    """Counts how often it is sent."""

    times = 0

    def __getstate__(self) -> dict[str, Any]:
        Sent.times += 1
        return {"number": 3}


def product(supply: Supply, number: int) -> int:
    return int(supply.get().number * number)


def test_what_all_pieces_need_is_sent_once(cluster: Any) -> None:
    cluster.cluster.scale(2)  # with one worker joblib works here, and nothing is sent
    cluster.wait_for_workers(2, timeout=120)
    Sent.times = 0
    with joblib.parallel_config(backend="dask", n_jobs=-1), supplied(Sent()) as supply:
        tasks = (joblib.delayed(product)(supply, number) for number in range(20))
        assert list(shared_out(tasks, n_jobs=-1)) == [3 * number for number in range(20)]
    assert Sent.times == 1
    assert not any(cluster.run(_left, supply.name).values())


def _left(name: str) -> bool:
    return name in workers._SUPPLIES


def test_without_a_cluster_it_travels_with_the_work() -> None:
    with supplied([7]) as supply:
        assert (supply.get(), supply.value) == ([7], [7])


def test_a_killed_worker_costs_time_only(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are the same; a worker that starts in place of the killed one is sent what it needs."""
    monkeypatch.setattr(repairing, "CHUNK", 4)
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


def test_eight_workers_give_the_same_rows(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairing, "CHUNK", 4)
    assert delivered_by(cluster, 8) == delivered()


def test_work_that_kills_its_workers_is_an_error(cluster: Any) -> None:
    with joblib.parallel_config(backend="dask", n_jobs=-1), pytest.raises(RetryLater, match="did not come back"):
        list(shared_out((joblib.delayed(dies)(n) for n in range(3)), n_jobs=-1, patience=4.0))
