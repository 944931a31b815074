"""Designs that reach a target, made from ones that nearly do: buy where it is weak, drop what is not needed, and again.

All of it is local. A purchase or a drop changes only supports that meet its block, so only connected sets through the block's nodes
are looked at again (docs/algorithms.md, fact 14). Between rounds what lies around a random node is sold and bought anew, and the
new design is kept when it costs no more: the price falls until it fits the budget. A search for incumbents; proves nothing.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.planning.proof.weak import WeakSupports

if TYPE_CHECKING:
    from rrf_design.market import Mask
    from rrf_design.planning.arena import Arena
    from rrf_design.planning.proof.neighbourhoods import Neighbourhoods

Array = NDArray[np.float64]
ROUNDS = 50  # of the compiled search between two looks at the clock
PATIENCE = 20  # rounds per item on sale before a repair is given up: bounded by work, so that answers don't depend on the clock
FAST = 20  # compiled rounds in the time of one that is not
SEEN = 64  # weak sets listed at a time
RUINED = 0.6  # share of the purchases around a node that are sold


class Mender:
    """One design under repair for one squared target; G is kept up to date with it."""

    def __init__(self, weak: WeakSupports, hoods: Neighbourhoods, target: float, rng: np.random.Generator) -> None:
        self.weak, self.hoods, self.rng = weak, hoods, rng
        self.arena: Arena = weak.arena
        self.market = self.arena.market
        self.target = target * (1 + 1e-12)
        self.size = min(self.arena.size, self.arena.n)
        self.pointer, self.neighbours = weak.graph(np.ones(len(self.arena.block_nodes), dtype=bool))
        self.prices = self.market.floor_prices
        self._out = np.full((SEEN, self.size), -1, dtype=np.int64)
        self._rank = np.arange(self.arena.n)
        self._near = np.zeros(self.arena.n, dtype=np.int64)

    def reach(self, start: Mask, budget: Fraction | None, *, deadline: float | None, effort: float) -> Mask | None:
        """A design that reaches the target within the budget, made from `start`; None: not found with this effort."""
        self.hold(self.market.close(start))
        if not self.mend(None):
            return None
        self.tidy()
        rounds = 1 + _rounds(self.arena, effort) // FAST
        return self.mask if budget is None else self.cheapen(budget, rounds=rounds, deadline=deadline)

    def hold(self, mask: Mask) -> None:
        """Start from this design."""
        self.mask = mask.copy()
        self.gram = self.weak.gram(self.arena.active(mask).astype(np.float64))

    def _change(self, after: Mask) -> list[int]:
        """Go to another design; the nodes whose blocks have changed."""
        nodes: set[int] = set()
        for item in np.flatnonzero(after != self.mask):
            block = int(self.arena.item_block[item])
            own = self.hoods.nodes[block]
            columns = self.arena.columns_of(own)
            part = self.hoods.part(block, own)[1]
            self.gram[columns[:, None], columns] += part if after[item] else -part
            nodes.update(own)
        self.mask = after
        return sorted(nodes)

    def _weak(self, nodes: list[int] | None) -> list[tuple[int, ...]]:
        """Some connected sets (through these nodes, or all) below the target; none listed means that there is none."""
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

    def mend(self, most: Fraction | None, near: list[int] | None = None) -> bool:
        """Buy until nothing (or nothing through these nodes) is weak; False when nothing helps, or it would cost more than `most`."""
        queue = self._weak(near)
        while queue:
            support = queue.pop()
            while not self._reaches(support):
                after = self._best_purchase(support)
                if after is None or (most is not None and self.market.cost(after) > most):
                    return False
                self._change(after)
            if not queue:  # sets that were not listed, or not weak before what joins them was bought
                queue = self._weak(near)
        return True

    def _reaches(self, support: tuple[int, ...]) -> bool:
        from solvers.kernels.sufficing import definite

        columns = self.arena.columns_of(support)
        block = self.gram[columns[:, None], columns]
        return bool(definite(block, block, 0.0, self.target, np.empty_like(block)))

    def _best_purchase(self, support: tuple[int, ...]) -> Mask | None:
        """The cheapest block that is enough alone, else the one that helps most for its price; a little at random."""
        hood, arena, market = self.hoods[support], self.arena, self.market
        columns = arena.columns_of(support)
        block = self.gram[columns[:, None], columns]
        base = float(np.linalg.eigvalsh(block)[0])
        best, after, at = -np.inf, None, 0
        for k, size in enumerate(hood.sizes.tolist()):
            members = arena.block_item[arena.variable[hood.members[at : at + size]]]
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
            around = {int(self.arena.block_item[j]) for i in near for j in self.arena.touching[i]}
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
        """From a design that reaches the target: sell and buy around random nodes until it fits the budget."""
        market = self.market
        for _ in range(rounds):
            if market.cost(self.mask) <= budget or (deadline is not None and time.monotonic() > deadline):
                break
            before, cost = self.mask, market.cost(self.mask)
            ball = self._ball(int(self.rng.integers(self.arena.n)))
            sold = self.mask.copy()
            for i in ball:
                for block in self.arena.touching[i]:
                    item = int(self.arena.block_item[block])
                    if item >= 0 and sold[item] and self.rng.random() < RUINED:
                        sold = market.drop(sold, item)
            if market.broken(sold):
                continue
            nodes = self._change(sold)
            if nodes and self.mend(cost + 2, near=nodes):
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
            for j in self.arena.touching[i]
            if self.arena.block_item[j] < 0 or self.mask[self.arena.block_item[j]]
            for n in self.hoods.nodes[j]
        }
        return sorted(held | {centre} if len(held) > 1 else ball)


class Exchange:
    """The same, compiled, for markets of single prices without rules; what one arena needs is put into arrays once."""

    def __init__(self, weak: WeakSupports, hoods: Neighbourhoods, prices: NDArray[np.int64]) -> None:
        """`prices` are whole units per item."""
        arena, count = weak.arena, len(weak.arena.block_nodes)
        self.weak, self.arena = weak, arena
        self.size = min(arena.size, arena.n)
        own = hoods.nodes
        columns = [arena.columns_of(nodes) if nodes else np.zeros(0, dtype=np.int64) for nodes in own]
        grams = [hoods.part(j, own[j])[1].ravel() for j in range(count)]
        touch_at, touching, block_at, block_nodes = weak.joins
        self.blocks = (*_packed(columns), *_packed(grams), touch_at, touching)
        self.reached = (np.square(arena.radii) if arena.robust else np.zeros(0), block_nodes, block_at)
        self.prices = np.full(count, -1, dtype=np.int64)
        on_sale = np.flatnonzero(arena.block_item >= 0)
        items = arena.block_item[on_sale]
        self.prices[on_sale] = np.where(arena.market.banned[items], -1, prices[items])
        self.graph = weak.graph(np.ones(count, dtype=bool))

    def reach(
        self, start: Mask, target: float, units: int | None, *, deadline: float | None, effort: float, seed: int
    ) -> Mask | None:
        """A design that reaches the squared target within so many units of money, made from `start`; None: not found."""
        from solvers.kernels.exchange import exchange_rows, mend, tidy

        arena, shift = self.arena, target * (1 + 1e-12)
        held = arena.active(start)
        state = (self.weak.gram(held.astype(np.float64)), self.weak.offsets, *self.graph)
        rank = np.zeros(arena.n, dtype=np.int64)
        out = np.full((SEEN, self.size), -1, dtype=np.int64)
        changed = np.zeros(len(held) + 2, dtype=np.int64)
        everywhere = np.arange(arena.n)
        most = int(np.maximum(self.prices, 0).sum())
        settings = (state, self.blocks, self.reached, self.size, shift, held, self.prices)
        paid = mend(*settings, everywhere, rank, out, changed, most, 0.0)
        if paid < 0:
            return None
        bought = np.flatnonzero(held & (self.prices >= 0))
        tidy(*settings, bought, rank, out)
        cost, rounds = self._cost(held), 1 + _rounds(arena, effort)
        while units is not None and cost > units:
            if rounds <= 0 or (deadline is not None and time.monotonic() > deadline):
                return None
            cost = exchange_rows(*settings, units, min(ROUNDS, rounds), seed)
            seed, rounds = seed + 1, rounds - ROUNDS
        mask = arena.market.empty()
        bought = np.flatnonzero(held & (arena.block_item >= 0))
        mask[arena.block_item[bought]] = True
        return mask

    def _cost(self, held: NDArray[np.bool_]) -> int:
        return int(self.prices[held & (self.prices > 0)].sum())


def _rounds(arena: Arena, effort: float) -> int:
    """Rounds worth this effort: more for more items, fewer where the matrices of supports are larger."""
    width = min(arena.size, arena.n) * arena.operator.shape[1] / arena.n
    return int(effort * PATIENCE * len(arena.market.items) * min(1.0, 16.0 / width**2))


def _packed(parts: list[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """One array after another, and where each begins."""
    ends = np.cumsum([0, *(len(part) for part in parts)]).astype(np.int64)
    return (np.concatenate(parts) if parts else np.zeros(0)), ends
