"""How far a run is, for whoever watches it: the one protocol of progress
(`solvers.result.Progress`), made of the journal's events.

A run over several fields tells its state in a line: items, money, rate, time left. A run of one
field tells its story instead, purchase by purchase, with no share: nobody knows how long it will
be. Who has a method `event` is given the state as a document instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.journal import Event, Kind
from rrf_design.texts import digits

if TYPE_CHECKING:
    from solvers.result import Progress


class ProgressReport:
    """Called with every event of a session, once it is committed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._event: Callable[[Mapping[str, Any]], None] | None = getattr(progress, "event", None)
        self._totals: dict[str, Any] = {"items": 1, "budget": None, "money": None, "open": 0}
        self._done = self._calls = self._called = self._ended = self._asked = 0
        self._spent = self._paid = 0.0
        self._began = self._now = 0.0

    def __call__(self, event: Event) -> None:
        self._count(event)
        if self._event is not None:
            self._event(self.document())
            return
        if self._totals["items"] > 1:
            self._progress(self._done / self._totals["items"], None, self.words)
            return
        told = _news(event)
        if told:
            self._progress(None, None, told)

    @property
    def words(self) -> str:
        """The state of the run in one line."""
        totals, rate, left = self._totals, self.rate, self.seconds_left
        parts = [f"{self._done:,} of {totals['items']:,} items"]
        if totals["open"]:
            parts.append(f"{min(self._asked, totals['open']):,} of {totals['open']:,} questions")
        parts.append(f"spent {self._spent:g}{_of(totals['budget'])}")
        if self._paid or totals["money"] is not None:
            parts.append(f"money {self._paid:.4g}{_of(totals['money'])}")
        parts.append(f"{self._calls:,} calls" + ("" if rate is None else f", {rate:.3g} a second"))
        if left is not None:
            parts.append(f"about {_duration(left)} left")
        return "; ".join(parts)

    @property
    def rate(self) -> float | None:
        """Calls a second in this session."""
        seconds = self._now - self._began
        return self._called / seconds if seconds > 0 and self._called else None

    @property
    def seconds_left(self) -> float | None:
        """As the session went so far: for the questions that every item has, and after them for the
        items; None while nothing can be said.
        """
        seconds, open_ = self._now - self._began, self._totals["open"]
        if seconds <= 0:
            return None
        if self._asked < open_:
            return (open_ - self._asked) * seconds / self._asked if self._asked else None
        return (self._totals["items"] - self._done) * seconds / self._ended if self._ended else None

    def document(self) -> dict[str, Any]:
        """The state of the run for programs."""
        totals = self._totals
        return {
            "event": "progress",
            "at": self._now,
            "done": self._done,
            "items": totals["items"],
            "asked": min(self._asked, totals["open"]),
            "questions": totals["open"],
            "spent": self._spent,
            "budget": totals["budget"],
            "money": self._paid,
            "money_limit": totals["money"],
            "calls": self._calls,
            "calls_per_second": self.rate,
            "seconds_left": self.seconds_left,
        }

    def _count(self, event: Event) -> None:
        body, self._now = event.body, event.at
        if event.kind is Kind.SESSION:
            self._totals |= body
            self._done, self._calls = body["done"], body["calls"]
            self._spent, self._paid = body["spent"], body["paid"]
            self._began = event.at
        elif event.kind is Kind.SETTLED:
            self._spent += body["price"]
            self._paid += body["money"]
            self._calls += body["calls"]
            self._called += body["calls"]
            self._asked += not body["price"]
        elif event.kind is Kind.RELEASED:  # attempts that nobody answered
            self._paid += body.get("money", 0.0)
            self._calls += body.get("calls", 0)
            self._called += body.get("calls", 0)
        elif event.kind is Kind.STOPPED:
            self._done += 1
            self._ended += 1


def _news(event: Event) -> str:
    """One line per purchase and decision of a single field; empty where there is nothing to
    tell.
    """
    body = event.body
    if event.kind is Kind.SETTLED:
        value = "" if body["value"] is None else f" = {', '.join(map(digits, body['value']))}"
        return f"  {body['name']}: {body['outcome']}{value}  [{body['price']:g}]"
    if event.kind is Kind.ROUND and "gamma" in body:
        where = f", worst on {', '.join(body['support'])}" if body["support"] else ""
        return f"margin {body['gamma']:.4g}{where}; next: {', '.join(body['names'])}"
    if event.kind is Kind.SCHEDULE and body.get("replaces"):
        return f"planned again without what failed: {', '.join(body['names']) or 'nothing helps'}"
    if event.kind is Kind.SCHEDULE and body.get("route"):
        return str(body["route"])
    if event.kind is Kind.DOUBT:
        return f"  {body['name']}: in doubt after a crash; {body['policy']}"
    if event.kind is Kind.ABANDONED:
        return f"  {body['name']}: not waited for; what was reserved for it counts as lost"
    return f"stopped: {body['because']}" if event.kind is Kind.STOPPED else ""


def _of(limit: float | None) -> str:
    return "" if limit is None else f" of {limit:g}"


def _duration(seconds: float) -> str:
    for size, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.0f} s"
