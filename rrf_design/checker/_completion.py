"""The verifier's own proof for large supports of sparse fields: growth that stops where no
completion can do harm.

P is a connected set of chosen nodes, F what lies beside it and is still open, r how many nodes are
to come. Y_f is f's row in the factor of N_PP, so that f loses K_ff = ‖Y_f‖² and two nodes of F are
tied by K_fg = Y_f·Y_g. Let T be any r nodes that keep P + T connected, A its nodes in F, t of them.
Every piece of T has a Schur complement of at least π (see `pieces`), so if π_f(t) > K_ff + Σ_{g∈A}
|K_fg| for every f in A, Gershgorin says that N is definite on P + T. So a harmful T has a node f in
A with K_ff + (its t − 1 heaviest ties) ≥ π_f(t). When no f of F can be that node, P is done.
Otherwise the worst of them is chosen, all of that is searched, then it is left out for good, and
the question is asked again.

Bounds for pieces too large for the tables come from the margins of smaller sizes, which are proved
first, one after the other. What levels to try there is guessed; only what was proved is used. The
diagonal is lowered three times over: for the factor of P, for the tables' factorisations, and for
the smaller sizes, whose proofs have used up the first two.

A flag that compiled searches look at between two steps, set when their time is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker._enumeration import UNIT, Gram
from rrf_design.checker._pieces import TOLD_APART, Links, backward_edges, girths, lengthen, tabulate
from rrf_design.checker.kernel import kernel

SMALLEST = 7  # nodes: smaller supports are enumerated sooner
WIDEST = 1000  # open nodes beside a chosen set: more would not fit
MOST_PIECES = 400_000  # connected sets that a table goes through
ROOM = 1e-11  # of N_ff: more than all rounding in a row's sum and comparison
OPEN, TAKEN, OUT = 1, 2, 3


class Tables(NamedTuple):
    alone: NDArray[np.float64]
    among: NDArray[np.float64]
    least: NDArray[np.float64]  # least[b]: for every set of b nodes


@dataclass(frozen=True, slots=True)
class Grown:
    """What came of it: `finished` and no support is a proof; a support is a set that floating point
    could not prove.
    """

    finished: bool
    support: tuple[int, ...]
    visited: int


def suits(gram: Gram) -> bool:
    """Scalar nodes, large supports, no radii (whose shift depends on the support), no crowded
    node.
    """
    size = int(gram.target.max(initial=0))
    widest = int(np.diff(gram.neighbour_starts).max(initial=0))
    plain = bool((gram.sizes == 1).all()) and len(gram.radii2) == 0 and bool((gram.diagonal > 0).all())
    return plain and size >= SMALLEST and widest * size <= WIDEST


def prove_by_growth(
    gram: Gram,
    shift: float,
    *,
    wanted: NDArray[np.bool_] | None = None,
    deadline: float | None,
    progress: Callable[[float], None] | None = None,
) -> Grown:
    """G_SS ⪰ shift·I for every connected S of the target sizes within gram.roots' components, or a
    set where it fails.

    With `wanted` (nodes), the shift is on these only, G_SS ⪰ shift·P, and sets without any of them
    are left out.
    """
    field = _Field(gram) if wanted is None else _Field(gram, np.where(wanted, shift, 0.0))
    first = None if wanted is None else wanted[field.names]
    shift = shift if wanted is None else 0.0
    with flag_at(deadline) as stop:
        for size in range(1, field.size):
            if not field.settle(size, shift, stop):
                return Grown(False, (), field.visited)
            if progress is not None:
                progress(0.5 * size / field.size)
        support = tuple(int(field.names[i]) for i in field.attempt(field.size, shift, stop, first))
    return Grown(not stop[0] and not support, support, field.visited)


class _Field:
    """The walked part of the field, and what is proved of its smaller sizes: least[b] for every set
    of at most b nodes.
    """

    def __init__(self, gram: Gram, taken: NDArray[np.float64] | None = None) -> None:
        """`taken`: what is off the diagonal beforehand, node by node."""
        self.names = np.sort(gram.roots)  # whole components: no edge leads out
        place = np.full(len(gram.sizes), -1, np.int64)
        place[self.names] = np.arange(len(self.names))
        heads = np.repeat(np.arange(len(gram.sizes)), np.diff(gram.neighbour_starts))
        kept = np.flatnonzero(place[heads] >= 0)
        self.neighbours = place[gram.neighbours[kept]]
        self.starts = np.append(0, np.cumsum(np.bincount(place[heads[kept]], minlength=len(self.names))))
        self.backward = backward_edges(self.starts, self.neighbours)
        blocks = gram.edge_blocks[kept]
        self.entries = np.where(blocks >= 0, gram.blocks[np.maximum(blocks, 0)], 0.0)
        exact = gram.blocks[gram.self_blocks[self.names]]
        loss = exact - gram.diagonal[self.names]
        self.diagonal = gram.diagonal[self.names] - 2.0 * loss - 8.0 * UNIT * exact
        if taken is not None:
            off = taken[self.names]
            self.diagonal = (self.diagonal - off) - 4.0 * UNIT * (np.abs(self.diagonal) + off)
        self.used = 3.0 * float(loss.max()) + 1e-300  # what a proof's own rounding may have taken from its claim
        self.target = gram.target[self.names]
        self.size = int(self.target.max())
        self.girth = girths(self._graph(0.0), self.size)
        self.largest = 1
        pulls = np.zeros(len(exact))
        np.add.at(pulls, self.neighbours, np.abs(self.entries))
        definite = self._graph(0.0)._replace(pivots=1.0 + pulls)  # only to count sets
        while self.largest < self.size // 2 - 1:
            if len(tabulate(definite, self.largest + 1, MOST_PIECES).broken):
                break
            self.largest += 1
        self.least = np.full(self.size, -np.inf)
        self.worst: tuple[int, ...] = (int(np.argmin(self.diagonal)),)
        self.visited = 0

    def _graph(self, shift: float) -> Links:
        lowered = (self.diagonal - shift) - 4.0 * UNIT * (np.abs(self.diagonal) + shift)
        return Links(self.starts, self.neighbours, self.entries, lowered, self.backward)

    def settle(self, size: int, shift: float, stop: Any) -> bool:
        """Prove some level for all sets of `size` nodes, as high as a guess allows; False: time ran
        out.
        """
        self.worst = self._grown(self.worst, size)
        level = self._value(self.worst)
        for _ in range(60):
            tried = level * (1.0 - 1e-9)
            support = self.attempt(size, tried, stop)
            if stop[0]:
                return False
            if not support:
                self.least[size] = tried
                return True
            found = self._value(support)
            if found < level:
                self.worst, level = support, found
            else:
                level *= 0.999
            if level <= shift:  # no use here: pieces of this size are then never taken for harmless
                return True
        return True

    def attempt(self, size: int, shift: float, stop: Any, first: NDArray[np.bool_] | None = None) -> tuple[int, ...]:
        """A set that can't be proved at this shift; none: all sets of `size` nodes are (or time ran
        out). `first`: those with one of these.
        """
        graph = self._graph(shift)
        largest = max(1, min(self.largest, size // 2 - 1))
        pieces = tabulate(graph, largest, MOST_PIECES)
        if len(pieces.broken):
            return tuple(int(i) for i in pieces.broken)
        least = self.least[:size] - self.used - shift
        tables = Tables(lengthen(graph, pieces.alone, self.girth, least), pieces.among, least)
        weakness = np.full(len(graph.pivots), np.inf)
        np.minimum.at(weakness, self.neighbours, pieces.alone[:, largest])
        order = np.argsort(weakness, kind="stable")
        order = order if first is None else order[first[order]]
        found, visited = search(graph, tables, order, np.minimum(self.target, size), stop)
        self.visited += int(visited)
        return tuple(int(i) for i in found)

    def _block(self, support: tuple[int, ...]) -> NDArray[np.float64]:
        place = {node: p for p, node in enumerate(support)}
        block = np.diag(self.diagonal[list(support)])
        for p, node in enumerate(support):
            for e in range(self.starts[node], self.starts[node + 1]):
                if int(self.neighbours[e]) in place:
                    block[p, place[int(self.neighbours[e])]] = self.entries[e]
        return block

    def _value(self, support: tuple[int, ...]) -> float:
        return float(np.linalg.eigvalsh(self._block(support))[0])

    def _grown(self, support: tuple[int, ...], size: int) -> tuple[int, ...]:
        """A guess at a bad set of `size` nodes: the last one with the neighbour that lowers it
        most.
        """
        while len(support) < size:
            beside = {int(j) for i in support for j in self.neighbours[self.starts[i] : self.starts[i + 1]]} - set(
                support
            )
            if not beside:
                break
            support = min(((*support, j) for j in sorted(beside)), key=self._value)
        return support


@kernel
def search(graph: Links, tables: Tables, order: Any, target: Any, stop: Any) -> tuple[Any, int]:
    """(a set that can't be proved, or nothing; tree nodes).

    Supports are built from their first member in `order`.
    """
    nodes, deepest = len(graph.pivots), np.max(target)
    widest = np.max(np.diff(graph.starts)) if len(graph.starts) > 1 else 0
    room = min(nodes, widest * deepest) + 1
    stack, door = np.empty(room, np.int64), np.empty(room, np.int64)  # nodes beside P, and the edge that led there
    rows = np.zeros((room, deepest + 1))
    standing = np.zeros(nodes, np.int64)  # 0: not met, OPEN, TAKEN, OUT
    place = np.full(nodes, -1, np.int64)
    begin = np.zeros(deepest + 2, np.int64)
    chosen = np.empty(deepest + 1, np.int64)
    left_out = np.empty((deepest + 1, room), np.int64)
    left_count = np.zeros(deepest + 1, np.int64)
    gone = np.zeros(nodes, np.bool_)  # roots that are done
    paths = (
        np.full(nodes, -1, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(room, np.int64),
    )
    nothing = np.empty(0, np.int64)
    visited = 0
    for root in order:
        if not graph.pivots[root] > 0.0:
            return np.array([root]), visited
        chosen[0], standing[root], depth, begin[0], left_count[0] = root, TAKEN, 1, 0, 0
        begin[1] = _extend(graph, root, graph.pivots[root], -1, 0, 0, stack, door, rows, standing, place, gone)
        while depth > 0:
            if stop[0]:
                return nothing, visited
            visited += 1
            wanted = target[root] - depth
            slot = -1
            if wanted > 0:
                slot = _culprit(graph, tables, wanted, begin[depth], depth, stack, door, rows, standing, gone, paths)
            if slot < 0:
                depth -= 1
                for q in range(left_count[depth]):
                    standing[left_out[depth, q]] = OPEN
                for q in range(begin[depth], begin[depth + 1]):
                    standing[stack[q]] = 0
                    place[stack[q]] = -1
                if depth > 0:  # the node just searched is left out from here on
                    node = chosen[depth]
                    standing[node] = OUT
                    left_out[depth - 1, left_count[depth - 1]] = node
                    left_count[depth - 1] += 1
                continue
            node = stack[slot]
            chosen[depth] = node
            lost = 0.0
            for t in range(depth):
                lost += rows[slot, t] * rows[slot, t]
            pivot = graph.pivots[node] - lost
            if not pivot > 0.0:
                return chosen[: depth + 1].copy(), visited
            standing[node] = TAKEN
            begin[depth + 1] = _extend(
                graph, node, pivot, slot, depth, begin[depth], stack, door, rows, standing, place, gone
            )
            left_count[depth] = 0
            depth += 1
        standing[root] = 0
        gone[root] = True
    return nothing, visited


@kernel
def _extend(
    graph: Links, node: int, pivot: float, slot: int, depth: int, fill: int, stack: Any, door: Any, rows: Any,
    standing: Any, place: Any, gone: Any,
) -> int:  # fmt: skip
    """Take a node in: its entry in every open row, and rows for the nodes it is the first to touch.

    The new end of the stack.
    """
    for q in range(fill):
        rows[q, depth] = 0.0
    last = fill
    for e in range(graph.starts[node], graph.starts[node + 1]):
        other = graph.neighbours[e]
        if place[other] >= 0:
            rows[place[other], depth] = graph.entries[e]
        elif standing[other] == 0 and not gone[other]:
            standing[other], place[other], stack[last], door[last] = OPEN, last, other, e
            rows[last, :depth] = 0.0
            rows[last, depth] = graph.entries[e]
            last += 1
    inverse = 1.0 / np.sqrt(pivot)
    for q in range(last):
        if standing[stack[q]] == OPEN:
            value = rows[q, depth]
            if slot >= 0 and q < fill:
                for t in range(depth):
                    value -= rows[slot, t] * rows[q, t]
            rows[q, depth] = value * inverse
    return last


@kernel
def _culprit(
    graph: Links, tables: Tables, wanted: int, fill: int, depth: int, stack: Any, door: Any, rows: Any, standing: Any,
    gone: Any, paths: Any,
) -> int:  # fmt: skip
    """The open node that breaks its row's condition most; −1: none does, and nothing below can be
    harmful.
    """
    near = paths[3]
    for q in range(fill):
        near[q] = 0
    measured, worst, found = False, 0.0, -1
    best = np.empty(max(wanted - 1, 1))
    for q in range(fill):
        if standing[stack[q]] != OPEN:
            continue
        lost = 0.0
        for t in range(depth):
            lost += rows[q, t] * rows[q, t]
        count = 0
        best[:] = 0.0
        for other in range(fill):
            if other != q and standing[stack[other]] == OPEN:
                tie = 0.0
                for t in range(depth):
                    tie += rows[q, t] * rows[other, t]
                _insert(best, wanted - 1, abs(tie))
                count += 1
        own = lost + ROOM * graph.pivots[stack[q]]
        excess = _excess(tables, door[q], wanted, min(count, wanted - 1), own, best, near[q])
        if excess >= 0.0 and not measured and wanted > 1:
            _measure(graph, wanted, fill, stack, standing, gone, paths)
            measured = True
            excess = _excess(tables, door[q], wanted, min(count, wanted - 1), own, best, near[q])
        if excess >= 0.0 and (found < 0 or excess > worst):
            found, worst = q, excess
    return found


@kernel
def _insert(best: Any, size: int, value: float) -> None:
    """Keep the `size` largest in descending order."""
    if size > 0 and value > best[size - 1]:
        t = size - 1
        while t > 0 and best[t - 1] < value:
            best[t] = best[t - 1]
            t -= 1
        best[t] = value


@kernel
def _excess(tables: Tables, e: int, wanted: int, ties: int, own: float, best: Any, near: int) -> float:
    """max over t of K_ff + its t − 1 heaviest ties − π_f(t); negative: f breaks no row."""
    largest = tables.among.shape[1] - 1
    worst = own - tables.alone[e, wanted]
    total = own
    for t in range(2, ties + 2):
        total += best[t - 2] * (1.0 + 1e-12)
        spare = wanted - t  # nodes that are no attachments
        bound = tables.alone[e, spare + 1]
        if near <= spare + 1:  # close enough for a second attachment in f's own piece
            for m in range(2, t + 1):
                size = spare + m
                inside = tables.among[e, size, min(m, TOLD_APART + 1)] if size <= largest else tables.least[size]
                bound = min(bound, inside)
        worst = max(worst, total - bound)
    return float(worst)


@kernel
def _measure(graph: Links, wanted: int, fill: int, stack: Any, standing: Any, gone: Any, paths: Any) -> None:
    """near[q]: steps from stack[q] to another open node through nodes that may still be taken;
    above `wanted`: too far.
    """
    steps, source, queue, near = paths
    tail = 0
    for q in range(fill):
        if standing[stack[q]] == OPEN:
            near[q] = wanted + 1
            steps[stack[q]], source[stack[q]], queue[tail] = 0, q, stack[q]
            tail += 1
    head = 0
    while head < tail:
        x = queue[head]
        head += 1
        for e in range(graph.starts[x], graph.starts[x + 1]):
            y = graph.neighbours[e]
            if steps[y] >= 0:
                if source[y] != source[x]:
                    apart = steps[x] + steps[y] + 1
                    near[source[x]] = min(near[source[x]], apart)
                    near[source[y]] = min(near[source[y]], apart)
            elif standing[y] == 0 and not gone[y] and 2 * (steps[x] + 1) < wanted + 1:
                steps[y], source[y], queue[tail] = steps[x] + 1, source[x], y
                tail += 1
    for q in range(tail):
        steps[queue[q]] = -1


@contextmanager
def flag_at(deadline: float | None) -> Iterator[NDArray[np.int64]]:
    """An array of one number, 0 until the deadline (of `time.monotonic`) has passed."""
    flag = np.zeros(1, np.int64)
    timer = None
    if deadline is not None:
        timer = threading.Timer(max(deadline - time.monotonic(), 0.0), flag.__setitem__, (0, 1))
        timer.daemon = True
        timer.start()
    try:
        yield flag
    finally:
        if timer is not None:
            timer.cancel()
