"""Thresholds for supports of more than six nodes, proved root by root.

A proof of λ_min(G_SS) ≥ θ for all S is a list of roots in a fixed order, each of them done without
those before it. A `Front` keeps, for every root, the largest θ at which it was done: a proof at θ
is one at every lower θ, so nothing is ever done twice, the floor (the least of them) only rises,
and tasks share nothing but θ. Sets that are met and can't be proven are handed back.

Under a time limit two tasks in `TASKS` are run first and tell how long all of them will take. When
they do not fit, a sparse front looks for the largest fraction of θ that does; in a dense one a
lower θ saves nothing, so it goes on as far as it gets.

Dense parts are proved by core numbers (`kernels.core_numbers`), sparse ones by the completion bound
(`kernels.growth`, `kernels.pieces`), below.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._search import TASKS, Part, Support
from solvers.result import ULP_ROOM
from solvers.tasks import Stop, processes, run_tasks, stopping_at

SAMPLES = ((4, 20), (5, 21), (6, 22), (2, 18), (3, 19), (7, 23))
"""Tasks that foretell the others: the first roots take longest, so one early and one late, and
others for every fraction tried, since a root that is done at a higher θ tells nothing of a lower
one.
"""
SHARES = 8  # tasks of a dense root: its children in turn

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Looked:
    """What one task saw: how many of its roots are done, a set it could not prove, and the size of
    its tree.
    """

    done: int
    found: Support
    visited: int


class Front(ABC):
    """The roots of one part with the largest θ that each is proven at.

    `run` may be asked for any θ, in any order.

    `sets_met` are sets that were not proven; the caller lowers θ below them (or gives up) and runs
    again.
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
        """Prove every root at θ, under a time limit at what a sample says will fit; sets that could
        not be proven.
        """
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
        """Prove the roots of these tasks at θ; what is found not to be provable, in the names of
        the field.
        """
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
        """(function, its arguments per task, the roots of each task, a set that is harmful at
        once).
        """

    def _pending(self, theta: float, tasks: Sequence[int]) -> list[NDArray[np.int64]]:
        """The roots of each task that are not proven at θ yet."""
        assert self.proven is not None
        roots = np.arange(len(self.proven))
        shares = (roots[t::TASKS] for t in tasks)
        return [share for share in (roots[self.proven[roots] < theta] for roots in shares) if len(share)]

    def _named(self, places: Support) -> Support:
        return tuple(sorted(int(self.part.nodes[p]) for p in places))


class Peeling(Front):
    """A dense part: see `solvers.kernels.core_numbers`.

    A root counts SHARES times, once for each share of its children.
    """

    name = "peeling"

    def __init__(self, part: Part, n_jobs: int | None = None) -> None:
        super().__init__(part, n_jobs)
        self._order = np.zeros(0, np.int64)
        self._children = np.zeros((0, 0), np.int64)

    def _jobs(self, theta: float, tasks: Sequence[int], deadline: float | None) -> Any:
        from solvers.kernels.core_numbers import child_order, peeling_order

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
    from solvers.kernels.core_numbers import peel

    with stopping_at(deadline, stop) as flag:
        done, found, visited = peel(matrix, order, children, items, SHARES, size, flag)
    return Looked(done, tuple(found.tolist()), visited)


SMALL = 6  # nodes: supports up to this size are done sooner by the kernels of `solvers._search`
PIECES = 400_000  # connected sets gone through for a table: some two seconds
FEW, FEW_PER_NODE = 30_000_000, 1_000  # connected supports that are sooner gone through one by one, in seconds
SAMPLED = 64
WORTH_SHARING = 200_000  # tree nodes of the next smaller size: fewer take less time than handing out the tables
KICKS = 8  # of the iterated search from a set that was met
LARGEST_FRONTIER = 1_000  # nodes beside the chosen ones: K is a matrix of that order per level
FRACTIONS = (0.9, 0.75, 0.5, 0.25, 0.1)  # of θ, tried in turn on a sample when all of it does not fit


def large_fronts(parts: Sequence[Part], n_jobs: int | None = None, *, always: bool = False) -> tuple[Front, ...] | None:
    """A front for every part; None where some part can only, or all can sooner, be done by the
    kernels of `solvers._search`.

    `always`: also where there are few enough supports to go through them all.
    """
    if not always and all(part.kind == "sparse" and _few(part) for part in parts):
        return None
    fronts: list[Front] = []
    for part in parts:
        if part.size <= SMALL or part.kind not in ("dense", "sparse"):
            return None
        if part.kind == "dense":
            fronts.append(Peeling(part, n_jobs))
        elif int(np.diff(part.arrays[0]).max(initial=0)) * part.size <= LARGEST_FRONTIER:
            fronts.append(Growth(part, n_jobs))
        else:
            return None
    return tuple(fronts)


def _few(part: Part) -> bool:
    """Has a sparse part few connected supports?

    Counted from one node in SAMPLED, as far as it matters.
    """
    from solvers.kernels.pieces import count_sets

    few = FEW + FEW_PER_NODE * len(part.nodes)
    step = max(1, min(SAMPLED, len(part.nodes) // SAMPLED))
    return bool(count_sets(*part.arrays[:2], part.size, step, few // step) <= few // step)


@dataclass(frozen=True)
class PieceGraph:
    """What the fronts of all sizes of one sparse part share."""

    pointer: NDArray[np.int64]
    index: NDArray[np.int64]
    value: NDArray[np.float64]
    diagonal: NDArray[np.float64]  # of the shrunk G
    reverse: NDArray[np.int64]
    cycles: NDArray[np.int64]
    largest: int  # nodes of a piece up to which all of them are gone through
    room: (
        float  # what a proof at θ leaves of θ for the shrunk matrix itself, which the tables speak of, is θ minus this
    )

    @classmethod
    def of(cls, part: Part) -> PieceGraph:
        from solvers.kernels.pieces import affordable_pieces, reverse_edges, shortest_cycles

        pointer, index, value, diagonal = part.arrays[:4]
        return cls(
            pointer=pointer,
            index=index,
            value=value,
            diagonal=diagonal,
            reverse=reverse_edges(pointer, index),
            cycles=shortest_cycles(pointer, index, part.size),
            largest=affordable_pieces(pointer, index, max(part.size // 2 - 1, 1), PIECES),
            room=1.1 * part.shrunk * float(np.max(diagonal, initial=0.0)),
        )


class Growth(Front):
    """A sparse part: see `solvers.kernels.growth`.

    The bound for large pieces needs the least eigenvalues of all smaller sizes, so those are
    settled on the way, one after the other, each by a front of its own.
    """

    name = "completion"

    def __init__(self, part: Part, n_jobs: int | None = None, graph: PieceGraph | None = None) -> None:
        super().__init__(part, n_jobs)
        self._graph = PieceGraph.of(part) if graph is None else graph
        plain = replace(part, size=part.size - 1, wanted=None)  # what bounds G bounds it with θ on some nodes only
        self.smaller = Growth(plain, n_jobs, self._graph) if part.size > 1 else None
        self._order = np.zeros(0, np.int64)
        self._settled = False
        self._best: Support = ()  # of this size, in places of the part
        self._kept: tuple[float, Any] | None = None  # θ and the tables of a sample, for the run that follows it

    @property
    def fractions(self) -> tuple[float, ...]:
        return FRACTIONS

    @property
    def total_visited(self) -> int:
        return self.visited + (0 if self.smaller is None else self.smaller.total_visited)

    @property
    def _worth_sharing(self) -> bool:
        return self.smaller is not None and self.smaller.visited > WORTH_SHARING

    @property
    def _work(self) -> float:
        return 0.0 if self.smaller is None else 10.0 * self.smaller.visited

    def _prepare(self, theta: float, deadline: float | None, *, fraction: float = 1.0) -> list[Support]:
        if self.smaller is None:
            return []
        if self.part.wanted is not None:  # a plain set harms nothing where only some values are delivered
            return self.smaller.settle(0.0, deadline)
        found = self.smaller.settle(theta, deadline)
        if found or fraction < 1.0 or self._best or not self.smaller._settled:
            return found
        support, value = self._start()
        return [support] if value < theta else []

    def settle(self, theta: float, deadline: float | None) -> list[Support]:
        """Prove the least eigenvalue of this size, all smaller ones first; sets below θ when they
        turn up.

        Also where only a fraction of θ is to be proven in the end: what is known of smaller sets
        then makes that cheap. Time may run out: then `_settled` stays False, and the next call goes
        on with the roots that are left.
        """
        found = [] if self.smaller is None else self.smaller.settle(theta, deadline)
        if found or self._settled or (self.smaller is not None and not self.smaller._settled):
            return found
        support, value = self._start()
        for slack in (ULP_ROOM, 1e-6, 1e-3, 0.1):
            while True:
                if value < theta:
                    return [support]
                level = value * (1.0 - slack)
                found = self._run(level, deadline=deadline)
                if not found:
                    self._settled = self.floor >= level
                    return []
                values = self.part.values(found)
                if values.min() >= level:
                    break  # floating point can't tell: a little room more
                support, value = self._improved(found)
        self._settled = True  # with whatever floor: pieces of this size are then never cut off
        return []

    def _jobs(self, theta: float, tasks: Sequence[int], deadline: float | None) -> Any:
        if self.smaller is not None and not self.smaller._settled:
            return _grow, [], [], ()
        if self.proven is None:
            self.proven = np.zeros(
                len(self._graph.diagonal) if self.part.wanted is None else int(self.part.met().sum())
            )
        places = self._pending(theta, tasks)
        if not places:
            return _grow, [], [], ()
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == theta:
            shared = kept[1]
        else:
            shared, found = self._shared(theta, deadline)
            if shared is None:
                return _grow, [], [], found
        if len(tasks) < TASKS:
            self._kept = (theta, shared)
        return _grow, [(shared, self._order[roots], deadline) for roots in places], places, ()

    def _shared(self, theta: float, deadline: float | None) -> tuple[Any, Support]:
        """What all tasks at θ read; None with a harmful set, or when time ran out."""
        from solvers.kernels.pieces import extend_by_trees, piece_tables

        graph, size = self._graph, self.part.size
        diagonal = self.part.minus(theta)
        edges = (graph.pointer, graph.index, graph.value, diagonal)
        largest = max(min(graph.largest, size // 2 - 1), 1)
        with stopping_at(deadline) as flag:
            single, several, harmful = piece_tables(*edges, graph.reverse, largest, flag)
            if flag[0] or len(harmful):
                return None, tuple(harmful.tolist())
        floors = self._floors() - graph.room - theta
        single = extend_by_trees(*edges, single, graph.cycles, floors)
        if not len(self._order):  # the weakest first; any order will do at any θ
            score = np.full(len(diagonal), np.inf)
            np.minimum.at(score, graph.index, single[:, min(largest, size - 1)])
            self._order = np.argsort(score, kind="stable")
            if self.part.wanted is not None:  # every set in question holds one of these: they come first
                self._order = self._order[np.argsort(~self.part.met()[self._order], kind="stable")]
        rank = np.empty(len(diagonal), np.int64)
        rank[self._order] = np.arange(len(diagonal))
        goal = np.minimum(self.part.arrays[4], size)
        tables = (single, _by_gap(several, largest), floors)
        return (graph.pointer, graph.index, graph.value, diagonal, rank, goal, tables), ()

    def _floors(self) -> NDArray[np.float64]:
        """(size,): every set of b nodes has at least this least eigenvalue."""
        if self.smaller is None:
            return np.full(1, -np.inf)
        return np.append(self.smaller._floors(), self.smaller.floor)

    def _start(self) -> tuple[Support, float]:
        """A good support of this size: from where stars and the tables of the next smaller size
        look weakest, and from its best set.
        """
        from solvers.kernels.local import local_search, star_scores

        graph, size = self._graph, self.part.size
        n = len(graph.diagonal)
        nodes = np.arange(n)
        edges = (graph.pointer, graph.index, graph.value)
        scores = star_scores(*edges, nodes, np.ones(n, np.int64), graph.diagonal, size - 1)
        count = min(max(16, n // 50), 200)
        starts = np.argsort(scores, kind="stable")[:count]
        if self.smaller is not None:
            starts = np.unique(np.concatenate([starts, self.smaller._order[: 5 * count]]))
        _, found = local_search(*edges, np.arange(n + 1), nodes, graph.diagonal, starts, size, 8)
        places = [tuple(int(i) for i in found if i >= 0)]
        if self.smaller is not None and self.smaller._best:
            places.append(self.smaller._best)
        return self._improved([self._named(p) for p in places])

    def _improved(self, supports: Sequence[Support]) -> tuple[Support, float]:
        """The best set that swaps lead to from these, with its least eigenvalue."""
        from solvers.kernels.local import fill_up, iterated_search

        graph, size = self._graph, self.part.size
        n = len(graph.diagonal)
        where = (graph.pointer, graph.index, graph.value, np.arange(n + 1), np.arange(n), graph.diagonal)
        starts = np.full((len(supports), size), -1, np.int64)
        for row, support in zip(starts, supports, strict=True):
            row[: len(support)] = np.searchsorted(self.part.nodes, support)
            fill_up(*where, row)
        chances = np.random.default_rng(size).random((len(starts), KICKS, 6))
        _, found = iterated_search(*where, starts, chances, np.zeros(1, np.int64))
        self._best = tuple(int(i) for i in found if i >= 0)
        candidates = [*supports, self._named(self._best)]
        values = self.part.values(candidates)
        place = int(values.argmin())
        return candidates[place], float(values[place])


def _by_gap(several: NDArray[np.float64], largest: int) -> NDArray[np.float64]:
    """[e, g, m]: the least over pieces with 2 to m attachments and at most g nodes besides, up to
    `largest` nodes in all.
    """
    from solvers.kernels.pieces import MOST

    result = np.full((len(several), largest, largest + 1), np.inf)
    for gap in range(largest):
        for m in range(2, largest - gap + 1):
            result[:, gap, m] = np.minimum(result[:, gap, m - 1], several[:, gap + m, min(m, MOST + 1)])
    return result


def _grow(
    shared: tuple[Any, ...], roots: NDArray[np.int64], deadline: float | None, *, stop: Stop | None = None
) -> Looked:
    from solvers.kernels.growth import grow

    *arrays, tables = shared
    with stopping_at(deadline, stop) as flag:
        done, found, visited = grow(*arrays, roots, tables, flag)
    return Looked(done, tuple(found.tolist()), visited)
