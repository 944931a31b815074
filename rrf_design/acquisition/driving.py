"""Between `ask` and `tell`: keeps the model's slots busy, and ends a session so that nothing is left in doubt.

A session ends because the run is finished, because nobody can be reached, or because the user says so. Then nothing new
is asked, and what is under way is waited for, but not for ever: at the second signal, or after `GRACE` seconds,
what was reserved for it is booked as lost (nothing, for a local model), and it can be bought again.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import InvalidStateError
from queue import Empty
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.crew import Courier, Crew, Repetition, Returned
from rrf_design.acquisition.purchases import Buys, Purchase, Settlement
from rrf_design.acquisition.sources import NOTHING, Attempted, Unreachable
from rrf_design.models.base import NotBegun

if TYPE_CHECKING:
    from rrf_design.acquisition.fetching import Fetcher
    from rrf_design.acquisition.loop import Acquirer
    from rrf_design.acquisition.redaction import Redactor

GRACE = 60.0
"""Seconds that calls under way are waited for after the first signal."""
AHEAD = 8
"""One purchase is reserved ahead for so many slots."""
PORTIONS = 4
"""The slots are filled in so many portions, each with a commit of its own; never less than `LEAST` purchases at once."""
LEAST = 32
GLANCE = 0.5
"""Seconds after which the loop looks up while it waits: the system may hand a signal to another thread, which wakes nobody."""
ERRANDS = 4
"""Threads for sources that ask no model: tests, commands."""
TRIES = 3
"""So often a question is bought anew that a server does not answer while it answers others."""
INTERRUPTED = "interrupted"
NOT_BEGUN = "not begun when the session ended"


class Driver:
    """Runs one session of an acquirer. `paused` says why it ended early; `error` is what it has to be ended with."""

    def __init__(self, acquirer: Acquirer, fetcher: Fetcher, redactor: Redactor) -> None:
        self.acquirer, self.fetcher, self.redactor = acquirer, fetcher, redactor
        self.paused: str | None = None
        self.error: BaseException | None = None
        self._signals = 0
        self._patience = float("inf")
        self._under_way: dict[str, Purchase] = {}
        courier = Courier(self._fetch_async, hurry=fetcher.hurry, release=fetcher.release)
        self._crew = Crew(self._fetch, self._lane, courier)
        # Many calls at once: the next ones are reserved ahead, so that no slot waits for a commit. Few: not worth it.
        slots = sum(max(1, model.slots) for model in fetcher.models)
        self._room = slots + slots // AHEAD
        # Asked for and told in portions: while one portion is decided on and committed, the others are under way.
        self._portion = max(LEAST, slots // PORTIONS)
        self._back: deque[Returned] = deque()
        self._wishes: list[Repetition] = []
        self._answered = any(
            e.buys is Buys.ANSWER and e.ok for s in acquirer.state.items.values() for e in s.settled.values()
        )

    def run(self) -> None:
        with _signals(self._interrupt), contextlib.closing(self._crew):
            while True:
                room = self._room - len(self._under_way)
                asked = self._ask(min(room, self._portion))
                self._under_way.update((purchase.id, purchase) for purchase in asked)
                self._crew.start(asked)
                if not self._under_way:
                    break
                self._tell(self._results(wait=len(asked) < self._portion or room == len(asked)))
                self._grant()
                if self.paused is not None:
                    self._recall()
                if self._signals > 1 or time.monotonic() > self._patience:
                    self._abandon()
                    break
        self._crew.refuse()
        if self.error is not None:
            raise self.error

    def _grant(self) -> None:
        """Repeated calls are reserved like first ones: in the journal before anything leaves the machine."""
        wishes, self._wishes = self._wishes, []
        if not wishes:
            return
        may = [self.paused is None and self.acquirer.again(w.purchase, w.tried, flush=False) for w in wishes]
        self.acquirer.commit()
        for wish, granted in zip(wishes, may, strict=True):
            with contextlib.suppress(InvalidStateError):  # its task was cancelled meanwhile
                wish.granted.set_result(granted)

    def _interrupt(self) -> None:
        """In a signal handler: note it, and let the loop look at it."""
        self._signals += 1
        if self._signals == 1:
            self.paused = INTERRUPTED
            self._patience = time.monotonic() + GRACE
        self._crew.wake()

    def _ask(self, count: int) -> tuple[Purchase, ...]:
        """The next purchases that are ours to fetch; those for people wait in the queue."""
        while self.paused is None and count > 0:
            asked = self.acquirer.ask(count)
            ours = tuple(purchase for purchase in asked if not purchase.deferred)
            if ours or not asked:
                return ours
        return ()

    def _lane(self, purchase: Purchase) -> tuple[Hashable, int] | None:
        """Each model has its own threads, or none where the event loop asks it."""
        model = self.fetcher.whom(purchase)
        if model is None:
            return None, ERRANDS
        return None if model.asynchronous else (id(model), max(1, model.slots))

    def _fetch(self, purchase: Purchase) -> Settlement:
        state = self.acquirer.state.items[purchase.item]
        return self.fetcher.fetch(purchase, state, lambda tried: self._crew.again(purchase, tried))

    async def _fetch_async(self, purchase: Purchase) -> Settlement:
        state = self.acquirer.state.items[purchase.item]
        return await self.fetcher.fetch_async(purchase, state, lambda tried: self._crew.again_async(purchase, tried))

    def _results(self, *, wait: bool) -> list[Returned]:
        """A portion of what is back; waits for the first where there is nothing else to do, and looks up now and then."""
        left = min(GLANCE, self._patience - time.monotonic()) if wait and not self._back else 0.0
        with contextlib.suppress(Empty):
            self._sort(self._crew.done.get(timeout=left) if left > 0.0 else self._crew.done.get_nowait())
            while True:
                self._sort(self._crew.done.get_nowait())
        found = [self._back.popleft() for _ in range(min(len(self._back), self._portion))]
        self._crew.returned(found)
        return found

    def _sort(self, entries: tuple[Returned | Repetition, ...]) -> None:
        for entry in entries:
            if isinstance(entry, Repetition):
                self._wishes.append(entry)
            else:
                self._back.append(entry)

    def _tell(self, results: list[Returned]) -> None:
        settled = []
        for result in results:
            purchase, settlement = result.purchase, result.settlement
            del self._under_way[purchase.id]
            if settlement is None:
                self._fail(purchase, result.error)
            elif settlement.outcome == "failed" and not self._answered and purchase.buys is Buys.ANSWER:
                # Not one answer so far: a wrong key or model name would burn the whole budget in failures.
                reply = settlement.evidence.get("reply", {})
                words = f"the backend refuses the call: {reply.get('detail', '')}"
                doubtful = reply.get("usage", {}).get("doubtful", 0)
                self._pause(purchase, words, Attempted(settlement.calls, settlement.money, doubtful))
            else:
                self._answered |= settlement.ok and purchase.buys is Buys.ANSWER
                settled.append(settlement)
        # The next `ask` follows at once and commits these together with its intents.
        self.acquirer.tell(*settled, flush=self.paused is not None)
        self.fetcher.write_kept()

    def _fail(self, purchase: Purchase, error: BaseException | None) -> None:
        if isinstance(error, KeyboardInterrupt):  # raised by the fetching itself: the call may have been made
            self.acquirer.abandon(purchase, INTERRUPTED)
            self._interrupt()
            return
        if isinstance(error, NotBegun):
            self.acquirer.release(purchase, NOT_BEGUN, flush=False)
            return
        if isinstance(error, Unreachable):
            if error.passing and purchase.attempt + 1 < TRIES:
                words = self.redactor.text(str(error))
                self.acquirer.release(purchase, words, used=error.used, flush=False)
            elif error.passing:  # it answers all others: this question has no answer
                self._settle_unanswered(purchase, error)
            else:
                self._pause(purchase, str(error), error.used)
            return
        self._pause(purchase, f"{type(error).__name__}: {error}")
        self.error = self.error or error

    def _settle_unanswered(self, purchase: Purchase, error: Unreachable) -> None:
        used = error.used
        evidence: dict[str, Any] = {"unanswered": self.redactor.text(str(error))}
        evidence |= {"doubtful": used.doubtful} if used.doubtful else {}
        self.acquirer.tell(
            Settlement(purchase, "unreachable", None, False, used.money, used.calls, evidence), flush=False
        )

    def _pause(self, purchase: Purchase, reason: str, used: Attempted = NOTHING) -> None:
        model = self.fetcher.whom(purchase)
        words = self.redactor.text(f"{'' if model is None else model.name + ': '}{reason}")
        self.paused = self.paused or words
        self.acquirer.release(purchase, words, used=used, flush=False)

    def _recall(self) -> None:
        """What was reserved ahead and not begun is given back: it was not bought."""
        for purchase in self._crew.recall():
            del self._under_way[purchase.id]
            self.acquirer.release(purchase, NOT_BEGUN)

    def _abandon(self) -> None:
        for purchase in self._under_way.values():
            self.acquirer.abandon(purchase, "the session was ended without waiting for it")
        self._under_way.clear()


@contextlib.contextmanager
def _signals(noted: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM are noted instead of raised while this lasts; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler: Any = lambda number, frame: noted()  # noqa: E731
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
