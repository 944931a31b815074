"""What exactly is promised about a policy, and the test of each promise (docs/algorithms.md, fact
32).

N items, n of them piloted, K wrong under the policy among all N, x of them seen in the pilot (and
corrected):

    fresh    R ≤ r              the rate of items drawn like the pilot's              P(Bin(n, r) ≤
    x) policy   K ≤ r N            the policy's risk over this data set                  P(Hyp(N,
    ⌊rN⌋ + 1, n) ≤ x) file     K − x ≤ r N        wrong rows in the delivered file, pilot rows right
    P(Hyp(N, ⌊rN⌋ + 1 + x, n) ≤ x) rest     K − x ≤ r (N − n)  the rate among the rows that were not
    piloted         P(Hyp(N, ⌊r(N − n)⌋ + 1 + x, n) ≤ x)

Why the last two are p-values: whether the statement holds depends on x itself. With t the first
forbidden excess, an error means X ≤ min(x, K − t); one more wrong item and one more allowed
sighting can only raise that probability, so K = t + x is the worst case.

Why a sequence of such tests has a gate: its usual proof looks at the first policy whose null is
true, and that must not depend on the draw. "K ≥ t" does not. So a procedure goes on past a policy
only where P(Hyp(N, t, n) ≤ x) is small enough as well; both errors are lower sets of X, so together
they are no larger than one of them. For `fresh` and `policy` gate and claim are the same.

That gate is dear where the pilot shows several wrong items. A depth d, fixed before looking, makes
it easier: the procedure goes on where P(Hyp(N, t + d, n) ≤ x) is small enough, and claims only with
x ≥ d. A policy with K < t + d is then never claimed falsely, because K − x < t; for the first with
K ≥ t + d both errors are lower sets of X again. Cautious policies, which show fewer than d wrong
items, are passed over without a claim.

`rest` among the delivered has one trap more: how many delivered rows lie outside the pilot is
itself drawn, and with it t. Its gate takes the t of a pilot that holds more of them than chance
allows (four standard deviations), which depends on sizes alone; where the pilot holds still more, a
claim needs as many wrong items seen as t has fallen below that. So a policy below the gate's t is
never claimed falsely, whatever was drawn.

The largest tail over every number of items that a policy may deliver, where that number is not
known (docs/algorithms.md, fact 32).

For a fixed first forbidden count t a larger denominator makes a small sighting likelier, so only
the largest denominator of each count matters: one tail P(Hyp(⌈t/r⌉ − 1, t + extra, drawn) ≤ seen)
for each of about rN counts, and the largest of them is the p-value.

Not all of them are computed. A tail grows with the denominator and falls with the number of wrong
items, so over a run of counts none is larger than the tail of the run's largest denominator with
its smallest count. Runs whose bound lies below the largest tail found so far are left out, the
others are cut up; the runs of many policies go side by side, as rows of one array. What decides a
test is compared exactly (`counts`), for every count whose tail could be the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.risk._arguments import Number, choice, share, whole
from rrf_design.risk._counts import (
    IMPOSSIBLE,
    BinomialTail,
    CertainTail,
    HypergeometricTail,
    LargestTail,
    PValue,
    guard,
)


class Statement(StrEnum):
    """Which items a promise speaks of."""

    FRESH = "fresh"
    POLICY = "policy"
    FILE = "file"
    REST = "rest"


class Among(StrEnum):
    """The denominator: what the policy delivers, or all items."""

    DELIVERED = "delivered"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most this share of the denominator may be marked in the policy's array `column`."""

    share: Fraction
    column: str = "wrong"
    among: Among = Among.DELIVERED

    def __post_init__(self) -> None:
        # Nothing exceeds 1: where many are checked at random, a large risk is no limit at all for
        # the others.
        object.__setattr__(self, "share", Fraction(1) if self.share == 1 else share(self.share, "risk", zero=True))
        # A plain text equals a member and is none: what is asked for by identity further on would
        # be passed over in silence.
        object.__setattr__(self, "among", choice(Among, self.among, "among"))

    @classmethod
    def of(cls, value: Number, *, column: str = "wrong", among: Among | str = Among.DELIVERED) -> Limit:
        """The same from a number as its decimals say it, and from the name of the denominator."""
        return cls(share(value, "risk", zero=True), column, choice(Among, among, "among"))


@dataclass(frozen=True, slots=True)
class Scope:
    """The statement with the sizes it needs: all items, and how many were piloted."""

    statement: Statement
    piloted: int
    population: int | None = None
    depth: int = 0
    """For `file` and `rest`: the least number of wrong items in the pilot with which a claim is
    wanted, fixed before looking (see the module's docstring).
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "statement", choice(Statement, self.statement, "statement"))
        whole(self.piloted, "piloted")
        whole(self.depth, "depth", most=self.piloted)
        if self.depth and self.statement not in (Statement.FILE, Statement.REST):
            raise InputError(f"a depth of {self.depth} means nothing for the statement {str(self.statement)!r}")
        if self.statement is not Statement.FRESH and self.population is None:
            raise InputError(f"statement {str(self.statement)!r} speaks of a finite data set; give population=")
        if self.population is not None and whole(self.population, "population") < self.piloted:
            raise InputError(f"population is {self.population}, but {self.piloted} items were piloted")


@dataclass(frozen=True, slots=True)
class ClaimAndGate:
    """Two p-values of one policy and limit: to claim the promise, and to go on to the next
    policy.
    """

    claim: PValue
    gate: PValue


@dataclass(frozen=True, slots=True)
class Sighting:
    """`marked` of `counted` items in the denominator of a limit.

    `delivers`: how many of all items the policy delivers, where that is known (all of them for a
    ladder that ends in a check).
    """

    limit: Limit
    counted: int
    marked: int
    delivers: int | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A share of the error probability and the names it is for: in this order (a chain), or all at
    once (a pool).
    """

    share: Fraction
    names: tuple[str, ...]
    pooled: bool = False


def evidence(limit: Limit, scope: Scope, counted: int, marked: int, delivers: int | None = None) -> ClaimAndGate:
    """The p-values for `marked` of `counted` items in the denominator.

    An empty denominator proves nothing.
    """
    return evidences([Sighting(limit, counted, marked, delivers)], scope)[0]


def evidences(seen: Sequence[Sighting], scope: Scope) -> list[ClaimAndGate]:
    """The same for many at once, which is much quicker where a denominator is not known."""
    found = {place: _known_evidence(one, scope) for place, one in enumerate(seen)}
    unknown: dict[Fraction, list[int]] = {}
    for place, known in found.items():
        if known is None:
            unknown.setdefault(seen[place].limit.share, []).append(place)
    for rate, places in unknown.items():
        parts = _unknown(rate, scope, [(seen[place].counted, seen[place].marked) for place in places])
        found.update(zip(places, parts, strict=True))
    return [part for part in found.values() if part is not None]


def _known_evidence(one: Sighting, scope: Scope) -> ClaimAndGate | None:
    """None where the denominator is not known."""
    if one.counted == 0:
        return ClaimAndGate(CertainTail(), CertainTail())
    if scope.statement is Statement.FRESH:
        tail: PValue = BinomialTail(one.counted, one.limit.share, one.marked)
        return ClaimAndGate(tail, tail)
    size = scope.population if one.limit.among is Among.ALL else one.delivers
    return None if size is None else _known(one.limit.share, scope, size, one.counted, one.marked)


def together(parts: Sequence[ClaimAndGate]) -> ClaimAndGate:
    """Several limits at once: a promise about all of them is proven when each is, and needs no
    correction (intersection-union).

    That argument needs nulls that don't depend on the draw, so with several limits nothing is
    claimed that does not pass the gates (and a depth, with which a gate claims nothing, is refused
    by whoever calls this); nor what a single limit would not claim for too few wrong items seen.
    """
    if len(parts) == 1:
        return parts[0]
    gates = tuple(part.gate for part in parts)
    return ClaimAndGate(LargestTail((*gates, *(part.claim for part in parts))), LargestTail(gates))


def _known(rate: Fraction, scope: Scope, size: int, drawn: int, seen: int) -> ClaimAndGate:
    """The denominator holds `size` items."""
    first = steady = _forbidden(rate, size)
    if scope.statement is Statement.REST:
        first, steady = _forbidden(rate, size - drawn), _forbidden(rate, size - _most_drawn(scope, size))
    gate = _tail(size, steady + scope.depth, drawn, seen)
    if scope.statement is Statement.POLICY:
        return ClaimAndGate(gate, gate)
    claimable = seen >= scope.depth + max(0, steady - first)
    return ClaimAndGate(_tail(size, first + seen, drawn, seen) if claimable else CertainTail(), gate)


def _most_drawn(scope: Scope, size: int) -> int:
    """How many of `size` items a pilot can be expected to hold at most: known before the draw, and
    exact where all items count.
    """
    assert scope.population is not None
    part = scope.piloted / scope.population
    spread = math.sqrt(scope.piloted * (size / scope.population) * (1 - size / scope.population) * (1 - part))
    return min(scope.piloted, size, math.ceil(round(scope.piloted * size / scope.population + 4 * spread, 9)))


def _forbidden(rate: Fraction, size: int) -> int:
    return int(rate * size) + 1


def _tail(size: int, wrong: int, drawn: int, seen: int) -> PValue:
    """A number of wrong items that can't be (more than there are items, or than the right ones seen
    leave room for) is refuted by itself.
    """
    if wrong > size - (drawn - seen):
        return IMPOSSIBLE
    return HypergeometricTail(size, wrong, drawn, seen)


def _unknown(rate: Fraction, scope: Scope, counts: Sequence[tuple[int, int]]) -> list[ClaimAndGate]:
    """How many of all items the policies deliver is not known: the worst case over every number
    that the pilot allows (`worst_cases`).
    """
    assert scope.population is not None
    if scope.statement is Statement.REST:
        raise InputError(
            "a rate among the delivered rows outside the pilot can't be proven while their number is unknown; say"
            " `delivers` for each policy, or among='all'"
        )
    most = scope.population - scope.piloted
    gates = [_UnknownSize(drawn, seen, most + drawn, scope.depth) for drawn, seen in counts]
    if scope.statement is Statement.POLICY:
        return [ClaimAndGate(tail, tail) for tail in _worst_tails(rate, gates)]
    claims = [_UnknownSize(drawn, seen, most + drawn, seen) for drawn, seen in counts]
    found = _worst_tails(rate, [*gates, *claims])
    return [
        ClaimAndGate(claim if seen >= scope.depth else CertainTail(), gate)
        for (_, seen), gate, claim in zip(counts, found[: len(counts)], found[len(counts) :], strict=True)
    ]


Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_PIECES = 4
"""A run that may hold the largest tail is cut into so many."""
_TERMS = 16
"""Terms of a tail that are summed at a time, then twice as many, until the rest is too small to
matter.
"""
_ROWS = 2048
"""Tails summed at a time: what fits a cache."""


@dataclass(frozen=True, slots=True)
class _UnknownSize:
    """`seen` of `drawn` were wrong, among at most `most` items; a forbidden count and `extra` more
    wrong ones are tested.
    """

    drawn: int
    seen: int
    most: int
    extra: int


def _worst_tails(rate: Fraction, asked: Sequence[_UnknownSize]) -> list[PValue]:
    """For each, the largest tail over every denominator.

    Where it is 1 but for `guard` it is called 1: nothing is refuted.
    """
    different = list(dict.fromkeys(asked))
    cases = _Cases.of(rate, different)
    near = _largest(cases)
    found = {one: cases.p_value(at, near.get(at)) for at, one in enumerate(different)}
    return [found[one] for one in asked]


@dataclass(frozen=True, slots=True)
class _Cases:
    """Of each case the blocks of counts from `first` to `last`; block b has the denominator
    min(sizes[b], most) and starts[b] + extra wrong items.
    """

    drawn: Counts
    seen: Counts
    most: Counts
    extra: Counts
    room: Floats
    """What floats may err by (`guard`)."""
    first: Counts
    last: Counts
    starts: Counts
    sizes: Counts

    @classmethod
    def of(cls, rate: Fraction, asked: Sequence[_UnknownSize]) -> _Cases:
        drawn, seen, most, extra = np.array(
            [(one.drawn, one.seen, one.most, one.extra) for one in asked], dtype=np.int64
        ).T
        lasts = np.array([int(rate * one.most) + 1 for one in asked], dtype=np.int64)
        starts, ends = _forbidden_counts(int(lasts.max()))
        sizes = _largest_sizes(rate, ends) if rate else np.array([most.max()])
        room = np.array([guard(one.most) for one in asked])
        first, last = np.searchsorted(sizes, drawn), np.searchsorted(ends, lasts)
        return cls(drawn, seen, most, extra, room, first, last, starts, sizes)

    def size(self, case: Counts, block: Counts) -> Counts:
        return np.minimum(self.sizes[block], self.most[case])

    def wrong(self, case: Counts, block: Counts) -> Counts:
        return self.starts[block] + self.extra[case]

    def tails(self, case: Counts, low: Counts, high: Counts) -> Floats:
        """With the denominator of the block `high` and the count of the block `low`: none between
        them is larger.
        """
        return _tails(self.size(case, high), self.wrong(case, low), self.drawn[case], self.seen[case])

    def p_value(self, case: int, near: Sequence[int] | None) -> PValue:
        """`near`: blocks whose tail could be the largest; None where one is called 1."""
        if near is None:
            return CertainTail()
        at, blocks = np.full(len(near), case), np.array(near, dtype=np.int64)
        drawn, seen = int(self.drawn[case]), int(self.seen[case])
        pairs = zip(self.size(at, blocks).tolist(), self.wrong(at, blocks).tolist(), strict=True)
        found = tuple(
            HypergeometricTail(size, wrong, drawn, seen) for size, wrong in pairs if wrong <= size - (drawn - seen)
        )
        return IMPOSSIBLE if not found else found[0] if len(found) == 1 else LargestTail(found)


def _largest(cases: _Cases) -> dict[int, list[int]]:
    """Of each case the blocks whose tail could be the largest: none where there is no block; a case
    whose tail is called 1 is left out.
    """
    every = np.arange(len(cases.drawn))
    empty = cases.first > cases.last
    certain = (cases.seen == cases.drawn) | (cases.wrong(every, np.where(empty, 0, cases.first)) <= cases.seen)
    best, room = np.where(certain & ~empty, 1.0, 0.0), cases.room
    case = np.flatnonzero(~certain & ~empty)
    last = cases.last[case]
    best[case] = cases.tails(case, last, last)
    known = [(case, last, best[case])]
    case, low, high = _doubling(case, cases.first[case], last)
    while len(case):
        open_ = cases.tails(case, low, high) >= best[case] * (1.0 - 2 * room[case])
        case, low, high = case[open_], low[open_], high[open_]
        ends = cases.tails(case, high, high)
        known.append((case, high, ends))
        np.maximum.at(best, case, ends)
        open_ = (low < high) & (best[case] < 1.0 - room[case])
        case, low, high = _cut(case[open_], low[open_], high[open_] - 1)
    places: dict[int, list[int]] = {int(at): [] for at in np.flatnonzero(best < 1.0 - room)}
    for case, block, value in known:
        least = best[case] * (1.0 - room[case])
        for at in np.flatnonzero((value >= least) & (best[case] < 1.0 - room[case])):
            places[int(case[at])].append(int(block[at]))
    return places


def _doubling(case: Counts, first: Counts, last: Counts) -> tuple[Counts, Counts, Counts]:
    """Runs of blocks below the last, each twice as long as the one above it: the largest
    denominator is mostly the worst, and those near it need a closer look.
    """
    rungs = np.arange(max(1, int((last - first).max(initial=0)).bit_length()))
    high = last[:, None] - 2**rungs
    low = np.maximum(last[:, None] - 2 ** (rungs + 1) + 1, first[:, None])
    some = (low <= high).ravel()
    return np.repeat(case, len(rungs))[some], low.ravel()[some], high.ravel()[some]


def _cut(case: Counts, low: Counts, high: Counts) -> tuple[Counts, Counts, Counts]:
    """Every run in a few pieces; one of a few blocks falls into single ones."""
    edges = low[:, None] + (high - low + 1)[:, None] * np.arange(_PIECES + 1) // _PIECES
    starts, stops = edges[:, :-1].ravel(), edges[:, 1:].ravel() - 1
    some = starts <= stops
    return np.repeat(case, _PIECES)[some], starts[some], stops[some]


def _largest_sizes(rate: Fraction, counts: Counts) -> Counts:
    """The largest size whose first forbidden count is the given one: count/r rounded up, less one;
    in integers that can't overflow.
    """
    safe = int(counts[-1]) * rate.denominator < 2**62
    exact = counts if safe else counts.astype(object)
    return np.asarray(-(-exact * rate.denominator // rate.numerator) - 1, dtype=np.int64)


@lru_cache(maxsize=1000)
def _forbidden_counts(last: int) -> tuple[Counts, Counts]:
    """All counts from 1 to `last`, each alone or, far out, in short blocks (first, last of each).

    A block is tested at its smallest count and its largest size, which is worse than each of its
    members: valid, and off by at most 1.002.
    """
    grid = [*range(1, min(last, 1000) + 1)]
    while grid[-1] < last:
        grid.append(min(last, int(grid[-1] * 1.002) + 1))
    starts = np.array(grid, dtype=np.int64)
    return starts, np.append(starts[1:] - 1, last)


def _tails(sizes: Counts, wrong: Counts, drawn: Counts, seen: Counts) -> Floats:
    """Many hypergeometric tails at once, P(at most `seen` of `drawn` are wrong); 0 where so many
    can't be wrong.

    Where more than expected were seen, right and wrong change places: the other tail is summed,
    whose terms fall from the first on.
    """
    above = seen.astype(np.float64) * sizes > drawn.astype(np.float64) * wrong
    other, least = np.where(above, sizes - wrong, wrong), np.where(above, drawn - seen - 1, seen)
    found = np.zeros(len(sizes))
    possible = np.flatnonzero((other <= sizes - (drawn - least)) & (least >= 0))
    for start in range(0, len(possible), _ROWS):
        rows = possible[start : start + _ROWS]
        found[rows] = _sums(sizes[rows], other[rows], drawn[rows], least[rows])
    return np.where(above, 1.0 - found, found)


def _sums(sizes: Counts, wrong: Counts, drawn: Counts, seen: Counts) -> Floats:
    """Sums relative to the first term, P(X = seen).

    From below the mean downwards the terms fall faster and faster, so a sum ends where the last is
    too small to matter.
    """
    from scipy.special import gammaln

    def log_comb(n: Counts, k: Counts) -> Floats:
        return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))

    first = log_comb(wrong, seen) + log_comb(sizes - wrong, drawn - seen) - log_comb(sizes, drawn)
    total, term = np.ones(len(sizes)), np.ones(len(sizes))
    rows = np.arange(len(sizes))
    top = seen.astype(np.float64)[:, None]
    spare, holders, others = ((part + 1.0)[:, None] for part in (sizes - wrong - drawn - 1, wrong, drawn))
    width = _TERMS
    while len(rows):
        j = np.maximum(top - np.arange(float(width)), 0.0)
        ratios = np.maximum(spare + j, 0.0) * j / ((holders - j) * (others - j))
        terms = np.cumprod(ratios, axis=1)
        terms *= term[:, None]
        total[rows] += terms.sum(axis=1)
        left = (terms[:, -1] > 1e-15 * total[rows]) | (ratios[:, -1] >= 1.0)
        rows, term, top = rows[left], terms[left, -1], top[left] - width
        spare, holders, others = spare[left], holders[left], others[left]
        width *= 2
    return np.exp(np.minimum(first + np.log(total), 0.0))
