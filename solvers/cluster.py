"""Tasks on the Dask cluster that joblib was pointed at, handed to its client and taken back in order.

Joblib's own Dask backend never hears of a task that was lost with its worker, and waits for it without end; the client hears of it. A task may run
twice (its worker died, another took over), so nothing that may happen only once may be one. A task that keeps killing its workers is `LostWorkError`, as
is a cluster without any worker for `patience` seconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any
from uuid import uuid4

PATIENCE = 120.0
"""Seconds that a cluster may be without any worker while work is waiting."""
LOOK = 2.0
"""Seconds between two looks at whether there are workers."""
LARGE = 2**18
"""Bytes from which an argument of several tasks is sent to every worker once, instead of with each task."""
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
    """A large argument where all workers have a copy of it, so that none is lost with one of them; a small one as it is."""
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
            "a piece of work killed every worker that took it (out of memory, or a crash); run it without the cluster, or look at the workers' logs"
        ) from None
    except CancelledError:
        raise LostWorkError("the cluster has gone while work was waiting; start it, and try again") from None
