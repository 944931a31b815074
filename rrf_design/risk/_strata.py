"""Draws inside strata, and what they prove (Hoeffding 1956).

The number of wrong items in a stratified draw is a sum of independent hypergeometric counts, each
of which is a sum of independent trials (its generating function has real roots). Among all sums of
n independent trials with mean μ the binomial has the heaviest lower tail up to μ − 1. So whatever
the strata hide,

    P(at most x wrong) ≤ P(Bin(n, μ/n) ≤ x)   for x ≤ μ − 1,

with μ the smallest mean that the tested number of wrong items allows: all of them where the
smallest share is drawn. Valid for any errors; a little larger than the exact bound of a simple
draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256

from rrf_design.errors import InputError
from rrf_design.risk._arguments import Number, share, whole
from rrf_design.risk._counts import BinomialTail, CertainTail, PValue


@dataclass(frozen=True, slots=True)
class Stratum:
    """How many items there are, and how many of them were drawn at random."""

    population: int
    drawn: int

    def __post_init__(self) -> None:
        whole(self.population, "a stratum's population", least=1)
        whole(self.drawn, "a stratum's draws", most=self.population)


LARGEST = 10_000_000
"""Items of one draw; redoing a larger one is no matter of seconds."""


def _stratified_tail(strata: Sequence[Stratum], wrong: int, seen: int) -> PValue:
    """A p-value of "at least `wrong` of all items are wrong", from `seen` wrong ones in the draw of
    all strata together.
    """
    drawn = sum(stratum.drawn for stratum in strata)
    mean = _least_mean(strata, Fraction(wrong))
    if drawn == 0 or seen > mean - 1:
        return CertainTail()
    return BinomialTail(drawn, mean / drawn, seen)


def stratified_bound(strata: Sequence[Stratum], wrong: int, confidence: Number) -> int:
    """The largest number of wrong items in all strata that the draw does not refute; `wrong` of
    those drawn were.
    """
    _some(strata)
    size, drawn = sum(s.population for s in strata), sum(s.drawn for s in strata)
    x = whole(wrong, "wrong", most=drawn)
    level = 1 - share(confidence, "confidence")
    low, high = x, size - (drawn - x)
    while low < high:
        middle = (low + high + 1) // 2
        if _stratified_tail(strata, middle, x).at_most(level):
            high = middle - 1
        else:
            low = middle
    return low


def stratified_risk(strata: Sequence[Stratum], risk: Number) -> Fraction:
    """The risk to test in `choose` for fresh items when the pilot was drawn inside strata: the
    smallest expected share of wrong items in such a pilot when a share `risk` of the population is
    wrong. It is `risk` itself for exactly proportional draws. A binomial test of it is valid where
    `binomial_is_heaviest` says so.
    """
    _some(strata)
    size, drawn = sum(s.population for s in strata), sum(s.drawn for s in strata)
    if drawn == 0:
        raise InputError("nothing was drawn from any stratum")
    return _least_mean(strata, share(risk, "risk", zero=True) * size) / drawn


def binomial_is_heaviest(drawn: int, risk: Fraction, level: Fraction) -> bool:
    """Does a binomial test of this risk at this level pass only counts up to μ − 1, of which the
    inequality speaks, or none at all, where equal trials are the worst (the inequality of the
    means)? It does for every risk that anybody would promise: what it excludes are risks near 1,
    and from about 0.6 on where the level is near one half.
    """
    first = max(1, int(drawn * risk))
    return not BinomialTail(drawn, risk, first).at_most(level)


def draw_order(population: int, seed: int, *, digest: str, count: int | None = None) -> list[int]:
    """The first `count` positions of a random order of the population, from its digest and a
    recorded seed.
    """
    size = whole(population, "population", most=LARGEST)
    number = whole(seed, "seed")
    wanted = size if count is None else whole(count, "count", most=size)
    head = f"{digest}:{number}:".encode()
    keys = ((sha256(head + str(place).encode()).digest(), place) for place in range(size))
    if wanted < size // 8:
        import heapq

        return [place for _, place in heapq.nsmallest(wanted, keys)]
    return [place for _, place in sorted(keys)][:wanted]


def stratified_order(labels: Sequence[str], seed: int, *, digest: str) -> list[int]:
    """A random order of all items of which every beginning is nearly proportional over the strata;
    `labels` names the stratum of each item.
    """
    number = whole(seed, "seed")
    head = f"{digest}:{number}:".encode()
    members: dict[str, list[tuple[bytes, int]]] = {}
    for place, label in enumerate(labels):
        members.setdefault(str(label), []).append((sha256(head + str(place).encode()).digest(), place))
    ranked: list[tuple[Fraction, bytes, int]] = []
    for group in members.values():
        for rank, (key, place) in enumerate(sorted(group)):
            ranked.append((Fraction(2 * rank + 1, 2 * len(group)), key, place))
    return [place for _, _, place in sorted(ranked)]


def _least_mean(strata: Sequence[Stratum], wrong: Fraction) -> Fraction:
    """The smallest expected number of wrong items in the draw: fill the strata with the smallest
    drawn shares first.
    """
    left, mean = wrong, Fraction(0)
    for stratum in sorted(strata, key=lambda s: Fraction(s.drawn, s.population)):
        here = min(left, Fraction(stratum.population))
        mean += here * stratum.drawn / stratum.population
        left -= here
    return mean


def _some(strata: Sequence[Stratum]) -> None:
    if not strata:
        raise InputError("strata is empty; give the population and the draws of each stratum")
