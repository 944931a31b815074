"""Supports that hold a hub: a node with so many neighbours that they can't be gone through.

Let H be the hubs, K ⊂ H not empty and S = K ∪ T with T outside H. Eliminate T, part by connected
part: S is harmless at θ where every G_PP − θ has a Cholesky factor L_P and

    N_K − Σ_P Ŷ_PᵀŶ_P ≻ 0,    N_K = G_KK − θ,  Ŷ_P = L_P⁻¹ G_PK.

Exactness: that factorisation is the one of `solvers._gram`, so the shrunk diagonal pays for the
rounding of L and Ŷ; what is left has to hold for Ŷ as it was computed. With W such that WᵀN_K W =
I + E it does as soon as the shares λ_max(WᵀŶ_PᵀŶ_P W) add up to less than 1 − ‖E‖, less room for
the rounding of shares. Shares grow with P, and no part of T that S needs to be connected is without
one of K; so the greatest few shares of pieces of each size (`kernels.hub_pieces`) bound what all
supports with K can lose, whatever their number. Where that does not settle them, only pieces
whose share is large enough beside the best of the others are put together and tried.

Sets of several hubs are first bounded by their members: the share of a piece in N_K is at most the
sum of its shares in the members' own blocks, and what couples the hubs comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._gram import Field
from solvers.tasks import Stop, run_tasks, stopping_at

Support = tuple[int, ...]
SetOfHubs = tuple[int, ...]

SIZES = range(3, 7)  # of supports
MOST_HUBS = 64
FEWEST_STARS = 1_000_000  # neighbours of all nodes, in sets: fewer are gone through as they are
SHARE = 0.01  # of the stars that are left: a node with fewer is no hub
FEW = 1e-4  # of all stars: so few are no trouble
LEFT = 0.1  # of all stars, at most, outside the hubs: otherwise they are not what makes the field large
MOST_SETS = 4_096  # of hubs, that have to be looked at together
MOST_PIECES = 50_000  # put together and tried
MOST_STEPS = 200_000
TASKS = 16
UNIT = 2.0**-53


def hubs_of(field: Field, size: int) -> NDArray[np.int64]:
    """The nodes around which supports are not grown, from the largest down; mostly none."""
    if size not in SIZES or field.extreme or field.full:
        return np.zeros(0, np.int64)
    degrees = np.diff(field.graph.indptr)
    largest = np.argsort(-degrees, kind="stable")[: MOST_HUBS + 1]
    if comb(int(degrees[largest[0]]), size - 1) < FEWEST_STARS / 100:
        return np.zeros(0, np.int64)
    stars = np.ones(len(degrees))
    for t in range(size - 1):
        stars *= np.maximum(degrees - t, 0) / (t + 1)
    total = left = float(stars.sum())
    count = 0
    while count < min(MOST_HUBS, len(largest)) and stars[largest[count]] > SHARE * left and left > FEW * total:
        left -= float(stars[largest[count]])
        count += 1
    return largest[:count] if total > FEWEST_STARS and left < LEFT * total else np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Frame:
    """A set of hubs with the matrix W of its block, and the room that its rounding takes of 1."""

    hubs: SetOfHubs
    places: NDArray[np.int64]
    weights: NDArray[np.float64]
    room: float


class HubSearch:
    """Which supports that hold a hub can't be proven to have λ_min(G_SS) ≥ θ?"""

    def __init__(self, field: Field, size: int, hubs: NDArray[np.int64]) -> None:
        self.field = field
        self.size = size
        self.hubs = hubs
        self.rest = np.ones(field.n, np.bool_)
        self.rest[hubs] = False
        self._start = np.concatenate([[0], np.cumsum(field.dims[hubs])]).astype(np.int64)
        self._columns = field.columns_of(hubs)
        self._place = np.full(int(field.offsets[-1]), -1, np.int64)
        self._place[self._columns] = np.arange(len(self._columns))
        couplings = field.couplings
        self._couplings = (couplings.indptr.astype(np.int64), couplings.indices.astype(np.int64), couplings.data)
        self._graph = (field.graph.indptr.astype(np.int64), field.graph.indices.astype(np.int64))
        self._diagonal = field.diagonal * field.shrink(size)
        block = couplings[self._columns][:, self._columns].toarray()
        self._block = (block + block.T) * 0.5

    def below(
        self, theta: float, *, limit: int, n_jobs: int | None = None, deadline: float | None = None
    ) -> tuple[list[Support], bool] | None:
        """Supports with a hub that may be harmful, and whether these are all; None where too many
        are left to try one by one, or time ran out.

        Pieces that are harmful by themselves are given first, alone.
        """
        alone = self._frames([(h,) for h in range(len(self.hubs))], theta)
        if alone is None:
            return None
        best, pieces, bad = self._pieces(theta, alone, None, n_jobs, deadline)
        if best is None or bad:
            return (bad, False) if bad else None
        several = self._suspicious(best, alone, theta)
        joint = None if several is None else self._frames(several, theta)
        if joint is None:
            return None
        frames, greatest = list(alone), best
        if joint:
            more, _, _ = self._pieces(theta, joint, None, n_jobs, deadline)
            if more is None:
                return None
            frames, greatest = [*alone, *joint], np.vstack([best, more])
        kept = []
        for number, frame in enumerate(frames):
            most = _most(greatest[number], self.size - len(frame.hubs))
            if most[-1] >= 1.0 - frame.room:
                kept.append((frame, greatest[number], most))
        if not kept:
            return [], True
        need = np.full((len(kept), self.size), np.inf)
        for number, (frame, _, most) in enumerate(kept):
            for m in range(1, len(most)):
                need[number, m] = 1.0 - frame.room - most[len(most) - 1 - m]
        best, pieces, _ = self._pieces(theta, [frame for frame, _, _ in kept], need, n_jobs, deadline)
        if best is None or pieces is None:
            return None
        return self._together([(frame, greatest) for frame, greatest, _ in kept], pieces, limit)

    def _frames(self, sets: Sequence[SetOfHubs], theta: float) -> list[_Frame] | None:
        """W and its room for each set; None where some block is not clearly positive definite."""
        frames = []
        for hubs in sets:
            places = np.concatenate([np.arange(self._start[h], self._start[h + 1]) for h in hubs])
            own = self._block[np.ix_(places, places)].copy()
            np.fill_diagonal(own, self._diagonal[self._columns[places]] - theta)
            scale = own.diagonal()
            if not scale.min() > 0.0:
                return None
            try:
                factor = np.linalg.cholesky(own / np.sqrt(np.outer(scale, scale)))
            except np.linalg.LinAlgError:
                return None
            weights = np.linalg.inv(factor).T / np.sqrt(scale)[:, None]
            count = len(places)
            spread = float((np.square(weights) * scale[:, None]).sum())
            error = float(np.linalg.norm(weights.T @ own @ weights - np.eye(count)))
            room = error + 200.0 * UNIT * (self.size * int(self.field.dims.max()) + 4 * count) * count**2 * spread
            if not room < 0.01:
                return None
            frames.append(_Frame(hubs, places, weights, room))
        return frames

    def _suspicious(self, best: NDArray[np.float64], alone: list[_Frame], theta: float) -> list[SetOfHubs] | None:
        """Sets of two and more hubs that the bounds of their members do not settle; None: too
        many.
        """
        count = len(alone)
        norms = np.zeros((count, count))
        for i, j in combinations(range(count), 2):
            block = self._block[np.ix_(alone[i].places, alone[j].places)]
            if block.any():
                norms[i, j] = norms[j, i] = np.linalg.norm(alone[i].weights.T @ block @ alone[j].weights)
        enough = 1.0 - sum(frame.room for frame in alone) - 1e-9
        found: list[SetOfHubs] = []
        for members in range(2, min(self.size, count) + 1):
            loss = np.array([_most(best[h], self.size - members)[-1] for h in range(count)])
            coupled = (members - 1) * float(norms.max())
            for hubs in _heavy(loss, members, enough - coupled):
                between = norms[np.ix_(hubs, hubs)].sum(axis=1).max()
                if loss[list(hubs)].sum() + between >= enough:
                    found.append(tuple(sorted(hubs)))
                    if len(found) > MOST_SETS:
                        return None
        return found

    def _pieces(
        self,
        theta: float,
        frames: Sequence[_Frame],
        need: NDArray[np.float64] | None,
        n_jobs: int | None,
        deadline: float | None,
    ) -> tuple[NDArray[np.float64] | None, list[list[tuple[float, Support]]] | None, list[Support]]:
        """The greatest shares of pieces by set and size (None: time ran out), the pieces that are
        needed by set (None: too many), and those that can't be eliminated.
        """
        # beside as many hubs as a support has nodes there is no piece: the kernel has room for one
        most = max(1, self.size - min(len(frame.hubs) for frame in frames))
        need = np.full((len(frames), self.size), np.inf) if need is None else need
        count = len(self.hubs)
        by_hub: list[list[int]] = [[] for _ in range(count)]
        for number, frame in enumerate(frames):
            for h in frame.hubs:
                by_hub[h].append(number)
        sizes = np.array([len(frame.places) for frame in frames])
        sets = (
            np.concatenate([[0], np.cumsum([len(own) for own in by_hub])]).astype(np.int64),
            np.array([number for own in by_hub for number in own], np.int64),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([frame.places for frame in frames]).astype(np.int64),
            np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64),
            np.concatenate([frame.weights.ravel() for frame in frames]),
        )
        roots = np.flatnonzero(self.rest)
        tasks = min(TASKS, 1 + len(roots) // 2_000)
        shared = (*self._graph, self.field.offsets, self._couplings, self._diagonal - theta, self.rest)
        hubs = (self._place, self._start)
        jobs = [(*shared, hubs, sets, self.size, need[:, : most + 1], roots[t::tasks], deadline) for t in range(tasks)]
        results = run_tasks(_task, jobs, n_jobs=n_jobs, work=float(len(roots)) * 100.0)
        bad = sorted({support for result in results for support in result.bad})
        if bad:
            return None, None, bad
        if not all(result.complete for result in results):
            return None, None, []
        best = np.full((len(frames), self.size, self.size - 1), -np.inf)
        together = np.sort(np.concatenate([result.best for result in results], axis=2), axis=2)[:, :, ::-1]
        best[:, : most + 1] = together[:, :, : self.size - 1]
        pieces: list[list[tuple[float, Support]]] = [[] for _ in frames]
        for result in results:
            for number, share, nodes in result.pieces:
                pieces[number].append((share, nodes))
        full = any(result.full for result in results) or sum(map(len, pieces)) > MOST_PIECES
        return best, None if full else pieces, []

    def _together(
        self,
        frames: Sequence[tuple[_Frame, NDArray[np.float64]]],
        pieces: list[list[tuple[float, Support]]],
        limit: int,
    ) -> tuple[list[Support], bool] | None:
        """Supports of hubs and pieces whose shares add up to enough, the largest share first."""
        found: set[Support] = set()
        steps = [MOST_STEPS]
        for (frame, best), own in zip(frames, pieces, strict=True):
            own.sort(key=lambda piece: (-piece[0], piece[1]))
            hubs = tuple(int(self.hubs[h]) for h in frame.hubs)
            for nodes in _sums(own, best, self.size - len(hubs), 1.0 - frame.room, steps):
                if len(set(nodes)) == len(nodes) and self._connected((*hubs, *nodes)):
                    found.add(tuple(sorted((*hubs, *nodes))))
                if len(found) > limit:
                    return sorted(found), False
            if steps[0] <= 0:
                return (sorted(found), False) if found else None
        return sorted(found), True

    def _connected(self, nodes: Support) -> bool:
        """Is the set joined by rows of B? (Found from its smaller rows.)"""
        pointer, index = self._graph
        by_degree = sorted(nodes, key=lambda i: pointer[i + 1] - pointer[i])
        met, reached = {i: {i} for i in nodes}, None
        for place, i in enumerate(by_degree):
            row = index[pointer[i] : pointer[i + 1]]
            for j in by_degree[place + 1 :]:
                if (row == j).any() and met[i] is not met[j]:
                    reached = met[i] | met[j]
                    met.update(dict.fromkeys(reached, reached))
        return len(met[nodes[0]]) == len(nodes)


@dataclass(frozen=True)
class _Seen:
    """What one task saw."""

    best: NDArray[np.float64]
    pieces: tuple[tuple[int, float, Support], ...]
    bad: tuple[Support, ...]
    complete: bool
    full: bool


def _task(
    adjacent: Any,
    neighbour: Any,
    offsets: Any,
    couplings: Any,
    diagonal: Any,
    rest: Any,
    hubs: Any,
    sets: Any,
    size: int,
    need: NDArray[np.float64],
    roots: NDArray[np.int64],
    deadline: float | None,
    *,
    stop: Stop | None = None,
) -> _Seen:
    from solvers.kernels.hub_pieces import hub_pieces

    best = np.full((*need.shape, size - 1), -np.inf)
    most = need.shape[1] - 1
    room = MOST_PIECES if np.isfinite(need).any() else 1
    out = np.empty((room, most), np.int64), np.empty(room, np.int64), np.empty(room)
    bad = np.full((16, most), -1, np.int64)
    with stopping_at(deadline, stop) as flag:
        done, count, wrong = hub_pieces(
            adjacent, neighbour, offsets, couplings, diagonal, rest, hubs, sets, need, roots, flag, best, out, bad
        )
    rows = zip(out[1][:count].tolist(), out[2][:count].tolist(), _named(out[0][:count]), strict=True)
    return _Seen(best, tuple(rows), tuple(_named(bad[:wrong])), done == len(roots) or count > room, count > room)


def _named(rows: NDArray[np.int64]) -> list[Support]:
    """Rows of nodes, padded with −1, as sorted tuples."""
    return [tuple(sorted(i for i in row if i >= 0)) for row in rows.tolist()]


def _most(best: NDArray[np.float64], size: int, cap: float = math.inf) -> list[float]:
    """[m] = the most that pieces of at most m nodes together can have, each at most `cap`; best[j]
    are the largest shares of pieces of j nodes, from the largest down.
    """
    most = [0.0] * (size + 1)
    for j in range(1, size + 1):
        largest = best[j].tolist()
        before, total = most.copy(), 0.0
        for count in range(1, size // j + 1):
            total += min(largest[count - 1], cap)
            if total < 0.0:  # there are no more
                break
            for m in range(count * j, size + 1):
                most[m] = max(most[m], before[m - count * j] + total)
    return most


def _heavy(loss: NDArray[np.float64], count: int, enough: float) -> Iterator[SetOfHubs]:
    """Sets of so many hubs whose losses add up to enough."""
    order = np.argsort(-loss, kind="stable").tolist()

    def extend(start: int, chosen: SetOfHubs, total: float) -> Iterator[SetOfHubs]:
        missing = count - len(chosen)
        if missing == 0:
            yield chosen
            return
        for place in range(start, len(order) - missing + 1):
            if total + missing * loss[order[place]] < enough:
                return
            yield from extend(place + 1, (*chosen, order[place]), total + loss[order[place]])

    yield from extend(0, (), 0.0)


def _sums(
    pieces: list[tuple[float, Support]], best: NDArray[np.float64], size: int, enough: float, steps: list[int]
) -> Iterator[Support]:
    """The nodes of pieces with `size` of them together whose shares add up to enough; `steps` are
    counted down.
    """
    if size == 0:
        if enough <= 0.0:
            yield ()
        return

    def extend(start: int, nodes: Support, total: float) -> Iterator[Support]:
        missing = size - len(nodes)
        if missing == 0:
            yield nodes
            return
        for place in range(start, len(pieces)):
            share, own = pieces[place]
            steps[0] -= 1
            if steps[0] <= 0 or total + _most(best, missing, share)[-1] < enough:
                return
            if len(own) <= missing and total + share + _most(best, missing - len(own), share)[-1] >= enough:
                yield from extend(place + 1, (*nodes, *own), total + share)

    yield from extend(0, (), 0.0)
