"""k in the certificate: how often its premise fails, re-proved by whoever reads it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rrf_design import certify, verify
from rrf_design.certificates.checker.document import content_digest
from rrf_design.errors import InputError, Refused
from rrf_design.promises import PilotSettings
from rrf_design.promises.certifying import with_pilot
from rrf_design.risk import rate_bound


@pytest.fixture
def made(make_world: Any) -> Any:
    world = make_world(items=100, wrong=0.15)
    policy = world.document(PilotSettings(60, 0.3))
    name = next(item for item in world.dataset if item not in policy["drawn"])
    return world, policy, name, certify(world.dataset.item(name).problem)


def test_the_bounded_probability_that_the_premise_fails(made: Any) -> None:
    world, policy, name, plain = made
    found = with_pilot(plain, policy, recipe_digest=world.dataset.recipe.digest, item=name)
    section = found.document["pilot"]
    marks = policy["wrong_answers"]["by_node"]
    failed = sum(sum(marks[node][at] == "1" for node in marks) > 1 for at in range(60))
    assert section["more_than_k"] == failed > 0
    assert section["bound"] == rate_bound(60, failed, 0.95)
    assert f"wrong in {failed} of 60 items drawn from" in section["sentence"]
    assert "table.jsonl (100 items)" in section["sentence"]
    checked = verify(found)
    assert checked.valid, checked.reason
    assert any("drawn items recounted" in check.detail for check in checked.checks)
    assert verify(plain).valid  # and nothing is claimed without a pilot


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller bound": lambda s: s.update(bound=s["bound"] * 0.9),
    "fewer failures": lambda s: s.update(more_than_k=s["more_than_k"] - 1),
    "another draw": lambda s: s["places"].reverse(),
    "another seed": lambda s: s.update(seed=s["seed"] + 1),
    "a mark": lambda s: s["wrong"].update({next(iter(s["wrong"])): "0" * 60}),
    "a node less": lambda s: s["wrong"].pop(next(iter(s["wrong"]))),
    "marks of another kind": lambda s: s["wrong"].update({next(iter(s["wrong"])): "x" * 60}),
    "another table": lambda s: s.update(table="another"),
    "more confidence": lambda s: s.update(confidence=0.99),
    "a key more": lambda s: s.update(more=1),
    "no population": lambda s: s.update(size=0),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_premise_is_refused(made: Any, forgery: str) -> None:
    _, policy, _, plain = made
    document = copy.deepcopy(with_pilot(plain, policy).document)
    FORGERIES[forgery](document["pilot"])
    document["digest"] = content_digest(document)
    checked = verify(replace(plain, document=document))
    assert not checked.valid
    assert "pilot" in checked.reason


def test_what_a_pilot_does_not_speak_of_is_refused(made: Any) -> None:
    _, policy, name, plain = made
    with pytest.raises(Refused, match="no evidence for itself"):
        with_pilot(plain, policy, item=policy["drawn"][0])
    with pytest.raises(Refused, match="recipe has changed"):
        with_pilot(plain, policy, recipe_digest="0" * 64, item=name)
    with pytest.raises(Refused):
        with_pilot(plain, {**policy, "risk": 0.01})
    import rrf_design as rrf

    other = certify(
        rrf.Problem(nodes=[{"id": "total"}, {"id": "x"}], relations=[{"id": "r", "tail": "total", "head": "x"}])
    )
    with pytest.raises(InputError, match="node 'x'"):
        with_pilot(other, policy)


def test_a_table_gets_a_premise_for_each_structure(made: Any) -> None:
    from rrf_design.handover.structures import certify_dataset
    from rrf_design.promises.certifying import premise_summary, with_pilot_of_table

    world, policy, _, _ = made
    found = with_pilot_of_table(certify_dataset(world.dataset), policy)
    assert len(found.speakers) == 1
    for speaker in found.speakers:
        assert verify(speaker.result).valid
        assert speaker.result.document["pilot"]["more_than_k"] > 0
    told = premise_summary(found)
    assert told["bound"] == found.worst.result.document["pilot"]["bound"]
    assert told["sentence"].endswith(found.worst.result.document["pilot"]["sentence"])
    everything = {**policy, "drawn": list(world.dataset)}
    with pytest.raises(Refused, match="their truth is known"):
        with_pilot_of_table(certify_dataset(world.dataset), everything)
