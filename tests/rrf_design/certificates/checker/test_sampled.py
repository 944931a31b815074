"""The pilot section re-proven: the draw, the count, the bound and the sentence, and every forgery of one of them."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import binom

from rrf_design.certificates.checker.sampled import check_pilot, failures, rate_above, redrawn, sentence
from rrf_design.errors import Refused

NODES = ("a", "b", "c")
SIZE, COUNT = 50, 8


def section(**changes: Any) -> dict[str, Any]:
    wrong = {"a": "10010000", "b": "10000000", "c": "00010001"}
    found: dict[str, Any] = {
        "table": "t.csv",
        "size": SIZE,
        "population": "digest",
        "recipe": "r",
        "seed": 3,
        "places": redrawn(SIZE, 3, "digest", COUNT),
        "wrong": wrong,
        "more_than_k": failures(wrong, [[name] for name in NODES], 1, COUNT),
        "confidence": 0.9,
        **changes,
    }
    found.setdefault("bound", rate_above(COUNT, found["more_than_k"], 0.9))
    found.setdefault("sentence", sentence(found, 1, [[name] for name in NODES]))
    return found


def test_an_honest_section_is_recounted() -> None:
    assert section()["more_than_k"] == 2
    assert "2 of 8 drawn items recounted" in check_pilot(section(), NODES, None, 1)


def test_a_weaker_bound_may_be_claimed() -> None:
    told = section(bound=0.9)
    assert check_pilot(told, NODES, None, 1)


def test_the_bound_is_the_rate_that_the_count_just_refutes() -> None:
    for items, failed in ((10, 0), (20, 3), (8, 7)):
        rate = rate_above(items, failed, 0.95)
        assert binom.cdf(failed, items, rate) == pytest.approx(0.05)
        assert rate > failed / items
    assert rate_above(5, 5, 0.95) == 1.0


def test_a_unit_is_wrong_when_one_of_its_nodes_is() -> None:
    wrong = {"a": "101", "b": "100", "c": "001"}
    assert failures(wrong, [["a"], ["b"], ["c"]], 1, 3) == 2
    assert failures(wrong, [["a", "b"], ["c"]], 1, 3) == 1
    assert failures(wrong, [["a", "b", "c"]], 0, 3) == 2


def test_the_draw_is_an_order_of_all_places_and_depends_on_everything() -> None:
    whole = redrawn(30, 1, "d", 30)
    assert sorted(whole) == list(range(30))
    assert redrawn(30, 1, "d", 7) == whole[:7]
    assert redrawn(30, 2, "d", 30) != whole
    assert redrawn(30, 1, "e", 30) != whole


HONEST = section()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, "draw other items"),
        ({"seed": -1}, "items drawn from"),
        ({"population": "other"}, "draw other items"),
        ({"size": 7}, "items drawn from 7"),
        ({"size": 10**9}, "items drawn from"),
        ({"places": []}, "0 items drawn"),
        ({"places": HONEST["places"][::-1]}, "draw other items"),
        ({"more_than_k": 1}, "the marks say 2"),
        ({"bound": 0.2}, "the count proves"),
        ({"bound": float("nan")}, "must be shares"),
        ({"bound": 1.5}, "must be shares"),
        ({"confidence": 0.0}, "must be shares"),
        ({"confidence": 1.0}, "must be shares"),
        ({"confidence": 0.99}, "the count proves"),
        ({"sentence": "All is well."}, "is not what the figures say"),
        ({"table": "other.csv"}, "is not what the figures say"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8}}, "every node of the operator"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 8, "d": "0" * 8}}, "every node of the operator"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 7}}, "a 0 or 1 for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0000000x"}}, "a 0 or 1 for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": [0] * 8}}, "a 0 or 1 for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 8}}, "the marks say 0"),
    ],
)
def test_forgeries_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        check_pilot({**HONEST, **changes}, NODES, None, 1)


def test_another_k_or_other_units_are_another_claim() -> None:
    with pytest.raises(Refused):
        check_pilot(HONEST, NODES, None, 0)
    with pytest.raises(Refused):
        check_pilot(HONEST, NODES, [["a", "b"], ["c"]], 1)
