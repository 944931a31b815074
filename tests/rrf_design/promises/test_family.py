from __future__ import annotations

from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.promises.policies import Climb, GateKind, LadderPolicy, LastRung, diluted, family_of

NODES = ("a", "b", "c", "d", "e")
PRICES = {"a": 2.0, "b": 1.0, "c": 8.0, "d": 1.0, "e": 4.0}


def made(**changes: Any) -> list[LadderPolicy]:
    given: dict[str, Any] = {"voices": NODES, "last": LastRung.PERSON, **changes}
    return family_of(NODES, PRICES, **given)


def test_each_rule_stands_once_and_cheap_nodes_come_first() -> None:
    found = made()
    assert len({policy.name for policy in found}) == len(found)
    assert found[0].order == ("b",)
    assert {p.number for p in found if p.gate is GateKind.CONSISTENT} == {0, 1, 2}
    assert any(policy.order == ("c", "e", "a", "d", "b") for policy in found)
    assert all(policy.within > 2 * policy.number for policy in found if policy.gate is GateKind.CONSISTENT)


def test_a_lead_counts_voices_only() -> None:
    found = made(voices=("a", "b"))
    assert all(set(p.order) <= {"a", "b"} for p in found if p.gate is GateKind.LEAD)
    assert any("c" in p.order for p in found if p.gate is GateKind.CONSISTENT)


def test_climbs_are_policies_and_come_back_from_their_document() -> None:
    climbs = [
        Climb(NODES, ((2, 0), (4, 1)), level=True),
        Climb(NODES, ((2, 0), (5, 1)), level=False),
        Climb(NODES, ((3, 1), (5, 2)), level=False),
    ]
    found = [policy for policy in made(climbs=climbs) if policy.earlier]
    assert [policy.name for policy in found] == [
        "consistent at k = 0 within a, b; else at k = 1 with c, d, e; else person",
        "consistent at k = 1 within a, b, c; else at k = 2 with d, e; else person",
    ]  # a level climb over voices is a lead, which is there already
    assert [LadderPolicy.from_json(policy.to_json()) for policy in found] == found
    assert len([p for p in made(climbs=climbs, voices=("a",)) if p.earlier]) == 3
    assert not [p for p in made(climbs=climbs, by_hand={"order": ["a", "b", "c", "d", "e"]}) if p.earlier]
    for bad in ([[5, 1]], [[2, 1]], [[0, 0]], [[2]], "2", [[2, True]], [[2, 0], [2, 1]]):
        with pytest.raises(InputError, match="rung"):
            LadderPolicy.from_json({**found[0].to_json(), "earlier": bad})


def test_a_recipe_can_fix_the_rungs() -> None:
    found = made(by_hand={"order": ["c", "a"], "gate": "consistent", "last": "withheld"})
    assert [(p.order, p.number, p.last) for p in found] == [
        (("c",), 0, LastRung.WITHHELD),
        (("c", "a"), 0, LastRung.WITHHELD),
    ]


def test_a_recipe_of_0_2_says_certified() -> None:
    old, new = (made(by_hand={"gate": word}) for word in ("certified", "consistent"))
    assert old == new


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"rungs": 3}, "unknown key"),
        ({"gate": "consistant"}, "did you mean"),
        ({"last": "nobody"}, "person or withheld"),
        ({"order": ["z"]}, "no node"),
        ({"order": ["a", "a"]}, "each once"),
        ({"order": "a"}, "a list of nodes"),
        ({"order": 5}, "a list of nodes"),
        ({"within": "three"}, "whole number"),
        ({"within": 99}, "no policy of the family"),
    ],
)
def test_a_bad_ladder_is_refused(section: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made(by_hand=section)


def test_a_policy_comes_back_from_its_document() -> None:
    for policy in made():
        assert LadderPolicy.from_json(policy.to_json()) == policy


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"order": [], "gate": "lead", "number": 1, "last": "person"},
        {"order": ["a", "a"], "gate": "lead", "number": 1, "last": "person"},
        {"order": ["a"], "gate": "luck", "number": 1, "last": "person"},
        {"order": ["a"], "gate": "lead", "number": True, "last": "person"},
        {"order": ["a"], "gate": "lead", "number": -1, "last": "person"},
    ],
)
def test_another_document_is_refused(data: Any) -> None:
    with pytest.raises(InputError):
        LadderPolicy.from_json(data)


def test_random_checks_keep_the_gate_and_survive_writing() -> None:
    found = diluted(made(), 0.15)
    assert {policy.random_checks for policy in found} == {
        0.0,
        0.1,
        0.2,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.8,
    }  # 0.9 leaves nothing to test
    assert len({policy.name for policy in found}) == len(found) == 9 * len(made())
    last = found[-1]
    assert LadderPolicy.from_json(last.to_json()) == last
    assert last.gates in made()
    with pytest.raises(InputError, match="random_checks"):
        LadderPolicy.from_json({**last.to_json(), "random_checks": 1})


def test_ids_that_read_as_several_are_quoted_so_that_no_two_ladders_have_one_name() -> None:
    orders = [("a, b",), ("a", "b"), ('"a', 'b"'), ('"a, b"',), ("a; else person", "b"), ("a", "; b"), ('a"', "b")]
    found = {LadderPolicy(order, GateKind.LEAD, 1, LastRung.PERSON).name for order in orders}
    found |= {LadderPolicy(("x",), GateKind.LEAD, 1, LastRung.PERSON, further=order).name for order in orders}
    assert len(found) == 2 * len(orders)
    assert 'lead of 1 within "a, b"; else person' in found
    policy = LadderPolicy(("a, b", "c"), GateKind.CONSISTENT, 0, LastRung.PERSON)
    assert LadderPolicy.from_json(policy.to_json()) == policy
