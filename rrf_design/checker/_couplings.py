"""Couplings: how hard two nodes pull at each other, as rigorous upper bounds, for dense matrices
and along edges.

With diagonal blocks M_ii scaled to the identity by W_i, c_ij ≥ ‖W_i M_ij W_jᵀ‖. W_i is any matrix
of doubles, here the rounded inverse of a Cholesky factor: the product is bounded together with its
rounding, and W_i M_ii W_iᵀ is compared with the identity instead of being believed to be it. So W
need not be good, only written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rrf_design.checker._enumeration import UNIT, Gram
from rrf_design.checker.kernel import kernel

LIMIT = 1.0 - 1e-9  # couplings that add up to less than this are harmless: covers all relative rounding in the sums
WIDEST = 64  # coordinates of a node up to which that allowance is proven to be enough
HOPELESS = 2.0  # coupling of a node that is harmful in itself: with it no sum is harmless


@kernel
def factorise(matrix: Any, first: int, width: int, factor: Any) -> bool:
    """Lower Cholesky factor of one diagonal block; False: a pivot is not positive."""
    for i in range(width):
        for j in range(i + 1):
            total = matrix[first + i, first + j]
            for t in range(j):
                total -= factor[i, t] * factor[j, t]
            if j < i:
                factor[i, j] = total / factor[j, j]
            elif total > 0.0:
                factor[i, i] = np.sqrt(total)
            else:
                return False
    return True


@kernel
def invert(factor: Any, width: int, inverse: Any) -> None:
    """Inverse of a lower triangular factor."""
    for j in range(width):
        for i in range(width):
            inverse[i, j] = 0.0
        inverse[j, j] = 1.0 / factor[j, j]
        for i in range(j + 1, width):
            total = 0.0
            for t in range(j, i):
                total -= factor[i, t] * inverse[t, j]
            inverse[i, j] = total / factor[i, i]


@kernel
def scaled_block(raw: Any, di: int, dj: int, left: Any, right: Any, half: Any, block: Any) -> None:
    """left · raw · rightᵀ for lower triangular left and right."""
    for p in range(di):
        for q in range(dj):
            total = 0.0
            for t in range(p + 1):
                total += left[p, t] * raw[t, q]
            half[p, q] = total
    for p in range(di):
        for q in range(dj):
            total = 0.0
            for t in range(q + 1):
                total += half[p, t] * right[q, t]
            block[p, q] = total


@kernel
def norm_above(block: Any, rows: int, columns: int, once: Any) -> float:
    """The spectral norm from above, up to relative rounding: ‖K‖⁸ ≤ ‖(KᵀK)²‖_F²."""
    for p in range(columns):
        for q in range(p + 1):
            total = 0.0
            for t in range(rows):
                total += block[t, p] * block[t, q]
            once[p, q] = total
            once[q, p] = total
    energy = 0.0
    for p in range(columns):
        for q in range(p + 1):
            total = 0.0
            for t in range(columns):
                total += once[p, t] * once[t, q]
            energy += total * total if p == q else 2.0 * total * total
    return float(np.sqrt(np.sqrt(np.sqrt(energy))))


@kernel
def whiten(raw: Any, d: int, scale: float, inverse: Any, factor: Any, half: Any, block: Any) -> tuple[float, float]:
    """W = `inverse` for one diagonal block, a number a with W·raw·Wᵀ ⪰ a·I (0: the block is not
    sound), and ‖W‖·scale.
    """
    if not factorise(raw, 0, d, factor):
        return 0.0, 0.0
    invert(factor, d, inverse)
    scaled_block(raw, d, d, inverse, inverse, half, block)
    energy, off = 0.0, 0.0
    for p in range(d):
        for q in range(d):
            energy += inverse[p, q] * inverse[p, q]
            skew = block[p, q] - (1.0 if p == q else 0.0)
            off += skew * skew
    reach = np.sqrt(energy) * scale
    return 1.0 - np.sqrt(off) - 8.0 * (d + 4) * UNIT * reach * reach, reach


@kernel
def coupling(
    raw: Any, da: int, db: int, left: Any, right: Any, least: float, reach: float, half: Any, block: Any, once: Any
) -> float:
    """The norm of W_a·raw·W_bᵀ from above, relative to `least`, the smaller of the two diagonal
    bounds.
    """
    scaled_block(raw, da, db, left, right, half, block)
    value = norm_above(block, da, db, once) * (1.0 + 1e-10)
    value = (value + 4.0 * (da + db + 4) * UNIT * reach) / least
    return value if value < HOPELESS else HOPELESS


@kernel
def couple_scalars(rest: Any, links: Any, sound: Any, count: int) -> None:
    weight = np.empty(count)
    for a in range(count):
        sound[a] = rest[a, a] > 0.0
        weight[a] = 1.0 / np.sqrt(rest[a, a]) if sound[a] else np.inf
    for a in range(count):
        row, link, mine = rest[a], links[a], weight[a]
        for b in range(count):
            link[b] = abs(row[b]) * mine * weight[b]
        for b in range(count):
            if not link[b] < HOPELESS:
                link[b] = HOPELESS
        link[a] = 0.0


@kernel
def couple_blocks(rest: Any, cuts: Any, links: Any, sound: Any, count: int, scale: Any) -> None:
    """The same for nodes of several coordinates.

    scale[a]² bounds the trace of G_aa, and so the energy of every block.
    """
    widest = 0
    for a in range(count):
        widest = max(widest, cuts[a + 1] - cuts[a])
    inverses = np.zeros((count, widest, widest))
    factor, half, raw = np.zeros((widest, widest)), np.zeros((widest, widest)), np.zeros((widest, widest))
    block, once = np.zeros((widest, widest)), np.zeros((widest, widest))
    have, reach = np.zeros(count), np.zeros(count)
    for a in range(count):
        d = cuts[a + 1] - cuts[a]
        for p in range(d):
            for q in range(d):
                raw[p, q] = rest[cuts[a] + p, cuts[a] + q]
        have[a], reach[a] = whiten(raw, d, scale[a], inverses[a], factor, half, block)
        sound[a] = have[a] > 0.5
    for a in range(count):
        links[a, a] = 0.0
        da = cuts[a + 1] - cuts[a]
        for b in range(a + 1, count):
            db = cuts[b + 1] - cuts[b]
            value = HOPELESS
            if sound[a] and sound[b]:
                for p in range(da):
                    for q in range(db):
                        raw[p, q] = rest[cuts[a] + p, cuts[b] + q]
                least = min(have[a], have[b])
                value = coupling(raw, da, db, inverses[a], inverses[b], least, reach[a] * reach[b], half, block, once)
            links[a, b] = value
            links[b, a] = value


@kernel
def top(row: Any, free: Any, count: int, arms: int, only_free: bool) -> float:
    """Sum of the `arms` largest entries of a row."""
    best = np.zeros(arms)
    for b in range(count):
        if row[b] > best[0] and (not only_free or free[b]):
            t = 0
            while t + 1 < arms and row[b] > best[t + 1]:
                best[t] = best[t + 1]
                t += 1
            best[t] = row[b]
    return float(np.sum(best))


@kernel
def edge_pulls(gram: Gram, shift: float) -> tuple[Any, Any]:
    """Couplings along the edges of a sparse field, and which nodes are sound."""
    nodes = len(gram.sizes)
    widest = np.max(gram.sizes)
    inverses = np.zeros((nodes, widest, widest))
    factor, half, raw = np.zeros((widest, widest)), np.zeros((widest, widest)), np.zeros((widest, widest))
    block, once = np.zeros((widest, widest)), np.zeros((widest, widest))
    have, reach = np.zeros(nodes), np.zeros(nodes)
    for a in range(nodes):
        d = gram.sizes[a]
        trace = 0.0
        for p in range(d):
            for q in range(d):
                raw[p, q] = gram.blocks[gram.self_blocks[a] + p * d + q]
            trace += raw[p, p]
            base = gram.diagonal[gram.starts[a] + p]
            raw[p, p] = (base - shift) - 4.0 * UNIT * (abs(base) + shift)
        have[a], reach[a] = whiten(raw, d, np.sqrt(trace) * (1.0 + 1e-9), inverses[a], factor, half, block)
    pulls = np.full(len(gram.neighbours), HOPELESS)
    for a in range(nodes):
        for e in range(gram.neighbour_starts[a], gram.neighbour_starts[a + 1]):
            b, da, db = gram.neighbours[e], gram.sizes[a], gram.sizes[gram.neighbours[e]]
            least = min(have[a], have[b])
            if least > 0.5:
                for p in range(da):
                    for q in range(db):
                        raw[p, q] = 0.0 if gram.edge_blocks[e] < 0 else gram.blocks[gram.edge_blocks[e] + p * db + q]
                pulls[e] = coupling(
                    raw, da, db, inverses[a], inverses[b], least, reach[a] * reach[b], half, block, once
                )
    return pulls, have > 0.5


@kernel
def roots_of(gram: Gram, shift: float, walked: Any) -> Any:
    """The nodes that supports of a sparse field must be built from, in this order, each leaving out
    those before it.

    Taken heaviest first; a node whose couplings to what is not left out yet add up to at most 1 is
    the centre of nothing.
    """
    pulls, sound = edge_pulls(gram, shift)
    nodes = len(gram.sizes)
    free = np.ones(nodes, np.bool_)
    weight = np.zeros(nodes)
    roots = np.empty(nodes, np.int64)
    found = 0
    for a in range(nodes):
        weight[a] = -_heaviest(gram, pulls, sound, free, a)
    for a in np.argsort(weight):
        if -weight[a] <= LIMIT:
            break
        if walked[a] and not _heaviest(gram, pulls, sound, free, a) <= LIMIT:
            roots[found] = a
            free[a] = False
            found += 1
    return roots[:found]


@kernel
def _heaviest(gram: Gram, pulls: Any, sound: Any, free: Any, a: int) -> float:
    """What the couplings of a node to others of one support can add up to."""
    first, last = gram.neighbour_starts[a], gram.neighbour_starts[a + 1]
    if not sound[a]:
        return np.inf
    arms = gram.target[a] - 1
    return top(pulls[first:last], free[gram.neighbours[first:last]], last - first, arms, True) if arms > 0 else 0.0
