"""Where a fractional design is weak: connected supports whose λ_min is not clearly above the
target.

A design that holds shares x_j of its blocks has G(x) = G₀ + Σ x_j C_jᵀC_j. Supports are enumerated
as connected sets of the graph of what is held at all, and an enumeration stops at the first prefix
that fails (docs/algorithms.md, facts 2 and 3), which is seldom later than at two or three nodes.
Finds candidates for rows; proves nothing.

`grown` and `around` give regions to be asked for rows, a few nodes more than a support, where a
fractional design obeys every single support. Supports that meet must be mended by the same
purchases, and hulls of single supports don't know of each other: on 100 nodes at k = 2 the linear
bound on a cost of 60 stops at 54.7 with them and at 57.9 with regions of one and two nodes more.
Regions are grown first from weak supports, each by the node that its weakest direction sees most
of, then by every neighbour. With 200 nodes at k = 1 and t = 1.26 the bound rises from 306.3 to
313.8 of 314. Finds candidates; proves nothing.

`Mender` makes designs that reach a target from ones that nearly do: it buys where the design is
weak, drops what is not needed, and goes on. All of it is local. A purchase or a drop changes only
supports that meet its block, so only connected sets through the block's nodes are looked at again
(docs/algorithms.md, fact 14). Between rounds what lies around a random node is sold and bought
anew, and the new design is kept when it costs no more: the price falls until it fits the budget. A
search for incumbents; proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from rrf_design.market import Mask
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.planning.proof._neighbourhoods import Neighbourhoods

Array = NDArray[np.float64]
DENSE = 4000  # coordinates up to which G is kept as one array
MOST = 4000  # prefixes looked at for one design
HELD = 1e-9


class WeakSupports:
    """The enumeration for one evaluator; keeps what does not change with the design."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        op = evaluator.operator
        self.offsets = np.ascontiguousarray(op.node_offsets, dtype=np.int64)
        self.matrix = sparse.csr_array(op.matrix)
        self.heights = np.diff(op.block_offsets)
        pairs = [
            (j, a, b) for j, nodes in enumerate(evaluator.block_nodes) for a, b in combinations(sorted(set(nodes)), 2)
        ]
        self.pairs = np.array(pairs, dtype=np.int64).reshape(len(pairs), 3)

    def gram(self, held: Array) -> Array:
        """G of a design that holds such shares of all blocks, dense."""
        scaled = sparse.diags_array(np.sqrt(np.maximum(np.repeat(held, self.heights), 0.0))) @ self.matrix
        return np.ascontiguousarray((scaled.T @ scaled).toarray())

    def held(self, shares: Array) -> Array:
        """(blocks,): what a design with these shares of the variable blocks holds of each; hardly
        anything is nothing.
        """
        held = self.evaluator.permanent.astype(np.float64)
        held[self.evaluator.variable] = np.where(shares > HELD, shares, 0.0)
        return held

    def look(
        self, shares: Array, level: float, *, grown: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(prefixes, supports): the least sets with λ_min under `level`, and the same grown to full
        size, weakest first.

        With radii a set is weak when λ_min is under (√level + η)², where η is of the shares held.
        Rows are padded with −1. `grown` is another size for them to grow to.
        """
        from solvers.kernels.connected import grow_sets, weak_sets
        from solvers.kernels.uncertain import weak_uncertain_sets

        evaluator = self.evaluator
        held = self.held(shares)
        gram = self.gram(held)
        pointer, neighbours = self.graph(held > 0.0)
        size = min(evaluator.size, evaluator.n)
        out = np.full((MOST, size), -1, dtype=np.int64)
        everywhere = np.arange(evaluator.n)
        squares = held * np.square(evaluator.radii)
        if evaluator.robust:
            root = float(np.sqrt(level))
            count = weak_uncertain_sets(
                gram, self.offsets, self.joins, held > 0.0, squares, size, root, everywhere, everywhere, out
            )
        else:
            count = weak_sets(gram, self.offsets, pointer, neighbours, size, level, everywhere, everywhere, out)
        sets = np.full((count, min(grown or size, evaluator.n)), -1, dtype=np.int64)
        sets[:, :size] = out[:count]
        grow_sets(gram, self.offsets, pointer, neighbours, sets)
        least = self._least(gram, sets)
        if evaluator.robust:
            least = np.sqrt(np.maximum(least, 0.0)) - self._eta(squares, sets)
        order = np.argsort(least, kind="stable")
        return out[:count][order], sets[order]

    def _eta(self, squares: Array, sets: NDArray[np.int64]) -> Array:
        """η of each set: the root of the summed squares of the blocks that touch it."""
        from solvers.kernels.uncertain import uncertainty

        return np.sqrt([uncertainty(self.joins, squares, row, int((row >= 0).sum())) for row in sets])

    @cached_property
    def joins(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Blocks of each node and nodes of each block, each after a list of where they begin."""
        nodes = [sorted(set(nodes)) for nodes in self.evaluator.block_nodes]
        blocks: list[list[int]] = [[] for _ in range(self.evaluator.n)]
        for j, some in enumerate(nodes):
            for i in some:
                blocks[i].append(j)
        return (*_listed(blocks), *_listed(nodes))

    def _least(self, gram: Array, sets: NDArray[np.int64]) -> Array:
        """λ_min of each set; sets of one width at a time."""
        columns = [np.concatenate([np.arange(*self.offsets[i : i + 2]) for i in row if i >= 0]) for row in sets]
        widths = np.array([len(c) for c in columns], dtype=np.int64)
        result = np.zeros(len(sets))
        for width in np.unique(widths):
            which = np.flatnonzero(widths == width)
            some = np.array([columns[i] for i in which])
            result[which] = np.linalg.eigvalsh(gram[some[:, :, None], some[:, None, :]])[:, 0]
        return result

    def graph(self, held: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Neighbours of each node through the blocks held, as pointers and indices."""
        there = self.pairs[held[self.pairs[:, 0]]] if len(self.pairs) else self.pairs
        n = self.evaluator.n
        a, b = there[:, 1], there[:, 2]
        graph = sparse.csr_array((np.ones(2 * len(a)), (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(n, n))
        graph.sum_duplicates()
        return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


def _listed(lists: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each list begins (and the last ends), and all of them one after another."""
    ends = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return ends, np.array([i for some in lists for i in some], dtype=np.int64)


WIDEST = 6  # coordinates of a region: beyond, its least purchases take too long to list for what they are worth
EVERY = (
    3  # from supports of so many nodes on every neighbour is tried: of pairs the grown regions say nearly all there is
)


def stages(weak: WeakSupports) -> int:
    """How many kinds of regions are worth asking: by one node more each, then with every neighbour;
    none where nodes are wide.
    """
    evaluator = weak.evaluator
    more = min(WIDEST // int(np.diff(weak.offsets).max()), evaluator.n) - evaluator.size
    return 0 if more <= 0 else more + 1 if evaluator.size >= EVERY else 1


def grown(weak: WeakSupports, shares: Array, level: float, *, more: int) -> Iterator[tuple[int, ...]]:
    """Weak supports of a fractional design with so many nodes more, weakest first."""
    size = weak.evaluator.size
    _, found = weak.look(shares, level, grown=size + more)
    yield from _distinct(found, size)


def around(
    weak: WeakSupports, shares: Array, level: float, *, tight: list[tuple[int, ...]]
) -> Iterator[tuple[int, ...]]:
    """Weak supports, and the regions whose rows are tight, with every single neighbour through what
    is held.
    """
    size = weak.evaluator.size
    _, found = weak.look(shares, level)
    pointer, neighbours = weak.graph(weak.held(shares) > 0.0)
    known: set[tuple[int, ...]] = set()
    most = WIDEST // int(np.diff(weak.offsets).max())
    for nodes in [*_distinct(found, size - 1), *(t for t in tight if size < len(t) < most)]:
        for other in sorted({int(o) for i in nodes for o in neighbours[pointer[i] : pointer[i + 1]]} - set(nodes)):
            region = tuple(sorted((*nodes, other)))
            if region not in known:
                known.add(region)
                yield region


def _distinct(found: NDArray[np.int64], size: int) -> list[tuple[int, ...]]:
    """The sets of more than `size` nodes, each once."""
    sets = (tuple(sorted(i for i in row if i >= 0)) for row in found.tolist())
    return list(dict.fromkeys(nodes for nodes in sets if len(nodes) > size))


ROUNDS = 50  # of the compiled search between two looks at the clock, or a quarter of the items on sale
PATIENCE = 20  # rounds per item on sale before a repair is given up: by work, not by the clock
PATIENT = 4  # looks at the clock before a compiled search may be found hopeless
FAST = 20  # compiled rounds in the time of one that is not
SEEN = 64  # weak sets listed at a time
RUINED = 0.6  # share of the purchases around a node that are sold


class Mender:
    """One design under repair for one squared target; G is kept up to date with it."""

    def __init__(self, weak: WeakSupports, hoods: Neighbourhoods, target: float, rng: np.random.Generator) -> None:
        self.weak, self.hoods, self.rng = weak, hoods, rng
        self.evaluator: Evaluator = weak.evaluator
        self.market = self.evaluator.market
        self.target = target * (1 + 1e-12)
        self.size = min(self.evaluator.size, self.evaluator.n)
        self.pointer, self.neighbours = weak.graph(np.ones(len(self.evaluator.block_nodes), dtype=bool))
        self.prices = self.market.floor_prices
        self._out = np.full((SEEN, self.size), -1, dtype=np.int64)
        self._rank = np.arange(self.evaluator.n)
        self._near = np.zeros(self.evaluator.n, dtype=np.int64)

    def reach(self, start: Mask, budget: Fraction | None, *, deadline: float | None, effort: float) -> Mask | None:
        """A design that reaches the target within the budget, made from `start`; None: not found
        with this effort.
        """
        self.hold(self.market.close(start))
        if not self.mend(None, deadline=deadline):
            return None
        self.tidy()
        rounds = 1 + _rounds(self.evaluator, effort) // FAST
        return self.mask if budget is None else self.cheapen(budget, rounds=rounds, deadline=deadline)

    def hold(self, mask: Mask) -> None:
        """Start from this design."""
        self.mask = mask.copy()
        self.gram = self.weak.gram(self.evaluator.active(mask).astype(np.float64))

    def _change(self, after: Mask) -> list[int]:
        """Go to another design; the nodes whose blocks have changed."""
        nodes: set[int] = set()
        for item in np.flatnonzero(after != self.mask):
            block = int(self.evaluator.item_block[item])
            own = self.hoods.nodes[block]
            columns = self.evaluator.columns_of(own)
            part = self.hoods.part(block, own)[1]
            self.gram[columns[:, None], columns] += part if after[item] else -part
            nodes.update(own)
        self.mask = after
        return sorted(nodes)

    def _weak(self, nodes: list[int] | None) -> list[tuple[int, ...]]:
        """Some connected sets (through these nodes, or all) below the target; none listed means
        that there is none.
        """
        from solvers.kernels.connected import weak_sets

        if nodes is None:
            roots, rank = self._rank, self._rank
        else:
            roots, rank = np.array(nodes, dtype=np.int64), self._near
            rank[roots] = np.arange(-len(roots), 0)
        offsets = self.weak.offsets
        count = weak_sets(
            self.gram, offsets, self.pointer, self.neighbours, self.size, self.target, roots, rank, self._out
        )
        if nodes is not None:
            rank[roots] = 0
        return [tuple(sorted(int(i) for i in row if i >= 0)) for row in self._out[:count]]

    def mend(self, most: Fraction | None, near: list[int] | None = None, *, deadline: float | None = None) -> bool:
        """Buy until nothing (or nothing through these nodes) is weak; False when nothing helps, it
        would cost more than `most`, or time is up.

        Every listing but the last leads to a purchase: there are no more of them than items.
        """
        queue, bought = self._weak(near), False
        while queue:
            support = queue.pop()
            while not self._reaches(support):
                after = None if deadline is not None and time.monotonic() > deadline else self._best_purchase(support)
                if after is None or (most is not None and self.market.cost(after) > most):
                    return False
                self._change(after)
                bought = True
            if not queue:  # sets that were not listed, or not weak before what joins them was bought
                if not bought:  # the two tests differ by rounding on what is left: no purchase would end this
                    return False
                queue, bought = self._weak(near), False
        return True

    def _reaches(self, support: tuple[int, ...]) -> bool:
        from solvers.kernels.covering_minimum import definite

        columns = self.evaluator.columns_of(support)
        block = self.gram[columns[:, None], columns]
        return bool(definite(block, block, 0.0, self.target, np.empty_like(block)))

    def _best_purchase(self, support: tuple[int, ...]) -> Mask | None:
        """The cheapest block that is enough alone, else the one that helps most for its price; a
        little at random.
        """
        hood, evaluator, market = self.hoods[support], self.evaluator, self.market
        columns = evaluator.columns_of(support)
        block = self.gram[columns[:, None], columns]
        base = float(np.linalg.eigvalsh(block)[0])
        best, after, at = -np.inf, None, 0
        for k, size in enumerate(hood.sizes.tolist()):
            members = evaluator.block_item[evaluator.variable[hood.members[at : at + size]]]
            at += size
            free = [int(i) for i in members if i >= 0 and not self.mask[i] and not market.banned[i]]
            if not free:
                continue
            gain = float(np.linalg.eigvalsh(block + hood.parts[k])[0]) - base
            enough = base + gain >= self.target
            for item in sorted(free, key=lambda i: self.prices[i])[:3]:
                price = max(float(self.prices[item]), 1e-9) * (1 + 0.5 * self.rng.random())
                score = (2.0 if enough else min(gain / max(self.target - base, 1e-12), 1.0)) / price
                if score > best and score > 0.0:
                    grown = market.add(self.mask, item)
                    if market.extendable(grown):
                        best, after = score, grown
        return after

    def tidy(self, near: list[int] | None = None) -> None:
        """Drop what the target does not need, dearest first, a little at random."""
        market = self.market
        items = np.flatnonzero(self.mask)
        if near is not None:
            around = {int(self.evaluator.block_item[j]) for i in near for j in self.evaluator.touching[i]}
            items = np.array([i for i in items if int(i) in around], dtype=np.int64)
        for item in items[np.argsort(-self.prices[items] * (1 + self.rng.random(len(items))))]:
            if not self.mask[item]:
                continue
            before, after = self.mask, market.drop(self.mask, int(item))
            if market.cost(after) > market.cost(before) or market.broken(after):
                continue
            nodes = self._change(after)
            if self._weak(nodes):
                self._change(before)

    def cheapen(self, budget: Fraction, *, rounds: int, deadline: float | None) -> Mask | None:
        """From a design that reaches the target: sell and buy around random nodes until it fits the
        budget.
        """
        market = self.market
        for _ in range(rounds):
            if market.cost(self.mask) <= budget or (deadline is not None and time.monotonic() > deadline):
                break
            before, cost = self.mask, market.cost(self.mask)
            ball = self._ball(int(self.rng.integers(self.evaluator.n)))
            sold = self.mask.copy()
            for i in ball:
                for block in self.evaluator.touching[i]:
                    item = int(self.evaluator.block_item[block])
                    if item >= 0 and sold[item] and self.rng.random() < RUINED:
                        sold = market.drop(sold, item)
            if market.broken(sold):
                continue
            nodes = self._change(sold)
            if nodes and self.mend(cost + 2, near=nodes, deadline=deadline):
                self.tidy(near=sorted({*nodes, *ball}))
                if market.cost(self.mask) <= cost and not market.broken(self.mask):
                    continue
            self._change(before)
        return self.mask if market.cost(self.mask) <= budget else None

    def _ball(self, centre: int) -> list[int]:
        ball = {centre, *self.neighbours[self.pointer[centre] : self.pointer[centre + 1]].tolist()}
        held = {
            n
            for i in (centre,)
            for j in self.evaluator.touching[i]
            if self.evaluator.block_item[j] < 0 or self.mask[self.evaluator.block_item[j]]
            for n in self.hoods.nodes[j]
        }
        return sorted(held | {centre} if len(held) > 1 else ball)


class Exchange:
    """The same, compiled, for markets of single prices without rules; what one evaluator needs is
    put into arrays once.
    """

    def __init__(self, weak: WeakSupports, hoods: Neighbourhoods, prices: NDArray[np.int64]) -> None:
        """`prices` are whole units per item."""
        evaluator, count = weak.evaluator, len(weak.evaluator.block_nodes)
        self.weak, self.evaluator = weak, evaluator
        self.size = min(evaluator.size, evaluator.n)
        own = hoods.nodes
        columns = [evaluator.columns_of(nodes) if nodes else np.zeros(0, dtype=np.int64) for nodes in own]
        grams = [hoods.part(j, own[j])[1].ravel() for j in range(count)]
        touch_at, touching, block_at, block_nodes = weak.joins
        self.blocks = (*_packed(columns), *_packed(grams), touch_at, touching)
        self.reached = (np.square(evaluator.radii) if evaluator.robust else np.zeros(0), block_nodes, block_at)
        self.prices = np.full(count, -1, dtype=np.int64)
        on_sale = np.flatnonzero(evaluator.block_item >= 0)
        items = evaluator.block_item[on_sale]
        self.prices[on_sale] = np.where(evaluator.market.banned[items], -1, prices[items])
        self.graph = weak.graph(np.ones(count, dtype=bool))

    def reach(
        self, start: Mask, target: float, units: int | None, *, deadline: float | None, effort: float, seed: int
    ) -> Mask | None:
        """A design that reaches the squared target within so many units of money, made from
        `start`; None: not found.
        """
        from solvers.kernels.exchange import exchange_rows, mend, tidy

        evaluator, shift = self.evaluator, target * (1 + 1e-12)
        held = evaluator.active(start)
        state = (self.weak.gram(held.astype(np.float64)), self.weak.offsets, *self.graph)
        rank = np.zeros(evaluator.n, dtype=np.int64)
        out = np.full((SEEN, self.size), -1, dtype=np.int64)
        changed = np.zeros(len(held) + 2, dtype=np.int64)
        everywhere = np.arange(evaluator.n)
        most = int(np.maximum(self.prices, 0).sum())
        settings = (state, self.blocks, self.reached, self.size, shift, held, self.prices)
        dice = np.array([seed % 2147483646 + 1])
        paid = mend(*settings, everywhere, rank, out, changed, most, 0.0, dice)
        if paid < 0:
            return None
        bought = np.flatnonzero(held & (self.prices >= 0))
        tidy(*settings, bought, rank, out, dice)
        costs, rounds = [self._cost(held)], 1 + _rounds(evaluator, effort)
        some = max(ROUNDS, len(evaluator.market.items) // 4)
        while units is not None and costs[-1] > units:
            if _hopeless(costs, units, rounds / some) or (deadline is not None and time.monotonic() > deadline):
                return None
            costs.append(exchange_rows(*settings, units, min(some, rounds), seed))
            seed, rounds = seed + 1, rounds - some
        mask = evaluator.market.empty()
        bought = np.flatnonzero(held & (evaluator.block_item >= 0))
        mask[evaluator.block_item[bought]] = True
        return mask

    def _cost(self, held: NDArray[np.bool_]) -> int:
        return int(self.prices[held & (self.prices > 0)].sum())


def _hopeless(costs: list[int], units: int, left: float) -> bool:
    """Whether saving on would not do in what is left (counted in looks at the clock, as the costs
    are): with every doubling of what was done about as much is saved as with the last, or one unit
    more.
    """
    saved = (costs[len(costs) // 2] - costs[-1] + 1) * log2(1 + max(left, 0.0) / len(costs))
    return left <= 0 or (len(costs) > PATIENT and costs[-1] - saved > units)


def _rounds(evaluator: Evaluator, effort: float) -> int:
    """Rounds worth this effort: more for more items, fewer where the matrices of supports are
    larger.
    """
    width = min(evaluator.size, evaluator.n) * evaluator.operator.matrix.shape[1] / evaluator.n
    return int(effort * PATIENCE * len(evaluator.market.items) * min(1.0, 16.0 / width**2))


def _packed(parts: list[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """One array after another, and where each begins."""
    ends = np.cumsum([0, *(len(part) for part in parts)]).astype(np.int64)
    return (np.concatenate(parts) if parts else np.zeros(0)), ends
