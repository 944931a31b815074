from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rrf_design.errors import Refused
from rrf_design.promises import PilotSettings, gold_truths
from rrf_design.promises._pilot_analysis import refuse_second_look


def test_a_second_look_is_refused(make_world: Any) -> None:
    world = make_world(items=200)
    document = world.document(PilotSettings(80, 0.1))
    refuse_second_look(document, world.plan(PilotSettings(80, 0.1)))  # the same once more is no second look
    for other in (
        PilotSettings(120, 0.1),
        PilotSettings(80, 0.12),
        PilotSettings(80, 0.1, seed=7),
        PilotSettings(80, 0.1, order="holm"),
    ):
        with pytest.raises(Refused, match="piloted already"):
            refuse_second_look(document, world.plan(other))


def test_a_sequential_pilot_may_grow(make_world: Any) -> None:
    world = make_world(items=200, wrong=0.01)
    settings = PilotSettings(80, 0.1, sequential=True)
    document = world.document(settings)
    assert document["choice"]["sequential"] is True
    refuse_second_look(document, world.plan(PilotSettings(120, 0.1, sequential=True)))
    with pytest.raises(Refused):
        refuse_second_look(document, world.plan(PilotSettings(120, 0.1)))
    with pytest.raises(Refused):
        refuse_second_look(document, world.plan(PilotSettings(60, 0.1, sequential=True)))


def test_a_pilot_that_grew_keeps_its_order_of_tests(make_world: Any) -> None:
    """Another order for the same items would be another chance; so would other truths."""
    from rrf_design.promises import policy_document, run_pilot

    world = make_world(items=300, wrong=0.03)
    first = world.document(PilotSettings(80, 0.1, sequential=True))
    plan = world.plan(PilotSettings(120, 0.1, sequential=True))
    truths, _ = gold_truths(plan)
    grown = policy_document(run_pilot(plan, truths, truth_source="", before=refuse_second_look(first, plan)))
    assert grown["choice"]["streams"] == first["choice"]["streams"]
    assert grown["choice"]["ordered_by"] == first["choice"]["ordered_by"]
    with pytest.raises(Refused, match="can grow to"):
        refuse_second_look(first, world.plan(PilotSettings(290, 0.1, sequential=True)))
    name = first["drawn"][0]
    truths[name] = replace(truths[name], values=((-1.0,),))
    with pytest.raises(Refused, match="changed after looking"):
        run_pilot(plan, truths, truth_source="", before=first)
