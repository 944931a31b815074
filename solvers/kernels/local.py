"""A good first incumbent: grow a support along its own witness, then swap nodes while that helps.

(pointer, index, value) are the off-diagonal nonzeros of Ĝ over coordinates, diagonal the rest; owner is the node of each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from solvers.kernels.emit import keep_largest


@njit(cache=True, nogil=True)
def star_scores(pointer, index, value, owner, dims, diagonal, top):
    """For every node a cheap guess of how low a support through it can go.

    Scalar nodes: what eliminating its `top` most harmful neighbours would leave of its own pivot. Blocks: least diagonal
    minus the `top` largest couplings.
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
            score[i] = diagonal[i] - best.sum()
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
        score[i] -= best.sum()
        offset += dims[i]
    return score


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _best_addition(pointer, index, value, offsets, owner, support, size, vector, low, coupling, diagonal):
    """The node outside the support that lowers ⟨h, Gh⟩ most when h may lean on it; −1 when none touches the support."""
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


@njit(cache=True, nogil=True)
def local_search(pointer, index, value, offsets, owner, diagonal, starts, size, rounds):
    """Best support of at most `size` nodes found from the start nodes; (λ, support padded with −1)."""
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
