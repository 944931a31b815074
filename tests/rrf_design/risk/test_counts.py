"""Tails and bounds against plain enumeration in rationals, SciPy and MAPIE."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
from scipy.stats import hypergeom

from rrf_design.errors import InputError
from rrf_design.risk import bound, rate_bound
from rrf_design.risk.counts import (
    GUARD,
    BinomialTail,
    CertainTail,
    HypergeometricTail,
    LargestTail,
    guard,
    hypergeometric_at_most,
)


def enumerated(population: int, wrong: int, drawn: int, seen: int) -> Fraction:
    ways = sum(
        math.comb(wrong, j) * math.comb(population - wrong, drawn - j) for j in range(seen + 1) if drawn - j >= 0
    )
    return Fraction(ways, math.comb(population, drawn))


def enumerated_bound(population: int, drawn: int, wrong: int, level: Fraction) -> int:
    possible = range(wrong, population - (drawn - wrong) + 1)
    return max((d for d in possible if enumerated(population, d, drawn, wrong) > level), default=wrong)


@pytest.mark.parametrize("population", [1, 2, 5, 9, 13])
@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.95", "0.999"])
def test_bound_is_that_of_plain_enumeration(population: int, confidence: str) -> None:
    level = 1 - Fraction(confidence)
    for drawn in range(population + 1):
        for wrong in range(drawn + 1):
            expected = enumerated_bound(population, drawn, wrong, level)
            assert bound(population, drawn, wrong, float(confidence)) == expected


def test_a_level_met_exactly_refutes() -> None:
    # One of 20 items is wrong and 19 are drawn, all right: the chance is exactly 1/20, which floats
    # can't tell from 0.05.
    assert enumerated(20, 1, 19, 0) == Fraction(1, 20)
    assert bound(20, 19, 0, 0.95) == 0
    assert bound(20, 19, 0, 0.951) == 1


@pytest.mark.parametrize(
    ("population", "drawn", "wrong", "expected"), [(0, 0, 0, 0), (7, 0, 0, 7), (7, 7, 3, 3), (7, 7, 7, 7), (9, 4, 4, 9)]
)
def test_bound_at_the_ends(population: int, drawn: int, wrong: int, expected: int) -> None:
    assert bound(population, drawn, wrong, 0.95) == expected


def test_58_clean_draws_of_2000_prove_five_percent() -> None:
    assert bound(2000, 58, 0, 0.95) < 100 <= bound(2000, 57, 0, 0.95)


def test_bound_covers_every_truth() -> None:
    """An adversary picks the population; the draw is random.

    Exact coverage by summing over all outcomes.
    """
    population, drawn, level = 30, 12, Fraction(1, 20)
    bounds = [bound(population, drawn, x, 0.95) for x in range(drawn + 1)]
    for truth in range(population + 1):
        missed = sum(
            Fraction(math.comb(truth, x) * math.comb(population - truth, drawn - x), math.comb(population, drawn))
            for x in range(drawn + 1)
            if bounds[x] < truth
        )
        assert missed <= level


@pytest.mark.parametrize(
    "size", [(50, 20, 10, 3), (2000, 100, 58, 0), (10**6, 20_000, 5_000, 80), (10**5, 10, 99_000, 9)]
)
def test_hypergeometric_tail_agrees_with_scipy(size: tuple[int, int, int, int]) -> None:
    population, wrong, drawn, seen = size
    assert HypergeometricTail(*size).value == pytest.approx(hypergeom.cdf(seen, population, wrong, drawn), rel=1e-6)


def test_exact_comparison_agrees_with_rationals_at_the_tail_itself() -> None:
    tail = HypergeometricTail(400, 30, 90, 3)
    value = enumerated(400, 30, 90, 3)
    assert tail.at_most(value)
    assert not tail.at_most(value - Fraction(1, 10**30))
    rate = Fraction(1, 20)
    size = sum(math.comb(200, j) * rate**j * (1 - rate) ** (200 - j) for j in range(5))
    assert BinomialTail(200, rate, 4).at_most(size)
    assert not BinomialTail(200, rate, 4).at_most(size - Fraction(1, 10**30))


@pytest.mark.parametrize("seen", [9_500, 9_600, 9_700, 9_800, 9_900])
def test_floats_decide_nothing_that_their_errors_could_turn_round(seen: int) -> None:
    """lgamma of 10⁹ errs by more than GUARD; beside the tail, whatever the float says, the answer
    is that of ball arithmetic.
    """
    tail = HypergeometricTail(10**9, 10**7, 10**6, seen)
    for part in (-5, -3, -2, 2, 3, 5):
        level = Fraction(tail.value) * (1 + Fraction(part, 10**6))
        assert tail.at_most(level) == hypergeometric_at_most(10**9, 10**7, 10**6, seen, level)
    assert guard(10**9) == 100 * GUARD == 100 * guard(10**7)


def test_a_rate_near_one_keeps_its_last_digits() -> None:
    """1 − rate is 10⁻¹⁴, of which the float nearest to the rate knows one digit."""
    rate = 1 - Fraction(1, 10**14)
    assert BinomialTail(10, rate, 9).value == pytest.approx(1e-13, rel=1e-9)
    assert BinomialTail(10, rate, 9).at_most(1 - rate**10)
    assert not BinomialTail(10, rate, 9).at_most((1 - rate**10) * Fraction(999_999, 10**6))


def test_binomial_tail_against_mapie() -> None:
    """MAPIE's p-value is the smaller of Hoeffding's and the binomial one, sometimes a count too
    high; never below ours, mostly equal.
    """
    rng = np.random.default_rng(1)
    n = rng.integers(20, 800, size=400)
    x = rng.binomial(n, rng.uniform(0.0, 0.06, size=400))
    equal = 0
    for drawn, seen in zip(n.tolist(), x.tolist(), strict=True):
        theirs = float(
            compute_hoeffding_bentkus_p_value(np.array([seen / drawn]), drawn, np.array([0.05]), binary=True)[0, 0]
        )
        ours = BinomialTail(drawn, Fraction(1, 20), seen).value
        assert ours <= theirs * (1 + 1e-9) or seen / drawn > 0.05
        equal += math.isclose(ours, theirs, rel_tol=1e-9)
    assert equal >= 0.6 * 400


def test_largest_tail_needs_every_part() -> None:
    small, large = BinomialTail(100, Fraction(1, 20), 0), BinomialTail(100, Fraction(1, 20), 9)
    both = LargestTail((small, large))
    assert both.value == large.value
    assert not both.at_most(Fraction(1, 20))
    assert not LargestTail(()).at_most(Fraction(1, 2))
    assert not CertainTail().at_most(Fraction(1, 2))


def test_rate_bound_is_where_the_tail_meets_the_level() -> None:
    rate = rate_bound(200, 3, 0.95)
    assert BinomialTail(200, Fraction(rate), 3).value == pytest.approx(0.05, rel=1e-9)
    assert rate_bound(5, 5, 0.95) == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1, 0, 0, 0.95), "population is -1"),
        ((10, 11, 0, 0.95), "drawn is 11"),
        ((10, 5, 6, 0.95), "wrong is 6"),
        ((10, 5, 2, 1.0), "confidence is 1"),
        ((10, 5, 2, 0.0), "confidence is 0"),
        ((10, 5, 2, float("nan")), "confidence should be a number"),
        ((10, 5, 2, True), "confidence should be a number"),
        ((10.5, 5, 2, 0.9), "population should be a whole number"),
        (("10", 5, 2, 0.9), "population should be a whole number"),
        ((10, None, 2, 0.9), "drawn should be a whole number"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        bound(*arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
