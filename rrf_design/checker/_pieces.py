"""The verifier's own tables for large supports: what a piece that hangs on a chosen set can take
away from it.

N is the Gram matrix minus the shift. f is a node beside a chosen node u, T a connected set that
holds f and not u (a piece), A the nodes of T that touch chosen ones, Σ the Schur complement of N_TT
onto A. The pivot p_f that f has when it comes last in a factorisation of N_TT is 1/(N_TT⁻¹)_ff. So
λ_min(Σ) = p_f when A = {f}, and else, since the largest eigenvalue is at most the trace, λ_min(Σ) ≥
1/Σ_{g∈A} 1/p_g. Both are lower bounds in exact arithmetic as soon as the diagonal has room for the
rounding of one factorisation: pivots of a perturbed N that is nowhere larger. Per directed edge u →
f, `alone[e, b]` and `among[e, b, m]` are the least such bounds over all T of at most b nodes and at
most m nodes in A.

Beyond the sizes that are gone through, `lengthen` uses that pieces behind different neighbours of f
are apart where no cycle closes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker.kernel import kernel

TOLD_APART = 4  # attachments; with more, all of T's boundary counts
DOWN = 1.0 - 1e-12  # relative room for the last few roundings of a bound


class Links(NamedTuple):
    """N along the edges of the field; every edge in both directions, neighbours ascending."""

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    entries: NDArray[np.float64]  # N_ij
    pivots: NDArray[np.float64]  # N_ii, lowered for all rounding
    backward: NDArray[np.int64]  # where the same edge stands the other way round


class Pieces(NamedTuple):
    alone: NDArray[np.float64]  # (edges, sizes)
    among: NDArray[np.float64]  # (edges, sizes, TOLD_APART + 2)
    broken: NDArray[np.int64]  # a set that is not definite itself; empty: there is none


@kernel
def backward_edges(starts: Any, neighbours: Any) -> Any:
    found = np.empty(len(neighbours), np.int64)
    position = starts[:-1].copy()
    for i in range(len(starts) - 1):  # rows ascend, so the edges into j turn up in the order of j's own row
        for e in range(starts[i], starts[i + 1]):
            found[e] = position[neighbours[e]]
            position[neighbours[e]] += 1
    return found


@kernel
def last_pivot(block: Any, size: int, last: int, factor: Any) -> float:
    """The pivot of position `last` when it is eliminated after all others; not positive: the block
    is not definite.
    """
    for row in range(size):
        i = last if row == size - 1 else (row if row < last else row + 1)
        total = block[i, i]
        for column in range(row):
            value = block[i, column if column < last else column + 1]
            for t in range(column):
                value -= factor[row, t] * factor[column, t]
            value /= factor[column, column]
            factor[row, column] = value
            total -= value * value
        if not total > 0.0:
            return 0.0
        factor[row, row] = np.sqrt(total)
    return float(factor[size - 1, size - 1] * factor[size - 1, size - 1] * DOWN)


@kernel
def enter(graph: Links, members: Any, size: int, inside: Any, inverse: Any, pieces: Pieces) -> None:
    """Write one piece into the tables; inverse[p] = 1/p_f for its members."""
    starts, neighbours, backward = graph.starts, graph.neighbours, graph.backward
    edge = np.empty(size)
    on_edge = np.zeros(size, np.bool_)
    count = 0
    for p in range(size):
        for e in range(starts[members[p]], starts[members[p] + 1]):
            on_edge[p] = on_edge[p] or inside[neighbours[e]] < 0
        if on_edge[p]:
            edge[count] = inverse[p]
            count += 1
    heaviest = -np.sort(-edge[:count])
    for p in range(size):
        if not on_edge[p]:
            continue
        bound = np.empty(TOLD_APART + 2)
        total, taken, skipped = inverse[p], 1, False
        for t in range(count):
            if not skipped and heaviest[t] == inverse[p]:
                skipped = True
                continue
            total += heaviest[t]
            taken += 1
            if taken <= TOLD_APART + 1:
                bound[taken] = DOWN / total
        for m in range(2, TOLD_APART + 2):
            if m > taken:
                bound[m] = np.inf
        if taken > TOLD_APART:
            bound[TOLD_APART + 1] = DOWN / total
        for e in range(starts[members[p]], starts[members[p] + 1]):
            if inside[neighbours[e]] < 0:
                back = backward[e]
                pieces.alone[back, size] = min(pieces.alone[back, size], DOWN / inverse[p])
                for m in range(2, TOLD_APART + 2):
                    pieces.among[back, size, m] = min(pieces.among[back, size, m], bound[m])


@kernel
def tabulate(graph: Links, largest: int, most: int) -> Pieces:
    """Go through every connected set of at most `largest` nodes, each from its smallest node.

    When there are more than `most` of them, all of this is given up, and `broken` is −1.
    """
    nodes, edges = len(graph.pivots), len(graph.neighbours)
    pieces = Pieces(
        np.full((edges, largest + 1), np.inf), np.full((edges, largest + 1, TOLD_APART + 2), np.inf),
        np.empty(0, np.int64),
    )  # fmt: skip
    queue = np.empty(nodes + 1, np.int64)
    known = np.zeros(nodes, np.bool_)
    inside = np.full(nodes, -1, np.int64)
    ends = np.zeros(largest + 1, np.int64)
    at = np.zeros(largest + 1, np.int64)
    members = np.empty(largest, np.int64)
    block, factor, inverse = np.zeros((largest, largest)), np.zeros((largest, largest)), np.empty(largest)
    met = 0
    for root in range(nodes):
        queue[0], known[root], ends[0], at[0], size = root, True, 1, 0, 0
        while True:
            if at[size] >= ends[size] or (size == 0 and at[0] > 0):
                if size == 0:
                    break
                size -= 1  # the last member goes, and with it the candidates it brought
                inside[members[size]] = -1
                for q in range(ends[size], ends[size + 1] if size + 1 < largest else ends[size]):
                    known[queue[q]] = False
                continue
            met += 1
            if met > most:
                return Pieces(pieces.alone, pieces.among, np.full(1, -1, np.int64))
            node = queue[at[size]]
            at[size] += 1
            members[size] = node
            inside[node] = size
            block[size, :size] = 0.0
            block[:size, size] = 0.0
            block[size, size] = graph.pivots[node]
            for e in range(graph.starts[node], graph.starts[node + 1]):
                other = inside[graph.neighbours[e]]
                if other >= 0 and other != size:
                    block[size, other] = block[other, size] = graph.entries[e]
            for p in range(size + 1):
                pivot = last_pivot(block, size + 1, p, factor)
                if not pivot > 0.0:
                    return Pieces(pieces.alone, pieces.among, members[: size + 1].copy())
                inverse[p] = (1.0 / DOWN) / pivot
            enter(graph, members, size + 1, inside, inverse, pieces)
            if size + 1 == largest:
                inside[node] = -1
                continue
            fill = ends[size]
            for e in range(graph.starts[node], graph.starts[node + 1]):
                other = graph.neighbours[e]
                if other > root and not known[other]:
                    known[other] = True
                    queue[fill] = other
                    fill += 1
            ends[size + 1] = fill
            at[size + 1] = at[size]
            size += 1
        known[root] = False
    for b in range(2, largest + 1):
        for e in range(edges):
            pieces.alone[e, b] = min(pieces.alone[e, b], pieces.alone[e, b - 1])
            for m in range(2, TOLD_APART + 2):
                least = min(pieces.among[e, b, m], pieces.among[e, b - 1, m])
                pieces.among[e, b, m] = min(least, pieces.among[e, b, m - 1]) if m > 2 else least
    return pieces


@kernel
def girths(graph: Links, most: int) -> Any:
    """For every edge u → f the nodes of a shortest cycle through f that leaves out u; above `most`:
    none that short.
    """
    nodes = len(graph.pivots)
    found = np.full(len(graph.neighbours), most + 1, np.int64)
    depth, branch, queue = np.full(nodes, -1, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for u in range(nodes):
        for e in range(graph.starts[u], graph.starts[u + 1]):
            f = graph.neighbours[e]
            depth[f], depth[u], fill = 0, most + 2, 0
            for g in range(graph.starts[f], graph.starts[f + 1]):
                child = graph.neighbours[g]
                if child != u:
                    depth[child], branch[child], queue[fill] = 1, fill, child
                    fill += 1
            head = 0
            while head < fill and 2 * depth[queue[head]] + 1 < found[e]:
                x = queue[head]
                head += 1
                for g in range(graph.starts[x], graph.starts[x + 1]):
                    y = graph.neighbours[g]
                    if y in (u, f):
                        continue
                    if depth[y] < 0:
                        depth[y], branch[y], queue[fill] = depth[x] + 1, branch[x], y
                        fill += 1
                    elif branch[y] != branch[x]:
                        found[e] = min(found[e], depth[x] + depth[y] + 1)
            depth[f] = depth[u] = -1
            for q in range(fill):
                depth[queue[q]] = -1
    return found


@kernel
def lengthen(graph: Links, alone: Any, girth: Any, least: Any) -> Any:
    """`alone` up to len(least) − 1 nodes: N_ff minus the most that pieces behind f's other
    neighbours can take, where no cycle through f fits into b nodes; else least[b], which holds for
    every set of b nodes.
    """
    known, most = alone.shape[1] - 1, len(least) - 1
    result = np.full((len(alone), most + 1), np.inf)
    result[:, : min(known, most) + 1] = alone[:, : min(known, most) + 1]
    for b in range(known + 1, most + 1):
        for u in range(len(graph.pivots)):
            for e in range(graph.starts[u], graph.starts[u + 1]):
                f = graph.neighbours[e]
                if girth[e] <= b:
                    result[e, b] = min(result[e, b - 1], least[b])
                    continue
                taken = np.zeros(b)  # taken[n]: at most this with n nodes behind the neighbours so far
                for g in range(graph.starts[f], graph.starts[f + 1]):
                    if graph.neighbours[g] != u:
                        for n in range(b - 1, 0, -1):
                            for own in range(1, n + 1):
                                left = result[g, own]
                                pull = graph.entries[g] * graph.entries[g] / left if left > 0.0 else np.inf
                                taken[n] = max(taken[n], taken[n - own] + pull)
                loss = taken[b - 1]
                result[e, b] = min(result[e, b - 1], graph.pivots[f] - loss - 1e-12 * (abs(graph.pivots[f]) + loss))
    return result
