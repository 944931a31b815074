"""k in the certificate: how often its premise fails, re-proved by whoever reads it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from rrf_design import certify, verify
from rrf_design.certificates.checker.document import content_digest
from rrf_design.certificates.checker.sampled import in_percent, is_drawn, rate_above, refutes
from rrf_design.errors import InputError, Refused
from rrf_design.promises import PilotSettings
from rrf_design.promises.certifying import with_pilot
from rrf_design.risk import draw_order, rate_bound


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


def test_the_checker_draws_as_the_pilot_does() -> None:
    for size, seed, count in ((1, 0, 1), (50, 3, 20), (300, 7, 300)):
        drawn = draw_order(size, seed, digest="abc", count=count)
        assert is_drawn(drawn, size, seed, "abc")
        assert not is_drawn(drawn, size, seed + 1, "abc") or size == 1
        assert not is_drawn([*drawn[:-1], size], size, seed, "abc")


@pytest.mark.parametrize(("items", "failed"), [(1, 0), (20, 0), (20, 3), (60, 59), (500, 2)])
def test_a_bound_is_refuted_exactly_and_its_neighbour_is_not(items: int, failed: int) -> None:
    """The old tolerance of 1e-9 took a bound for proven that its count does not prove."""
    level, bound = Fraction(1, 20), rate_above(items, failed, 0.95)

    def tail(rate: float) -> Fraction:
        p = Fraction(rate)
        return sum((math.comb(items, j) * p**j * (1 - p) ** (items - j) for j in range(failed + 1)), Fraction(0))

    assert tail(bound) <= level
    assert refutes(items, failed, bound, 0.95)
    smaller = bound * (1 - 1e-12)
    assert tail(smaller) > level
    assert not refutes(items, failed, smaller, 0.95)
    assert Fraction(in_percent(bound)[:-1]) / 100 >= Fraction(bound)


def test_no_bound_is_proven_where_everything_failed_or_none_is_claimed() -> None:
    assert rate_above(5, 5, 0.95) == 1.0
    assert refutes(5, 5, 1.0, 0.95)
    assert not refutes(5, 5, 0.999, 0.95)
    assert not refutes(5, 0, 0.0, 0.95)
