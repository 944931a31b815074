"""Work that is shared out: in order, the same wherever it runs, and never waited for without end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest

import rrf_design as rrf
from rrf_design.errors import RetryLater
from rrf_design.handover import repairing
from rrf_design.workers import is_serial, shared_out


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
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


RECIPE = {
    "data": {"id": "no"},
    "answer": {"of": "a", "tolerance": 0.1},
    "ask": [{"id": "a", "prompt": "?"}, *({"id": name, "prompt": "?", "like": "a"} for name in ("b", "c"))],
}


def test_a_cluster_gives_the_same_rows(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairing, "CHUNK", 8)
    items = rrf.dataset(RECIPE, [{"no": str(number)} for number in range(40)])
    answers = [
        {"id": str(number), "node": node, "value": float(number + (number % 3 == 0 and node == "b"))}
        for number in range(40)
        for node in ("a", "b", "c")
    ]
    here = [row.to_json() for row in rrf.repair(items, answers).rows()]
    with joblib.parallel_config(backend="dask", n_jobs=-1):
        there = [row.to_json() for row in rrf.repair(items, answers).rows()]
    assert there == here


def test_work_that_kills_its_workers_is_an_error(cluster: Any) -> None:
    with joblib.parallel_config(backend="dask", n_jobs=-1), pytest.raises(RetryLater, match="did not come back"):
        list(shared_out((joblib.delayed(dies)(n) for n in range(3)), n_jobs=-1, patience=4.0))
