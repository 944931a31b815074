"""What may be bought together, and what it costs: the one place where both are decided.

Items are the queries and the blocks on sale, in the order of `Problem.resolve("all")`; a design is
a boolean mask over them. Buying a block pays for the queries it needs, once. Prices are decimals as
written in the file, so sums are exact: three blocks at 0.1 fit into a budget of 0.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.field import Node

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor, Relation
    from rrf_design.problem import Problem

Mask = NDArray[np.bool_]


@lru_cache(maxsize=4096, typed=True)
def exact(amount: float | int | str | Fraction) -> Fraction:
    """Money as the decimal number that was written: 0.1 three times is 0.3, and a budget of 0.3
    allows it.
    """
    return amount if isinstance(amount, Fraction) else Fraction(str(amount))


def declared(entry: Node | Relation | Anchor) -> Fraction:
    """What one entry costs by the file, alone: a node its cost and its price, a block its cost."""
    return exact(entry.cost or 0.0) + (exact(entry.price or 0.0) if isinstance(entry, Node) else 0)


@dataclass(frozen=True, slots=True)
class _Group:
    """Items under one rule (bounds on how many) or one tier (prices by how many)."""

    name: str
    items: NDArray[np.int64]
    at_least: int = 0
    at_most: int | None = None
    prices: tuple[Fraction, ...] = ()

    def price(self, count: int) -> Fraction:
        """Of `count` blocks of a tier; the last price repeats."""
        listed = sum(self.prices[:count], Fraction(0))
        return listed + max(0, count - len(self.prices)) * self.prices[-1]


@dataclass(frozen=True, slots=True)
class FurtherAsk:
    """A node asked once more: no item of a design, since it raises no margin; a purchase all the
    same.
    """

    node: str
    price: Fraction
    included: bool
    """The problem itself says that the node is asked so often: it comes with the first ask."""


class Market:
    """Prices and rules of one problem over its items. Never changes after construction."""

    def __init__(self, problem: Problem) -> None:
        self._nodes = len(problem.nodes)
        self.items = problem.resolve("all")
        self.index = {name: i for i, name in enumerate(self.items)}
        self.node_items = sum(1 for name in self.items if name in problem.node_by_id)
        listed = {entry.id: declared(entry) for entry in (*problem.nodes, *problem.blocks)}
        self.booked = {node.id: listed[node.id] for node in problem.nodes if node.cost is None and node.price}
        """What asking each node costs that is asked in any case: no plan decides it, every run pays
        it.
        """
        self.prices = tuple(listed[name] for name in self.items)
        self.rules = tuple(self._rules(problem))
        self.tiers = tuple(self._tiers(problem))
        self.tiered = np.zeros(len(self.items), dtype=bool)
        for tier in self.tiers:
            self.tiered[tier.items] = True
        self.needs = self._needs(problem)
        self.excludes, self.banned = self._excludes(problem)
        self.asks = self._asks(problem)
        """The second and every further ask of a node, by name, in order."""

    def _asks(self, problem: Problem) -> dict[str, FurtherAsk]:
        result = {}
        for node in problem.nodes:
            if node.repeats > 1 or node.again is not None:
                last = node.repeats if node.again is None else node.most_repeats
                for time in range(2, last + 1):
                    name = f"{node.id} \N{MULTIPLICATION SIGN}{time}"
                    if name in problem.node_by_id or name in problem.block_by_id:
                        raise InputError(
                            f"{name!r}: ask {time} of node {node.id!r} is called so; call this one otherwise"
                        )
                    included = time <= node.repeats
                    result[name] = FurtherAsk(node.id, Fraction(0) if included else exact(node.again or 0.0), included)
        return result

    def _members(self, blocks: tuple[str, ...]) -> NDArray[np.int64]:
        return np.array(sorted({self.index[name] for name in blocks}), dtype=np.int64)

    def _rules(self, problem: Problem) -> list[_Group]:
        result = []
        for rule in problem.rules:
            least, most, members = rule.at_least or 0, rule.at_most, self._members(rule.blocks)
            if most is not None and least > most:
                raise InputError(f"rule {rule.id!r}: at_least = {least} is more than at_most = {most}")
            if least > len(members):
                raise InputError(f"rule {rule.id!r}: at_least = {least}, but it names only {len(members)} blocks")
            result.append(_Group(rule.id, members, least, most))
        return result

    def _tiers(self, problem: Problem) -> list[_Group]:
        owner: dict[int, str] = {}
        result = []
        for tier in problem.tiers:
            members = self._members(tier.blocks)
            for i in members:
                if int(i) in owner:
                    raise InputError(
                        f"tier {tier.id!r}: {self.items[i]!r} is priced by tier {owner[int(i)]!r} already; a block has"
                        " one price"
                    )
                owner[int(i)] = tier.id
            result.append(_Group(tier.id, members, prices=tuple(exact(p) for p in tier.prices)))
        return result

    def _needs(self, problem: Problem) -> tuple[tuple[int, ...], ...]:
        """Items that come with each item: the queries a block needs and the blocks it requires, all
        the way down.
        """
        direct: list[tuple[int, ...]] = [()] * self.node_items
        for name in self.items[self.node_items :]:
            block = problem.block_by_id[name]
            needed = (*map(problem.asked_as, block.nodes), *block.requires)
            direct.append(tuple(self.index[other] for other in needed if other in self.index))
        result = []
        for i in range(len(self.items)):
            found: set[int] = set()
            queue = list(direct[i])
            while queue:
                j = queue.pop()
                if j not in found:
                    found.add(j)
                    queue.extend(direct[j])
            result.append(tuple(sorted(found - {i})))
        return tuple(result)

    def _excludes(self, problem: Problem) -> tuple[tuple[tuple[int, int], ...], Mask]:
        pairs = set()
        banned = np.zeros(len(self.items), dtype=bool)
        for block in problem.blocks:
            for other in block.excludes:
                a, b = self.index.get(block.id), self.index.get(other)
                if a is not None and b is not None:
                    pairs.add((min(a, b), max(a, b)))
                elif a is not None or b is not None:
                    banned[a if a is not None else b] = True  # what it excludes is owned already
        for i, needed in enumerate(self.needs):
            bundle = {i, *needed}
            if any(a in bundle and b in bundle for a, b in pairs):
                banned[i] = True
        for i, needed in enumerate(self.needs):
            banned[i] |= bool(banned[list(needed)].any()) if needed else False
        return tuple(sorted(pairs)), banned

    @cached_property
    def bundled(self) -> Mask:
        """Items that come with others."""
        return np.array([bool(needed) for needed in self.needs], dtype=bool)

    @cached_property
    def unbound(self) -> Mask:
        """Items that no rule, tier, requirement or exclusion speaks of: they can be exchanged
        freely.
        """
        free = ~self.tiered & ~self.banned
        for rule in self.rules:
            free[rule.items] = False
        for a, b in self.excludes:
            free[[a, b]] = False
        for i, needed in enumerate(self.needs):
            blocks = [j for j in needed if j >= self.node_items]
            if blocks:
                free[[i, *blocks]] = False
        free[: self.node_items] = False
        return free

    @cached_property
    def lenient(self) -> bool:
        """Nothing limits what may be held together."""
        return not self.rules and not self.excludes and not self.banned.any()

    @cached_property
    def plain(self) -> bool:
        """Single prices and nothing else: every set of items within the budget is admissible."""
        return bool((self.unbound | self.banned).all()) and not self.bundled.any()

    @cached_property
    def floor_prices(self) -> NDArray[np.float64]:
        """The least that each item can add to a bill: for bounds only."""
        return np.array([float(p) for p in self._floors])

    def floor(self, item: int) -> Fraction:
        """The least that one item can add to a bill."""
        return self._floors[item]

    @cached_property
    def _floors(self) -> tuple[Fraction, ...]:
        result = list(self.prices)
        for tier in self.tiers:
            for i in tier.items:
                result[i] = min(tier.prices)
        return tuple(result)

    def empty(self) -> Mask:
        return np.zeros(len(self.items), dtype=bool)

    def mask(self, select: tuple[str, ...]) -> Mask:
        result = self.empty()
        for name in select:
            result[self.index[name]] = True
        return self.close(result)

    def names(self, mask: Mask) -> tuple[str, ...]:
        return tuple(self.items[i] for i in np.flatnonzero(mask))

    def close(self, mask: Mask) -> Mask:
        """The mask with everything its items need."""
        result = mask.copy()
        for i in np.flatnonzero(mask):
            if self.needs[i]:
                result[list(self.needs[i])] = True
        return result

    def add(self, mask: Mask, item: int) -> Mask:
        result = mask.copy()
        result[item] = True
        if self.needs[item]:
            result[list(self.needs[item])] = True
        return result

    def drop(self, mask: Mask, item: int) -> Mask:
        """Without this item, what needs it, and the queries nothing needs any more."""
        result = mask.copy()
        result[item] = False
        for i in np.flatnonzero(mask):
            if item in self.needs[i]:
                result[i] = False
        if self.node_items:
            result[: self.node_items] = False
            result = self.close(result)
            result[item] = False
        return result

    @cached_property
    def units(self) -> tuple[Fraction, NDArray[Any]]:
        """A common unit of all single prices, and these in it (0 in a tier); Python's whole numbers
        where 64 bits could overflow.
        """
        denominator = lcm(*(price.denominator for price in self.prices), 1)
        whole = [p.numerator * (denominator // p.denominator) for p in self.prices]
        for i in np.flatnonzero(self.tiered):
            whole[i] = 0
        small = sum(whole) < 1 << 62
        return Fraction(1, denominator), np.array(whole, dtype=np.int64 if small else object)

    def cost(self, mask: Mask) -> Fraction:
        unit, whole = self.units
        total = int(whole[mask].sum()) * unit
        for tier in self.tiers:
            total += tier.price(int(mask[tier.items].sum()))
        return total

    def costs(self, masks: NDArray[np.bool_]) -> tuple[NDArray[Any], Fraction]:
        """(designs,) costs in whole units, and the unit."""
        unit, whole = self.units
        if self.tiers:
            prices = [self.cost(mask) for mask in masks]
            unit = Fraction(1, lcm(unit.denominator, *(price.denominator for price in prices)))
            return np.array([int(price / unit) for price in prices], dtype=object), unit
        return masks.astype(whole.dtype) @ whole, unit

    def spent(self, names: Iterable[str], recorded: Mapping[str, float | None] = MappingProxyType({})) -> Fraction:
        """What entries cost that were asked or bought: as it was recorded, else as it is declared.

        Declared is what an entry costs in the file: a node its cost and its price, a block its cost
        or the next price of its tier, one more ask of a node the price of asking again. Every verb
        that says what something cost, or will cost, takes it from here or from `extra`.
        """
        names = tuple(dict.fromkeys(names))
        paid = {name: exact(cost) for name in names if (cost := recorded.get(name)) is not None}
        return sum(paid.values(), Fraction(0)) + self.extra((name for name in names if name not in paid), ())

    def extra(self, names: Iterable[str], held: Collection[str]) -> Fraction:
        """What asking or buying `names` adds to the bill of what is held; `spent` from nothing."""
        names = tuple(names)
        fresh = [self.index[name] for name in dict.fromkeys(names) if name not in held and name in self.index]
        total = sum((self.prices[i] for i in fresh if not self.tiered[i]), Fraction(0))
        for tier in self.tiers if self.tiered[fresh].any() else ():
            there = sum(self.items[i] in held for i in tier.items)
            total += tier.price(there + len(np.intersect1d(fresh, tier.items))) - tier.price(there)
        if self.asks:
            further = [name for name in dict.fromkeys(names) if name in self.asks and name not in held]
            total += sum((self.asks[name].price for name in further), Fraction(0))
        if self.booked:
            total += sum(
                (self.booked[n] for n in dict.fromkeys(names) if n in self.booked and n not in held), Fraction(0)
            )
        return total

    def offer(self, name: str, held: Collection[str]) -> tuple[tuple[str, ...], Fraction]:
        """What has to be bought so that `name` counts (queries first), and what that adds to the
        bill of what is held.
        """
        item = self.index[name]
        names = tuple(self.items[i] for i in (*self.needs[item], item) if self.items[i] not in held)
        return names, self.extra(names, held)

    def broken(self, mask: Mask) -> str:
        """The first rule that a closed design breaks, in words; empty when it is admissible."""
        for rule in self.rules:
            count = int(mask[rule.items].sum())
            if count < rule.at_least:
                return f"rule {rule.name!r} wants at least {rule.at_least}, not {count}"
            if rule.at_most is not None and count > rule.at_most:
                return f"rule {rule.name!r} allows at most {rule.at_most}, not {count}"
        return self._clash(mask)

    def _clash(self, mask: Mask) -> str:
        for a, b in self.excludes:
            if mask[a] and mask[b]:
                return f"{self.items[a]!r} and {self.items[b]!r} exclude each other"
        if (mask & self.banned).any():
            return f"{self.items[int(np.argmax(mask & self.banned))]!r} can't be bought beside what it excludes"
        return ""

    def extendable(self, mask: Mask) -> bool:
        """No upper rule is broken: what at_least rules still miss may come later."""
        for rule in self.rules:
            if rule.at_most is not None and int(mask[rule.items].sum()) > rule.at_most:
                return False
        return not self._clash(mask)

    def admits(self, mask: Mask, budget: Fraction | None) -> bool:
        return not self.broken(mask) and (budget is None or self.cost(mask) <= budget)

    @cached_property
    def opens_nothing(self) -> bool:
        """Every query is still for sale: some must be asked before there is a field at all."""
        return self.node_items == self._nodes
