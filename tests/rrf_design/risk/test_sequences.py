"""Sequences: the martingale by brute force, coverage by enumerating every order of draws, and
attackers who peek.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import CLEAN, UNIFORM, AuditSequence, sequential_tail


def plain_martingale(population: int, truth: int, draws: list[bool], prior: tuple[float, float]) -> float:
    """prior(D) / posterior(D), by summing over every number of wrong items."""
    a, b = prior

    def beta(x: float, y: float) -> float:
        return math.gamma(x) * math.gamma(y) / math.gamma(x + y)

    weights = [math.comb(population, d) * beta(a + d, b + population - d) / beta(a, b) for d in range(population + 1)]

    def chance(d: int) -> float:
        left, bad, value = population, d, 1.0
        for wrong in draws:
            value *= (bad if wrong else left - bad) / left
            bad, left = bad - wrong, left - 1
        return value

    evidence = sum(w * chance(d) for d, w in enumerate(weights))
    return evidence / chance(truth) if chance(truth) > 0 else math.inf


@pytest.mark.parametrize("prior", [UNIFORM, CLEAN, (0.5, 3.0)])
def test_closed_form_is_prior_over_posterior(prior: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        sequence = AuditSequence(12, 0.9, prior=prior)
        draws = [bool(w) for w in rng.random(7) < 0.3]
        for wrong in draws:
            sequence.observe(wrong)
        for truth in range(13):
            expected = plain_martingale(12, truth, draws, prior)
            assert math.exp(sequence.log_martingale(truth)) == pytest.approx(expected, rel=1e-9)


def test_expected_value_under_the_truth_never_grows() -> None:
    """One step at a time, over every state of a small population: it stays, or falls where the
    truth excludes one of the outcomes.
    """
    population, truth = 9, 3
    for m in range(population):
        for x in range(min(m, truth) + 1):
            if m - x > population - truth:
                continue
            here = _state(population, m, x).log_martingale(truth)
            left, bad = population - m, truth - x
            after = 0.0
            if bad:
                after += bad / left * math.exp(_state(population, m + 1, x + 1).log_martingale(truth))
            if left - bad:
                after += (left - bad) / left * math.exp(_state(population, m + 1, x).log_martingale(truth))
            assert after <= math.exp(here) * (1 + 1e-9)
            if 0 < bad < left:
                assert after == pytest.approx(math.exp(here), rel=1e-9)


def _state(population: int, drawn: int, wrong: int) -> AuditSequence:
    sequence = AuditSequence(population, 0.9)
    for place in range(drawn):
        sequence.observe(place < wrong)
    return sequence


@pytest.mark.parametrize("truth", [0, 1, 3, 5, 8])
@pytest.mark.parametrize("prior", [UNIFORM, CLEAN])
def test_who_peeks_after_every_draw_is_misled_rarely_enough(truth: int, prior: tuple[float, float]) -> None:
    """Every order of the wrong items among ten; the bound must hold at all moments of all but a
    tenth of them.
    """
    misled = 0
    orders = list(itertools.combinations(range(10), truth))
    for wrong in orders:
        sequence = AuditSequence(10, 0.9, prior=prior)
        ever = False
        for place in range(10):
            sequence.observe(place in wrong)
            ever |= sequence.bound < truth
        misled += ever
    assert Fraction(misled, len(orders)) <= Fraction(1, 10)


def test_bound_is_the_running_least_of_the_largest_not_refuted() -> None:
    rng = np.random.default_rng(5)
    sequence = AuditSequence(300, 0.95)
    least = 300
    for wrong in rng.random(300) < 0.06:
        sequence.observe(bool(wrong))
        kept = [d for d in range(301) if sequence.log_martingale(d) <= -math.log(1 - 0.95) + 1e-6]
        least = min(least, max(kept))
        assert sequence.bound == max(least, sequence.wrong)


def test_clean_draws_needed_for_five_percent() -> None:
    for prior, expected in ((CLEAN, 89), (UNIFORM, 149)):
        sequence = AuditSequence(2000, 0.95, prior=prior)
        while sequence.bound > 100:
            sequence.observe(False)
        assert sequence.drawn == expected


def test_a_census_knows() -> None:
    sequence = AuditSequence(6, 0.99)
    for wrong in (True, False, False, True, False, False):
        sequence.observe(wrong)
    assert sequence.bound == 2
    with pytest.raises(InputError, match="all 6 items are drawn"):
        sequence.observe(False)


def test_an_adversary_who_hides_wrong_items_to_the_end_can_not_push_it_below_what_was_seen() -> None:
    sequence = AuditSequence(200, 0.95)
    for place in range(200):
        sequence.observe(place >= 120)
        assert sequence.bound >= sequence.wrong
    assert sequence.bound >= 80


def test_where_floats_err_more_the_bound_allows_for_it() -> None:
    """Logarithms of 10⁹ factorials err by some 10⁻⁵: a number of wrong items is dropped only where
    its martingale is past 1/α by more than that.
    """
    from flint import arb, ctx

    population, drawn, wrong = 10**9, 10**8, 10**6
    sequence = AuditSequence(population, 0.95)
    sequence.drawn, sequence.wrong = drawn - 1, wrong
    sequence.observe(False)
    refuted, right = sequence.bound + 1, drawn - wrong
    before = ctx.prec
    ctx.prec = 256
    try:

        def lg(value: int) -> arb:
            return arb(value).lgamma()

        exact = lg(21) - lg(1) - lg(20) + lg(1 + wrong) + lg(20 + right) - lg(21 + drawn)
        exact += lg(population + 1) - lg(population - drawn + 1) - lg(refuted + 1) + lg(refuted - wrong + 1)
        exact += lg(population - refuted - right + 1) - lg(population - refuted + 1)
        assert exact > arb(20).log()
    finally:
        ctx.prec = before
    assert abs(sequence.log_martingale(refuted) - float(exact)) < 1e-4


def test_nothing_drawn_bounds_nothing() -> None:
    assert AuditSequence(50, 0.95).bound == 50
    assert AuditSequence(0, 0.95).bound == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: AuditSequence(-3, 0.95), "population is -3"),
        (lambda: AuditSequence(3, 1.0), "confidence is 1.0"),
        (lambda: AuditSequence(3, 0.9, prior=(0.0, 1.0)), "prior should be two positive numbers"),
        (lambda: AuditSequence(3, 0.9, prior=(1.0, float("inf"))), "prior should be two positive numbers"),
        (lambda: AuditSequence(3, 0.9, prior="ab"), "prior should be two positive numbers"),  # type: ignore[arg-type]
        (lambda: AuditSequence(3, 0.9).observe("yes"), "observe takes True"),  # type: ignore[arg-type]
        (lambda: sequential_tail([[True]], 0.05), "wrong should be one array"),
        (lambda: sequential_tail([True], 0.0), "rate is 0.0"),
    ],
)
def test_bad_input_is_one_line(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]


def plain_sequential(marks: list[bool], rate: float, prior: tuple[float, float]) -> float:
    """The same p-value, by numerical integration at every moment."""
    a, b = prior
    q = (np.arange(20_000) + 0.5) / 20_000 * rate
    density = q ** (a - 1) * (1 - q) ** (b - 1)
    density /= density.sum()
    best, ratio = 1.0, np.ones_like(q)
    for wrong in marks:
        ratio = ratio * (q / rate if wrong else (1 - q) / (1 - rate))
        best = max(best, float((density * ratio).sum()))
    return 1 / best


@pytest.mark.parametrize("wrong", [[], [5], [0, 1, 2], [10, 40, 80]])
def test_sequential_tail_is_the_inverse_mixture_at_its_best_moment(wrong: list[int]) -> None:
    marks = [place in wrong for place in range(100)]
    assert sequential_tail(marks, 0.05).value == pytest.approx(plain_sequential(marks, 0.05, CLEAN), rel=1e-3)


def test_who_peeks_at_a_pilot_is_misled_rarely_enough() -> None:
    """Fresh items at the forbidden rate itself: p ≤ 5 % at any of 400 moments happens in at most 5
    % of pilots (4 standard errors allowed).
    """
    rng = np.random.default_rng(11)
    pilots = 1500
    misled = sum(sequential_tail(rng.random(400) < 0.05, 0.05).at_most(Fraction(1, 20)) for _ in range(pilots))
    assert misled / pilots <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / pilots)
    assert sequential_tail(np.zeros(400, dtype=bool), 0.05).at_most(Fraction(1, 20))
