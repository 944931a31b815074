"""The design of one field while it is being bought: which rows and columns of B are there, and what could come next.

A node whose answer could not be read is not in the field, and blocks that touch it add nothing; so the margin here is
always that of the field as it really is. The whole operator is assembled once and sliced, since weights don't depend
on what is bought. The next purchase is the paper's witness rule: the block that sees the worst witness best per cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.errors import InputError
from rrf_design.margins import DesignMargin, name_margin
from rrf_design.operator import Operator
from rrf_design.planning.costs import Market, exact
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from solvers import Margin, MarginTracker, SupportValue

Key = tuple[frozenset[str], frozenset[str]]
Supports = tuple["SupportValue", ...]
SMALL = 16
"""Up to so many nodes a margin is computed afresh faster than it is kept up to date."""
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A purchase with all it needs: nodes to be asked first, then blocks; in the order in which to buy them."""

    names: tuple[str, ...]
    price: Fraction
    sees: float
    """‖C h‖² of the witness it was chosen for."""


@dataclass(frozen=True, slots=True)
class _Tracked:
    """A margin that is kept up to date, and the design it stands at."""

    nodes: tuple[str, ...]
    blocks: frozenset[str]
    tracker: MarginTracker


@dataclass(slots=True)
class Solved:
    """What was computed about fields of one structure, by (held, failed): the items of a data set share it."""

    margins: dict[Key, Margin] = field(default_factory=dict)
    supports: dict[Key, tuple[SupportValue, ...]] = field(default_factory=dict)
    ceilings: dict[tuple[Key, frozenset[str]], float] = field(default_factory=dict)


class Design:
    """What can be said about a field's operator for any set of things held; holds no state of the run.

    `incremental` keeps the margin of larger fields up to date instead of computing it afresh. The value is the same; among
    equally bad witnesses another one may be shown than a fresh computation would find, so what decides by the witness
    while answers come in (adaptive mode, which a resumed run must be able to repeat) does without. Designs that are
    given the same `shared` and are equal as matrices compute their margins once.
    """

    def __init__(
        self, problem: Problem, *, incremental: bool = False, shared: dict[bytes, Solved] | None = None
    ) -> None:
        self.problem, self._incremental = problem, incremental
        self._shared = {} if shared is None else shared
        self._tracked: _Tracked | None = None
        self._margins: dict[Key, DesignMargin] = {}

    @cached_property
    def full(self) -> Operator:
        return self.problem.operator("all")

    @cached_property
    def _solved(self) -> Solved:
        full, k = self.full, self.problem.k
        owned = [block.id for block in self.problem.blocks if block.owned]
        names = repr((k, full.node_ids, full.block_ids, sorted(self.given), owned))
        arrays = (full.matrix.data, full.matrix.indices, full.matrix.indptr, full.node_offsets, full.block_offsets)
        return self._shared.setdefault(names.encode() + b"".join(a.tobytes() for a in arrays), Solved())

    def supports_below(self, held: Iterable[str], failed: Iterable[str], *, factor: float, most: int) -> Supports:
        """Supports whose σ_min is within a factor of the margin (or numerically zero), worst first."""
        from solvers import supports_below

        key = (frozenset(held).difference(self._there), frozenset(failed))
        if key not in self._solved.supports:
            present = self.margin(*key)
            operator = present.operator
            size = min(2 * self.problem.k, len(operator.node_ids))
            limit = max(present.value * factor, 1e-9)
            found = supports_below(operator.matrix, operator.groups, size=size, threshold=limit, limit=most)
            self._solved.supports[key] = found.supports
        return self._solved.supports[key]

    @cached_property
    def given(self) -> frozenset[str]:
        """Nodes that belong to the field from the start."""
        return frozenset(node.id for node in self.problem.nodes if node.cost is None)

    @cached_property
    def _there(self) -> frozenset[str]:
        """Names that are part of every design, so that holding them says nothing."""
        return self.given.union(block.id for block in self.problem.blocks if block.owned)

    def opened(self, held: Collection[str]) -> frozenset[str]:
        """Nodes in the field: the given ones and those that were asked. Holding a block does not ask its nodes."""
        return self.given.union(name for name in held if name in self.problem.node_by_id)

    def active(self, held: Collection[str], failed: Collection[str]) -> tuple[str, ...]:
        """Blocks whose rows count: owned or held, all their nodes there, none of it failed."""
        there = self.opened(held).difference(failed)
        return tuple(
            block.id
            for block in self.problem.blocks
            if (block.owned or block.id in held) and block.id not in failed and there.issuperset(block.nodes)
        )

    def operator(self, held: Collection[str], failed: Collection[str] = ()) -> Operator:
        nodes = self.opened(held).difference(failed)
        return restrict(self.full, self.active(held, failed), [n.id for n in self.problem.nodes if n.id in nodes])

    def margin(self, held: Iterable[str], failed: Iterable[str] = ()) -> DesignMargin:
        """γ_k of the field as it is; computed once per design."""
        key = (frozenset(held).difference(self._there), frozenset(failed))
        if key not in self._margins:
            operator = self.operator(*key)
            if not operator.node_ids:
                raise InputError("the field is empty: none of its answers could be read")
            if key not in self._solved.margins:
                self._solved.margins[key] = self._solve(operator)
            solved = self._solved.margins[key]
            self._margins[key] = name_margin(operator, solved, selected=tuple(sorted(key[0])))
        return self._margins[key]

    def settled_margin(self, held: Iterable[str], failed: Iterable[str]) -> DesignMargin:
        """The margin as a fresh computation has it, so that the figures are the same live, resumed and read back."""
        tracked = self._incremental and len(self.opened(frozenset(held))) > SMALL
        return (Design(self.problem) if tracked else self).margin(held, failed)

    def _solve(self, operator: Operator) -> Margin:
        """The margin; on larger fields only what the new rows touch is looked at again."""
        from solvers import MarginTracker, margin

        if not self._incremental or len(operator.node_ids) <= SMALL:
            return margin(operator.matrix, operator.groups, k=self.problem.k)
        known = self._tracked
        if known is None or known.nodes != operator.node_ids or not known.blocks.issubset(operator.block_ids):
            tracker = MarginTracker(operator.matrix, operator.groups, size=2 * self.problem.k)
        else:
            tracker = known.tracker
            for name in operator.block_ids:
                if name not in known.blocks:
                    tracker.add_rows(operator.rows_of(name))
        self._tracked = _Tracked(operator.node_ids, frozenset(operator.block_ids), tracker)
        return tracker.margin()

    def price(self, names: Iterable[str], held: Collection[str] = ()) -> Fraction:
        """What the names cost on top of what is held, prices by tier included."""
        return self._market.extra(names, held)

    @cached_property
    def _market(self) -> Market:
        return Market(self.problem)

    def closure(self, name: str, held: Collection[str]) -> tuple[str, ...]:
        """What has to be bought so that `name` counts: its nodes, what it requires, itself; nothing that is held."""
        order: list[str] = []

        def visit(this: str) -> None:
            if this in held or this in order:
                return
            block = self.problem.block_by_id.get(this)
            if block is not None:
                for node in block.nodes:
                    if node not in self.given:
                        visit(node)
                for other in block.requires:
                    if not self.problem.block_by_id[other].owned:
                        visit(other)
            if this not in order:
                order.append(this)

        visit(name)
        return tuple(order)

    def allowed(self, names: Collection[str], held: Collection[str]) -> bool:
        """Whether the problem's own rules let these be held together."""
        market = self._market
        if market.lenient:
            return True
        return market.extendable(market.mask(tuple(name for name in {*names, *held} if name in market.index)))

    def candidates(self, held: Collection[str], failed: Collection[str], *, most: Fraction | None) -> list[Bundle]:
        """Everything that can still be bought for at most `most`, in file order; `sees` is not filled in."""
        result = []
        nodes = [node.id for node in self.problem.nodes if node.cost is not None and self._waited_for(node.id)]
        for name in [*nodes, *self.problem.on_sale]:
            if name in held or name in failed:
                continue
            names = self.closure(name, held)
            price = self.price(names, held)
            dead = any(self._touches(other, failed) for other in names)
            if not dead and (most is None or price <= most) and self.allowed(names, held):
                result.append(Bundle(names, price, 0.0))
        return result

    def _waited_for(self, node: str) -> bool:
        return any(block.owned and node in block.nodes for block in self.problem.blocks)

    def _touches(self, name: str, failed: Collection[str]) -> bool:
        block = self.problem.block_by_id.get(name)
        return name in failed or (block is not None and any(node in failed for node in block.nodes))

    def energies(self, witness: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
        """‖C_j h‖² for every block of the problem, h zero outside the witness."""
        zero = {node.id: (0.0,) * node.dim for node in self.problem.nodes}
        seen = np.square(self.full.matrix @ self.full.stack({**zero, **witness}))
        running = np.concatenate([[0.0], np.cumsum(seen)])
        sums = running[self.full.block_offsets[1:]] - running[self.full.block_offsets[:-1]]
        return dict(zip(self.full.block_ids, sums.tolist(), strict=True))

    def wakes(self, names: Collection[str], held: Collection[str]) -> list[str]:
        """Blocks whose rows begin to count when `names` are bought: these, and owned ones that waited for a node."""
        nodes = [name for name in names if name in self.problem.node_by_id]
        waiting = [block.id for block in self.problem.blocks if block.owned and not self.given.issuperset(block.nodes)]
        there = self.opened(held).union(nodes) if nodes else frozenset()
        woken = [b for b in waiting if set(nodes).intersection(self.problem.block_by_id[b].nodes)] if nodes else []
        return [name for name in names if name not in self.problem.node_by_id] + [
            name for name in woken if there.issuperset(self.problem.block_by_id[name].nodes)
        ]

    def ceiling(self, held: Collection[str], failed: Collection[str], bundles: Iterable[Bundle]) -> float:
        """No choice among the bundles lifts the margin above this.

        γ² is at most ‖Bh‖² + Σ‖C_j h‖² for every 2k-sparse h on the present nodes, whatever is bought and whichever
        nodes are opened; the least such bound is the margin of the present nodes with every row that is for sale.
        """
        from solvers import margin

        fresh = frozenset(name for bundle in bundles for name in bundle.names)
        key = ((frozenset(held).difference(self._there), frozenset(failed)), fresh)
        if key in self._solved.ceilings:
            return self._solved.ceilings[key]
        everything = {*held, *fresh}
        present = [n.id for n in self.problem.nodes if n.id in self.opened(held).difference(failed)]
        operator = restrict(self.full, self.active(everything, failed), present)
        self._solved.ceilings[key] = float(margin(operator.matrix, operator.groups, k=self.problem.k).upper)
        return self._solved.ceilings[key]


def restrict(full: Operator, blocks: Iterable[str], nodes: Collection[str]) -> Operator:
    """The rows of some blocks over the columns of some nodes, as an operator of its own."""
    columns = set(nodes)
    kept = [full.block_index[name] for name in blocks]
    rows = np.concatenate([np.arange(full.block_offsets[j], full.block_offsets[j + 1]) for j in kept] or [_NONE])
    picked = [full.node_index[name] for name in full.node_ids if name in columns]
    cols = np.concatenate([np.arange(full.node_offsets[i], full.node_offsets[i + 1]) for i in picked] or [_NONE])
    heights = [int(full.block_offsets[j + 1] - full.block_offsets[j]) for j in kept]
    widths = [int(full.node_offsets[i + 1] - full.node_offsets[i]) for i in picked]
    return Operator(
        matrix=full.matrix[rows][:, cols],
        target=full.target[rows],
        node_ids=tuple(full.node_ids[i] for i in picked),
        node_offsets=np.cumsum([0, *widths]).astype(np.int64),
        block_ids=tuple(full.block_ids[j] for j in kept),
        block_offsets=np.cumsum([0, *heights]).astype(np.int64),
        block_kinds=tuple(full.block_kinds[j] for j in kept),
        radii=full.radii[kept],
        fiber_factors={name: factor for name, factor in full.fiber_factors.items() if name in columns},
    )


def realised(problem: Problem, *, failed: Collection[str], values: Mapping[str, tuple[float, ...]]) -> Problem:
    """The problem as it turned out: failed parts left out, bought anchor values filled in.

    Members that are left out of a family would make the others heavier (w/m); the weight is scaled so that every
    row that stays is exactly the row the margin was computed with.
    """
    gone = set(failed)
    keep = [block for block in problem.blocks if block.id not in gone and not gone.intersection(block.nodes)]
    sizes: dict[str, int] = {}
    for block in keep:
        sizes[block.family_name] = sizes.get(block.family_name, 0) + 1
    names = {block.id for block in keep}
    settings = {key: getattr(problem, key) for key in type(problem).model_fields}
    relations: list[dict[str, Any]] = []
    anchors: list[dict[str, Any]] = []
    for block in keep:
        entry = block.model_dump(by_alias=True, exclude_defaults=True)
        share = Fraction(sizes[block.family_name], problem.family_size[block.family_name])
        if share != 1:
            entry["weight"] = float(exact(block.weight) * share)
        for key in ("requires", "excludes"):
            if key in entry:
                entry[key] = tuple(name for name in entry[key] if name in names)
        if block.id in values:
            entry["value"] = values[block.id]
        (relations if block in problem.relations else anchors).append(entry)
    groups = {
        key: [g.model_copy(update={"blocks": tuple(b for b in g.blocks if b in names)}) for g in getattr(problem, key)]
        for key in ("rules", "tiers")
    }
    settings |= {
        "nodes": tuple(node for node in problem.nodes if node.id not in gone),
        "relations": relations,
        "anchors": anchors,
        "rules": groups["rules"],
        "tiers": tuple(tier for tier in groups["tiers"] if tier.blocks),
    }
    return Problem(**settings)
