"""The verifier's own way with hubs: nodes with so many neighbours that sets through them can't be
walked.

Let S hold the hub h. Eliminate the rest of S, connected part by connected part, from G_SS − τ·I:
what is left at h is N − Σ_P Y_PᵀY_P, with N = G_hh − τ and Y_P the rows of h in the Cholesky factor
of P and h. So S is harmless as soon as all parts have a factor and the *losses* ‖WᵀY_PᵀY_P W‖ add
up to less than 1, W the whitener of N. Losses grow with P, and of the connected sets beside the
hubs there are few; the largest losses by size bound all supports with h at once. For several hubs
in one support, their losses are added, and the norms of what couples them.

Sums that reach 1 are few: those supports are named, and settled in exact arithmetic.

Rounding: Y is what the factorisation computed, and the lowered diagonal (see `_gram`) pays for it;
`room` pays for what is computed from Y and N.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker._enumeration import (
    COUNT,
    DEPTH,
    DONE,
    FULL,
    PAUSED,
    ROOT,
    TESTED,
    UNIT,
    Gram,
    give_back,
    new_walk,
    take,
)
from rrf_design.checker.kernel import kernel

SIZES = (3, 6)  # supports from .. to
MOST_HUBS = 64
MANY = 1_000_000  # sets of neighbours
SHARE, SPARED = 0.01, 1e-4  # of the sets that are left, and of all: what makes a hub, and when there are enough
MOST_SETS = 100_000  # of hubs, looked at together
MOST_TOGETHER = 2_000  # of them, that their own losses do not settle
MOST_SUPPORTS = 5_000  # settled in exact arithmetic
MOST_PIECES = 20_000
SLICE = 200_000  # pieces between two looks at the clock


@dataclass(frozen=True, slots=True)
class AroundHubs:
    """Every support with a hub is harmless, but for those named; without them, `rest` is left."""

    rest: Gram
    supports: tuple[tuple[int, ...], ...]
    tested: int


def hubs_in(gram: Gram, size: int) -> NDArray[np.int64]:
    """Nodes that make sets of neighbours numerous, the largest first; empty where others do so
    too.
    """
    degrees = np.diff(gram.neighbour_starts)
    none = np.zeros(0, dtype=np.int64)
    if not SIZES[0] <= size <= SIZES[1] or comb(int(degrees.max(initial=0)), size - 1) < MANY // 100:
        return none
    sets = np.array([float(comb(int(d), size - 1)) for d in degrees])
    order = np.argsort(-sets, kind="stable")
    total = left = float(sets.sum())
    chosen: list[int] = []
    for node in order[:MOST_HUBS]:
        if sets[node] <= SHARE * left or left <= SPARED * total:
            break
        left -= float(sets[node])
        chosen.append(int(node))
    return np.array(chosen, dtype=np.int64) if total > MANY and left < 0.1 * total else none


def prove_around_hubs(gram: Gram, size: int, shift: float, *, deadline: float | None = None) -> AroundHubs | None:
    """None: no hubs, or they are not settled this way."""
    hubs = hubs_in(gram, size)
    if not len(hubs) or int(gram.target[hubs].min()) < size:
        return None
    whiteners, rooms = _whiteners(gram, hubs, size, shift)
    if whiteners is None:
        return None
    rest = without(gram, hubs)
    search = _Pieces(gram, hubs, whiteners, size, shift, deadline)
    alone = [_Together((h,), 1.0 - float(rooms[h])) for h in range(len(hubs))]
    best, _ = search.walk(alone)
    if best is None:
        return None
    several = _several_hubs(gram, hubs, whiteners, best, size, float(rooms.sum()) + 1e-9)
    if several is None:
        return None
    both, _ = search.walk(several) if several else (best[:0], None)
    if both is None:
        return None
    left = []
    for together, losses in zip([*alone, *several], [*best, *both], strict=True):
        greatest = _greatest(losses, size - len(together.hubs))
        if greatest[-1] >= together.enough:
            need = np.full(size, np.inf)
            need[1 : len(greatest)] = [together.enough - other for other in greatest[-2::-1]]
            left.append((together, losses, need))
    supports: set[tuple[int, ...]] = set()
    if left:
        _, pieces = search.walk([together for together, _, _ in left], np.array([need for _, _, need in left]))
        if pieces is None:
            return None
        for number, (together, losses, _) in enumerate(left):
            own = [(loss, nodes) for k, loss, nodes in pieces if k == number]
            nodes = tuple(int(hubs[h]) for h in together.hubs)
            if not _name_supports(nodes, own, losses, size - len(nodes), together.enough, supports):
                return None
    return AroundHubs(rest, tuple(sorted(supports)), search.tested)


@dataclass(frozen=True, slots=True)
class _Together:
    """Some of the hubs, and what losses must add up to before a support with all of them is in
    question.
    """

    hubs: tuple[int, ...]
    enough: float


def without(gram: Gram, hubs: NDArray[np.int64]) -> Gram:
    """The field without some nodes: nothing is built from them or through them."""
    gone = np.zeros(len(gram.sizes), dtype=np.bool_)
    gone[hubs] = True
    owner = np.repeat(np.arange(len(gone)), np.diff(gram.neighbour_starts))
    keep = ~(gone[owner] | gone[gram.neighbours])
    counts = np.bincount(owner[keep], minlength=len(gone))
    return gram._replace(
        roots=gram.roots[~gone[gram.roots]],
        neighbour_starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        neighbours=gram.neighbours[keep],
        edge_blocks=gram.edge_blocks[keep],
    )


def _whiteners(
    gram: Gram, hubs: NDArray[np.int64], size: int, shift: float
) -> tuple[list[NDArray[np.float64]] | None, NDArray[np.float64]]:
    """W with WᵀNW near the identity for each hub, and how much of 1 rounding may cost there."""
    found, rooms = [], np.zeros(len(hubs))
    order = size * int(gram.sizes.max())
    for number, hub in enumerate(hubs):
        width = int(gram.sizes[hub])
        start = int(gram.self_blocks[hub])
        block = gram.blocks[start : start + width * width].reshape(width, width)
        block = np.tril(block.T) + np.tril(block.T, -1).T  # as the factorisation reads it
        base = gram.diagonal[gram.starts[hub] : gram.starts[hub] + width]
        np.fill_diagonal(block, (base - shift) - 4.0 * UNIT * (np.abs(base) + shift))
        scale = block.diagonal()
        if not scale.min() > 0.0:
            return None, rooms
        try:
            factor = np.linalg.cholesky(block / np.sqrt(np.outer(scale, scale)))
        except np.linalg.LinAlgError:
            return None, rooms
        whitener = np.linalg.inv(factor).T / np.sqrt(scale)[:, None]
        spread = float((np.square(whitener) * scale[:, None]).sum())
        off = float(np.linalg.norm(whitener.T @ block @ whitener - np.eye(width)))
        rooms[number] = off + 400.0 * UNIT * (order + 4 * width) * width**2 * spread
        if not rooms[number] < 1e-3:
            return None, rooms
        found.append(whitener)
    return found, rooms


def _several_hubs(
    gram: Gram, hubs: NDArray[np.int64], whiteners: list[Any], best: NDArray[np.float64], size: int, room: float
) -> list[_Together] | None:
    """Which two or more hubs may be in one harmful support, by the greatest losses of each; None:
    too many.

    N of several hubs, whitened hub by hub, is the identity plus couplings, whose norm is at most
    their largest row sum; what is taken from it has at most the sum of the norms of its diagonal
    blocks.
    """
    count = len(hubs)
    norms = np.zeros((count, count))
    places = {int(hub): number for number, hub in enumerate(hubs)}
    for i, hub in enumerate(hubs):
        for e in range(gram.neighbour_starts[hub], gram.neighbour_starts[hub + 1]):
            j, start = places.get(int(gram.neighbours[e])), int(gram.edge_blocks[e])
            if j is not None and start >= 0:
                a, b = len(whiteners[i]), len(whiteners[j])
                block = gram.blocks[start : start + a * b].reshape(a, b)
                norms[i, j] = np.linalg.norm(whiteners[i].T @ block @ whiteners[j]) * (1.0 + 1e-9)
    norms = np.maximum(norms, norms.T)
    found = []
    for members in range(2, min(size, count) + 1):
        losses = np.array([_greatest(best[h], size - members)[-1] for h in range(count)])
        heaviest = float(np.sort(losses)[-members:].sum()) + (members - 1) * float(norms.max())
        if heaviest < 1.0 - room:
            continue
        if comb(count, members) > MOST_SETS:
            return None
        for chosen in combinations(range(count), members):
            between = float(norms[np.ix_(chosen, chosen)].sum(axis=1).max())
            if losses[list(chosen)].sum() + between >= 1.0 - room:
                found.append(_Together(chosen, 1.0 - room - between))
        if len(found) > MOST_TOGETHER:
            return None
    return found


def _greatest(best: NDArray[np.float64], size: int) -> list[float]:
    """[m]: the most that sets of at most m nodes together can take; best[j] are the largest losses
    of sets of j nodes, each of another set.
    """
    found = [0.0] * (size + 1)
    for j in range(1, size + 1):
        sums = np.cumsum(best[j])
        for m in range(size, j - 1, -1):
            options = [found[m - c * j] + float(sums[c - 1]) for c in range(1, m // j + 1)]
            found[m] = max(found[m], *options)
    return found


def _name_supports(
    hubs: tuple[int, ...],
    pieces: list[tuple[float, tuple[int, ...]]],
    best: NDArray[np.float64],
    size: int,
    enough: float,
    supports: set[tuple[int, ...]],
) -> bool:
    """Add every support of these hubs and pieces of `size` nodes together whose losses reach
    `enough`; False: too many.
    """
    pieces = sorted(pieces, key=lambda piece: -piece[0])
    greatest, steps = _greatest(best, size), 0
    open_sums: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
    while open_sums:
        start, total, nodes = open_sums.pop()
        left = size - len(nodes)
        if left == 0:
            if len(set(nodes)) == size:
                supports.add(tuple(sorted((*hubs, *nodes))))
            if len(supports) > MOST_SUPPORTS:
                return False
            continue
        for number in range(start, len(pieces)):
            loss, own = pieces[number]
            steps += 1
            if steps > 50 * MOST_SUPPORTS:
                return False
            if total + loss * left < enough:  # so are all after it
                break
            if len(own) <= left and total + loss + greatest[left - len(own)] >= enough:
                open_sums.append((number + 1, total + loss, (*nodes, *own)))
    return True


class _Pieces:
    """All connected sets beside the hubs, and what they take from each."""

    def __init__(
        self,
        gram: Gram,
        hubs: NDArray[np.int64],
        whiteners: list[NDArray[np.float64]],
        size: int,
        shift: float,
        deadline: float | None,
    ) -> None:
        nodes = len(gram.sizes)
        rank = np.arange(nodes)
        rank[hubs] = -1  # below every root: neighbours of what is chosen, and never chosen
        number = np.full(nodes, -1, dtype=np.int64)
        number[hubs] = np.arange(len(hubs))
        self.gram = gram._replace(rank=rank, roots=np.flatnonzero(number < 0), target=np.full(nodes, size))
        self.number = number
        sizes = np.array([whitener.size for whitener in whiteners])
        self.whiteners = np.concatenate([whitener.ravel() for whitener in whiteners])
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.size, self.shift, self.deadline = size, shift, deadline
        self.tested = 0

    def walk(
        self, sets: list[_Together], need: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float64] | None, list[Any] | None]:
        """The largest losses by set of hubs and size, and the pieces (set, loss, nodes) above
        `need`; None where a piece has no factor, time ran out, or there are too many.
        """
        need = np.full((len(sets), self.size), np.inf) if need is None else need
        of_hub: list[list[int]] = [[] for _ in range(len(self.starts) - 1)]
        for k, together in enumerate(sets):
            for h in together.hubs:
                of_hub[h].append(k)
        ends = np.concatenate([[0], np.cumsum([len(own) for own in of_hub])]).astype(np.int64)
        members = np.array([k for own in of_hub for k in own], dtype=np.int64)
        memory = new_walk(self.gram, capacity=1)
        levels = memory.solved.shape[0]
        memory = memory._replace(solved=np.zeros((levels, 0)), rest=np.zeros((levels, 0)))
        most = self.size - min(len(together.hubs) for together in sets)
        best = np.full((len(need), self.size, self.size - 1), -np.inf)
        room = MOST_PIECES if np.isfinite(need).any() else 1
        nodes = np.full((room, self.size - 1), -1, dtype=np.int64)
        places, losses = np.zeros(room, dtype=np.int64), np.zeros(room)
        hub = (self.number, self.starts, self.whiteners, ends, members)
        status = PAUSED
        while status == PAUSED:
            status = walk_pieces(self.gram, memory, hub, self.shift, need, best, (nodes, places, losses), most, SLICE)
            if status == PAUSED and self.deadline is not None and time.monotonic() > self.deadline:
                return None, None
        self.tested += int(memory.state[TESTED])
        if status != DONE:
            return None, None
        count = int(memory.state[COUNT])
        rows = (tuple(i for i in row if i >= 0) for row in nodes[:count].tolist())
        return best, list(zip(places[:count].tolist(), losses[:count].tolist(), rows, strict=True))


@kernel
def walk_pieces(
    gram: Gram, w: Any, hub: Any, shift: float, need: Any, best: Any, out: Any, most: int, budget: int
) -> int:
    """Every connected set of up to `most` nodes that are no hubs, once; DONE, PAUSED
    between two roots, or FULL where a set has no factor or `out` is full.
    """
    number, starts, whiteners, ends, members = hub
    nodes, sets, losses = out
    met = np.zeros(len(best), dtype=np.int64)  # the sets of hubs that this piece touches, and what it takes there
    totals = np.zeros(len(best))
    widest = 1
    for i in range(len(gram.sizes)):
        widest = max(widest, gram.sizes[i])
    rows = np.zeros((widest, w.factor.shape[0]))
    stamp = np.full(len(starts), -1, dtype=np.int64)
    counted = np.full(len(best), -1, dtype=np.int64)
    used = 0
    while w.state[ROOT] < len(gram.roots):
        if used >= budget:
            return PAUSED
        root = gram.roots[w.state[ROOT]]
        w.seen[root], w.sound[0], w.offsets[0] = 1, True, 0
        w.begin[1], w.pointer[1] = 0, 0
        w.end[1] = take(gram, w, 0, root, -1, root, shift)
        w.state[DEPTH] = 1
        fresh = True
        while w.state[DEPTH] > 0:
            depth = w.state[DEPTH]
            if fresh:
                if not w.sound[depth]:
                    return FULL
                used += 1
                w.state[TESTED] += 1
                touched = 0
                for level in range(depth):
                    node = w.chosen[level]
                    for e in range(gram.neighbour_starts[node], gram.neighbour_starts[node + 1]):
                        h = number[gram.neighbours[e]]
                        if h < 0 or stamp[h] == w.state[TESTED]:
                            continue
                        stamp[h] = w.state[TESTED]
                        loss = taken(gram, w, depth, gram.neighbours[e], whiteners[starts[h] : starts[h + 1]], rows)
                        for place in range(ends[h], ends[h + 1]):
                            k = members[place]
                            if counted[k] != w.state[TESTED]:
                                counted[k] = w.state[TESTED]
                                totals[k] = 0.0
                                met[touched] = k
                                touched += 1
                            totals[k] += loss
                for t in range(touched):
                    k, loss = met[t], totals[met[t]]
                    place = best.shape[2] - 1
                    if loss > best[k, depth, place]:
                        while place > 0 and best[k, depth, place - 1] < loss:
                            best[k, depth, place] = best[k, depth, place - 1]
                            place -= 1
                        best[k, depth, place] = loss
                    if loss > need[k, depth]:
                        count = w.state[COUNT]
                        if count == len(nodes):
                            return FULL
                        for u in range(depth):
                            nodes[count, u] = w.chosen[u]
                        sets[count], losses[count] = k, loss
                        w.state[COUNT] = count + 1
            if depth < most and w.pointer[depth] < w.end[depth]:
                index = w.pointer[depth]
                w.pointer[depth] = index + 1
                w.begin[depth + 1] = w.end[depth]
                w.end[depth + 1] = take(gram, w, depth, w.stack[index], index, root, shift)
                w.pointer[depth + 1] = index + 1
                w.state[DEPTH] = depth + 1
                fresh = True
            else:
                give_back(gram, w, depth)
                w.state[DEPTH] = depth - 1
                fresh = False
        w.seen[root] = 0
        w.state[ROOT] += 1
    return DONE


@kernel
def taken(gram: Gram, w: Any, depth: int, hub: int, whitener: Any, rows: Any) -> float:
    """A bound on ‖WᵀYᵀYW‖, Y the hub's rows beside the factor of what is chosen."""
    width = gram.sizes[hub]
    length = w.offsets[depth]
    for q in range(width):
        position = 0
        for level in range(depth):
            block = w.edge_at[level, hub]
            for p in range(gram.sizes[w.chosen[level]]):
                value = 0.0
                if block >= 0:
                    value = gram.blocks[block + p * width + q]
                for m in range(w.lead[position], position):
                    value -= w.factor[position, m] * rows[q, m]
                rows[q, position] = value * w.factor[position, position]
                position += 1
    if width == 1:
        total = 0.0
        for p in range(length):
            total += rows[0, p] * rows[0, p]
        return float(total * whitener[0] * whitener[0])
    white = np.zeros((length, width))
    for p in range(length):
        for b in range(width):
            for q in range(width):
                white[p, b] += rows[q, p] * whitener[q * width + b]
    square = np.zeros((width, width))
    for a in range(width):
        for b in range(width):
            for p in range(length):
                square[a, b] += white[p, a] * white[p, b]
    highest = 0.0
    for a in range(width):  # the largest row sum of the square of the square: its norm is at most that
        line = 0.0
        for b in range(width):
            entry = 0.0
            for c in range(width):
                entry += square[a, c] * square[c, b]
            line += abs(entry)
        highest = max(highest, line)
    return float(np.sqrt(highest))
