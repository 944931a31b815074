"""Which inequality a fractional choice of matrices misses: rows of the hull of all counts that
suffice (`counts`).

The convex hull of an up-set is cut out by Σ w·x ≥ b with w ≥ 0; which of these a fractional x
misses by most is a linear program, min w·x with w·m ≥ 1 for every least m, solved here from its
dual, which starts feasible.

Which members of a kind are counted does not matter, so the cheapest are: sorted by falling x the
weights rise, and with the rises as variables the program has one variable per kind and value of x.
Everything is floating point except what is returned: whole weights and the whole bound that the
least counts give them.

With radii what is missed because too much is bought is found with leaving out as a purchase of its
own: with all that is bought and left out on the left side, the rows are those of the hull itself.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.counts import least_weight, light_counts
from solvers.kernels.covering_minimum import suffices, unsure
from solvers.kernels.kernel import kernel

COLUMNS = 240  # least counts looked at for one row
DIVISORS = 60  # weights are whole multiples of 1/q for some q up to this; else they are rounded
COARSE = 2520


@kernel
def _amount(count, size, start):
    return size - count if start < 0 else max(count - start, 0)


@kernel
def _heaviest_cover(sets, spread, base, parts, sizes, kind_of, start, prices, shift, root, both):
    """(status, w): w ≥ 0 of least prices·w with w·m ≥ 1 for every sufficient count m, where
    variable v has max(m_k − start_v, 0) in the row of m, or sizes_k − m_k where start_v is below
    zero. Status 1: found, and its value is under 1; 0: the value is at least 1; −2: not found out
    in time.

    The dual packs counts into the prices. It starts feasible, and columns are looked for as they
    are needed.
    """
    rows, kinds = len(prices), len(sizes)
    inverse = np.eye(rows)
    amounts = prices.copy()
    packed = np.zeros(rows, dtype=np.bool_)  # whether a count is basic in this place, or a slack
    weights = np.zeros(rows)
    direction = np.zeros(rows)
    columns = np.zeros((COLUMNS, rows))
    table = np.zeros((kinds, sizes.max() + 1))
    counts = np.zeros(kinds, dtype=np.int64)
    known = 0
    for _ in range(20 * COLUMNS):
        weights[:] = 0.0
        value = 0.0
        for i in range(rows):
            if packed[i]:
                weights += inverse[i]
                value += amounts[i]
        if value >= 1.0 - 1e-5:
            return 0, weights
        slack, low = -1, -1e-9
        for i in range(rows):
            if weights[i] < low:
                low, slack = weights[i], i
        entering = -1
        if slack < 0:
            worst = 1.0 - 1e-7
            for m in range(known):
                total = 0.0
                for i in range(rows):
                    total += weights[i] * columns[m, i]
                if total < worst:
                    worst, entering = total, m
            if entering < 0:
                table[:] = 0.0
                for v in range(rows):
                    if weights[v] > 1e-12:
                        for c in range(sizes[kind_of[v]] + 1):
                            table[kind_of[v], c] += weights[v] * _amount(c, sizes[kind_of[v]], start[v])
                answer = light_counts(sets, spread, base, parts, sizes, table, 1.0 - 1e-7, shift, root, both, counts)
                if answer < 0:
                    return -2, weights
                if answer == 0:
                    return 1, np.maximum(weights, 0.0)
                if known == COLUMNS:
                    return -2, weights
                for v in range(rows):
                    columns[known, v] = _amount(counts[kind_of[v]], sizes[kind_of[v]], start[v])
                entering = known
                known += 1
        for i in range(rows):
            total = 0.0
            if slack >= 0:
                total = inverse[i, slack]
            else:
                for j in range(rows):
                    total += inverse[i, j] * columns[entering, j]
            direction[i] = total
        leaving, ratio = -1, np.inf
        for i in range(rows):
            if direction[i] > 1e-9 and amounts[i] / direction[i] < ratio:
                ratio, leaving = amounts[i] / direction[i], i
        if leaving < 0:
            return -2, weights
        pivot = direction[leaving]
        inverse[leaving] /= pivot
        amounts[leaving] /= pivot
        for i in range(rows):
            if i != leaving and direction[i] != 0.0:
                inverse[i] -= direction[i] * inverse[leaving]
                amounts[i] = max(amounts[i] - direction[i] * amounts[leaving], 0.0)
        packed[leaving] = slack < 0
    return -2, weights


@kernel
def _whole(weights):
    """Weights as small whole numbers with the same ratios, or nearly so."""
    largest = weights.max()
    result = np.zeros(len(weights), dtype=np.int64)
    if not largest > 0.0:
        return result
    for q in range(1, DIVISORS + 1):
        good = True
        for w in weights:
            if abs(w * q - np.round(w * q)) > 1e-5 * q * max(largest, 1.0):
                good = False
                break
        if good:
            return np.round(weights * q).astype(np.int64)
    return np.round(weights * (COARSE / largest)).astype(np.int64)


@kernel
def separate(sets, spread, base, parts, sizes, shares, shift, root, taken, both):
    """(status, bound, weights of members): the row that these shares miss by most; status 0 when
    they miss none, −1 when no choice suffices, −2 when the least counts are too many to list.
    Members with a share of at least `taken` are taken for granted.

    Members are listed kind after kind. With `both`, leaving unsure ones out may count as well:
    their weights may be negative.
    """
    kinds, width, members = len(sizes), base.shape[0], len(shares)
    owned = base.copy()
    order = np.zeros(members, dtype=np.int64)
    left = np.zeros(kinds, dtype=np.int64)
    first = np.zeros(kinds + 1, dtype=np.int64)
    weights = np.zeros(members, dtype=np.int64)
    at, kept, kept_of, variables = 0, 0, np.zeros(kinds, dtype=np.int64), 0
    for k in range(kinds):
        falling = np.argsort(-shares[at : at + sizes[k]], kind="mergesort")
        for i in falling:
            if shares[at + i] >= taken and not (both and unsure(spread, k)):
                owned += parts[k]
            else:
                order[kept + left[k]] = at + i
                left[k] += 1
        first[k + 1] = first[k] + left[k]
        kept = first[k + 1]
        at += sizes[k]
    chosen = 0
    for k in range(kinds):
        if left[k] > 0:
            kept_of[chosen] = k
            chosen += 1
    few = np.empty((chosen, width, width))
    amounts = np.empty(chosen, dtype=np.int64)
    masks, radii = np.zeros(chosen, dtype=np.int64), np.zeros(chosen)
    for c in range(chosen):
        few[c] = parts[kept_of[c]]
        amounts[c] = left[kept_of[c]]
        if len(spread[4]) > 0:
            masks[c] = spread[0][kept_of[c]]
            radii[c] = spread[1][kept_of[c]]
    few_spread = (masks, radii, spread[2], spread[3], spread[4], spread[5])
    work, everything = np.zeros((width, width)), owned.copy()
    for c in range(chosen):
        everything += amounts[c] * few[c]
    if not suffices(sets, few_spread, amounts, 0, everything, owned, 0.0, shift, root, work):
        return -1, 0, weights
    if chosen == 0:
        return 0, 0, weights
    if not both and suffices(sets, few_spread, amounts, 0, owned, owned, 0.0, shift, root, work):
        return 0, 0, weights
    kind_of = np.zeros(kept + chosen + 1, dtype=np.int64)
    start = np.zeros(kept + chosen + 1, dtype=np.int64)
    prices = np.zeros(kept + chosen + 1)
    for c in range(chosen):
        k = kept_of[c]
        tail = 0.0
        for p in range(left[k] - 1, -1, -1):
            here = shares[order[first[k] + p]]
            tail += here
            if p == 0 or shares[order[first[k] + p - 1]] > here + 1e-9:
                kind_of[variables], start[variables] = c, p
                prices[variables] = tail + 1e-7 * (1 + variables % 7) * (
                    left[k] - p
                )  # ties are broken, and few weights used
                variables += 1
        if both and unsure(few_spread, c):
            kind_of[variables], start[variables] = c, -1
            prices[variables] = left[k] - tail + 1e-7 * (1 + variables % 7) * left[k]
            variables += 1
    solved, rises = _heaviest_cover(
        sets,
        few_spread,
        owned,
        few,
        amounts,
        kind_of[:variables],
        start[:variables],
        prices[:variables],
        shift,
        root,
        both,
    )
    if solved <= 0:
        return solved, 0, weights
    risen = _whole(rises)
    by_member = np.zeros(kept, dtype=np.int64)
    for v in range(variables):
        k = kept_of[kind_of[v]]
        if start[v] < 0:
            by_member[first[k] : first[k + 1]] -= risen[v]
        else:
            by_member[first[k] + start[v] : first[k + 1]] += risen[v]
    prefix = np.zeros(kept + chosen, dtype=np.int64)
    starts = np.zeros(chosen, dtype=np.int64)
    at = 0
    for c in range(chosen):
        k = kept_of[c]
        starts[c] = at
        for p in range(left[k]):
            prefix[at + p + 1] = prefix[at + p] + by_member[first[k] + p]
        at += left[k] + 1
    status, bound = least_weight(sets, few_spread, owned, few, amounts, prefix, starts, shift, root)
    if status < 0:
        return status, 0, weights
    for p in range(kept):
        weights[order[p]] = by_member[p]
    return 1, bound, weights
