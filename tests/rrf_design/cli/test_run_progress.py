"""A run's progress on standard error: written over itself on a terminal, once a minute in a log."""

from __future__ import annotations

import json

import pytest

from rrf_design.cli.run_progress import RunEvents, RunProgress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def play(progress: RunProgress, clock: Clock, items: int) -> None:
    for i in range(items):
        clock.now += 1.0
        progress((i + 1) / items, None, f"{i + 1} of {items} items")


def test_a_log_has_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    play(RunProgress(terminal=False, clock=clock), clock, 300)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert [line.split()[0] for line in seen.err.splitlines()] == ["60", "120", "180", "240", "300"]


def test_a_terminal_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = RunProgress(terminal=True, clock=clock)
    play(progress, clock, 20)
    progress.close()
    text = capsys.readouterr().err
    assert "\n" not in text
    assert "20 of 20 items" in text
    assert text.endswith("\r")


def test_news_is_told_at_once_and_shows_nothing_that_rings(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(terminal=False, clock=Clock())
    progress(None, None, "  bell \x07: answered = 7  [0.5]")
    progress(None, None, "stopped: target reached")
    assert capsys.readouterr().err.splitlines() == ["  bell \ufffd: answered = 7  [0.5]", "stopped: target reached"]


def test_programs_get_events_every_few_seconds_and_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    events = RunEvents(clock=lambda: now[0])
    for second in range(12):
        now[0] = float(second)
        events.event({"event": "progress", "calls": second})
    events.close()
    events.close()
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["calls"] for line in said] == [5, 10, 11]
    events(0.5, None, "half")
    events.close()
    assert json.loads(capsys.readouterr().err) == {"event": "progress", "share": 0.5, "words": "half"}
