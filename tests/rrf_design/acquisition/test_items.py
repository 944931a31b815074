"""One field of a run: what counts as held, failed, waiting and read."""

from __future__ import annotations

from rrf_design.acquisition.items import ItemState
from rrf_design.acquisition.purchases import Buys, Purchase, Settled


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
