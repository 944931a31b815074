"""Independent tasks, here or through joblib, with a clock that compiled kernels hear.

A task is a function of plain arguments and of the keyword `stop`, an array whose first entry ends it when set. Which tasks
there are never depends on how many processes run them, so every n_jobs gives the same answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.cluster import active_client, through_client

Stop = NDArray[np.int64]


@contextmanager
def stopping_at(deadline: float | None, stop: Stop | None = None) -> Iterator[Stop]:
    """A stop flag that is set when the deadline passes."""
    flag = np.zeros(1, np.int64) if stop is None else stop
    timer = None
    if deadline is not None:
        timer = threading.Timer(max(deadline - time.time(), 0.0), flag.__setitem__, (0, 1))
        timer.daemon = True
        timer.start()
    try:
        yield flag
    finally:
        if timer is not None:
            timer.cancel()


def processes(n_jobs: int | None) -> int | None:
    """How many run at once: None for this thread alone."""
    import joblib

    backend, active = joblib.parallel.get_active_backend()
    here = ("LokyBackend", "SequentialBackend", "ThreadingBackend", "MultiprocessingBackend")
    if n_jobs in (None, 1) and type(backend).__name__ in here:
        return None
    return active if n_jobs is None else n_jobs


def run_tasks(
    task: Callable[..., Any],
    jobs: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    work: float,
    progress: Callable[[float], None] | None = None,
    futile: Callable[[Any], bool] | None = None,
) -> list[Any]:
    """The results in the order of the jobs. `futile(result)` says that the jobs after it need not run (here, not elsewhere)."""
    import joblib

    count = processes(n_jobs)
    if count is None or len(jobs) <= 1:
        return _run_here(task, jobs, work, progress, futile)
    tasks, client = (joblib.delayed(task)(*job) for job in jobs), active_client()
    done = (
        joblib.Parallel(n_jobs=count, return_as="generator")(tasks) if client is None else through_client(client, tasks)
    )
    results = []
    for result in done:
        results.append(result)
        if progress is not None:
            progress(len(results) / len(jobs))
    return results


def _run_here(
    task: Callable[..., Any],
    jobs: Sequence[tuple[Any, ...]],
    work: float,
    progress: Callable[[float], None] | None,
    futile: Callable[[Any], bool] | None,
) -> list[Any]:
    """One after the other; long work in a thread of its own (the kernels release the GIL), so that Ctrl-C is heard at once."""
    stop = np.zeros(1, np.int64)
    results: list[Any] = []

    def run() -> None:
        for job in jobs:
            results.append(task(*job, stop=stop))
            if progress is not None:
                progress(len(results) / len(jobs))
            if futile is not None and futile(results[-1]):
                return

    if work < 200_000:
        run()
        return results
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            run()
        except BaseException as error:
            failure.append(error)

    worker = threading.Thread(target=guarded, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.2)
    except KeyboardInterrupt:
        stop[0] = 1
        worker.join()
        raise
    if failure:
        raise failure[0]
    return results
