"""Sparse fields whose nodes have several coordinates: the search of `sparse`, with blocks in the
frontier list; or without them, on norms alone (`_comparison`), which leaves few supports as a rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvers.kernels.emit import added, emit_path, keep_largest
from solvers.kernels.kernel import kernel
from solvers.kernels.linalg import cholesky, norm_bound, reciprocal, whiten
from solvers.kernels.sparse import scan_sparse

UNIT = 2.0**-53
WIDEST = 16  # coordinates of a node: up to here ROUNDED pays for the products of `_norms`
ROUNDED = 1.0 + 1e-9
CHUNK = 20_000  # edges at a time


MANY = 4096  # supports that norms may leave over
_latest: list[Any] = []  # one entry: arrays, diagonal, size and M of the latest question, which tasks share


def scan_norms(arrays: Any, diagonal: Any, rank: Any, roots: Any, size: int, stop: Any) -> Any:
    """As `scan_sparse_blocks`, by norms alone: (supports, roots finished), where most supports that
    are left over are harmless all the same; None where they are too many. `diagonal`: with θ taken
    off.
    """
    pointer, index, value, dims, starts, _, goal = arrays
    known = _latest[0] if _latest else (None, None, 0, None)  # other threads may put theirs there meanwhile
    if known[0] is not arrays or known[2] != size or not np.array_equal(known[1], diagonal):
        with np.errstate(all="ignore"):  # what is no number is harmful
            made = _comparison(pointer, index, value, starts, dims, diagonal, size)
        known = (arrays, diagonal, size, made)
        _latest[:] = [known]
    out = np.empty((MANY, size), np.int64)
    count, done = scan_sparse(pointer, index, *known[3], rank, goal, roots, stop, out)
    return None if count > MANY else (out[:count], done)


def _comparison(pointer, index, value, starts, dims, diagonal, size):
    """Values and diagonal of a scalar matrix M over the same edges: where a Cholesky of M_SS runs
    through, |S| ≤ size, N_SS is positive definite.

    With W_i about the inverse of the Cholesky factor of N_ii, M_ii = 1 − ‖I − W_i N_ii W_iᵀ‖ and
    M_ij = −‖W_i N_ij W_jᵀ‖: for blocks x of a vector, xᵀWNWᵀx ≥ Σ M_ij |x_i||x_j|, and W is
    invertible where M_ii > 0. The products' own rounding is part of the norms, that of the later
    Cholesky is taken off the diagonal; M_ii is 0 where N_ii has no factor. With orthogonal
    couplings nothing is lost on trees, and supports that hide errors best are trees as a rule.
    """
    n, widest = len(dims), diagonal.shape[1]
    there = np.arange(widest) < dims[:, None]
    own = np.where(there[:, :, None] & there[:, None, :], diagonal, np.eye(widest))
    least = np.linalg.eigvalsh(own)[:, 0]  # decides what is tried, and proves nothing
    sound = least > 0.0
    factor = np.linalg.cholesky(np.where(sound[:, None, None], own, np.eye(widest)))
    white = np.linalg.inv(factor)
    room = 4.0 * (widest + 4) * UNIT
    norms = np.empty(len(index))
    tail = np.repeat(np.arange(n), np.diff(pointer))
    places = np.arange(widest)
    for first in range(0, len(index), CHUNK):
        edges = slice(first, first + CHUNK)
        i, j = tail[edges], index[edges]
        at = starts[: len(index)][edges, None, None] + places[:, None] * dims[j][:, None, None] + places
        inside = there[i][:, :, None] & there[j][:, None, :]
        norms[edges] = _norms(white[i], np.where(inside, value[np.where(inside, at, 0)], 0.0), white[j], room, 0.0)
    off = _norms(white, own, white, room, np.eye(widest))
    rest = np.where(sound, 1.0 - off - 4.0 * size * (size + 2) * UNIT, 0.0)
    return -norms, np.maximum(rest, 0.0)


def _norms(left, middle, right, room, goal):
    """Upper bounds on ‖L M Rᵀ − goal‖ for stacks of small matrices: ‖P⁸‖_∞^(1/16), P = CCᵀ, and
    what the products may be off.
    """
    made = left @ middle @ right.transpose(0, 2, 1) - goal
    blur = room * np.linalg.norm(abs(left) @ abs(middle) @ abs(right).transpose(0, 2, 1) + abs(goal), axis=(1, 2))
    scale = np.linalg.norm(made, axis=(1, 2))
    unit = made / np.where(scale > 1e-100, scale, 1.0)[:, None, None]
    power = unit @ unit.transpose(0, 2, 1)
    for _ in range(3):
        power = power @ power
    largest = abs(power).sum(axis=2).max(axis=1)
    return np.where(scale > 1e-100, scale * largest ** (1.0 / 16.0) * ROUNDED, 1e-99) + blur * ROUNDED


@kernel
def sparse_block_stars(pointer, index, value, starts, dims, diagonal, size):
    """As `sparse_stars`.

    Edge e from i to j holds value[starts[e]:], row by row (see `unit_blocks`); diagonal is (n, D,
    D).
    """
    n = len(dims)
    widest = diagonal.shape[1]
    factors = np.zeros((n, widest, widest))
    sound = np.empty(n, np.bool_)
    for i in range(n):
        sound[i] = cholesky(diagonal[i], 0, dims[i], factors[i])
        if sound[i]:
            reciprocal(factors[i], dims[i])
    stars = np.empty(n)
    best = np.zeros(max(size - 1, 1))
    block = np.empty((widest, widest))
    scratch = np.empty((widest, widest))
    square = np.empty((widest, widest))
    for i in range(n):
        best[:] = 0.0
        top = size - 1
        forced = not sound[i]
        for e in range(pointer[i], pointer[i + 1]):
            j = index[e]
            if forced or not sound[j]:
                forced = True
                break
            if dims[i] == 1 and dims[j] == 1:
                c = abs(value[starts[e]]) * factors[i, 0, 0] * factors[j, 0, 0]
            else:
                held = value[starts[e] : starts[e] + dims[i] * dims[j]].reshape((dims[i], dims[j]))
                whiten(held, 0, dims[i], 0, dims[j], factors[i], factors[j], block, scratch)
                c = norm_bound(block, dims[i], dims[j], square)
            keep_largest(best, top, c)
        stars[i] = np.inf if forced else added(best, top)
    return stars


@kernel
def scan_sparse_blocks(pointer, index, value, starts, dims, diagonal, rank, goal, roots, stop, out):
    """As `scan_sparse`, on blocks."""
    n = len(dims)
    widest = diagonal.shape[1]
    depth = out.shape[1]
    degree = 0
    for i in range(n):
        degree = max(degree, pointer[i + 1] - pointer[i])
    capacity = min(n, degree * depth) + 1
    node = np.empty(capacity, np.int64)
    row = np.zeros((capacity, depth, widest, widest))  # row[p, t]: (dim of chosen t, dim of p)
    empty = np.ones((capacity, depth), np.bool_)  # whether row[p, t] is zero: then it is neither written nor read
    left = np.empty((depth + 1, capacity, widest, widest))
    place = np.full(n, -1, np.int64)
    chosen = np.empty(depth + 1, np.int64)
    ends = np.zeros(depth + 2, np.int64)
    harmful = np.zeros(depth + 2, np.bool_)
    factor = np.empty((widest, widest))
    last = np.empty((widest, widest))
    count = 0
    for done in range(len(roots)):
        root = roots[done]
        target = goal[root]
        floor = rank[root]
        node[0] = root
        place[root] = 0
        _copy(left[0, 0], diagonal[root], dims[root])
        level = 0
        ends[0] = 1
        chosen[0] = -1
        harmful[0] = False
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
            w = node[position]
            bad = harmful[level] or not cholesky(left[level, position], 0, dims[w], factor)
            size = level + 1
            if size == target:
                if bad:
                    count = emit_path(out, count, node, chosen, level)
                continue
            end = ends[level]
            empty[position + 1 : end, level] = True
            for e in range(pointer[w], pointer[w + 1]):
                u = index[e]
                p = place[u]
                if p < 0:
                    if rank[u] > floor:
                        p = end
                        end += 1
                        place[u] = p
                        node[p] = u
                        empty[p, : level + 1] = True
                        _copy(left[level, p], diagonal[u], dims[u])
                    else:
                        continue
                if p > position:
                    empty[p, level] = False
                    for a in range(dims[w]):
                        for b in range(dims[u]):
                            row[p, level, a, b] = value[starts[e] + a * dims[u] + b]
            ends[level + 1] = end
            harmful[level + 1] = bad
            if not bad:
                for p in range(position + 1, end):
                    _update(row, empty, left, level, position, p, dims[w], dims[node[p]], dims, node, chosen, factor)
            if size + 1 == target:
                for p in range(position + 1, end):
                    if bad or not cholesky(left[level + 1, p], 0, dims[node[p]], last):
                        chosen[level + 1] = p
                        count = emit_path(out, count, node, chosen, level + 1)
                for p in range(ends[level], end):
                    place[node[p]] = -1
                continue
            level += 1
            chosen[level] = position
        for p in range(ends[0]):
            place[node[p]] = -1
        if stop[0] or count > out.shape[0]:
            return count, done
    return count, len(roots)


@kernel
def _update(row, empty, left, level, position, p, dw, dp, dims, node, chosen, factor):
    """Row of p against the node just chosen, and what is left of p's own block."""
    y = row[p, level]
    for t in range(level):
        if empty[position, t] or empty[p, t]:
            continue
        if empty[p, level]:
            _clear(y, dw, dp)
            empty[p, level] = False
        dt = dims[node[chosen[t]]]
        for s in range(dt):
            for a in range(dw):
                weight = row[position, t, s, a]
                for b in range(dp):
                    y[a, b] -= weight * row[p, t, s, b]
    if empty[p, level]:
        _copy(left[level + 1, p], left[level, p], dp)
        return
    for a in range(dw):
        for s in range(a):
            weight = factor[a, s]
            for b in range(dp):
                y[a, b] -= weight * y[s, b]
        for b in range(dp):
            y[a, b] /= factor[a, a]
    before, after = left[level, p], left[level + 1, p]
    for a in range(dp):
        for b in range(dp):
            total = before[a, b]
            for s in range(dw):
                total -= y[s, a] * y[s, b]
            after[a, b] = total


@kernel
def _clear(block, rows, columns):
    """Zero what is used of a block that is as wide as the widest node."""
    for a in range(rows):
        for b in range(columns):
            block[a, b] = 0.0


@kernel
def _copy(target, source, dim):
    for a in range(dim):
        for b in range(dim):
            target[a, b] = source[a, b]
