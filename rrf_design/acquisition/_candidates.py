"""One field while it is being bought: what it has for any set of things held, and what could come
next.

Rows, margins, energies and prices are those of its structure (`rrf_design.structure`). The next
purchase is the paper's witness rule: the block that sees the worst witness best per cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from rrf_design._margin import DesignMargin, name_margin
from rrf_design.derive import asking, field_problems
from rrf_design.design import standing_of
from rrf_design.operators import Operator
from rrf_design.premise import Protected
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.design import Design
    from rrf_design.goal import Standing
    from rrf_design.market import FurtherAsk
    from rrf_design.structure import Structure
    from solvers import Margin, MarginTracker, SupportValue

Key = tuple[frozenset[str], frozenset[str]]
Supports = tuple["SupportValue", ...]
SMALL = 16
"""Up to so many nodes a margin is computed afresh faster than it is kept up to date."""


@dataclass(frozen=True, slots=True)
class PricedOffer:
    """A purchase with all it needs: nodes to be asked first, then blocks; in the order in which to
    buy them.
    """

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


class Candidates:
    """What can be said about one problem's field for any set of things held; holds no state of the
    run.

    Everything about rows, margins and prices comes from the problem's structure
    (`rrf_design.structure`), which equal items share. `incremental` keeps the margin of larger
    fields up to date instead of computing it afresh. The value is the same; among equally bad
    witnesses another one may be shown than a fresh computation would find, so what decides by the
    witness while answers come in (adaptive mode, which a resumed run must be able to repeat) does
    without.
    """

    def __init__(self, problem: Problem, *, incremental: bool = False, structure: Structure | None = None) -> None:
        self.problem, self._incremental = problem, incremental
        self.structure = problem.structure if structure is None else structure
        self._tracked: _Tracked | None = None
        self._margins: dict[Key, DesignMargin] = {}
        self._asked: dict[tuple[tuple[str, int], ...], Problem] = {}
        self._fields: dict[frozenset[str], tuple[Candidates, ...]] = {}

    @property
    def full(self) -> Operator:
        """Everything that is owned or on sale, with this problem's own targets."""
        return self.problem.whole

    def supports_below(self, held: Iterable[str], failed: Iterable[str], *, factor: float, most: int) -> Supports:
        """Supports whose σ_min is within a factor of the margin (or numerically zero), worst
        first.
        """
        from solvers import supports_below

        unread = self.given.union(held).intersection(failed, self.problem.node_by_id)
        if unread or not self.full.premise.plain:  # no list of supports knows of either: the witness alone steers
            return ()
        key = ("supports", *self._key(held, failed))
        if key not in self.structure.solved:
            present = self.margin(held, failed)
            operator = present.operator
            size = min(2 * self.problem.k, len(operator.node_ids))
            limit = max(present.value * factor, 1e-9)
            found = supports_below(operator.matrix, operator.groups, size=size, threshold=limit, limit=most)
            self.structure.solved[key] = found.supports
        return self.structure.solved[key]  # type: ignore[no-any-return]

    def _key(self, held: Iterable[str], failed: Iterable[str]) -> Key:
        return frozenset(held).difference(self._there, self.asks), frozenset(failed).difference(self.asks)

    def fields(self, held: Collection[str]) -> tuple[Candidates, ...]:
        """What each of several delivered fields is judged by, where this is held; itself where
        there is one.

        Items of one structure have fields of one structure.
        """
        links = self._priced.intersection(held)
        if links not in self._fields:
            problems = field_problems(self.problem, links)
            if problems == (self.problem,):
                return self._fields.setdefault(links, (self,))
            known = self.structure.solved.setdefault(("fields", links), [one.structure for one in problems])
            found = []
            for problem, structure in zip(problems, known, strict=True):
                problem.__dict__["structure"] = structure
                found.append(Candidates(problem, structure=structure))
            self._fields[links] = tuple(found)
        return self._fields[links]

    @cached_property
    def _priced(self) -> frozenset[str]:
        """Questions and blocks on sale: what links fields once it is held."""
        return frozenset(x.id for x in (*self.problem.nodes, *self.problem.blocks) if x.cost is not None)

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Nodes that belong to the field from the start, in the order of the file."""
        return tuple(node.id for node in self.problem.nodes if node.cost is None and node.read_from is None)

    @cached_property
    def given(self) -> frozenset[str]:
        """Nodes that belong to the field from the start, asked themselves or read from what is."""
        together = self.problem.read_together
        return frozenset(name for asked in self.questions for name in (asked, *together.get(asked, ())))

    @cached_property
    def owned_checks(self) -> tuple[str, ...]:
        """Anchors that belong to the field from the start and whose value has to be fetched."""
        return tuple(anchor.id for anchor in self.problem.anchors if anchor.owned and anchor.value is None)

    @cached_property
    def _there(self) -> frozenset[str]:
        """Names that are part of every design, so that holding them says nothing."""
        return self.given.union(block.id for block in self.problem.blocks if block.owned)

    def _holding(self, held: Iterable[str], failed: Iterable[str] = ()) -> Design:
        """The design of what is there; the same object for all items of the structure that hold the
        same.
        """
        key = ("holding", frozenset(held), frozenset(failed))
        if key not in self.structure.solved:
            self.structure.solved[key] = self.structure.holding(*key[1:])
        return self.structure.solved[key]  # type: ignore[no-any-return]

    def opened(self, held: Collection[str]) -> frozenset[str]:
        """Nodes in the field: the given ones and those that were asked, read or not.

        Holding a block does not ask its nodes.
        """
        return self._holding(held).opened

    def margin(self, held: Iterable[str], failed: Iterable[str] = ()) -> DesignMargin:
        """γ_k of the field as it is, γ(k | R) where answers could not be read; computed once per
        design and structure.
        """
        key = self._key(held, failed)
        if key not in self._margins:
            there = self._holding(*key)
            tracked = self.full.premise.plain and self.full.sharing is None and int(there.nodes.sum()) > SMALL
            if not self._incremental or not tracked or there.empty or there.unread.any():
                found = there.margin()
            else:
                known = ("tracked", there.key)
                if known not in self.structure.solved:
                    self.structure.solved[known] = self._track(there.operator)
                solved = self.structure.solved[known]
                names = tuple(there.operator.node_ids[i] for i in solved.support)
                found = name_margin(there.operator, Protected(solved, solved.support, names))
            self._margins[key] = replace(found, selected=tuple(sorted(key[0])))
        return self._margins[key]

    def settled_margin(self, held: Iterable[str], failed: Iterable[str]) -> DesignMargin:
        """The margin as a fresh computation has it, so that the figures are the same live, resumed
        and read back.
        """
        return self._holding(held, failed).margin()

    def _track(self, operator: Operator) -> Margin:
        """The margin of a larger field; only what the new rows touch is looked at again."""
        from solvers import MarginTracker

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
        return self.structure.market.extra(names, held)

    def closure(self, name: str, held: Collection[str]) -> tuple[str, ...]:
        """What has to be bought so that `name` counts: its nodes, what it requires, itself; nothing
        that is held.
        """
        if name in held or name in self._there:
            return ()
        return self.structure.market.offer(name, held)[0]

    def allowed(self, names: Collection[str], held: Collection[str]) -> bool:
        """Whether the problem's own rules let these be held together."""
        market = self.structure.market
        if market.lenient:
            return True
        return market.extendable(market.mask(tuple(name for name in {*names, *held} if name in market.index)))

    @cached_property
    def asks(self) -> Mapping[str, FurtherAsk]:
        """The second and every further ask of a node, by name (`rrf_design.market`)."""
        repeated = any(node.repeats > 1 or node.again is not None for node in self.problem.nodes)
        return self.structure.market.asks if repeated else {}

    @cached_property
    def included(self) -> frozenset[str]:
        """Nodes that belong to the field from the start, with the asks that come with them."""
        asks = [name for name, ask in self.asks.items() if ask.included and ask.node in self.given]
        return self.given.union(asks)

    def again_of(self, name: str) -> str:
        """The node that an ask asks once more; nothing for everything else."""
        return self.asks[name].node if name in self.asks else ""

    def repeats(self, held: Collection[str], failed: Collection[str]) -> dict[str, int]:
        """How often each node that may be asked again is there: what belongs to the field or was
        bought, without what could not be read.
        """
        result: dict[str, int] = {}
        for name, ask in self.asks.items():
            result.setdefault(ask.node, int(ask.node not in failed))
            result[ask.node] += (ask.included or name in held) and name not in failed
        return {node: max(1, times) for node, times in result.items()}

    def asked(self, held: Collection[str], failed: Collection[str]) -> Problem:
        """The problem with as many repeats as are there: its answers are means of so many, and
        scatter so much.
        """
        if not self.asks:
            return self.problem
        key = tuple(self.repeats(held, failed).items())
        if key not in self._asked:
            self._asked[key] = asking(self.problem, dict(key))
        return self._asked[key]

    def standing(self, held: Collection[str], failed: Collection[str] = ()) -> Standing:
        """Where the field stands against its goal: its margin, and the noise of what is held and
        read.
        """
        return standing_of(self.asked(held, failed), self.margin(held, failed))

    def further(self, held: Collection[str], failed: Collection[str], *, most: Fraction | None) -> list[PricedOffer]:
        """The next ask of every node that is in the field and may be asked again, where a promised
        error is wanted at all.
        """
        if not self.asks or self.problem.delta is None:
            return []
        there = self.opened(held).difference(failed)
        found: dict[str, PricedOffer] = {}
        for name, ask in self.asks.items():
            fresh = not ask.included and name not in held and name not in failed
            if fresh and ask.node in there and (most is None or ask.price <= most):
                found.setdefault(ask.node, PricedOffer((name,), ask.price, 0.0))
        return list(found.values())

    def asks_for(self, more: Mapping[str, int], used: Collection[str]) -> tuple[str, ...]:
        """Names of so many more asks of each node; fewer where the problem allows no more."""
        names: list[str] = []
        for node, times in more.items():
            left = [
                name for name, ask in self.asks.items() if ask.node == node and not ask.included and name not in used
            ]
            names.extend(left[: max(0, times)])
        return tuple(names)

    def offers(self, held: Collection[str], failed: Collection[str], *, most: Fraction | None) -> list[PricedOffer]:
        """Everything that can still be bought for at most `most`, in file order; `sees` is not
        filled in.
        """
        market, gone = self.structure.market, frozenset(failed)
        left = [name for name in self._on_sale if name not in held and name not in gone]
        offers = [PricedOffer(*market.offer(name, held), 0.0) for name in left]
        offers = [one for one in offers if gone.isdisjoint(one.names) and (most is None or one.price <= most)]
        return offers if market.lenient else [one for one in offers if self.allowed(one.names, held)]

    @cached_property
    def _waiting(self) -> dict[str, frozenset[str]]:
        """Owned blocks that wait for nodes which are not in the field from the start, with all
        their nodes.
        """
        owned = {block.id: frozenset(block.nodes) for block in self.problem.blocks if block.owned}
        return {name: nodes for name, nodes in owned.items() if not nodes <= self.given}

    @cached_property
    def _on_sale(self) -> tuple[str, ...]:
        """What can be bought on its own: nodes that owned blocks wait for, and blocks."""
        needed = frozenset[str]().union(*self._waiting.values())
        waited_for = frozenset(map(self.problem.asked_as, needed))
        nodes = (node.id for node in self.problem.nodes if node.cost is not None and node.id in waited_for)
        return (*nodes, *self.problem.on_sale)

    def energies(self, witness: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
        """‖C_j h‖² for every block of the problem by itself, h zero outside the witness."""
        return self.structure.energies(witness)

    def gain(
        self, names: Collection[str], held: Collection[str], failed: Collection[str], energies: Mapping[str, float]
    ) -> float:
        """What buying these adds to ‖Bh‖², less what it takes away from blocks that share with
        them.
        """
        if self.full.sharing is None:
            return sum(energies[block] for block in self.wakes(names, held))
        after = self._holding({*held, *names}, failed)
        return after.image(energies) - self._holding(held, failed).image(energies)

    def may_lower(self, names: Collection[str]) -> bool:
        """Whether the margin may fall when these are bought: with new nodes, where blocks dilute
        each other, and where marks decide which checks may be wrong.
        """
        declared = self.full.premise.declared
        marked = declared is not None and bool(declared.rates or declared.marked)
        return marked or not self.structure.additive or any(name in self.problem.node_by_id for name in names)

    def wakes(self, names: Collection[str], held: Collection[str]) -> list[str]:
        """Blocks whose rows begin to count when `names` are bought: these, and owned ones that
        waited for a node.
        """
        asked = frozenset(names).intersection(self.problem.node_by_id)
        nodes = asked.union(*(self.problem.read_together.get(name, ()) for name in asked))
        there = self.opened(held).union(nodes) if nodes else nodes
        woken = [block for block, needed in self._waiting.items() if needed & nodes and needed <= there]
        return [name for name in names if name not in asked] + woken

    def ceiling(self, held: Collection[str], failed: Collection[str], offers: Iterable[PricedOffer]) -> float:
        """No choice among the offers lifts the margin above this.

        γ² is at most ‖Bh‖² + Σ‖C_j h‖² for every 2k-sparse h on the present nodes (unread ones not
        counted), whatever is bought and whichever nodes are opened; the least such bound is the
        margin of the present nodes with every row that is for sale.
        """
        fresh = frozenset(name for offer in offers for name in offer.names)
        present = self._holding(held, failed)
        everything = self._holding({*held, *fresh}, failed)
        return present.ceiling(everything)
