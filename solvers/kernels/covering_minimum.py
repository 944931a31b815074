"""Whether a sum of matrices suffices: no eigenvalue below a threshold, on all coordinates, on sets
of them, or with radii.

With radii (uncertain matrices) what is there also joins nodes, and every part that it keeps
together must reach √θ + the uncertainty of all that touches the part. Matrices that are only lent
add to the sum, join nothing and are certain: then the answer errs on the side of yes.

`spread` says what joins and what is uncertain, with bits for nodes: (nodes, squared radius) of one
member of each kind, the same of everything owned, the sets of nodes that must suffice, and the node
of each coordinate. Without such sets nothing is uncertain.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel


@kernel
def definite(matrix, other, scale, shift, work):
    """Whether matrix + scale·other − shift·I has positive pivots: L D Lᵀ, row by row, with L·D
    below the diagonal of `work`.
    """
    width = matrix.shape[0]
    for i in range(width):
        pivot = matrix[i, i] + scale * other[i, i] - shift
        for j in range(i):
            total = matrix[i, j] + scale * other[i, j]
            for t in range(j):
                total -= work[i, t] * work[t, j]
            work[i, j] = total
            share = total * work[j, j]
            work[j, i] = share
            pivot -= total * share
        if not pivot > 0.0:
            return False
        work[i, i] = 1.0 / pivot
    return True


@kernel
def enough(sets, matrix, other, scale, shift, work):
    """The same on each of these sets of coordinates (rows padded with −1); without sets, on all
    coordinates at once.
    """
    if len(sets) == 0:
        return definite(matrix, other, scale, shift, work)
    for chosen in sets:
        for i in range(len(chosen)):
            a = chosen[i]
            if a < 0:
                break
            pivot = matrix[a, a] + scale * other[a, a] - shift
            for j in range(i):
                total = matrix[a, chosen[j]] + scale * other[a, chosen[j]]
                for t in range(j):
                    total -= work[i, t] * work[t, j]
                work[i, j] = total
                share = total * work[j, j]
                work[j, i] = share
                pivot -= total * share
            if not pivot > 0.0:
                return False
            work[i, i] = 1.0 / pivot
    return True


@kernel
def _raised(shift, root, squares):
    """The threshold (root + √squares)² − (root² − shift), rounded down: what counts with so much
    uncertainty must reach.
    """
    if squares <= 0.0:
        return shift
    eta = np.sqrt(squares) * (1.0 - 1e-12)
    return shift + eta * (2.0 * root + eta)


@kernel
def unsure(spread, k):
    """Whether members of a kind may do harm: they are uncertain, or join nodes."""
    return spread[1][k] > 0.0 or spread[0][k] & (spread[0][k] - 1) != 0


@kernel
def suffices(sets, spread, counts, known, matrix, other, scale, shift, root, work):
    """`enough`, or with radii: whether every part that what is owned and the first `known` counts
    keep together reaches the shift, raised by the radii of all of these that touch it.

    Matrices that are lent may join parts or be absent. In either case the whole reaches the least
    of its parts' shifts.
    """
    if len(spread[4]) == 0:
        return enough(sets, matrix, other, scale, shift, work)
    return _by_parts(spread, counts, known, matrix, other, scale, shift, root, work)


@kernel
def _by_parts(spread, counts, known, matrix, other, scale, shift, root, work):
    masks, radii, owned, squares, supports, node_of = spread
    place = np.full((1, len(node_of)), -1, dtype=np.int64)
    for support in supports:
        left, least = support, np.inf
        while left:
            part = left & -left
            before = np.int64(0)
            while part != before:
                before = part
                for mask in owned:
                    if mask & part:
                        part |= mask & support
                for k in range(known):
                    if counts[k] > 0 and masks[k] & part:
                        part |= masks[k] & support
            left &= ~part
            eta = 0.0
            for j in range(len(owned)):
                if owned[j] & part:
                    eta += squares[j]
            for k in range(known):
                if masks[k] & part:
                    eta += counts[k] * radii[k]
            least = min(least, eta)
            width = _coordinates(part, node_of, place)
            if not enough(place[:, :width], matrix, other, scale, _raised(shift, root, eta), work):
                return False
            if part == support:
                least = -1.0
        if least >= 0.0:
            width = _coordinates(support, node_of, place)
            if not enough(place[:, :width], matrix, other, scale, _raised(shift, root, least), work):
                return False
    return True


@kernel
def _coordinates(nodes, node_of, place):
    width = 0
    for column in range(len(node_of)):
        if (nodes >> node_of[column]) & 1:
            place[0, width] = column
            width += 1
    return width
