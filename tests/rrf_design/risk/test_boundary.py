"""The boundary of a proof in random order: against integers and plain enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import pytest

from rrf_design.errors import InputError
from rrf_design.risk import boundary
from rrf_design.risk._peel import _keeps_exactly

LEVELS = (Fraction(1, 20), Fraction(1, 100), Fraction(1, 3))


def formula(size: int, allowed: int, alpha: Fraction) -> list[int]:
    """The boundary from its definition, number by number, in integers."""
    counts: list[int] = []
    paths: list[int] = []
    end = max(0, size - allowed)
    while True:
        x = len(counts)
        wrong = allowed + 1 + x
        if wrong > size:
            return [*counts, end]
        for n in range(max(x, counts[-1] if counts else 0), end):
            here = math.comb(n, x) - sum(a * math.comb(n - counts[k], x - k) for k, a in enumerate(paths))
            ways = [*(a * math.comb(size - counts[k], wrong - k) for k, a in enumerate(paths))]
            if sum(ways) + here * math.comb(size - n, wrong - x) <= alpha * math.comb(size, wrong):
                counts.append(n)
                paths.append(here)
                break
        else:
            return [*counts, end]


def false_stop(size: int, allowed: int, counts: list[int], wrong: int) -> tuple[Fraction, Fraction]:
    """By trying every order: the chance of a false stop, and the expected draws."""
    false = looks = 0
    for places in combinations(range(size), wrong):
        found = 0
        for n in range(size + 1):
            found += n > 0 and n - 1 in places
            if n >= counts[min(found, len(counts) - 1)]:
                break
        false += wrong - found > allowed
        looks += n
    return Fraction(false, math.comb(size, wrong)), Fraction(looks, math.comb(size, wrong))


@pytest.mark.parametrize("level", LEVELS)
def test_the_boundary_is_that_of_its_definition(level: Fraction) -> None:
    for size in (1, 2, 5, 12, 25, 60):
        for allowed in sorted({0, 1, size // 10, size // 2, size - 1, size, size + 3}):
            found = boundary(size, allowed, level)
            assert found.complete
            assert list(found.counts) == formula(size, allowed, level)


def test_examples_that_were_worked_out_elsewhere() -> None:
    assert boundary(300, 15, 0.05).counts[:6] == (50, 90, 105, 118, 128, 138)
    assert boundary(1000, 50, 0.05, most=4).counts == (56, 120, 150, 172, 193)
    assert boundary(300, 3, 0.05).counts[:3] == (158, 204, 222)
    assert boundary(50, 0, 0.05).counts == (48, 49, 50)
    assert boundary(5, 5, 0.05).counts == (0,)
    assert boundary(0, 0, 0.05).counts == (0,)


@pytest.mark.parametrize("allowed", [0, 1, 2, 4])
def test_every_order_tried_stops_falsely_at_most_as_often_as_allowed(allowed: int) -> None:
    size = 11
    for level in LEVELS:
        made = boundary(size, allowed, level)
        for wrong in range(size + 1):
            false, looks = false_stop(size, allowed, list(made.counts), wrong)
            assert false <= level
            assert made.false_stop(wrong) == pytest.approx(float(false), abs=1e-12)
            assert made.expected_looks(wrong) == pytest.approx(float(looks))


def test_a_false_stop_is_as_unlikely_as_promised_for_every_number_of_wrong_rows() -> None:
    for size, allowed in ((300, 15), (300, 3), (120, 0), (400, 40)):
        made = boundary(size, allowed, 0.05)
        worst = max(made.false_stop(wrong) for wrong in range(size + 1))
        assert 0.03 < worst <= 0.05


def test_a_tie_is_decided_in_whole_numbers() -> None:
    # 48 draws without a wrong row leave a single one unseen with a chance of exactly 2 in 50.
    assert boundary(50, 0, Fraction(2, 50)).counts[0] == 48
    assert boundary(50, 0, Fraction(2, 50) - Fraction(1, 10**30)).counts[0] == 49
    counts = list(boundary(40, 2, 0.05).counts)
    for x, n in enumerate(counts[:-1]):
        assert _keeps_exactly(40, 2, Fraction(1, 20), counts[:x], n)
        if n > max(x, *counts[:x], 0):
            assert not _keeps_exactly(40, 2, Fraction(1, 20), counts[:x], n - 1)


def test_what_is_worked_out_so_far_agrees_with_all_of_it() -> None:
    whole, part = boundary(200, 8, 0.05), boundary(200, 8, 0.05, most=3)
    assert part.counts == whole.counts[:4]
    assert not part.complete
    assert [part.needed(x) for x in (0, 3, 9, 150)] == [whole.needed(x) for x in (0, 3, 9, 150)]
    assert part.stops(whole.needed(2), 2)
    assert not part.stops(whole.needed(2) - 1, 2)
    with pytest.raises(ValueError, match="leave out most="):
        part.expected_looks(20)


def test_numbers_never_fall_and_ten_thousand_rows_are_no_matter() -> None:
    for allowed in (0, 100, 1000):
        made = boundary(10_000, allowed, 0.05, most=40)
        assert list(made.counts) == sorted(made.counts)
        assert made.counts[-1] <= 10_000 - allowed
    assert boundary(10_000, 100, 0.05, most=4).counts == (291, 717, 881, 1018, 1140)


def test_what_is_no_boundary_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="untouched should be a whole number"):
        boundary(1.5, 0, 0.05)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="allowed is -1"):
        boundary(5, -1, 0.05)
    with pytest.raises(InputError, match="level is 1"):
        boundary(5, 1, 1)
