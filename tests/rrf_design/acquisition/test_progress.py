"""What a run says of itself while it goes on."""

from __future__ import annotations

from typing import Any

from rrf_design.acquisition._progress import ProgressReport
from rrf_design.acquisition.journal import Event, Kind

SESSION = {"budget": 400.0, "money": None, "items": 300, "done": 0, "spent": 0.0, "paid": 0.0, "calls": 0}


def settled(at: float, **changes: Any) -> Event:
    body = {"item": "i", "name": "n", "outcome": "answered", "value": [7.0], "price": 0.5, "money": 0.0, "calls": 1}
    return Event(Kind.SETTLED, body | changes, at=at)


def listening() -> tuple[ProgressReport, list[tuple[Any, Any, str]]]:
    heard: list[tuple[Any, Any, str]] = []
    return ProgressReport(lambda *told: heard.append(told)), heard


def test_the_line_says_items_money_rate_and_time_left() -> None:
    teller, heard = listening()
    teller(Event(Kind.SESSION, SESSION, at=0.0))
    for i in range(100):
        teller(settled(float(i)))
    teller(Event(Kind.STOPPED, {"item": "i", "because": "x"}, at=100.0))
    assert heard[-1] == (1 / 300, None, "1 of 300 items; spent 50 of 400; 100 calls, 1 a second; about 8.31 h left")


def test_money_is_shown_where_there_is_a_limit() -> None:
    teller, heard = listening()
    teller(Event(Kind.SESSION, SESSION | {"money": 2.0, "paid": 0.25, "done": 7, "calls": 9}, at=0.0))
    assert heard[-1][2] == "7 of 300 items; spent 0 of 400; money 0.25 of 2; 9 calls"


def test_a_single_field_tells_its_story() -> None:
    teller, heard = listening()
    teller(Event(Kind.SESSION, SESSION | {"items": 1}, at=0.0))
    teller(settled(1.0))
    teller(settled(1.5, name="m", outcome="unreadable", value=None))
    teller(Event(Kind.ROUND, {"gamma": 0.5, "support": ["a", "b"], "names": ["x"]}, at=1.6))
    teller(Event(Kind.STOPPED, {"item": "", "because": "target reached"}, at=2.0))
    assert [words for _, _, words in heard] == [
        "  n: answered = 7  [0.5]",
        "  m: unreadable  [0.5]",
        "margin 0.5, worst on a, b; next: x",
        "stopped: target reached",
    ]
    assert {share for share, _, _ in heard} == {None}  # nobody knows how long it will be


def test_questions_that_every_item_has_say_how_long_it_takes_before_an_item_is_done() -> None:
    teller = ProgressReport(lambda share, bounds, words: None)
    teller(Event(Kind.SESSION, SESSION | {"open": 1200}, at=0.0))
    for i in range(301):
        teller(settled(0.1 * i, price=0.0))
    assert teller.words.startswith("0 of 300 items; 301 of 1,200 questions; spent 0 of 400; 301 calls, ")
    assert teller.words.endswith("about 90 s left")


def test_who_takes_events_gets_the_state_as_a_document() -> None:
    class Taker:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
            raise AssertionError("it wants events")

        def event(self, document: Any) -> None:
            self.seen.append(document)

    taker = Taker()
    teller = ProgressReport(taker)
    teller(Event(Kind.SESSION, SESSION | {"items": 1}, at=0.0))
    teller(settled(2.0))
    teller(Event(Kind.RELEASED, {"item": "i", "name": "n", "reason": "x", "calls": 2, "money": 0.5}, at=3.0))
    teller(Event(Kind.STOPPED, {"item": "i", "because": "x"}, at=4.0))
    last = taker.seen[-1]
    assert (last["event"], last["done"], last["items"], last["calls"], last["money"]) == ("progress", 1, 1, 3, 0.5)
    assert (last["calls_per_second"], last["seconds_left"]) == (0.75, 0.0)
