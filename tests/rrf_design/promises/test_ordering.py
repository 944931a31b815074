from __future__ import annotations

from typing import Any

import pytest

from rrf_design.promises import PilotSettings
from rrf_design.promises._pilot_order import Heard
from rrf_design.risk import Among, Statement


def test_few_answers_outside_the_pilot_mean_holm(make_world: Any) -> None:
    result = make_world(items=110, wrong=0.02).pilot(PilotSettings(100, 0.1))
    assert "Holm" in result.choice.ordered_by
    assert all(stream.pooled for stream in result.choice.streams)


def test_the_order_of_tests_owes_nothing_to_the_draw(make_world: Any) -> None:
    """Fresh items: none of the pilot's.

    A statement about this table: the same items whatever the pilot's size.
    """
    world = make_world(items=300)
    plan = world.plan(PilotSettings(80, 0.1))
    assert not set(plan.aside.ids) & set(plan.pilot.ids)
    finite = [world.plan(PilotSettings(n, 0.1, statement=Statement.REST)).aside.ids for n in (80, 150)]
    assert finite[0] == finite[1]


def test_one_check_that_is_worse_than_its_word_does_not_take_every_policy_with_it(
    with_ledger: Any, make_world: Any
) -> None:
    """A ledger that costs next to nothing and is wrong one time in ten: tested first, refuted, and
    another front goes on without it.
    """
    world = with_ledger(make_world, lambda at, truth: truth + (at % 10 == 0), items=300, wrong=0.04)
    document = world.document(PilotSettings(150, 0.05, aside=100))
    tested = {entry["policy"]: entry for entry in document["policies"]}
    streams = [stream["names"] for stream in document["choice"]["streams"]]
    assert "ledger" in streams[0][0]
    assert tested["ledger; else person"]["wrong"] > 0.05 * 150
    assert document["ladder"] is not None
    assert document["cost_per_item"] < 0.5 * document["check_cost"]


def test_what_checks_say_is_heard_beside_the_answers(with_ledger: Any, make_world: Any) -> None:
    world = with_ledger(
        make_world, lambda at, truth: "" if at % 3 == 0 else truth + 50 * (at % 2), items=60, wrong=0.0, nodes=3
    )
    sheet = world.plan(PilotSettings(30, 0.3)).sheet
    heard = Heard.of(sheet, {"ledger"})
    assert heard.checks == ("ledger",)
    assert heard.codes[:, :3].tolist() == sheet.codes.tolist()
    assert heard.codes[:, 3].tolist() == [-1 if at % 3 == 0 else 3 if at % 2 else 0 for at in range(60)]
    assert heard.prices.tolist() == [1.0, 2.0, 3.0, 5.0]
    assert Heard.of(sheet, ()).codes.tolist() == sheet.codes.tolist()


@pytest.mark.parametrize("more", [{"among": Among.DELIVERED}, {"random_checks": True}, {"sequential": True}])
def test_a_single_front_takes_a_check_at_its_word(with_ledger: Any, make_world: Any, more: Any) -> None:
    """A ledger that is right: tested early, and what answers leave open is not left to a person."""
    world = with_ledger(make_world, lambda at, truth: truth, items=260, wrong=0.15)
    document = world.document(PilotSettings(120, 0.08, aside=100, **more))
    assert document["ladder"]["further"] == ["ledger"]
    assert document["cost_per_item"] < 8.0
