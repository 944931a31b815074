"""Balls say what integers say, and say it of counts for which integers take hours."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from rrf_design.risk.counts import BinomialTail, binomial_at_most, hypergeometric_at_most, rate_bound, rate_refuted

CLOSE = Fraction(1, 10**30)


def binomial(n: int, rate: Fraction, x: int) -> Fraction:
    return sum((math.comb(n, j) * rate**j * (1 - rate) ** (n - j) for j in range(x + 1)), Fraction(0))


def hypergeometric(size: int, wrong: int, m: int, x: int) -> Fraction:
    ways = sum(math.comb(wrong, j) * math.comb(size - wrong, m - j) for j in range(x + 1) if m - j <= size - wrong)
    return Fraction(ways, math.comb(size, m))


@pytest.mark.parametrize("seed", range(40))
def test_levels_beside_the_tail(seed: int) -> None:
    draw = random.Random(seed)
    n = draw.randrange(1, 60)
    x, rate = draw.randrange(n), Fraction(draw.randrange(1, 99), 100)
    p = binomial(n, rate, x)
    assert [binomial_at_most(n, rate, x, p * (1 + d)) for d in (CLOSE, -CLOSE, Fraction(0))] == [True, False, None]
    size = draw.randrange(2, 80)
    wrong, m = draw.randrange(size + 1), draw.randrange(1, size + 1)
    seen = draw.randrange(m + 1)
    q = hypergeometric(size, wrong, m, seen)
    found = [hypergeometric_at_most(size, wrong, m, seen, q * (1 + d)) for d in (CLOSE, -CLOSE)]
    assert found == ([True, False] if max(0, m - size + wrong) <= seen < min(m, wrong) else [None, None])


def test_a_tail_just_beside_its_level_is_told_at_once() -> None:
    """A forger may choose the level: with integers this took longer than two minutes, and a larger
    record for ever.
    """
    rate = Fraction(123456789012345678901234567891, 25 * 10**29)
    tail = BinomialTail(40_000, rate, 1_900)
    level = Fraction(str(tail.value))
    assert tail.at_most(level * (1 + Fraction(1, 10**9)))
    assert not tail.at_most(level * (1 - Fraction(1, 10**9)))


@pytest.mark.parametrize(("items", "wrong"), [(1, 0), (60, 0), (60, 2), (60, 59), (60, 60), (100_000, 4_000)])
def test_the_bound_of_a_rate_is_proven(items: int, wrong: int) -> None:
    sure = Fraction(19, 20)
    bound = rate_bound(items, wrong, 0.95)
    assert rate_refuted(items, wrong, Fraction(bound), sure)
    assert bound == 1.0 or not rate_refuted(items, wrong, Fraction(bound * (1 - 1e-12)), sure)
    assert not rate_refuted(items, wrong, Fraction(0), sure)
