"""Sums of a few matrices that are definite: how many of each kind are needed.

Around one support a choice is a count of each kind of matrix; G(m) = G₀ + Σ m_k G_k only grows with
the counts, so the counts with G(m) ⪰ θI form an up-set with few least elements. They are looked for
by a search that stops where even everything is too little or nothing more is needed. Near ties
count as definite, so a least weight can only be too small.

With radii (`sufficing`) more is not always better, and what suffices is no up-set; but the least
weight of what suffices is found by the same search, and holds as a bound all the same. Members that
weigh nothing, or are taken for granted, lend their matrix without their radius and join nothing:
the bound can only be too small. A search stops early by the same measure: all that may still come
lends its matrix only.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.covering_minimum import enough, suffices, unsure
from solvers.kernels.kernel import kernel

WORK = 2_000_000  # factorisations per list, over their squared width: beyond, the caller takes more members for granted


@kernel
def _lightest(sets, spread, base, parts, sizes, prefix, starts, shift, root):
    """Whether the members that weigh nothing or less may suffice: they lend their matrices, without
    their radii and joining nothing.
    """
    counts = np.zeros(len(sizes), dtype=np.int64)
    total = base.copy()
    for k in range(len(sizes)):
        while counts[k] < sizes[k] and prefix[starts[k] + counts[k] + 1] <= prefix[starts[k] + counts[k]]:
            counts[k] += 1
        total += counts[k] * parts[k]
    return suffices(sets, spread, counts, 0, total, total, 0.0, shift, root, np.zeros_like(base))


@kernel
def least_weight(sets, spread, base, parts, sizes, prefix, starts, shift, root):
    """(status, least total weight of counts that suffice): status 1 when found, −1 when none does,
    −2 when it was not found in time and is only known to be at least so much.

    prefix[starts[k] + c] is the weight of the c lightest members of kind k; weights may be
    negative. Counts m suffice when base + Σ m·parts has no eigenvalue below `shift`, raised where
    radii ask for more.
    """
    kinds, width = len(sizes), base.shape[0]
    certain = len(spread[4]) == 0  # asked once: taking a tuple apart costs as much as a small factorisation
    sums = np.zeros((kinds + 1, width, width))
    rest = np.zeros((kinds + 1, width, width))
    work = np.zeros((width, width))
    spent = np.zeros(kinds + 1, dtype=np.int64)
    lowest = np.zeros(kinds + 1, dtype=np.int64)  # what the kinds from here on weigh at least
    counts = np.full(kinds, -1, dtype=np.int64)
    best = np.int64(1)
    for k in range(kinds - 1, -1, -1):
        rest[k] = rest[k + 1] + sizes[k] * parts[k]
        lowest[k] = lowest[k + 1] + prefix[starts[k] : starts[k] + sizes[k] + 1].min()
        best += prefix[starts[k] : starts[k] + sizes[k] + 1].max()
    if not suffices(sets, spread, counts, 0, base, rest[0], 1.0, shift, root, work):
        return -1, np.int64(0)
    if lowest[0] == 0 and suffices(sets, spread, counts, 0, base, base, 0.0, shift, root, work):
        return 1, np.int64(0)
    tests, level, found = 0, 0, False
    sums[0] = base
    while level >= 0:
        counts[level] += 1
        c = counts[level]
        if c > sizes[level]:
            level -= 1
            continue
        weight = spent[level] + prefix[starts[level] + c]
        if weight + lowest[level + 1] >= best:
            if c == sizes[level] or prefix[starts[level] + c + 1] >= prefix[starts[level] + c]:
                level -= 1  # weights rise: more members weigh no less
            continue
        after = sums[level + 1]
        after[:] = sums[level] + c * parts[level]
        tests += 2
        if tests * max(len(sets), 1) * width * width > 8 * WORK:
            return -2, lowest[0] + (
                0 if _lightest(sets, spread, base, parts, sizes, prefix, starts, shift, root) else 1
            )
        if certain:
            if not enough(sets, after, rest[level + 1], 1.0, shift, work):
                continue
        elif not suffices(sets, spread, counts, level + 1, after, rest[level + 1], 1.0, shift, root, work):
            continue
        spent[level + 1] = weight
        done = level + 1 == kinds
        if not done and lowest[level + 1] == 0:
            if certain:
                done = enough(sets, after, after, 0.0, shift, work)
            else:
                done = suffices(sets, spread, counts, level + 1, after, after, 0.0, shift, root, work)
        if done:
            best, found = weight, True
        else:
            level += 1
            counts[level] = -1
    return (1 if found else -1), best


@kernel
def light_counts(sets, spread, base, parts, sizes, table, below, shift, root, both, out):
    """Least counts into `out` whose weight, Σ table[k, m_k], is small and under `below`; 1 when
    found, 0 when there are none, −2 when it was not found out in time.

    Weights are not negative. Where none of a kind weighs nothing, they rise with the counts;
    members that weigh nothing come first and are taken at once. Elsewhere absent members weigh
    something as well. With `both` unsure members are never taken for nothing.
    """
    kinds, width = len(sizes), base.shape[0]
    certain = len(spread[4]) == 0  # asked once: taking a tuple apart costs as much as a small factorisation
    sums = np.zeros((kinds + 1, width, width))
    rest = np.zeros((kinds + 1, width, width))
    work = np.zeros((width, width))
    spent = np.zeros(kinds + 1)
    lowest = np.zeros(kinds + 1)  # what the kinds from here on weigh at least
    plain = np.ones(kinds + 1, dtype=np.bool_)  # whether from here on only what is bought weighs something
    free = np.zeros(kinds, dtype=np.int64)
    sums[0] = base
    for k in range(kinds - 1, -1, -1):
        lowest[k] = lowest[k + 1] + table[k, : sizes[k] + 1].min()
        plain[k] = plain[k + 1] and table[k, 0] <= 0.0
        if table[k, 0] <= 0.0 and not (both and unsure(spread, k)):
            while free[k] < sizes[k] and table[k, free[k] + 1] <= 0.0:
                free[k] += 1
        sums[0] += free[k] * parts[k]
        rest[k] = rest[k + 1] + (sizes[k] - free[k]) * parts[k]
    counts = np.full(kinds, -1, dtype=np.int64)
    found, best, tests, level = False, below, 0, 0
    if plain[0] and suffices(sets, spread, counts, 0, sums[0], rest[0], 0.0, shift, root, work):
        out[:kinds] = free
        found, level = True, -1
    while level >= 0:
        counts[level] += 1
        c = counts[level]
        if free[level] + c > sizes[level]:
            level -= 1
            continue
        weight = spent[level] + table[level, free[level] + c]
        if weight + lowest[level + 1] >= best:
            if table[level, 0] <= 0.0:
                level -= 1
            continue
        after = sums[level + 1]
        after[:] = sums[level] + c * parts[level]
        tests += 2
        if tests * max(len(sets), 1) * width * width > WORK:
            return -2
        if certain:
            if not enough(sets, after, rest[level + 1], 1.0, shift, work):
                continue
        elif not suffices(sets, spread, counts, level + 1, after, rest[level + 1], 1.0, shift, root, work):
            continue
        spent[level + 1] = weight
        done = level + 1 == kinds
        if not done and plain[level + 1]:
            if certain:
                done = enough(sets, after, after, 0.0, shift, work)
            else:
                done = suffices(sets, spread, counts, level + 1, after, after, 0.0, shift, root, work)
        if done:
            found, best = True, weight
            out[:kinds] = free
            out[: level + 1] += counts[: level + 1]
        else:
            level += 1
            counts[level] = -1
    if not found:
        return 0
    total = base.copy()
    for k in range(kinds):
        total += out[k] * parts[k]
    counts[:] = out[:kinds] - free  # what weighs something stays: without radii it is needed anyway
    for k in range(
        kinds
    ):  # what weighs nothing is dropped again where it is not needed: least counts make the strongest rows
        while out[k] > counts[k] and suffices(sets, spread, counts, kinds, total, parts[k], -1.0, shift, root, work):
            total -= parts[k]
            out[k] -= 1
    return 1
