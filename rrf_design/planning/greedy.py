"""Witness greedy (paper, "Witness-guided relation–anchor acquisition"): buy the block that sees the worst witness best.

argmax ‖C_j h‖²/c_j among what the budget and the rules still admit; then margin and witness are computed again. At margin
zero the witness is one arbitrary vector of many, so the block is scored by what it takes from the whole space of sparse
null vectors, ‖C_j N‖_F²/c_j. Ties go to the cheaper block, then to file order. A block comes with the queries and blocks
it needs, at their joint price. `LookAhead` also tries pairs, for blocks that only help together (complementary anchors).
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

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena, Evaluation
    from rrf_design.planning.supports import Witness

NULL_WITNESSES = 256  # null directions looked at in one step
PAIRS_FROM = 14  # the look-ahead pairs up so many of the best single blocks


@dataclass(frozen=True, slots=True)
class Pick:
    """One step of a greedy: the item, the design after it, and the witness it was bought against."""

    item: int
    before: Mask
    after: Mask
    witness: Witness | None
    energy: float
    value: float


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be bought now: a design one bundle larger, what it sees, and what it adds to the bill."""

    item: int
    after: Mask
    energy: float
    price: Fraction

    @property
    def rank(self) -> tuple[bool, float, Fraction, int]:
        """Best first: free things, then energy per cost (to nine digits, so that ties are ties), price, file order."""
        free = self.price == 0
        ratio = self.energy if free else self.energy / float(self.price)
        return (not free, -float(f"{ratio:.9g}"), self.price, self.item)


def witness_greedy(
    arena: Arena, goal: Order, *, start: Mask, allowed: Mask | None = None, pairs: bool = False
) -> list[Pick]:
    """Purchases in order, until the target is reached, nothing that helps is affordable, or the money is gone."""
    budget = None if goal.budget is None else exact(goal.budget)
    mask, steps = start, list[Pick]()
    now = look(arena, mask)
    while goal.target is None or not reaches(now.value, goal.target):
        energies, witness = attack(arena, now)
        found = offers(arena, mask, energies, budget, allowed=allowed)
        if not found:
            break
        chosen = [found[0]]
        if pairs:
            chosen = _best_pair(arena, mask, found, now.value, budget) or chosen
        for offer in chosen:
            after = arena.market.add(mask, offer.item)
            if (after == mask).all():
                continue
            then = look(arena, after)
            steps.append(Pick(offer.item, mask, after, witness, offer.energy, then.value))
            mask, now = after, then
    return steps


def look(arena: Arena, mask: Mask) -> Evaluation:
    """One witness where the margin is positive, the null directions where it is zero; all become cuts."""
    result = arena.evaluate(mask, count=1)
    if result.value == 0.0:
        result = arena.evaluate(mask, count=NULL_WITNESSES)
    for witness in result.witnesses[:16]:
        arena.pool.add(witness, mask)
    return result


def attack(arena: Arena, now: Evaluation) -> tuple[NDArray[np.float64], Witness | None]:
    """Energy of every block on what is hardest to see: one witness, or the span of the sparse null vectors."""
    if not now.witnesses:  # nothing has been asked yet: prefer what carries most
        return arena.weights, None
    worst = now.witnesses[0]
    if now.value > 0.0:
        return arena.energies(worst), worst
    return sum((arena.energies(w) for w in null_span(arena, now.witnesses)), np.zeros(len(arena.block_nodes))), worst


def null_span(arena: Arena, witnesses: tuple[Witness, ...]) -> list[Witness]:
    """An orthonormal basis of the span of null witnesses, each vector over a few overlapping supports."""
    from rrf_design.planning.arena import NULL
    from rrf_design.planning.supports import Witness

    null = [w for w in witnesses if w.value <= NULL * arena.scale]
    found = []
    for members in overlapping([w.support for w in null]):
        nodes = tuple(sorted({i for m in members for i in null[m].support}))
        ends = np.cumsum([0, *(len(arena.columns[i]) for i in nodes)])
        place = {i: np.arange(a, b) for i, a, b in zip(nodes, ends[:-1], ends[1:], strict=True)}
        stacked = np.zeros((ends[-1], len(members)))
        for column, m in enumerate(members):
            stacked[np.concatenate([place[i] for i in null[m].support]), column] = null[m].vector
        basis, strengths, _ = np.linalg.svd(stacked, full_matrices=False)
        found += [
            Witness(nodes, basis[:, c], 0.0) for c in np.flatnonzero(strengths > 1e-6 * max(strengths[0], 1e-300))
        ]
    return found


def overlapping(supports: list[tuple[int, ...]]) -> list[list[int]]:
    """Positions of supports, grouped so that those of different groups share no node; by the first of each group."""
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
    arena: Arena, mask: Mask, energies: NDArray[np.float64], budget: Fraction | None, *, allowed: Mask | None = None
) -> list[Offer]:
    """What can be bought now and sees something, best first."""
    market = arena.market
    spent = market.cost(mask)
    active = arena.active(mask)
    # Whatever sees nothing itself can only help through what it needs or opens.
    seeing = np.zeros(len(market.items), dtype=bool)
    floor = 1e-12 * max(float(energies.max(initial=0.0)), 1e-300)
    bought = arena.item_block >= 0
    seeing[bought] = energies[arena.item_block[bought]] > floor
    if arena.waits.any():
        seeing[: market.node_items] = True
    seeing |= market.bundled
    result = []
    for item in np.flatnonzero(seeing & ~mask & ~market.banned & (True if allowed is None else allowed)):
        after = market.add(mask, int(item))
        price = market.cost(after) - spent
        if (budget is not None and spent + price > budget) or not market.extendable(after):
            continue
        energy = float(energies[arena.active(after) & ~active].sum())
        if energy > floor:
            result.append(Offer(int(item), after, energy, price))
    return sorted(result, key=lambda offer: offer.rank)


def _best_pair(
    arena: Arena, mask: Mask, found: list[Offer], value: float, budget: Fraction | None
) -> list[Offer] | None:
    """The pair that gains most per cost, when no single purchase gains anything; None when one does, or no pair helps."""
    market, spent = arena.market, arena.market.cost(mask)
    first = found[:PAIRS_FROM]
    if any(arena.value(offer.after) > value * (1 + 1e-9) for offer in first):
        return None
    best, chosen = 0.0, None
    for a, b in combinations(first, 2):
        both = market.add(a.after, b.item)
        price = market.cost(both) - spent
        if (budget is not None and spent + price > budget) or not market.extendable(both):
            continue
        gain = (arena.value(both) - value) / max(float(price), 1e-12)
        if gain > best * (1 + 1e-9) and arena.value(both) > value * (1 + 1e-9):
            best, chosen = gain, [a, b]
    return chosen


def best_prefix(start: Mask, start_value: float, steps: list[Pick]) -> list[Pick]:
    """Without the last purchases that gained nothing: the shortest prefix with the largest objective."""
    best, cut = start_value, 0
    for number, step in enumerate(steps, start=1):
        if step.value > best * (1 + 1e-12):
            best, cut = step.value, number
    return steps[:cut]


@dataclass(frozen=True, slots=True)
class Greedy:
    """The paper's rule. Proves nothing about other designs beyond a bound from its own witnesses."""

    name: str = "greedy"
    pairs: bool = False

    def plan(self, arena: Arena, goal: Order) -> Plan:
        from rrf_design.planning.outcome import finish, starting_design
        from rrf_design.planning.tracked import Tracked, local_to_blocks

        start = starting_design(arena, goal)
        if local_to_blocks(arena) and not self.pairs:
            run = Tracked(arena, goal, start)
            steps = best_prefix(start, 0.0, run.run())
            mask = steps[-1].after if steps else start
            return finish(arena, mask, goal, method=self.name, steps=steps, start=start, upper=run.upper)
        steps = best_prefix(start, arena.value(start), witness_greedy(arena, goal, start=start, pairs=self.pairs))
        return finish(arena, steps[-1].after if steps else start, goal, method=self.name, steps=steps, start=start)
