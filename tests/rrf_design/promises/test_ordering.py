from __future__ import annotations

from typing import Any

from rrf_design.promises import PilotSettings
from rrf_design.risk import Statement


def test_few_answers_outside_the_pilot_mean_holm(make_world: Any) -> None:
    result = make_world(items=110, wrong=0.02).pilot(PilotSettings(100, 0.1))
    assert "Holm" in result.choice.ordered_by
    assert all(stream.pooled for stream in result.choice.streams)


def test_the_order_of_tests_owes_nothing_to_the_draw(make_world: Any) -> None:
    """Fresh items: none of the pilot's. A statement about this table: the same items whatever the pilot's size."""
    world = make_world(items=300)
    plan = world.plan(PilotSettings(80, 0.1))
    assert not set(plan.aside.ids) & set(plan.pilot.ids)
    finite = [world.plan(PilotSettings(n, 0.1, statement=Statement.REST)).aside.ids for n in (80, 150)]
    assert finite[0] == finite[1]
