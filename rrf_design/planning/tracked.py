"""The witness greedy on fields too large for a table of supports (docs/algorithms.md, fact 14: buying is local).

A `MarginTracker` keeps the supports near the minimum and looks again only at those that a purchase touches; the blocks that
see a witness are those on its few nodes. So a step costs a small part of a margin from scratch, however large the field.
At margin zero a block is scored by what it sees of the span of all null vectors on the supports that the tracker keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.goal import reaches
from rrf_design.market import Mask, exact
from rrf_design.planning.arena import Arena
from rrf_design.planning.contract import Order
from rrf_design.planning.greedy import NULL_WITNESSES, Offer, Pick, null_span
from rrf_design.planning.proof.bounds import knapsack
from rrf_design.planning.supports import Witness

if TYPE_CHECKING:
    from solvers import Margin

Array = NDArray[np.float64]


class Tracked:
    """One greedy run over a growing design. `upper` bounds what any design within the budget can reach."""

    def __init__(
        self, arena: Arena, goal: Order, start: Mask, *, allowed: Mask | None = None, null: int = NULL_WITNESSES
    ) -> None:
        """Only `allowed` items are bought; at margin zero the null vectors of so many supports are looked at."""
        from solvers import MarginTracker

        self.arena, self.goal, self.mask = arena, goal, start
        self.refused = arena.market.banned if allowed is None else arena.market.banned | ~allowed
        self.null = null
        self.budget = None if goal.budget is None else exact(goal.budget)
        self.by_column = arena.operator.matrix.tocsc()
        self.row_block = np.repeat(np.arange(len(arena.block_nodes)), np.diff(arena.operator.block_offsets))
        held = arena.operator.matrix[np.flatnonzero(arena.rows(arena.active(start)))]
        self.tracker = MarginTracker(
            held, np.diff(arena.operator.node_offsets).tolist(), size=arena.size, n_jobs=goal.n_jobs
        )
        self.prices = arena.market.floor_prices
        self.upper = np.inf

    def run(self) -> list[Pick]:
        steps = list[Pick]()
        now = self.tracker.margin()
        while self.goal.target is None or not reaches(now.value, self.goal.target):
            offer, witness = self._best(now)
            if offer is None:
                break
            before, self.mask = self.mask, offer.after
            self._add(np.flatnonzero(offer.after & ~before))
            now = self.tracker.margin()
            steps.append(Pick(offer.item, before, self.mask, witness, offer.energy, now.value))
        return steps

    def _add(self, items: NDArray[np.int64]) -> None:
        op = self.arena.operator
        for block in self.arena.item_block[items]:
            self.tracker.add_rows(op.matrix[int(op.block_offsets[block]) : int(op.block_offsets[block + 1])])

    def _best(self, now: Margin) -> tuple[Offer | None, Witness]:
        """The best offer against the worst witness, or at margin zero against the whole null space that is known."""
        arena, market = self.arena, self.arena.market
        columns = arena.columns_of(now.support)
        witness = Witness(now.support, now.direction[columns].copy(), now.value)
        seen = self._seen(witness)
        self._bound(seen)
        energies = seen if now.value > 0 else self._seen(*null_span(arena, self._null(witness)))
        floor = 1e-12 * max(energies.values(), default=0.0)
        spent, found = market.cost(self.mask), list[Offer]()
        for block, energy in energies.items():
            item = int(arena.block_item[block])
            if item < 0 or self.mask[item] or self.refused[item] or energy <= floor:
                continue
            after = market.add(self.mask, item)
            price = market.cost(after) - spent
            if (self.budget is None or spent + price <= self.budget) and market.extendable(after):
                found.append(Offer(item, after, energy, price))
        return min(found, key=lambda offer: offer.rank, default=None), witness

    def _seen(self, *directions: Witness) -> dict[int, float]:
        """Σ ‖C_j h‖² of every block, bought or not, that touches one of the directions."""
        result: dict[int, float] = {}
        for h in directions:
            rows, image = self._rows(self.arena.columns_of(h.support))
            blocks, place = np.unique(self.row_block[rows], return_inverse=True)
            energies = np.bincount(place.ravel(), weights=np.square(image @ h.vector), minlength=len(blocks))
            for block, energy in zip(blocks.tolist(), energies.tolist(), strict=True):
                result[block] = result.get(block, 0.0) + energy
        return result

    def _rows(self, columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
        """Rows of all blocks, bought or not, that touch these columns, and their entries there."""
        start, stop = self.by_column.indptr[columns], self.by_column.indptr[columns + 1]
        where = np.concatenate([np.arange(a, b) for a, b in zip(start, stop, strict=True)])
        rows, place = np.unique(self.by_column.indices[where], return_inverse=True)
        image = np.zeros((len(rows), len(columns)))
        image[place.ravel(), np.repeat(np.arange(len(columns)), stop - start)] = self.by_column.data[where]
        return rows.astype(np.int64), image

    def _null(self, worst: Witness) -> tuple[Witness, ...]:
        """Null vectors of the design on the supports where the tracker finds any, the worst witness's first."""
        supports = dict.fromkeys((worst.support, *self.tracker.supports_at(0.0, limit=self.null)))
        found = []
        for support in supports:
            columns = self.arena.columns_of(support)
            rows, image = self._rows(columns)
            items = self.arena.block_item[self.row_block[rows]]
            held = self.arena.permanent[self.row_block[rows]] | ((items >= 0) & self.mask[items])
            right, rank = np.eye(len(columns)), 0
            if held.any():
                _, strengths, right = np.linalg.svd(image[held], full_matrices=True)
                rank = int((strengths > 1e-9 * self.arena.scale).sum())
            found += [Witness(support, right[c].copy(), 0.0) for c in range(rank, len(columns))]
        return tuple(found) or (worst,)

    def _bound(self, energies: dict[int, float]) -> None:
        """γ² ≤ what is owned sees of the witness, plus the best that the budget can add to it."""
        items = self.arena.block_item[np.array(list(energies), dtype=np.int64)]
        values = np.array(list(energies.values()))
        owned = float(values[items < 0].sum())
        square = owned + knapsack(values[items >= 0], self.prices[items[items >= 0]], self.goal.budget)
        self.upper = min(self.upper, float(np.sqrt(square)) * (1 + 1e-12))


def local_to_blocks(arena: Arena) -> bool:
    """Whether this way applies: a large field whose queries have all been asked."""
    return arena.plain and arena.table is None and not arena.market.node_items and not arena.robust
