"""Work shared out over processes or machines by joblib, in order; a piece of work that keeps
killing its worker is an error, not a wait.

On a Dask cluster it goes through the cluster's client (`solvers.tasks`), which hears of lost
work. Pieces may run twice there: nothing that costs money may be one. What all pieces need is sent
once to each worker, also to one that comes later: data that is scattered would be lost with the
worker that holds it, and what travels with every piece is sent as often as there are pieces.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from rrf_design.errors import RetryLater
from solvers.tasks import PATIENCE, LostWorkError, active_client, through_client

_SUPPLIES: dict[str, Any] = {}
"""What this process was sent, by name."""


@dataclass(frozen=True, slots=True)
class _Supply:
    """What all pieces of work need: small to send on a cluster, because the value is there
    already.
    """

    name: str
    value: Any = None

    def get(self) -> Any:
        """The value, in whatever process this is."""
        return _SUPPLIES[self.name] if self.value is None else self.value


@contextlib.contextmanager
def _supplied(value: Any) -> Iterator[_Supply]:
    """Send a value to every worker of the cluster, once; without a cluster it travels with the
    work.
    """
    name = uuid.uuid4().hex
    client = active_client()
    if client is None:
        yield _Supply(name, value)
        return
    _register(client, _plugin(name, value), name)
    try:
        yield _Supply(name)
    finally:
        with contextlib.suppress(Exception):  # a cluster that has gone keeps nothing
            client.unregister_worker_plugin(name)


def _register(client: Any, plugin: Any, name: str) -> None:
    """A worker that goes away just now is no reason to give up: the others, and those that come
    later, are told.
    """
    for left in reversed(range(5)):
        try:
            client.register_plugin(plugin, name=name)
        except (OSError, RuntimeError) as error:  # as Dask calls a connection, or all of them, that was closed
            if not left or not _answers(client):
                raise RetryLater(f"the cluster's workers can't be reached ({error}); try again") from None
        else:
            return


def _plugin(name: str, value: Any) -> Any:
    """Has each worker, also one that starts later, keep the value while it is needed."""
    from distributed import WorkerPlugin

    class Keeper(WorkerPlugin):  # type: ignore[misc, unused-ignore]
        def setup(self, worker: Any) -> None:
            _keep(name, value)

        def teardown(self, worker: Any) -> None:
            _forget(name)

    return Keeper()


def _keep(name: str, value: Any) -> None:
    """In the process that is to have it: here it is."""
    _SUPPLIES[name] = value


def _forget(name: str) -> None:
    """Nobody needs it any more."""
    _SUPPLIES.pop(name, None)


def _is_serial(n_jobs: int | None) -> bool:
    """Whether work stays in this process: nobody asked for more, here or by
    `joblib.parallel_config`.
    """
    from joblib import effective_n_jobs

    return active_client() is None and effective_n_jobs(n_jobs) == 1


def shared_out(tasks: Iterable[Any], *, n_jobs: int | None, patience: float = PATIENCE) -> Iterator[Any]:
    """Results of joblib tasks in their order; RetryLater when a cluster can't finish one, or has no
    worker for so many seconds.
    """
    from joblib import Parallel

    client = active_client()
    if client is None:
        yield from Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        return
    with heard_of():
        yield from through_client(client, tasks, patience=patience)


def in_chunks(
    build: Callable[..., Any], settings: tuple[Any, ...], chunks: Iterable[Any], *, n_jobs: int | None
) -> Iterator[Any]:
    """What an engine makes of each chunk, in order: `build(*settings)(chunk)`.

    There is one engine here, or one in each thread of each process: what it remembers is worked out
    once, not once a chunk.
    """
    if _is_serial(n_jobs):
        yield from map(build(*settings), chunks)
        return
    from joblib import delayed

    with _supplied((build, settings)) as supply:
        yield from shared_out((delayed(_elsewhere)(supply, chunk) for chunk in chunks), n_jobs=n_jobs)


_LATEST = threading.local()
"""The latest engine of this thread, and the name of what it was made from."""


def _elsewhere(supply: _Supply, chunk: Any) -> Any:
    if getattr(_LATEST, "name", None) != supply.name:
        build, settings = supply.get()
        _LATEST.engine, _LATEST.name = build(*settings), supply.name
    return _LATEST.engine(chunk)


@contextlib.contextmanager
def heard_of(client: Any = None) -> Iterator[None]:
    """Work that a cluster lost, whoever gave it away, as an error of ours; so is whatever comes of
    a scheduler that has gone away from this `client`.
    """
    try:
        yield
    except LostWorkError as error:
        raise RetryLater(str(error)) from None
    except (OSError, RuntimeError, CancelledError) as error:
        if client is None or not (_closed(error) or client.status != "running" or not _answers(client)):
            raise
        raise RetryLater(GONE) from None


GONE = "the cluster's scheduler has gone away; start it, and run this again (with --resume, where the verb has it)"


def _closed(error: BaseException) -> bool:
    from distributed.comm import CommClosedError

    return isinstance(error, CommClosedError)


def _answers(client: Any) -> bool:
    """Whether the client still has a connection to its scheduler."""
    comm = getattr(client, "scheduler_comm", None)
    return comm is not None and not comm.comm.closed()
