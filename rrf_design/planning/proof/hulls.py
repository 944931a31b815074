"""Hull cuts: how many of the blocks around one support every design must buy.

Whether a support S reaches a target depends on the few blocks that touch it, and those that look alike from S count only by
their number. So S has a short list of least purchases m (counts per kind of block) with λ_min(G_S(m)) ≥ t². For whole weights
w ≥ 0, Σ w·x ≥ min over that list of w·m holds for every design with γ ≥ t. The best of these rows describe the convex hull of
what S admits, where a witness cut is a single plane that touches its relaxation: on 24 nodes with 64 candidates the linear
bound on the cost rises from 13.8 to 18.3 of 21, and proofs need a tenth of the time. The bound of a row is found in whole
numbers from the list, so it owes nothing to a solver's tolerances; for another target only the bound is computed again,
and for a higher one not even that.

Where the list would be long it is shortened on the safe side: counts at their cap see all blocks of their kind, and kinds
beyond a limit count as bought. Both need that more blocks never lower λ_min.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.planning.supports import definite

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

Array = NDArray[np.float64]
MOST_COUNTS = 512  # combinations of counts per support
MOST_KINDS = 9
MOST_WEIGHTS = 4096  # rows tried per support
ROUNDING = 1e-12  # of the trace: above the errors of G and of its elimination; what lies within counts as reached
VIOLATED = 1e-4  # a row is worth adding when its left side is this much (relatively) below its bound


@dataclass(frozen=True, slots=True)
class _Least:
    """For one target: the minimal purchases (purchases, kinds), and the bound of every weight vector that is tried."""

    purchases: Array
    bounds: Array


@dataclass(slots=True)
class Around:
    """One support and the blocks that touch it. Keeps what it found for the last two targets."""

    gates: tuple[int, ...]  # items of queries that must be open
    members: NDArray[np.int64]  # positions among the arena's variable blocks, kind after kind
    sizes: NDArray[np.int64]  # (kinds,)
    caps: tuple[int, ...]
    owned: Array  # (width, width)
    grams: Array  # (kinds, width, width), of one block each
    _known: dict[float, _Least] = field(default_factory=dict)

    def spread(self, weights: Array) -> Array:
        """(members,): the weight of every block."""
        return np.repeat(weights, self.sizes)

    def bound(self, weights: Array, target: float) -> int | None:
        """Least Σ weights·counts with λ_min ≥ target; None when no purchase suffices."""
        purchases = self._least(target).purchases
        return int((purchases @ weights).min()) if len(purchases) else None

    def violated(self, shares: Array, target: float) -> Array | None:
        """The weights whose row these shares (of each variable block) miss by most; None when they miss none."""
        least, tried = self._least(target), weights_for(len(self.caps))
        if not len(least.purchases):
            return np.zeros(len(self.caps))  # nothing suffices: the empty row says so
        starts = np.cumsum(self.sizes) - self.sizes
        bought = np.add.reduceat(shares[self.members], starts) if len(starts) else np.zeros(0)
        # A little is charged per weight, so that of rows that are missed alike the sparsest is taken.
        ratio = (tried @ bought + 1e-9 * tried.sum(axis=1)) / np.where(least.bounds > 0, least.bounds, 1e-300)
        best = int(np.argmin(ratio))
        return tried[best] if ratio[best] < 1 - VIOLATED else None

    def _least(self, target: float) -> _Least:
        if target not in self._known:
            while len(self._known) > 1:
                del self._known[next(iter(self._known))]
            purchases = self._purchases(target)
            tried = weights_for(len(self.caps))
            bounds = (tried @ purchases.T).min(axis=1) if len(purchases) else np.zeros(len(tried))
            self._known[target] = _Least(purchases, bounds)
        return self._known[target]

    def _purchases(self, target: float) -> Array:
        counts, width = counts_up_to(self.caps), len(self.owned)
        amounts = np.where(counts == np.array(self.caps), self.sizes, counts)
        entries = [[amounts @ self.grams[:, i, j] + self.owned[i, j] for j in range(i + 1)] for i in range(width)]
        room = ROUNDING * sum(entries[i][i] for i in range(width))
        shape = tuple(cap + 1 for cap in self.caps)
        enough = definite(entries, target - room).reshape(shape)
        minimal = enough.copy()
        for axis in range(len(shape)):
            later, earlier = [slice(None)] * len(shape), [slice(None)] * len(shape)
            later[axis], earlier[axis] = slice(1, None), slice(None, -1)
            minimal[tuple(later)] &= ~enough[tuple(earlier)]
        return counts[minimal.ravel()]


@dataclass(slots=True)
class Hull:
    """One row around a support: Σ weights·counts ≥ bound for every design that reaches `target`, or any higher one."""

    around: Around
    weights: Array
    target: float
    bound: int | None
    """None: no purchase suffices."""

    def at(self, target: float) -> int | None:
        """The bound for a target; computed again only where the known one would not hold."""
        if target < self.target:
            self.target, self.bound = target, self.around.bound(self.weights, target)
        return self.bound


@lru_cache(maxsize=1024)
def counts_up_to(caps: tuple[int, ...]) -> Array:
    """(combinations, kinds): all counts from zero to the caps, the last kind fastest."""
    listed = list(product(*(range(cap + 1) for cap in caps)))
    return np.array(listed, dtype=np.float64).reshape(len(listed), len(caps))


@lru_cache(maxsize=MOST_KINDS + 1)
def weights_for(kinds: int) -> Array:
    """(vectors, kinds): small whole weights without a common divisor, as many values as the number of kinds allows."""
    values = 4
    while values > 2 and values**kinds > MOST_WEIGHTS:
        values -= 1
    listed = np.array(list(product(range(values), repeat=kinds)), dtype=np.int64).reshape(values**kinds, kinds)
    return listed[np.gcd.reduce(listed, axis=1) == 1].astype(np.float64) if kinds else listed.astype(np.float64)


class NodeSurroundings:
    """What lies around the supports of one arena; each is looked at once."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.position = np.full(len(arena.block_nodes), -1, dtype=np.int64)
        self.position[arena.variable] = np.arange(len(arena.variable))
        self.nodes = tuple(tuple(sorted(set(nodes))) for nodes in arena.block_nodes)
        self.on_sale = tuple(tuple(j for j in blocks if self.position[j] >= 0) for blocks in arena.touching)
        self.held = tuple(tuple(j for j in blocks if self.position[j] < 0) for blocks in arena.touching)
        self._owned: Array | None = None
        if arena.table is not None:
            rows = arena.table.dense[arena.rows(arena.permanent)]
            self._owned = rows.T @ rows
        self._parts: dict[tuple[int, tuple[int, ...]], bytes] = {}
        self._known: dict[tuple[int, ...], Around] = {}

    def __getitem__(self, support: tuple[int, ...]) -> Around:
        if support not in self._known:
            self._known[support] = self._look(support)
        return self._known[support]

    def supports(self) -> list[tuple[int, ...]]:
        return list(self._known)

    def _look(self, support: tuple[int, ...]) -> Around:
        arena, inside = self.arena, set(support)
        owned = self._owned_part(support)
        kinds: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
        for block in sorted({j for i in support for j in self.on_sale[i]}):
            nodes = tuple(i for i in self.nodes[block] if i in inside)
            part = self._part(block, nodes)
            if part:
                kinds.setdefault((nodes, part), []).append(int(self.position[block]))
        order = sorted(kinds, key=lambda key: (-len(kinds[key]), kinds[key]))
        ends = np.cumsum([0, *(len(arena.columns[i]) for i in support)])
        place = {i: np.arange(a, b) for i, a, b in zip(support, ends[:-1], ends[1:], strict=True)}
        grams = np.zeros((len(order), *owned.shape))
        for number, (nodes, part) in enumerate(order):
            where = np.concatenate([place[i] for i in nodes])
            grams[number, where[:, None], where] = np.frombuffer(part).reshape(len(where), len(where))
        for number, key in enumerate(order[MOST_KINDS:], start=MOST_KINDS):
            owned = owned + len(kinds[key]) * grams[number]
        kept = order[:MOST_KINDS]
        return Around(
            gates=tuple(int(arena.node_item[i]) for i in support if arena.node_item[i] >= 0),
            members=np.array([j for key in kept for j in kinds[key]], dtype=np.int64),
            sizes=np.array([len(kinds[key]) for key in kept], dtype=np.int64),
            caps=_caps([len(kinds[key]) for key in kept]),
            owned=owned,
            grams=grams[:MOST_KINDS],
        )

    def _owned_part(self, support: tuple[int, ...]) -> Array:
        """G of what is owned on the support, from its few rows."""
        columns = self.arena.columns_of(support)
        if self._owned is not None:
            return np.asarray(self._owned[columns[:, None], columns])
        grams = [self.arena.block_gram(j, columns) for j in sorted({j for i in support for j in self.held[i]})]
        return sum(grams, np.zeros((len(columns), len(columns))))

    def _part(self, block: int, nodes: tuple[int, ...]) -> bytes:
        """C_jᵀC_j on some of the block's own nodes, as bytes to compare; empty when it sees nothing there."""
        key = (block, nodes)
        if key not in self._parts:
            columns = self.arena.columns_of(nodes)
            part = self.arena.block_gram(block, columns) + 0.0  # no negative zeros: equal matrices have equal bytes
            self._parts[key] = part.tobytes() if part.any() else b""
        return self._parts[key]


def _caps(sizes: Sequence[int]) -> tuple[int, ...]:
    """How many counts of each kind are told apart: all, or fewer of the most numerous kinds."""
    caps = list(sizes)
    while prod(cap + 1 for cap in caps) > MOST_COUNTS:
        caps[max(range(len(caps)), key=lambda i: caps[i])] -= 1
    return tuple(caps)
