"""Exact tails of counts: binomial for fresh items, hypergeometric for a finite population
(docs/algorithms.md, facts 23 and 25).

A tail is a probability that is compared with a level. It is computed in floats, with a relative
error far below `guard`; where that could decide wrongly, the comparison is made again in balls
(`balls`), and in integers where those can't tell. So every yes and no of this package is the one of
exact arithmetic on the decimals that the caller wrote: a confidence of 0.95 means 95/100, not the
nearest binary number.

Tails compared with a level in ball arithmetic: an answer that is proven, at a price that does
not grow with the digits of the counts.

Integers decide too, but n successes at a rate with forty decimals are numbers of a hundred million
digits, and a forged record may choose counts whose tail lies just beside its level. Terms fall
geometrically below the mean, so most sums end after a few; what is left out is bounded and added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from rrf_design.risk._arguments import Number, share, whole

GUARD = 1e-6
"""Relative distance from a level below which a float is not trusted, for counts up to STEADY."""
STEADY = 10_000_000
"""lgamma of this many errs by less than 10⁻⁷ in the exponent; of more, by as much more as there are
more of them.
"""


class PValue(Protocol):
    """A p-value: its float, and the exact answer to "is it at most this level?"."""

    @property
    def value(self) -> float: ...

    def at_most(self, level: Fraction) -> bool: ...


def guard(size: int) -> float:
    """The relative error that a tail among so many items is allowed in floats."""
    return GUARD * max(1.0, size / STEADY)


@dataclass(frozen=True, slots=True)
class BinomialTail:
    """P(Bin(drawn, rate) ≤ seen)."""

    drawn: int
    rate: Fraction
    seen: int

    @property
    def value(self) -> float:
        return _binomial(self.drawn, self.rate, self.seen)

    def at_most(self, level: Fraction) -> bool:
        if not _near(self.value, level, self.drawn):
            return self.value <= float(level)
        found = _binomial_at_most(self.drawn, self.rate, self.seen, level)
        if found is not None:
            return found
        a, b = self.rate.numerator, self.rate.denominator
        ways = sum(
            math.comb(self.drawn, j) * a**j * (b - a) ** (self.drawn - j) for j in range(min(self.seen, self.drawn) + 1)
        )
        return bool(ways * level.denominator <= level.numerator * b**self.drawn)


@dataclass(frozen=True, slots=True)
class HypergeometricTail:
    """P(at most `seen` of `drawn` are wrong), drawn without replacement from `population` items of
    which `wrong` are.
    """

    population: int
    wrong: int
    drawn: int
    seen: int

    @property
    def value(self) -> float:
        return _hypergeometric(self.population, self.wrong, self.drawn, self.seen)

    def at_most(self, level: Fraction) -> bool:
        if not _near(self.value, level, self.population):
            return self.value <= float(level)
        found = _hypergeometric_at_most(self.population, self.wrong, self.drawn, self.seen, level)
        if found is not None:
            return found
        ways = _ways(self.population, self.wrong, self.drawn, self.seen)
        return ways * level.denominator <= level.numerator * math.comb(self.population, self.drawn)


IMPOSSIBLE = HypergeometricTail(1, 1, 1, 0)
"""A probability of zero: what is tested can't be."""


@dataclass(frozen=True, slots=True)
class LargestTail:
    """The largest of several: the p-value of "at least one of these holds", no correction needed
    (intersection-union).
    """

    parts: tuple[PValue, ...]

    @property
    def value(self) -> float:
        return max((part.value for part in self.parts), default=1.0)

    def at_most(self, level: Fraction) -> bool:
        return bool(self.parts) and all(part.at_most(level) for part in self.parts)


@dataclass(frozen=True, slots=True)
class CertainTail:
    """A probability of 1: nothing is refuted."""

    value: float = 1.0

    def at_most(self, level: Fraction) -> bool:
        return level >= 1


def bound(population: int, drawn: int, wrong: int, confidence: Number) -> int:
    """The largest number of wrong items in a finite population that the draw does not refute.

    D is refuted when P(Hyp(population, D, drawn) ≤ wrong) ≤ 1 − confidence; the tail falls in D, so
    bisection finds the largest D that is not. Valid for a number of draws fixed beforehand;
    `AuditSequence` is valid at every moment.
    """
    size = whole(population, "population")
    m = whole(drawn, "drawn", most=size)
    x = whole(wrong, "wrong", most=m)
    level = 1 - share(confidence, "confidence")
    low, high = x, size - (m - x)
    while low < high:
        middle = (low + high + 1) // 2
        if HypergeometricTail(size, middle, m, x).at_most(level):
            high = middle - 1
        else:
            low = middle
    return low


def rate_bound(drawn: int, wrong: int, confidence: Number) -> float:
    """A rate that `wrong` of `drawn` fresh items refute, with all above it (Clopper and Pearson,
    one-sided): the smallest, up to rounding upwards.
    """
    from scipy.special import betaincinv

    n = whole(drawn, "drawn")
    x = whole(wrong, "wrong", most=n)
    sure = share(confidence, "confidence")
    if x == n:
        return 1.0
    rate, step = float(betaincinv(x + 1, n - x, float(sure))), 2.0**-52
    while rate < 1.0 and not _rate_refuted(n, x, Fraction(rate), sure):
        rate, step = min(1.0, rate * (1.0 + step) + 2.0**-1000), 2.0 * step
    return rate


def _rate_refuted(drawn: int, wrong: int, rate: Fraction, confidence: Fraction) -> bool:
    """Do `wrong` of `drawn` fresh items refute this rate, exactly? Nothing is above 1."""
    return rate >= 1 or (rate > 0 and BinomialTail(drawn, rate, wrong).at_most(1 - confidence))


def _near(value: float, level: Fraction, size: int) -> bool:
    return abs(value - float(level)) <= guard(size) * float(level)


@lru_cache(maxsize=200_000)
def _binomial(n: int, rate: Fraction, x: int) -> float:
    from scipy.special import bdtr, bdtrc

    if x >= n:
        return 1.0
    # The smaller of rate and 1 − rate as a float: the other one's last digits would be all that a
    # tail near the edge consists of.
    return float(bdtr(x, n, float(rate)) if 2 * rate <= 1 else bdtrc(n - x - 1, n, float(1 - rate)))


@lru_cache(maxsize=200_000)
def _hypergeometric(size: int, wrong: int, m: int, x: int) -> float:
    low, high = max(0, m - (size - wrong)), min(m, wrong)
    if x >= high:
        return 1.0
    if x < low:
        return 0.0
    top = _log_comb(wrong, x) + _log_comb(size - wrong, m - x) - _log_comb(size, m)
    # pmf(j − 1) / pmf(j), downwards from x: sums of positive terms, no cancellation.
    j = np.arange(x, low, -1, dtype=np.float64)
    ratios = j * (size - wrong - m + j) / ((wrong - j + 1) * (m - j + 1))
    with np.errstate(over="ignore", under="ignore"):
        logs = np.concatenate(([0.0], np.cumsum(np.log(ratios)))) + top
    peak = float(logs.max())
    return min(1.0, math.exp(peak) * float(np.exp(logs - peak).sum()))


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _ways(size: int, wrong: int, m: int, x: int) -> int:
    """Σ_{j ≤ x} C(wrong, j) C(size − wrong, m − j), in integers."""
    low, high = max(0, m - (size - wrong)), min(m, wrong, x)
    if high < low:
        return 0
    term = math.comb(wrong, low) * math.comb(size - wrong, m - low)
    total = term
    for j in range(low, high):
        term = term * (wrong - j) * (m - j) // ((j + 1) * (size - wrong - m + j + 1))
        total += term
    return total


PRECISIONS = (128, 512, 2048)
"""Bits. What the last can't tell apart is equal, or made to look so: then integers decide."""


def _binomial_at_most(drawn: int, rate: Fraction, seen: int, level: Fraction) -> bool | None:
    """Is P(Bin(drawn, rate) ≤ seen) ≤ level? None where no precision can tell."""
    if not 0 < rate < 1 or not 0 <= seen < drawn:
        return None

    def tail() -> Any:
        from flint import arb

        p, q = _ball(rate), _ball(1 - rate)
        top = (_log_comb_ball(drawn, seen) + p.log() * seen + q.log() * (drawn - seen)).exp()
        odds = q / p
        return _falling(top, ((arb(j) * odds / (drawn - j + 1)) for j in range(seen, 0, -1)), arb(0))

    return _compared(tail, level)


def _hypergeometric_at_most(population: int, wrong: int, drawn: int, seen: int, level: Fraction) -> bool | None:
    """Is P(at most `seen` wrong among `drawn` of `population` items, of which `wrong` are) ≤ level?

    None where no precision can tell.
    """
    low, high = max(0, drawn - (population - wrong)), min(drawn, wrong)
    if not low <= seen < high:
        return None

    def tail() -> Any:
        from flint import arb

        top = (
            _log_comb_ball(wrong, seen)
            + _log_comb_ball(population - wrong, drawn - seen)
            - _log_comb_ball(population, drawn)
        )
        ratios = (
            arb(j * (population - wrong - drawn + j)) / ((wrong - j + 1) * (drawn - j + 1))
            for j in range(seen, low, -1)
        )
        return _falling(top.exp(), ratios, arb(0))

    return _compared(tail, level)


def _falling(top: Any, ratios: Iterator[Any], zero: Any) -> Any:
    """top·(1 + r₁ + r₁r₂ + …) for ratios that fall from one to the next: once one is below 1, a
    geometric series bounds the rest.
    """
    from flint import arb, ctx

    total, term = top, top
    enough = arb(2) ** -(ctx.prec + 20)
    for ratio in ratios:
        term = term * ratio
        total = total + term
        if ratio < 1 and term < enough * total:
            rest = term * ratio / (1 - ratio)
            return total + zero.union(rest)
    return total


def _compared(tail: Any, level: Fraction) -> bool | None:
    for bits in PRECISIONS:
        with _precision(bits):
            found, wanted = tail(), _ball(level)
            if found <= wanted:
                return True
            if found > wanted:
                return False
    return None


def _ball(value: Fraction) -> Any:
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def _log_comb_ball(n: int, k: int) -> Any:
    from flint import arb

    return arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()


@contextmanager
def _precision(bits: int) -> Iterator[None]:
    from flint import ctx

    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before
