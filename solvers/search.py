"""One question, asked of the whole field: which supports can't be proven to have λ_min(G_SS) ≥ θ?

`Search` splits the field into its dense components and the sparse rest, sends each to its kernel, and splits the
roots into tasks that never depend on how many processes run them, so that every n_jobs gives the same answer.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers.gram import Field, within, without_diagonal

LIMIT = 4096  # supports kept per task before it stops to look at them
FIRST_LOOK = 16  # the same while looking for the minimum: the sooner θ falls, the less is left to search
TASKS = 32  # at most, per part of the field; how many depends on its size, never on the number of processes
ULP_ROOM = 2e-10  # θ = λ(1 − this): room for the proof below the incumbent, half of the gap that is left in λ

Support = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """Some components of the field, as one kernel reads them. Plain arrays, so that processes share them by memory map."""

    kind: str  # "dense", "block", "sparse", "sparse_block"
    nodes: NDArray[np.int64]  # (n,) names
    arrays: tuple[NDArray[Any], ...]
    size: int

    @property
    def weight(self) -> float:
        """Roughly, elementary operations per root: for deciding how many tasks are worth their overhead."""
        n = len(self.nodes)
        if self.kind in ("dense", "block"):
            return float(self.arrays[0].size * n ** max(self.size - 4, 0) / math.factorial(max(self.size - 4, 1)))
        return (len(self.arrays[1]) / max(n, 1)) ** self.size * 10.0

    @property
    def noise(self) -> float:
        """An eigenvalue below this may be rounding of a Gram matrix, and is no reason to lower θ."""
        diagonal = self.arrays[0].diagonal() if self.kind in ("dense", "block") else self.arrays[-2]
        return 1e-9 * float(np.max(diagonal, initial=0.0))

    def centres(self, theta: float) -> tuple[NDArray[np.int64], int]:
        """Positions in search order, centres first, and how many those are."""
        from solvers.kernels import block, dense, sparse_block
        from solvers.kernels import sparse as sparse_kernel
        from solvers.kernels.emit import CENTRE_SLACK

        if self.kind == "dense":
            return dense.centre_order(_minus(self.arrays[0], theta), self.size)  # type: ignore[no-any-return]
        if self.kind == "block":
            return block.block_centres(_minus(self.arrays[0], theta), self.arrays[1], self.size)  # type: ignore[no-any-return]
        if self.kind == "sparse":
            pointer, index, value, diagonal, _ = self.arrays
            stars = sparse_kernel.sparse_stars(pointer, index, value, diagonal - theta, self.size)
        else:
            pointer, index, value, dims, diagonal, _ = self.arrays
            stars = sparse_block.sparse_block_stars(
                pointer, index, value, dims, _minus_blocks(diagonal, theta), self.size
            )
        central = stars > 1.0 - CENTRE_SLACK
        centres = np.flatnonzero(central)
        centres = centres[np.argsort(-stars[centres], kind="stable")]
        return np.concatenate([centres, np.flatnonzero(~central)]), len(centres)

    def scan(
        self, theta: float, order: NDArray[np.int64], roots: NDArray[np.int64], stop: NDArray[np.int64], limit: int
    ) -> tuple[int, NDArray[np.int64]]:
        """(roots finished, supports found by name): when not all roots are finished, time or `limit` ran out."""
        from solvers.kernels import block, dense, sparse_block
        from solvers.kernels import sparse as sparse_kernel

        out = np.empty((limit, self.size), np.int64)
        if self.kind == "dense":
            ordered = np.ascontiguousarray(_minus(self.arrays[0], theta)[np.ix_(order, order)])
            count, done = dense.scan_dense(ordered, self.nodes[order], roots, self.size, stop, out)
            return done, out[: min(count, limit)]
        if self.kind == "block":
            matrix, offsets = self.arrays
            columns = np.concatenate([np.arange(offsets[a], offsets[a + 1]) for a in order])
            cuts = np.concatenate([[0], np.cumsum(np.diff(offsets)[order])])
            ordered = np.ascontiguousarray(_minus(matrix, theta)[np.ix_(columns, columns)])
            count, done = block.scan_blocks(ordered, cuts, self.nodes[order], roots, self.size, stop, out)
            return done, out[: min(count, limit)]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        if self.kind == "sparse":
            pointer, index, value, diagonal, goal = self.arrays
            count, done = sparse_kernel.scan_sparse(
                pointer, index, value, diagonal - theta, rank, goal, order[roots], stop, out
            )
        else:
            pointer, index, value, dims, diagonal, goal = self.arrays
            count, done = sparse_block.scan_sparse_blocks(
                pointer, index, value, dims, _minus_blocks(diagonal, theta), rank, goal, order[roots], stop, out
            )
        found = out[: min(count, limit)]
        return done, np.where(found >= 0, self.nodes[found], -1)

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
            dims = np.ones(len(diagonal), np.int64)
            value, diagonal = value[:, None, None], diagonal[:, None, None]
        else:
            pointer, index, value, dims, diagonal, _ = self.arrays
        return gather_sparse(  # type: ignore[no-any-return]
            pointer, index, value, dims, diagonal, places, self.size * diagonal.shape[1]
        )

    def values(self, supports: Sequence[Support]) -> NDArray[np.float64]:
        """λ_min of each, in plain floating point."""
        return np.asarray(np.linalg.eigvalsh(self.blocks(supports))[:, 0], dtype=np.float64)

    def proven(self, supports: Sequence[Support], theta: float) -> NDArray[np.bool_]:
        """Which of them have λ_min ≥ θ, proven by a Cholesky of the shrunk block."""
        from solvers.kernels.gather import proven

        return proven(self.blocks(supports), np.full(len(supports), theta))  # type: ignore[no-any-return]


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
        self.parts = tuple(_parts(field, self.size))

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


def _parts(field: Field, size: int) -> list[Part]:
    """Dense components one by one, everything else together."""
    shrink = field.shrink(size)
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
        return Part("dense", nodes, (gram,), size)
    offsets = np.concatenate([[0], np.cumsum(field.dims[nodes])])
    return Part("block", nodes, (gram, offsets), size)


def _sparse_part(
    field: Field, nodes: NDArray[np.int64], components: list[NDArray[np.int64]], size: int, shrink: float
) -> Part:
    everything = len(nodes) == field.n
    goal = np.empty(field.n, np.int64)
    for part in components:
        goal[part] = min(size, len(part))
    if field.scalar:
        edges = field.graph if everything else without_diagonal(field.gram[nodes][:, nodes])
        diagonal = (field.diagonal if everything else field.diagonal[nodes]) * shrink
        arrays = (edges.indptr, edges.indices, edges.data, diagonal)
        return Part("sparse", nodes, (*arrays, goal[nodes]), size)
    dims = field.dims[nodes]
    widest = int(dims.max())
    if everything:
        gram = field.gram.tocoo()
    else:
        columns = field.columns_of(nodes)
        gram = field.gram[columns][:, columns].tocoo()
    padded = np.repeat(np.arange(len(nodes)), dims) * widest + within(dims)
    shape = (len(nodes) * widest, len(nodes) * widest)
    blocks = sparse.bsr_array(
        sparse.csr_array((gram.data, (padded[gram.row], padded[gram.col])), shape=shape), blocksize=(widest, widest)
    )
    blocks.sort_indices()
    row = np.repeat(np.arange(len(nodes)), np.diff(blocks.indptr))
    keep = (row != blocks.indices) & (blocks.data != 0.0).any(axis=(1, 2))
    pointer = np.concatenate([[0], np.cumsum(np.bincount(row[keep], minlength=len(nodes)))]).astype(np.int64)
    diagonal = np.zeros((len(nodes), widest, widest))
    diagonal[row[row == blocks.indices]] = blocks.data[row == blocks.indices]
    diagonal = (diagonal + diagonal.transpose(0, 2, 1)) * 0.5
    corner = np.arange(widest)
    diagonal[:, corner, corner] *= shrink
    values = np.ascontiguousarray(blocks.data[keep])
    return Part(
        "sparse_block",
        nodes,
        (pointer, blocks.indices[keep].astype(np.int64), values, dims, diagonal, goal[nodes]),
        size,
    )


def _minus(matrix: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    result = matrix.copy()
    np.fill_diagonal(result, result.diagonal() - theta)
    return result


def _minus_blocks(diagonal: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    result = diagonal.copy()
    corner = np.arange(result.shape[1])
    result[:, corner, corner] -= theta
    return result
