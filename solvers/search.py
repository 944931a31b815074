"""One question, asked of the whole field: which supports can't be proven to have λ_min(G_SS) ≥ θ?

`Search` sends each part of the field (`solvers.parts`) to its kernel, and splits the roots into tasks that never depend
on how many processes run them, so that every n_jobs gives the same answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.gram import Field
from solvers.parts import Part, Support, parts_of

LIMIT = 4096  # supports kept per task before it stops to look at them
FIRST_LOOK = 16  # the same while looking for the minimum: the sooner θ falls, the less is left to search
TASKS = 32  # at most, per part of the field; how many depends on its size, never on the number of processes
ULP_ROOM = 2e-10  # θ = λ(1 − this): room for the proof below the incumbent, half of the gap that is left in λ


@dataclass(frozen=True)
class Found:
    """What one task saw: supports not proven at θ, the θ it ended with, and whether it finished its roots."""

    supports: tuple[Support, ...]
    theta: float
    complete: bool
    tested: int


class Search:
    """The threshold question for one field and support size; arrays are prepared once and used for every θ."""

    def __init__(self, field: Field, size: int) -> None:
        self.field = field
        self.size = min(size, field.n)
        self.parts = tuple(parts_of(field, self.size))

    def below(
        self,
        theta: float,
        *,
        limit: int = LIMIT,
        adapt: bool = False,
        n_jobs: int | None = None,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Found:
        """All supports (of full size) not proven to have λ_min ≥ θ.

        With `adapt`, a task that finds a really lower support lowers θ to it and goes on: for finding the minimum.
        """
        jobs = []
        for part in self.parts:
            order, centres = part.centres(theta)
            tasks = min(TASKS, centres, 1 + int(centres * part.weight // 20_000_000))
            for t in range(tasks):
                jobs.append((part, order, np.arange(t, centres, tasks), theta, limit, adapt, deadline))
        results = _run(jobs, n_jobs, progress, deadline)
        supports = sorted({s for found in results for s in found.supports})
        return Found(
            supports=tuple(supports),
            theta=min((found.theta for found in results), default=theta),
            complete=all(found.complete for found in results),
            tested=sum(found.tested for found in results),
        )

    def split(self, supports: Sequence[Support]) -> list[tuple[Part, list[Support]]]:
        """The supports by the part they lie in."""
        home = np.empty(self.field.n, np.int64)
        for number, part in enumerate(self.parts):
            home[part.nodes] = number
        result: list[tuple[Part, list[Support]]] = [(part, []) for part in self.parts]
        for support in supports:
            result[home[support[0]]][1].append(support)
        return [(part, members) for part, members in result if members]

    def lowest(self, supports: Sequence[Support], *, count: int = 16) -> list[Support]:
        """The few supports whose λ_min, in plain floating point, may be the smallest."""
        ranked = []
        for part, members in self.split(supports):
            ranked += list(zip(part.values(members).tolist(), members, strict=True))
        ranked.sort()
        scale = float(self.field.diagonal.max(initial=0.0))
        return [s for value, s in ranked[:count] if value <= ranked[0][0] * (1.0 + 1e-6) + 1e-12 * scale]

    def unproven(self, supports: Sequence[Support], theta: float) -> list[Support]:
        """Those that a Cholesky of the shrunk block does not prove to have λ_min ≥ θ."""
        result: list[Support] = []
        for part, members in self.split(supports):
            result += [s for s, sure in zip(members, part.proven(members, theta), strict=True) if not sure]
        return result


def gershgorin(search: Search) -> float:
    """The largest θ (by bisection) at which no node can be a centre: a rigorous bound that needs no search at all."""
    low, high = 0.0, float(search.field.diagonal.min())
    for _ in range(30):
        middle = 0.5 * (low + high)
        if all(part.centres(middle)[1] == 0 for part in search.parts):
            low = middle
        else:
            high = middle
    return low


def _task(
    part: Part,
    order: NDArray[np.int64],
    roots: NDArray[np.int64],
    theta: float,
    limit: int,
    adapt: bool,
    deadline: float | None,
    *,
    stop: NDArray[np.int64] | None = None,
) -> Found:
    stop = np.zeros(1, np.int64) if stop is None else stop
    timer = None
    if deadline is not None:
        timer = threading.Timer(max(deadline - time.time(), 0.0), stop.__setitem__, (0, 1))
        timer.daemon = True
        timer.start()
    kept: set[Support] = set()
    tested = 0
    room = min(FIRST_LOOK, limit) if adapt else limit
    try:
        while True:
            done, found = part.scan(theta, order, roots, stop, room)
            supports = _named(found)
            tested += done + len(supports)
            kept |= supports
            if done == len(roots):
                return Found(tuple(sorted(kept)), theta, True, tested)
            roots = roots[done:]
            candidates = sorted(kept)
            values = part.values(candidates) if candidates else np.array([theta])
            lower = adapt and part.noise < values.min() < theta * (1.0 - 1e-9)
            if stop[0] or not (lower or room < limit):
                return Found(tuple(candidates), theta, False, tested)
            if lower:
                theta = float(values.min()) * (1.0 - ULP_ROOM)
                kept = {s for s, sure in zip(candidates, part.proven(candidates, theta), strict=True) if not sure}
                kept.add(candidates[int(values.argmin())])  # the reason for the lower θ, though it is proven at it
            else:  # all of them near θ: look at more at a time
                room = min(8 * room, limit)
    finally:
        if timer is not None:
            timer.cancel()


def _named(rows: NDArray[np.int64]) -> set[Support]:
    """Rows of node names, padded with −1, as sorted tuples."""
    ordered = np.sort(rows, axis=1).tolist()
    return {tuple(row) if row[0] >= 0 else tuple(i for i in row if i >= 0) for row in ordered}


def _run(
    jobs: list[Any], n_jobs: int | None, progress: Callable[[float], None] | None, deadline: float | None
) -> list[Found]:
    """All tasks, here or through joblib (processes, or whatever backend `joblib.parallel_config` has set)."""
    import joblib

    backend, active_jobs = joblib.parallel.get_active_backend()
    elsewhere = type(backend).__name__ not in (
        "LokyBackend",
        "SequentialBackend",
        "ThreadingBackend",
        "MultiprocessingBackend",
    )
    if (n_jobs in (None, 1) and not elsewhere) or len(jobs) <= 1:
        return _run_here(jobs, progress)
    parallel = joblib.Parallel(n_jobs=active_jobs if n_jobs is None else n_jobs, return_as="generator", timeout=None)
    results = []
    for found in parallel(joblib.delayed(_task)(*job) for job in jobs):
        results.append(found)
        if progress is not None:
            progress(len(results) / len(jobs))
    return results


def _run_here(jobs: list[Any], progress: Callable[[float], None] | None) -> list[Found]:
    """One after the other in a thread of our own (the kernels release the GIL), so that Ctrl-C is heard at once."""
    work = sum(len(job[2]) * len(job[1]) for job in jobs)
    stop = np.zeros(1, np.int64)
    results: list[Found] = []

    def run() -> None:
        for job in jobs:
            results.append(_task(*job, stop=stop))
            if progress is not None:
                progress(len(results) / len(jobs))
            if not results[-1].complete and not job[5]:
                return  # too many, or out of time: the rest would not change that

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
