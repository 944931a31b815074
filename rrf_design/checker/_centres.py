"""The verifier's own pruning for dense fields: only supports around a centre are looked at.

N is the Gram matrix minus the shift, its diagonal lowered for rounding (see `gram`). Scale its
diagonal blocks to the identity and let c_ij bound the norm of the scaled block between nodes i and
j. A set S with Σ_{j∈S∖i} c_ij ≤ 1 for every member i is block diagonally dominant, so harmless.
Every harmful set has a member that breaks this: a centre. So:

* *star*: go through the sets around i whose couplings to i add up to more than 1, the heaviest
  first; each is
  factorised from scratch. Where couplings are light these are few.
* *branch*: where they are many, eliminate i; what is left of the other nodes (a Schur complement)
  is the same
  question with one node less. That settles every set with i in it, and i is left out from then on.

Nothing is missed: a harmful set holds a node that was branched on, and the first of those meets it;
or it does not, and then one of its centres had its star gone through while the whole set was still
there.

Why floating point is a proof. Eliminating q coordinates gives N + Δ = RᵀR + remainder with |Δ_ij| ≤
3(q + 4)u·√(g_ii·g_jj), paid for by the lowered diagonal; the remainder is then judged as it stands
(see `couplings`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker._couplings import LIMIT, couple_blocks, couple_scalars, factorise, top
from rrf_design.checker._enumeration import COUNT, DONE, FULL, PAUSED, TESTED, UNIT
from rrf_design.checker.kernel import kernel

PRICE = 3  # an elimination is worth pairs of nodes · coordinates · this / 1000 tests (measured)

LEVEL, WORK, STAR, STAMP = 0, 1, 4, 5  # slots of the integer state vector, besides COUNT and TESTED


class Dense(NamedTuple):
    """One component of the field whose nodes mostly touch each other."""

    names: NDArray[np.int64]  # (nodes,): which nodes of the field these are
    cuts: NDArray[np.int64]  # (nodes + 1,): coordinates of each
    matrix: NDArray[np.float64]  # (width, width): G with its diagonal lowered
    scale: NDArray[np.float64]  # (nodes,): root of the trace of G_ii, from above
    touch_starts: NDArray[np.int64]  # row blocks of each node: for the radius of a support
    touched: NDArray[np.int64]
    radii2: NDArray[np.float64]  # squared radius of each row block; empty: no uncertainty


class Hunt(NamedTuple):
    """The search's memory, one slot per level: a call goes on where the last one stopped."""

    state: NDArray[np.int64]
    size: int
    price: int
    nodes: NDArray[np.int64]  # (levels, n): which nodes are left
    counts: NDArray[np.int64]
    cuts: NDArray[np.int64]
    rest: NDArray[np.float64]  # (levels, width, width): what eliminating the chosen ones leaves; symmetric to the bit
    links: NDArray[np.float64]  # (levels, n, n): couplings, from above
    sound: NDArray[np.bool_]  # (levels, n): harmless with the chosen ones
    order: NDArray[np.int64]  # (levels, n): heaviest first
    centres: NDArray[np.int64]  # how many of them can be the centre of a harmful set
    place: NDArray[np.int64]
    free: NDArray[np.bool_]  # (levels, n): not branched on yet
    chosen: NDArray[np.int64]
    pulls: NDArray[np.float64]  # couplings of the current star, falling
    members: NDArray[np.int64]
    arms: NDArray[np.int64]  # places of the current set in the star
    held: NDArray[np.int64]  # its nodes, the centre first
    slots: NDArray[np.int64]  # where they begin in the factor
    factor: NDArray[np.float64]
    small: NDArray[np.float64]
    stamp: NDArray[np.int64]
    rejected: NDArray[np.int64]


def new_hunt(part: Dense, size: int, *, shift: float, capacity: int, price: int = PRICE) -> Hunt:
    n, width = len(part.names), len(part.matrix)
    levels = max(1, size - 2)
    order = int(np.sort(np.diff(part.cuts))[-size:].sum())
    hunt = Hunt(
        state=np.zeros(6, dtype=np.int64),
        size=size,
        price=price,
        nodes=np.zeros((levels, n), dtype=np.int64),
        counts=np.zeros(levels, dtype=np.int64),
        cuts=np.zeros((levels, n + 1), dtype=np.int64),
        rest=np.zeros((levels, width, width)),
        links=np.zeros((levels, n, n)),
        sound=np.zeros((levels, n), dtype=np.bool_),
        order=np.zeros((levels, n), dtype=np.int64),
        centres=np.zeros(levels, dtype=np.int64),
        place=np.zeros(levels, dtype=np.int64),
        free=np.ones((levels, n), dtype=np.bool_),
        chosen=np.zeros(size, dtype=np.int64),
        pulls=np.zeros(n + 1),
        members=np.zeros(n + 1, dtype=np.int64),
        arms=np.zeros(size + 1, dtype=np.int64),
        held=np.zeros(size + 1, dtype=np.int64),
        slots=np.zeros(size + 1, dtype=np.int64),
        factor=np.zeros((order, order)),
        small=np.zeros((size, size)),
        stamp=np.zeros(len(part.radii2), dtype=np.int64),
        rejected=np.full((capacity, size), -1, dtype=np.int64),
    )
    hunt.nodes[0], hunt.counts[0], hunt.cuts[0], hunt.rest[0] = np.arange(n), n, part.cuts, part.matrix
    diagonal = np.diag(part.matrix)
    hunt.rest[0][np.diag_indices(width)] = (diagonal - shift) - 4.0 * UNIT * (np.abs(diagonal) + shift)
    open_level(part, hunt, 0)
    return hunt


@kernel
def open_level(part: Dense, h: Hunt, level: int) -> None:
    """Couplings of what is left, and the order in which its nodes are taken: heaviest first."""
    count = h.counts[level]
    cuts, links = h.cuts[level], h.links[level]
    if cuts[count] == count:
        couple_scalars(h.rest[level], links, h.sound[level], count)
    else:
        couple_blocks(h.rest[level], cuts, links, h.sound[level], count, part.scale[h.nodes[level, :count]])
    weight = np.empty(count)
    central = h.order[level]
    arms = h.size - level - 1
    found = 0
    for a in range(count):
        h.free[level, a] = True
        heaviest = 0.0
        for b in range(count):
            heaviest = max(heaviest, links[a, b])
        if heaviest * arms <= LIMIT:
            continue
        total = top(links[a], h.free[level], count, arms, False)
        if not total <= LIMIT:
            weight[found] = -total
            central[found] = a
            found += 1
    central[:found] = central[:found][np.argsort(weight[:found])]
    h.place[level] = 0
    h.centres[level] = found


@kernel
def gather_star(h: Hunt, level: int, centre: int, arms: int) -> int:
    """The free nodes that can stand in a set whose couplings to the centre add up to more than 1,
    heaviest first.
    """
    row, free, count = h.links[level, centre], h.free[level], h.counts[level]
    others = top(row, free, count, arms - 1, True) if arms > 1 else 0.0
    found = 0
    for b in range(count):
        if b != centre and free[b] and not row[b] + others <= LIMIT:
            h.members[found] = b
            h.pulls[found] = row[b]
            found += 1
    if found < arms:
        return 0
    falling = np.argsort(-h.pulls[:found])
    h.members[:found] = h.members[:found][falling]
    h.pulls[:found] = h.pulls[:found][falling]
    return found


@kernel
def next_set(pulls: Any, found: int, arms: Any, count: int, depth: int) -> int:
    """Move `arms[:count]`, rising places in the falling list `pulls`, to the next set that adds up
    to more than 1.

    Depth 0 starts; depth `count` goes on after a complete set. Returns the first place that
    changed, or -1 when there are no more. With the first places fixed, the best completion takes
    the places that follow: when that is too light, so is everything further down the list.
    """
    if depth == count:
        depth -= 1
        arms[depth] += 1
    else:
        arms[0] = 0
    lowest = depth
    while True:
        total = 0.0
        for t in range(depth):
            total += pulls[arms[t]]
        here = arms[depth]
        fits = here + count - depth <= found
        if fits:
            for t in range(count - depth):
                total += pulls[here + t]
        if fits and not total <= LIMIT:
            depth += 1
            if depth == count:
                return lowest
            arms[depth] = here + 1
        else:
            depth -= 1
            if depth < 0:
                return -1
            lowest = min(lowest, depth)
            arms[depth] += 1


@kernel
def few_sets(h: Hunt, found: int, arms: int, most: int) -> bool:
    """Has the star at most `most` sets?"""
    going = next_set(h.pulls, found, h.arms, arms, 0)
    seen = 0
    while going >= 0:
        seen += 1
        if seen > most:
            return False
        going = next_set(h.pulls, found, h.arms, arms, arms)
    return True


@kernel
def compares(h: Hunt, level: int, centre: int, arms: int) -> bool:
    """Is the current set harmless by its couplings alone: is I − (c_ij), which bounds it from
    below, positive definite?
    """
    small, links = h.small, h.links[level]
    for t in range(arms + 1):
        a = centre if t == 0 else h.members[h.arms[t - 1]]
        for u in range(t + 1):
            b = centre if u == 0 else h.members[h.arms[u - 1]]
            value = 1.0 - 1e-8 * (arms + 1) if t == u else -links[a, b]
            for v in range(u):
                value -= small[t, v] * small[u, v]
            if u < t:
                small[t, u] = value * small[u, u]
            elif value > 0.0:
                small[t, t] = 1.0 / np.sqrt(value)
            else:
                return False
    return True


@kernel
def extend(h: Hunt, level: int, slot: int, node: int) -> bool:
    """Append a node's rows to the factor of the remainder on the current set; False: a pivot is not
    positive.
    """
    rest, cuts, factor, slots = h.rest[level], h.cuts[level], h.factor, h.slots
    first, at = cuts[node], slots[slot]
    for q in range(cuts[node + 1] - first):
        row = at + q
        column = 0
        total = 0.0
        for earlier in range(slot + 1):
            begin = first if earlier == slot else cuts[h.held[earlier]]
            for p in range(q if earlier == slot else slots[earlier + 1] - slots[earlier]):
                value = rest[first + q, begin + p]
                for t in range(column):
                    value -= factor[row, t] * factor[column, t]
                value *= factor[column, column]
                factor[row, column] = value
                total += value * value
                column += 1
        pivot = rest[first + q, first + q] - total
        if not pivot > 0.0:
            return False
        factor[row, row] = 1.0 / np.sqrt(pivot)
    slots[slot + 1] = at + cuts[node + 1] - first
    return True


@kernel
def own_shift(part: Dense, h: Hunt, floor: float) -> float:
    """(floor + η_S)² of the chosen support, rounded up."""
    total = 0.0
    h.state[STAMP] += 1
    for node in h.chosen[: h.size]:
        for e in range(part.touch_starts[node], part.touch_starts[node + 1]):
            block = part.touched[e]
            if h.stamp[block] != h.state[STAMP]:
                h.stamp[block] = h.state[STAMP]
                total += part.radii2[block]
    raised = floor + np.sqrt(total * (1.0 + 1e-12)) * (1.0 + 1e-14)
    return float(raised * raised * (1.0 + 1e-14))


@kernel
def passes(part: Dense, h: Hunt, shift: float) -> bool:
    """The whole Cholesky factorisation of the chosen support, from scratch."""
    matrix, factor = part.matrix, h.factor
    row = 0
    for node in h.chosen[: h.size]:
        for i in range(part.cuts[node], part.cuts[node + 1]):
            column = 0
            total = 0.0
            for other in h.chosen[: h.size]:
                for j in range(part.cuts[other], part.cuts[other + 1]):
                    if column >= row:
                        break
                    value = matrix[i, j]
                    for t in range(column):
                        value -= factor[row, t] * factor[column, t]
                    value *= factor[column, column]
                    factor[row, column] = value
                    total += value * value
                    column += 1
            base = matrix[i, i]
            pivot = ((base - shift) - 4.0 * UNIT * (abs(base) + shift)) - total
            if not pivot > 0.0:
                return False
            factor[row, row] = 1.0 / np.sqrt(pivot)
            row += 1
    return True


@kernel
def eliminate(part: Dense, h: Hunt, level: int, centre: int) -> None:
    """Open the next level: what is left of the free nodes when the centre is eliminated."""
    old, new, cuts = h.rest[level], h.rest[level + 1], h.cuts[level]
    first, width = cuts[centre], cuts[centre + 1] - cuts[centre]
    columns = np.empty(cuts[h.counts[level]], np.int64)
    fill, left = 0, 0
    for b in range(h.counts[level]):
        if h.free[level, b]:
            h.nodes[level + 1, left] = h.nodes[level, b]
            h.cuts[level + 1, left] = fill
            for column in range(cuts[b], cuts[b + 1]):
                columns[fill] = column
                fill += 1
            left += 1
    h.counts[level + 1] = left
    h.cuts[level + 1, left] = fill
    factor = np.zeros((width, width))
    factorise(old, first, width, factor)
    y = np.empty((width, fill))
    for t in range(width):
        for j in range(fill):
            value = old[first + t, columns[j]]
            for p in range(t):
                value -= factor[t, p] * y[p, j]
            y[t, j] = value / factor[t, t]
    for i in range(fill):
        row, source = new[i], old[columns[i]]
        for j in range(fill):
            row[j] = source[columns[j]]
        for t in range(width):
            pull, other = y[t, i], y[t]
            for j in range(fill):
                row[j] -= pull * other[j]
    open_level(part, h, level + 1)


@kernel
def star(part: Dense, h: Hunt, level: int, shift: float, floor: float) -> int:
    """Factorise the sets of the current star one by one.

    FULL: `rejected` is; the star goes on from there.

    What fails on the remainder is tried again from scratch, with the support's own radius.
    """
    arms = h.size - level - 1
    blocks = h.cuts[level, h.counts[level]] > h.counts[level]
    fresh = 0  # slots of the factor that belong to the current set
    changed = 0
    while changed >= 0:
        fresh = min(fresh, changed + 1)
        h.state[TESTED] += 1
        h.state[WORK] += 1
        if not (blocks and compares(h, level, h.held[0], arms)):
            while fresh <= arms:
                if fresh > 0:
                    h.held[fresh] = h.members[h.arms[fresh - 1]]
                if not extend(h, level, fresh, h.held[fresh]):
                    break
                fresh += 1
            if fresh <= arms:
                for t in range(arms):
                    h.chosen[level + 1 + t] = h.nodes[level, h.members[h.arms[t]]]
                if len(part.radii2) == 0 or not passes(part, h, own_shift(part, h, floor)):
                    for t in range(h.size):
                        h.rejected[h.state[COUNT], t] = part.names[h.chosen[t]]
                    h.state[COUNT] += 1
        changed = next_set(h.pulls, h.state[STAR], h.arms, arms, arms)
        if changed >= 0 and h.state[COUNT] == len(h.rejected):
            return FULL
    h.state[STAR] = 0
    return DONE


@kernel
def hunt(part: Dense, h: Hunt, shift: float, floor: float, budget: int) -> int:
    """Search on until nothing is left (DONE), about `budget` tests are used (PAUSED), or `rejected`
    is full (FULL).
    """
    h.state[WORK] = 0
    while True:
        level = h.state[LEVEL]
        if h.state[STAR] and star(part, h, level, shift, floor) == FULL:
            return FULL
        if h.state[COUNT] == len(h.rejected):
            return FULL
        if h.state[WORK] >= budget:
            return PAUSED
        place, count = h.place[level], h.counts[level]
        if place == h.centres[level]:
            if level == 0:
                return DONE
            h.state[LEVEL] = level - 1
            continue
        h.place[level] = place + 1
        centre = h.order[level, place]
        arms = h.size - level - 1
        h.chosen[level] = h.nodes[level, centre]
        found = gather_star(h, level, centre, arms)
        if found == 0:
            continue
        width = h.cuts[level, centre + 1] - h.cuts[level, centre]
        most = 1 + count * count * width * h.price // 1000
        sound = h.sound[level, centre]
        if arms < 3 or not sound or few_sets(h, found, arms, most):
            if next_set(h.pulls, found, h.arms, arms, 0) >= 0:
                h.state[STAR] = found
                h.held[0] = centre
            h.free[level, centre] = sound  # the star of an unsound node is every set that holds it
            continue
        h.free[level, centre] = False
        eliminate(part, h, level, centre)
        h.state[WORK] += count * count * width // 16
        h.state[LEVEL] = level + 1
