"""Who fetches: one event loop for models that can have many calls under way, threads for all others; the run itself never waits.

Each model has its own lane with as many threads as it has slots, so a slow one holds up nobody else. Threads are daemons: a user who
asks twice to stop does not wait for a server that does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from rrf_design.acquisition.purchases import Purchase, Settlement

GATHER = 0.005
"""Seconds for which the event loop collects answers before it hands them over together, while many are under way."""
MANY = 32
ENDING = 5.0
"""Seconds that closing waits for the event loop to close its connections."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A purchase that is back: its settlement, or the error that fetching it ended with."""

    purchase: Purchase
    settlement: Settlement | None = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Repetition:
    """Whoever fetches a purchase wants to call once more, after so many attempts that count; `granted` tells whether it may."""

    purchase: Purchase
    tried: int
    granted: Future[bool] = field(default_factory=Future)


Done = SimpleQueue[tuple[Returned | Repetition, ...]]


@dataclass(slots=True)
class _Lane:
    """Purchases for one model, and the threads that fetch them."""

    size: int
    work: SimpleQueue[Purchase | None] = field(default_factory=SimpleQueue)
    threads: int = 0
    busy: int = 0


class Crew:
    """Fetches through threads, begun when they are needed. `start` hands purchases out, `done` gives what is back.

    `lane` says which lane a purchase belongs to and how many threads it may have; a purchase without one goes to the `courier`.
    """

    def __init__(
        self,
        fetch: Callable[[Purchase], Settlement],
        lane: Callable[[Purchase], tuple[Hashable, int] | None],
        courier: Courier | None = None,
    ) -> None:
        self._fetch, self._lane, self._courier = fetch, lane, courier
        self.done: Done = SimpleQueue()
        """Results as they come back, some together; an empty tuple only wakes whoever waits."""
        self._lanes: dict[Hashable, _Lane] = {}
        self._thread_names = 0

    def start(self, purchases: Iterable[Purchase]) -> None:
        flying = []
        for purchase in purchases:
            found = self._lane(purchase)
            if found is None:
                flying.append(purchase)
            else:
                self._hand_over(purchase, *found)
        if flying:
            assert self._courier is not None
            self._courier.start(flying, self.done)

    def _hand_over(self, purchase: Purchase, name: Hashable, size: int) -> None:
        lane = self._lanes.setdefault(name, _Lane(size))
        lane.busy += 1
        if lane.threads < min(lane.size, lane.busy):
            lane.threads += 1
            self._thread_names += 1
            threading.Thread(target=self._serve, args=(lane,), name=f"fetch-{self._thread_names}", daemon=True).start()
        lane.work.put(purchase)

    def returned(self, results: Iterable[Returned]) -> None:
        """These were taken from `done`: as many threads are free again."""
        for result in results:
            found = self._lane(result.purchase)
            if found is not None:
                self._lanes[found[0]].busy -= 1

    def recall(self) -> list[Purchase]:
        """Take back what nobody has begun to fetch; what waits in the event loop comes back through `done` as `NotBegun`."""
        found: list[Purchase] = []
        for lane in self._lanes.values():
            with contextlib.suppress(Empty):
                while (purchase := lane.work.get_nowait()) is not None:
                    found.append(purchase)
                    lane.busy -= 1
        if self._courier is not None:
            self._courier.hurry()
        return found

    def again(self, purchase: Purchase, tried: int) -> bool:
        """Ask the run whether a call may be repeated, and wait until that is written down; for threads that fetch."""
        wish = Repetition(purchase, tried)
        self.done.put((wish,))
        return wish.granted.result()

    async def again_async(self, purchase: Purchase, tried: int) -> bool:
        """The same in the event loop."""
        assert self._courier is not None
        wish = Repetition(purchase, tried)
        self._courier.hand_over(wish, self.done)
        return await asyncio.wrap_future(wish.granted)

    def refuse(self) -> None:
        """Nobody listens any more: whoever waits for leave to call again is told no."""
        with contextlib.suppress(Empty):
            while True:
                for entry in self.done.get_nowait():
                    if isinstance(entry, Repetition):
                        entry.granted.set_result(False)

    def wake(self) -> None:
        """Let whoever waits for results look around; safe in a signal handler."""
        self.done.put(())

    def close(self) -> None:
        for lane in self._lanes.values():
            for _ in range(lane.threads):
                lane.work.put(None)
        if self._courier is not None:
            self._courier.close()

    def _serve(self, lane: _Lane) -> None:
        while (purchase := lane.work.get()) is not None:
            try:
                self.done.put((Returned(purchase, self._fetch(purchase)),))
            except BaseException as error:  # whatever it is, the loop must hear of it, or it would wait for ever
                self.done.put((Returned(purchase, error=error),))


class Courier:
    """One thread with an event loop, begun with the first purchase. Hands over what is back in batches: each handing over wakes
    another thread, which costs more than an answer does."""

    def __init__(
        self,
        fetch: Callable[[Purchase], Awaitable[Settlement]],
        *,
        hurry: Callable[[], None],
        release: Callable[[], Awaitable[None]],
    ) -> None:
        self._fetch, self._hurry, self._release = fetch, hurry, release
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._back: list[Returned | Repetition] = []

    def start(self, purchases: list[Purchase], done: Done) -> None:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="fetch-loop", daemon=True)
            self._thread.start()
        self._loop.call_soon_threadsafe(self._begin, purchases, done)

    def hurry(self) -> None:
        """Whoever waits for a turn comes back without having begun."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._hurry)

    def close(self) -> None:
        """End the loop; calls that are still under way are dropped, and whoever dropped them has booked them."""
        if self._loop is None or self._thread is None:
            return
        with contextlib.suppress(RuntimeError):  # it may have ended by itself
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ENDING)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            for task in self._tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            loop.run_until_complete(self._release())
        finally:
            loop.close()

    def _begin(self, purchases: list[Purchase], done: Done) -> None:
        for purchase in purchases:
            task = asyncio.get_running_loop().create_task(self._one(purchase, done))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _one(self, purchase: Purchase, done: Done) -> None:
        try:
            back = Returned(purchase, await self._fetch(purchase))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever it is, the run must hear of it
            back = Returned(purchase, error=error)
        self.hand_over(back, done)

    def hand_over(self, back: Returned | Repetition, done: Done) -> None:
        """In the event loop: what the run is to hear."""
        self._back.append(back)
        if len(self._back) == 1:
            wait = GATHER if len(self._tasks) > MANY else 0.0
            asyncio.get_running_loop().call_later(wait, self._post, done)

    def _post(self, done: Done) -> None:
        back, self._back = self._back, []
        done.put(tuple(back))
