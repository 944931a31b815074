"""What a pilot could prove and cost, before anything is spent (docs/algorithms.md, fact 34)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rrf_design.errors import InputError
from rrf_design.risk.counts import BinomialTail, Number, share, whole
from rrf_design.risk.orders import passing_count
from rrf_design.risk.sequences import sequential_tail
from rrf_design.risk.statements import Among, Limit, Scope, Statement


def least_labels(risk: Number, confidence: Number, *, wrong: int = 0) -> int:
    """The smallest pilot of fresh items that proves the risk when `wrong` of them are wrong: 59, 149, 299 for 5, 2, 1 % at 95 % and none wrong."""
    rate, level = share(risk, "risk"), 1 - share(confidence, "confidence")
    x = whole(wrong, "wrong")
    low, high = x, max(1, x)
    while not BinomialTail(high, rate, x).at_most(level):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if BinomialTail(middle, rate, x).at_most(level):
            high = middle
        else:
            low = middle + 1
    return high


def first_look(risk: Number, confidence: Number) -> int:
    """The smallest pilot that proves the risk by tests that hold at every moment, with none wrong: where looking at a pilot that grows begins."""
    rate, level = share(risk, "risk"), 1 - share(confidence, "confidence")

    def proves(labels: int) -> bool:
        return sequential_tail(np.zeros(labels, dtype=bool), rate).at_most(level)

    low, high = 0, 1
    while not proves(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if proves(middle):
            high = middle
        else:
            low = middle + 1
    return high


def best_risk(labels: int, confidence: Number) -> float:
    """The smallest risk that a pilot of this size can prove: the one it proves when nothing is wrong."""
    n = whole(labels, "labels", least=1)
    return float(1.0 - float(1 - share(confidence, "confidence")) ** (1.0 / n))


def pilot_size(population: int, risk: Number) -> int:
    """A rule of thumb, n ≈ 0.7 √(N / r): larger pilots prove more and cost more. It fitted recorded answers by eye; it is no theorem."""
    return min(
        whole(population, "population", least=1), round(0.7 * math.sqrt(population / float(share(risk, "risk"))))
    )


@dataclass(frozen=True, slots=True)
class Prospect:
    """A policy as it is expected to be, without gold: its cost for an item and its wrong share."""

    cost: float
    risk: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """A pilot of `labels` items: how many wrong ones it may show, and what everything would cost, pilot included.

    `least_cost` is a bound: the cheapest prospect, proven. `expected_cost` is an estimate, as good as the prospects. `pays`: cheaper than checking
    everything is possible at all (a bound) and expected (an estimate).
    """

    labels: int
    allowed_wrong: int
    pilot_cost: float
    least_cost: float
    expected_cost: float
    check_everything: float

    @property
    def possible(self) -> bool:
        return self.least_cost < self.check_everything

    @property
    def pays(self) -> bool:
        return self.expected_cost < self.check_everything


def forecast(
    sizes: Sequence[int],
    risk: Number,
    confidence: Number,
    *,
    population: int,
    check: float,
    panel: float,
    prospects: Sequence[Prospect],
) -> list[Forecast]:
    """One forecast for each size. `check`: the price of one item's truth; `panel`: of all answers about one item, which a pilot buys.

    Estimate: prospects are tested from the safest to the cheapest, and with the predicted risks true each passes with the probability of at most
    `allowed_wrong` wrong; errors of neighbours come together, so the chance to get as far as a policy is the smallest on the way.
    """
    size = whole(population, "population", least=1)
    if not prospects:
        raise InputError("a forecast needs at least one prospect: a policy's predicted cost and risk")
    limit = Limit.of(risk, among=Among.ALL)
    alpha = 1 - share(confidence, "confidence")
    walk = sorted(prospects, key=lambda p: (p.risk, p.cost))
    found = []
    for labels in sizes:
        n = whole(labels, "labels", least=1, most=size)
        allowed = passing_count(limit, Scope(Statement.FRESH, n), alpha)
        pilot, rest = n * (check + panel), size - n
        cheapest = min(check, *(p.cost for p in walk)) if allowed >= 0 else check
        expected = _expected(walk, n, allowed, check)
        found.append(Forecast(n, allowed, pilot, pilot + rest * cheapest, pilot + rest * expected, size * check))
    return found


def _expected(walk: Sequence[Prospect], n: int, allowed: int, check: float) -> float:
    """The mean cost of the cheapest policy reached; checking everything where none is."""
    reach, best, total, before = 1.0, check, 0.0, 1.0
    for prospect in walk:
        passes = BinomialTail(n, Fraction(str(prospect.risk)), allowed).value if allowed >= 0 else 0.0
        reach = min(reach, passes)
        total += (before - reach) * best
        best, before = min(best, prospect.cost), reach
    return total + before * best
