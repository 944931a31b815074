"""Checks that are wrong at a known rate: how many of them may be wrong at once, and how sure that
is, in rationals.

Check i is wrong altogether with probability at most r_i, independently of the others: a judge that
says yes or no has no standard deviation, it has such a rate. The number of wrong ones is then at
most a binomial's (Poisson's, with different rates).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def at_most(rates: Sequence[float], most: int) -> Fraction:
    """The probability that at most so many are wrong, exactly."""
    chances = [Fraction(1)] + [Fraction(0)] * max(most, 0)  # of exactly 0, 1, ... wrong ones
    for rate in map(Fraction, rates):
        for wrong in range(len(chances) - 1, 0, -1):
            chances[wrong] = chances[wrong] * (1 - rate) + chances[wrong - 1] * rate
        chances[0] *= 1 - rate
    return sum(chances, Fraction(0)) if most >= 0 else Fraction(0)


def tolerated(rates: Sequence[float], confidence: float) -> int:
    """The least number that is not exceeded with this confidence."""
    most = 0
    while at_most(rates, most) < Fraction(confidence):
        most += 1
    return most
