"""Forged policies are refused, whatever is forged; so is what is no policy at all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from rrf_design.errors import Refused
from rrf_design.promises import PilotSettings, prove_policy


@pytest.fixture
def document(make_world: Any) -> dict[str, Any]:
    found: dict[str, Any] = make_world(items=300, wrong=0.03).document(PilotSettings(100, 0.1))
    return found


def test_an_honest_policy_is_proven(document: dict[str, Any]) -> None:
    proven = prove_policy(document)
    assert proven.policy == document["policy"]
    assert proven.risk == 0.1
    assert (
        document["sentence"]
        == "Of all items, at most 10 % are wrong, with confidence 95 %, for items drawn like the 100 of the pilot."
    )


def unproven(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in document["choice"]["policies"] if not entry["proven"])
    return found


def chosen_marks(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(e for e in document["policies"] if e["policy"] == document["policy"])
    return found


def _flip_wrong(data: dict[str, Any]) -> None:
    entry = next(e for e in data["policies"] if "w" in e["marks"])
    entry["marks"] = entry["marks"].replace("w", "r", 1)


def _forge_counts(data: dict[str, Any]) -> None:
    """Counts, p-values and marks agree with each other, and the test is not redone at its level."""
    entry = unproven(data)
    entry["proven"] = True


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller risk": lambda d: d.update(risk=0.01),
    "more confidence": lambda d: d.update(confidence=0.99),
    "another sentence": lambda d: d.update(sentence="Nothing is wrong."),
    "a smaller bound": lambda d: d.update(bound=0.01),
    "another statement": lambda d: d.update(statement="rest"),
    "another denominator": lambda d: d.update(among="delivered"),
    "another seed": lambda d: d.update(seed=d["seed"] + 1),
    "another population": lambda d: d["population"].update(digest="0" * 64),
    "chosen items": lambda d: d["places"].__setitem__(0, (d["places"][0] + 1) % 300),
    "items left out": lambda d: (d["places"].pop(), d["drawn"].pop()),
    "a wrong item called right": _flip_wrong,
    "an unproven policy": lambda d: d.update(policy=unproven(d)["name"]),
    "an unproven policy, chosen": lambda d: (
        d.update(policy=unproven(d)["name"]),
        d["choice"].update(chosen=unproven(d)["name"]),
    ),
    "a proof": _forge_counts,
    "a p-value": lambda d: unproven(d).update(p=0.0),
    "a count": lambda d: unproven(d)["counts"][0].update(marked=unproven(d)["counts"][0]["marked"] + 1),
    "another ladder": lambda d: d["ladder"].update(number=1, gate="lead", order=["total"]),
    "a policy left out": lambda d: d["policies"].pop(),
    "marks too short": lambda d: chosen_marks(d).update(marks=chosen_marks(d)["marks"][:-1]),
    "fewer wrong told": lambda d: d["policies"][0].update(wrong=-1),
    "more delivered told": lambda d: d["policies"][0].update(delivered=1000),
    "a proof told": lambda d: d["policies"][0].update(proven=not d["policies"][0]["proven"]),
    "another cost told": lambda d: d["policies"][0].update(cost=0.0),
    "a cheaper item": lambda d: d.update(cost_per_item=0.001),
    "a larger share": lambda d: d.update(delivered_share=1.5),
    "a node that is never wrong": lambda d: d["wrong_answers"]["nodes"][1].update(wrong=0, bound=0.01),
    "a bound a little smaller": lambda d: d["wrong_answers"]["more_than"][0].update(
        bound=d["wrong_answers"]["more_than"][0]["bound"] * (1 - 1e-10)
    ),
    "nothing checked, sweet words": lambda d: d.update(policy="check everything", sentence="Nothing is wrong."),
    "an item drawn twice": lambda d: d["drawn"].__setitem__(1, d["drawn"][0]),
    "an order made afterwards": lambda d: d["choice"]["streams"].__setitem__(
        slice(None), [{"share": "1", "names": [unproven(d)["name"]], "pooled": False}]
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_policy_is_refused(document: dict[str, Any], forgery: str) -> None:
    forged = copy.deepcopy(document)
    FORGERIES[forgery](forged)
    assert forged != document
    with pytest.raises(Refused):
        prove_policy(forged)


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {}, {"format": "rrf-policy"}, {"format": "rrf-policy", "version": 1}]
)
def test_what_is_no_policy_is_refused(junk: Any) -> None:
    with pytest.raises(Refused):
        prove_policy(junk)


def test_every_entry_may_be_anything(document: dict[str, Any]) -> None:
    """Total on malformed input: a refusal, or the proof where the entry proves nothing; never
    another error.
    """
    junk: Any
    for key in document:
        for junk in (None, True, -1, 1e308, "", "1e999999999", [], {}, [[]], {"digest": 3, "size": True}):
            try:
                prove_policy({**document, key: junk})
            except Refused:
                continue
    for key in document["choice"]:
        for junk in (None, True, -1, "9" * 400, [], {}, [{}]):
            try:
                prove_policy({**document, "choice": {**document["choice"], key: junk}})
            except Refused:
                continue


def test_size_and_strata_are_those_of_the_table(make_world: Any) -> None:
    """Beside a true digest, a forged size would make a promise about part of the table, and forged
    strata another test.
    """
    from rrf_design.promises._pilot_design import Population
    from rrf_design.promises.policy_document import check_draw

    world = make_world(items=80, wrong=0.05)
    document = world.document(PilotSettings(40, 0.2))
    here = Population.of(world.dataset)
    check_draw(document, here)
    smaller = {**document, "population": {**document["population"], "size": 60}}
    for forged in (smaller, {**document, "strata": ["a"] * 80}):
        with pytest.raises(Refused, match="another size or other strata"):
            check_draw(forged, here)
