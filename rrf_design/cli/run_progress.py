"""How far a run is: one line that says items, money, rate and time left.

On a terminal the line is written over itself; in a log it comes once a minute. A run of a single field tells its story instead, purchase
by purchase.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rrf_design.amounts import digits
from rrf_design.cli.output import note
from rrf_design.texts import showable

if TYPE_CHECKING:
    from rrf_design.acquisition.journal import Event

MINUTE = 60.0
BLINK = 0.2
"""Seconds between two lines in a log, and on a terminal."""


class RunProgress:
    """Called with every event of a session, once it is committed; `close` ends the line on a terminal."""

    def __init__(self, *, terminal: bool | None = None) -> None:
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._totals: dict[str, Any] = {"items": 1, "budget": None, "money": None}
        self._done = self._calls = self._called = self._ended = 0
        self._spent = self._paid = 0.0
        self._began = self._now = self._shown = 0.0
        self._width = 0

    def __call__(self, event: Event) -> None:
        self._count(event)
        if self._totals["items"] == 1:
            _tell(event)
            return
        if self._now - self._shown >= (BLINK if self._terminal else MINUTE):
            self._shown = self._now
            self._show()

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0

    @property
    def words(self) -> str:
        """The state of the run in one line."""
        totals, seconds = self._totals, self._now - self._began
        parts = [f"{self._done:,} of {totals['items']:,} items", f"spent {self._spent:g}{_of(totals['budget'])}"]
        if self._paid or totals["money"] is not None:
            parts.append(f"money {self._paid:.4g}{_of(totals['money'])}")
        rate = f", {self._called / seconds:.3g} a second" if seconds > 0 and self._called else ""
        parts.append(f"{self._calls:,} calls{rate}")
        if seconds > 0 and self._ended:
            parts.append(f"about {_duration((totals['items'] - self._done) * seconds / self._ended)} left")
        return "; ".join(parts)

    def _count(self, event: Event) -> None:
        from rrf_design.acquisition.journal import Kind

        body, self._now = event.body, event.at
        if event.kind is Kind.SESSION:
            self._totals |= body
            self._done, self._calls = body["done"], body["calls"]
            self._spent, self._paid = body["spent"], body["paid"]
            self._began = self._shown = event.at
        elif event.kind is Kind.SETTLED:
            self._spent += body["price"]
            self._paid += body["money"]
            self._calls += body["calls"]
            self._called += body["calls"]
        elif event.kind is Kind.STOPPED:
            self._done += 1
            self._ended += 1

    def _show(self) -> None:
        if not self._terminal:
            note(self.words)
            return
        text = self.words
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


def _tell(event: Event) -> None:
    """One line per purchase and decision of a single field."""
    from rrf_design.acquisition.journal import Kind

    body = event.body
    if event.kind is Kind.SETTLED:
        value = "" if body["value"] is None else f" = {', '.join(map(digits, body['value']))}"
        note(f"  {showable(body['name'])}: {body['outcome']}{value}  [{body['price']:g}]")
    elif event.kind is Kind.ROUND and "gamma" in body:
        where = f", worst on {', '.join(body['support'])}" if body["support"] else ""
        note(f"margin {body['gamma']:.4g}{where}; next: {', '.join(body['names'])}")
    elif event.kind is Kind.SCHEDULE and body.get("replaces"):
        note(f"planned again without what failed: {', '.join(body['names']) or 'nothing helps'}")
    elif event.kind is Kind.DOUBT:
        note(f"  {body['name']}: in doubt after a crash; {body['policy']}")
    elif event.kind is Kind.ABANDONED:
        note(f"  {body['name']}: not waited for; what was reserved for it counts as lost")
    elif event.kind is Kind.STOPPED:
        note(f"stopped: {body['because']}")


def _of(limit: float | None) -> str:
    return "" if limit is None else f" of {limit:g}"


def _duration(seconds: float) -> str:
    for size, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.0f} s"
