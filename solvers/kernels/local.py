"""A good first incumbent: grow a support along its own witness, then swap nodes while that helps.

(pointer, index, value) are the off-diagonal nonzeros of Ĝ over coordinates, diagonal the rest;
owner is the node of each.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.emit import added, keep_largest
from solvers.kernels.kernel import kernel

MOST_SWAPS = 1000  # from one start: rounding must not go in circles


@kernel
def star_scores(pointer, index, value, owner, dims, diagonal, top):
    """For every node a cheap guess of how low a support through it can go.

    Scalar nodes: what eliminating its `top` most harmful neighbours would leave of its own pivot.
    Blocks: least diagonal minus the `top` largest couplings.
    """
    n = len(dims)
    score = np.empty(n)
    best = np.zeros(max(top, 1))
    if len(owner) == n:
        inverse = (1.0 / np.maximum(diagonal, 1e-30)).astype(np.float32)  # a guess; half the memory read out of order
        for i in range(n):
            best[:] = 0.0
            for e in range(pointer[i], pointer[i + 1]):
                keep_largest(best, top, value[e] * value[e] * inverse[index[e]])
            score[i] = diagonal[i] - added(best, len(best))
        return score
    strength = np.zeros(n)
    offset = 0
    for i in range(n):
        touched = 0
        total = 0
        score[i] = diagonal[offset : offset + dims[i]].min()
        for a in range(dims[i]):
            total += pointer[offset + a + 1] - pointer[offset + a]
        seen = np.empty(total, np.int64)
        for a in range(dims[i]):
            for e in range(pointer[offset + a], pointer[offset + a + 1]):
                j = owner[index[e]]
                if j != i:
                    if strength[j] == 0.0:
                        seen[touched] = j
                        touched += 1
                    strength[j] += value[e] * value[e] + 1e-300
        best[:] = 0.0
        for t in range(touched):
            keep_largest(best, top, np.sqrt(strength[seen[t]]))
            strength[seen[t]] = 0.0
        score[i] -= added(best, len(best))
        offset += dims[i]
    return score


@kernel
def delivered_scores(pointer, index, value, owner, wanted, diagonal, top):
    """As `star_scores`, for what is delivered: the least that a delivered coordinate keeps of its
    pivot when the `top` most harmful other nodes, and the coordinates of its own, are eliminated
    one by one. Infinite for nodes without any.
    """
    n = owner[-1] + 1
    score = np.full(n, np.inf)
    strength = np.zeros(n)
    best = np.zeros(max(top, 1))
    for c in range(len(owner)):
        if not wanted[c]:
            continue
        i = owner[c]
        left = diagonal[c]
        for e in range(pointer[c], pointer[c + 1]):
            strength[owner[index[e]]] += value[e] * value[e] / max(diagonal[index[e]], 1e-300)
        best[:] = 0.0
        for e in range(pointer[c], pointer[c + 1]):
            j = owner[index[e]]
            if j == i:
                left -= strength[j]
            else:
                keep_largest(best, top, strength[j])
            strength[j] = 0.0
        score[i] = min(score[i], left - added(best, len(best)))
    return score


@kernel
def _restrict(pointer, index, value, diagonal, offsets, support, size, place):
    """G_SS as a dense matrix; place must be −1 everywhere and is left so."""
    width = 0
    for t in range(size):
        for c in range(offsets[support[t]], offsets[support[t] + 1]):
            place[c] = width
            width += 1
    result = np.zeros((width, width))
    for t in range(size):
        for c in range(offsets[support[t]], offsets[support[t] + 1]):
            result[place[c], place[c]] = diagonal[c]
            for e in range(pointer[c], pointer[c + 1]):
                if place[index[e]] >= 0:
                    result[place[c], place[index[e]]] = value[e]
    for t in range(size):
        for c in range(offsets[support[t]], offsets[support[t] + 1]):
            place[c] = -1
    return result


@kernel
def _best_addition(pointer, index, value, offsets, owner, support, size, vector, low, coupling, diagonal):
    """The node outside the support that lowers ⟨h, Gh⟩ most when h may lean on it; −1 when none
    touches the support.
    """
    inside = np.zeros(size, np.int64)
    total = 0
    for t in range(size):
        inside[t] = support[t]
        for c in range(offsets[support[t]], offsets[support[t] + 1]):
            total += pointer[c + 1] - pointer[c]
    touched = np.empty(total, np.int64)
    count = 0
    place = 0
    for t in range(size):
        for c in range(offsets[support[t]], offsets[support[t] + 1]):
            for e in range(pointer[c], pointer[c + 1]):
                if coupling[index[e]] == 0.0:
                    touched[count] = index[e]
                    count += 1
                coupling[index[e]] += value[e] * vector[place]
            place += 1
    best, best_value = -1, low
    for t in range(count):
        j = owner[touched[t]]
        member = False
        for u in range(size):
            member = member or inside[u] == j
        if member:
            continue
        square, energy = 0.0, 0.0
        for c in range(offsets[j], offsets[j + 1]):
            square += coupling[c] * coupling[c]
            energy += coupling[c] * coupling[c] * diagonal[c]
        if square == 0.0:
            continue
        mean, half = 0.5 * (low + energy / square), 0.5 * (energy / square - low)
        candidate = mean - np.sqrt(half * half + square)
        if best < 0 or candidate < best_value:
            best, best_value = j, candidate
    for t in range(count):
        coupling[touched[t]] = 0.0
    return best


@kernel
def local_search(pointer, index, value, offsets, owner, diagonal, starts, size, rounds):
    """Best support of at most `size` nodes found from the start nodes; (λ, support padded with
    −1).
    """
    width = len(owner)
    place = np.full(width, -1, np.int64)
    coupling = np.zeros(width)
    best = np.inf
    best_support = np.full(size, -1, np.int64)
    support = np.empty(size, np.int64)
    trial = np.empty(size, np.int64)
    for start in starts:
        support[0] = start
        count = 1
        values, vectors = np.linalg.eigh(_restrict(pointer, index, value, diagonal, offsets, support, 1, place))
        low, vector = values[0], vectors[:, 0].copy()
        while count < size:
            j = _best_addition(pointer, index, value, offsets, owner, support, count, vector, low, coupling, diagonal)
            if j < 0:
                break
            support[count] = j
            count += 1
            values, vectors = np.linalg.eigh(_restrict(pointer, index, value, diagonal, offsets, support, count, place))
            low, vector = values[0], vectors[:, 0].copy()
        for _ in range(rounds):  # swap out the node that carries least, regrow
            if count < 2:
                break
            weakest, weight, at = 0, np.inf, 0
            for t in range(count):
                mass = 0.0
                for _c in range(offsets[support[t]], offsets[support[t] + 1]):
                    mass += vector[at] * vector[at]
                    at += 1
                if mass < weight:
                    weakest, weight = t, mass
            k = 0
            for t in range(count):
                if t != weakest:
                    trial[k] = support[t]
                    k += 1
            values, vectors = np.linalg.eigh(_restrict(pointer, index, value, diagonal, offsets, trial, k, place))
            v = vectors[:, 0].copy()
            j = _best_addition(pointer, index, value, offsets, owner, trial, k, v, values[0], coupling, diagonal)
            if j < 0 or j == support[weakest]:
                break
            trial[k] = j
            values, vectors = np.linalg.eigh(_restrict(pointer, index, value, diagonal, offsets, trial, count, place))
            if values[0] >= low * (1.0 - 1e-12):
                break
            low, vector = values[0], vectors[:, 0].copy()
            support[:count] = trial[:count]
        if low < best:
            best = low
            best_support[:] = -1
            best_support[:count] = support[:count]
    return best, best_support


@kernel
def _lowest(pointer, index, value, diagonal, offsets, support, size, place):
    """λ_min(G_SS) with its vector."""
    values, vectors = np.linalg.eigh(_restrict(pointer, index, value, diagonal, offsets, support, size, place))
    return values[0], vectors[:, 0].copy()


@kernel
def fill_up(pointer, index, value, offsets, owner, diagonal, support):
    """Add to a support (padded with −1) the node that lowers it most, until it is full or nothing
    touches it; in place.
    """
    place = np.full(len(owner), -1, np.int64)
    coupling = np.zeros(len(owner))
    count = 0
    while count < len(support) and support[count] >= 0:
        count += 1
    while 0 < count < len(support):
        low, vector = _lowest(pointer, index, value, diagonal, offsets, support, count, place)
        j = _best_addition(pointer, index, value, offsets, owner, support, count, vector, low, coupling, diagonal)
        if j < 0:
            break
        support[count] = j
        count += 1


@kernel
def iterated_search(pointer, index, value, offsets, owner, diagonal, starts, chances, stop):
    """The best support met from those in `starts` (m, s): swaps as long as one helps, then a kick,
    and again.

    A swap tries every member as the one to drop and takes the best addition to what is left. A kick
    replaces three random members by random nodes that touch the support. chances (m, kicks, 6) are
    numbers in [0, 1) that decide all of it, so that the same numbers give the same answer.
    """
    place = np.full(len(owner), -1, np.int64)
    coupling = np.zeros(len(owner))
    rows, size = starts.shape
    best, best_support = np.inf, np.full(size, -1, np.int64)
    trial = np.empty(size, np.int64)
    for row in range(rows):
        count = 0
        while count < size and starts[row, count] >= 0:
            count += 1
        support = starts[row, :count].copy()
        low, _ = _lowest(pointer, index, value, diagonal, offsets, support, count, place)
        home, home_low = support.copy(), low
        for kick in range(chances.shape[1] + 1):
            if stop[0]:
                break
            for _ in range(MOST_SWAPS if count > 1 else 0):  # the best swap, as long as there is one
                gain, gained = (
                    low - 1e-9 * abs(low),
                    -1,
                )  # λ of a singular block may come out negative: still strictly down
                candidate = support.copy()
                for drop in range(count):
                    k = 0
                    for t in range(count):
                        if t != drop:
                            trial[k] = support[t]
                            k += 1
                    less, vector = _lowest(pointer, index, value, diagonal, offsets, trial, k, place)
                    j = _best_addition(
                        pointer, index, value, offsets, owner, trial, k, vector, less, coupling, diagonal
                    )
                    if j < 0 or j == support[drop]:
                        continue
                    trial[k] = j
                    found, _ = _lowest(pointer, index, value, diagonal, offsets, trial, count, place)
                    if found < gain:
                        gain, gained = found, drop
                        candidate[:] = trial[:count]
                if gained < 0:
                    break
                support[:] = candidate
                low = gain
            if low < home_low - 1e-9 * abs(home_low):
                home_low = low
                home[:] = support
            else:
                support[:] = home
            if kick == chances.shape[1] or count < 2:
                break
            for c in range(3):
                drop = int(chances[row, kick, 2 * c] * count)
                support[drop] = _random_neighbour(
                    pointer, index, offsets, owner, support, count, drop, chances[row, kick, 2 * c + 1]
                )
            low, _ = _lowest(pointer, index, value, diagonal, offsets, support, count, place)
        if home_low < best:
            best = home_low
            best_support[:] = -1
            best_support[:count] = home
    return best, best_support


@kernel
def _random_neighbour(pointer, index, offsets, owner, support, count, drop, chance):
    """A node outside the support that touches one of its other members, picked by `chance`; the
    dropped one if there is none.
    """
    total = 0
    for step in range(2):
        pick = int(chance * total)
        total = 0
        for t in range(count):
            if t == drop:
                continue
            for c in range(offsets[support[t]], offsets[support[t] + 1]):
                for e in range(pointer[c], pointer[c + 1]):
                    j = owner[index[e]]
                    inside = False
                    for u in range(count):
                        inside = inside or support[u] == j
                    if not inside:
                        if step == 1 and total == pick:
                            return j
                        total += 1
    return support[drop]
