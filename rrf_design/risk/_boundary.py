"""When to stop looking at rows in random order and fixing those that are wrong: an exact boundary
in whole numbers (docs/algorithms.md, fact 36).

Of U rows that nobody looked at, R are wrong. They are drawn one after the other in random order,
and what is drawn is right afterwards; x of the first n were wrong. Stop at the first n with
n ≥ c[x]; then R − x wrong rows are left. That is too many, more than M, exactly if x ≤ R − M − 1:

    a_x  = how many 0/1 sequences of length c_x with x ones did not stop before
    F(R) = Σ_{x ≤ R − M − 1} a_x C(U − c_x, R − x) / C(U, R)          the chance of a false stop
    c_x  = the least n ≥ c_{x−1} that keeps F(M + 1 + x) ≤ α;         U − M where none below it does

A list that ends at X has F(R) ≤ F(M + X) for larger R: whoever stops with one more wrong row among
them had stopped before without it. So F(R) ≤ α for every R, with no model and no approximation.

A table of sequences is carried along in logarithms, n after n; all its terms are positive, so its
error is bounded (`_guard`), and where that could decide wrongly, integers do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rrf_design.risk._arguments import Number, share, whole

Floats = NDArray[np.float64]
LARGEST = 1_000_000
"""Rows of a table: the boundary of more is no matter of seconds."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Stop at n draws with x wrong ones if n ≥ needed(x): at most `allowed` of the `untouched` rows
    are wrong and unseen then, but for a chance of `level`.
    """

    untouched: int
    allowed: int
    level: Fraction
    counts: tuple[int, ...]
    """c_0 ≤ c_1 ≤ …, as far as they were worked out."""
    complete: bool
    """Whether the last of them holds for all larger x."""
    _paths: Floats = field(repr=False, compare=False)
    """Logarithms of the a_x, but for the last of a complete list."""

    def needed(self, wrong: int) -> int:
        """How many have to be looked at when so many of them are wrong."""
        if wrong < len(self.counts):
            return self.counts[wrong]
        if self.complete:
            return self.counts[-1]
        return boundary(self.untouched, self.allowed, self.level, most=2 * wrong).needed(wrong)

    def stops(self, drawn: int, wrong: int) -> bool:
        """Whether it is proven after these draws."""
        return drawn >= self.needed(wrong)

    def false_stop(self, wrong: int) -> float:
        """F: the chance to stop with more than `allowed` wrong ones left, if so many are wrong."""
        last = wrong - self.allowed
        self._worked_out(last - 1)
        return float(self.stop_chances(wrong)[: max(0, last)].sum())

    def expected_looks(self, wrong: int) -> float:
        """How many draws it takes on average, if so many of the untouched are wrong."""
        self._worked_out(wrong)
        chances = self.stop_chances(wrong)
        looks = np.array(self.counts[: len(chances)], dtype=np.float64)
        end = max(0, self.untouched - self.allowed)
        return float(end - chances @ (end - looks))

    def _worked_out(self, wrong: int) -> None:
        if not self.complete and wrong >= len(self.counts):
            raise ValueError(f"the boundary was worked out for fewer than {wrong} wrong rows; leave out most=")

    def stop_chances(self, wrong: int) -> Floats:
        """Of stopping at each c_x that was worked out, if so many are wrong."""
        logs = _log_factorials(self.untouched)
        x = np.arange(min(len(self._paths), wrong + 1))
        n = np.array(self.counts[: len(x)], dtype=np.int64)
        can = wrong - x <= self.untouched - n
        left = np.where(can, self.untouched - n - wrong + x, 0)
        ways = logs[self.untouched - n] - logs[wrong - x] - logs[left]
        total = logs[self.untouched] - logs[wrong] - logs[self.untouched - wrong]
        return np.where(can, np.exp(self._paths[: len(x)] + np.where(can, ways, 0.0) - total), 0.0)


def boundary(untouched: int, allowed: int, level: Number, *, most: int | None = None) -> Boundary:
    """The boundary of `untouched` rows in random order of which `allowed` may be wrong and unseen
    in the end, with a chance of at most `level` (1 − confidence) that it is more.

    `most`: the list goes only so far; `needed` works out more where it is asked for.

    >>> boundary(300, 15, 0.05, most=5).counts
    (50, 90, 105, 118, 128, 138)
    """
    size = whole(untouched, "untouched", most=LARGEST)
    room = whole(allowed, "allowed")
    alpha = share(level, "level")
    return _boundary(size, room, alpha, size if most is None else min(size, whole(most, "most")))


@lru_cache(maxsize=256)
def _boundary(size: int, room: int, alpha: Fraction, most: int) -> Boundary:
    logs, end, guard = _log_factorials(size), size - room, _guard(size)
    if end <= 0:
        return Boundary(size, room, alpha, (0,), True, np.zeros(0))
    counts: list[int] = []
    paths = np.zeros(0)
    going = np.full(most + 2, -np.inf)  # at 1 + x: how many sequences of length n with x ones go on
    going[1] = 0.0
    spent, total = 0.0, _log_ways(logs, size, room + 1)
    for n in range(end):
        if n:
            low, high = 1 + len(counts), 2 + min(n, most)
            going[low:high] = np.logaddexp(going[low:high], going[low - 1 : high - 1])
        while (x := len(counts)) <= min(n, most) and room + 1 + x <= size:
            term = math.exp(float(going[1 + x]) + _log_ways(logs, size - n, room + 1) - total)
            if abs(spent + term - float(alpha)) <= guard * float(alpha):
                stops = _keeps_exactly(size, room, alpha, counts, n)
            else:
                stops = spent + term <= float(alpha)
            if not stops:
                break
            counts.append(n)
            paths = np.append(paths, going[1 + x])
            going[1 + x] = -np.inf
            if room + 2 + x <= size:
                total = _log_ways(logs, size, room + 2 + x)
                left = _log_ways(logs, size - np.array(counts), room + 2 + x - np.arange(x + 1))
                spent = float(np.exp(paths + left - total).sum())
        if len(counts) > most or room + 1 + len(counts) > size:
            break
    complete = len(counts) <= most
    paths.setflags(write=False)
    return Boundary(size, room, alpha, (*counts, end) if complete else tuple(counts), complete, paths)


def _guard(size: int) -> float:
    """The relative error that the table of so many rows is allowed: each of its steps adds at most
    a few units in the last place of a logarithm, which is at most size·log 2.
    """
    return max(1e-9, 8 * size * size * 2.0**-52)


def _keeps_exactly(size: int, room: int, alpha: Fraction, counts: list[int], n: int) -> bool:
    """Whether F stays within α when the next number of the list is n, in integers."""
    paths: list[int] = []
    for x, drawn in enumerate([*counts, n]):
        paths.append(math.comb(drawn, x) - sum(a * math.comb(drawn - counts[k], x - k) for k, a in enumerate(paths)))
    wrong = room + len(paths)
    ways = sum(a * math.comb(size - c, wrong - k) for k, (a, c) in enumerate(zip(paths, [*counts, n], strict=True)))
    return ways * alpha.denominator <= alpha.numerator * math.comb(size, wrong)


@lru_cache(maxsize=64)
def _log_factorials(size: int) -> Floats:
    from scipy.special import gammaln

    found = np.asarray(gammaln(np.arange(size + 1) + 1.0))
    found.setflags(write=False)
    return found


def _log_ways(logs: Floats, n: int | NDArray[np.int64], k: int | NDArray[np.int64]) -> Floats | float:
    """log C(n, k), −∞ where there is none."""
    rest = np.subtract(n, k)
    found = logs[n] - logs[k] - logs[np.maximum(rest, 0)]
    return np.where(rest >= 0, found, -np.inf) if np.ndim(rest) else float(found)
