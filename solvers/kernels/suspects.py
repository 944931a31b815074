"""Supports together with the row blocks that may be wrong: which pairs (S, R) can't be proven
harmless?

Harmless means N_R = G_SS − θP − (1 + ρ)·Σ_{b∈R} B_bSᵀB_bS ⪰ 0, with P the wanted coordinates (see
`solvers._faulty_checks`). Connected supports are grown from their root, each once. For one of them
the blocks are taken away one by one, and a whole family of choices at a time is excluded by the
trace: with N ≻ 0, N − Σ_b A_b ⪰ 0 as soon as Σ_b tr(N⁻¹A_b) ≤ 1. So if the r largest traces add up
to at most 1, no choice of r blocks does harm.

Every error is bounded entrywise by a multiple of f_i f_j, f_i² = (1 + ρ)·G_ii, as in
`solvers._gram`; the diagonal comes in lowered by that. It also covers the triangular solves behind
the traces: each is exact for a factor that is off by as little.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel
from solvers.kernels.linalg import cholesky

TRACE_SLACK = 1e-9  # room for the rounding of sums of traces


@kernel
def scan_suspects(
    graph, matrix, offsets, suspect_of, wanted, rank, goal, roots, theta, ratio, removed, selective, share, stop, out
):
    """Pairs (S, R) grown from `roots` that can't be proven harmless; (number found, roots
    finished).

    graph = (pointer, index) over units; matrix = (pointer, row, value) by columns; suspect_of[row]
    is the number of the row's suspect block or −1; `selective`: only supports with a wanted column
    count. A row of `out` is S, then R, padded with −1; goal[v] is the size of the supports through
    v; `share` of G_ii bounds every rounding.
    """
    pointer, index = graph
    n = len(offsets) - 1
    depth = out.shape[1] - removed
    node = np.empty(n + 1, np.int64)
    place = np.full(n, -1, np.int64)
    chosen = np.empty(depth + 1, np.int64)
    ends = np.zeros(depth + 2, np.int64)
    support = np.empty(depth, np.int64)
    row_at = np.full(len(suspect_of), -1, np.int64)
    block_at = np.full(suspect_of.max() + 1 if len(suspect_of) else 0, -1, np.int64)
    count = 0
    for done in range(len(roots)):
        root = roots[done]
        target, floor = goal[root], rank[root]
        node[0] = root
        place[root] = 0
        level = 0
        ends[0] = 1
        chosen[0] = -1
        while level >= 0:
            position = chosen[level] + 1
            if stop[0] or count > out.shape[0]:
                break
            if position >= ends[level] or (level == 0 and position > 0):
                level -= 1
                if level >= 0:
                    for p in range(ends[level], ends[level + 1]):
                        place[node[p]] = -1
                continue
            chosen[level] = position
            if level + 1 == target:
                for t in range(target):
                    support[t] = node[chosen[t]]
                count = _settle(
                    matrix, offsets, suspect_of, wanted, support[:target], theta, ratio, removed, selective, share,
                    row_at, block_at, out, count,
                )  # fmt: skip
                continue
            end = ends[level]
            w = node[position]
            for e in range(pointer[w], pointer[w + 1]):
                u = index[e]
                if place[u] < 0 and rank[u] > floor:
                    place[u] = end
                    node[end] = u
                    end += 1
            ends[level + 1] = end
            level += 1
            chosen[level] = position
        if stop[0] or count > out.shape[0]:
            return count, done
        place[root] = -1
    return count, len(roots)


@kernel
def _settle(
    matrix, offsets, suspect_of, wanted, support, theta, ratio, removed, selective, share, row_at, block_at, out, count
):
    """All choices of blocks for one support; returns the new count."""
    column_pointer, row_index, value = matrix
    width, entries, met = 0, 0, False
    for i in support:
        width += offsets[i + 1] - offsets[i]
        entries += column_pointer[offsets[i + 1]] - column_pointer[offsets[i]]
        for c in range(offsets[i], offsets[i + 1]):
            met = met or wanted[c] > 0.0
    if selective and not met:
        return count
    part = np.zeros((entries, width))  # the rows that touch the support
    block_of = np.empty(entries, np.int64)
    names = np.empty(entries, np.int64)
    touched = np.empty(entries, np.int64)
    shift = np.zeros(width)
    rows, blocks, at = 0, 0, 0
    for i in support:
        for c in range(offsets[i], offsets[i + 1]):
            shift[at] = theta * wanted[c]
            for e in range(column_pointer[c], column_pointer[c + 1]):
                r = row_index[e]
                if row_at[r] < 0:
                    row_at[r] = rows
                    touched[rows] = r
                    b = suspect_of[r]
                    if b >= 0 and block_at[b] < 0:
                        block_at[b] = blocks
                        names[blocks] = b
                        blocks += 1
                    block_of[rows] = block_at[b] if b >= 0 else -1
                    rows += 1
                part[row_at[r], at] = value[e]
            at += 1
    for r in range(rows):
        row_at[touched[r]] = -1
    for b in range(blocks):
        block_at[names[b]] = -1
    gram = np.zeros((width, width))
    for r in range(rows):
        _add(gram, part[r], width, 1.0)
    for i in range(width):
        gram[i, i] = gram[i, i] * (1.0 - share * (1.0 + ratio)) - shift[i] * (1.0 + 1e-15)
    return _choices(gram, part, block_of, names, rows, blocks, min(removed, blocks), ratio, support, out, count)


@kernel
def _add(gram, row, width, weight):
    for i in range(width):
        if row[i] != 0.0:
            for j in range(width):
                gram[i, j] += weight * (row[i] * row[j])


@kernel
def _choices(gram, part, block_of, names, rows, blocks, most, ratio, support, out, count):
    """Take `most` of the blocks away in every way that the traces leave open."""
    width = len(gram)
    levels = np.empty((most + 1, width, width))
    factor = np.zeros((width, width))
    sound = np.empty(most + 1, np.bool_)
    position = np.full(most + 1, -1, np.int64)
    trace = np.zeros(blocks)
    levels[0] = gram
    sound[0] = cholesky(levels[0], 0, width, factor)
    order = np.arange(blocks)
    if sound[0] and most > 0:
        _traces(factor, part, block_of, rows, width, 1.0 + ratio, trace)
        order = np.argsort(-trace, kind="mergesort")
    depth = 0
    fresh = True
    while depth >= 0:
        if fresh:
            fresh = False
            if depth == most:
                if not sound[depth]:
                    count = _emit(out, count, support, names, order, position, most)
                depth -= 1
                continue
            if sound[depth]:
                if depth > 0:
                    _traces(factor, part, block_of, rows, width, 1.0 + ratio, trace)
                left = most - depth
                first = position[depth - 1] + 1 if depth > 0 else 0
                if _largest(trace, order, first, blocks, left) <= 1.0 - TRACE_SLACK:
                    depth -= 1
                    continue
            position[depth] = position[depth - 1] if depth > 0 else -1
        position[depth] += 1
        if position[depth] > blocks - (most - depth) or count > out.shape[0]:
            depth -= 1
            continue
        sound[depth + 1] = False
        if sound[depth]:
            taken = order[position[depth]]
            levels[depth + 1] = levels[depth]
            for r in range(rows):
                if block_of[r] == taken:
                    _add(levels[depth + 1], part[r], width, -(1.0 + ratio))
            sound[depth + 1] = cholesky(levels[depth + 1], 0, width, factor)
        depth += 1
        fresh = True
    return count


@kernel
def _traces(factor, part, block_of, rows, width, weight, trace):
    """tr(N⁻¹A_b) for every block, from the Cholesky factor of N."""
    trace[:] = 0.0
    solved = np.empty(width)
    for r in range(rows):
        if block_of[r] >= 0:
            total = 0.0
            for i in range(width):
                x = part[r, i]
                for j in range(i):
                    x -= factor[i, j] * solved[j]
                solved[i] = x / factor[i, i]
                total += solved[i] * solved[i]
            trace[block_of[r]] += weight * total


@kernel
def _largest(trace, order, first, blocks, left):
    """Sum of the `left` largest traces among the blocks from `first` on."""
    total = 0.0
    values = np.empty(max(blocks - first, 0))
    for p in range(first, blocks):
        values[p - first] = trace[order[p]]
    values.sort()
    for t in range(min(left, len(values))):
        total += values[len(values) - 1 - t]
    return total


@kernel
def _emit(out, count, support, names, order, position, most):
    if count < out.shape[0]:
        out[count, :] = -1
        for t in range(len(support)):
            out[count, t] = support[t]
        depth = out.shape[1]
        for t in range(most):
            out[count, depth - 1 - t] = names[order[position[t]]]
    return count + 1
