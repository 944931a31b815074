"""The verifier's own kernel: every connected support, once, each with a Cholesky that proves it
harmless.

What is proved: G_SS − τ_S·I is positive semidefinite in exact arithmetic, with G = BᵀB, for every
connected node set S of the target size (smaller sets follow by interlacing, unconnected ones
because their Gram matrix is block diagonal). Enumeration is ESU: a set is built from its smallest
node, and a node joins the list of candidates when the first member that touches it does. The list
is one stack, shared by all depths.

A factorisation in floating point that runs through is a proof, since the diagonal comes in lowered
(see `gram`). This module shares nothing with `solvers`, and `fastmath` stays off: reassociation
would void the bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker.kernel import kernel

UNIT = 2.0**-53
DONE, PAUSED, FULL = 0, 1, 2

# Slots of the integer state vector.
ROOT, DEPTH, COUNT, TESTED = 0, 1, 2, 3


class Gram(NamedTuple):
    """G = BᵀB in blocks, as the walker reads it.

    Blocks are stored row by row, one per direction of an edge.
    """

    sizes: NDArray[np.int64]  # (nodes,): coordinates of each node
    starts: NDArray[np.int64]  # (nodes + 1,)
    target: NDArray[np.int64]  # (nodes,): size of the supports to build from this root
    roots: NDArray[np.int64]  # nodes to build supports from, by rank
    rank: NDArray[np.int64]  # (nodes,): a support is built from its member of lowest rank
    neighbour_starts: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    edge_blocks: NDArray[np.int64]  # start of G_ij in `blocks`, or -1 where it is zero
    self_blocks: NDArray[np.int64]  # start of G_ii
    blocks: NDArray[np.float64]
    diagonal: NDArray[np.float64]  # lowered so that a factorisation that runs through is a proof
    touch_starts: NDArray[np.int64]  # row blocks of each node: for the radius of a support
    touched: NDArray[np.int64]
    radii2: NDArray[np.float64]  # squared radius of each row block; empty: no uncertainty


class Walk(NamedTuple):
    """The walker's memory: a call goes on where the last one stopped."""

    state: NDArray[np.int64]
    stack: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    pointer: NDArray[np.int64]
    seen: NDArray[np.int64]
    chosen: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sound: NDArray[np.bool_]
    edge_at: NDArray[np.int64]  # (size, nodes): edge_at[l, j] is where the block of chosen[l] and j starts
    factor: NDArray[np.float64]
    scratch: NDArray[np.float64]
    lead: NDArray[np.int64]  # (coordinates,): before this place the row of the factor is zero, and not written
    stamp: NDArray[np.int64]
    rejected: NDArray[np.int64]  # (capacity, size): supports whose test failed, padded with -1
    solved: NDArray[np.float64]  # scalars only: solved[l, p] is the entry of the factor for chosen[l] and stack[p]
    rest: NDArray[np.float64]  # scalars only: rest[l, p] is the pivot stack[p] would have after l chosen nodes


def new_walk(gram: Gram, *, capacity: int) -> Walk:
    nodes, size = len(gram.sizes), int(gram.target.max())
    order = int(np.sort(gram.sizes)[-size:].sum())
    levels = size + 2
    wide = nodes + 1 if order == size else 0  # all nodes scalar
    return Walk(
        state=np.zeros(4, dtype=np.int64),
        stack=np.zeros(nodes + 1, dtype=np.int64),
        begin=np.zeros(levels, dtype=np.int64),
        end=np.zeros(levels, dtype=np.int64),
        pointer=np.zeros(levels, dtype=np.int64),
        seen=np.zeros(nodes, dtype=np.int64),
        chosen=np.zeros(levels, dtype=np.int64),
        offsets=np.zeros(levels, dtype=np.int64),
        sound=np.zeros(levels, dtype=np.bool_),
        edge_at=np.full((size, nodes), -1, dtype=np.int64),
        factor=np.zeros((order, order)),
        scratch=np.zeros((order, order)),
        lead=np.zeros(order, dtype=np.int64),
        stamp=np.zeros(len(gram.radii2), dtype=np.int64),
        rejected=np.full((capacity, size), -1, dtype=np.int64),
        solved=np.zeros((levels, wide)),
        rest=np.zeros((levels, wide)),
    )


@kernel
def first_failure(
    gram: Gram, w: Walk, factor: Any, candidates: Any, first: int, last: int, depth: int, at: int, shift: float
) -> int:
    """Append the rows of each candidate in turn to the lower factor of G_CC − shift·I, C =
    chosen[:depth]; return the index of the first that breaks down (its pivot is not positive), or
    `last`.

    Arrays are taken out of the tuples once: inside the loops that would cost more than the
    arithmetic. The diagonal of the factor holds reciprocals, which costs one more rounding per
    entry (allowed for in `diagonal`). Before the first member that touches the candidate its rows
    are zero: they are neither computed nor read there.
    """
    sizes, starts, blocks, self_blocks = gram.sizes, gram.starts, gram.blocks, gram.self_blocks
    diagonal, chosen, edge_at, lead = gram.diagonal, w.chosen, w.edge_at, w.lead
    for index in range(first, last):
        node = candidates[index]
        width = sizes[node]
        alone, zeros = 0, 0
        while alone < depth and edge_at[alone, node] < 0:
            zeros += sizes[chosen[alone]]
            alone += 1
        for q in range(width):
            row = at + q
            lead[row] = zeros
            position = zeros
            total = 0.0
            for level in range(alone, depth):
                block = edge_at[level, node]
                for p in range(sizes[chosen[level]]):
                    value = 0.0
                    if block >= 0:
                        value = blocks[block + p * width + q]
                    for m in range(max(zeros, lead[position]), position):
                        value -= factor[position, m] * factor[row, m]
                    value *= factor[position, position]
                    factor[row, position] = value
                    total += value * value
                    position += 1
            for p in range(q):
                value = blocks[self_blocks[node] + p * width + q]
                for m in range(zeros, position):
                    value -= factor[position, m] * factor[row, m]
                value *= factor[position, position]
                factor[row, position] = value
                total += value * value
                position += 1
            base = diagonal[starts[node] + q]
            pivot = ((base - shift) - 4.0 * UNIT * (abs(base) + shift)) - total  # lowered: the difference is rounded
            if not pivot > 0.0:
                return index
            if index + 1 == last or q + 1 < width:  # the last root of all but the last candidate is never read
                factor[row, row] = 1.0 / np.sqrt(pivot)
    return last


@kernel
def append_node(gram: Gram, w: Walk, factor: Any, at: int, depth: int, shift: float) -> bool:
    """Append the node chosen[depth] to the factor; False: it broke down."""
    return bool(first_failure(gram, w, factor, w.chosen, depth, depth + 1, depth, at, shift) > depth)


@kernel
def passes_on_its_own(gram: Gram, w: Walk, size: int, floor: float) -> bool:
    """The whole factorisation of one support with its own shift (t + η_S)², rounded up."""
    total = 0.0
    for level in range(size):
        node = w.chosen[level]
        for e in range(gram.touch_starts[node], gram.touch_starts[node + 1]):
            block = gram.touched[e]
            if w.stamp[block] != w.state[TESTED]:
                w.stamp[block] = w.state[TESTED]
                total += gram.radii2[block]
    raised = floor + np.sqrt(total * (1.0 + 1e-12)) * (1.0 + 1e-14)
    shift = raised * raised * (1.0 + 1e-14)
    at = 0
    for level in range(size):
        if not append_node(gram, w, w.scratch, at, level, shift):
            return False
        at += gram.sizes[w.chosen[level]]
    return True


@kernel
def eliminate(gram: Gram, w: Walk, depth: int, place: int, known: int, fill: int, shift: float) -> bool:
    """The same factorisation for scalar nodes, all candidates at once: the row of chosen[depth] (at
    stack[place]; the root has no place) for every candidate after it, and the pivots they are left
    with. False: its own pivot is not positive. Candidates from `known` on are new: no earlier
    member touches them, so their earlier entries are zero.
    """
    stack, blocks, diagonal = w.stack, gram.blocks, gram.diagonal
    edge_at, solved, rest = w.edge_at[depth], w.solved, w.rest
    for index in range(known, fill):
        base = diagonal[stack[index]]
        rest[depth, index] = (base - shift) - 4.0 * UNIT * (abs(base) + shift)
        for level in range(depth):
            solved[level, index] = 0.0
    base = diagonal[w.chosen[depth]]
    pivot = rest[depth, place] if depth else (base - shift) - 4.0 * UNIT * (abs(base) + shift)
    if not pivot > 0.0:
        return False
    inverse = 1.0 / np.sqrt(pivot)
    for index in range(place + 1, fill):
        block = edge_at[stack[index]]
        value = blocks[block] if block >= 0 else 0.0
        for level in range(depth):
            value -= solved[level, place] * solved[level, index]
        value *= inverse
        solved[depth, index] = value
        rest[depth + 1, index] = rest[depth, index] - value * value
    return True


@kernel
def take(gram: Gram, w: Walk, depth: int, node: int, place: int, root: int, shift: float) -> int:
    """Put `node`, which stands at stack[place], at this depth: extend the factor, and the
    candidates by those that it is the first to touch. Returns the new end of the stack.
    """
    known = w.end[depth] if depth else 0
    fill = known
    w.chosen[depth] = node
    for e in range(gram.neighbour_starts[node], gram.neighbour_starts[node + 1]):
        other = gram.neighbours[e]
        w.edge_at[depth, other] = gram.edge_blocks[e]
        if gram.rank[other] > gram.rank[root] and w.seen[other] == 0:
            w.seen[other] = 1
            w.stack[fill] = other
            fill += 1
    if not w.sound[depth]:
        w.sound[depth + 1] = False
    elif w.rest.shape[1]:
        w.sound[depth + 1] = eliminate(gram, w, depth, place, known, fill, shift)
    else:
        w.sound[depth + 1] = append_node(gram, w, w.factor, w.offsets[depth], depth, shift)
    w.offsets[depth + 1] = w.offsets[depth] + gram.sizes[node]
    return fill


@kernel
def first_bad_pivot(pivots: Any, first: int, last: int) -> int:
    for index in range(first, last):
        if not pivots[index] > 0.0:
            return index
    return last


@kernel
def give_back(gram: Gram, w: Walk, depth: int) -> None:
    """Undo `take` for the last of `depth` chosen nodes."""
    for index in range(w.begin[depth], w.end[depth]):
        w.seen[w.stack[index]] = 0
    node = w.chosen[depth - 1]
    for e in range(gram.neighbour_starts[node], gram.neighbour_starts[node + 1]):
        w.edge_at[depth - 1, gram.neighbours[e]] = -1


@kernel
def walk(gram: Gram, w: Walk, shift: float, floor: float, budget: int) -> int:
    """Walk on until all supports are tested (DONE), `budget` tests are used (PAUSED), or `rejected`
    is full (FULL).

    `shift` is at least every support's own (t + η_S)², with t = floor; a support that fails with it
    is tried again with its own.
    """
    used = 0
    while w.state[ROOT] < len(gram.roots):
        root = gram.roots[w.state[ROOT]]
        size = gram.target[root]
        if w.state[DEPTH] == 0:
            w.seen[root] = 1
            w.sound[0] = True
            w.offsets[0] = 0
            w.begin[1] = 0
            w.end[1] = take(gram, w, 0, root, -1, root, shift)
            w.pointer[1] = 0
            w.state[DEPTH] = 1
        depth = w.state[DEPTH]
        if depth >= size - 1:  # the last node: every candidate completes a support (a single root is one already)
            last = w.end[depth] if size > 1 else 1
            used += last - w.pointer[depth]
            while w.pointer[depth] < last:
                first = w.pointer[depth]
                index = first
                if w.sound[depth] and size > 1 and w.rest.shape[1]:
                    index = first_bad_pivot(w.rest[depth], first, last)
                elif w.sound[depth] and size > 1:
                    index = first_failure(gram, w, w.factor, w.stack, first, last, depth, w.offsets[depth], shift)
                elif w.sound[depth]:
                    index = last
                w.state[TESTED] += min(index + 1, last) - first
                w.pointer[depth] = min(index + 1, last)
                if index < last:
                    if size > 1:
                        w.chosen[depth] = w.stack[index]
                    if len(gram.radii2) == 0 or not passes_on_its_own(gram, w, size, floor):
                        found = w.state[COUNT]
                        for level in range(w.rejected.shape[1]):
                            w.rejected[found, level] = w.chosen[level] if level < size else -1
                        w.state[COUNT] = found + 1
                        if found + 1 == len(w.rejected):
                            return FULL
        if depth < size - 1 and w.pointer[depth] < w.end[depth]:
            index = w.pointer[depth]
            w.pointer[depth] = index + 1
            w.begin[depth + 1] = w.end[depth]
            w.end[depth + 1] = take(gram, w, depth, w.stack[index], index, root, shift)
            w.pointer[depth + 1] = index + 1
            w.state[DEPTH] = depth + 1
        else:
            give_back(gram, w, depth)
            w.state[DEPTH] = depth - 1
            if depth == 1:
                w.seen[root] = 0
                w.state[ROOT] += 1
            if used >= budget:
                return PAUSED
    return DONE
