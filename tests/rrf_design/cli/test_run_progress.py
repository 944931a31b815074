"""One line about a run: items, money, rate, time left; written over itself on a terminal, once a minute in a log."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.acquisition.journal import Event, Kind
from rrf_design.cli.run_progress import RunProgress

SESSION = {"budget": 400.0, "money": None, "items": 300, "done": 0, "spent": 0.0, "paid": 0.0, "calls": 0}


def settled(at: float, **changes: Any) -> Event:
    body = {"item": "i", "name": "n", "outcome": "answered", "value": [7.0], "price": 0.5, "money": 0.0, "calls": 1}
    return Event(Kind.SETTLED, body | changes, at=at)


def play(progress: RunProgress, items: int, *, each: int = 4) -> None:
    progress(Event(Kind.SESSION, SESSION | {"items": items}, at=1000.0))
    for i in range(items):
        for j in range(each):
            progress(settled(1000.0 + i + j / each))
        progress(Event(Kind.STOPPED, {"item": f"i{i}", "because": "target reached"}, at=1001.0 + i))


def test_the_line_says_items_money_rate_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(terminal=False)
    progress(Event(Kind.SESSION, SESSION, at=0.0))
    for i in range(100):
        progress(settled(float(i)))
    progress(Event(Kind.STOPPED, {"item": "i", "because": "x"}, at=100.0))
    assert progress.words == "1 of 300 items; spent 50 of 400; 100 calls, 1 a second; about 8.31 h left"
    assert capsys.readouterr().out == ""


def test_a_log_has_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    play(RunProgress(terminal=False), 300)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("60 of 300 items; spent 120 of 400")


def test_a_terminal_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(terminal=True)
    play(progress, 20)
    progress.close()
    text = capsys.readouterr().err
    assert "\n" not in text
    assert "20 of 20 items" in text
    assert text.endswith("\r")


def test_a_single_field_tells_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(terminal=False)
    progress(Event(Kind.SESSION, SESSION | {"items": 1}, at=0.0))
    progress(settled(1.0, name="bell \x07"))
    progress(Event(Kind.STOPPED, {"item": "", "because": "target reached"}, at=2.0))
    assert capsys.readouterr().err.splitlines() == ["  bell \ufffd: answered = 7  [0.5]", "stopped: target reached"]


def test_money_is_shown_where_there_is_a_limit() -> None:
    progress = RunProgress(terminal=False)
    progress(Event(Kind.SESSION, SESSION | {"money": 2.0, "paid": 0.25, "done": 7, "calls": 9}, at=0.0))
    assert progress.words == "7 of 300 items; spent 0 of 400; money 0.25 of 2; 9 calls"
