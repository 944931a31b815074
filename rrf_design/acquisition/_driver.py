"""Between `ask` and `tell`: keeps the model's slots busy, and ends a session so that nothing is
left in doubt.

One event loop fetches for models that can have many calls under way, threads for all others; the
run itself never waits. Each model has its own lane with as many threads as it has slots, so a slow
one holds up nobody else. Threads are daemons: a user who asks twice to stop does not wait for a
server that does not answer.

A session ends because the run is finished, because nobody can be reached, or because the user says
so. Then nothing new is asked, and what is under way is waited for, but not for ever: at the second
signal, or after `GRACE` seconds, what was reserved for it is booked as lost (nothing, for a local
model), and it can be bought again.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from rrf_design.acquisition._purchases import Buys, Purchase, Settlement
from rrf_design.acquisition.sources.base import NOTHING, Attempted, Unreachable
from rrf_design.acquisition.stopping import Because
from rrf_design.errors import InputError
from rrf_design.models.base import NotBegun

if TYPE_CHECKING:
    from rrf_design.acquisition._fetch import Fetcher
    from rrf_design.acquisition._loop import Acquirer
    from rrf_design.acquisition.redaction import Redactor

GATHER = 0.005
"""Seconds for which the event loop collects answers before it hands them over together, while many
are under way.
"""
MANY = 32
ENDING = 5.0
"""Seconds that closing waits for the event loop to close its connections."""


@dataclass(frozen=True, slots=True)
class _Returned:
    """A purchase that is back: its settlement, or the error that fetching it ended with."""

    purchase: Purchase
    settlement: Settlement | None = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Repetition:
    """Whoever fetches a purchase wants to call once more, after so many attempts that count;
    `granted` tells whether it may.
    """

    purchase: Purchase
    tried: int
    granted: Future[bool] = field(default_factory=Future)


Done = SimpleQueue[tuple[_Returned | _Repetition, ...]]


class _Size(NamedTuple):
    """How many threads fetch for one model, and how many purchases each takes at once."""

    threads: int
    together: int = 1


@dataclass(slots=True)
class _Lane:
    """Purchases for one model, and the threads that fetch them."""

    size: _Size
    waiting: deque[Purchase] = field(default_factory=deque)
    woken: threading.Condition = field(default_factory=threading.Condition)
    threads: int = 0
    busy: int = 0
    closed: bool = False

    def put(self, purchases: Iterable[Purchase]) -> None:
        with self.woken:
            self.waiting.extend(purchases)
            self.woken.notify_all()

    def take(self) -> list[Purchase]:
        """As many as are fetched at once; waits for the first, and is empty at the end."""
        with self.woken:
            while not self.waiting and not self.closed:
                self.woken.wait()
            return [self.waiting.popleft() for _ in range(min(self.size.together, len(self.waiting)))]

    def recall(self) -> list[Purchase]:
        """What nobody has taken yet."""
        with self.woken:
            found = list(self.waiting)
            self.waiting.clear()
        self.busy -= len(found)
        return found

    def close(self) -> None:
        with self.woken:
            self.closed = True
            self.woken.notify_all()


class _Workers:
    """Fetches through threads, begun when they are needed.

    `start` hands purchases out, `done` gives what is back.

    `lane` says which lane a purchase belongs to and how large that is; a purchase without one goes
    to the `asynchronous`.
    """

    def __init__(
        self,
        fetch: Callable[[list[Purchase]], list[Settlement | Exception]],
        lane: Callable[[Purchase], tuple[Hashable, _Size] | None],
        asynchronous: _AsyncWorker | None = None,
    ) -> None:
        self._fetch, self._lane, self._asynchronous = fetch, lane, asynchronous
        self.done: Done = SimpleQueue()
        """Results as they come back, some together; an empty tuple only wakes whoever waits."""
        self._lanes: dict[Hashable, _Lane] = {}
        self._thread_names = 0

    def start(self, purchases: Iterable[Purchase]) -> None:
        portions: dict[tuple[Hashable, _Size] | None, list[Purchase]] = {}
        for purchase in purchases:
            portions.setdefault(self._lane(purchase), []).append(purchase)
        for found, portion in portions.items():
            if found is None:
                assert self._asynchronous is not None
                self._asynchronous.start(portion, self.done)
            else:
                self._hand_over(portion, *found)

    def _hand_over(self, portion: list[Purchase], name: Hashable, size: _Size) -> None:
        lane = self._lanes.setdefault(name, _Lane(size))
        lane.busy += len(portion)
        lane.put(portion)
        while lane.threads < min(size.threads, lane.busy):
            lane.threads += 1
            self._thread_names += 1
            threading.Thread(target=self._serve, args=(lane,), name=f"fetch-{self._thread_names}", daemon=True).start()

    def returned(self, results: Iterable[_Returned]) -> None:
        """These were taken from `done`: as many threads are free again."""
        for result in results:
            found = self._lane(result.purchase)
            if found is not None:
                self._lanes[found[0]].busy -= 1

    def recall(self) -> list[Purchase]:
        """Take back what nobody has begun to fetch; what waits in the event loop comes back through
        `done` as `NotBegun`.
        """
        found = [purchase for lane in self._lanes.values() for purchase in lane.recall()]
        if self._asynchronous is not None:
            self._asynchronous.hurry()
        return found

    def again(self, purchase: Purchase, tried: int) -> bool:
        """Ask the run whether a call may be repeated, and wait until that is written down; for
        threads that fetch.
        """
        repetition = _Repetition(purchase, tried)
        self.done.put((repetition,))
        return repetition.granted.result()

    async def again_async(self, purchase: Purchase, tried: int) -> bool:
        """The same in the event loop."""
        assert self._asynchronous is not None
        repetition = _Repetition(purchase, tried)
        self._asynchronous.hand_over(repetition, self.done)
        return await asyncio.wrap_future(repetition.granted)

    def refuse(self) -> None:
        """Nobody listens any more: whoever waits for leave to call again is told no."""
        with contextlib.suppress(Empty):
            while True:
                for entry in self.done.get_nowait():
                    if isinstance(entry, _Repetition):
                        entry.granted.set_result(False)

    def wake(self) -> None:
        """Let whoever waits for results look around; safe in a signal handler."""
        self.done.put(())

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()
        if self._asynchronous is not None:
            self._asynchronous.close()

    def _serve(self, lane: _Lane) -> None:
        while taken := lane.take():
            try:
                found = self._fetch(taken)
                self.done.put(tuple(_returned(*pair) for pair in zip(taken, found, strict=True)))
            except BaseException as error:  # whatever it is, the loop must hear of it, or it would wait for ever
                self.done.put(tuple(_Returned(purchase, error=error) for purchase in taken))


def _returned(purchase: Purchase, found: Settlement | Exception) -> _Returned:
    return _Returned(purchase, error=found) if isinstance(found, Exception) else _Returned(purchase, found)


class _AsyncWorker:
    """One thread with an event loop, begun with the first purchase.

    Hands over what is back in batches: each handing over wakes another thread, which costs more
    than an answer does.
    """

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
        self._back: list[_Returned | _Repetition] = []

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
        """End the loop; calls that are still under way are dropped, and whoever dropped them has
        booked them.
        """
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
            back = _Returned(purchase, await self._fetch(purchase))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever it is, the run must hear of it
            back = _Returned(purchase, error=error)
        self.hand_over(back, done)

    def hand_over(self, back: _Returned | _Repetition, done: Done) -> None:
        """In the event loop: what the run is to hear."""
        self._back.append(back)
        if len(self._back) == 1:
            wait = GATHER if len(self._tasks) > MANY else 0.0
            asyncio.get_running_loop().call_later(wait, self._post, done)

    def _post(self, done: Done) -> None:
        back, self._back = self._back, []
        done.put(tuple(back))


GRACE = 60.0
"""Seconds that calls under way are waited for after the first signal."""
AHEAD = 8
"""One purchase is reserved ahead for so many slots."""
PORTIONS = 4
"""The slots are filled in so many portions, each with a commit of its own; never less than `LEAST`
purchases at once.
"""
LEAST = 32
GLANCE = 0.5
"""Seconds after which the loop looks up while it waits: the system may hand a signal to another
thread, which wakes nobody.
"""
ERRANDS = 4
"""Threads for sources that ask no model: tests, commands."""
TRIES = 3
"""So often a question is bought anew that a server does not answer while it answers others."""
KEY_REFUSED = (401, 403)
"""Statuses with which a server refuses a key, or what is asked with it."""
ROW = 10
"""So many calls in a row that are refused for their key stop a run."""
INTERRUPTED = "interrupted"
NOT_BEGUN = "not begun when the session ended"


class Driver:
    """Runs one session of an acquirer.

    `paused` says why it ended early; `error` is what it has to be ended with.
    """

    def __init__(self, acquirer: Acquirer, fetcher: Fetcher, redactor: Redactor) -> None:
        self.acquirer, self.fetcher, self.redactor = acquirer, fetcher, redactor
        self.paused: str | None = None
        self.error: BaseException | None = None
        self._signals = 0
        self._patience = float("inf")
        self._under_way: dict[tuple[str, int], Purchase] = {}
        asynchronous = _AsyncWorker(self._fetch_async, hurry=fetcher.hurry, release=fetcher.release)
        self._workers = _Workers(self._fetch, self._lane, asynchronous)
        # Many calls at once: the next ones are reserved ahead, so that no slot waits for a commit.
        # Few: not worth it.
        slots = sum(max(1, model.slots) for model in fetcher.models)
        # A model that answers many together finds the next ones waiting when it is done with these.
        waiting = sum(model.slots for model in fetcher.models if model.batching)
        self._room = slots + max(waiting, slots // AHEAD)
        # Asked for and told in portions: while one portion is decided on and committed, the others
        # are under way.
        self._portion = max(LEAST, slots // PORTIONS)
        if acquirer.shared:  # what dies with this process is in doubt: nothing is reserved before its call can begin
            self._room, self._portion = slots, min(self._portion, slots)
        self._back: deque[_Returned] = deque()
        self._repetitions: list[_Repetition] = []
        self._refusals: Counter[str] = Counter()
        """By model: how many calls in a row were refused for their key."""

    def run(self) -> None:
        with _signals(self._interrupt), contextlib.closing(self._workers):
            while True:
                room = self._room - len(self._under_way)
                asked = self._ask(min(room, self._portion))
                self._under_way.update(((purchase.id, purchase.attempt), purchase) for purchase in asked)
                self._workers.start(asked)
                if not self._under_way and (self.paused is not None or not self.acquirer.others_work()):
                    break
                self._tell(self._results(wait=len(asked) < self._portion or room == len(asked)))
                self._grant()
                if self.paused is not None:
                    self._recall()
                if self._signals > 1 or time.monotonic() > self._patience:
                    self._abandon()
                    break
        self._workers.refuse()
        if self.error is not None:
            if self.ending is not None:
                self.acquirer.end(*self.ending)
            raise self.error

    @property
    def ending(self) -> tuple[str, str] | None:
        """Why the session ended before the run did, and in which words; None where it did not."""
        return (Because.PAUSED.value, self.paused) if self.paused else None

    def _grant(self) -> None:
        """Repeated calls are reserved like first ones: in the journal before anything leaves the
        machine.
        """
        repetitions, self._repetitions = self._repetitions, []
        if not repetitions:
            return
        may = [self.paused is None and self.acquirer.again(r.purchase, r.tried, flush=False) for r in repetitions]
        self.acquirer.commit()
        for repetition, granted in zip(repetitions, may, strict=True):
            with contextlib.suppress(InvalidStateError):  # its task was cancelled meanwhile
                repetition.granted.set_result(granted)

    def _interrupt(self) -> None:
        """In a signal handler: note it, and let the loop look at it."""
        self._signals += 1
        if self._signals == 1:
            self.paused = INTERRUPTED
            self._patience = time.monotonic() + GRACE
        self._workers.wake()

    def _ask(self, count: int) -> tuple[Purchase, ...]:
        """The next purchases that are ours to fetch; those for people wait in the queue."""
        while self.paused is None and count > 0:
            asked = self.acquirer.ask(count)
            ours = tuple(purchase for purchase in asked if not purchase.deferred)
            if ours or not asked:
                return ours
        return ()

    def _lane(self, purchase: Purchase) -> tuple[Hashable, _Size] | None:
        """Each model has its own threads, or none where the event loop asks it; one that answers
        many together has one.
        """
        model = self.fetcher.whom(purchase)
        if model is None:
            return None, _Size(ERRANDS)
        if model.asynchronous:
            return None
        slots = max(1, model.slots)
        return id(model), _Size(1, together=slots) if model.batching else _Size(slots)

    def _fetch(self, purchases: list[Purchase]) -> list[Settlement | Exception]:
        if len(purchases) > 1:
            return self.fetcher.fetch_all(purchases, self.acquirer.state, self._workers.again)
        [purchase] = purchases
        state = self.acquirer.state.items[purchase.item]
        return [self.fetcher.fetch(purchase, state, lambda tried: self._workers.again(purchase, tried))]

    async def _fetch_async(self, purchase: Purchase) -> Settlement:
        state = self.acquirer.state.items[purchase.item]
        return await self.fetcher.fetch_async(purchase, state, lambda tried: self._workers.again_async(purchase, tried))

    def _results(self, *, wait: bool) -> list[_Returned]:
        """A portion of what is back; waits for the first where there is nothing else to do, and
        looks up now and then.
        """
        left = min(GLANCE, self._patience - time.monotonic()) if wait and not self._back else 0.0
        with contextlib.suppress(Empty):
            self._sort(self._workers.done.get(timeout=left) if left > 0.0 else self._workers.done.get_nowait())
            while True:
                self._sort(self._workers.done.get_nowait())
        found = [self._back.popleft() for _ in range(min(len(self._back), self._portion))]
        self._workers.returned(found)
        return found

    def _sort(self, entries: tuple[_Returned | _Repetition, ...]) -> None:
        for entry in entries:
            if isinstance(entry, _Repetition):
                self._repetitions.append(entry)
            else:
                self._back.append(entry)

    def _tell(self, results: list[_Returned]) -> None:
        for result in results:
            purchase, settlement = result.purchase, result.settlement
            del self._under_way[purchase.id, purchase.attempt]
            if not self.acquirer.knows(purchase):
                continue  # somebody else has its item now, and has booked the doubt
            if settlement is None:
                self._fail(purchase, result.error)
            elif not self._refuse(purchase, settlement):
                self.acquirer.tell(settlement, flush=False)
        # The next `ask` follows at once and commits these together with its intents.
        if self.paused is not None:
            self.acquirer.commit()
        self.fetcher.write_kept()

    def _refuse(self, purchase: Purchase, settlement: Settlement) -> bool:
        """Whether a server's refusal ends the session instead of being a failure of its question:
        of a key or of anything, while no call was answered, and of a key for the first time.
        """
        reply = settlement.evidence.get("reply") or {}
        said = reply.get("detail", "")
        status = (reply.get("raw_response") or {}).get("status") if settlement.outcome == "failed" else None
        state, model = self.acquirer.state, purchase.model
        used = Attempted(settlement.calls, settlement.money, reply.get("usage", {}).get("doubtful", 0))
        if status in KEY_REFUSED:
            first = status == 401 and not state.key_refused
            if model not in state.heard or first or self.error is not None:
                words = f"the server refuses the key ({said})"
                self._pause(purchase, words, replace(used, status=status))
                words = self.redactor.text(f"model {self._asked(purchase)}{words}")
                self.error = self.error or InputError(f"{words}; correct it, then --resume {self.acquirer.run}")
                return True
            self._refusals[model] += 1
            if self._refusals[model] >= ROW:
                words = f"{self._asked(purchase)}the server refused the key {ROW} times in a row ({said})"
                self.paused = self.paused or self.redactor.text(words)
            return False
        self._refusals[model] = 0
        if settlement.outcome == "failed" and not state.heard and purchase.buys is Buys.ANSWER:
            # Not one answer so far: a wrong model name would burn the whole budget in failures.
            self._pause(purchase, f"the backend refuses the call: {said}", used)
            return True
        return False

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
                self.acquirer.tell_unanswered(purchase, self.redactor.text(str(error)), error.used)
            else:
                self._pause(purchase, str(error), error.used)
            return
        self._pause(purchase, f"{type(error).__name__}: {error}")
        self.error = self.error or error

    def _pause(self, purchase: Purchase, reason: str, used: Attempted = NOTHING) -> None:
        words = self.redactor.text(self._asked(purchase) + reason)
        self.paused = self.paused or words
        self.acquirer.release(purchase, words, used=used, flush=False)

    def _asked(self, purchase: Purchase) -> str:
        """How a message begins that is about whoever is asked."""
        model = self.fetcher.whom(purchase)
        return "" if model is None else f"{model.name}: "

    def _recall(self) -> None:
        """What was reserved ahead and not begun is given back: it was not bought."""
        for purchase in self._workers.recall():
            del self._under_way[purchase.id, purchase.attempt]
            self.acquirer.release(purchase, NOT_BEGUN)

    def _abandon(self) -> None:
        for purchase in self._under_way.values():
            self.acquirer.abandon(purchase, "the session was ended without waiting for it")
        self._under_way.clear()


@contextlib.contextmanager
def _signals(noted: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM are noted instead of raised while this lasts; only the main thread may say
    so.
    """
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
