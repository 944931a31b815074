"""Witness greedy (paper, "Witness-guided relation–anchor acquisition"): buy the block that sees the
worst witness best.

argmax ‖C_j h‖²/c_j among what the budget and the rules still admit; then margin and witness are
computed again. At margin zero the witness is one arbitrary vector of many, so the block is scored
by what it takes from the whole space of sparse null vectors, ‖C_j N‖_F²/c_j. Ties go to the cheaper
block, then to file order. A block comes with the queries and blocks it needs, at their joint price.
`LookAhead` also tries pairs, for blocks that only help together (complementary anchors). A block
whose family dilutes what is held already counts for what it adds less what it takes away.

On fields too large for a table of supports buying is local (docs/algorithms.md, fact 14). A
`MarginTracker` keeps the supports near the minimum and looks again only at those that a purchase
touches; the blocks that see a witness are those on its few nodes. So a step costs a small part of a
margin from scratch, however large the field. At margin zero a block is scored by what it sees of
the span of all null vectors on the supports that the tracker keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.goal import reaches
from rrf_design.market import Mask, exact
from rrf_design.planning.contract import Order, Plan
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof.bounds import knapsack
from rrf_design.planning.supports import Witness

if TYPE_CHECKING:
    from rrf_design.planning.evaluator import Evaluation, Evaluator
    from solvers import Margin

NULL_WITNESSES = 256  # null directions looked at in one step
PAIRS_FROM = 14  # the look-ahead pairs up so many of the best single blocks
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pick:
    """One step of a greedy: the item, the design after it, and the witness it was bought
    against.
    """

    item: int
    before: Mask
    after: Mask
    witness: Witness | None
    energy: float
    value: float


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be bought now: a design one bundle larger, what it sees, and what it adds
    to the bill.
    """

    item: int
    after: Mask
    energy: float
    price: Fraction

    @property
    def rank(self) -> tuple[bool, float, Fraction, int]:
        """Best first: free things, then energy per cost (to nine digits, so that ties are ties),
        price, file order.
        """
        free = self.price == 0
        ratio = self.energy if free else self.energy / float(self.price)
        return (not free, -float(f"{ratio:.9g}"), self.price, self.item)


def witness_greedy(
    evaluator: Evaluator, goal: Order, *, start: Mask, allowed: Mask | None = None, pairs: bool = False
) -> list[Pick]:
    """Purchases in order, until the target is reached, nothing that helps is affordable, or the
    money is gone.
    """
    budget = None if goal.budget is None else exact(goal.budget)
    mask, steps = start, list[Pick]()
    now = look(evaluator, mask)
    while goal.target is None or not reaches(now.value, goal.target):
        energies, witness = attack(evaluator, now)
        found = offers(evaluator, mask, energies, budget, allowed=allowed)
        if not found:
            break
        chosen = [found[0]]
        if pairs:
            chosen = _best_pair(evaluator, mask, found, now.value, budget) or chosen
        for offer in chosen:
            after = evaluator.market.add(mask, offer.item)
            if (after == mask).all():
                continue
            then = look(evaluator, after)
            steps.append(Pick(offer.item, mask, after, witness, offer.energy, then.value))
            mask, now = after, then
    return steps


def look(evaluator: Evaluator, mask: Mask) -> Evaluation:
    """One witness where the margin is positive, the null directions where it is zero; all become
    cuts.
    """
    result = evaluator.evaluate(mask, count=1)
    if result.value == 0.0:
        result = evaluator.evaluate(mask, count=NULL_WITNESSES)
    for witness in result.witnesses[:16]:
        evaluator.pool.add(witness, mask)
    return result


def attack(evaluator: Evaluator, now: Evaluation) -> tuple[NDArray[np.float64], Witness | None]:
    """Energy of every block on what is hardest to see: one witness, or the span of the sparse null
    vectors.
    """
    if not now.witnesses:  # nothing has been asked yet: prefer what carries most
        return evaluator.weights, None
    worst = now.witnesses[0]
    if now.value > 0.0:
        return evaluator.energies(worst), worst
    return sum(
        (evaluator.energies(w) for w in _null_span(evaluator, now.witnesses)), np.zeros(len(evaluator.block_nodes))
    ), worst


def _null_span(evaluator: Evaluator, witnesses: tuple[Witness, ...]) -> list[Witness]:
    """An orthonormal basis of the span of null witnesses, each vector over a few _overlapping
    supports.
    """
    from rrf_design.planning.evaluator import NULL
    from rrf_design.planning.supports import Witness

    null = [w for w in witnesses if w.value <= NULL * evaluator.scale]
    found = []
    for members in _overlapping([w.support for w in null]):
        nodes = tuple(sorted({i for m in members for i in null[m].support}))
        ends = np.cumsum([0, *(len(evaluator.columns[i]) for i in nodes)])
        place = {i: np.arange(a, b) for i, a, b in zip(nodes, ends[:-1], ends[1:], strict=True)}
        stacked = np.zeros((ends[-1], len(members)))
        for column, m in enumerate(members):
            stacked[np.concatenate([place[i] for i in null[m].support]), column] = null[m].vector
        basis, strengths, _ = np.linalg.svd(stacked, full_matrices=False)
        found += [
            Witness(nodes, basis[:, c], 0.0) for c in np.flatnonzero(strengths > 1e-6 * max(strengths[0], 1e-300))
        ]
    return found


def _overlapping(supports: list[tuple[int, ...]]) -> list[list[int]]:
    """Positions of supports, grouped so that those of different groups share no node; by the first
    of each group.
    """
    leader: dict[int, int] = {}

    def find(node: int) -> int:
        while leader.setdefault(node, node) != node:
            leader[node] = node = leader[leader[node]]
        return node

    for support in supports:
        first = find(support[0])
        for node in support[1:]:
            leader[find(node)] = first
    groups: dict[int, list[int]] = {}
    for position, support in enumerate(supports):
        groups.setdefault(find(support[0]), []).append(position)
    return list(groups.values())


def offers(
    evaluator: Evaluator,
    mask: Mask,
    energies: NDArray[np.float64],
    budget: Fraction | None,
    *,
    allowed: Mask | None = None,
) -> list[Offer]:
    """What can be bought now and sees something, best first."""
    market = evaluator.market
    spent = market.cost(mask)
    now = _held(evaluator, mask)
    # Whatever sees nothing itself can only help through what it needs or opens.
    seeing = np.zeros(len(market.items), dtype=bool)
    floor = 1e-12 * max(float(energies.max(initial=0.0)), 1e-300)
    bought = evaluator.item_block >= 0
    seeing[bought] = energies[evaluator.item_block[bought]] > floor
    if evaluator.waits.any():
        seeing[: market.node_items] = True
    seeing |= market.bundled
    result = []
    for item in np.flatnonzero(seeing & ~mask & ~market.banned & (True if allowed is None else allowed)):
        after = market.add(mask, int(item))
        price = market.cost(after) - spent
        if (budget is not None and spent + price > budget) or not market.extendable(after):
            continue
        energy = float(energies @ (_held(evaluator, after) - now))
        if energy > floor:  # what shares a weight with others may take away more than it brings
            result.append(Offer(int(item), after, energy, price))
    return sorted(result, key=lambda offer: offer.rank)


def _held(evaluator: Evaluator, mask: Mask) -> Array:
    """(blocks,): what is left of the energy of each in a design."""
    shares: Array = evaluator.shares(evaluator.active(mask)[None], evaluator.opened(mask)[None])[0]
    return shares


def _best_pair(
    evaluator: Evaluator, mask: Mask, found: list[Offer], value: float, budget: Fraction | None
) -> list[Offer] | None:
    """The pair that gains most per cost, when no single purchase gains anything; None when one
    does, or no pair helps.
    """
    market, spent = evaluator.market, evaluator.market.cost(mask)
    first = found[:PAIRS_FROM]
    if any(evaluator.value(offer.after) > value * (1 + 1e-9) for offer in first):
        return None
    best, chosen = 0.0, None
    for a, b in combinations(first, 2):
        both = market.add(a.after, b.item)
        price = market.cost(both) - spent
        if (budget is not None and spent + price > budget) or not market.extendable(both):
            continue
        gain = (evaluator.value(both) - value) / max(float(price), 1e-12)
        if gain > best * (1 + 1e-9) and evaluator.value(both) > value * (1 + 1e-9):
            best, chosen = gain, [a, b]
    return chosen


def best_prefix(start: Mask, start_value: float, steps: list[Pick]) -> list[Pick]:
    """Without the last purchases that gained nothing: the shortest prefix with the largest
    objective.
    """
    best, cut = start_value, 0
    for number, step in enumerate(steps, start=1):
        if step.value > best * (1 + 1e-12):
            best, cut = step.value, number
    return steps[:cut]


@dataclass(frozen=True, slots=True)
class Greedy:
    """The paper's rule. Proves nothing about other designs beyond a bound from its own
    witnesses.
    """

    name: str = "greedy"
    pairs: bool = False

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        from rrf_design.planning._outcome import finish, starting_design

        start = starting_design(evaluator, goal)
        if local_to_blocks(evaluator) and not self.pairs:
            run = Tracked(evaluator, goal, start)
            steps = best_prefix(start, 0.0, run.run())
            mask = steps[-1].after if steps else start
            return finish(evaluator, mask, goal, method=self.name, steps=steps, start=start, upper=run.upper)
        steps = best_prefix(
            start, evaluator.value(start), witness_greedy(evaluator, goal, start=start, pairs=self.pairs)
        )
        return finish(evaluator, steps[-1].after if steps else start, goal, method=self.name, steps=steps, start=start)


class Tracked:
    """One greedy run over a growing design.

    `upper` bounds what any design within the budget can reach.
    """

    def __init__(
        self, evaluator: Evaluator, goal: Order, start: Mask, *, allowed: Mask | None = None, null: int = NULL_WITNESSES
    ) -> None:
        """Only `allowed` items are bought; at margin zero the null vectors of so many supports are
        looked at.
        """
        from solvers import MarginTracker

        self.evaluator, self.goal, self.mask = evaluator, goal, start
        self.refused = evaluator.market.banned if allowed is None else evaluator.market.banned | ~allowed
        self.null = null
        self.budget = None if goal.budget is None else exact(goal.budget)
        self.by_column = evaluator.operator.matrix.tocsc()
        self.row_block = np.repeat(np.arange(len(evaluator.block_nodes)), np.diff(evaluator.operator.block_offsets))
        held = evaluator.operator.matrix[np.flatnonzero(evaluator.rows(evaluator.active(start)))]
        self.tracker = MarginTracker(
            held, np.diff(evaluator.operator.node_offsets).tolist(), size=evaluator.size, n_jobs=goal.n_jobs
        )
        self.prices = evaluator.market.floor_prices
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
        op = self.evaluator.operator
        for block in self.evaluator.item_block[items]:
            self.tracker.add_rows(op.matrix[int(op.block_offsets[block]) : int(op.block_offsets[block + 1])])

    def _best(self, now: Margin) -> tuple[Offer | None, Witness]:
        """The best offer against the worst witness, or at margin zero against the whole null space
        that is known.
        """
        evaluator, market = self.evaluator, self.evaluator.market
        columns = evaluator.columns_of(now.support)
        witness = Witness(now.support, now.direction[columns].copy(), now.value)
        seen = self._seen(witness)
        self._bound(seen)
        energies = seen if now.value > 0 else self._seen(*_null_span(evaluator, self._null(witness)))
        floor = 1e-12 * max(energies.values(), default=0.0)
        spent, found = market.cost(self.mask), list[Offer]()
        for block, energy in energies.items():
            item = int(evaluator.block_item[block])
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
            rows, image = self._rows(self.evaluator.columns_of(h.support))
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
        """Null vectors of the design on the supports where the tracker finds any, the worst
        witness's first.
        """
        supports = dict.fromkeys((worst.support, *self.tracker.supports_at(0.0, limit=self.null)))
        found = []
        for support in supports:
            columns = self.evaluator.columns_of(support)
            rows, image = self._rows(columns)
            items = self.evaluator.block_item[self.row_block[rows]]
            held = self.evaluator.permanent[self.row_block[rows]] | ((items >= 0) & self.mask[items])
            right, rank = np.eye(len(columns)), 0
            if held.any():
                wide = int(held.sum()) < len(columns)
                _, strengths, right = np.linalg.svd(image[held], full_matrices=wide)
                rank = int((strengths > 1e-9 * self.evaluator.scale).sum())
            found += [Witness(support, right[c].copy(), 0.0) for c in range(rank, len(columns))]
        return tuple(found) or (worst,)

    def _bound(self, energies: dict[int, float]) -> None:
        """γ² ≤ what is owned sees of the witness, plus the best that the budget can add to it."""
        items = self.evaluator.block_item[np.array(list(energies), dtype=np.int64)]
        values = np.array(list(energies.values()))
        owned = float(values[items < 0].sum())
        square = owned + knapsack(values[items >= 0], self.prices[items[items >= 0]], self.goal.budget)
        self.upper = min(self.upper, float(np.sqrt(square)) * (1 + 1e-12))


def local_to_blocks(evaluator: Evaluator) -> bool:
    """Whether this way applies: a large field whose queries have all been asked, and whose blocks
    share nothing.
    """
    alone = evaluator.plain and evaluator.additive
    return alone and evaluator.table is None and not evaluator.market.node_items and not evaluator.robust
