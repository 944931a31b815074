"""One process among several that work on a run: it takes leases on items, works on these items as
on any others, and forgets them once they are done.

What may be reserved is decided by the books that all processes share. A portion of purchases is
decided on with the books as they were last seen; where others were faster and it does not fit any
more, nothing of it is written, the items are as before, and it is decided again with the books as
they are. Facts (answers, doubts) that stand before it in the same commit are written alone then.
That the money is used up is said only when nothing is under way anywhere: what the dead had begun
is taken over first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rrf_design import files
from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition._chains import PER_ITEM
from rrf_design.acquisition._driver import Driver
from rrf_design.acquisition._leases import Leases
from rrf_design.acquisition._loop import Acquirer
from rrf_design.acquisition._purchases import Purchase, Settlement
from rrf_design.acquisition._state import Booked, ItemState
from rrf_design.acquisition.classes import with_room
from rrf_design.acquisition.journal import Event, Journal, Kind, damaged
from rrf_design.acquisition.settings import Mode, Settings
from rrf_design.acquisition.sources.base import NOTHING, Attempted
from rrf_design.acquisition.stopping import hard_limits
from rrf_design.derive import askable
from rrf_design.errors import Refused, RetryLater, RRFError

if TYPE_CHECKING:
    from rrf_design.acquisition._fetch import Fetcher
    from rrf_design.acquisition.redaction import Redactor
    from rrf_design.problem import Problem
    from rrf_design.structure import Structure

POLL = 0.4
"""Seconds between two looks for items that somebody gave up."""
AHEAD = 8
"""Items that are taken at once, at least."""
_BOOKED = frozenset({Kind.INTENT, Kind.REPEATED, Kind.SETTLED, Kind.RELEASED, Kind.ABANDONED, Kind.DOUBT})
"""Events that change what is booked."""


class _Overdrawn(Exception):
    """What was to be reserved does not fit any more; nothing of it was written."""


def may_share(journal: Journal, run: str, settings: Settings, items: int) -> bool:
    """Whether every item of a run can be decided by itself, once the schedules are made, and its
    store can be written by several.
    """
    chained = items > 1 and journal.shared and journal.header(run)["format_version"] >= PER_ITEM
    return chained and not _together(settings)


def _together(settings: Settings) -> str:
    """Why only one process can decide; empty where several can."""
    if settings.batch_api:
        return "its questions are handed in as batches (--batch-api)"
    if settings.mode is not Mode.AGNOSTIC and settings.budget is not None:
        return f"mode {settings.mode} decides over all items together under one budget"
    return ""


def share_run(
    leases: Leases,
    journal: Journal,
    begin: Callable[[], Acquirer],
    settings: Settings,
    *,
    fetcher: Fetcher,
    redactor: Redactor,
    watch: Callable[[Event], None] | None,
) -> tuple[str, str] | None:
    """Open a run for those who join, unless it is open, and work on it until all items are done;
    why this process left before that.
    """
    run = leases.run
    limits = (settings.budget, settings.money, hard_limits(settings.rule)[0])
    if leases.counts()["open"]:
        leases.limit(limits)
    else:
        with alone(journal, run):
            if not leases.counts()["open"]:
                acquirer = begin()
                acquirer.plan()
                items = acquirer.state.items.items()
                over = {item: state.stopped is not None and not state.waiting for item, state in items}
                leases.open(over, acquirer.state.booked, limits)
    return work_on(leases, journal, journal.header(run), settings, fetcher=fetcher, redactor=redactor, watch=watch)


def join_leases(journal: Journal, run: str, settings: Settings) -> Leases:
    """Where the items of a run are taken from; Refused or RetryLater where that can't be."""
    why = _together(settings)
    if why:
        raise Refused(f"run {run}: {why}, so only one process can work on it; --resume goes on with it alone")
    leases = Leases(journal, run)
    if not leases.counts()["items"]:
        raise RetryLater(
            f"run {run}: it is not open for joining (one item only, begun by an older version, or not begun yet);"
            " try again in a moment, or go on with it alone: --resume"
        )
    return leases


def work_on(
    leases: Leases,
    journal: Journal,
    header: Mapping[str, Any],
    settings: Settings,
    *,
    fetcher: Fetcher,
    redactor: Redactor,
    watch: Callable[[Event], None] | None = None,
) -> tuple[str, str] | None:
    """Work until every item of the run is done; why it ended before that."""
    slots = sum(max(1, model.slots) for model in fetcher.models)
    acquirer = LeasedAcquirer(
        leases, fetcher, settings=settings, journal=journal, header=header, slots=slots, watch=watch
    )
    driver = Driver(acquirer, fetcher, redactor)
    try:
        driver.run()
    except BaseException:
        with suppress(RRFError):
            acquirer.leave()
        raise
    acquirer.leave()
    return driver.ending


@contextmanager
def alone(journal: Journal, run: str) -> Iterator[None]:
    """Hold a run as soon as nobody else does: others open or conclude it, which ends."""
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(journal.holding(run))
                break
            except Refused:
                time.sleep(POLL)
        yield


def concluded(journal: Journal, run: str) -> bool:
    """Whether somebody has concluded a run whose items are all done; for who holds it alone."""
    return journal.events(run, after=journal.length(run) - 1)[-1].kind is Kind.ENDED


class LeasedAcquirer(Acquirer):
    """Asks and tells for the items that this process has leases on."""

    shared = True

    def __init__(
        self,
        leases: Leases,
        fetcher: Fetcher,
        *,
        settings: Settings,
        journal: Journal,
        header: Mapping[str, Any],
        slots: int = 1,
        clock: Callable[[], float] = time.time,
        watch: Callable[[Event], None] | None = None,
    ) -> None:
        self._leases, self._fetcher, self._slots = leases, fetcher, max(slots, AHEAD)
        self._digests = header["digests"]
        self._structures: dict[str, Structure] = {}
        self._deltas: list[Booked] = []
        self._ending: dict[str, bool] = {}
        """Items that are over with the next commit, and whether a later session opens them
        again.
        """
        self._reserving = self._joined = False
        self._undo: dict[str, ItemState] = {}
        self._sums: dict[str, Any] = {}
        self._portion_of: list[Purchase] = []
        self._facts = 0
        """How many events of the buffer were there before anything was reserved."""
        self._safe = 0
        """How many purchases of the portion are committed."""
        self._dry_until = self._renewed = 0.0
        super().__init__(
            {},
            settings=settings,
            journal=journal,
            run=leases.run,
            terms=fetcher.terms,
            instant=fetcher.instant,
            read_with=fetcher.read_with,
            clock=clock,
            watch=watch,
        )

    def _begin(self) -> None:
        self._fetcher.state, self._fetcher.designs = self.state, self.designs
        self.state.session_at = self._clock()
        self._renewed = time.monotonic()
        self._sync(self._leases.books())

    def _say_joined(self) -> None:
        """Once this process has an item: before that the run may be concluded already, by somebody
        who holds it alone.
        """
        self._joined = True
        counts, now = self._leases.counts(), self._leases.books()
        limits = {"budget": self.settings.budget, "money": self.settings.money}
        done = {"items": counts["items"], "open": 0, "done": counts["items"] - counts["open"]}
        stands = {"spent": float(now.price), "paid": float(now.money), "calls": now.calls}
        self._emit(Event(Kind.SESSION, {"joined": True, "by": self._leases.member, **limits, **done, **stands}))

    def ask(self, count: int = 1) -> tuple[Purchase, ...]:
        self._alive()
        self._renew()
        self._portion_of, self._safe = [], 0
        with self._while_reserving():
            while True:
                try:
                    told = bool(self._buffer)
                    self._portion(count, self._portion_of)
                    self._flush()
                    if self._portion_of or not told:
                        break  # else decide again, with the books of this moment
                except _Overdrawn:
                    del self._portion_of[self._safe :]
        self._judge()
        return tuple(purchase for purchase in self._portion_of if self.knows(purchase))

    def tell(self, *settlements: Settlement, flush: bool = True) -> None:
        super().tell(*(one for one in settlements if self.knows(one.purchase)), flush=flush)

    def release(self, purchase: Purchase, reason: str, *, used: Attempted = NOTHING, flush: bool = True) -> None:
        if self.knows(purchase):
            super().release(purchase, reason, used=used, flush=flush)

    def abandon(self, purchase: Purchase, reason: str) -> None:
        if self.knows(purchase):
            super().abandon(purchase, reason)

    def again(self, purchase: Purchase, tried: int, *, flush: bool = True) -> bool:
        self._alive()
        try:
            with self._while_reserving():
                return self.knows(purchase) and super().again(purchase, tried) and self.knows(purchase)
        except _Overdrawn:
            return False

    def knows(self, purchase: Purchase) -> bool:
        item = self.state.items.get(purchase.item)
        return item is not None and item.pending.get(purchase.name) == purchase

    def others_work(self) -> bool:
        self._flush()
        self._sync(self._leases.books())
        return self._leases.counts()["open"] > 0

    def end(self, because: str, detail: str = "") -> None:
        """Others go on: only who concludes the run says why it ended."""

    def leave(self) -> None:
        """Write what is known and give everything back."""
        if not self._dead:
            self._flush()
            self._leases.leave()

    @contextmanager
    def _while_reserving(self) -> Iterator[None]:
        """What is decided meanwhile is written only if it fits into the limits."""
        self._reserving, self._undo, self._sums, self._facts = True, {}, self.state.kept(), len(self._buffer)
        try:
            yield
        finally:
            self._reserving = False

    def _more(self) -> bool:
        if time.monotonic() < self._dry_until:
            return False
        self._flush()
        taken = self._leases.take(self._slots)
        if not taken:
            self._dry_until = time.monotonic() + POLL
            return False
        self._reserving = False
        if not self._joined:
            self._say_joined()
        self._admit(taken)
        self._flush()
        self._reserving, self._sums, self._facts = True, self.state.kept(), 0
        return True

    def _admit(self, taken: Mapping[str, int]) -> None:
        """Items as the journal has them; what their last process had begun is in doubt."""
        assert self._journal is not None
        documents = self._journal.documents(self.run, list(taken.values()))
        said = self._leases.events_of(taken)
        for item in taken:
            problem = files.from_document(documents[item])
            if files.digest(problem) != self._digests.get(item):
                raise damaged(f"run {self.run}", f"the problem of item {item!r} is not the one that was written", "it")
            if item in self.state.items:
                self._dismiss(item)
            self._put(item, askable(with_room(problem)), said[item])

    def _put(self, item: str, field: Problem, said: Iterable[Event]) -> None:
        structure = self._structures.setdefault(field.structure.key, field.structure)
        field.__dict__["structure"] = structure
        agnostic = self.settings.mode is Mode.AGNOSTIC
        self.designs[item] = Candidates(field, incremental=agnostic, structure=structure)
        self.state.items[item] = state = ItemState(medians=frozenset(node.id for node in field.nodes if node.take))
        self._fetcher.add(item, field, {})
        self._decider.admit(item)
        self._queue.add(item)
        before = self.state.booked
        for event in said:
            try:
                self._apply(event)
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as fault:
                words = f"an event of item {item!r} does not follow from those before it ({type(fault).__name__})"
                raise damaged(f"run {self.run}", words, "it") from None
        self.state.elsewhere = self.state.elsewhere.less(self.state.booked.less(before))
        if state.stopped is not None and state.stopped.get("again"):
            state.stopped = None
        self._fetcher.recall(item, field, state)
        for purchase in list(state.pending.values()):
            if not purchase.deferred:
                self._doubt(purchase)
        self.give(self._fetcher.kept(item, field), item, flush=False)
        if self._over(item):
            self._done[item] = None

    def _dismiss(self, item: str) -> None:
        self._portion_of[:] = [purchase for purchase in self._portion_of if purchase.item != item]
        self._safe = min(self._safe, len(self._portion_of))
        self._fetcher.drop(item, self.designs.pop(item).problem)
        self._decider.forget(item)
        self.state.forget(item)
        self._done.pop(item, None)
        self._undo.pop(item, None)

    def _over(self, item: str) -> bool:
        state = self.state.items[item]
        return state.stopped is not None and not state.waiting

    def _busy(self, item: str) -> bool:
        return item in self.state.items and super()._busy(item)

    def _judge(self) -> None:
        for item in [item for item in self._done if item in self.state.items and self._over(item)]:
            self._ending[item] = bool((self.state.items[item].stopped or {}).get("again"))
        super()._judge()

    def _renew(self) -> None:
        """Leases last as long as their process looks after them."""
        if time.monotonic() < self._renewed + self._leases.seconds / 4:
            return
        self._renewed = time.monotonic()
        for item in self._leases.renew():
            self._dismiss(item)

    def _sync(self, books: Booked) -> None:
        self.state.elsewhere = books.less(self.state.booked)
        self.ledger.limit(*self._leases.limits)

    def _emit(self, *events: Event) -> None:
        for event in events:
            item = event.body.get("item")
            if self._reserving and item is not None and item not in self._undo:
                self._undo[item] = self.state.items[item].copy()
            before = self.state.booked if event.kind in _BOOKED else None
            super()._emit(event)
            self._deltas.append(Booked() if before is None else self.state.booked.less(before))

    def _flush(self) -> None:
        if not (self._buffer or self._ending) or self._written():
            return
        # As if the portion had never been decided, and with the books as they are now.
        del self._buffer[self._facts :], self._deltas[self._facts :]
        self.state.restore(self._sums, self._undo)
        undone, self._undo, self._reserving = self._undo, {}, False
        for item in undone:
            self._done.pop(item, None)
            self._queue.join(item)
        if self._buffer or self._ending:
            self._written()
        self._sync(self._leases.books())
        self._reserving, self._sums, self._facts = True, self.state.kept(), 0
        raise _Overdrawn

    def _written(self) -> bool:
        """Whether the buffer could be committed: False where what it reserves does not fit."""
        events = self._buffer
        try:
            pairs = list(zip(events, self._deltas, strict=True))
            written = self._leases.write(pairs, reserving=self._reserving, over=self._ending)
        except BaseException:
            self._dead = True
            raise
        if written.books is None:
            return False
        ending, self._buffer, self._deltas, self._ending = self._ending, [], [], {}
        for item in {*written.lost, *ending}:
            if item in self.state.items:
                self._dismiss(item)
        self._undo, self._sums, self._facts, self._safe = {}, self.state.kept(), 0, len(self._portion_of)
        self._sync(written.books)
        for event in events if self._watch is not None else ():
            if event.body.get("item") not in written.lost:
                assert self._watch is not None
                self._watch(event)
        return True
