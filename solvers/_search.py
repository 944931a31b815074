"""One question, asked of the whole field: which supports can't be proven to have λ_min(G_SS) ≥ θ?

`Search` sends each part of the field (`solvers._components`) to its kernel, and splits the roots
into tasks that never depend on how many processes run them, so that every n_jobs gives the same
answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers._components import Part, Support, delivered_parts, parts_of
from solvers._gram import Field
from solvers.result import ULP_ROOM, LowerFrom
from solvers.tasks import Stop, processes, run_tasks, stopping_at

LIMIT = 4096  # supports kept per task before it stops to look at them
FIRST_LOOK = 16  # the same while looking for the minimum: the sooner θ falls, the less is left to search
TASKS = 32  # at most, per part of the field; how many depends on its size, never on the number of processes
LARGEST_WHOLE = 1_000  # coordinates of a component whose least eigenvalue is bounded as it stands


@dataclass(frozen=True)
class Found:
    """What one task saw: supports not proven at θ, the θ it ended with, and whether it finished its
    roots.
    """

    supports: tuple[Support, ...]
    theta: float
    complete: bool
    tested: int


class Search:
    """The threshold question for one field and support size; arrays are prepared once and used for
    every θ.
    """

    def __init__(self, field: Field, size: int, *, wanted: NDArray[np.float64] | None = None) -> None:
        self.field = field
        self.size = min(size, field.n)
        self.wanted = wanted
        found = parts_of(field, self.size) if wanted is None else delivered_parts(field, self.size, wanted)
        self.parts = tuple(found)

    def below(
        self,
        theta: float,
        *,
        limit: int = LIMIT,
        adapt: bool = False,
        sample: bool = False,
        n_jobs: int | None = None,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Found:
        """All supports (of full size) not proven to have λ_min ≥ θ.

        With `adapt`, a task that finds a really lower support lowers θ to it and goes on: for
        finding the minimum. A `sample` looks at one root in TASKS only.
        """
        jobs = []
        for part in self.parts:
            order, centres = part.centres(theta)
            tasks = min(TASKS, centres, 1 + int(centres * part.weight // 20_000_000))
            if sample:
                jobs.append((part, order, np.arange(TASKS // 2, centres, TASKS), theta, limit, adapt, deadline))
                continue
            for t in range(tasks):
                jobs.append((part, order, np.arange(t, centres, tasks), theta, limit, adapt, deadline))
        results = run_tasks(
            _task,
            jobs,
            n_jobs=n_jobs,
            work=sum(len(job[2]) * len(job[1]) for job in jobs),
            progress=progress,
            futile=lambda found: (
                not (found.complete or adapt)
            ),  # too many, or out of time: the rest would not change that
        )
        supports = sorted({s for found in results for s in found.supports})
        return Found(
            supports=tuple(supports),
            theta=min((found.theta for found in results), default=theta),
            complete=all(found.complete for found in results),
            tested=sum(found.tested for found in results),
        )

    def foretell(self, theta: float, *, deadline: float, n_jobs: int | None = None) -> tuple[Found, bool]:
        """One root in TASKS, and whether by its time the pass at θ will end before the deadline."""
        began = time.time()
        found = self.below(theta, adapt=True, deadline=began + 0.2 * (deadline - began), sample=True)
        ahead = (time.time() - began) * TASKS / abs(processes(n_jobs) or 1)
        return found, found.complete and time.time() + ahead <= deadline

    @property
    def thin(self) -> bool:
        """Whether all of the field is sparse: there a lower threshold is proven sooner, elsewhere
        it is not.
        """
        return all(part.kind.startswith("sparse") for part in self.parts)

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
        if len(supports) < 2:
            return list(supports)
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


def without_search(search: Search) -> tuple[float, LowerFrom]:
    """The better of the two bounds on λ that need no search, and what proved it."""
    couplings, whole = _gershgorin(search), _whole_field(search)
    if max(couplings, whole) <= 0.0:
        return 0.0, LowerFrom.NOTHING
    return (whole, LowerFrom.MATRIX) if whole >= couplings else (couplings, LowerFrom.COUPLINGS)


def _gershgorin(search: Search) -> float:
    """The largest θ (by bisection) at which no node can be a centre: a rigorous bound that needs no
    search at all.
    """
    low, high = 0.0, float(search.field.diagonal.min())
    for _ in range(30):
        middle = 0.5 * (low + high)
        if all(part.central(middle)[1] == 0 for part in search.parts):
            low = middle
        else:
            high = middle
    return low


def _whole_field(search: Search) -> float:
    """λ_min of all of G, from below: σ_min(B) bounds every margin.

    0 where a component is too large, or singular.

    Where only some coordinates are wanted, θ is on those: the least θ with G − θ·diag(wanted) ⪰ 0,
    by the Schur complement onto them.
    """
    field = search.field
    if field.extreme:
        return 0.0
    least = np.inf
    for nodes in field.components:
        columns = field.columns_of(nodes)
        if len(columns) > LARGEST_WHOLE:
            return 0.0
        gram = field.dense_gram if len(columns) == field.offsets[-1] else field.gram[columns][:, columns].toarray()
        gram = (gram + gram.T) * 0.5
        shrink = field.shrink(len(nodes))
        room = 2.0 * (1.0 - shrink) * float(gram.diagonal().max())  # what the proof below will cost
        wanted = np.ones(len(columns)) if search.wanted is None else search.wanted[columns]
        if not wanted.any():
            continue
        least = min(least, _least_onto(gram, wanted > 0.0) * (1.0 - 1e-9) - room)
        if least <= 0.0:
            return 0.0
        np.fill_diagonal(gram, gram.diagonal() * shrink - least * wanted)
        try:  # runs through: positive definite in exact arithmetic, the shrunk diagonal pays for all rounding
            np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            return 0.0
    return least


def _least_onto(gram: NDArray[np.float64], wanted: NDArray[np.bool_]) -> float:
    """λ_min of the Schur complement onto what is wanted, in plain floating point; 0 where the rest
    is singular.
    """
    if wanted.all():
        return float(np.linalg.eigvalsh(gram)[0])
    rest = ~wanted
    try:
        taken = np.linalg.solve(gram[np.ix_(rest, rest)], gram[np.ix_(rest, wanted)])
    except np.linalg.LinAlgError:
        return 0.0
    left = gram[np.ix_(wanted, wanted)] - gram[np.ix_(wanted, rest)] @ taken
    return float(np.linalg.eigvalsh((left + left.T) * 0.5)[0])


def _task(
    part: Part,
    order: NDArray[np.int64],
    roots: NDArray[np.int64],
    theta: float,
    limit: int,
    adapt: bool,
    deadline: float | None,
    *,
    stop: Stop | None = None,
) -> Found:
    kept: set[Support] = set()
    tested = 0
    room = min(FIRST_LOOK, limit) if adapt else limit
    with stopping_at(deadline, stop) as flag:
        while True:
            done, found = part.scan(theta, order, roots, flag, room)
            supports = _named(found)
            tested += done + len(supports)
            kept |= supports
            if done == len(roots):
                return Found(tuple(sorted(kept)), theta, True, tested)
            roots = roots[done:]
            candidates = sorted(kept)
            values = part.values(candidates) if candidates else np.array([theta])
            lower = adapt and part.noise < values.min() < theta * (1.0 - 1e-9)
            if flag[0] or not (lower or room < limit):
                return Found(tuple(candidates), theta, False, tested)
            if lower:
                theta = float(values.min()) * (1.0 - ULP_ROOM)
                kept = {s for s, sure in zip(candidates, part.proven(candidates, theta), strict=True) if not sure}
                kept.add(candidates[int(values.argmin())])  # the reason for the lower θ, though it is proven at it
            else:  # all of them near θ: look at more at a time
                room = min(8 * room, limit)


def _named(rows: NDArray[np.int64]) -> set[Support]:
    """Rows of node names, padded with −1, as sorted tuples."""
    ordered = np.sort(rows, axis=1).tolist()
    return {tuple(row) if row[0] >= 0 else tuple(i for i in row if i >= 0) for row in ordered}
