"""Witness cuts: what every design that reaches a target must buy.

A unit vector h on a set of open nodes gives γ² ≤ Σ_j x_j ‖C_j h‖². For a target T = t² this is a covering row
Σ_j x_j ‖C_j h‖² ≥ T − (what is owned), whose coefficients may be cut down to the right-hand side: far stronger for 0/1
choices than the same inequality with t free. Rows are rounded to integers so that they can only become weaker: what an
integer solver proves from them holds for the real numbers.

Stronger still are the rows of `hulls`, so the master gets a witness only where they don't cut its design off.

With a query not asked yet in its support the row is switched off until that query is open. Radii (the robust objective)
add rows that speak of one support only: with exactly these blocks on it, this support stays below the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask
from rrf_design.planning.proof.hulls import Hull, NodeSurroundings

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena
    from rrf_design.planning.supports import Witness

Array = NDArray[np.float64]
SCALE = 1 << 40  # integer units per right-hand side; rounding a row of 300 coefficients weakens it by 3e-10
ROUNDING = 1e-14  # of ‖C_j‖‖h‖: more than the error of C_j h
SLACK = 1e-12  # covers the rounding errors in ‖C_j h‖², in ‖h‖ = 1 and in the sum over owned blocks


@dataclass(frozen=True, slots=True)
class Row:
    """Σ coefficients·variables ≥ bound, in whole numbers. Variables: items first, then owned blocks that wait."""

    variables: NDArray[np.int64]
    coefficients: NDArray[np.int64]
    bound: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A support whose objective is `value` when the variable blocks that touch it are exactly `present` of `blocks`."""

    blocks: NDArray[np.int64]  # positions among the arena's variable blocks
    present: Mask
    nodes: tuple[int, ...]  # items of queries that must be open
    value: float


class Pool:
    """All cuts found so far for one arena. Valid for every budget and target, so every planner shares them."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.position = np.full(len(arena.operator.block_ids), -1, dtype=np.int64)
        self.position[arena.variable] = np.arange(len(arena.variable))
        self._energies: list[Array] = []
        self._owned: list[float] = []
        self._gates: list[tuple[int, ...]] = []
        self._master: set[int] = set()  # witnesses that the master is given
        self._patterns: dict[bytes, _Pattern] = {}
        self._hulls: dict[tuple[bytes, bytes, tuple[int, ...]], Hull] = {}
        self._raised = 0
        self._seen: dict[bytes, int] = {}
        self._stacked: tuple[Array, Array] | None = None

    @cached_property
    def around(self) -> NodeSurroundings:
        return NodeSurroundings(self.arena)

    @property
    def rows_known(self) -> int:
        """How many rows the master was ever given: unchanged means that nothing was learnt."""
        return len(self._master) + len(self._patterns) + len(self._hulls) + self._raised

    def add_hull(self, support: tuple[int, ...], shares: Array, target: float) -> bool:
        """Keep the row around a support that these shares of the variable blocks miss by most; False: they miss none."""
        if not self.arena.plain:  # hulls speak of the whole of an error on single nodes
            return False
        around = self.around[support]
        weights = around.violated(shares, target)
        if weights is None:
            return False
        spread = around.spread(weights)
        used = np.flatnonzero(spread)
        order = used[np.argsort(around.members[used])]
        # Overlapping supports often lead to one and the same left side: the largest bound is the row.
        key = (around.members[order].tobytes(), spread[order].tobytes(), around.gates)
        bound, known = around.bound(weights, target), self._hulls.get(key)
        if known is None or (known.bound is not None and (bound is None or bound > known.bound)):
            self._raised += known is not None
            self._hulls[key] = Hull(around, weights, target, bound)
        return True

    def add(self, witness: Witness, design: Mask | None = None, *, master: bool = False) -> bool:
        """Keep a witness as a cut; with radii also the pattern of `design` on its support. False: known already."""
        arena = self.arena
        energies = arena.energies(witness)
        nodes = [i for i, part in self._parts(witness) if np.any(part != 0.0)]
        gates = tuple(int(arena.node_item[i]) for i in nodes if not arena.always[i])
        if arena.robust and len(nodes) == 1:  # a single node is always a connected support: its radii count in full
            energies = energies - np.square(arena.radii) * self._touching(tuple(nodes))
        if not arena.plain:  # ‖h‖ may be large where little of it is delivered, and with it the rounding of C_j h
            energies = self._outward(energies, witness)
        fresh = self._keep(energies, gates, master=master)
        if arena.robust and design is not None:
            fresh |= self._keep_pattern(witness, design)
        return fresh

    def _outward(self, energies: Array, witness: Witness) -> Array:
        """Upper bounds on ‖C_j h‖² in exact arithmetic; what is set aside stays at nothing."""
        length = float(np.linalg.norm(witness.vector))
        result: Array = np.square(np.sqrt(energies) + ROUNDING * length * np.sqrt(self.arena.weights))
        result[list(witness.removed)] = 0.0
        return result

    def _keep(self, energies: Array, gates: tuple[int, ...], *, master: bool) -> bool:
        row = energies[self.arena.variable]
        owned = float(energies[self.arena.permanent].sum())
        key = np.round(np.append(row, owned), 10).tobytes() + bytes(str(gates), "ascii")
        number = self._seen.setdefault(key, len(self._owned))
        if master:
            self._master.add(number)
        if number < len(self._owned):
            return False
        self._energies.append(row)
        self._owned.append(owned)
        self._gates.append(gates)
        self._stacked = None
        return True

    def _keep_pattern(self, witness: Witness, design: Mask) -> bool:
        arena = self.arena
        blocks = np.flatnonzero(self._touching(witness.support)[arena.variable])
        present = arena.active(design)[arena.variable][blocks]
        gates = tuple(int(arena.node_item[i]) for i in witness.support if arena.node_item[i] >= 0)
        pattern = _Pattern(blocks, present, gates, witness.value)
        key = np.array(witness.support).tobytes() + np.packbits(present).tobytes()
        known = self._patterns.get(key)
        if known is not None and known.value <= witness.value:
            return False
        self._patterns[key] = pattern
        return True

    def _parts(self, witness: Witness) -> list[tuple[int, Array]]:
        sizes = [len(self.arena.columns[i]) for i in witness.support]
        return list(zip(witness.support, np.split(witness.vector, np.cumsum(sizes)[:-1]), strict=True))

    def _touching(self, nodes: tuple[int, ...]) -> Mask:
        wanted = set(nodes)
        return np.array([not wanted.isdisjoint(touched) for touched in self.arena.block_nodes], dtype=bool)

    def stacked(self) -> tuple[Array, Array]:
        """(cuts, variable blocks) energies and (cuts,) what owned blocks contribute."""
        if self._stacked is None:
            width = len(self.arena.variable)
            energies = np.array(self._energies) if self._energies else np.zeros((0, width))
            self._stacked = (energies, np.array(self._owned))
        return self._stacked

    def bounds(self, designs: NDArray[np.bool_]) -> Array:
        """(designs,): an upper bound on each design's squared objective. `designs` are masks over items."""
        energies, owned = self.stacked()
        if not len(owned):
            return np.full(len(designs), np.inf)
        arena = self.arena
        if arena.waits.any():
            present = np.array([arena.active(mask)[arena.variable] for mask in designs], dtype=np.float64)
        else:
            present = designs[:, arena.block_item[arena.variable]].astype(np.float64)
        values = present @ energies.T + owned
        for cut, gates in enumerate(self._gates if arena.market.node_items else ()):
            if gates:
                values[~designs[:, list(gates)].all(axis=1), cut] = np.inf
        lowest: Array = values.min(axis=1)
        return lowest

    def ungated(self) -> NDArray[np.int64]:
        """Cuts that bind always: those a linear relaxation may combine."""
        return np.array([i for i, gates in enumerate(self._gates) if not gates], dtype=np.int64)

    def rows(self, target: float, variable_of: NDArray[np.int64]) -> list[Row]:
        """Covering rows for a squared objective of at least `target`.

        `variable_of` maps variable blocks to the program's variables. Of rows with equal left sides one is kept.
        """
        energies, owned = self.stacked()
        result: dict[bytes, Row] = {}
        for number in sorted(self._master):
            need = target * (1 - SLACK) - owned[number] * (1 + SLACK) - SLACK * target
            if need > 0.0:
                _keep_stronger(
                    result, _covering(energies[number] * (1 + SLACK), need, self._gates[number], variable_of)
                )
        for hull in self._hulls.values():
            made = _counting(hull, target, variable_of)
            if made is not None:
                _keep_stronger(result, made)
        for pattern in self._patterns.values():
            if pattern.value < np.sqrt(target) * (1 - SLACK):
                _keep_stronger(result, _forbidding(pattern, variable_of))
        return list(result.values())


def _keep_stronger(rows: dict[bytes, Row], row: Row) -> None:
    """Of rows with equal left sides only the largest bound counts."""
    key = row.variables.tobytes() + row.coefficients.tobytes()
    if key not in rows or rows[key].bound < row.bound:
        rows[key] = row


def _counting(hull: Hull, target: float, variable_of: NDArray[np.int64]) -> Row | None:
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
    return Row(variables, coefficients, need - need * len(around.gates))


def _covering(energies: Array, need: float, gates: tuple[int, ...], variable_of: NDArray[np.int64]) -> Row:
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
    variables = np.append(variable_of[kept], gates).astype(np.int64)
    coefficients = np.append(units[kept], [-opening] * len(gates)).astype(np.int64)
    return Row(variables, coefficients, bound - int(opening) * len(gates))


def _forbidding(pattern: _Pattern, variable_of: NDArray[np.int64]) -> Row:
    """At least one of these blocks is not as in the pattern, or one of the queries is not open."""
    signs = np.where(pattern.present, -1, 1)
    variables = np.append(variable_of[pattern.blocks], pattern.nodes).astype(np.int64)
    coefficients = np.append(signs, [-1] * len(pattern.nodes)).astype(np.int64)
    return Row(variables, coefficients, 1 - int(pattern.present.sum()) - len(pattern.nodes))
