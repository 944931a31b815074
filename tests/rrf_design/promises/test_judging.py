"""Judges from labels: rates with exact intervals, σ with its limit, places, agreement; nothing is
proposed without its confidence.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from scipy.stats import binomtest

from rrf_design.errors import InputError
from rrf_design.promises._truths import Truth
from rrf_design.promises.judging import Judgement, between, interval, measure_judges, read_judgements
from rrf_design.risk.counts import BinomialTail


@pytest.mark.parametrize(("count", "hits"), [(10, 0), (10, 7), (10, 10), (200, 191)])
def test_intervals_are_clopper_and_pearson(count: int, hits: int) -> None:
    slow = binomtest(hits, count).proportion_ci(0.9, method="exact")
    assert interval(count, hits, 0.9) == pytest.approx([slow.low, slow.high], abs=1e-9)


def test_a_judge_of_classes_has_a_rate_and_two_have_an_agreement() -> None:
    truth = ["yes", "no"] * 10
    strict = [Judgement(str(i), "strict", t if i != 3 else "yes", t) for i, t in enumerate(truth)]
    lax = [Judgement(str(i), "lax", "yes" if i else None, t) for i, t in enumerate(truth)]
    found = measure_judges([*strict, *lax])
    one, other = found["judges"]
    assert (one["right"], one["unread"], one["rate"]) == (19, 0, 0.95)
    assert one["interval"][0] < 0.95 < one["interval"][1]
    assert (other["judged"], other["unread"], other["right"]) == (20, 1, 9)
    assert "sigma" not in one
    (pair,) = found["agreement"]
    assert (pair["items"], pair["agree"], pair["both_wrong"]) == (19, 10, 1)
    assert "rate = 0.2488 (how often it is wrong, at most; it is right in 95.0 %" in found["proposals"][0]


def test_a_judge_of_numbers_has_a_sigma_with_its_limit() -> None:
    errors = [0.5, -0.5] * 20
    said = [Judgement(str(i), "j", (i + e,), (float(i),)) for i, e in enumerate(errors)]
    (judge,) = measure_judges(said)["judges"]
    assert judge["sigma"]["rms"] == pytest.approx(0.5)
    assert judge["sigma"]["bias"] == pytest.approx(0.0)
    assert 0.5 < judge["sigma"]["upper"] < 0.7


def test_a_judge_that_likes_the_first_place_is_found_out() -> None:
    said = [Judgement(str(i), "j", "a" if i % 2 else "b", "a", "first" if i % 2 else "second") for i in range(20)]
    found = measure_judges(said)
    position = found["judges"][0]["position"]
    assert [(entry["place"], entry["right"]) for entry in position["places"]] == [("first", 10), ("second", 0)]
    assert position["biased"]
    assert "in both orders" in found["proposals"][-1]
    fair = measure_judges([Judgement(str(i), "j", "a", "a", str(i % 2)) for i in range(20)])["judges"][0]
    assert not fair["position"]["biased"]


def test_tables_are_read_and_bad_ones_refused(tmp_path: Path) -> None:
    file = tmp_path / "j.csv"
    file.write_text("id,judge,value,truth,position\n1,j,7,7.5,\n2,j,,yes,1\n")
    assert read_judgements(file) == [
        Judgement("1", "j", (7.0,), (7.5,)),
        Judgement("2", "j", None, "yes", "1"),
    ]
    file.write_text("id,judge,value\n1,j,7\n")
    with pytest.raises(InputError, match="no column 'truth'"):
        read_judgements(file)
    file.write_text("id,judge,value,truth\n1,j,7,\n")
    with pytest.raises(InputError, match="no truth"):
        read_judgements(file)
    twice = [Judgement("1", "j", "a", "a")] * 2
    with pytest.raises(InputError, match="judged once"):
        measure_judges(twice)
    with pytest.raises(InputError, match="no judgements"):
        measure_judges([])


@pytest.mark.parametrize("right", [0, 1, 7, 19, 20])
def test_what_is_proposed_is_never_less_than_what_is_proven(right: int) -> None:
    """An interval covers the exact one, and the rate in the proposal covers the interval: rounding
    to nearest proposed less than was proven.
    """
    said = [Judgement(str(i), "one", "yes" if i < right else "no", "yes") for i in range(20)]
    found = measure_judges(said)
    low, high = found["judges"][0]["interval"]
    for rate, hits in ((1 - Fraction(low), 20 - right), (Fraction(high), right)):
        assert rate >= 1 or BinomialTail(20, rate, hits).at_most(Fraction(25, 1000))
    if right < 20:
        rate_said = found["proposals"][0].split("rate = ")[1].split(" ")[0]
        assert Fraction(rate_said) >= 1 - Fraction(low)
    below, above = between([low, high])
    assert Fraction(below.rstrip("%")) <= 100 * Fraction(low)
    assert Fraction(above.rstrip("%")) >= 100 * Fraction(high)


def test_sigma_says_what_it_assumes_and_what_holds_without() -> None:
    """A judge that is off by 100 in 2 % of items: in half of all pilots of 30 it never is, and σ =
    0 is no limit with any confidence.
    """
    said = [Judgement(str(i), "j", (float(i),), (float(i),)) for i in range(30)]
    found = measure_judges(said)
    assert 0.98**30 > 0.5
    assert found["judges"][0]["sigma"]["upper"] == 0.0
    share = found["judges"][0]["sigma"]["share_beyond"]
    assert (1 - share) ** 30 == pytest.approx(0.05)
    assert "if errors are normal around 0" in found["proposals"][0]
    assert "none was off by more than 0, and at most 9.51 % of all are" in found["proposals"][0]


def test_every_coordinate_of_a_judge_counts_and_options_are_no_numbers() -> None:
    off = [0.5, -0.5] * 20
    said = [Judgement(str(i), "j", (float(i), i + e), (float(i), float(i))) for i, e in enumerate(off)]
    (judge,) = measure_judges(said)["judges"]
    assert judge["sigma"]["rms"] == pytest.approx(0.5)
    options = [tuple(float(at == i % 4) for at in range(4)) for i in range(40)]
    (judge,) = measure_judges([Judgement(str(i), "j", options[(i + (i == 7)) % 40], options[i]) for i in range(40)])[
        "judges"
    ]
    assert "sigma" not in judge
    assert judge["right"] == 39


def test_a_judge_is_held_against_the_truth_that_it_said() -> None:
    truth = Truth(((4.0,), (6.0,)), 0.5, "4 | 6")
    said = [Judgement.against(truth, str(i), "j", value) for i, value in enumerate([(6.25,), (4.0,), (5.0,), None])]
    assert [one.truth for one in said] == [(6.0,), (4.0,), (4.0,), (4.0,)]
    (judge,) = measure_judges(said)["judges"]
    assert (judge["right"], judge["unread"]) == (2, 1)


def test_places_that_are_seldom_do_not_look_biased_by_chance() -> None:
    """Every outcome of judges that are right in nine of ten whatever the place, of which two places
    were seen twice and one 20 times: at most one in twenty is called biased.
    """
    sizes, alarm = (2, 2, 20), 0.0
    for rights in product(*(range(size + 1) for size in sizes)):
        said = [
            Judgement(f"{place}.{i}", "j", "a" if i < right else "b", "a", str(place))
            for place, (size, right) in enumerate(zip(sizes, rights, strict=True))
            for i in range(size)
        ]
        if measure_judges(said)["judges"][0]["position"]["biased"]:
            alarm += math.prod(math.comb(n, x) * 0.9**x * 0.1 ** (n - x) for n, x in zip(sizes, rights, strict=True))
    assert alarm <= 0.05
