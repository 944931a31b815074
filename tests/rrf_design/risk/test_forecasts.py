"""What a pilot could prove, before it is paid for."""

from __future__ import annotations

import pytest

from rrf_design.errors import InputError
from rrf_design.risk import Prospect, best_risk, forecast, least_labels, pilot_size
from rrf_design.risk.arguments import share
from rrf_design.risk.counts import BinomialTail

PROSPECTS = [Prospect(20.0, 0.001), Prospect(10.0, 0.01), Prospect(3.0, 0.03)]


@pytest.mark.parametrize(("risk", "labels"), [(0.05, 59), (0.02, 149), (0.01, 299)])
def test_clean_labels_needed(risk: float, labels: int) -> None:
    assert least_labels(risk, 0.95) == labels
    assert best_risk(labels, 0.95) <= risk < best_risk(labels - 1, 0.95)


@pytest.mark.parametrize("wrong", [1, 4, 20])
def test_more_wrong_items_need_more_labels(wrong: int) -> None:
    n = least_labels(0.05, 0.95, wrong=wrong)
    rate, level = share(0.05, "risk"), 1 - share(0.95, "confidence")
    assert BinomialTail(n, rate, wrong).at_most(level)
    assert not BinomialTail(n - 1, rate, wrong).at_most(level)


def test_pilot_size_follows_the_rule_of_thumb_and_never_exceeds_the_data() -> None:
    assert pilot_size(5000, 0.05) == 221
    assert pilot_size(20, 0.01) == 20


def test_no_pilot_pays_for_a_small_risk_on_a_small_data_set() -> None:
    found = forecast([100, 200, 400], 0.01, 0.95, population=1319, check=30, panel=25, prospects=PROSPECTS)
    assert [f.allowed_wrong for f in found] == [-1, -1, 0]
    assert not any(f.pays for f in found)
    # Below 299 labels nothing can be proven: not even the bound is below checking everything.
    assert [f.possible for f in found] == [False, False, True]


def test_a_pilot_pays_where_data_are_many_and_the_risk_is_not_tiny() -> None:
    small, large = forecast([100, 400], 0.05, 0.95, population=20_000, check=30, panel=25, prospects=PROSPECTS)
    assert small.pays
    assert large.pays
    assert large.least_cost <= large.expected_cost < large.check_everything


def test_the_estimate_is_between_the_bound_and_checking_what_is_left() -> None:
    for found in forecast(range(50, 1000, 50), 0.03, 0.9, population=1000, check=30, panel=25, prospects=PROSPECTS):
        assert found.least_cost - 1e-9 <= found.expected_cost
        assert found.expected_cost <= found.pilot_cost + (1000 - found.labels) * 30 + 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: least_labels(0, 0.95), "risk is 0"),
        (lambda: best_risk(0, 0.95), "labels is 0"),
        (lambda: pilot_size(0, 0.05), "population is 0"),
        (lambda: forecast([9], 0.05, 0.95, population=100, check=1, panel=1, prospects=[]), "at least one prospect"),
        (
            lambda: forecast([101], 0.05, 0.95, population=100, check=1, panel=1, prospects=PROSPECTS),
            "labels is 101",
        ),
    ],
)
def test_bad_input_is_one_line(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(("risk", "least"), [(0.1, 38), (0.05, 82), (0.02, 217)])
def test_the_first_look_is_where_a_proof_begins_to_be_possible(risk: float, least: int) -> None:
    from fractions import Fraction

    import numpy as np

    from rrf_design.risk import first_look, least_labels, sequential_tail

    assert first_look(risk, 0.95) == least > least_labels(risk, 0.95)
    for labels, proven in ((least - 1, False), (least, True)):
        assert sequential_tail(np.zeros(labels, dtype=bool), risk).at_most(Fraction(1, 20)) is proven
