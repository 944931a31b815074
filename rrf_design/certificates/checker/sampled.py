"""The `pilot` section of a certificate: how often its premise fails, from items drawn at random with known truth.

A margin promises something "if at most k are wrong". Of n items drawn at random, x had more than k wrong; whatever the errors are and however they come together, a rate R with
P(Bin(n, R) ≤ x) ≤ 1 − c is refuted at confidence c. The section holds the draw and every answer's mark, so that the draw, the count and the bound are
redone here. That the marks are true, and that the item is drawn like the pilot's, is taken on trust, and the sentence says of whom it speaks.

Items of a table need not all be asked the same: a rare kind may fail every time where the common one never does, and a rate over all of them would say nothing about it. So only drawn items
that are asked what this one is asked count; the others are marked "-" at every node. Given how many of its kind were drawn, those are a random draw of the kind.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, ctx, fmpq

from rrf_design.errors import Refused

NUMBER = (int, float)
PILOT: dict[str, Any] = {
    "table": str,
    "size": int,
    "population": str,
    "recipe": str,
    "seed": int,
    "places": [int],
    "wrong": dict,
    "more_than_k": int,
    "confidence": NUMBER,
    "bound": NUMBER,
    "sentence": str,
}
MOST = 2_000_000
OTHER = "-"
"""The mark of a drawn item that is asked something else."""
PRECISIONS = (128, 512, 2048)


def is_drawn(places: Sequence[int], size: int, seed: int, population: str) -> bool:
    """Are these the first places of the random order, sorted by SHA-256 of digest, seed and place? A false draw mostly shows after a few looks."""
    head = f"{population}:{seed}:".encode("utf-8", "surrogatepass")

    def key(place: int) -> bytes:
        return hashlib.sha256(head + b"%d" % place).digest()

    keys = [key(place) for place in places if 0 <= place < size]
    if len(keys) != len(places) or any(first >= second for first, second in pairwise(keys)):
        return False
    drawn = set(places)
    return all(place in drawn or key(place) > keys[-1] for place in range(size))


def failures(wrong: Mapping[str, str], units: Sequence[Sequence[str]], k: int, items: int) -> int:
    """Items in which more than k units have a wrong answer."""
    return sum(sum(any(wrong[node][at] == "1" for node in unit) for unit in units) > k for at in range(items))


def alike(wrong: Mapping[str, str], items: int) -> int:
    """How many of the drawn items are of this kind."""
    first = next(iter(wrong.values()), "")
    return items - first.count(OTHER)


def refutes(items: int, failed: int, rate: float, confidence: float) -> bool:
    """Is P(Bin(items, rate) ≤ failed) ≤ 1 − confidence? In ball arithmetic; what that can't tell is not proven.

    Terms from `failed` downwards; below the mean their quotients fall, so that a geometric series bounds what is left out.
    """
    if rate >= 1 or failed >= items:
        return rate >= 1
    if rate <= 0:
        return False
    before = ctx.prec
    try:
        for ctx.prec in PRECISIONS:
            level = arb(1) - arb(fmpq(*Fraction(str(confidence)).as_integer_ratio()))
            p = arb(rate)
            odds = (1 - p) / p
            ways = arb(items + 1).lgamma() - arb(failed + 1).lgamma() - arb(items - failed + 1).lgamma()
            term = (ways + p.log() * failed + (1 - p).log() * (items - failed)).exp()
            total, tiny = term, arb(2) ** -(ctx.prec + 20)
            for j in range(failed, 0, -1):
                quotient = odds * j / (items - j + 1)
                term = term * quotient
                total = total + term
                if quotient < 1 and term < tiny * total:
                    total = total + arb(0).union(term * quotient / (1 - quotient))
                    break
            if total <= level or total > level:
                return bool(total <= level)
    finally:
        ctx.prec = before
    return False


def rate_above(items: int, failed: int, confidence: float) -> float:
    """The smallest rate that the count refutes, with all above it (Clopper and Pearson, one-sided), rounded upwards."""
    from scipy.special import betaincinv

    if failed >= items:
        return 1.0
    rate, step = float(betaincinv(failed + 1, items - failed, confidence)), 2.0**-52
    while not refutes(items, failed, rate, confidence):
        rate, step = min(1.0, rate * (1.0 + step) + 2.0**-1000), 2.0 * step
    return rate


def in_percent(bound: float) -> str:
    """With two decimals, rounded upwards: what is said must not be less than what is proven."""
    hundredths = math.ceil(10_000 * Fraction(bound))
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def _sure(confidence: float) -> str:
    """All digits that it has: 0.9999999 is no 100 %."""
    return f"{(100 * Decimal(repr(confidence))).normalize():f} %"


def sentence(section: Mapping[str, Any], k: int, units: Sequence[Sequence[str]]) -> str:
    what = "answers" if all(len(unit) == 1 for unit in units) else "units"
    drawn = len(section["places"])
    counted, source = alike(section["wrong"], drawn), f"drawn from {section['table']} ({section['size']:,} items)"
    if not counted:
        return (
            f"None of the {drawn:,} items {source} is asked what this one is: the pilot says nothing about its premise."
        )
    kind = "" if counted == drawn else f" that are asked the same, among {drawn:,}"
    return (
        f"More than {k} of {len(units)} {what} were wrong in {section['more_than_k']:,} of {counted:,} items{kind} {source}:"
        f" with confidence {_sure(section['confidence'])}, at most {in_percent(section['bound'])} of items drawn like them fail the premise."
    )


def check_pilot(section: Mapping[str, Any], nodes: Sequence[str], units: Sequence[Sequence[str]] | None, k: int) -> str:
    """Refused unless draw, count, bound and sentence are what the marks say."""
    places, size, wrong = section["places"], section["size"], section["wrong"]
    if not 0 < len(places) <= size <= MOST or section["seed"] < 0:
        raise Refused(f"pilot: {len(places)} items drawn from {size}")
    if not is_drawn(places, size, section["seed"], section["population"]):
        raise Refused("pilot.places: seed and digest draw other items")
    if set(wrong) != set(nodes):
        raise Refused("pilot.wrong: must have the marks of every node of the operator, and of no other")
    for name, marks in wrong.items():
        if type(marks) is not str or len(marks) != len(places) or set(marks) - {"0", "1", OTHER}:
            raise Refused(f"pilot.wrong: {name!r:.60} should have a 0, 1 or {OTHER} for each item drawn")
    if len({tuple(mark == OTHER for mark in marks) for marks in wrong.values()}) > 1:
        raise Refused("pilot.wrong: an item that is asked something else is so at every node")
    counted = alike(wrong, len(places))
    groups = [[name] for name in nodes] if units is None else units
    failed = failures(wrong, groups, k, len(places))
    if section["more_than_k"] != failed:
        raise Refused(f"pilot.more_than_k: the marks say {failed}")
    sure, bound = section["confidence"], section["bound"]
    if not 0 < sure < 1 or not 0 <= bound <= 1 or not math.isfinite(bound):
        raise Refused("pilot: confidence and bound must be shares")
    if not refutes(counted, failed, bound, sure):
        raise Refused(f"pilot.bound: {bound!r} is claimed, {failed} of {counted} do not prove it")
    if section["sentence"] != sentence(section, k, groups):
        raise Refused("pilot.sentence: is not what the figures say")
    return f"{failed} of {counted} drawn items recounted: at most {bound:.4g} fail the premise, confidence {sure:g}"
