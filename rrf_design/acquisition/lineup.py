"""Items that may have something to do, first ones first: so items are finished roughly in order, and none is looked at in vain."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable


class Lineup:
    """A queue of names in a fixed order, none twice. `join` is cheap, `first` skips and drops those that are not busy."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._places = {name: place for place, name in enumerate(self._names)}
        self._heap: list[int] = []
        self._waiting: set[int] = set()

    def join(self, name: str) -> None:
        place = self._places[name]
        if place not in self._waiting:
            self._waiting.add(place)
            heapq.heappush(self._heap, place)

    def first(self, busy: Callable[[str], bool]) -> str | None:
        """The first name that is busy, which stays; those before it that are not leave until they join again."""
        while self._heap:
            name = self._names[self._heap[0]]
            if busy(name):
                return name
            self._waiting.discard(heapq.heappop(self._heap))
        return None

    def sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self._places.__getitem__)
