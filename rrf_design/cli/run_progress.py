"""A run's progress on standard error: on a terminal its state is one line, written over itself; in a log a line a minute.

What has no share is news, and is told at once: the story of a single field.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rrf_design.cli.output import note
from rrf_design.texts import showable

MINUTE = 60.0
BLINK = 0.2
"""Seconds between two lines in a log, and on a terminal."""


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
