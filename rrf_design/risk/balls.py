"""Tails compared with a level in ball arithmetic: an answer that is proven, at a price that does not grow with the digits of the counts.

Integers decide too, but n successes at a rate with forty decimals are numbers of a hundred million digits, and a forged record may choose counts whose tail lies
just beside its level. Terms fall geometrically below the mean, so most sums end after a few; what is left out is bounded and added.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

PRECISIONS = (128, 512, 2048)
"""Bits. What the last can't tell apart is equal, or made to look so: then integers decide."""


def binomial_at_most(drawn: int, rate: Fraction, seen: int, level: Fraction) -> bool | None:
    """Is P(Bin(drawn, rate) ≤ seen) ≤ level? None where no precision can tell."""
    if not 0 < rate < 1 or not 0 <= seen < drawn:
        return None

    def tail() -> Any:
        from flint import arb

        p, q = _ball(rate), _ball(1 - rate)
        top = (_log_comb(drawn, seen) + p.log() * seen + q.log() * (drawn - seen)).exp()
        odds = q / p
        return _falling(top, ((arb(j) * odds / (drawn - j + 1)) for j in range(seen, 0, -1)), arb(0))

    return _compared(tail, level)


def hypergeometric_at_most(population: int, wrong: int, drawn: int, seen: int, level: Fraction) -> bool | None:
    """Is P(at most `seen` wrong among `drawn` of `population` items, of which `wrong` are) ≤ level? None where no precision can tell."""
    low, high = max(0, drawn - (population - wrong)), min(drawn, wrong)
    if not low <= seen < high:
        return None

    def tail() -> Any:
        from flint import arb

        top = _log_comb(wrong, seen) + _log_comb(population - wrong, drawn - seen) - _log_comb(population, drawn)
        ratios = (
            arb(j * (population - wrong - drawn + j)) / ((wrong - j + 1) * (drawn - j + 1))
            for j in range(seen, low, -1)
        )
        return _falling(top.exp(), ratios, arb(0))

    return _compared(tail, level)


def _falling(top: Any, ratios: Iterator[Any], zero: Any) -> Any:
    """top·(1 + r₁ + r₁r₂ + …) for ratios that fall from one to the next: once one is below 1, a geometric series bounds the rest."""
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


def _log_comb(n: int, k: int) -> Any:
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
