"""What the connected pieces beside a few hubs can take from them.

A hub is a node with so many neighbours that supports through it can't be gone through one by one.
Eliminate all of a support but its hubs: what is left of their block is N − Σ ŶᵀŶ, a term for every
connected piece P of the rest, with Ŷ = L⁻¹G_PK and L the Cholesky factor of G_PP − θ. Pieces are
few, since hubs are not in them, and each is met once, grown from its smallest node; its factor is
extended by one node per step.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.emit import keep_largest
from solvers.kernels.kernel import kernel

WIDTH, TOUCHED = 0, 1  # slots of the state: rows of the factor, hubs that touch the piece


@kernel
def hub_pieces(adjacent, neighbour, offsets, couplings, diagonal, rest, hubs, sets, need, roots, stop, best, out, bad):
    """For every set of hubs and every size, the most that pieces of that size take from it.

    (adjacent, neighbour) are the nodes that share a row, couplings the off-diagonal part of N over
    coordinates as CSR, diagonal the rest of it; rest[v] is whether v is no hub. hubs = (place,
    start): the place of a coordinate among those of the hubs (−1: of no hub), and where each hub's
    begin.
    sets = (pointer, number, where, members, start, weights): the sets that a hub is in, the places
    of each set, and the matrix W that whitens its block. best[k, m] are the largest shares of
    pieces of m nodes. Pieces with a share above need[k, m] go to out = (nodes, set, share), and
    those that can't be eliminated to bad. Returns (roots finished, pieces written, bad ones).
    """
    n = len(offsets) - 1
    nodes_out, set_out, share_out = out
    most = best.shape[1] - 1
    widest = 1
    for i in range(n):
        widest = max(widest, offsets[i + 1] - offsets[i])
    rows = most * widest
    factor = np.zeros((rows, rows))
    hub_start = hubs[1]
    seen_by = np.zeros((rows, hub_start[-1]))  # Ŷ, a column per place; zeros for hubs that do not touch the piece
    row = np.zeros(hub_start[-1])
    place = np.full(offsets[n], -1, np.int64)
    state = np.zeros(2, np.int64)
    touched = np.zeros(len(hub_start), np.int64)
    is_touched = np.zeros(len(hub_start), np.bool_)
    stamp = np.full(len(best), -1, np.int64)
    node = np.empty(n + 1, np.int64)
    listed = np.zeros(n, np.bool_)
    chosen = np.empty(most + 1, np.int64)
    ends = np.zeros(most + 2, np.int64)
    widths = np.zeros(most + 2, np.int64)
    before = np.zeros(most + 2, np.int64)
    met, count, wrong = 0, 0, 0
    for done in range(len(roots)):
        root = roots[done]
        node[0], ends[0], chosen[0], level = root, 1, -1, 0
        listed[root] = True
        while level >= 0:
            position = chosen[level] + 1
            if stop[0] or count > len(nodes_out) or wrong == len(bad):
                return done, count, wrong
            if position >= ends[level] or (level == 0 and position > 0):
                level -= 1
                if level >= 0:
                    for p in range(ends[level], ends[level + 1]):
                        listed[node[p]] = False
                    last = node[chosen[level]]
                    _take_back(
                        state,
                        (widths[level], before[level]),
                        offsets,
                        last,
                        place,
                        hub_start,
                        touched,
                        is_touched,
                        seen_by,
                    )
                continue
            chosen[level] = position
            new = node[position]
            widths[level], before[level] = state[WIDTH], state[TOUCHED]
            sound = _append(
                offsets, couplings, diagonal, hubs, new, state, factor, seen_by, row, place, touched, is_touched
            )
            size = level + 1
            if sound:
                met += 1
                for t in range(state[TOUCHED]):
                    for e in range(sets[0][touched[t]], sets[0][touched[t] + 1]):
                        k = sets[1][e]
                        if stamp[k] == met:
                            continue
                        stamp[k] = met
                        share = _share(seen_by, state[WIDTH], sets, k)
                        keep_largest(best[k, size], best.shape[2], share)
                        if share > need[k, size]:
                            if count < len(nodes_out):
                                for u in range(nodes_out.shape[1]):
                                    nodes_out[count, u] = node[chosen[u]] if u < size else -1
                                set_out[count] = k
                                share_out[count] = share
                            count += 1
            else:
                for u in range(bad.shape[1]):
                    bad[wrong, u] = node[chosen[u]] if u < size else -1
                wrong += 1
            if not sound or size == most:
                _take_back(
                    state, (widths[level], before[level]), offsets, new, place, hub_start, touched, is_touched, seen_by
                )
                continue
            end = ends[level]
            for e in range(adjacent[new], adjacent[new + 1]):
                other = neighbour[e]
                if other > root and rest[other] and not listed[other]:
                    listed[other] = True
                    node[end] = other
                    end += 1
            ends[level + 1] = end
            level += 1
            chosen[level] = position
        listed[root] = False
    return len(roots), count, wrong


@kernel
def _append(offsets, couplings, diagonal, hubs, new, state, factor, seen_by, row, place, touched, is_touched):
    """Extend factor and Ŷ by the coordinates of a node; False at a pivot that is not positive."""
    pointer, index, value = couplings
    hub_place, hub_start = hubs
    for column in range(offsets[new], offsets[new + 1]):
        width = state[WIDTH]
        for j in range(width):
            factor[width, j] = 0.0
        for e in range(pointer[column], pointer[column + 1]):
            other = index[e]
            if place[other] >= 0:
                factor[width, place[other]] = value[e]
            elif hub_place[other] >= 0:
                row[hub_place[other]] = value[e]
                hub = np.searchsorted(hub_start, hub_place[other], side="right") - 1
                if not is_touched[hub]:
                    is_touched[hub] = True
                    touched[state[TOUCHED]] = hub
                    state[TOUCHED] += 1
        pivot = diagonal[column]
        for j in range(width):
            total = factor[width, j]
            for t in range(j):
                total -= factor[width, t] * factor[j, t]
            total /= factor[j, j]
            factor[width, j] = total
            pivot -= total * total
        sound = pivot > 0.0
        root = np.sqrt(pivot) if sound else 1.0
        factor[width, width] = root
        for h in range(state[TOUCHED]):
            for p in range(hub_start[touched[h]], hub_start[touched[h] + 1]):
                total = row[p]
                row[p] = 0.0
                for t in range(width):
                    total -= factor[width, t] * seen_by[t, p]
                seen_by[width, p] = total / root
        if not sound:
            return False
        place[column] = width
        state[WIDTH] = width + 1
    return True


@kernel
def _take_back(state, kept, offsets, node, place, hub_start, touched, is_touched, seen_by):
    """Undo `_append`: hubs that only this node touched have columns of zeros again."""
    width, before = kept
    for column in range(offsets[node], offsets[node + 1]):
        place[column] = -1
    for t in range(before, state[TOUCHED]):
        is_touched[touched[t]] = False
        for p in range(hub_start[touched[t]], hub_start[touched[t] + 1]):
            seen_by[:, p] = 0.0
    state[WIDTH], state[TOUCHED] = width, before


@kernel
def _share(seen_by, width, sets, k):
    """λ_max(WᵀŶᵀŶW), or a bound on it that is tight where this is a multiple of the identity."""
    where, members, start, weights = sets[2], sets[3], sets[4], sets[5]
    first, count = where[k], where[k + 1] - where[k]
    if count == 1:
        total, p = 0.0, members[first]
        for t in range(width):
            total += seen_by[t, p] * seen_by[t, p]
        return total * weights[start[k]] * weights[start[k]]
    turned = np.zeros((width, count))
    for t in range(width):
        for a in range(count):
            held = seen_by[t, members[first + a]]
            if held != 0.0:
                for b in range(count):
                    turned[t, b] += held * weights[start[k] + a * count + b]
    total = 0.0
    for t in range(width):
        for b in range(count):
            total += turned[t, b] * turned[t, b]
    if width == 1 or total == 0.0:
        return total
    square = np.zeros((count, count))
    for a in range(count):
        for b in range(count):
            for t in range(width):
                square[a, b] += turned[t, a] * turned[t, b]
            square[a, b] /= total
    for _ in range(2):
        last = square.copy()
        for a in range(count):
            for b in range(count):
                dot = 0.0
                for c in range(count):
                    dot += last[a, c] * last[c, b]
                square[a, b] = dot
    norm = 0.0
    for a in range(count):
        line = 0.0
        for b in range(count):
            line += abs(square[a, b])
        norm = max(norm, line)
    return min(total, total * np.sqrt(np.sqrt(norm)))
