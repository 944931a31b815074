"""Sparse fields of scalar nodes, large supports: connected growth, cut off by what any completion
can do.

P is a connected set with N_PP > 0, F its undecided neighbours, r the number of nodes to go, K =
N_FP N_PP⁻¹ N_PF. A completion T meets F in A; by the Schur complement onto A, N_{P+T} > 0 exactly
when Σ_T − K_AA > 0, and Σ_T is block diagonal over T's pieces, each at least π·I with π from the
tables (`pieces`). So a harmful T has a centre f ∈ A (Gershgorin's row of the largest entry of the
bad vector) with K_ff + (its t − 1 largest |K_ff'|) ≥ π_f(t), t = |A|. No centre: nothing below P is
harmful. Otherwise branch on the worst centre, then leave it out, and ask again: every harmful set
is met once.

*Capped weights*: with the bad vector scaled to max |v| = 1, each row bounds |v_f| ≤ u_f = min(1,
Σ|K_ff'|u_f'/(π_f − K_ff)); a centre has |v_f| = 1, so u_f = 1 in every sweep. *Distance*: f's piece
holds another attachment only if some other node of F is near enough.

K is one Cholesky, extended node by node: its rounding is a perturbation of N that the shrunk
diagonal pays for (`solvers._gram`).
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.emit import keep_largest
from solvers.kernels.kernel import kernel

SLACK = 1e-11  # of N_ff: covers every rounding of a row sum and of its comparison
SWEEPS = 3
FREE, FRONTIER, CHOSEN, LEFT_OUT = 0, 1, 2, 3


@kernel
def grow(pointer, index, value, diagonal, rank, goal, roots, tables, stop):
    """(roots finished, a harmful set or nothing, tree nodes): connected sets of goal[root] nodes
    through the roots.

    A root sees only nodes of higher rank. tables = (single[e, b], grouped[e, g, m], floors[b]):
    bounds for pieces with one attachment, with several (at most m attachments and g nodes besides),
    and for any piece of b nodes. The search ends at the first harmful set: those roots that were
    finished are proven.
    """
    n = len(diagonal)
    deepest = 0
    for root in roots:
        deepest = max(deepest, goal[root])
    widest = 0
    for i in range(n):
        widest = max(widest, pointer[i + 1] - pointer[i])
    capacity = min(n, widest * max(deepest, 1)) + 1
    levels = deepest + 1
    front = np.empty((levels, capacity), np.int64)
    edge = np.empty((levels, capacity), np.int64)
    coupling = np.empty((levels, capacity, capacity))
    width = np.zeros(levels, np.int64)
    fresh = np.zeros((levels, capacity), np.int64)
    fresh_count = np.zeros(levels, np.int64)
    dropped = np.zeros((levels, capacity), np.int64)
    dropped_count = np.zeros(levels, np.int64)
    chosen = np.full(levels + 1, -1, np.int64)
    state = np.zeros(n, np.int64)
    work = np.empty((4, capacity))
    flags = np.empty(capacity, np.bool_)
    search = (np.full(n, -1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64))
    near = np.empty(capacity, np.int64)
    visited = 0
    for done in range(len(roots)):
        root = roots[done]
        floor = rank[root]
        if not diagonal[root] > 0.0:
            return done, np.array([root]), visited
        if goal[root] == 1:
            continue
        chosen[0] = root
        state[root] = CHOSEN
        level = 0
        _open(
            pointer, index, value, diagonal, rank, floor, state, root, diagonal[root], -1, level, front, edge, coupling,
            width, fresh, fresh_count,
        )  # fmt: skip
        dropped_count[0] = 0
        while level >= 0:
            if stop[0]:
                return done, chosen[:0].copy(), visited
            visited += 1
            left = goal[root] - level - 1
            at = _worst_centre(
                pointer, index, diagonal, rank, floor, state, left, front[level], edge[level], coupling[level],
                width[level], tables, work, flags, search, near,
            )  # fmt: skip
            if at < 0:
                for p in range(dropped_count[level]):
                    state[dropped[level, p]] = FRONTIER
                for p in range(fresh_count[level]):
                    state[fresh[level, p]] = FREE
                level -= 1
                if level >= 0:
                    state[chosen[level + 1]] = LEFT_OUT
                continue
            f = front[level, at]
            pivot = diagonal[f] - coupling[level, at, at]
            chosen[level + 1] = f
            if not pivot > 0.0:
                return done, chosen[: level + 2].copy(), visited
            dropped[level, dropped_count[level]] = f
            dropped_count[level] += 1
            if left > 1:
                state[f] = CHOSEN
                _open(
                    pointer, index, value, diagonal, rank, floor, state, f, pivot, at, level + 1, front, edge, coupling,
                    width, fresh, fresh_count,
                )  # fmt: skip
                dropped_count[level + 1] = 0
            else:
                state[f] = LEFT_OUT
            _remove(front[level], edge[level], coupling[level], width, level, at)
            if left > 1:
                level += 1
        state[root] = FREE
    return len(roots), chosen[:0].copy(), visited


@kernel
def _open(
    pointer, index, value, diagonal, rank, floor, state, node, pivot, at, level, front, edge, coupling, width, fresh,
    fresh_count,
):  # fmt: skip
    """The level below choosing `node` (position `at` of the level above): its frontier and K."""
    count = 0
    target = coupling[level]
    inverse = 1.0 / np.sqrt(pivot)
    if at >= 0:
        above, before = front[level - 1], coupling[level - 1]
        for p in range(width[level - 1]):
            if p != at:
                front[level, count] = above[p]
                edge[level, count] = edge[level - 1, p]
                target[count, count] = -before[p, at]  # for now, the row of the new node
                count += 1
    old = count
    fresh_count[level] = 0
    for e in range(pointer[node], pointer[node + 1]):
        j = index[e]
        if state[j] == FREE and rank[j] > floor:
            state[j] = FRONTIER
            front[level, count] = j
            edge[level, count] = e
            target[count, count] = value[e]
            count += 1
            fresh[level, fresh_count[level]] = j
            fresh_count[level] += 1
        elif state[j] == FRONTIER:
            for p in range(old):
                if front[level, p] == j:
                    target[p, p] += value[e]
                    break
    for p in range(count):
        target[p, p] *= inverse
    if at >= 0:
        before = coupling[level - 1]
        for p in range(old):
            source = p if p < at else p + 1
            y = target[p, p]
            for q in range(p):
                other = q if q < at else q + 1
                total = before[source, other] + y * target[q, q]
                target[p, q] = total
                target[q, p] = total
    else:
        old = 0
    for p in range(old, count):
        y = target[p, p]
        for q in range(p):
            total = y * target[q, q]
            target[p, q] = total
            target[q, p] = total
    for p in range(count):
        y = target[p, p]
        total = y * y
        if p < old:
            source = p if p < at else p + 1
            total += coupling[level - 1, source, source]
        target[p, p] = total
    width[level] = count


@kernel
def _remove(front, edge, coupling, width, level, at):
    """Take position `at` out: the last one moves there."""
    last = width[level] - 1
    if at != last:
        front[at] = front[last]
        edge[at] = edge[last]
        for q in range(last):
            if q != at:
                coupling[at, q] = coupling[last, q]
                coupling[q, at] = coupling[last, q]
        coupling[at, at] = coupling[last, last]
    width[level] = last


@kernel
def _worst_centre(
    pointer, index, diagonal, rank, floor, state, left, front, edge, coupling, width, tables, work, flags, search, near
):
    """The position of the worst centre of the frontier; −1: no completion by `left` nodes is
    harmful.
    """
    cap, other = work[0], work[1]
    for p in range(width):
        cap[p] = 1.0
        near[p] = 0
    looked = False
    at = -1
    for sweep in range(SWEEPS):
        at, worst = -1, 0.0
        for p in range(width):
            if cap[p] < 1.0 and sweep + 1 == SWEEPS:
                other[p] = cap[p]
                continue
            ratio = _ratio(diagonal, left, front, edge, coupling, width, tables, cap, p, near[p], work[2])
            if ratio >= 1.0 and not looked and left > 1:
                _distances(pointer, index, rank, floor, state, left, front, width, search, near)
                looked = True
                ratio = _ratio(diagonal, left, front, edge, coupling, width, tables, cap, p, near[p], work[2])
            other[p] = min(1.0, ratio)
            if ratio >= 1.0 and ratio > worst and cap[p] >= 1.0:
                at, worst = p, ratio
        if at < 0:
            return -1
        for p in range(width):
            cap[p] = min(cap[p], other[p])
    return at


@kernel
def _ratio(diagonal, left, front, edge, coupling, width, tables, cap, p, near, best):
    """max over t of Σ|K_pq|u_q / (π_p(t) − K_pp), with all roundings against us; 1 or more: p may
    be a centre.
    """
    single, grouped, floors = tables
    known = grouped.shape[1]
    e = edge[p]
    slack = SLACK * diagonal[front[p]]
    own = coupling[p, p] + slack
    room = single[e, left] - own
    if not room > 0.0:
        return np.inf
    top = min(left - 1, width - 1)
    for t in range(top):
        best[t] = 0.0
    row = coupling[p]
    for q in range(width):
        if q != p:
            keep_largest(best, top, abs(row[q]) * cap[q])
    ratio, total = 0.0, 0.0
    for t in range(2, top + 2):  # t attachments, this one included
        total += best[t - 2]
        gap = left - t
        least = single[e, gap + 1]
        if near <= gap + 1:  # another attachment may lie in the same piece
            inside = min(t, known - gap)
            if inside >= 2:
                least = min(least, grouped[e, gap, inside])
            if t > inside:
                least = min(least, floors[left])
        room = least - own
        if not room > 0.0:
            return np.inf
        ratio = max(ratio, (total * (1.0 + 1e-12) + slack) / room)
    return ratio * (1.0 + 1e-12)


@kernel
def _distances(pointer, index, rank, floor, state, left, front, width, search, near):
    """near[p]: steps from front[p] to the nearest other frontier node through what may still be
    chosen.
    """
    distance, label, queue = search
    for p in range(width):
        near[p] = left + 1
        distance[front[p]] = 0
        label[front[p]] = p
        queue[p] = front[p]
    head, tail = 0, width
    deepest = (left - 1) // 2
    while head < tail:
        x = queue[head]
        head += 1
        for e in range(pointer[x], pointer[x + 1]):
            y = index[e]
            if distance[y] >= 0:
                if label[y] != label[x]:
                    apart = distance[x] + distance[y] + 1
                    near[label[x]] = min(near[label[x]], apart)
                    near[label[y]] = min(near[label[y]], apart)
            elif distance[x] < deepest and state[y] == FREE and rank[y] > floor:
                distance[y] = distance[x] + 1
                label[y] = label[x]
                queue[tail] = y
                tail += 1
    for p in range(tail):
        distance[queue[p]] = -1
