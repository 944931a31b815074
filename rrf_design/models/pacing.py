"""How many calls to one server are under way at once: as many as are allowed while it answers, half
as many when it throttles.

Additive increase, multiplicative decrease, as between computers on a network: after a 429 the limit
is halved, once for all calls that were under way together, and grows again with the answers. What
the server asks for is obeyed: Retry-After by all, and where its rate headers say how many more
requests it allows, no more are begun before it allows others. A server that does not answer at all
is tried by one call at a time, with growing pauses, until patience ends.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rrf_design.models.base import RETRYABLE, Attempt, NotBegun, Outcome, Request

PATIENCE = 300.0
"""Seconds without any answer after which a server counts as gone."""
AWAY = 8
"""So many failures in a row, and the server is taken to be away: one call at a time tries it."""
LONGEST = 30.0
"""Seconds between two such trials at most; a server that wants more is obeyed, up to PATIENCE."""
FIRST = 0.25
"""Seconds of the first pause where the server names none; each further one without an answer is
twice as long.
"""


class _Turn(NamedTuple):
    """When a call was begun, and the how many-th it was."""

    at: float
    number: int


class Pace:
    """Belongs to one model and one event loop.

    With `patient=False` bare calls cost money, so every attempt that arrived counts.
    """

    def __init__(self, most: int, *, patient: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self._patient, self._clock = most, patient, clock
        self.limit = float(most)
        self.busy = 0
        self.heard = False
        """It has answered before, so its name, address and key are right."""
        self.stopped = False
        self._quiet_until = float("-inf")
        self._slowed_at = float("-inf")
        self._row = self._trials = 0
        self._begun = self._heard_from = 0
        self._last, self._last_until = 0, float("-inf")
        """The number of the last call that the server's rate headers allow, and until when they
        speak.
        """
        self._failing_since: float | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._alarm: asyncio.TimerHandle | None = None

    def forgives(self, attempt: Attempt) -> bool:
        """Attempts that cost nothing are repeated until the server is back; not where it was never
        there.
        """
        bare = attempt.usage is not None and attempt.usage.calls == 0
        return self.heard and attempt.free and (self._patient or bare)

    @property
    def hopeless(self) -> bool:
        """The server has not answered anybody for longer than patience lasts, or nobody wants to
        wait any more.
        """
        since = self._failing_since
        return self.stopped or (since is not None and self._clock() - since > PATIENCE)

    @property
    def room(self) -> int:
        """How many more calls may be begun now."""
        now = self._clock()
        if now < self._quiet_until:
            return 0
        free = (1 if self._row >= AWAY else int(self.limit)) - self.busy
        if now < self._last_until:
            free = min(free, self._last - self._begun)
        return max(0, free)

    def begin(self) -> _Turn:
        self.busy += 1
        self._begun += 1
        return _Turn(self._clock(), self._begun)

    def end(self, attempt: Attempt, turn: _Turn) -> None:
        """Learn from an attempt that was this turn's."""
        self.busy -= 1
        now = self._clock()
        if attempt.outcome not in RETRYABLE:
            self.heard, self._failing_since = True, None
            self._row = self._trials = 0
            self.limit = min(float(self.most), self.limit + 1.0)
        else:
            # Whoever throttles is there; only silence and errors in a row mean that nobody is.
            self._row = 0 if attempt.outcome is Outcome.RATE_LIMITED else self._row + 1
            self._failing_since = now if self._failing_since is None else self._failing_since
            self._slow_down(attempt.outcome, turn.at, now)
        if attempt.allowance is not None and turn.number >= self._heard_from:
            # What was left when this call arrived: all that were begun after it have taken from it
            # since.
            self._heard_from, self._last = turn.number, turn.number + attempt.allowance[0]
            self._last_until = now + min(attempt.allowance[1], PATIENCE)
        if attempt.retry_after:
            self._quiet_until = max(self._quiet_until, now + min(attempt.retry_after, PATIENCE))
        self._rouse()

    def _slow_down(self, outcome: Outcome, begun: float, now: float) -> None:
        """After a 429, or where nobody answers; once for all calls that were under way together."""
        throttled = outcome is Outcome.RATE_LIMITED
        away = self._row >= AWAY or not self.heard
        if begun <= self._slowed_at or not (throttled or away):
            return
        self._slowed_at = now
        self._trials += 1
        if throttled:
            self.limit = max(1.0, self.limit / 2.0)
        pause = min(LONGEST, FIRST * 2.0 ** min(self._trials - 1, 20))
        # The jitter decides only when we ask again, never what is answered, so it needs no seed.
        self._quiet_until = max(self._quiet_until, now + random.uniform(0.5, 1.0) * pause)

    async def call(self, attempt: Callable[[Request], Awaitable[Attempt]], request: Request) -> Attempt:
        """Wait for a turn, make the attempt, learn from it.

        `NotBegun` if the session ends before its turn comes.
        """
        while not self.stopped and not self.room:
            woken = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            self._rouse()
            await woken
        if self.stopped:
            raise NotBegun
        turn = self.begin()
        try:
            made = await attempt(request)
        except BaseException:
            self.busy -= 1
            self._rouse()
            raise
        self.end(made, turn)
        return made

    def stop(self) -> None:
        """Let nobody wait any longer: those who have not begun leave."""
        self.stopped = True
        self._wake(len(self._waiting))

    def _rouse(self) -> None:
        """Wake as many as there is room for, now or when the quiet time is over."""
        if not self._waiting:
            return
        now, room = self._clock(), self.room
        until = max(self._quiet_until, self._last_until if self._begun >= self._last else self._quiet_until)
        if room:
            self._wake(room)
        elif until > now and self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(until - now, self._rung)

    def _rung(self) -> None:
        self._alarm = None
        self._rouse()

    def _wake(self, count: int) -> None:
        # A turn is only a hint: whoever is woken looks again whether there is room.
        for turn in self._waiting[:count]:
            if not turn.done():
                turn.set_result(None)
        del self._waiting[:count]
