"""A run while it goes on, for everybody who watches it: read at most once a second whatever the
number of viewers, and told to each of them as server-sent events.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from rrf_design.acquisition import RunFollower
from rrf_design.errors import RRFError
from rrf_design.studio._library import Library, LibraryEntry

EVERY = 1.0
"""Seconds between two looks at a journal."""
WORKING = 0.6
"""Seconds of processor time that verdicts may take of each: the run has the machine."""
SILENCE = 15.0
"""Seconds after which a viewer is told that nothing has changed: a lost one is noticed."""


class _Watched:
    """One run and where it stands. Safe for several threads."""

    def __init__(self, entry: LibraryEntry, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._entry, self._clock, self._lock = entry, clock, threading.Lock()
        self._follower: RunFollower | None = None
        self._looked = -EVERY
        self._told: dict[str, Any] = {}

    def progress(self) -> dict[str, Any]:
        """Where the run stands, as of the last second; what went wrong with the journal instead."""
        with self._lock:
            if self._clock() - self._looked < EVERY and self._told:
                return self._told
            self._looked = self._clock()
            try:
                if self._follower is None:
                    self._follower = RunFollower(self._entry.run, store=self._entry.store)
                self._follower.read()
                left = self._follower.decide(WORKING)
                self._told = {**self._follower.progress(), "undecided": left}
            except RRFError as error:
                self._follower = None  # from the beginning, should it come back
                self._told = {**self._told, "trouble": str(error)}
            return self._told


class Watching:
    """The runs that somebody watches."""

    def __init__(self, library: Library) -> None:
        self._library, self._lock = library, threading.Lock()
        self._runs: dict[str, _Watched] = {}

    def of(self, entry: LibraryEntry) -> _Watched:
        with self._lock:
            return self._runs.setdefault(entry.key, _Watched(entry))


async def events(
    watched: _Watched, gone: Callable[[], Any], *, in_thread: Callable[..., Any], every: float = EVERY
) -> AsyncIterator[str]:
    """What a viewer is sent: where the run stands, whenever that has changed."""
    before, quiet = "", 0.0
    yield "retry: 1000\n\n"
    while not await gone():
        now = json.dumps(await in_thread(watched.progress))
        if now != before:
            before, quiet = now, 0.0
            yield f"event: progress\ndata: {now}\n\n"
        elif quiet >= SILENCE:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(every)
        quiet += every
