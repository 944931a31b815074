"""What counts prove, worked out again: tails of counts, p-values of promises, and the procedure
that tests many policies at once (docs/algorithms.md, facts 23, 25 and 32 to 34).

The makers' side is `rrf_design.risk`; nothing of it is used here, and tests hold the two against
each other. A tail is a float with a known room for error; where a level lies within that room, ball
arithmetic decides, and integers where balls can't tell. So every yes and no is the one of exact
arithmetic on the decimals that the document says.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
PRIOR = (1.0, 20.0)
"""Beta(1, 20): the one prior of audits and of pilots that grow; another one could have been chosen
after looking.
"""
PRECISIONS = (128, 512, 2048)
CELLS = 1 << 20
"""Terms of tails that are summed at a time."""


def room(size: int) -> float:
    """The relative error that a tail among so many items is allowed in floats."""
    return 1e-6 * max(1.0, size / 10_000_000)


def is_drawn(places: Sequence[int], size: int, seed: int, population: str) -> bool:
    """Are these the first places of the random order, sorted by SHA-256 of digest, seed and place?

    A false draw mostly shows after a few looks.
    """
    head = f"{population}:{seed}:".encode("utf-8", "surrogatepass")

    def key(place: int) -> bytes:
        return sha256(head + b"%d" % place).digest()

    keys = [key(place) for place in places if 0 <= place < size]
    if len(keys) != len(places) or any(first >= second for first, second in pairwise(keys)):
        return False
    drawn = set(places)
    return all(place in drawn or key(place) > keys[-1] for place in range(size))


def at_most(rates: Sequence[float], most: int) -> Fraction:
    """The probability that at most so many checks are wrong, exactly: check i is wrong altogether
    with probability at most r_i, independently of the others (a binomial's tail, with different
    rates Poisson's).
    """
    chances = [Fraction(1)] + [Fraction(0)] * max(most, 0)  # of exactly 0, 1, ... wrong ones
    for rate in map(Fraction, rates):
        for wrong in range(len(chances) - 1, 0, -1):
            chances[wrong] = chances[wrong] * (1 - rate) + chances[wrong - 1] * rate
        chances[0] *= 1 - rate
    return sum(chances, Fraction(0)) if most >= 0 else Fraction(0)


def tolerated(rates: Sequence[float], confidence: float) -> int:
    """The least number of wrong checks that is not exceeded with this confidence."""
    most = 0
    while at_most(rates, most) < Fraction(confidence):
        most += 1
    return most


@dataclass(frozen=True, slots=True)
class _CountTail:
    """A p-value: its float with its room for error, and the exact answer where that could decide
    wrongly.
    """

    value: float
    exactly: Callable[[Fraction], bool]
    room: float = 0.0

    def at_most(self, level: Fraction) -> bool:
        if abs(self.value - float(level)) > self.room * float(level):
            return self.value <= float(level)
        return self.exactly(level)


CERTAIN = _CountTail(1.0, lambda level: level >= 1)
"""Nothing is refuted."""
IMPOSSIBLE = _CountTail(0.0, lambda level: level >= 0)
"""What is tested can't be."""


@lru_cache(maxsize=100_000)
def binomial(drawn: int, rate: Fraction, seen: int) -> _CountTail:
    """P(Bin(drawn, rate) ≤ seen)."""
    from scipy.special import bdtr, bdtrc

    if seen >= drawn:
        return CERTAIN
    # The smaller of rate and 1 − rate as a float: near an edge a tail consists of its last digits.
    small = 2 * rate <= 1
    value = float(bdtr(seen, drawn, float(rate)) if small else bdtrc(drawn - seen - 1, drawn, float(1 - rate)))

    def exactly(level: Fraction) -> bool:
        from flint import arb

        def terms() -> tuple[Any, Iterable[Any]]:
            p, q = _ball(rate), _ball(1 - rate)
            top = (_log_ways(drawn, seen) + p.log() * seen + q.log() * (drawn - seen)).exp()
            return top, (arb(j) * (q / p) / (drawn - j + 1) for j in range(seen, 0, -1))

        told = _in_balls(terms, level) if 0 < rate < 1 else None
        if told is not None:
            return told
        a, b = rate.numerator, rate.denominator
        ways = sum(math.comb(drawn, j) * a**j * (b - a) ** (drawn - j) for j in range(seen + 1))
        return bool(ways * level.denominator <= level.numerator * b**drawn)

    return _CountTail(value, exactly, room(drawn))


def refutes(items: int, wrong: int, rate: Fraction, level: Fraction) -> bool:
    """Is P(Bin(items, rate) ≤ wrong) ≤ level: does no rate as large explain so few wrong ones?"""
    return rate >= 1 or (rate > 0 and binomial(items, rate, wrong).at_most(level))


@lru_cache(maxsize=100_000)
def _hypergeometric(size: int, wrong: int, drawn: int, seen: int) -> _CountTail:
    """P(at most `seen` of `drawn` are wrong), drawn without replacement from `size` items of which
    `wrong` are. What leaves no room for the right ones seen is impossible.
    """
    if wrong > size - (drawn - seen):
        return IMPOSSIBLE
    if seen >= min(drawn, wrong):
        return CERTAIN
    value = float(_tails(np.array([size]), np.array([wrong]), drawn, seen)[0])
    low = max(0, drawn - (size - wrong))

    def exactly(level: Fraction) -> bool:
        from flint import arb

        def terms() -> tuple[Any, Iterable[Any]]:
            top = _log_ways(wrong, seen) + _log_ways(size - wrong, drawn - seen) - _log_ways(size, drawn)
            rest = size - wrong - drawn
            ratios = (arb(j * (rest + j)) / ((wrong - j + 1) * (drawn - j + 1)) for j in range(seen, low, -1))
            return top.exp(), ratios

        told = _in_balls(terms, level)
        if told is not None:
            return told
        ways = sum(math.comb(wrong, j) * math.comb(size - wrong, drawn - j) for j in range(low, seen + 1))
        return ways * level.denominator <= level.numerator * math.comb(size, drawn)

    return _CountTail(value, exactly, room(size))


def at_every_moment(places: Sequence[int], drawn: int, rate: Fraction) -> _CountTail:
    """A p-value of "the rate of wrong ones is at least this" that holds whenever one looks: the
    inverse of a mixture of likelihood ratios, a test martingale, at its best moment (Ville).

    `places`: where the wrong ones of `drawn` items stand. Between two of them the martingale only
    grows.
    """
    from scipy.special import betainc, betaln

    a, b = PRIOR
    r = float(rate)
    moments = np.array([*places, drawn], dtype=np.float64)
    wrong = np.arange(len(moments), dtype=np.float64)
    right = moments - wrong
    with np.errstate(divide="ignore"):
        weight = np.log(betainc(a + wrong, b + right, r)) + betaln(a + wrong, b + right)
    start = math.log(float(betainc(a, b, r))) + float(betaln(a, b))
    best = float((weight - start - wrong * math.log(r) - right * math.log1p(-r)).max())
    value = min(1.0, math.exp(-max(0.0, best)))
    # A martingale has no exact fall-back: it is conservative in the last digits.
    return _CountTail(value, lambda level: value * (1 + room(drawn)) <= float(level), math.inf)


def first_look(most: int, rate: Fraction, level: Fraction) -> int:
    """Where looking at a pilot that grows begins: the fewest items, at most `most`, that prove the
    rate when none of them is wrong.
    """
    return 1 + bisect_left(range(1, most), True, key=lambda items: at_every_moment((), items, rate).at_most(level))


def audit_bound(size: int, labels: Sequence[bool], confidence: Fraction) -> int:
    """The largest number of wrong items among `size` that no moment of the audit refutes; `labels`
    in the order of the draws, True for wrong.

    Under D wrong items, (probability of the draws under a beta-binomial prior) / (their probability
    given D) is a martingale from 1; where it has passed 1/α, D is refuted for good.
    """
    a, b = PRIOR
    lgamma, limit = math.lgamma, -math.log(1 - confidence) + room(size)
    prior, edge = lgamma(a + b) - lgamma(a) - lgamma(b), lgamma(size + 1)
    upper = size
    wrong = 0
    for drawn, label in enumerate(labels, start=1):
        wrong += label
        right = drawn - wrong
        upper = min(upper, size - right)
        mixture = prior + lgamma(a + wrong) + lgamma(b + right) - lgamma(a + b + drawn)

        def kept(many: int, x: int = wrong, m: int = drawn, mixture: float = mixture) -> bool:
            good = size - many
            whole = edge - lgamma(size - m + 1)
            bad_ways = lgamma(many + 1) - lgamma(many - x + 1)
            good_ways = lgamma(good + 1) - lgamma(good - (m - x) + 1)
            return mixture + whole - bad_ways - good_ways <= limit

        if upper > wrong and not kept(upper):
            # Above its peak, near size·x/m, the likelihood falls: what is refuted stays so upwards.
            low = min(upper, max(wrong, size * wrong // drawn))
            upper = low + bisect_left(range(low + 1, upper), True, key=lambda many: not kept(many))
    return max(upper, wrong)


@dataclass(frozen=True, slots=True)
class PromiseScope:
    """Of which items a promise speaks: `fresh` ones, the `policy` over all `population` items, the
    `file` handed over, or the `rest` that was not piloted; `depth` wrong ones are wanted for a
    claim.
    """

    statement: str
    piloted: int
    population: int
    delivered: bool
    """Is the denominator what is delivered, or all items?"""
    depth: int = 0


Both = tuple[_CountTail, _CountTail]
"""To claim the promise, and to go on to the next policy."""


def promised(scope: PromiseScope, seen: Sequence[tuple[Fraction, int, int, int | None]]) -> list[Both]:
    """The p-values of many policies: each with the rate that is tested, `marked` of `counted` items
    of its denominator, and how many items it delivers, where that is known.

    The first forbidden number of wrong items t is tested: K = t for the policy, K = t + x for what
    is corrected by the x that were seen (docs/algorithms.md, fact 32).
    """
    found: dict[int, Both] = {}
    unknown: dict[Fraction, list[int]] = {}
    for at, (rate, counted, marked, delivers) in enumerate(seen):
        size = delivers if scope.delivered else scope.population
        if counted == 0:
            found[at] = CERTAIN, CERTAIN
        elif scope.statement == "fresh":
            found[at] = (binomial(counted, rate, marked),) * 2
        elif size is not None:
            found[at] = _known(rate, scope, size, counted, marked)
        else:
            unknown.setdefault(rate, []).append(at)
    for rate, places in unknown.items():
        found.update(zip(places, _unknown(rate, scope, [seen[at][1:3] for at in places]), strict=True))
    return [found[at] for at in range(len(seen))]


def _known(rate: Fraction, scope: PromiseScope, size: int, drawn: int, seen: int) -> Both:
    first = steady = int(rate * size) + 1
    if scope.statement == "rest":
        first, steady = int(rate * (size - drawn)) + 1, int(rate * (size - _most_drawn(scope, size))) + 1
    gate = _hypergeometric(size, steady + scope.depth, drawn, seen)
    if scope.statement == "policy":
        return gate, gate
    claimable = seen >= scope.depth + max(0, steady - first)
    return _hypergeometric(size, first + seen, drawn, seen) if claimable else CERTAIN, gate


def _most_drawn(scope: PromiseScope, size: int) -> int:
    """How many of `size` items a pilot holds at most, up to four standard deviations: known before
    the draw.
    """
    part = size / scope.population
    spread = math.sqrt(scope.piloted * part * (1 - part) * (1 - scope.piloted / scope.population))
    return min(scope.piloted, size, math.ceil(round(scope.piloted * size / scope.population + 4 * spread, 9)))


def _unknown(rate: Fraction, scope: PromiseScope, counts: Sequence[tuple[int, int]]) -> list[Both]:
    """Where nobody knows how many items are delivered: the worst over every number of them."""
    if scope.statement == "rest":
        raise ValueError("a rate among the delivered rows outside the pilot needs their number")
    outside = scope.population - scope.piloted
    blocks = _blocks(rate, outside + max(drawn for drawn, _ in counts))
    found = []
    for drawn, seen in counts:
        gate = _worst(rate, blocks, drawn, seen, outside + drawn, scope.depth)
        claim = gate if scope.statement == "policy" else CERTAIN
        if scope.statement == "file" and seen >= scope.depth:
            claim = _worst(rate, blocks, drawn, seen, outside + drawn, seen)
        found.append((claim, gate))
    return found


def _blocks(rate: Fraction, most: int) -> tuple[Counts, Counts, Counts]:
    """First forbidden counts, each alone or, far out, in blocks that grow by 1.002: the first and
    last of each, and the largest size whose first forbidden count is the last.
    """
    top = int(rate * most) + 1
    starts = [*range(1, min(top, 1000) + 1)]
    while starts[-1] < top:
        starts.append(min(top, int(starts[-1] * 1.002) + 1))
    ends = [*(start - 1 for start in starts[1:]), top]
    sizes = [-(-end * rate.denominator // rate.numerator) - 1 for end in ends] if rate else [most]
    return np.array(starts), np.array(ends), np.array(sizes)


def _worst(
    rate: Fraction, blocks: tuple[Counts, Counts, Counts], drawn: int, seen: int, most: int, extra: int
) -> _CountTail:
    """The largest tail over every denominator up to `most`, each block at its smallest count and
    its largest size: no member of it is worse.
    """
    starts, ends, sizes = blocks
    chosen = slice(int(np.searchsorted(sizes, drawn)), int(np.searchsorted(ends, int(rate * most) + 1)) + 1)
    wrong, size = starts[chosen] + extra, np.minimum(sizes[chosen], most)
    if len(wrong) and (seen == drawn or wrong[0] <= seen):
        return CERTAIN
    found = _tails(size, wrong, drawn, seen)
    best, error = float(found.max(initial=0.0)), room(most)
    if best >= 1 - error:
        return CERTAIN
    near = [
        (int(size[at]), int(wrong[at]))
        for at in np.flatnonzero(found >= best * (1 - error))
        if wrong[at] <= size[at] - (drawn - seen)
    ]
    if not near:
        return IMPOSSIBLE
    return _CountTail(
        best, lambda level: all(_hypergeometric(n, many, drawn, seen).at_most(level) for n, many in near), error
    )


def _tails(size: Counts, wrong: Counts, drawn: int, seen: int) -> Floats:
    """Many hypergeometric tails at once; 0 where so many can't be wrong.

    Terms below the mean fall faster than a normal density: those nine deviations further down are
    left out.
    """
    from scipy.special import gammaln

    if not len(size):
        return np.zeros(0)
    part = wrong / size
    spread = np.sqrt(drawn * part * np.clip(1 - part, 0.0, 1.0))
    start = max(0, int(np.floor((np.minimum(seen, drawn * part) - 9 * spread).min())) - 40)
    j = np.arange(start, seen + 1)
    found = np.zeros(len(size))

    def log_ways(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    step = max(1, CELLS // len(j))
    for at in range(0, len(size), step):
        n, k = size[at : at + step, None], wrong[at : at + step, None]
        can = (j <= k) & (drawn - j <= n - k) & (k <= n - (drawn - seen))
        inside = np.where(can, j, np.clip(drawn - (n - k), 0, None))
        with np.errstate(all="ignore"):
            logs = log_ways(k, inside) + log_ways(n - k, drawn - inside) - log_ways(n, drawn)
        found[at : at + step] = np.where(can, np.exp(np.minimum(logs, 0.0)), 0.0).sum(axis=1)
    return np.minimum(found, 1.0)


def decided(
    evidence: Mapping[str, Both], streams: Sequence[tuple[Fraction, Sequence[str], bool]], alpha: Fraction
) -> dict[str, tuple[Fraction, bool]]:
    """Of every name the level it was last looked at (0: never), and whether it is proven.

    A stream has a share of α, names, and says whether it is a pool. A chain gives its level to the
    first of its names that is not passed yet, a pool divides it among those of its names; a stream
    with none left hands its level to the first that has some. What passes its gate at the sum of
    what points at it is passed, and proven where its claim holds as well.
    """

    def smallest_first(names: Sequence[str]) -> list[str]:
        return sorted(names, key=lambda name: evidence[name][1].value)

    lines = [deque(smallest_first(names) if pooled else names) for _, names, pooled in streams]
    left = [set(names) for _, names, _ in streams]
    levels = [share * alpha for share, _, _ in streams]
    found: dict[str, tuple[Fraction, bool]] = {}

    def level(name: str) -> Fraction:
        total = Fraction(0)
        for at, (_, _, pooled) in enumerate(streams):
            if pooled and name in left[at]:
                total += levels[at] / len(left[at])
            elif not pooled and lines[at] and lines[at][0] == name:
                total += levels[at]
        return total

    while True:
        for line in lines:
            while line and line[0] in found:
                line.popleft()
        live = next((at for at, names in enumerate(left) if names), None)
        for at in range(len(streams)) if live is not None else ():
            if not left[at] and live is not None:
                levels[live] += levels[at]
                levels[at] = Fraction(0)
        heads = {name: level(name) for name in dict.fromkeys(line[0] for line in lines if line)}
        passed = [name for name, here in heads.items() if evidence[name][1].at_most(here)]
        if not passed:
            break
        for name in passed:
            found[name] = heads[name], evidence[name][0].at_most(heads[name])
            for names in left:
                names.discard(name)
    for name in evidence.keys() - found.keys():
        here = level(name)
        found[name] = here, here > 0 and evidence[name][0].at_most(here)
    return found


def _in_balls(terms: Callable[[], tuple[Any, Iterable[Any]]], level: Fraction) -> bool | None:
    """Is top·(1 + r₁ + r₁r₂ + …) at most the level, for quotients that fall? Once one is below 1, a
    geometric series bounds the rest. None where no precision can tell.
    """
    from flint import arb, ctx

    for bits in PRECISIONS:
        with ctx.workprec(bits):
            total, quotients = terms()
            term, tiny = total, arb(2) ** -(bits + 20)
            for quotient in quotients:
                term = term * quotient
                total = total + term
                if quotient < 1 and term < tiny * total:
                    total = total + arb(0).union(term * quotient / (1 - quotient))
                    break
            wanted = _ball(level)
            if total <= wanted or total > wanted:
                return bool(total <= wanted)
    return None


def _ball(value: Fraction) -> Any:
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def _log_ways(n: int, k: int) -> Any:
    from flint import arb

    return arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
