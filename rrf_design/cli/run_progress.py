"""A run's progress on standard error: on a terminal its state is one line, written over itself; in
a log a line a minute.

What has no share is news, and is told at once: the story of a single field. For programs (`--json`)
it is an event: one JSON object a line on standard error, every few seconds and at the end.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from rrf_design.cli.output import note
from rrf_design.texts import showable

MINUTE = 60.0
BLINK = 0.2
EVENT = 5.0
"""Seconds between two lines in a log, on a terminal, and between two events for programs."""


class RunProgress:
    """Called as every progress is; `close` ends the line on a terminal."""

    def __init__(self, *, terminal: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._clock = clock
        self._shown = clock()
        self._width = 0

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        if share is None:
            note(words)
            return
        now = self._clock()
        if now - self._shown < (BLINK if self._terminal else MINUTE):
            return
        self._shown = now
        if not self._terminal:
            note(words)
            return
        text = showable(words)
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


class RunEvents:
    """The same for programs; `event` takes the state of a run as its teller has it, `close` says
    the last one.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown = clock()
        self._last: Mapping[str, Any] | None = None

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        self.event({"event": "progress", "share": share, "words": words})

    def event(self, document: Mapping[str, Any]) -> None:
        self._last = document
        if self._clock() - self._shown >= EVENT:
            self._show()

    def close(self) -> None:
        self._show()

    def _show(self) -> None:
        self._shown = self._clock()
        if self._last is not None:
            note(json.dumps(self._last))
            self._last = None
