"""One question, asked of the whole field: which supports can't be proven to have λ_min(G_SS) ≥ θ?

`Search` takes the field apart as the kernels read it, its dense components one by one and
everything else together, sends each `Part` to its kernel (`solvers.kernels`), and splits the roots
into tasks that never depend on how many processes run them, so that every n_jobs gives the same
answer. A part holds plain arrays, so that processes share them by memory map.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._gram import Field, within
from solvers._hubs import HubSearch, hubs_of
from solvers.result import ULP_ROOM, LowerFrom
from solvers.tasks import Stop, processes, run_tasks, stopping_at

Support = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """Some components of the field, as one kernel reads them.

    Plain arrays, so that processes share them by memory map.
    """

    kind: str  # "dense", "block", "sparse", "sparse_block"
    nodes: NDArray[np.int64]  # (n,) names
    arrays: tuple[NDArray[Any], ...]
    size: int
    shrunk: float = 0.0  # what the diagonal was multiplied by is 1 minus this
    wanted: NDArray[np.float64] | None = None
    """(coordinates,) 1 at delivered coordinates, 0 elsewhere: the question is then whether G_SS −
    θ·diag(wanted) ⪰ 0. None: all.
    """

    @property
    def weight(self) -> float:
        """Roughly, elementary operations per root: for deciding how many tasks are worth their
        overhead.
        """
        n = len(self.nodes)
        if self.kind in ("dense", "block"):
            return float(self.arrays[0].size * n ** max(self.size - 4, 0) / math.factorial(max(self.size - 4, 1)))
        return (len(self.arrays[1]) / max(n, 1)) ** self.size * 10.0

    @property
    def noise(self) -> float:
        """An eigenvalue below this may be rounding of a Gram matrix, and is no reason to lower
        θ.
        """
        diagonal = self.arrays[0].diagonal() if self.kind in ("dense", "block") else self.arrays[-2]
        return 1e-9 * float(np.max(diagonal, initial=0.0))

    @property
    def dims(self) -> NDArray[np.int64]:
        """Coordinates of each node."""
        if self.kind == "block":
            return np.diff(self.arrays[1])
        return self.arrays[3] if self.kind == "sparse_block" else np.ones(len(self.nodes), np.int64)

    def centres(self, theta: float) -> tuple[NDArray[np.int64], int]:
        """Positions in search order, those that supports are grown from first, and how many those
        are.

        A harmful support holds a centre, and it meets the delivered nodes: whichever of the two are
        fewer will do.
        """
        order, count = self.central(theta)
        if self.wanted is None:
            return order, count
        met = self.met()
        if np.count_nonzero(met) > count:
            return order, count
        return np.concatenate([np.flatnonzero(met), np.flatnonzero(~met)]), int(np.count_nonzero(met))

    def central(self, theta: float) -> tuple[NDArray[np.int64], int]:
        """The same by couplings alone: with no centre, no support is harmful."""
        from solvers.kernels import block, dense, sparse_block
        from solvers.kernels import sparse as sparse_kernel
        from solvers.kernels.emit import CENTRE_SLACK

        if self.kind == "dense":
            return dense.centre_order(self.minus(theta), self.size)  # type: ignore[no-any-return]
        if self.kind == "block":
            return block.block_centres(self.minus(theta), self.arrays[1], self.size)  # type: ignore[no-any-return]
        if self.kind == "sparse":
            pointer, index, value, _, _ = self.arrays
            stars = sparse_kernel.sparse_stars(pointer, index, value, self.minus(theta), self.size)
        else:
            pointer, index, value, dims, starts, _, _ = self.arrays
            stars = sparse_block.sparse_block_stars(pointer, index, value, starts, dims, self.minus(theta), self.size)
        central = stars > 1.0 - CENTRE_SLACK
        centres = np.flatnonzero(central)
        centres = centres[np.argsort(-stars[centres], kind="stable")]
        return np.concatenate([centres, np.flatnonzero(~central)]), len(centres)

    def scan(
        self, theta: float, order: NDArray[np.int64], roots: NDArray[np.int64], stop: NDArray[np.int64], limit: int
    ) -> tuple[int, NDArray[np.int64]]:
        """(roots finished, supports found by name): when not all roots are finished, time or
        `limit` ran out.
        """
        done, found = self._scan(theta, order, roots, stop, limit)
        if self.wanted is not None and len(found):  # grown from centres, some do not meet what is delivered
            found = found[np.isin(found, self.nodes[self.met()]).any(axis=1)]
        return done, found

    def met(self) -> NDArray[np.bool_]:
        """(n,) which nodes have a wanted coordinate."""
        owner = np.repeat(np.arange(len(self.nodes)), self.dims)
        return np.asarray(np.bincount(owner, weights=self.wanted, minlength=len(self.nodes)) > 0.0)

    def _scan(
        self, theta: float, order: NDArray[np.int64], roots: NDArray[np.int64], stop: NDArray[np.int64], limit: int
    ) -> tuple[int, NDArray[np.int64]]:
        from solvers.kernels import block, dense, sparse_block
        from solvers.kernels import sparse as sparse_kernel

        out = np.empty((limit, self.size), np.int64)
        if self.kind == "dense":
            ordered = np.ascontiguousarray(self.minus(theta)[np.ix_(order, order)])
            count, done = dense.scan_dense(ordered, self.nodes[order], roots, self.size, stop, out)
            return done, out[: min(count, limit)]
        if self.kind == "block":
            offsets = self.arrays[1]
            columns = np.concatenate([np.arange(offsets[a], offsets[a + 1]) for a in order])
            cuts = np.concatenate([[0], np.cumsum(np.diff(offsets)[order])])
            ordered = np.ascontiguousarray(self.minus(theta)[np.ix_(columns, columns)])
            count, done = block.scan_blocks(ordered, cuts, self.nodes[order], roots, self.size, stop, out)
            return done, out[: min(count, limit)]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        if self.kind == "sparse":
            pointer, index, value, _, goal = self.arrays
            count, done = sparse_kernel.scan_sparse(
                pointer, index, value, self.minus(theta), rank, goal, order[roots], stop, out
            )
        else:
            pointer, index, value, dims, starts, _, goal = self.arrays
            lowered = self.minus(theta)
            if self.size > NORMS_FROM and self.weight > WORTH_NORMS and dims.max() <= sparse_block.WIDEST:
                found = sparse_block.scan_norms(self.arrays, lowered, rank, order[roots], self.size, stop)
                if found is not None:
                    return self._settled(theta, found[0], found[1], limit)
            count, done = sparse_block.scan_sparse_blocks(
                pointer, index, value, starts, dims, lowered, rank, goal, order[roots], stop, out
            )
        found = out[: min(count, limit)]
        return done, np.where(found >= 0, self.nodes[found], -1)

    def _settled(self, theta: float, places: NDArray[np.int64], done: int, limit: int) -> tuple[int, NDArray[np.int64]]:
        """What norms left over, settled one by one; above `limit`, the lowest and no root done."""
        found = np.where(places >= 0, self.nodes[places], -1)
        if len(found):
            supports = sorted(_named(found))
            left = [s for s, sure in zip(supports, self.proven(supports, theta), strict=True) if not sure]
            if len(left) > limit:
                left, done = [left[i] for i in np.argsort(self.values(left), kind="stable")[:limit]], 0
            found = np.array([(*s, *[-1] * (self.size - len(s))) for s in left], np.int64).reshape(-1, self.size)
        return done, found

    def blocks(self, supports: Sequence[Support]) -> NDArray[np.float64]:
        """The shrunk Gram blocks of supports of this part, padded to one width."""
        from solvers.kernels.gather import gather_dense, gather_sparse

        places = np.full((len(supports), self.size), -1, np.int64)
        for m, support in enumerate(supports):
            places[m, : len(support)] = np.searchsorted(self.nodes, support)
        if self.kind in ("dense", "block"):
            matrix = self.arrays[0]
            offsets = np.arange(len(matrix) + 1) if self.kind == "dense" else self.arrays[1]
            widest = int(np.diff(offsets).max())
            return gather_dense(matrix, offsets, places, self.size * widest)  # type: ignore[no-any-return]
        if self.kind == "sparse":
            pointer, index, value, diagonal, _ = self.arrays
            dims, starts = np.ones(len(diagonal), np.int64), np.zeros(0, np.int64)
            diagonal = diagonal[:, None, None]
        else:
            pointer, index, value, dims, starts, diagonal, _ = self.arrays
        return gather_sparse(  # type: ignore[no-any-return]
            pointer, index, value, starts, dims, diagonal, places, self.size * diagonal.shape[1]
        )

    def values(self, supports: Sequence[Support]) -> NDArray[np.float64]:
        """λ_min of each, in plain floating point."""
        if self.wanted is not None:
            from solvers._schur import all_least_delivered

            return all_least_delivered(self.blocks(supports), self._wanted_in(supports))
        return np.asarray(np.linalg.eigvalsh(self.blocks(supports))[:, 0], dtype=np.float64)

    def proven(self, supports: Sequence[Support], theta: float) -> NDArray[np.bool_]:
        """Which of them have λ_min ≥ θ, proven by a Cholesky of the shrunk block."""
        from solvers.kernels.gather import proven

        blocks = self.blocks(supports)
        if self.wanted is None:
            return proven(blocks, np.full(len(supports), theta))  # type: ignore[no-any-return]
        masks = self._wanted_in(supports)
        corner = np.arange(blocks.shape[1])
        blocks[:, corner, corner] -= theta * masks
        sure = proven(blocks, np.zeros(len(supports)))
        return np.asarray(sure | ~masks.any(axis=1))  # a support without delivered coordinates has nothing to prove

    def _wanted_in(self, supports: Sequence[Support]) -> NDArray[np.float64]:
        """`wanted` on each support, laid out like `blocks`."""
        offsets = np.concatenate([[0], np.cumsum(self.dims)])
        masks = np.zeros((len(supports), self.size * int(self.dims.max())))
        for m, support in enumerate(supports):
            places = np.searchsorted(self.nodes, support)
            own = np.concatenate([self.wanted[offsets[i] : offsets[i + 1]] for i in places])  # type: ignore[index]
            masks[m, : len(own)] = own
        return masks

    def minus(self, theta: float) -> NDArray[np.float64]:
        """The matrix (dense) or its diagonal (sparse) with θ taken off every wanted coordinate."""
        if self.kind in ("dense", "block"):
            result = self.arrays[0].copy()
            np.fill_diagonal(result, result.diagonal() - (theta if self.wanted is None else theta * self.wanted))
            return result
        result = self.arrays[-2].copy()
        if self.kind == "sparse":
            return np.asarray(result - (theta if self.wanted is None else theta * self.wanted))
        corner = np.arange(result.shape[1])
        if self.wanted is None:
            result[:, corner, corner] -= theta
        else:
            owner = np.repeat(np.arange(len(self.nodes)), self.dims)
            result[owner, within(self.dims), within(self.dims)] -= theta * self.wanted
        return result


def delivered_parts(field: Field, size: int, wanted: NDArray[np.float64]) -> list[Part]:
    """The same parts with θ on the wanted coordinates only; components without any are left out."""
    parts = []
    for part in parts_of(field, size):
        own = wanted[field.columns_of(part.nodes)]
        if own.any():
            parts.append(replace(part, wanted=own))
    return parts


def parts_of(field: Field, size: int, *, without: NDArray[np.int64] | None = None) -> list[Part]:
    """Dense components one by one, everything else together.

    `without` some nodes, only components of at least `size` others are left: what is smaller there
    grows through one of them. In an extreme field the diagonal is made negative: then no kernel
    takes any support for harmless, and each is reported.
    """
    shrink = -1.0 if field.extreme else field.shrink(size)
    if without is not None:
        components = [nodes for nodes in field.components_without(without) if len(nodes) >= size]
        if not components:
            return []
        return [_sparse_part(field, np.sort(np.concatenate(components)), components, size, shrink)]
    degrees = None if field.full else np.diff(field.graph.indptr)
    parts: list[Part] = []
    rest = []
    for nodes in field.components:
        n = len(nodes)
        filled = degrees is None or degrees[nodes].sum() > 0.25 * n * (n - 1)
        small_enough = field.scalar or n * int(field.dims.max()) <= 3000
        if n > size > 1 and filled and small_enough and len(parts) < 16:
            parts.append(_dense_part(field, nodes, size, shrink))
        else:
            rest.append(nodes)
    if rest:
        parts.append(_sparse_part(field, np.sort(np.concatenate(rest)), rest, size, shrink))
    return parts


def _dense_part(field: Field, nodes: NDArray[np.int64], size: int, shrink: float) -> Part:
    if len(nodes) == field.n:
        gram = field.dense_gram
    else:
        columns = field.columns_of(nodes)
        gram = field.gram[columns][:, columns].toarray()
    gram = (gram + gram.T) * 0.5
    np.fill_diagonal(gram, gram.diagonal() * shrink)
    if field.scalar:
        return Part("dense", nodes, (gram,), size, 1.0 - shrink)
    offsets = np.concatenate([[0], np.cumsum(field.dims[nodes])])
    return Part("block", nodes, (gram, offsets), size, 1.0 - shrink)


def _sparse_part(
    field: Field, nodes: NDArray[np.int64], components: list[NDArray[np.int64]], size: int, shrink: float
) -> Part:
    everything = len(nodes) == field.n
    goal = np.empty(field.n, np.int64)
    for part in components:
        goal[part] = min(size, len(part))
    if field.scalar:
        edges = field.couplings if everything else field.couplings[nodes][:, nodes]
        diagonal = (field.diagonal if everything else field.diagonal[nodes]) * shrink
        arrays = (edges.indptr.astype(np.int64), edges.indices.astype(np.int64), edges.data, diagonal)
        return Part("sparse", nodes, (*arrays, goal[nodes]), size, 1.0 - shrink)
    from solvers.kernels.assemble import unit_blocks

    dims = field.dims[nodes]
    widest = int(dims.max())
    couplings, own = field.couplings, field.diagonal
    if not everything:
        columns = field.columns_of(nodes)
        couplings, own = couplings[columns][:, columns].tocsr(), own[columns]
    offsets = np.concatenate([[0], np.cumsum(dims)]).astype(np.int64)
    owner = np.repeat(np.arange(len(nodes)), dims)
    edges = (couplings.indptr.astype(np.int64), couplings.indices.astype(np.int64), couplings.data)
    pointer, neighbours, starts, values, diagonal = unit_blocks(*edges, own, offsets, owner, widest)
    diagonal = (diagonal + diagonal.transpose(0, 2, 1)) * 0.5
    corner = np.arange(widest)
    diagonal[:, corner, corner] *= shrink
    return Part(
        "sparse_block", nodes, (pointer, neighbours, values, dims, starts, diagonal, goal[nodes]), size, 1.0 - shrink
    )


NORMS_FROM, WORTH_NORMS = 4, 10_000.0  # nodes of a support, and weight of a root: above, norms are looked at first
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
        self._hubs: HubSearch | None = None
        self._apart = self.parts  # what is searched beside the hubs
        hubs = hubs_of(field, self.size) if wanted is None else np.zeros(0, np.int64)
        if len(hubs):
            self._hubs = HubSearch(field, self.size, hubs)
            self._apart = tuple(parts_of(field, self.size, without=hubs))

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
        finding the minimum. A `sample` looks at one root in TASKS only (and at no hub).
        """
        parts, held = self.parts, Found((), theta, True, 0)
        if self._hubs is not None:
            around = held if sample else self._with_hubs(theta, limit, adapt, n_jobs, deadline)
            if around is not None:
                parts, held, theta = self._apart, around, around.theta
        jobs = []
        for part in parts:
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
        results = [held, *results]
        supports = sorted({s for found in results for s in found.supports})
        return Found(
            supports=tuple(supports),
            theta=min(found.theta for found in results),
            complete=all(found.complete for found in results),
            tested=sum(found.tested for found in results),
        )

    def _with_hubs(
        self, theta: float, limit: int, adapt: bool, n_jobs: int | None, deadline: float | None
    ) -> Found | None:
        """The same for supports that hold a hub (`solvers._hubs`); None where they are to be grown
        like others.
        """
        assert self._hubs is not None
        tested, noise = 0, max(part.noise for part in self.parts)
        lowest: set[Support] = set()  # the reason for the lower θ, though it is proven at it
        while True:
            found = self._hubs.below(theta, limit=FIRST_LOOK if adapt else limit, n_jobs=n_jobs, deadline=deadline)
            if found is None:
                return None
            supports, complete = found
            tested += len(supports)
            lower = [each for each in self._ranked(supports) if each[0] < theta * (1.0 - 1e-9)] if adapt else []
            if not lower or (deadline is not None and time.time() >= deadline):
                kept = lowest.union(self.unproven(supports, theta))
                return Found(tuple(sorted(kept)), theta, True, tested) if complete else None
            lowest = {lower[0][1]}
            if lower[0][0] <= noise:
                return Found(tuple(lowest), theta, False, tested)
            theta = lower[0][0] * (1.0 - ULP_ROOM)

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
        ranked = self._ranked(supports)
        scale = float(self.field.diagonal.max(initial=0.0))
        return [s for value, s in ranked[:count] if value <= ranked[0][0] * (1.0 + 1e-6) + 1e-12 * scale]

    def _ranked(self, supports: Sequence[Support]) -> list[tuple[float, Support]]:
        """Each with its λ_min in plain floating point, least first."""
        ranked: list[tuple[float, Support]] = []
        for part, members in self.split(supports):
            ranked += list(zip(part.values(members).tolist(), members, strict=True))
        return sorted(ranked)

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
