"""The fold: money counted three ways, doubts, releases, sessions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.purchases import Buys, Purchase, Settlement
from rrf_design.acquisition.state import RunState

BUY = Purchase("", "a", Buys.ANCHOR, 0.1, ceiling=0.5)


def state(*events: Event) -> RunState:
    result = RunState([""])
    for event in events:
        result.apply(event)
    return result


def doubt(policy: str) -> Event:
    return Event(Kind.DOUBT, {"item": "", "name": "a", "policy": policy}, "a", 0)


def test_reserved_then_settled() -> None:
    reserved = state(BUY.intent())
    assert (reserved.committed, reserved.committed_money, reserved.spent) == (Fraction(1, 10), Fraction(1, 2), 0)
    settled = state(BUY.intent(), Settlement(BUY, "bought", (7.0,), money=0.2, calls=1).event())
    assert (settled.committed, settled.committed_money, settled.calls) == (Fraction(1, 10), Fraction(1, 5), 1)
    assert settled.items[""].values(Buys.ANCHOR) == {"a": (7.0,)}
    assert settled.pending == []


def test_released_costs_nothing_and_goes_back_to_its_round() -> None:
    released = state(BUY.intent(), Event(Kind.RELEASED, {"item": "", "name": "a", "reason": ""}, "a"))
    assert released.committed == 0
    assert released.items[""].round == ["a"]
    assert released.items[""].attempts == {"a": 1}


@pytest.mark.parametrize(
    ("policy", "lost", "spent", "again"), [("same", 0, 0, True), ("again", 0.1, 0.1, True), ("skip", 0, 0.1, False)]
)
def test_doubts(policy: str, lost: float, spent: float, again: bool) -> None:
    found = state(BUY.intent(), doubt(policy))
    assert float(found.lost_price) == lost
    assert float(found.spent) == float(found.committed) == spent
    assert ("a" in found.items[""].round) == again
    assert ("a" in found.items[""].failed) != again


def test_working_time_is_counted_over_sessions_without_the_pauses() -> None:
    found = state(
        Event(Kind.SESSION, {}, at=100.0),
        Event(Kind.ENDED, {"because": "paused"}, at=130.0),
        Event(Kind.SESSION, {}, at=1000.0),
    )
    assert found.seconds_before == 30.0
    assert found.ended is None


@pytest.mark.parametrize(("again", "stopped"), [(True, False), (False, True)])
def test_a_new_session_reopens_what_may_go_on(again: bool, stopped: bool) -> None:
    body: dict[str, Any] = {"item": "", "because": "time used up", "detail": "", "again": again}
    found = state(Event(Kind.SESSION, {}), Event(Kind.STOPPED, body), Event(Kind.SESSION, {}))
    assert (found.items[""].stopped is not None) == stopped


def test_every_kind_of_event_is_understood() -> None:
    for kind in Kind:
        assert hasattr(RunState, f"_{kind.value}"), kind
