"""The sandbox: a few zygotes side by side, programs handed to whichever is free, no state between
programs.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from rrf_design.errors import InputError, Refused
from rrf_design.responses.sandbox._judge import too_long
from rrf_design.responses.sandbox._worker import Worker
from rrf_design.responses.sandbox.records import Execution, Isolation, Level, Program, ProgramLimits


class Sandbox:
    """Runs programs under the strongest isolation the machine has, and refuses anything weaker than
    ``require``.

    Zygotes start with the first program. ``close`` (or leaving the ``with`` block) ends them; so
    does losing the object. ``run`` may be called from many threads. ``without`` switches layers
    off, for tests of the others.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        limits: ProgramLimits | None = None,
        require: Level | str = Level.SECCOMP,
        without: Sequence[str] = (),
    ) -> None:
        try:
            self.require = Level(require)
        except ValueError:
            known = ", ".join(level.value for level in Level)
            raise InputError(f"isolation {str(require)!r} is unknown; the levels are {known}") from None
        self.workers = workers or min(4, _cores())
        self.limits = limits or ProgramLimits()
        self._without = tuple(without)
        self._free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._started: list[Worker] = []
        self._lock = threading.Lock()

    @property
    def isolation(self) -> Isolation:
        """What holds the programs here; starts a worker to find out."""
        worker = self._take()
        self._free.put(worker)
        return worker.isolation

    def run(self, program: Program) -> Execution:
        worker = self._take()
        try:
            refused = too_long(program, worker.isolation)
            return refused if refused is not None else worker.run(program, self.limits)
        finally:
            self._free.put(worker)

    def run_many(self, programs: Sequence[Program]) -> tuple[Execution, ...]:
        """All programs, in order, as many at a time as there are workers."""
        with ThreadPoolExecutor(self.workers) as pool:
            return tuple(pool.map(self.run, programs))

    def close(self) -> None:
        with self._lock:
            for worker in self._started:
                worker.close()
            self._started.clear()
            self._free = queue.SimpleQueue()

    def _take(self) -> Worker:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            pass
        with self._lock:
            if len(self._started) < self.workers:
                worker = Worker(without=self._without)
                self._check(worker)
                self._started.append(worker)
                return worker
        return self._free.get()

    def _check(self, worker: Worker) -> None:
        found = worker.isolation
        if found.level.rank < self.require.rank:
            worker.close()
            raise Refused(
                f"isolation here is {found}, weaker than the required {self.require.value}; "
                f"nothing was run (require '{found.level.value}' to accept it)"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
