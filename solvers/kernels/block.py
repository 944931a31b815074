"""Dense fields whose nodes have several coordinates: the same search as `dense`, on whitened
blocks.

With diagonal blocks M_aa = L_a L_aᵀ and C_ab = L_a⁻¹ M_ab L_b⁻ᵀ, ‖C_ab‖ plays the part of |C_ab|: a
triple whose norms x, y, z satisfy 1 − x² − y² − z² − 2xyz > 0 is harmless; the others are
eliminated block by block.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.emit import CENTRE_SLACK, centres_first, emit_supersets, emit_support, top_sum
from solvers.kernels.kernel import kernel
from solvers.kernels.linalg import cholesky, contraction, norm_bound, reciprocal, whiten, whiten_four

NORM_SLACK = 1e-11


@kernel
def _block_norms(matrix, offsets, n, factors, norms, blocks, sound, keep):
    """Whiten every pair: norms (n, n) and, if keep, the blocks themselves.

    sound[a]: M_aa is positive definite.
    """
    widest = factors.shape[1]
    scratch = np.empty((widest, widest))
    square = np.empty((widest, widest))
    block = np.empty((widest, widest))
    for a in range(n):
        sound[a] = cholesky(matrix, offsets[a], offsets[a + 1] - offsets[a], factors[a])
        if sound[a]:
            reciprocal(factors[a], offsets[a + 1] - offsets[a])
    for a in range(n):
        norms[a, a] = 0.0
        da = offsets[a + 1] - offsets[a]
        for b in range(a + 1, n):
            if not (sound[a] and sound[b]):
                norms[a, b] = norms[b, a] = 2.0
                continue
            db = offsets[b + 1] - offsets[b]
            target = blocks[a, b] if keep else block
            if da == 4 and db == 4:
                norms[a, b] = norms[b, a] = whiten_four(
                    matrix, offsets[a], offsets[b], factors[a], factors[b], target, square
                )
            else:
                whiten(matrix, offsets[a], da, offsets[b], db, factors[a], factors[b], target, scratch)
                norms[a, b] = norms[b, a] = norm_bound(target, da, db, square)
            if keep:
                for i in range(da):
                    for j in range(db):
                        blocks[b, a, j, i] = target[i, j]


@kernel
def block_centres(matrix, offsets, size):
    """Node positions with the centres first, and their number; unsound nodes count as centres."""
    n = len(offsets) - 1
    widest = 0
    for a in range(n):
        widest = max(widest, offsets[a + 1] - offsets[a])
    norms = np.empty((n, n))
    sound = np.empty(n, np.bool_)
    factors = np.empty((n, widest, widest))
    _block_norms(matrix, offsets, n, factors, norms, np.empty((0, 0, 0, 0)), sound, False)
    stars = np.full(n, np.inf)
    for a in range(n):
        if sound[a]:
            stars[a] = top_sum(norms[a], n, a, size - 1)
    return centres_first(stars)


@kernel
def scan_blocks(matrix, offsets, nodes, roots, size, stop, out):
    """As `scan_dense`, for a matrix over coordinates with node a at offsets[a]:offsets[a + 1],
    centres first; size ≥ 2.
    """
    n = len(nodes)
    width = matrix.shape[0]
    widest = 0
    for a in range(n):
        widest = max(widest, offsets[a + 1] - offsets[a])
    depth = max(size - 2, 2)
    stack = np.empty((depth, width, width))
    cuts = np.zeros((depth, n + 1), np.int64)
    names = np.empty((depth, n), np.int64)
    sizes = np.zeros(depth, np.int64)
    centres = np.zeros(depth, np.int64)
    position = np.zeros(depth, np.int64)
    prefix = np.empty(size, np.int64)
    factors = np.empty((n, widest, widest))
    norms = np.empty((n, n))
    blocks = np.empty((n, n, widest, widest))
    sound = np.empty(n, np.bool_)
    count = 0
    if size <= 3:
        _block_norms(matrix, offsets, n, factors, norms, blocks, sound, True)
    for done in range(len(roots)):
        root = roots[done]
        if size <= 3:
            count = _through_root(offsets, nodes, n, root, size, norms, blocks, sound, out, count)
        else:
            prefix[0] = nodes[root]
            level = 1
            m, nc, count = _eliminate(
                matrix, offsets, nodes, n, root, prefix, 1, size - 1, stack[1], cuts[1], names[1],
                factors, norms, blocks, sound, out, count,
            )  # fmt: skip
            sizes[1], centres[1], position[1] = m, nc, 0
            while level > 0:
                if stop[0] or count > out.shape[0]:
                    return count, done
                remaining = size - level
                if remaining == 3:  # norms and blocks of this level are fresh from its elimination
                    count = _triples(cuts[level], names[level], sizes[level], prefix, level, norms, blocks, out, count)
                    level -= 1
                    continue
                j = position[level]
                if j >= centres[level]:
                    level -= 1
                    continue
                position[level] = j + 1
                prefix[level] = names[level, j]
                m, nc, count = _eliminate(
                    stack[level], cuts[level], names[level], sizes[level], j, prefix, level + 1, remaining - 1,
                    stack[level + 1], cuts[level + 1], names[level + 1], factors, norms, blocks, sound, out, count,
                )  # fmt: skip
                level += 1
                sizes[level], centres[level], position[level] = m, nc, 0
        if stop[0] or count > out.shape[0]:
            return count, done
    return count, len(roots)


@kernel
def _eliminate(
    matrix, offsets, nodes, n, pivot, prefix, length, remaining, target, cuts, names, factors, norms, blocks,
    sound, out, count
):  # fmt: skip
    """Schur complement of node `pivot` on the nodes after it; centres first unless three remain.

    (size, centres, count).
    """
    start, stop = offsets[pivot], offsets[pivot + 1]
    dim = stop - start
    base, width = stop, offsets[n] - stop
    if not cholesky(matrix, start, dim, factors[pivot]):
        count = emit_supersets(out, count, prefix, length, nodes, pivot + 1, n, remaining)
        return 0, 0, count
    lower = factors[pivot]
    y = np.empty((dim, width))
    for i in range(dim):
        for j in range(width):
            y[i, j] = matrix[start + i, base + j]
        for t in range(i):
            for j in range(width):
                y[i, j] -= lower[i, t] * y[t, j]
        for j in range(width):
            y[i, j] /= lower[i, i]
    m = n - pivot - 1
    local = np.empty(m + 1, np.int64)
    for a in range(m + 1):
        local[a] = offsets[pivot + 1 + a] - base
    rest = np.empty((width, width))  # upper blocks; mirrored where the next level reads all of it
    for a in range(m):
        first = local[a]
        for i in range(first, local[a + 1]):
            for j in range(first, width):
                rest[i, j] = matrix[base + i, base + j]
            for t in range(dim):
                factor = y[t, i]
                for j in range(first, width):
                    rest[i, j] -= factor * y[t, j]
    last_three = remaining == 3
    if not last_three:
        for i in range(width):
            for j in range(i):
                rest[i, j] = rest[j, i]
    _block_norms(rest, local, m, factors, norms, blocks, sound, last_three)
    for a in range(m):
        if not sound[a]:  # harmful with any company: report and leave out
            prefix[length] = nodes[pivot + 1 + a]
            others = np.empty(m, np.int64)
            k = 0
            for b in range(m):
                if b > a or (b < a and sound[b]):
                    others[k] = nodes[pivot + 1 + b]
                    k += 1
            count = emit_supersets(out, count, prefix, length + 1, others, 0, k, remaining - 1)
    cuts[0] = 0
    if last_three:
        for a in range(m):
            names[a] = nodes[pivot + 1 + a] if sound[a] else -1
            cuts[a + 1] = local[a + 1]
        return m, m, count
    alive = 0
    stars = np.full(m, -1.0)  # unsound nodes end up last, and out of the way
    for a in range(m):
        if not sound[a]:
            norms[:m, a] = 0.0
    for a in range(m):
        if sound[a]:
            alive += 1
            stars[a] = top_sum(norms[a], m, a, remaining - 1)
    order, centres = centres_first(stars)
    if centres > 0:
        for i in range(alive):
            a = order[i]
            names[i] = nodes[pivot + 1 + a]
            cuts[i + 1] = cuts[i] + local[a + 1] - local[a]
        for i in range(alive):
            for j in range(alive):
                a, b = order[i], order[j]
                for r in range(local[a + 1] - local[a]):
                    for c in range(local[b + 1] - local[b]):
                        target[cuts[i] + r, cuts[j] + c] = rest[local[a] + r, local[b] + c]
    return alive, centres, count


@kernel
def _triples(cuts, names, n, prefix, length, norms, blocks, out, count):
    """Harmful triples among the whitened nodes (names[a] < 0: left out): heavy pairs first, then
    every third node.
    """
    widest = blocks.shape[2]
    gap = np.empty((widest, widest))
    pair_factor = np.empty((widest, widest))
    scratch = np.empty((3, widest, widest))
    for a in range(n):
        if names[a] < 0:
            continue
        da = cuts[a + 1] - cuts[a]
        for b in range(a + 1, n):
            x = norms[a, b]
            if names[b] < 0 or x < 0.5 * (1.0 - CENTRE_SLACK):
                continue
            db = cuts[b + 1] - cuts[b]
            sound = x < 1.0 - NORM_SLACK
            exact = False
            room = 1.0 - x * x - NORM_SLACK
            for c in range(n):
                if c in (a, b) or names[c] < 0:
                    continue
                y, z = norms[a, c], norms[b, c]
                if sound and room - y * y - z * z - 2.0 * x * y * z > 0.0:
                    continue
                dc = cuts[c + 1] - cuts[c]
                # ‖C_ac‖² + ‖E‖_F²/(1 − ‖C_ab‖²) < 1 is enough too, and mostly true
                if sound and y * y + _energy(blocks, a, b, c, da, db, dc) / (1.0 - x * x) < 1.0 - NORM_SLACK:
                    continue
                if not exact:
                    exact = True
                    pair_ok = contraction(blocks[a, b], da, db, gap, pair_factor)
                if not pair_ok or not _third_ok(blocks, a, b, c, da, db, dc, pair_factor, scratch):
                    count = emit_support(out, count, prefix, length, names[a], names[b], names[c])
                    if count > out.shape[0]:
                        return count
    return count


@kernel
def _energy(blocks, a, b, c, da, db, dc):
    """‖C_bc − C_ba C_ac‖_F²; constant loops for dimension four, which the compiler unrolls."""
    energy = 0.0
    if da == 4 and db == 4 and dc == 4:
        for j in range(4):
            x0, x1, x2, x3 = blocks[c, a, j, 0], blocks[c, a, j, 1], blocks[c, a, j, 2], blocks[c, a, j, 3]
            for i in range(4):
                total = blocks[c, b, j, i] - blocks[b, a, i, 0] * x0 - blocks[b, a, i, 1] * x1
                total -= blocks[b, a, i, 2] * x2 + blocks[b, a, i, 3] * x3
                energy += total * total
        return energy
    for j in range(dc):
        for i in range(db):
            total = blocks[c, b, j, i]
            for t in range(da):
                total -= blocks[b, a, i, t] * blocks[c, a, j, t]
            energy += total * total
    return energy


@kernel
def _third_ok(blocks, a, b, c, da, db, dc, pair_factor, scratch):
    """Positive definiteness of I − C_caC_ac − FᵀF with F = L⁻¹(C_bc − C_baC_ac), L Lᵀ = I −
    C_baC_ab.
    """
    f, gap, factor = scratch[0], scratch[1], scratch[2]
    for j in range(dc):
        for i in range(db):
            total = blocks[c, b, j, i]
            for t in range(da):
                total -= blocks[b, a, i, t] * blocks[c, a, j, t]
            for t in range(i):
                total -= pair_factor[i, t] * f[j, t]
            f[j, i] = total / pair_factor[i, i]
    for i in range(dc):
        for j in range(i + 1):
            total = 1.0 if i == j else 0.0
            for t in range(da):
                total -= blocks[c, a, i, t] * blocks[c, a, j, t]
            for t in range(db):
                total -= f[i, t] * f[j, t]
            gap[i, j] = total
            gap[j, i] = total
    return cholesky(gap, 0, dc, factor)


@kernel
def _through_root(offsets, nodes, n, root, size, norms, blocks, sound, out, count):
    """Harmful pairs or triples {root, b(, c)} with b, c after the root, where nothing has been
    eliminated before.
    """
    widest = blocks.shape[2]
    gap = np.empty((widest, widest))
    factor = np.empty((widest, widest))
    scratch = np.empty((3, widest, widest))
    prefix = np.empty(1, np.int64)
    prefix[0] = nodes[root]
    dr = offsets[root + 1] - offsets[root]
    for b in range(root + 1, n):
        db = offsets[b + 1] - offsets[b]
        fine = sound[root] and sound[b]
        x = norms[root, b]
        if fine and (size == 3 or x >= 1.0 - NORM_SLACK):
            fine = contraction(blocks[root, b], dr, db, gap, factor)
        if size == 2:
            if not fine:
                count = emit_support(out, count, prefix, 1, nodes[b], -1, -1)
            continue
        for c in range(b + 1, n):
            y, z = norms[root, c], norms[b, c]
            if fine and sound[c] and 1.0 - x * x - y * y - z * z - 2.0 * x * y * z > NORM_SLACK and max(x, y, z) < 1.0:
                continue
            dc = offsets[c + 1] - offsets[c]
            if not (fine and sound[c]) or not _third_ok(blocks, root, b, c, dr, db, dc, factor, scratch):
                count = emit_support(out, count, prefix, 1, nodes[b], nodes[c], -1)
                if count > out.shape[0]:
                    return count
    return count
