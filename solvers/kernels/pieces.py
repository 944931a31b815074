"""Tables of pieces: how much of a node is left when what hangs on it is eliminated too
(docs/algorithms.md, larger k).

Let P be chosen nodes, u one of them, f a neighbour of u. A completion of P falls into pieces, and
f's piece T is a connected set that holds f and avoids u. What matters of T is its Schur complement
Σ onto the nodes A that touch P ("attachments"): λ_min(Σ) = 1/λ_max((N_T⁻¹)_AA). Per directed edge u
→ f the tables hold lower bounds on it over all T of at most b nodes: `single[e, b]` when f is the
only attachment, `several[e, b, m]` when there are at most m, up to `largest` nodes by going through
every connected T once. Beyond, `extend_by_trees` goes on exactly where no cycle closes.

Rigour. T's Cholesky runs through on the shrunk matrix (see `solvers._gram`), so N_T is positive
definite; its inverse W is a float matrix whose residual I − N_T·W is bounded together with its
rounding, which bounds every entry of the true inverse; and λ_max(W_AA) is at most max_i (|W_AA|
x)_i / x_i for any positive x (Collatz), here after two power steps. No eigenvalue is computed, and
nothing depends on a gap between two of them.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel

MOST = 4  # attachments told apart; more are bounded by all of T's boundary
ROOM = 1e-12  # relative: the few roundings after a bound is formed
UNIT = 2.0**-53


@kernel
def reverse_edges(pointer, index):
    """For every directed edge i → j the place of j → i (rows are sorted)."""
    result = np.empty(len(index), np.int64)
    for i in range(len(pointer) - 1):
        for e in range(pointer[i], pointer[i + 1]):
            j = index[e]
            result[e] = pointer[j] + np.searchsorted(index[pointer[j] : pointer[j + 1]], i)
    return result


@kernel
def count_sets(pointer, index, size, step, most):
    """How many connected sets of `size` nodes have their smallest node at 0, step, 2·step, …;
    counting ends above `most`.
    """
    n = len(pointer) - 1
    stack = np.empty(n + 1, np.int64)
    seen = np.zeros(n, np.bool_)
    ends = np.zeros(size + 1, np.int64)
    place = np.zeros(size + 1, np.int64)
    total = 0
    for root in range(0, n, step):
        if size == 1:
            total += 1
            continue
        stack[0] = root
        seen[root] = True
        ends[0] = 1
        place[0] = -1
        level = 0
        while level >= 0:
            here = place[level] + 1
            if here >= ends[level] or (level == 0 and here > 0):
                level -= 1
                if level >= 0:
                    for p in range(ends[level], ends[level + 1]):
                        seen[stack[p]] = False
                continue
            place[level] = here
            end = ends[level]
            for e in range(pointer[stack[here]], pointer[stack[here] + 1]):
                if index[e] > root and not seen[index[e]]:
                    seen[index[e]] = True
                    stack[end] = index[e]
                    end += 1
            ends[level + 1] = end
            if level + 2 == size:  # each open candidate completes a set
                total += end - here - 1
                for p in range(ends[level], end):
                    seen[stack[p]] = False
                if total > most:
                    return total
                continue
            place[level + 1] = here
            level += 1
        seen[root] = False
    return total


@kernel
def affordable_pieces(pointer, index, largest, most):
    """The largest size, at most `largest` and at least 1, up to which there are no more than `most`
    connected sets.
    """
    total = 0
    for size in range(1, largest + 1):
        total += count_sets(pointer, index, size, 1, most - total)
        if total > most:
            return max(size - 1, 1)
    return largest


@kernel
def piece_tables(pointer, index, value, diagonal, reverse, largest, stop):
    """(single, several, harmful): the tables, and a set of nodes that is not positive definite
    (empty: none is).

    N is (pointer, index, value) off the diagonal and `diagonal`, both directions of an edge
    present. When a harmful set is found, or stop[0] is set, the tables are not complete.
    """
    n, edges = len(diagonal), len(index)
    single = np.full((edges, largest + 1), np.inf)
    several = np.full((edges, largest + 1, MOST + 2), np.inf)
    stack = np.empty(n + 1, np.int64)
    seen = np.zeros(n, np.bool_)
    at = np.full(n, -1, np.int64)
    ends = np.zeros(largest + 2, np.int64)
    place = np.zeros(largest + 2, np.int64)
    chosen = np.full(largest + 1, -1, np.int64)
    block = np.zeros((largest, largest))
    lower = np.zeros((largest, largest))
    inverse = np.zeros((largest, largest))
    weight = np.zeros((largest, largest, largest))
    best = np.empty((largest, MOST + 2))
    work = np.empty((2, largest))
    for root in range(n):
        if stop[0]:
            break
        stack[0] = root
        seen[root] = True
        ends[0] = 1
        place[0] = -1
        chosen[0] = -1
        level = 0
        while level >= 0:
            here = place[level] + 1
            if chosen[level] >= 0:
                at[chosen[level]] = -1
            if here >= ends[level] or (level == 0 and here > 0):
                chosen[level] = -1
                level -= 1
                if level >= 0:
                    for p in range(ends[level], ends[level + 1]):
                        seen[stack[p]] = False
                continue
            place[level] = here
            node = stack[here]
            chosen[level] = node
            at[node] = level
            if not _append(pointer, index, value, diagonal, node, level, at, block, lower, inverse, weight):
                return single, several, chosen[: level + 1].copy()
            _record(pointer, index, reverse, level + 1, chosen, at, block, weight[level], best, work, single, several)
            if level + 1 == largest:
                continue
            end = ends[level]
            for e in range(pointer[node], pointer[node + 1]):
                if index[e] > root and not seen[index[e]]:
                    seen[index[e]] = True
                    stack[end] = index[e]
                    end += 1
            ends[level + 1] = end
            place[level + 1] = here
            level += 1
            chosen[level] = -1
        seen[root] = False
    for e in range(edges):
        for b in range(2, largest + 1):
            single[e, b] = min(single[e, b], single[e, b - 1])
            for m in range(2, MOST + 2):
                several[e, b, m] = min(several[e, b, m], several[e, b - 1, m], several[e, b, m - 1])
    return single, several, chosen[:0].copy()


@kernel
def _append(pointer, index, value, diagonal, node, level, at, block, lower, inverse, weight):
    """Extend N_T, its Cholesky factor and its inverse by a node; False: the pivot is not
    positive.
    """
    for t in range(level):
        block[level, t] = 0.0
        block[t, level] = 0.0
    block[level, level] = diagonal[node]
    for e in range(pointer[node], pointer[node + 1]):
        t = at[index[e]]
        if t >= 0:
            block[level, t] = value[e]
            block[t, level] = value[e]
    pivot = diagonal[node]
    for i in range(level):
        y = block[level, i]
        for j in range(i):
            y -= lower[i, j] * lower[level, j]
        y /= lower[i, i]
        lower[level, i] = y
        pivot -= y * y
    if not pivot > 0.0:
        return False
    root = np.sqrt(pivot)
    lower[level, level] = root
    z = inverse[level]
    for j in range(level):
        total = 0.0
        for i in range(j, level):
            total += lower[level, i] * inverse[i, j]
        z[j] = -total / root
    z[level] = 1.0 / root
    w = weight[level]
    for i in range(level):
        for j in range(level):
            w[i, j] = weight[level - 1, i, j] + z[i] * z[j]
    for j in range(level + 1):
        w[level, j] = z[level] * z[j]
        w[j, level] = w[level, j]
    return True


@kernel
def _entry_error(block, weight, size):
    """A bound on |(N_T⁻¹ − W)_ij|; infinite where the residual is too large to say."""
    residual, of_block, of_weight = 0.0, 0.0, 0.0
    for i in range(size):
        for j in range(size):
            total = -1.0 if i == j else 0.0
            for t in range(size):
                total += block[i, t] * weight[t, j]
            residual += total * total
            of_block += block[i, j] * block[i, j]
            of_weight += weight[i, j] * weight[i, j]
    length = np.sqrt(of_weight)
    rho = np.sqrt(residual) * (1.0 + 1e-9) + 32.0 * (size + 2) ** 2 * UNIT * np.sqrt(of_block) * length
    return 1.01 * length * rho if rho < 1e-3 else np.inf


@kernel
def _record(pointer, index, reverse, size, chosen, at, block, weight, best, work, single, several):
    """Enter one T into the tables of all edges that lead into it."""
    error = _entry_error(block, weight, size)
    edge = np.empty(size, np.int64)  # positions on T's boundary
    wide = 0
    for p in range(size):
        node = chosen[p]
        for e in range(pointer[node], pointer[node + 1]):
            if at[index[e]] < 0:
                edge[wide] = p
                wide += 1
                break
    for p in range(size):
        for m in range(MOST + 2):
            best[p, m] = np.inf
    if wide > 1:
        for mask in range(3, 1 << wide):
            bits = 0
            for i in range(wide):
                bits += (mask >> i) & 1
            if bits < 2 or (bits > MOST and bits < wide):
                continue
            least = 0.0
            if error < np.inf:
                least = 1.0 / _radius(weight, edge, mask, wide, bits, error, work) * (1.0 - ROOM)
            m = min(bits, MOST + 1)
            for i in range(wide):
                if (mask >> i) & 1:
                    best[edge[i], m] = min(best[edge[i], m], least)
    for i in range(wide):
        p = edge[i]
        node = chosen[p]
        alone = 1.0 / (weight[p, p] + error) * (1.0 - ROOM)
        for e in range(pointer[node], pointer[node + 1]):
            if at[index[e]] < 0:
                back = reverse[e]
                single[back, size] = min(single[back, size], alone)
                for m in range(2, MOST + 2):
                    several[back, size, m] = min(several[back, size, m], best[p, m])


@kernel
def _radius(weight, edge, mask, wide, bits, error, work):
    """The spectral radius of |W_AA| from above, A = the positions of the mask."""
    if bits == 2:
        first = -1
        second = -1
        for i in range(wide):
            if (mask >> i) & 1:
                if first < 0:
                    first = edge[i]
                else:
                    second = edge[i]
        a, b, c = weight[first, first], weight[second, second], abs(weight[first, second])
        return (0.5 * (a + b) + np.sqrt(0.25 * (a - b) * (a - b) + c * c)) * (1.0 + ROOM) + 2.0 * error
    x, y = work[0], work[1]
    for i in range(wide):
        x[i] = 1.0
    worst = np.inf
    for _ in range(3):
        worst = 0.0
        for i in range(wide):
            if (mask >> i) & 1:
                total = 0.0
                for j in range(wide):
                    if (mask >> j) & 1:
                        total += (abs(weight[edge[i], edge[j]]) + error) * x[j]
                y[i] = total
                worst = max(worst, total / x[i])
        top = 0.0
        for i in range(wide):
            if (mask >> i) & 1:
                top = max(top, y[i])
        for i in range(wide):
            if (mask >> i) & 1:
                x[i] = max(y[i] / top, 1e-9)
    return worst * (1.0 + ROOM)


@kernel
def shortest_cycles(pointer, index, most):
    """For every edge u → f: nodes of the shortest cycle through f that avoids u, or a number above
    `most`.
    """
    n = len(pointer) - 1
    result = np.full(len(index), most + 1, np.int64)
    distance = np.full(n, -1, np.int64)
    label = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    for u in range(n):
        for e in range(pointer[u], pointer[u + 1]):
            f = index[e]
            shortest = most + 1
            distance[f] = 0
            label[f] = -1
            queue[0] = f
            head, tail = 0, 1
            while head < tail:
                x = queue[head]
                head += 1
                if 2 * distance[x] + 1 >= shortest:
                    break
                for g in range(pointer[x], pointer[x + 1]):
                    y = index[g]
                    if y in (u, f):
                        continue
                    if distance[y] < 0:
                        distance[y] = distance[x] + 1
                        label[y] = y if x == f else label[x]
                        queue[tail] = y
                        tail += 1
                    elif x != f and label[y] != label[x]:
                        shortest = min(shortest, distance[x] + distance[y] + 1)
                    elif x == f:
                        continue
            for p in range(tail):
                distance[queue[p]] = -1
            result[e] = shortest
    return result


@kernel
def extend_by_trees(pointer, index, value, diagonal, single, cycles, floors):
    """`single` for pieces of more nodes than were gone through, up to len(floors) − 1.

    Where no cycle through f fits into b nodes, what hangs on f falls into pieces behind its
    neighbours, disjoint and not adjacent: N_ff − max Σ N_fj²/single[f → j, b_j] over Σ b_j ≤ b − 1,
    a knapsack. Elsewhere floors[b], a bound for any piece.
    """
    n, edges, known = len(diagonal), len(index), single.shape[1] - 1
    most = len(floors) - 1
    result = np.full((edges, most + 1), np.inf)
    for e in range(edges):
        for b in range(1, min(known, most) + 1):
            result[e, b] = single[e, b]
    load = np.empty(most + 1)
    for b in range(known + 1, most + 1):
        for u in range(n):
            for e in range(pointer[u], pointer[u + 1]):
                f = index[e]
                if cycles[e] <= b:
                    result[e, b] = min(result[e, b - 1], floors[b])
                    continue
                for t in range(b):
                    load[t] = 0.0
                for g in range(pointer[f], pointer[f + 1]):
                    if index[g] == u:
                        continue
                    square = value[g] * value[g]
                    for t in range(b - 1, 0, -1):
                        for taken in range(1, t + 1):
                            rest = result[g, taken]
                            gain = square / rest if rest > 0.0 else np.inf
                            load[t] = max(load[t], load[t - taken] + gain)
                left = diagonal[f] - load[b - 1] * (1.0 + ROOM)
                result[e, b] = min(result[e, b - 1], left - ROOM * (abs(diagonal[f]) + load[b - 1]))
    return result
