"""How far to go down the list of doubtful rows before the rest is proven: a guess about errors that
labels correct (`plan_cut`); and a boundary at which that is proven (`boundary`). The guess is about
cost only; the promise rests on the boundary.

A row of doubt z is wrong with probability f + (1 − f) σ(a + b z), for one of a grid of (a, b, f)
whose weights follow the labels. Peeling j rows more costs j looks and what the proof of the rest is
expected to take, T(U − j, wrong rows left). If the rest turns out worse than hoped, the best later
cut would have been better: what a guess costs is never more than that, and the proof begun in vain.

The boundary says in whole numbers when to stop looking at rows in random order and fixing those
that are wrong (docs/algorithms.md, fact 36).

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
from itertools import pairwise
from typing import Any

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


SAVES = 0.97
"""A proof is begun only where it is expected to save this much of looking at everything."""
IN_VAIN = 1.5
"""What a proof that fails costs, in looks of one that finds nothing wrong."""
FADES = 0.85
"""The part of what labels said that stays when they have changed whom to believe."""
SLIGHT = 1e-6
"""Guesses of less weight are passed over."""
SIZES, CUTS = 26, 48
FARTHEST = 20.0
"""The table of expected looks reaches so many times the allowed number of wrong rows: one that ends
earlier takes hopeless rests to be cheap.
"""
SAMPLED = 32
"""Rows of a stretch between two cuts that stand for all of it."""
SHARES = (0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.5, 5.0, 8.0, 13.0, FARTHEST)
LISTED = 200
"""Numbers of the boundary that the table is made from; further ones are extended."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What is expected of going on: `peel` so many rows more, then prove; `looks` in all from here.

    Quantiles are over the guesses that the labels leave.
    """

    peel: int
    looks: float
    likely_most: float


class ErrorGuess:
    """The weights of the grid, from a prior and the labels seen so far."""

    def __init__(self) -> None:
        a, b, f = np.linspace(-1.6, 3.2, 9), np.linspace(0.08, 0.58, 7), np.geomspace(0.0005, 0.15, 8)
        grid = np.array(np.meshgrid(a, b, f, indexing="ij")).reshape(3, -1)
        self._a, self._b, self._f = grid
        self._prior = (
            -0.5 * (self._a - 0.7) ** 2
            - 0.5 * ((np.log(self._b) - math.log(0.27)) / 0.5) ** 2
            - 0.5 * ((np.log(self._f) - math.log(0.012)) / 1.2) ** 2
        )
        self._logs = self._prior

    def chances(self, doubts: Floats, guesses: Any = slice(None)) -> Floats:
        """(guesses, rows): the chance that a row is wrong under each."""
        a, b, f = (part[guesses, None] for part in (self._a, self._b, self._f))
        return np.asarray(f + (1 - f) / (1 + np.exp(-(a + b * doubts[None, :]))))

    def fade(self) -> None:
        """Whom to believe was learnt anew: what was seen before says less about what is left."""
        self._logs = self._prior + FADES * (self._logs - self._prior)

    def see(self, doubts: Floats, wrong: NDArray[np.bool_]) -> None:
        """Labels of rows that were looked at, each with its doubt by then."""
        p = np.clip(self.chances(np.asarray(doubts, dtype=np.float64)), 1e-9, 1 - 1e-9)
        self._logs = self._logs + np.where(wrong[None, :], np.log(p), np.log1p(-p)).sum(axis=1)

    @property
    def weights(self) -> Floats:
        weights: Floats = np.exp(self._logs - self._logs.max())
        return np.asarray(weights / weights.sum(), dtype=np.float64)


def plan_cut(guess: ErrorGuess, doubts: Floats, *, allowed: int, level: Fraction) -> Cut:
    """Where to cut the untouched rows, given their doubts in any order."""
    size = len(doubts)
    if size <= allowed:
        return Cut(0, 0.0, 0.0)
    table = _expected_table(size, allowed, level)
    ordered = np.sort(doubts)[::-1]
    cuts = np.unique(np.concatenate([[0], np.geomspace(1, size - allowed, CUTS).astype(int), [size - allowed]]))
    kept = np.flatnonzero(guess.weights > SLIGHT)
    weights = guess.weights[kept] / guess.weights[kept].sum()
    left = _wrong_left(guess, kept, ordered, cuts)
    sizes = size - cuts
    proof = table.looks(sizes, left)
    clean = table.looks(sizes, np.zeros(len(cuts)))
    total = cuts[None, :] + proof
    later = np.minimum.accumulate(total[:, ::-1], axis=1)[:, ::-1]
    costs = np.minimum(total, later + IN_VAIN * clean[None, :])
    means = weights @ costs
    best = int(means.argmin())
    if means[best] >= SAVES * size:
        best = len(cuts) - 1
    order = np.argsort(costs[:, best])
    reached = np.searchsorted(np.cumsum(weights[order]), 0.9)
    most = float(costs[order[min(int(reached), len(order) - 1)], best])
    return Cut(int(cuts[best]), float(means[best]), min(float(size), most))


def _wrong_left(guess: ErrorGuess, kept: NDArray[np.int64], ordered: Floats, cuts: NDArray[np.int64]) -> Floats:
    """(guesses, cuts): how many rows behind each cut are wrong, from sums over stretches of equal
    rank.
    """
    edges = np.append(cuts, len(ordered))
    found = np.zeros((len(kept), len(cuts)))
    stretches, counts, shares = [], [], []
    for low, high in pairwise(edges.tolist()):
        stretch = ordered[low:high]  # only the last can be empty
        if len(stretch) > SAMPLED:
            stretch = stretch[np.linspace(0, len(stretch) - 1, SAMPLED).astype(int)]
        stretches.append(stretch)
        counts.append(len(stretch))
        shares.append((high - low) / max(1, len(stretch)))
    chances = guess.chances(np.concatenate(stretches), kept)
    starts = np.cumsum([0, *counts[:-1]])
    there = np.array(counts) > 0
    found[:, there] = np.add.reduceat(chances, starts[there], axis=1) * np.array(shares)[there]
    return np.asarray(found[:, ::-1].cumsum(axis=1)[:, ::-1])


@dataclass(frozen=True, slots=True)
class _LooksTable:
    """Expected looks of a proof by rows (sizes) and wrong rows (columns), interpolated."""

    sizes: Floats
    wrong: Floats
    values: Floats

    def looks(self, sizes: NDArray[np.int64], wrong: Floats) -> Floats:
        """For sizes beside each other; `wrong` may have further axes before that one."""
        at = np.clip(np.searchsorted(self.sizes, sizes, side="right") - 1, 0, len(self.sizes) - 2)
        by = np.clip(np.searchsorted(self.wrong, wrong, side="right") - 1, 0, len(self.wrong) - 2)
        s = np.clip((sizes - self.sizes[at]) / (self.sizes[at + 1] - self.sizes[at]), 0.0, 1.0)
        t = np.clip((wrong - self.wrong[by]) / (self.wrong[by + 1] - self.wrong[by]), 0.0, 1.0)
        v = self.values
        low = v[at, by] * (1 - t) + v[at, by + 1] * t
        high = v[at + 1, by] * (1 - t) + v[at + 1, by + 1] * t
        return np.asarray(low * (1 - s) + high * s)


def _expected_table(size: int, allowed: int, level: Fraction) -> _LooksTable:
    """For every rest of so many rows or fewer.

    Sizes are rounded up to one of a series: a table serves many calls.
    """
    top = 2 ** (math.ceil(4 * math.log2(max(size, allowed + 2))) / 4)
    return _table(math.ceil(top), allowed, level)


@lru_cache(maxsize=64)
def _table(size: int, allowed: int, level: Fraction) -> _LooksTable:
    room = max(1, size - allowed)
    sizes = np.unique(np.round(allowed + np.linspace(0.0, 1.0, SIZES) ** 1.5 * room).astype(int))
    wrong = np.unique([(allowed + 1) * share for share in SHARES])
    values = np.array([[_looks(int(u), allowed, level, r) for r in wrong] for u in sizes])
    return _LooksTable(sizes.astype(np.float64), wrong, values)


def _looks(size: int, allowed: int, level: Fraction, wrong: float) -> float:
    """Expected draws, beyond the listed part of the boundary by a straight line of it."""
    end = size - allowed
    if end <= 0:
        return 0.0
    made = boundary(size, allowed, level, most=LISTED)
    many = min(size, round(wrong))
    if made.complete or many < len(made.counts):
        return made.expected_looks(many)
    chances = made.stop_chances(many)
    looks = np.array(made.counts[: len(chances)], dtype=np.float64)
    rest = max(0.0, 1.0 - float(chances.sum()))
    return float(chances @ looks) + rest * _crossing(made, many, end)


def _crossing(made: Boundary, wrong: int, end: int) -> float:
    """Where the mean path of draws meets the boundary, extended as it goes on at its end: a normal
    law with the same distance from the mean.
    """
    size, x = made.untouched, len(made.counts) - 1
    n, share = made.counts[x], (made.allowed + 1 + x) / made.untouched
    sigma = math.sqrt(max(1e-9, n * share * (1 - share) * (1 - n / size)))
    distance = max(0.0, (n * share - x) / sigma)
    draws = np.linspace(n, end, 200)
    found = draws * wrong / size
    tested = np.minimum(1.0, (made.allowed + 1 + found) / size)
    spread = np.sqrt(np.maximum(0.0, draws * tested * (1 - tested) * (1 - draws / size)))
    stops = np.flatnonzero(found <= draws * tested - distance * spread)
    return float(draws[stops[0]]) if len(stops) else float(end)
