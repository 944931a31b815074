"""A design: the blocks that are there and the nodes that were asked, as a slice of a structure.

Every room that speaks of a design (planning, acquisition, repair, certificates, pages) takes its
rows, its margin, its price and its standing from here, so that they can't differ. A node that was
asked and whose answer could not be read stays in the field with its rows, and is known to say
nothing: the margin is the one that a repair rests on (`rrf_design.premise`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design._margin import DesignMargin, check_k, name_margin
from rrf_design.errors import InputError
from rrf_design.goal import Goal, Standing
from rrf_design.noise import Noise, Radius, radius_of

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.premise import Protected
    from rrf_design.problem import Problem
    from rrf_design.structure import Mask, Structure


def standing_of(problem: Problem, margin: DesignMargin, *, goal: Goal | None = None) -> Standing:
    """Where a design stands whose margin is known; see `Design.standing`."""
    from rrf_design.planning.supports import robust_floor

    robust = robust_floor(margin.operator, k=margin.k, lower=margin.lower, unread=bool(margin.unread))
    wanted = Goal.of(problem) if goal is None else goal
    return Standing(wanted, margin.k, margin.lower, robust, radius_of(problem, margin.operator))


NEGLIGIBLE = 1e-12
"""A node with less of a direction's squared length than this carries none of it; what rounding
leaves is far below.
"""


class Design:
    """What is held of a structure.

    Compared and remembered by its masks; never changes after construction.
    """

    def __init__(
        self,
        structure: Structure,
        nodes: Mask,
        blocks: Mask,
        *,
        unread: Mask | None = None,
        lost: Mask | None = None,
        selected: tuple[str, ...] | None = None,
    ) -> None:
        self.structure, self._selected = structure, selected
        self.nodes: Mask = nodes
        """(nodes,): asked."""
        self.unread: Mask = np.zeros_like(nodes) if unread is None else nodes & unread
        """(nodes,): asked, and the answer could not be read."""
        waiting = structure.touches @ (~nodes).astype(np.int64) > 0
        self.blocks: Mask = blocks & ~waiting
        """(blocks,): owned or bought, with all their nodes asked."""
        self.lost: Mask = np.zeros_like(blocks) if lost is None else lost & ~waiting
        """(blocks,): the same, and nothing came of it: no rows, but what they are marked with
        counts.
        """
        self.nodes.setflags(write=False)
        self.blocks.setflags(write=False)
        self.unread.setflags(write=False)

    @property
    def empty(self) -> bool:
        """Nothing was asked, or nothing could be read."""
        return not (self.nodes & ~self.unread).any()

    @property
    def key(self) -> bytes:
        return np.packbits(np.concatenate([self.nodes, self.blocks, self.unread, self.lost])).tobytes()

    def of(self, structure: Structure) -> Design:
        """The same nodes and blocks of another structure with the same names: the problem with or
        without its noise.
        """
        return Design(structure, self.nodes, self.blocks, unread=self.unread, lost=self.lost, selected=self._selected)

    def over(self, nodes: Mask) -> Design:
        """The design over some of its nodes only, with the rows that it has there: blocks stay that
        reach beyond them.
        """
        result = Design(self.structure, self.nodes, self.blocks, unread=self.unread & nodes, lost=self.lost)
        result.nodes = self.nodes & nodes
        result.nodes.setflags(write=False)
        return result

    @cached_property
    def operator(self) -> Operator:
        """The rows and columns of the design, without targets that mean anything (`slice` has those
        of a problem).
        """
        return self.structure.operator.holding(self.blocks, self.nodes, lost=self.lost)

    @cached_property
    def promised(self) -> Operator:
        """The operator with a column for every delivered node, also where nothing measures it."""
        return (
            self.structure.operator.holding(self.blocks, self._columns, lost=self.lost)
            if self._columns is not self.nodes
            else self.operator
        )

    @cached_property
    def _columns(self) -> Mask:
        """(nodes,): asked, or to be delivered."""
        missing = self.structure.operator.premise.missing(self.operator.node_ids)
        return self.nodes | self.structure.node_mask(missing) if missing else self.nodes

    def slice(self, problem: Problem) -> Operator:
        """The operator of a problem of this structure, its own targets included, over what
        `promised` is over.
        """
        return problem.whole.holding(self.blocks, self._columns, lost=self.lost)

    @property
    def selected(self) -> tuple[str, ...]:
        """What was chosen, or else what of the design was on sale: nodes, then blocks, in file
        order.
        """
        structure = self.structure
        if self._selected is not None:
            return self._selected
        asked = np.flatnonzero(self.nodes & structure.own & ~structure.given)
        bought = np.flatnonzero(self.blocks & ~structure.owned)
        full = structure.operator
        return (*(full.node_ids[i] for i in asked), *(full.block_ids[j] for j in bought))

    @property
    def opened(self) -> frozenset[str]:
        """Names of the nodes that were asked."""
        return frozenset(compress(self.structure.operator.node_ids, self.nodes))

    @property
    def price(self) -> Fraction:
        """What all of it costs from nothing, with what it needs, tiers included."""
        market = self.structure.market
        return market.cost(market.mask(self.selected))

    def margin(self, k: int | None = None, **options: Any) -> DesignMargin:
        """γ_k of the design under the problem's premise.

        Solved once for all items of the structure when no option changes how.

        A delivered node that was not asked is not delivered by this design: the margin is 0 there.
        """
        budget = check_k(k, self.structure.k)
        if self.empty:
            raise InputError("the field is empty: no node has been asked, or none of the answers could be read")
        lasting = {
            name: value for name, value in options.items() if name not in ("n_jobs", "progress") and value is not None
        }
        known = ("margin", self.key, budget)
        if known in self.structure.solved and not lasting:
            solved = self.structure.solved[known]
        else:
            solved = self._solve(budget, options)
            if not lasting:
                self.structure.solved[known] = solved
        unread = tuple(compress(self.structure.operator.node_ids, self.unread))
        return name_margin(self.promised, solved, selected=self.selected, unread=unread)

    def _solve(self, k: int, options: dict[str, Any]) -> Protected:
        from rrf_design.premise import protected, protected_unread

        if not self.unread.any():
            return protected(self.promised, k, **options)
        gone = np.flatnonzero(self.unread[self._columns])
        means = {name: options.get(name) for name in ("n_jobs", "time_limit")}
        return protected_unread(self.promised, k, unread=gone.tolist(), **means)

    def robust_lower(self, margin: DesignMargin) -> float:
        """What is certain of the margin when every uncertain block is off by its radius: min over
        supports of σ_min(B_S) − η_S.
        """
        from rrf_design.planning.supports import robust_floor

        known = ("robust", self.key, margin.k)
        if known not in self.structure.solved:
            unread = bool(self.unread.any())
            self.structure.solved[known] = robust_floor(self.promised, k=margin.k, lower=margin.lower, unread=unread)
        return float(self.structure.solved[known])

    def radius(self, problem: Problem, noise: Noise | None = None) -> Radius:
        """How far what the design measures may be from what is true."""
        return radius_of(problem, self.operator, noise)

    def standing(
        self,
        problem: Problem,
        *,
        margin: DesignMargin | None = None,
        goal: Goal | None = None,
        noise: Noise | None = None,
    ) -> Standing:
        """Where the design stands against a goal (the problem's own by default), before any answer
        is seen.
        """
        found = self.margin() if margin is None else margin
        wanted = Goal.of(problem) if goal is None else goal
        return Standing(wanted, found.k, found.lower, self.robust_lower(found), self.radius(problem, noise))

    def energies(self, direction: Mapping[str, Collection[float]]) -> dict[str, float]:
        """‖C_j h‖² of every block of the structure: of those that are held, and of each other one
        where it were held, too; see `Structure.energies`.
        """
        found = self.structure.energies(direction)
        sharing = self.structure.operator.sharing
        if sharing is None:
            return found
        raised = sharing.least(self.blocks, self.nodes)
        return {name: energy / by for (name, energy), by in zip(found.items(), raised.tolist(), strict=True)}

    def image(self, energies: Mapping[str, float]) -> float:
        """‖Bh‖² of the design, from the energy that every block of the structure has by itself."""
        structure = self.structure
        alone = np.array([energies[name] for name in structure.operator.block_ids])
        sharing = structure.operator.sharing
        raised = 1.0 if sharing is None else sharing.raised(self.blocks[None], self.nodes[None])[0]
        return float((alone / raised)[self.blocks].sum())

    def ceiling(self, more: Design) -> float:
        """No design between this one and a larger one has a margin above this on the nodes of this
        one: its rows and those of the larger, diluted as little as may be.
        """
        structure, sharing = self.structure, self.structure.operator.sharing
        declared = structure.operator.premise.declared
        if sharing is None and not (declared and (declared.rates or declared.marked)):
            return float(more.over(self.nodes).margin().upper)
        from rrf_design.premise import protected, protected_unread

        raised = np.ones(len(self.blocks)) if sharing is None else sharing.least(self.blocks, self.nodes)
        rows = structure.operator.restrict(more.blocks, self.nodes).weighed(raised[more.blocks] ** -0.5)
        right = replace(self.operator.premise, wrong_checks=0)
        if not self.unread.any():
            return float(protected(rows, structure.k, premise=right).solved.upper)
        gone = np.flatnonzero(self.unread[self.nodes]).tolist()
        return float(protected_unread(rows, structure.k, unread=gone, premise=right).solved.upper)

    def shares(self, direction: Mapping[str, Collection[float]]) -> dict[str, float]:
        """How much of a direction's squared length each node carries that carries any; adds up to
        1.
        """
        raw = {name: self.structure.operator.length(name, part) ** 2 for name, part in direction.items()}
        total = sum(raw.values())
        return {name: value / total for name, value in raw.items() if value > NEGLIGIBLE * total} if total > 0 else {}
