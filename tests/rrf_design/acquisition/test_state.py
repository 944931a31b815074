"""The fold: purchases written down and read back, money counted three ways, doubts, releases,
sessions, and what counts as held, failed and read.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from rrf_design.acquisition._purchases import BatchRecord, Buys, Purchase, Settled, Settlement, purchase_id
from rrf_design.acquisition._state import ItemState, RunState
from rrf_design.acquisition.journal import Event, Kind

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


def settled(name: str, value: float | None, *, buys: Buys = Buys.ANSWER, again_of: str = "") -> Settled:
    numbers = None if value is None else (value,)
    return Settled(name, buys, value is not None, "", numbers, 1.0, 0.0, 0, again_of=again_of)


def item(*entries: Settled) -> ItemState:
    return ItemState(settled={entry.name: entry for entry in entries})


def test_values_are_those_that_were_read() -> None:
    state = item(settled("a", 1.0), settled("b", None), settled("x", 5.0, buys=Buys.ANCHOR))
    assert state.values(Buys.ANSWER) == {"a": (1.0,)}
    assert state.values(Buys.ANCHOR) == {"x": (5.0,)}
    assert (state.held, state.failed) == ({"a", "b", "x"}, {"b"})


def test_a_node_that_is_asked_again_says_the_mean_of_what_could_be_read() -> None:
    state = item(settled("a", 1.0), settled("a#2", None, again_of="a"), settled("a#3", 4.0, again_of="a"))
    assert state.values(Buys.ANSWER) == {"a": (2.5,)}
    assert state.failed == {"a#3"}  # one of three is lost, and it counts as the last


def test_a_node_fails_where_no_ask_could_be_read() -> None:
    state = item(settled("a", None), settled("a#2", None, again_of="a"))
    assert state.failed == {"a", "a#2"}
    assert state.values(Buys.ANSWER) == {}


def test_the_run_does_not_wait_for_people_and_is_not_done_while_it_waits_for_them() -> None:
    state = ItemState(pending={"p": Purchase("", "p", Buys.ANCHOR, 1.0, deferred=True)})
    assert state.waiting == {}
    assert not state.done
    state.stopped = {"because": "waiting for review"}
    assert not state.done
    state.stopped = {"because": "goal reached"}
    assert state.done
    state.pending["q"] = Purchase("", "q", Buys.ANSWER, 1.0)
    assert not state.done


def test_what_failed_after_the_schedule_was_made_is_unplanned() -> None:
    state = item(settled("a", None), settled("b", None))
    state.planned_without = frozenset({"a"})
    assert state.unplanned == {"b"}


PLAIN = Purchase("", "a", Buys.RELATION, 1.5)
FULL = Purchase(
    "x",
    "n",
    Buys.ANSWER,
    0.1,
    0.5,
    attempt=2,
    deferred=True,
    calls=3,
    model="mini",
    tried=4,
    attempts=5,
    again_of="m",
)


@pytest.mark.parametrize("purchase", [PLAIN, FULL])
def test_an_intent_is_read_back(purchase: Purchase) -> None:
    assert Purchase.of(purchase.intent()) == purchase


def test_an_intent_says_no_more_than_it_must() -> None:
    assert set(PLAIN.intent().body) == {"item", "name", "buys", "price"}


def test_a_settlement_is_remembered_without_its_evidence() -> None:
    event = Settlement(
        FULL, "read", (7.0,), money=0.2, calls=1, evidence={"reply": {"text": "seven"}}, source="judge"
    ).event()
    found = Settled.of(event, FULL)
    assert (found.value, found.text, found.money, found.source, found.again_of) == ((7.0,), "seven", 0.2, "judge", "m")
    assert (found.name, found.buys, found.attempt, found.ok) == ("n", Buys.ANSWER, 2, True)


def test_what_is_given_up_has_no_value_and_keeps_its_price() -> None:
    found = Settled.in_doubt(FULL, money=0.5, at=9.0)
    assert (found.ok, found.value, found.price, found.money, found.outcome) == (False, None, 0.1, 0.5, "in doubt")


def test_names_of_purchases_are_unique_over_items() -> None:
    assert purchase_id("", "a") == "a"
    assert len({purchase_id(item, "a") for item in ("", "x", "y")}) == 3


def test_a_batch_is_written_down_before_and_after_it_has_a_name() -> None:
    record = BatchRecord("t", "mini", ("a", "b"), mark="f-1")
    assert record.document() == {"token": "t", "model": "mini", "purchases": ["a", "b"], "mark": "f-1"}
    assert record.named("batch-7").document() == {"token": "t", "model": "mini", "batch": "batch-7"}
