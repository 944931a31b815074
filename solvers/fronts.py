"""Thresholds for large supports, proved root by root; here for dense parts, in `solvers.large` for sparse ones too.

A proof of λ_min(G_SS) ≥ θ for all S is a list of roots in a fixed order, each of them done without those before it. A `Front`
keeps, for every root, the largest θ at which it was done: a proof at θ is one at every lower θ, so nothing is ever done
twice, the floor (the least of them) only rises, and tasks share nothing but θ. Sets that are met and can't be proven are handed back.

Under a time limit two tasks in `TASKS` are run first and tell how long all of them will take. When they do not fit, a sparse
front looks for the largest fraction of θ that does; in a dense one a lower θ saves nothing, so it goes on as far as it gets.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.parts import Part, Support
from solvers.search import TASKS
from solvers.tasks import Stop, processes, run_tasks, stopping_at

SAMPLES = ((4, 20), (5, 21), (6, 22), (2, 18), (3, 19), (7, 23))
"""Tasks that foretell the others: the first roots take longest, so one early and one late, and others for every fraction tried, since a root
that is done at a higher θ tells nothing of a lower one."""
SHARES = 8  # tasks of a dense root: its children in turn

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Looked:
    """What one task saw: how many of its roots are done, a set it could not prove, and the size of its tree."""

    done: int
    found: Support
    visited: int


class Front(ABC):
    """The roots of one part with the largest θ that each is proven at. `run` may be asked for any θ, in any order.

    `sets_met` are sets that were not proven; the caller lowers θ below them (or gives up) and runs again.
    """

    name: str  # of the method

    def __init__(self, part: Part, n_jobs: int | None = None) -> None:
        self.part = part
        self.n_jobs = n_jobs
        self.proven: NDArray[np.float64] | None = None
        self.visited = 0
        self._fits = False
        self._spent = 0.0  # seconds of the last tasks, without what they share

    @property
    def floor(self) -> float:
        """Every support of this part has λ_min(G_SS) of at least this."""
        if self.proven is None:
            return 0.0
        return float(self.proven.min(initial=np.inf))

    def run(self, theta: float, *, deadline: float | None = None, progress: Progress | None = None) -> list[Support]:
        """Prove every root at θ, under a time limit at what a sample says will fit; sets that could not be proven."""
        if deadline is None or self._fits:
            found = self._prepare(theta, deadline)
            return found or self._run(theta, deadline=deadline, progress=progress)
        for turn, fraction in enumerate((1.0, *self.fractions)):
            half = 0.5 * (time.time() + deadline)
            found, fits = self._prepare(fraction * theta, half, fraction=fraction), False
            if not found:
                found, fits = self._sample(fraction * theta, deadline, SAMPLES[turn % len(SAMPLES)])
                self._fits = fits and fraction == 1.0
            if not found and (fits or not self.fractions):
                found = self._run(fraction * theta, deadline=deadline, progress=progress)
                if (
                    not found and self.floor >= fraction * theta
                ):  # what time is left goes to the rest, from where it stands
                    return self._prepare(theta, deadline) or self._run(theta, deadline=deadline, progress=progress)
            if found or time.time() > deadline:
                return found
        return []

    def _run(
        self,
        theta: float,
        *,
        deadline: float | None,
        tasks: Sequence[int] = range(TASKS),
        progress: Progress | None = None,
    ) -> list[Support]:
        """Prove the roots of these tasks at θ; what is found not to be provable, in the names of the field."""
        task, jobs, places, found = self._jobs(theta, tasks, deadline)
        if found or not jobs:
            return [self._named(found)] if found else []
        assert self.proven is not None
        began = time.time()
        n_jobs = self.n_jobs if self._worth_sharing else None
        results = run_tasks(task, jobs, n_jobs=n_jobs, work=self._work, progress=progress)
        self._spent = time.time() - began
        sets = set()
        for roots, looked in zip(places, results, strict=True):
            self.proven[roots[: looked.done]] = np.maximum(self.proven[roots[: looked.done]], theta)
            self.visited += looked.visited
            if looked.found:
                sets.add(self._named(looked.found))
        return sorted(sets)

    @property
    def _worth_sharing(self) -> bool:
        """Is there enough to do for several processes? The answer is the same either way."""
        return True

    @property
    def _work(self) -> float:
        """Roughly, steps: small fields are not worth a thread."""
        return 0.0 if len(self.part.nodes) < 20 else np.inf

    def _sample(self, theta: float, deadline: float, tasks: tuple[int, ...]) -> tuple[list[Support], bool]:
        """Run these few tasks (their roots are done then), and say whether the others will fit."""
        began = time.time()
        if began >= deadline:
            return [], False
        self._spent = 0.0
        found = self._run(theta, deadline=0.5 * (began + deadline), tasks=tasks)
        if found:
            return found, False
        if self.proven is None or any((self.proven[t::TASKS] < theta).any() for t in tasks):
            return [], False
        together = abs(processes(self.n_jobs) or 1)
        ahead = self._spent * min(together, len(tasks)) * (TASKS / len(tasks) - 1.0) / together
        return [], time.time() + ahead <= deadline

    @property
    def fractions(self) -> tuple[float, ...]:
        return ()

    @property
    def total_visited(self) -> int:
        return self.visited

    def _prepare(self, theta: float, deadline: float | None, *, fraction: float = 1.0) -> list[Support]:
        """Whatever must be known before the first root; sets below θ that turn up on the way."""
        return []

    @abstractmethod
    def _jobs(
        self, theta: float, tasks: Sequence[int], deadline: float | None
    ) -> tuple[Callable[..., Looked], list[tuple[Any, ...]], list[NDArray[np.int64]], Support]:
        """(function, its arguments per task, the roots of each task, a set that is harmful at once)."""

    def _pending(self, theta: float, tasks: Sequence[int]) -> list[NDArray[np.int64]]:
        """The roots of each task that are not proven at θ yet."""
        assert self.proven is not None
        roots = np.arange(len(self.proven))
        shares = (roots[t::TASKS] for t in tasks)
        return [share for share in (roots[self.proven[roots] < theta] for roots in shares) if len(share)]

    def _named(self, places: Support) -> Support:
        return tuple(sorted(int(self.part.nodes[p]) for p in places))


class Peeling(Front):
    """A dense part: see `solvers.kernels.peeling`. A root counts SHARES times, once for each share of its children."""

    name = "peeling"

    def __init__(self, part: Part, n_jobs: int | None = None) -> None:
        super().__init__(part, n_jobs)
        self._order = np.zeros(0, np.int64)
        self._children = np.zeros((0, 0), np.int64)

    def _jobs(self, theta: float, tasks: Sequence[int], deadline: float | None) -> Any:
        from solvers.kernels.peeling import child_order, peeling_order

        matrix = self.part.minus(theta)
        if self.proven is None:  # at the first θ, the highest: a centre at a lower one is a centre at this
            self._order = peeling_order(matrix, self.part.size)
            if self.part.wanted is not None:  # every set in question holds one of these
                met = np.flatnonzero(self.part.met())
                self._order = met if len(met) < len(self._order) else self._order
            self._children = child_order(matrix, self._order, self.part.size)
            self.proven = np.zeros(len(self._order) * SHARES)
        places = self._pending(theta, tasks)
        jobs = [(matrix, self._order, self._children, roots, self.part.size, deadline) for roots in places]
        return _peel, jobs, places, ()


def _peel(
    matrix: NDArray[np.float64],
    order: NDArray[np.int64],
    children: NDArray[np.int64],
    items: NDArray[np.int64],
    size: int,
    deadline: float | None,
    *,
    stop: Stop | None = None,
) -> Looked:
    from solvers.kernels.peeling import peel

    with stopping_at(deadline, stop) as flag:
        done, found, visited = peel(matrix, order, children, items, SHARES, size, flag)
    return Looked(done, tuple(found.tolist()), visited)
