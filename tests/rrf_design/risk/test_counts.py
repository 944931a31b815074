"""Bounds from counts, at one look and at every moment; crowds and balls."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
from scipy.stats import hypergeom

from rrf_design.errors import InputError
from rrf_design.risk import (
    CLEAN,
    UNIFORM,
    UNREADABLE,
    AuditSequence,
    bound,
    disputed,
    fit_crowd,
    rate_bound,
    sequential_tail,
)
from rrf_design.risk._counts import (
    GUARD,
    BinomialTail,
    CertainTail,
    HypergeometricTail,
    LargestTail,
    _binomial_at_most,
    _hypergeometric_at_most,
    _rate_refuted,
    guard,
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


def test_clean_draws_prove_what_they_must() -> None:
    assert bound(2000, 58, 0, 0.95) < 100 <= bound(2000, 57, 0, 0.95)
    for prior, expected in ((CLEAN, 89), (UNIFORM, 149)):
        sequence = AuditSequence(2000, 0.95, prior=prior)
        while sequence.bound > 100:
            sequence.observe(False)
        assert sequence.drawn == expected
    assert AuditSequence(50, 0.95).bound == 50
    assert AuditSequence(0, 0.95).bound == 0


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
        assert tail.at_most(level) == _hypergeometric_at_most(10**9, 10**7, 10**6, seen, level)
    assert guard(10**9) == 100 * GUARD == 100 * guard(10**7)


def test_rates_are_bounded_to_the_last_digit() -> None:
    # 1 − rate is 10⁻¹⁴, of which the float nearest to the rate knows one digit.
    rate = 1 - Fraction(1, 10**14)
    assert BinomialTail(10, rate, 9).value == pytest.approx(1e-13, rel=1e-9)
    assert BinomialTail(10, rate, 9).at_most(1 - rate**10)
    assert not BinomialTail(10, rate, 9).at_most((1 - rate**10) * Fraction(999_999, 10**6))
    rate = rate_bound(200, 3, 0.95)
    assert BinomialTail(200, Fraction(rate), 3).value == pytest.approx(0.05, rel=1e-9)
    assert rate_bound(5, 5, 0.95) == 1.0


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


CLOSE = Fraction(1, 10**30)


def binomial(n: int, rate: Fraction, x: int) -> Fraction:
    return sum((math.comb(n, j) * rate**j * (1 - rate) ** (n - j) for j in range(x + 1)), Fraction(0))


def hypergeometric(size: int, wrong: int, m: int, x: int) -> Fraction:
    ways = sum(math.comb(wrong, j) * math.comb(size - wrong, m - j) for j in range(x + 1) if m - j <= size - wrong)
    return Fraction(ways, math.comb(size, m))


@pytest.mark.parametrize("seed", range(40))
def test_levels_beside_the_tail(seed: int) -> None:
    draw = random.Random(seed)
    n = draw.randrange(1, 60)
    x, rate = draw.randrange(n), Fraction(draw.randrange(1, 99), 100)
    p = binomial(n, rate, x)
    assert [_binomial_at_most(n, rate, x, p * (1 + d)) for d in (CLOSE, -CLOSE, Fraction(0))] == [True, False, None]
    size = draw.randrange(2, 80)
    wrong, m = draw.randrange(size + 1), draw.randrange(1, size + 1)
    seen = draw.randrange(m + 1)
    q = hypergeometric(size, wrong, m, seen)
    found = [_hypergeometric_at_most(size, wrong, m, seen, q * (1 + d)) for d in (CLOSE, -CLOSE)]
    assert found == ([True, False] if max(0, m - size + wrong) <= seen < min(m, wrong) else [None, None])


def test_a_tail_just_beside_its_level_is_told_at_once() -> None:
    """A forger may choose the level: with integers this took longer than two minutes, and a larger
    record for ever.
    """
    rate = Fraction(123456789012345678901234567891, 25 * 10**29)
    tail = BinomialTail(40_000, rate, 1_900)
    level = Fraction(str(tail.value))
    assert tail.at_most(level * (1 + Fraction(1, 10**9)))
    assert not tail.at_most(level * (1 - Fraction(1, 10**9)))


@pytest.mark.parametrize(("items", "wrong"), [(1, 0), (60, 0), (60, 2), (60, 59), (60, 60), (100_000, 4_000)])
def test_the_bound_of_a_rate_is_proven(items: int, wrong: int) -> None:
    sure = Fraction(19, 20)
    bound = rate_bound(items, wrong, 0.95)
    assert _rate_refuted(items, wrong, Fraction(bound), sure)
    assert bound == 1.0 or not _rate_refuted(items, wrong, Fraction(bound * (1 - 1e-12)), sure)
    assert not _rate_refuted(items, wrong, Fraction(0), sure)


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
def test_bad_input_is_one_line_of_sequences(call: object, words: str) -> None:
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


TRUTH = (0.95, 0.9, 0.8, 0.7, 0.6)


def crowd(items: int, values: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Independent nodes of known accuracy; a wrong answer falls on one of the other values."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, values, size=items)
    right = rng.random((items, len(TRUTH))) < np.array(TRUTH)
    other = (gold[:, None] + rng.integers(1, values, size=right.shape)) % values
    return np.where(right, gold[:, None], other), gold


@pytest.mark.parametrize(("values", "slack"), [(2, 0.06), (5, 0.04)])
def test_accuracies_and_coincidence_are_found(values: int, slack: float) -> None:
    answers, _ = crowd(3000, values)
    found = fit_crowd(answers)
    assert np.abs(found.accuracy - np.array(TRUTH)).max() < slack
    assert found.coincidence == pytest.approx(min(1 / (values - 1), 0.95), abs=0.1)


def test_probabilities_are_calibrated_where_the_model_is_true() -> None:
    answers, gold = crowd(4000, 4)
    right = fit_crowd(answers).right(answers)
    truth = answers == gold[:, None]
    for low, high in ((0.0, 0.2), (0.4, 0.8), (0.9, 1.0)):
        here = (right >= low) & (right <= high)
        assert truth[here].mean() == pytest.approx(right[here].mean(), abs=0.06)


def test_a_discount_makes_agreement_worth_less() -> None:
    answers, _ = crowd(500, 4)
    found = fit_crowd(answers)
    unanimous = (answers == answers[:, :1]).all(axis=1)
    assert (found.right(answers, discount=0.35)[unanimous] < found.right(answers)[unanimous]).all()


def test_unreadable_answers_say_nothing() -> None:
    answers, _ = crowd(400, 4)
    answers[:50] = UNREADABLE
    answers[50:100, 2] = UNREADABLE
    found = fit_crowd(answers)
    assert (found.right(answers)[:50] == 0).all()
    assert (found.right(answers)[50:100, 2] == 0).all()
    assert found.accuracy[0] > found.accuracy[4]


def test_gold_that_everybody_contradicts_is_listed() -> None:
    answers, gold = crowd(400, 6)
    answers[[3, 40]] = 1
    gold[[3, 40]] = 2
    answers[5] = UNREADABLE
    found = disputed(fit_crowd(answers), answers, gold)
    assert {3, 40} <= set(found)
    assert all((answers[place] == gold[place]).sum() <= 2 for place in found)
    with pytest.raises(InputError, match="gold has shape"):
        disputed(fit_crowd(answers), answers, gold[:9])


@pytest.mark.parametrize("answers", [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3)])
def test_bad_input_is_one_line_of_crowds(answers: np.ndarray) -> None:
    with pytest.raises(InputError, match="answers should be an array"):
        fit_crowd(answers)
