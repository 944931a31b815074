"""Local search for a cheap set of matrices whose sum keeps every small connected set of nodes above
a threshold.

The sum G is kept while matrices are added and taken away. Each touches a few nodes, so only
connected sets through these nodes are tested again. One round sells what lies around a random node,
buys where a set has become weak (the cheapest matrix that is enough alone, else the one that its
weakest direction sees most of for the price), drops what is not needed, and is kept when the price
has not risen. Prices are whole numbers; a price below zero says that a matrix can't be chosen.

With radii (none at all, or the square of one for each matrix) a connected set must exceed the
threshold by what is uncertain around it. Connected is then what matrices that are held join.

`blocks` is (columns of each matrix, where they begin, its entries, where they begin, first of the
matrices of each node, these), and `reach` is (squared radii, nodes of each matrix, where they
begin).

`dice` holds the state of a small generator of its own, seeded by the caller.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.connected import weak_sets
from solvers.kernels.covering_minimum import definite
from solvers.kernels.kernel import kernel
from solvers.kernels.uncertain import uncertainty, weak_uncertain_sets

LISTED = 64
STEPS = 400  # purchases in one repair before it is given up


@kernel
def _thrown(dice):
    """The next number in (0, 1) of Lehmer's generator modulo 2³¹ − 1; the state is in dice[0]."""
    dice[0] = dice[0] * 48271 % 2147483647
    return dice[0] / 2147483647.0


@kernel
def _apply(gram, columns, column_at, values, value_at, block, sign):
    first, last = column_at[block], column_at[block + 1]
    at = value_at[block]
    for i in range(first, last):
        for j in range(first, last):
            gram[columns[i], columns[j]] += sign * values[at]
            at += 1


@kernel
def _uncertain(blocks, reach, held):
    """What joins, and the squared radius of everything held."""
    squares = np.zeros(len(held))
    for j in range(len(reach[0])):
        if held[j]:
            squares[j] = reach[0][j]
    return (blocks[4], blocks[5], reach[2], reach[1]), squares


@kernel
def _weak_near(state, blocks, reach, size, shift, held, roots, rank, out):
    gram, offsets, pointer, neighbours = state
    for i in range(len(roots)):
        rank[roots[i]] = i - len(roots)
    if len(reach[0]) > 0:
        joins, squares = _uncertain(blocks, reach, held)
        count = weak_uncertain_sets(gram, offsets, joins, held, squares, size, np.sqrt(shift), roots, rank, out)
    else:
        count = weak_sets(gram, offsets, pointer, neighbours, size, shift, roots, rank, out)
    for node in roots:
        rank[node] = 0
    return count


@kernel
def _purchase(state, blocks, reach, nodes, count, held, prices, shift, noise, dice):
    """The block to buy for one weak set; −1 when none helps, −2 when the set is not weak any
    more.
    """
    gram, offsets, _, _ = state
    columns, column_at, values, value_at, touch_at, touching = blocks
    width = 0
    for i in range(count):
        width += offsets[nodes[i] + 1] - offsets[nodes[i]]
    place = np.zeros(width, dtype=np.int64)
    width = 0
    for i in range(count):
        for column in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            place[width] = column
            width += 1
    block = np.zeros((width, width))
    for i in range(width):
        for j in range(width):
            block[i, j] = gram[place[i], place[j]]
    work = np.zeros((width, width))
    squared, root = 0.0, np.sqrt(shift)
    if len(reach[0]) > 0:
        joins, squares = _uncertain(blocks, reach, held)
        squared = uncertainty(joins, squares, nodes, count)
        raised = root + np.sqrt(squared)
        shift = raised * raised
    if definite(block, block, 0.0, shift, work):
        return -2
    level, vectors = np.linalg.eigh(block)
    missing = max(shift - level[0], 1e-12)
    part = np.zeros((width, width))
    best, chosen = 0.0, -1
    for n in range(count):
        for t in range(touch_at[nodes[n]], touch_at[nodes[n] + 1]):
            j = touching[t]
            if held[j] or prices[j] < 0:
                continue
            part[:] = 0.0
            at, first, last = value_at[j], column_at[j], column_at[j + 1]
            for a in range(first, last):
                row = -1
                for i in range(width):
                    if place[i] == columns[a]:
                        row = i
                for b in range(first, last):
                    if row >= 0:
                        for i in range(width):
                            if place[i] == columns[b]:
                                part[row, i] = values[at]
                    at += 1
            energy = 0.0
            for a in range(width):
                for b in range(width):
                    energy += vectors[a, 0] * part[a, b] * vectors[b, 0]
            needed = shift
            if len(reach[0]) > 0:
                raised = root + np.sqrt(squared + reach[0][j])
                needed = raised * raised
            if energy <= 1e-12 + needed - shift:
                continue
            score = min((energy - (needed - shift)) / missing, 1.0)
            if definite(block, part, 1.0, needed, work):
                score = 2.0
            score /= max(prices[j], 1e-3) * (1.0 + noise * _thrown(dice))
            if score > best:
                best, chosen = score, j
    return chosen


@kernel
def mend(state, blocks, reach, size, shift, held, prices, roots, rank, out, changed, most, noise, dice):
    """Buy until no set through `roots` is weak: what it cost, or −1 when that would be more than
    `most` or nothing helps.

    What was bought is listed in `changed`, from changed[0] + 1 entries on.
    """
    gram = state[0]
    columns, column_at, values, value_at = blocks[0], blocks[1], blocks[2], blocks[3]
    spent = 0
    while True:
        count = _weak_near(state, blocks, reach, size, shift, held, roots, rank, out)
        if count == 0:
            return spent
        before = changed[0]
        for number in range(count - 1, -1, -1):
            nodes = out[number]
            length = 0
            while length < size and nodes[length] >= 0:
                length += 1
            while True:
                j = _purchase(state, blocks, reach, nodes, length, held, prices, shift, noise, dice)
                if j == -2:
                    break
                if j == -1:
                    return -1
                spent += prices[j]
                held[j] = True
                _apply(gram, columns, column_at, values, value_at, j, 1.0)
                changed[0] += 1
                changed[changed[0]] = j
                if spent > most or changed[0] >= len(changed) - 2:
                    return -1
        if changed[0] == before:  # the two tests differ by rounding on what is left: no purchase would end this
            return -1


@kernel
def tidy(state, blocks, reach, size, shift, held, prices, candidates, rank, out, dice):
    """Drop what is not needed, dearest first, a little at random; the money saved."""
    gram = state[0]
    columns, column_at, values, value_at = blocks[0], blocks[1], blocks[2], blocks[3]
    key = np.empty(len(candidates))
    for i in range(len(candidates)):
        key[i] = -prices[candidates[i]] * (1.0 + _thrown(dice))
    saved = 0
    for i in np.argsort(key, kind="mergesort"):
        j = candidates[i]
        if not held[j] or prices[j] < 0:
            continue
        held[j] = False
        _apply(gram, columns, column_at, values, value_at, j, -1.0)
        near = reach[1][reach[2][j] : reach[2][j + 1]]
        if _weak_near(state, blocks, reach, size, shift, held, near, rank, out[:1]) > 0:
            held[j] = True
            _apply(gram, columns, column_at, values, value_at, j, 1.0)
        else:
            saved += prices[j]
    return saved


@kernel
def exchange_rows(state, blocks, reach, size, shift, held, prices, budget, rounds, seed):
    """Rounds of selling and buying from a set with no weak connected set, until it costs at most
    `budget`; what it costs then.

    `held` and the sum are changed in place.
    """
    dice = np.array([1 + (seed % 2147483646 + 1) * 69621 % 2147483646])
    gram, offsets = state[0], state[1]
    columns, column_at, values, value_at, touch_at, touching = blocks
    _, block_nodes, block_at = reach
    n = len(offsets) - 1
    rank = np.zeros(n, dtype=np.int64)
    out = np.full((LISTED, size), -1, dtype=np.int64)
    near = np.zeros(n, dtype=np.bool_)
    mark = np.zeros(len(held), dtype=np.bool_)
    changed = np.zeros(STEPS + 2, dtype=np.int64)
    sold = np.zeros(len(held), dtype=np.int64)
    cost = 0
    for j in range(len(held)):
        if held[j] and prices[j] >= 0:
            cost += prices[j]
    for _ in range(rounds):
        if cost <= budget:
            break
        before = held.copy()
        centre = int(n * _thrown(dice))
        near[:] = False
        near[centre] = True
        for t in range(touch_at[centre], touch_at[centre + 1]):
            j = touching[t]
            if held[j]:
                for i in range(block_at[j], block_at[j + 1]):
                    near[block_nodes[i]] = True
        ruin = 0.3 + 0.6 * _thrown(dice)
        count, back = 0, 0
        for node in range(n):
            if near[node]:
                for t in range(touch_at[node], touch_at[node + 1]):
                    j = touching[t]
                    if held[j] and prices[j] >= 0 and _thrown(dice) < ruin:
                        held[j] = False
                        _apply(gram, columns, column_at, values, value_at, j, -1.0)
                        sold[count] = j
                        count += 1
                        back += prices[j]
        if count == 0:
            continue
        for s in range(count):
            for i in range(block_at[sold[s]], block_at[sold[s] + 1]):
                near[block_nodes[i]] = True
        roots = np.flatnonzero(near)
        changed[0] = 0
        most = back + budget // 20 + 2
        paid = mend(state, blocks, reach, size, shift, held, prices, roots, rank, out, changed, most, 0.7, dice)
        after = cost
        if paid >= 0:
            mark[:] = False
            candidates = np.zeros(len(held), dtype=np.int64)
            many = 0
            for node in roots:
                for t in range(touch_at[node], touch_at[node + 1]):
                    j = touching[t]
                    if held[j] and prices[j] >= 0 and not mark[j]:
                        mark[j] = True
                        candidates[many] = j
                        many += 1
            saved = tidy(state, blocks, reach, size, shift, held, prices, candidates[:many], rank, out, dice)
            after = cost - back + paid - saved
        if paid >= 0 and after <= cost:
            cost = after
            continue
        for j in range(len(held)):
            if held[j] != before[j]:
                _apply(gram, columns, column_at, values, value_at, j, 1.0 if before[j] else -1.0)
                held[j] = before[j]
    return cost
