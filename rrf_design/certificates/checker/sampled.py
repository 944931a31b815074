"""The `pilot` section of a certificate: how often its premise fails, from items drawn at random with known truth.

A margin promises something "if at most k are wrong". Of n items drawn at random, x had more than k wrong; whatever the errors are and however they come together, a rate R with
P(Bin(n, R) ≤ x) ≤ 1 − c is refuted at confidence c. The section holds the draw and every answer's mark, so that the draw, the count and the bound are
redone here. That the marks are true, and that the item is drawn like the pilot's, is taken on trust, and the sentence says of whom it speaks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

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
ROUNDING = 1e-9


def redrawn(size: int, seed: int, population: str, count: int) -> list[int]:
    """The first places of the random order: sorted by SHA-256 of digest, seed and place."""
    head = f"{population}:{seed}:".encode()
    keys = sorted((hashlib.sha256(head + str(place).encode()).digest(), place) for place in range(size))
    return [place for _, place in keys[:count]]


def failures(wrong: Mapping[str, str], units: Sequence[Sequence[str]], k: int, items: int) -> int:
    """Items in which more than k units have a wrong answer."""
    return sum(sum(any(wrong[node][at] == "1" for node in unit) for unit in units) > k for at in range(items))


def rate_above(items: int, failed: int, confidence: float) -> float:
    """The largest rate that the count does not refute (Clopper and Pearson, one-sided)."""
    from scipy.special import betaincinv

    return 1.0 if failed == items else float(betaincinv(failed + 1, items - failed, confidence))


def sentence(section: Mapping[str, Any], k: int, units: Sequence[Sequence[str]]) -> str:
    what = "answers" if all(len(unit) == 1 for unit in units) else "units"
    return (
        f"More than {k} of {len(units)} {what} were wrong in {section['more_than_k']:,} of {len(section['places']):,} items drawn from {section['table']} ({section['size']:,} items):"
        f" with confidence {section['confidence']:g}, at most {section['bound']:.2%} of items drawn like them fail the premise."
    )


def check_pilot(section: Mapping[str, Any], nodes: Sequence[str], units: Sequence[Sequence[str]] | None, k: int) -> str:
    """Refused unless draw, count, bound and sentence are what the marks say."""
    places, size, wrong = section["places"], section["size"], section["wrong"]
    if not 0 < len(places) <= size <= MOST or section["seed"] < 0:
        raise Refused(f"pilot: {len(places)} items drawn from {size}")
    if places != redrawn(size, section["seed"], section["population"], len(places)):
        raise Refused("pilot.places: seed and digest draw other items")
    if set(wrong) != set(nodes):
        raise Refused("pilot.wrong: must have the marks of every node of the operator, and of no other")
    for name, marks in wrong.items():
        if type(marks) is not str or len(marks) != len(places) or set(marks) - set("01"):
            raise Refused(f"pilot.wrong: {name!r:.60} should have a 0 or 1 for each item drawn")
    groups = [[name] for name in nodes] if units is None else units
    failed = failures(wrong, groups, k, len(places))
    if section["more_than_k"] != failed:
        raise Refused(f"pilot.more_than_k: the marks say {failed}")
    sure, bound = section["confidence"], section["bound"]
    if not 0 < sure < 1 or not 0 <= bound <= 1 or not math.isfinite(bound):
        raise Refused("pilot: confidence and bound must be shares")
    proven = rate_above(len(places), failed, sure)
    if bound < proven * (1 - ROUNDING):
        raise Refused(f"pilot.bound: {bound!r} is claimed, the count proves {proven!r}")
    if section["sentence"] != sentence(section, k, groups):
        raise Refused("pilot.sentence: is not what the figures say")
    return f"{failed} of {len(places)} drawn items recounted: at most {bound:.4g} fail the premise, confidence {sure:g}"
