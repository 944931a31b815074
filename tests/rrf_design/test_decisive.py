"""A trusted check of the delivered value is its value; what is noisy, partial or suspect decides nothing."""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.decisive import (
    FREE,
    cheapest_first,
    decided_premise,
    decided_verdict,
    decides,
    decisive_checks,
    delivered_node,
    is_person,
    worth_of,
)
from rrf_design.verdict import Verdict


def problem(*anchors: dict[str, Any], **settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "total"}, {"id": "parts", "dim": 2}],
        anchors=[{"node": "total", "cost": 1.0, **anchor} for anchor in anchors],
        **{"deliver": ["total"], **settings},
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, True),
        ({"trusted": True}, True),
        ({"trusted": False}, False),
        ({"sigma": 0.5}, False),
        ({"uncertainty": 0.1}, False),
        ({"rows": [[2.0]]}, False),
        ({"node": "parts"}, False),
    ],
)
def test_who_states_the_whole_value_exactly_decides(entry: dict[str, Any], expected: bool) -> None:
    stated = problem({"id": "x", **entry})
    assert decides(stated, stated.anchors[0], "total") is expected


def test_machines_come_before_people_and_the_cheapest_first() -> None:
    found = problem(
        {"id": "clerk", "cost": 0.5, "source": {"person": "Total?"}},
        {"id": "slow", "cost": 3.0},
        {"id": "quick", "cost": 2.0},
        {"id": "noisy", "cost": 0.1, "sigma": 1.0},
    )
    assert [anchor.id for anchor in decisive_checks(found)] == ["quick", "slow", "clerk"]
    assert [anchor.id for anchor in decisive_checks(found, without=["quick"])] == ["slow", "clerk"]
    assert [is_person(anchor) for anchor in decisive_checks(found)] == [False, False, True]


def test_several_delivered_values_are_not_decided_by_one_check() -> None:
    assert decisive_checks(problem({"id": "x"}, deliver=["total", "parts"])) == []
    assert delivered_node(problem({"id": "x"}, deliver=["total", "parts"])) == "total"


def test_a_suspect_check_decides_only_where_it_is_trusted() -> None:
    suspects = problem({"id": "x"}, {"id": "y", "trusted": True}, wrong_checks=1)
    assert [anchor.id for anchor in decisive_checks(suspects)] == ["y"]
    assert [decides(suspects, anchor, "total") for anchor in suspects.anchors] == [False, True]


def test_what_is_decided_is_certified_on_one_premise() -> None:
    assert decided_verdict(problem({"id": "x"}, delta=0.01, epsilon=1.0)) is Verdict.CERTIFIED
    assert decided_premise("clerk") == "clerk is right"


def test_what_a_check_is_worth_and_who_is_asked_first() -> None:
    found = problem(
        {"id": "dear", "cost": 0.3, "source": "person: total?"},
        {"id": "free", "cost": 0.0, "source": "person: total?"},
        {"id": "machine", "cost": 5.0, "source": "judge"},
    )
    assert [anchor.id for anchor in cheapest_first(found.anchors)] == ["machine", "free", "dear"]
    assert worth_of(found.anchors[0]) == 1.0 / 0.3
    assert worth_of(found.anchors[1]) == 1.0 / FREE
