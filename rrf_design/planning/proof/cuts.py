"""Witness cuts: what every design that reaches a target must buy.

A unit vector h on a set of open nodes gives γ² ≤ Σ_j x_j ‖C_j h‖². For a target T = t² this is a
covering row Σ_j x_j ‖C_j h‖² ≥ T − (what is owned), whose coefficients may be cut down to the
right-hand side: far stronger for 0/1 choices than the same inequality with t free. Rows are rounded
to integers so that they can only become weaker: what an integer solver proves from them holds for
the real numbers.

Stronger still are the hull rows below, so the master gets a witness only where they don't cut its
design off.

With a query not asked yet in its support the row is switched off until that query is open. Where
blocks share a weight or noise, what is left of each ‖C_j h‖² depends on how many of its family are
held: the program has variables for that (`rrf_design.planning.proof.program`), so that a row is
exact for every whole design (docs/algorithms.md, fact 37). What depends on more than a count is
taken from the design that the witness was found in, and the row is switched off until all that this
design shares is bought. Who may be wrong depends on the marks of what is held: a row whose witness
sets blocks aside is switched off where they may not be wrong. Radii
(the robust objective) add rows that speak of one support only: with exactly these blocks on it,
this support stays below the target.

Hull cuts say how many of the blocks around one support every design must buy. Whether a support S
reaches a target depends on the few blocks that touch it, and those that look alike from S count
only by their number. So S has a short list of least purchases m (counts per kind of block) with
λ_min(G_S(m)) ≥ t². For whole weights w ≥ 0, Σ w·x ≥ min over that list of w·m holds for every
design with γ ≥ t. The best of these rows describe the convex hull of what S admits, where a witness
cut is a single plane that touches its relaxation: on 24 nodes with 64 candidates the linear bound
on the cost rises from 13.8 to 18.3 of 21, and proofs need a tenth of the time. The bound of a row
is found in whole numbers from the list, so it owes nothing to a solver's tolerances; for another
target only the bound is computed again, and for a higher one not even that.

Where the list would be long it is shortened on the safe side: counts at their cap see all blocks of
their kind, and kinds beyond a limit count as bought. Both need that more blocks never lower λ_min.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask
from rrf_design.planning.supports import definite

if TYPE_CHECKING:
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.planning.proof.program import MarketRows
    from rrf_design.planning.supports import Witness

Array = NDArray[np.float64]
SCALE = 1 << 40  # integer units per right-hand side; rounding a row of 300 coefficients weakens it by 3e-10
ROUNDING = 1e-14  # of ‖C_j‖‖h‖: more than the error of C_j h
SLACK = 1e-12  # covers the rounding errors in ‖C_j h‖², in ‖h‖ = 1 and in the sum over owned blocks


@dataclass(frozen=True, slots=True)
class CutRow:
    """Σ coefficients·variables ≥ bound, in whole numbers.

    Variables: items first, then owned blocks that wait.
    """

    variables: NDArray[np.int64]
    coefficients: NDArray[np.int64]
    bound: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A support whose objective is `value` when the variable blocks that touch it are exactly
    `present` of `blocks`.
    """

    blocks: NDArray[np.int64]  # positions among the evaluator's variable blocks
    present: Mask
    nodes: tuple[int, ...]  # items of queries that must be open
    value: float


@dataclass(frozen=True, slots=True)
class _Witnessed:
    """What one witness says: Σ energies of what is held, diluted as it is, is at least the target
    of every design that reaches it, where all gates are open.
    """

    energies: Array
    """(blocks,): ‖C_j h‖² where little is held; rounded up."""
    here: Array
    """(blocks,): the same of blocks that share more than a count, as in the witness's design."""
    queries: tuple[int, ...]
    """Items of queries that must be open."""
    bought: tuple[int, ...] = ()
    """Places among the variable blocks that must be bought,"""
    absent: tuple[int, ...] = ()
    """and that must not be."""

    @property
    def free(self) -> bool:
        """Whether it holds of every design."""
        return not (self.queries or self.bought or self.absent)


class Pool:
    """All cuts found so far for one evaluator.

    Valid for every budget and target, so every planner shares them.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.position = np.full(len(evaluator.operator.block_ids), -1, dtype=np.int64)
        self.position[evaluator.variable] = np.arange(len(evaluator.variable))
        self._cuts: list[_Witnessed] = []
        self._master: set[int] = set()  # witnesses that the master is given
        self._patterns: dict[bytes, _Pattern] = {}
        self._hulls: dict[tuple[bytes, bytes, tuple[int, ...]], _Hull] = {}
        self._raised = 0
        self._seen: dict[bytes, int] = {}
        self._stacked: tuple[Array, Array] | None = None

    @cached_property
    def around(self) -> _NodeSurroundings:
        return _NodeSurroundings(self.evaluator)

    @property
    def rows_known(self) -> int:
        """How many rows the master was ever given: unchanged means that nothing was learnt."""
        return len(self._master) + len(self._patterns) + len(self._hulls) + self._raised

    def add_hull(self, support: tuple[int, ...], shares: Array, target: float) -> bool:
        """Keep the row around a support that these shares of the variable blocks miss by most;
        False: they miss none.
        """
        if not (self.evaluator.plain and self.evaluator.additive):  # hulls speak of sums over blocks, on single nodes
            return False
        around = self.around[support]
        weights = around.violated(shares, target)
        if weights is None:
            return False
        spread = around.spread(weights)
        used = np.flatnonzero(spread)
        order = used[np.argsort(around.members[used])]
        # Overlapping supports often lead to one and the same left side: the largest bound is the
        # row.
        key = (around.members[order].tobytes(), spread[order].tobytes(), around.gates)
        bound, known = around.bound(weights, target), self._hulls.get(key)
        if known is None or (known.bound is not None and (bound is None or bound > known.bound)):
            self._raised += known is not None
            self._hulls[key] = _Hull(around, weights, target, bound)
        return True

    def add(self, witness: Witness, design: Mask | None = None, *, master: bool = False) -> bool:
        """Keep a witness as a cut; with radii also the pattern of `design` on its support.

        False: known already.
        """
        evaluator = self.evaluator
        energies = evaluator.energies(witness)
        nodes = [i for i, part in self._parts(witness) if np.any(part != 0.0)]
        queries = tuple(int(evaluator.node_item[i]) for i in nodes if not evaluator.always[i])
        if design is not None:  # answers whose scatter was estimated share the confidence of all estimates
            queries = tuple(dict.fromkeys((*queries, *(i for i in evaluator.scattered if design[i]))))
        if evaluator.robust and evaluator.additive and len(nodes) == 1:
            # a single node is always a connected support: its radii count in full
            energies = energies - np.square(evaluator.radii) * self._touching(tuple(nodes))
        if not evaluator.plain:  # ‖h‖ may be large where little of it is delivered, and with it the rounding of C_j h
            energies = self._outward(energies, witness)
        here, bought = self._shared_here(energies, design)
        suspected, absent = self._suspected(witness.removed, design)
        cut = _Witnessed(energies, here, queries, tuple(sorted({*bought, *suspected})), absent)
        fresh = self._keep(cut, master=master)
        if evaluator.robust and design is not None:
            fresh |= self._keep_pattern(witness, design)
        return fresh

    def _shared_here(self, energies: Array, design: Mask | None) -> tuple[Array, tuple[int, ...]]:
        """What is left of each energy in a design, and the places of what must be bought for that:
        of blocks that share more than a count.
        """
        evaluator, tangled = self.evaluator, self.evaluator.tangled
        seen = tangled & (energies > 0.0)
        if design is None or not seen.any():
            return energies, ()
        active = evaluator.active(design)
        held = evaluator.shares(active[None], evaluator.opened(design)[None])[0]
        here = np.where(seen & active, energies * held * (1 + SLACK), energies)
        mates = evaluator.sharing_with(seen) & active & (self.position >= 0)
        return here, tuple(self.position[np.flatnonzero(mates)].tolist())

    def _suspected(self, removed: tuple[int, ...], design: Mask | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What must be bought, and what must not be, so that all of these blocks may be wrong.

        As many may be wrong where all checks with a rate are there that were in the design of the
        witness; and unmarked ones where no marked one is.
        """
        evaluator, declared = self.evaluator, self.evaluator.operator.premise.declared
        if not removed or declared is None:
            return (), ()
        names = evaluator.operator.block_ids
        bought: tuple[int, ...] = ()
        absent: tuple[int, ...] = ()
        if len(removed) > 2 * declared.wrong_checks:
            active = np.zeros(len(names), dtype=bool) if design is None else evaluator.active(design)
            rated = [j for j, name in enumerate(names) if name in declared.rates and active[j]]
            bought = tuple(int(self.position[j]) for j in rated if self.position[j] >= 0)
        if not declared.marked.issuperset(names[j] for j in removed):
            marked = [j for j, name in enumerate(names) if name in declared.marked]
            absent = tuple(int(self.position[j]) for j in marked if self.position[j] >= 0)
        return bought, absent

    def _outward(self, energies: Array, witness: Witness) -> Array:
        """Upper bounds on ‖C_j h‖² in exact arithmetic; what is set aside stays at nothing."""
        length = float(np.linalg.norm(witness.vector))
        result: Array = np.square(np.sqrt(energies) + ROUNDING * length * np.sqrt(self.evaluator.weights))
        result[list(witness.removed)] = 0.0
        return result

    def _keep(self, cut: _Witnessed, *, master: bool) -> bool:
        gates = bytes(str((cut.queries, cut.bought, cut.absent)), "ascii")
        variable, permanent = self.evaluator.variable, self.evaluator.permanent
        parts = [cut.energies[variable], cut.energies[permanent].sum(keepdims=True)]
        if not self.evaluator.additive:
            parts += [cut.energies, cut.here]
        number = self._seen.setdefault(np.round(np.concatenate(parts), 10).tobytes() + gates, len(self._cuts))
        if master:
            self._master.add(number)
        if number < len(self._cuts):
            return False
        self._cuts.append(cut)
        self._stacked = None
        return True

    def _keep_pattern(self, witness: Witness, design: Mask) -> bool:
        evaluator = self.evaluator
        if evaluator.scattered:  # how much is left around a support depends on nodes elsewhere
            return False
        blocks = np.flatnonzero(evaluator.sharing_with(self._touching(witness.support))[evaluator.variable])
        present = evaluator.active(design)[evaluator.variable][blocks]
        gates = tuple(int(evaluator.node_item[i]) for i in witness.support if evaluator.node_item[i] >= 0)
        pattern = _Pattern(blocks, present, gates, witness.value)
        key = np.array(witness.support).tobytes() + np.packbits(present).tobytes()
        known = self._patterns.get(key)
        if known is not None and known.value <= witness.value:
            return False
        self._patterns[key] = pattern
        return True

    def _parts(self, witness: Witness) -> list[tuple[int, Array]]:
        sizes = [len(self.evaluator.columns[i]) for i in witness.support]
        return list(zip(witness.support, np.split(witness.vector, np.cumsum(sizes)[:-1]), strict=True))

    def _touching(self, nodes: tuple[int, ...]) -> Mask:
        wanted = set(nodes)
        return np.array([not wanted.isdisjoint(touched) for touched in self.evaluator.block_nodes], dtype=bool)

    def stacked(self) -> tuple[Array, Array]:
        """(cuts, variable blocks) energies and (cuts,) what owned blocks contribute: at most."""
        if self._stacked is None:
            every = np.array([cut.energies for cut in self._cuts]).reshape(len(self._cuts), len(self.position))
            self._stacked = (every[:, self.evaluator.variable], every[:, self.evaluator.permanent].sum(axis=1))
        return self._stacked

    def bounds(self, designs: NDArray[np.bool_]) -> Array:
        """(designs,): an upper bound on each design's squared objective.

        `designs` are masks over items.
        """
        energies, owned = self.stacked()
        if not len(owned):
            return np.full(len(designs), np.inf)
        evaluator = self.evaluator
        if evaluator.waits.any() or not evaluator.additive:
            active = np.array([evaluator.active(mask) for mask in designs])
            present = active[:, evaluator.variable]
        else:
            present = designs[:, evaluator.block_item[evaluator.variable]]
        if evaluator.additive:
            values = present.astype(np.float64) @ energies.T + owned
        else:
            opened = np.array([evaluator.opened(mask) for mask in designs])
            values = evaluator.shares(active, opened) @ np.array([cut.energies for cut in self._cuts]).T
        for number, cut in enumerate(self._cuts):
            if not cut.free:
                there = designs[:, list(cut.queries)].all(axis=1) & present[:, list(cut.bought)].all(axis=1)
                values[~there | present[:, list(cut.absent)].any(axis=1), number] = np.inf
        lowest: Array = values.min(axis=1)
        return lowest

    def ungated(self) -> NDArray[np.int64]:
        """Cuts that bind always: those a linear relaxation may combine."""
        return np.array([i for i, cut in enumerate(self._cuts) if cut.free], dtype=np.int64)

    def rows(self, target: float, structure: MarketRows) -> list[CutRow]:
        """Covering rows for a squared objective of at least `target`, over the program's variables.

        Of rows with equal left sides one is kept.
        """
        variable_of = structure.variable_of
        result: dict[bytes, CutRow] = {}
        for number in sorted(self._master):
            cut = self._cuts[number]
            energies, variables, owned = structure.spread(cut.energies, cut.here)
            need = target * (1 - SLACK) - owned * (1 + SLACK) - SLACK * target
            if need > 0.0:
                gates = (*cut.queries, *variable_of[list(cut.bought)])
                row = _covering(energies * (1 + SLACK), variables, need, gates, variable_of[list(cut.absent)].tolist())
                _keep_stronger(result, row)
        for hull in self._hulls.values():
            made = _counting(hull, target, variable_of)
            if made is not None:
                _keep_stronger(result, made)
        for pattern in self._patterns.values():
            if pattern.value < np.sqrt(target) * (1 - SLACK):
                _keep_stronger(result, _forbidding(pattern, variable_of))
        return list(result.values())


def _keep_stronger(rows: dict[bytes, CutRow], row: CutRow) -> None:
    """Of rows with equal left sides only the largest bound counts."""
    key = row.variables.tobytes() + row.coefficients.tobytes()
    if key not in rows or rows[key].bound < row.bound:
        rows[key] = row


def _counting(hull: _Hull, target: float, variable_of: NDArray[np.int64]) -> CutRow | None:
    """The hull row for a target; None when this target asks nothing of it."""
    around, weights, bound = hull.around, hull.weights, hull.at(target)
    if bound == 0:
        return None
    need = 1 if bound is None else bound  # None: no purchase suffices, unless a query of the support is left closed
    coefficients = np.minimum(around.spread(weights), need).astype(np.int64)
    used = np.flatnonzero(coefficients) if bound is not None else np.zeros(0, dtype=np.int64)
    variables, coefficients = variable_of[around.members[used]], coefficients[used]
    if around.gates:
        variables = np.append(variables, np.array(around.gates, dtype=np.int64))
        coefficients = np.append(coefficients, np.full(len(around.gates), -need, dtype=np.int64))
    return CutRow(variables, coefficients, need - need * len(around.gates))


def _covering(
    energies: Array, of: NDArray[np.int64], need: float, gates: Sequence[int], absent: Sequence[int]
) -> CutRow:
    """Σ energies·variables ≥ need where all `gates` are open and nothing `absent` is there."""
    worst = need - float(energies[energies < 0].sum())
    if worst > 4096 * need:
        energies = np.maximum(energies, 0.0)  # weaker, but whole numbers stay small
    if (energies < 0).any():  # radii: a coefficient may only be cut down when no other can pull it back
        units = np.ceil(np.minimum(energies / need, worst / need) * SCALE)
        opening = np.ceil(worst / need * SCALE)
    else:
        units, opening = np.minimum(np.ceil(energies / need * SCALE), SCALE), float(SCALE)
    faint = (units >= 0) & (units <= 1.0)  # rounding noise of blocks that don't see h: moved to the bound
    kept = np.flatnonzero(~faint)
    bound = SCALE - int(faint.sum())
    variables = np.concatenate([of[kept], gates, absent]).astype(np.int64)
    coefficients = np.concatenate([units[kept], [-opening] * len(gates), [opening] * len(absent)]).astype(np.int64)
    return _merged(CutRow(variables, coefficients, bound - int(opening) * len(gates)))


def _merged(row: CutRow) -> CutRow:
    """The same with each variable once."""
    variables, which = np.unique(row.variables, return_inverse=True)
    if len(variables) == len(row.variables):
        return row
    coefficients = np.zeros(len(variables), dtype=np.int64)
    np.add.at(coefficients, which.ravel(), row.coefficients)
    return CutRow(variables, coefficients, row.bound)


def _forbidding(pattern: _Pattern, variable_of: NDArray[np.int64]) -> CutRow:
    """At least one of these blocks is not as in the pattern, or one of the queries is not open."""
    signs = np.where(pattern.present, -1, 1)
    variables = np.append(variable_of[pattern.blocks], pattern.nodes).astype(np.int64)
    coefficients = np.append(signs, [-1] * len(pattern.nodes)).astype(np.int64)
    return CutRow(variables, coefficients, 1 - int(pattern.present.sum()) - len(pattern.nodes))


MOST_COUNTS = 512  # combinations of counts per support
MOST_KINDS = 9
MOST_WEIGHTS = 4096  # rows tried per support
HULL_ROUNDING = 1e-12  # of the trace: above the errors of G and of its elimination; what lies within counts as reached
VIOLATED = 1e-4  # a row is worth adding when its left side is this much (relatively) below its bound


@dataclass(frozen=True, slots=True)
class _Least:
    """For one target: the minimal purchases (purchases, kinds), and the bound of every weight
    vector that is tried.
    """

    purchases: Array
    bounds: Array


@dataclass(slots=True)
class _Around:
    """One support and the blocks that touch it. Keeps what it found for the last two targets."""

    gates: tuple[int, ...]  # items of queries that must be open
    members: NDArray[np.int64]  # positions among the evaluator's variable blocks, kind after kind
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
        """The weights whose row these shares (of each variable block) miss by most; None when they
        miss none.
        """
        least, tried = self._least(target), _weights_for(len(self.caps))
        if not len(least.purchases):
            return np.zeros(len(self.caps))  # nothing suffices: the empty row says so
        starts = np.cumsum(self.sizes) - self.sizes
        bought = np.add.reduceat(shares[self.members], starts) if len(starts) else np.zeros(0)
        # A little is charged per weight, so that of rows that are missed alike the sparsest is
        # taken.
        ratio = (tried @ bought + 1e-9 * tried.sum(axis=1)) / np.where(least.bounds > 0, least.bounds, 1e-300)
        best = int(np.argmin(ratio))
        return tried[best] if ratio[best] < 1 - VIOLATED else None

    def _least(self, target: float) -> _Least:
        if target not in self._known:
            while len(self._known) > 1:
                del self._known[next(iter(self._known))]
            purchases = self._purchases(target)
            tried = _weights_for(len(self.caps))
            bounds = (tried @ purchases.T).min(axis=1) if len(purchases) else np.zeros(len(tried))
            self._known[target] = _Least(purchases, bounds)
        return self._known[target]

    def _purchases(self, target: float) -> Array:
        counts, width = _counts_up_to(self.caps), len(self.owned)
        amounts = np.where(counts == np.array(self.caps), self.sizes, counts)
        entries = [[amounts @ self.grams[:, i, j] + self.owned[i, j] for j in range(i + 1)] for i in range(width)]
        room = HULL_ROUNDING * sum(entries[i][i] for i in range(width))
        shape = tuple(cap + 1 for cap in self.caps)
        enough = definite(entries, target - room).reshape(shape)
        minimal = enough.copy()
        for axis in range(len(shape)):
            later, earlier = [slice(None)] * len(shape), [slice(None)] * len(shape)
            later[axis], earlier[axis] = slice(1, None), slice(None, -1)
            minimal[tuple(later)] &= ~enough[tuple(earlier)]
        return counts[minimal.ravel()]


@dataclass(slots=True)
class _Hull:
    """One row around a support: Σ weights·counts ≥ bound for every design that reaches `target`, or
    any higher one.
    """

    around: _Around
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
def _counts_up_to(caps: tuple[int, ...]) -> Array:
    """(combinations, kinds): all counts from zero to the caps, the last kind fastest."""
    listed = list(product(*(range(cap + 1) for cap in caps)))
    return np.array(listed, dtype=np.float64).reshape(len(listed), len(caps))


@lru_cache(maxsize=MOST_KINDS + 1)
def _weights_for(kinds: int) -> Array:
    """(vectors, kinds): small whole weights without a common divisor, as many values as the number
    of kinds allows.
    """
    values = 4
    while values > 2 and values**kinds > MOST_WEIGHTS:
        values -= 1
    listed = np.array(list(product(range(values), repeat=kinds)), dtype=np.int64).reshape(values**kinds, kinds)
    return listed[np.gcd.reduce(listed, axis=1) == 1].astype(np.float64) if kinds else listed.astype(np.float64)


class _NodeSurroundings:
    """What lies around the supports of one evaluator; each is looked at once."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.position = np.full(len(evaluator.block_nodes), -1, dtype=np.int64)
        self.position[evaluator.variable] = np.arange(len(evaluator.variable))
        self.nodes = tuple(tuple(sorted(set(nodes))) for nodes in evaluator.block_nodes)
        self.on_sale = tuple(tuple(j for j in blocks if self.position[j] >= 0) for blocks in evaluator.touching)
        self.held = tuple(tuple(j for j in blocks if self.position[j] < 0) for blocks in evaluator.touching)
        self._owned: Array | None = None
        if evaluator.table is not None:
            rows = evaluator.table.dense[evaluator.rows(evaluator.permanent)]
            self._owned = rows.T @ rows
        self._parts: dict[tuple[int, tuple[int, ...]], bytes] = {}
        self._known: dict[tuple[int, ...], _Around] = {}

    def __getitem__(self, support: tuple[int, ...]) -> _Around:
        if support not in self._known:
            self._known[support] = self._look(support)
        return self._known[support]

    def supports(self) -> list[tuple[int, ...]]:
        return list(self._known)

    def _look(self, support: tuple[int, ...]) -> _Around:
        evaluator, inside = self.evaluator, set(support)
        owned = self._owned_part(support)
        kinds: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
        for block in sorted({j for i in support for j in self.on_sale[i]}):
            nodes = tuple(i for i in self.nodes[block] if i in inside)
            part = self._part(block, nodes)
            if part:
                kinds.setdefault((nodes, part), []).append(int(self.position[block]))
        order = sorted(kinds, key=lambda key: (-len(kinds[key]), kinds[key]))
        ends = np.cumsum([0, *(len(evaluator.columns[i]) for i in support)])
        place = {i: np.arange(a, b) for i, a, b in zip(support, ends[:-1], ends[1:], strict=True)}
        grams = np.zeros((len(order), *owned.shape))
        for number, (nodes, part) in enumerate(order):
            where = np.concatenate([place[i] for i in nodes])
            grams[number, where[:, None], where] = np.frombuffer(part).reshape(len(where), len(where))
        for number, key in enumerate(order[MOST_KINDS:], start=MOST_KINDS):
            owned = owned + len(kinds[key]) * grams[number]
        kept = order[:MOST_KINDS]
        return _Around(
            gates=tuple(int(evaluator.node_item[i]) for i in support if evaluator.node_item[i] >= 0),
            members=np.array([j for key in kept for j in kinds[key]], dtype=np.int64),
            sizes=np.array([len(kinds[key]) for key in kept], dtype=np.int64),
            caps=_caps([len(kinds[key]) for key in kept]),
            owned=owned,
            grams=grams[:MOST_KINDS],
        )

    def _owned_part(self, support: tuple[int, ...]) -> Array:
        """G of what is owned on the support, from its few rows."""
        columns = self.evaluator.columns_of(support)
        if self._owned is not None:
            return np.asarray(self._owned[columns[:, None], columns])
        grams = [self.evaluator.block_gram(j, columns) for j in sorted({j for i in support for j in self.held[i]})]
        return sum(grams, np.zeros((len(columns), len(columns))))

    def _part(self, block: int, nodes: tuple[int, ...]) -> bytes:
        """C_jᵀC_j on some of the block's own nodes, as bytes to compare; empty when it sees nothing
        there.
        """
        key = (block, nodes)
        if key not in self._parts:
            columns = self.evaluator.columns_of(nodes)
            part = self.evaluator.block_gram(block, columns) + 0.0  # no negative zeros: equal matrices have equal bytes
            self._parts[key] = part.tobytes() if part.any() else b""
        return self._parts[key]


def _caps(sizes: Sequence[int]) -> tuple[int, ...]:
    """How many counts of each kind are told apart: all, or fewer of the most numerous kinds."""
    caps = list(sizes)
    while prod(cap + 1 for cap in caps) > MOST_COUNTS:
        caps[max(range(len(caps)), key=lambda i: caps[i])] -= 1
    return tuple(caps)
