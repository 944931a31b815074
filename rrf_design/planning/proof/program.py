"""The mixed-integer master as plain data: whole-number rows over 0/1 variables, the same for every
solver.

Variables: one per item (queries, then blocks on sale), one per owned block that waits for a query,
one per step of a price tier, and for each family of which something may be bought those that count
its members. Of a family whose members share a weight so many are held, and each of them counts for
so much less: with one variable for "so many" and one for "this one, while so many" every cut is a
row over 0/1 variables, exact for whole designs (docs/algorithms.md, fact 37). Structure rows say
what may be bought together; covering rows come from the pool of cuts.

Money is rational (docs/algorithms.md, fact 20). All prices have one common denominator, so every
bill is a whole number of units and fits a budget exactly when it fits the budget rounded down to
one. Decimals so long that 64 bits can't hold them are rounded down, so that the program only
becomes weaker: whoever uses its answer asks `overspent` first, which decides in exact fractions and
remembers what may not be bought together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor, lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask
from rrf_design.planning.proof.cuts import CutRow

if TYPE_CHECKING:
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.rows import SharingGroup

LARGEST = 1 << 50  # units of all prices together: exact in a float, and far from what 64 bits hold


@dataclass(frozen=True, slots=True)
class BinaryProgram:
    """Find 0/1 variables with all rows satisfied; with `minimise`, of least cost.

    `rows[:hard]` are small exact numbers.
    """

    variables: int
    rows: tuple[CutRow, ...]
    hard: int
    cost: NDArray[np.int64]  # (variables,)
    unit: Fraction  # what one unit of cost is worth
    minimise: bool
    hint: Mask | None = None  # over items


class MarketRows:
    """The rows of an evaluator that no cut changes."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        market = evaluator.market
        self.waiting = np.flatnonzero(evaluator.waits)
        self.items = len(market.items)
        first_level = self.items + len(self.waiting)
        self.levels: list[NDArray[np.int64]] = []
        for tier in market.tiers:
            self.levels.append(np.arange(first_level, first_level + len(tier.items)))
            first_level += len(tier.items)
        self.variables = first_level
        self.counts = tuple(map(self._count, evaluator.counted))
        self._covers: list[tuple[NDArray[np.int64], Fraction]] = []
        self.rows = tuple(self._rules() + self._closures() + self._levels() + self._counting() + self._dominance())

    @cached_property
    def variable_of(self) -> NDArray[np.int64]:
        """Program variable of each variable block of the evaluator."""
        evaluator = self.evaluator
        waits = {int(j): self.items + number for number, j in enumerate(self.waiting)}
        return np.array([waits.get(int(j), int(evaluator.block_item[j])) for j in evaluator.variable], dtype=np.int64)

    @cached_property
    def grain(self) -> Fraction:
        """Two bills that differ at all differ by a whole number of these."""
        return Fraction(1, lcm(*(p.denominator for p in self._prices), 1))

    @cached_property
    def unit(self) -> Fraction:
        """What the program counts in: the grain, or a coarser power of ten where the numbers would
        be too large.
        """
        total, unit = sum(self._prices, Fraction(0)), self.grain
        if total > LARGEST * unit:
            unit = Fraction(10) ** len(str(int(total / LARGEST))) if total > LARGEST else Fraction(1)
            while total <= LARGEST * unit / 10:
                unit /= 10
        return unit

    @property
    def _prices(self) -> list[Fraction]:
        """Of every variable that may cost something."""
        market = self.evaluator.market
        levels = [tier.prices[min(i, len(tier.prices) - 1)] for tier in market.tiers for i in range(len(tier.items))]
        return [*(p for i, p in enumerate(market.prices) if not market.tiered[i]), *levels]

    @cached_property
    def cost(self) -> NDArray[np.int64]:
        result = np.zeros(self.variables, dtype=np.int64)
        market = self.evaluator.market
        for i in range(self.items):
            result[i] = 0 if market.tiered[i] else floor(market.prices[i] / self.unit)
        for tier, levels in zip(market.tiers, self.levels, strict=True):
            for count, variable in enumerate(levels):
                result[variable] = floor(tier.prices[min(count, len(tier.prices) - 1)] / self.unit)
        return result

    def program(
        self,
        *,
        target: float | None,
        budget: Fraction | None,
        minimise: bool = False,
        hint: Mask | None = None,
        cuts: Sequence[CutRow] | None = None,
    ) -> BinaryProgram:
        """All rows for a squared objective of at least `target` within the budget: the given cuts,
        or those of the pool.
        """
        rows = list(self.rows)
        if budget is not None:
            rows += self._within(budget)
        hard = len(rows)
        if cuts is not None:
            rows += cuts
        elif target is not None:
            rows += self.evaluator.pool.rows(target, self)
        return BinaryProgram(self.variables, tuple(rows), hard, self.cost, self.unit, minimise, hint)

    def _within(self, budget: Fraction) -> list[CutRow]:
        units = floor(budget / self.unit)
        paid = np.flatnonzero((self.cost > 0) & (self.cost <= units))
        rows = [_row([int(i)], [-1], 0) for i in np.flatnonzero(self.cost > units)]
        if int(self.cost[paid].sum()) > units:
            rows.append(CutRow(paid, -self.cost[paid], -units))
        return rows + [_row(c.tolist(), [-1] * len(c), 1 - len(c)) for c, price in self._covers if price > budget]

    def overspent(self, mask: Mask, budget: Fraction | None) -> bool:
        """Whether a design costs more than the budget, in exact fractions; if so, programs never
        offer it again.

        A bill only grows with what is on it, so a part of the design that costs too much is too
        much for every design.
        """
        market = self.evaluator.market
        if budget is None or market.cost(mask) <= budget:
            return False
        part = mask.copy()
        for item in np.flatnonzero(mask):
            part[item] = False
            if market.cost(part) <= budget:
                part[item] = True
        self._covers.append((np.flatnonzero(part), market.cost(part)))
        return True

    def _rules(self) -> list[CutRow]:
        market = self.evaluator.market
        rows = []
        for rule in market.rules:
            ones = np.ones(len(rule.items), dtype=np.int64)
            if rule.at_least:
                rows.append(CutRow(rule.items, ones, rule.at_least))
            if rule.at_most is not None:
                rows.append(CutRow(rule.items, -ones, -rule.at_most))
        rows += [_row([a, b], [-1, -1], -1) for a, b in market.excludes]
        rows += [_row([int(i)], [-1], 0) for i in np.flatnonzero(market.banned)]
        if market.opens_nothing:
            rows.append(_row(list(range(market.node_items)), [1] * market.node_items, 1))
        return rows

    def _closures(self) -> list[CutRow]:
        evaluator, market = self.evaluator, self.evaluator.market
        rows = [_row([j, i], [1, -1], 0) for i in range(self.items) for j in market.needs[i]]
        for number, block in enumerate(self.waiting):
            queries = [int(evaluator.node_item[n]) for n in evaluator.block_nodes[block] if evaluator.node_item[n] >= 0]
            present = self.items + number
            rows += [_row([q, present], [1, -1], 0) for q in queries]
            rows.append(_row([present, *queries], [1] + [-1] * len(queries), 1 - len(queries)))
        return rows

    def _levels(self) -> list[CutRow]:
        rows = []
        for tier, levels in zip(self.evaluator.market.tiers, self.levels, strict=True):
            members = [int(i) for i in tier.items]
            steps = [int(v) for v in levels]
            rows.append(_row(members + steps, [-1] * len(members) + [1] * len(steps), 0))
            rows.append(_row(members + steps, [1] * len(members) + [-1] * len(steps), 0))
            rows += [_row([a, b], [1, -1], 0) for a, b in pairwise(steps)]
        return rows

    def _count(self, group: SharingGroup) -> _Count:
        """Variables for how many of a group are held: one for each number, and one for each member
        that is held while it is that number.
        """
        evaluator = self.evaluator
        fixed = np.array([j for j in group.members if evaluator.permanent[j]], dtype=np.int64)
        free = np.array([j for j in group.members if not evaluator.permanent[j]], dtype=np.int64)
        numbers = self.variables + np.arange(len(free) + 1)
        held = numbers[-1] + 1 + np.arange(len(free) * len(free)).reshape(len(free), len(free))
        self.variables = int(numbers[-1]) + 1 + held.size
        return _Count(group, fixed, free, numbers, held)

    def _counting(self) -> list[CutRow]:
        """That the variables of each group count what is held."""
        rows = []
        for count in self.counts:
            numbers, members = count.numbers.tolist(), count.held.tolist()
            bought = self.variable_of[self.evaluator.pool.position[count.free]].tolist()
            rows += _exactly(numbers, [1] * len(numbers), 1)
            for member, own in zip(bought, members, strict=True):  # held: while it is one of the numbers
                rows += _exactly([member, *own], [-1] + [1] * len(own), 0)
            for number in range(1, len(numbers)):  # so many are held while it is this number
                some = [own[number - 1] for own in members]
                rows += _exactly([numbers[number], *some], [-number] + [1] * len(some), 0)
                rows += [_row([numbers[number], one], [1, -1], 0) for one in some]
        return rows

    def spread(self, energies: NDArray[np.float64], here: NDArray[np.float64]) -> tuple[Any, Any, float]:
        """Energies by block as coefficients of the program's variables, these, and what is there
        whatever is bought; `here` are those of blocks that share more than a count.
        """
        evaluator = self.evaluator
        if evaluator.additive:
            return energies[evaluator.variable], self.variable_of, float(energies[evaluator.permanent].sum())
        energies = np.where(evaluator.tangled, here, energies)
        plain = np.ones(len(energies), dtype=bool)
        coefficients, variables = [], []
        for count in self.counts:
            plain[count.group.members] = False
            shares = count.shares(evaluator)  # (members, numbers)
            coefficients += [energies[count.fixed] @ shares[: len(count.fixed)]]
            coefficients += list((energies[count.free, None] * shares[len(count.fixed) :])[:, 1:])
            variables += [count.numbers, *count.held]
        kept = evaluator.variable[plain[evaluator.variable]]
        coefficients.append(energies[kept])
        variables.append(self.variable_of[evaluator.pool.position[kept]])
        owned = float(energies[evaluator.permanent & plain].sum())
        return np.concatenate(coefficients), np.concatenate(variables), owned

    def _dominance(self) -> list[CutRow]:
        """Buy the better first: a block is bought only with any other on the same nodes that sees
        more and costs no more.

        Exchanging the two keeps a design admissible when no rule speaks of either, and never lowers
        the margin where the better one shares with nothing that the other does not; radii can make
        the better block the less certain one, so there is no such row for the robust objective. Nor
        under a premise: the better block may be a suspect and the other not.
        """
        evaluator, market = self.evaluator, self.evaluator.market
        if evaluator.robust or not evaluator.plain:
            return []
        by_place: dict[tuple[int, ...], list[int]] = {}
        for i in np.flatnonzero(market.unbound):
            by_place.setdefault(tuple(sorted(evaluator.block_nodes[evaluator.item_block[i]])), []).append(int(i))
        rows = []
        for members in by_place.values():
            grams = {i: _gram(evaluator, i) for i in members} if len(members) > 1 else {}
            for a in grams:
                for b in grams:
                    cheaper = a != b and market.prices[a] <= market.prices[b] and evaluator.shares_no_more(a, b)
                    if cheaper and _sees_more(grams[a], grams[b], first=a < b):
                        rows.append(_row([a, b], [1, -1], 0))
        return rows


@dataclass(frozen=True, slots=True)
class _Count:
    """A group whose members are raised by how many of them are held, and the variables that count
    them.
    """

    group: SharingGroup
    fixed: NDArray[np.int64]
    """Members that are in every design,"""
    free: NDArray[np.int64]
    """and the others."""
    numbers: NDArray[np.int64]
    """Variables: so many of the others are held, from none."""
    held: NDArray[np.int64]
    """(others, numbers but none): this one is held, and so many are."""

    def shares(self, evaluator: Evaluator) -> NDArray[np.float64]:
        """(members, numbers): what is left of the energy of each, the fixed ones first."""
        patterns = (
            np.arange(len(self.group.members))[None, :] < (len(self.fixed) + np.arange(len(self.numbers)))[:, None]
        )
        least = evaluator.structure.least[np.concatenate([self.fixed, self.free])]
        return np.asarray(least[:, None] / self.group.raised(patterns)[None, :])


def relaxed(program: BinaryProgram) -> NDArray[np.float64] | None:
    """(variables,) of least cost when they may be fractional; None when there are none.

    A guide, never a proof.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    lengths = [len(row.variables) for row in program.rows]
    if not sum(lengths):
        return np.zeros(program.variables)
    scales = np.array([max(float(np.abs(row.coefficients).max(initial=1)), 1.0) for row in program.rows])
    entries = np.concatenate([row.coefficients for row in program.rows]) / np.repeat(scales, lengths)
    columns = np.concatenate([row.variables for row in program.rows])
    matrix = csr_array((-entries, columns, np.cumsum([0, *lengths])), shape=(len(scales), program.variables))
    bounds = np.array([float(row.bound) for row in program.rows]) / scales
    solved = linprog(program.cost.astype(np.float64), A_ub=matrix, b_ub=-bounds, bounds=(0, 1), method="highs")
    return np.clip(solved.x, 0.0, 1.0) if solved.status == 0 else None


def _row(variables: list[int], coefficients: list[int], bound: int) -> CutRow:
    return CutRow(np.array(variables, dtype=np.int64), np.array(coefficients, dtype=np.int64), bound)


def _exactly(variables: list[int], coefficients: list[int], bound: int) -> list[CutRow]:
    """An equation, as two rows."""
    return [_row(variables, coefficients, bound), _row(variables, [-c for c in coefficients], -bound)]


def _gram(evaluator: Evaluator, item: int) -> NDArray[np.float64]:
    rows = evaluator.operator.rows_of(evaluator.market.items[item])
    columns = np.concatenate([evaluator.columns[i] for i in sorted(evaluator.block_nodes[evaluator.item_block[item]])])
    dense = rows[:, columns].toarray()
    return np.asarray(dense.T @ dense)


def _sees_more(better: NDArray[np.float64], worse: NDArray[np.float64], *, first: bool) -> bool:
    """better − worse ⪰ 0 with room for rounding; equal blocks are ordered as in the file."""
    if np.array_equal(better, worse):
        return first
    return bool(np.linalg.eigvalsh(better - worse)[0] >= 0.0)
