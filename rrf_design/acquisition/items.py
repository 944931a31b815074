"""One field of a run as the journal tells it: what is planned, under way, settled, failed and asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from rrf_design.acquisition.purchases import Buys, Purchase, Settled


@dataclass(slots=True)
class ItemState:
    """One field of the run."""

    schedule: list[str] = field(default_factory=list)
    planned: bool = False
    """A schedule was made, be it empty."""
    planned_without: frozenset[str] = frozenset()
    """What had failed when the schedule was made."""
    bound: float | None = None
    """The planner's proof: no affordable design has a margin above this."""
    round: list[str] = field(default_factory=list)
    """Names of the present round that have not been asked for yet."""
    taken: set[str] = field(default_factory=set)
    pending: dict[str, Purchase] = field(default_factory=dict)
    settled: dict[str, Settled] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)
    """Calls for a purchase that sessions made which ended before its outcome came: they count as attempts at it."""
    repeated: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of what is pending: how many calls were reserved beyond the first, and how many attempts counted before the last."""
    trajectory: list[Mapping[str, Any]] = field(default_factory=list)
    """One entry per round: names, what was committed before it, and the margin it started from."""
    stopped: Mapping[str, Any] | None = None

    @property
    def held(self) -> frozenset[str]:
        """Bought, whatever became of it."""
        return frozenset(self.settled)

    @property
    def failed(self) -> frozenset[str]:
        """What gave no value. Of a node that is asked several times only as many asks count as failed as could not be read, the last ones: the
        node itself fails where none could."""
        failed = frozenset(name for name, entry in self.settled.items() if not entry.ok)
        for asks in self._asked_again() if failed else ():
            lost = len(failed.intersection(asks))
            failed = failed.difference(asks).union(asks[len(asks) - lost :])
        return failed

    def _asked_again(self) -> list[list[str]]:
        """The settled asks of every node that was asked more than once, in order."""
        asks: dict[str, list[str]] = {}
        for name, entry in dict(self.settled).items():  # also read by threads that fetch
            if entry.again_of:
                asks.setdefault(entry.again_of, []).append(name)
        return [[node, *names] if node in self.settled else names for node, names in asks.items()]

    @property
    def waiting(self) -> dict[str, Purchase]:
        """Pending purchases that the run waits for."""
        return {name: purchase for name, purchase in self.pending.items() if not purchase.deferred}

    @property
    def unplanned(self) -> frozenset[str]:
        """What failed after the schedule was made, which therefore counts on it."""
        return self.failed - self.planned_without

    @property
    def done(self) -> bool:
        """Nothing of it is under way or waits for a person: it has its result."""
        return self.stopped is not None and not self.waiting and self.stopped["because"] != "waiting for review"

    def values(self, buys: Buys) -> dict[str, tuple[float, ...]]:
        """What was read, by name; of a node that was asked several times, the mean of what could be read."""
        found = {
            name: entry.value
            for name, entry in dict(self.settled).items()  # also read by threads that fetch
            if entry.buys is buys and entry.ok and entry.value is not None
        }
        for asks in self._asked_again() if buys is Buys.ANSWER else ():
            read = [found.pop(name) for name in asks if name in found]
            if read:
                node = self.settled[asks[-1]].again_of
                found[node] = tuple(fsum(part) / len(read) for part in zip(*read, strict=True))
        return found
