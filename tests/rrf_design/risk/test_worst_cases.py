"""The largest of many tails, found by leaving most of them out, is the one that computing all of
them finds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rrf_design.risk.counts import GUARD, CertainTail, HypergeometricTail, PValue
from rrf_design.risk.statements import UnknownSize, forbidden_counts, tails, worst_tails


def every_tail(rate: Fraction, drawn: int, seen: int, *, most: int, extra: int) -> list[HypergeometricTail]:
    """The slow path: one tail for each number of delivered items that the draw allows."""
    found = []
    for size in range(drawn, most + 1):
        wrong = int(rate * size) + 1 + extra
        if wrong <= size - (drawn - seen):
            found.append(HypergeometricTail(size, wrong, drawn, seen))
    return found


def worst_tail(rate: Fraction, drawn: int, seen: int, *, most: int, extra: int) -> PValue:
    return worst_tails(rate, [UnknownSize(drawn, seen, most, extra)])[0]


@pytest.mark.parametrize("rate", ["0.01", "0.05", "0.2", "1/3", "0.7"])
@pytest.mark.parametrize("seed", range(12))
def test_the_largest_of_all(rate: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *map(ord, rate)])
    share = Fraction(rate)
    most = int(rng.integers(50, 900))
    drawn = int(rng.integers(20, min(most, 300)))
    about = float(share) * drawn
    for seen in sorted({int(rng.integers(0, drawn)), int(about), int(about / 2), int(min(drawn - 1, about * 1.5))}):
        for extra in sorted({0, seen, seen // 2}):
            listed = every_tail(share, drawn, seen, most=most, extra=extra)
            found = worst_tail(share, drawn, seen, most=most, extra=extra)
            largest = max((tail.value for tail in listed), default=0.0)
            assert found.value == pytest.approx(largest, rel=2 * GUARD, abs=1e-300)
            # What is decided is decided as all of them together would: at the largest tail itself,
            # and on both sides of it.
            for level in (Fraction(largest), Fraction(largest * (1 - 1e-3)), Fraction(largest * (1 + 1e-3))):
                if 0 < level < Fraction(99, 100):
                    assert found.at_most(level) is all(tail.at_most(level) for tail in listed)


def test_what_nobody_refutes_and_what_cannot_be() -> None:
    assert worst_tail(Fraction(1, 20), 100, 60, most=5000, extra=60).value == 1.0
    assert worst_tail(Fraction(1, 20), 100, 100, most=5000, extra=0).value == 1.0
    assert worst_tail(Fraction(1, 2), 10, 0, most=10, extra=3).value == 0.0


def test_many_tails_are_single_ones() -> None:
    sizes, wrong = np.array([400, 900, 5000]), np.array([40, 90, 700])
    for drawn, seen in ((100, 0), (100, 12), (300, 30), (390, 35), (390, 2)):
        listed = [HypergeometricTail(int(n), int(k), drawn, seen).value for n, k in zip(sizes, wrong, strict=True)]
        many = tails(sizes, wrong, np.full(3, drawn), np.full(3, seen))
        assert many == pytest.approx(listed, rel=1e-9, abs=1e-300)


def test_far_counts_come_in_short_blocks() -> None:
    starts, ends = forbidden_counts(50_000)
    assert starts[0] == 1
    assert ends[-1] == 50_000
    assert (starts[1:] == ends[:-1] + 1).all()
    assert (ends[:-1] <= np.maximum(starts[:-1] * 1.002, starts[:-1])).all()


def test_many_at_once_are_the_same_as_one_after_the_other() -> None:
    rng = np.random.default_rng(4)
    rate = Fraction(3, 20)
    asked = []
    for _ in range(60):
        drawn = int(rng.integers(10, 200))
        seen = int(rng.integers(0, drawn // 2))
        asked.append(UnknownSize(drawn, seen, 1500 + drawn, int(rng.choice([0, seen, 3]))))
    found = worst_tails(rate, [*asked, *asked])
    assert found[: len(asked)] == found[len(asked) :] == [worst_tails(rate, [one])[0] for one in asked]
    assert any(isinstance(one, CertainTail) for one in found)
