"""Stratified draws: coverage by convolving every stratum's counts, for every way to hide the wrong
items.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import Stratum, bound, draw_order, stratified_bound, stratified_order, stratified_risk
from rrf_design.risk.strata import binomial_is_heaviest

LEVEL = Fraction(1, 10)


def counts(stratum: Stratum, wrong: int) -> list[Fraction]:
    """The chance of each number of wrong items in the draw of one stratum."""
    population, drawn = stratum.population, stratum.drawn
    whole = math.comb(population, drawn)
    return [Fraction(math.comb(wrong, x) * math.comb(population - wrong, drawn - x), whole) for x in range(drawn + 1)]


def _together(rooms: list[Stratum], hidden: tuple[int, ...]) -> list[Fraction]:
    """The chance of each number of wrong items in the draw of all strata."""
    chances = [Fraction(1)]
    for room, wrong in zip(rooms, hidden, strict=True):
        here = counts(room, wrong)
        chances = [
            sum((chances[i] * here[x - i] for i in range(len(chances)) if 0 <= x - i < len(here)), Fraction(0))
            for x in range(len(chances) + len(here) - 1)
        ]
    return chances


@pytest.mark.parametrize("strata", [[(12, 6), (8, 4)], [(12, 8), (8, 3)], [(5, 5), (10, 3), (6, 3)], [(15, 7)]])
def test_no_way_to_hide_wrong_items_misleads_too_often(strata: list[tuple[int, int]]) -> None:
    rooms = [Stratum(*sizes) for sizes in strata]
    drawn = sum(room.drawn for room in rooms)
    bounds = [stratified_bound(rooms, x, 0.9) for x in range(drawn + 1)]
    assert min(bounds) < sum(room.population for room in rooms)
    for hidden in itertools.product(*(range(room.population + 1) for room in rooms)):
        missed = sum(chance for x, chance in enumerate(_together(rooms, hidden)) if bounds[x] < sum(hidden))
        assert missed <= LEVEL


@pytest.mark.parametrize("strata", [[(4, 2), (4, 2)], [(6, 4), (6, 5)], [(3, 1), (5, 3)]])
def test_where_the_binomial_is_called_heaviest_no_way_to_hide_is_heavier(strata: list[tuple[int, int]]) -> None:
    """Every risk, every level at which a count passes: what the test of fresh items lets through,
    under every forbidden way to be wrong, against that level.
    """
    rooms = [Stratum(*sizes) for sizes in strata]
    population, drawn = sum(room.population for room in rooms), sum(room.drawn for room in rooms)
    allowed = excluded = 0
    for first in range(1, population):
        risk = Fraction(first, population) - Fraction(1, 1000)
        tested = stratified_risk(rooms, risk)
        levels = [_binomial(drawn, tested, x) for x in range(drawn)]
        for x, level in enumerate(levels):
            if level > Fraction(1, 2):
                continue
            worst = max(
                sum(_together(rooms, hidden)[: x + 1], Fraction(0))
                for hidden in itertools.product(*(range(room.population + 1) for room in rooms))
                if sum(hidden) >= first
            )
            if binomial_is_heaviest(drawn, tested, level):
                allowed += 1
                assert worst <= level
            else:
                excluded += worst > level
    assert allowed > 0
    assert excluded > 0


def _binomial(drawn: int, rate: Fraction, seen: int) -> Fraction:
    return sum((math.comb(drawn, j) * rate**j * (1 - rate) ** (drawn - j) for j in range(seen + 1)), Fraction(0))


@pytest.mark.parametrize("drawn", [59, 200, 1000])
def test_at_risks_and_levels_that_are_promised_the_binomial_is_heaviest(drawn: int) -> None:
    for risk, level in itertools.product(("0.001", "0.01", "0.1", "0.3", "0.9"), ("0.01", "0.05", "0.25")):
        assert binomial_is_heaviest(drawn, Fraction(risk), Fraction(level))


def test_one_stratum_is_a_simple_draw_with_a_slightly_larger_bound() -> None:
    exact, ours = bound(2000, 200, 3, 0.95), stratified_bound([Stratum(2000, 200)], 3, 0.95)
    assert exact <= ours <= 1.15 * exact


def test_proportional_draws_leave_the_risk_as_it_is() -> None:
    assert stratified_risk([Stratum(100, 10), Stratum(300, 30)], 0.05) == Fraction(1, 20)
    assert stratified_risk([Stratum(100, 20), Stratum(300, 20)], 0.05) == Fraction(1, 30)


def test_every_beginning_of_the_order_is_nearly_proportional() -> None:
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    order = stratified_order(labels, 4, digest="d")
    assert sorted(order) == list(range(100))
    for stop in range(1, 101):
        drawn = [labels[place] for place in order[:stop]]
        for label, part in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
            assert abs(drawn.count(label) - part * stop) <= 1.5
    assert stratified_order(labels, 5, digest="d") != order


def test_members_of_a_stratum_are_drawn_equally_often() -> None:
    labels = ["a"] * 4 + ["b"] * 6
    firsts = np.bincount([next(p for p in stratified_order(labels, s, digest="d") if p >= 4) for s in range(3000)])
    assert ((firsts[4:] - 500) ** 2 / 500).sum() < 25.7  # the 99.99 % point of chi-square with 5 degrees of freedom


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: stratified_bound([], 0, 0.9), "strata is empty"),
        (lambda: stratified_bound([Stratum(5, 2)], 3, 0.9), "wrong is 3"),
        (lambda: Stratum(3, 4), "a stratum's draws is 4"),
        (lambda: stratified_risk([Stratum(3, 0)], 0.1), "nothing was drawn"),
    ],
)
def test_bad_input_is_one_line(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]


def test_draws_are_a_permutation_that_depends_on_seed_and_digest() -> None:
    whole = draw_order(100, 1, digest="sha256:0123")
    assert sorted(whole) == list(range(100))
    assert draw_order(100, 1, digest="sha256:0123", count=7) == whole[:7]
    assert draw_order(100, 2, digest="sha256:0123") != whole
    assert draw_order(100, 1, digest="other") != whole


def test_draws_are_fair() -> None:
    """Each of ten items is drawn first about equally often over seeds (chi-square below its 99.99 %
    point, 33.7).
    """
    firsts = np.bincount([draw_order(10, seed, digest="sha256:0123", count=1)[0] for seed in range(4000)], minlength=10)
    assert ((firsts - 400) ** 2 / 400).sum() < 33.7
