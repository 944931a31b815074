"""Tasks run here or elsewhere, in order, and a clock that they hear.

The same answer on a Dask cluster of worker processes, one of which is killed in mid-run.
"""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pytest

from solvers import support_margin
from solvers.tasks import run_tasks, stopping_at


def square(x, *, stop=None):
    return x * x


def broken(x, *, stop=None):
    raise RuntimeError(f"task {x}")


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
@pytest.mark.parametrize("work", [0.0, np.inf])
def test_results_come_in_the_order_of_the_jobs(n_jobs, work):
    heard = []
    assert run_tasks(square, [(i,) for i in range(5)], n_jobs=n_jobs, work=work, progress=heard.append) == [
        0, 1, 4, 9, 16,
    ]  # fmt: skip
    assert heard == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_futile_work_is_left_out():
    assert run_tasks(square, [(i,) for i in range(5)], n_jobs=None, work=0.0, futile=lambda x: x >= 4) == [0, 1, 4]


@pytest.mark.parametrize("work", [0.0, np.inf])
def test_a_fault_in_a_task_is_the_callers(work):
    with pytest.raises(RuntimeError, match="task 0"):
        run_tasks(broken, [(0,), (1,)], n_jobs=None, work=work)


def test_the_clock_is_heard():
    with stopping_at(time.time() - 1.0) as stop:
        began = time.time()
        while not stop[0] and time.time() - began < 30.0:
            pass
        assert stop[0]
    with stopping_at(None) as stop:
        assert not stop[0]


distributed = pytest.importorskip("distributed", reason="the cluster extra is not installed")


def _solve_while_a_worker_dies(B):
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs="CRITICAL"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = client.run(os.getpid)

        def kill_one(*_):
            if not killed:
                killed.append(next(iter(workers.values())))
                os.kill(killed[0], signal.SIGKILL)

        with joblib.parallel_config(backend="dask"):
            return support_margin(B, size=5, progress=kill_one), killed


@pytest.mark.filterwarnings("default")
def test_a_cluster_gives_the_same_answer_though_a_worker_dies():
    B = np.random.default_rng(21).standard_normal((90, 130))
    alone = support_margin(B, size=5)
    for attempt in range(2):  # a cluster that does not come up, or goes away whole, says nothing about the answer
        try:
            together, killed = _solve_while_a_worker_dies(B)
            break
        except (OSError, TimeoutError, CancelledError):
            if attempt:
                raise
    assert killed
    assert (together.value, together.lower, together.upper, together.support) == (
        alone.value,
        alone.lower,
        alone.upper,
        alone.support,
    )
