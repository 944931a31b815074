"""Independent tasks, here or through joblib, with a clock that compiled kernels hear.

A task is a function of plain arguments and of the keyword `stop`, an array whose first entry ends
it when set. Which tasks there are never depends on how many processes run them, so every n_jobs
gives the same answer.

On a Dask cluster that joblib was pointed at, tasks are handed to its client and taken back in
order. Joblib's own Dask backend never hears of a task that was lost with its worker, and waits for
it without end; the client hears of it. A task may run twice (its worker died, another took over),
so nothing that may happen only once may be one. A task that keeps killing its workers is
`LostWorkError`, as is a cluster without any worker for `patience` seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

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
    """How many run at once: None for this thread alone. Where joblib was never imported, nobody can
    have pointed it anywhere: then it isn't imported either (43 ms).
    """
    if n_jobs in (None, 1) and "joblib" not in sys.modules:
        return None
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
    """The results in the order of the jobs.

    `futile(result)` says that the jobs after it need not run (here, not elsewhere).
    """
    count = processes(n_jobs)
    if count is None or len(jobs) <= 1:
        return _run_here(task, jobs, work, progress, futile)
    import joblib

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
    """One after the other; long work in a thread of its own (the kernels release the GIL), so that
    Ctrl-C is heard at once.
    """
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


PATIENCE = 120.0
"""Seconds that a cluster may be without any worker while work is waiting."""
LOOK = 2.0
"""Seconds between two looks at whether there are workers."""
LARGE = 2**18
"""Bytes from which an argument of several tasks is sent to every worker once, instead of with each
task.
"""
AHEAD = 4
"""Tasks that are under way or waiting for each worker: the rest are made when they are wanted."""

Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""As `joblib.delayed` makes it."""


class LostWorkError(RuntimeError):
    """A task that no worker could finish."""


def active_client() -> Any | None:
    """The client of the Dask cluster that `joblib.parallel_config` names; None without one."""
    from joblib.parallel import get_active_backend

    backend = get_active_backend()[0]
    return backend.client if "Dask" in type(backend).__name__ else None


def through_client(client: Any, tasks: Iterable[Task], *, patience: float = PATIENCE) -> Iterator[Any]:
    """The results in the order of the tasks; a fault in a task is raised as it is."""
    rest, waiting, sent = iter(tasks), deque[Any](), dict[int, tuple[Any, Any]]()
    try:
        while True:
            most = AHEAD * max(1, len(client.nthreads()))
            waiting.extend(_submitted(client, task, sent) for task in islice(rest, max(0, most - len(waiting))))
            if not waiting:
                return
            yield _result(client, waiting[0], patience)
            waiting.popleft()
    finally:
        if waiting:
            client.cancel(list(waiting))


def _submitted(client: Any, task: Task, sent: dict[int, tuple[Any, Any]]) -> Any:
    function, args, kwargs = task
    name = getattr(function, "__name__", "task")
    placed = [_placed(client, arg, sent) for arg in args]
    return client.submit(function, *placed, **kwargs, key=f"{name}-{uuid4().hex}", pure=False)


def _placed(client: Any, arg: Any, sent: dict[int, tuple[Any, Any]]) -> Any:
    """A large argument where all workers have a copy of it, so that none is lost with one of them;
    a small one as it is.
    """
    from dask.sizeof import sizeof

    if id(arg) in sent:
        return sent[id(arg)][1]
    if sizeof(arg) < LARGE:
        return arg
    try:
        there = client.scatter(arg, broadcast=True, hash=False)
    except TimeoutError:
        raise LostWorkError("the cluster has no worker; start some, and try again") from None
    sent[id(arg)] = arg, there  # the argument is held so that nothing else gets its identity
    return there


def _result(client: Any, future: Any, patience: float) -> Any:
    from concurrent.futures import CancelledError

    from distributed import wait
    from distributed.scheduler import KilledWorker

    alone_since: float | None = None
    while not future.done():
        try:
            wait(future, timeout=min(LOOK, patience))
        except TimeoutError:
            now = time.monotonic()
            alone_since = None if client.nthreads() else alone_since or now
            if alone_since is not None and now - alone_since >= patience:
                raise LostWorkError(
                    f"the cluster has had no worker for {patience:g} s; start some, and try again"
                ) from None
        except CancelledError:
            break
    try:
        return future.result()
    except KilledWorker:
        raise LostWorkError(
            "a piece of work killed every worker that took it (out of memory, or a crash); run it without the cluster,"
            " or look at the workers' logs"
        ) from None
    except CancelledError:
        raise LostWorkError("the cluster has gone while work was waiting; start it, and try again") from None
