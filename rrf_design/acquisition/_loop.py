"""Ask and tell: the acquisition loop without any model in it, for everyone's own infrastructure.

`ask` hands out purchases whose intents are already committed to the journal; the caller fetches
them however it likes and `tell`s what came of them. One item works in rounds: it decides on what is
settled, asks for up to `batch` things at once, and decides again when all of them are back. Where
items share a budget, what goes beyond their schedules is decided for all together when everything
is back. So the order in which answers arrive never changes a choice.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from rrf_design._margin import DesignMargin
from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition._chains import PER_ITEM
from rrf_design.acquisition._decider import Decider
from rrf_design.acquisition._ledger import Ledger
from rrf_design.acquisition._purchases import Buys, Doubt, Purchase, Settlement
from rrf_design.acquisition._state import RunState
from rrf_design.acquisition.journal import Event, Journal, Kind
from rrf_design.acquisition.settings import Mode, Settings, Terms
from rrf_design.acquisition.sources.base import NOTHING, Attempted
from rrf_design.acquisition.stopping import Because, Stop
from rrf_design.blocks import Anchor
from rrf_design.checks import rows_of
from rrf_design.errors import InputError, Refused
from rrf_design.problem import Problem
from rrf_design.structure import share

_BACK = frozenset({Kind.SETTLED, Kind.RELEASED, Kind.ABANDONED, Kind.DOUBT})
"""What became of a purchase under way."""
_ENDINGS = _BACK | {Kind.STOPPED}
"""After these an item may be done."""


class _Step(Enum):
    """What became of an item that was looked at."""

    GO = auto()
    """It has a round to ask for."""
    LEFT = auto()
    """It stopped, or waits for its answers or for the others: it has left the queue."""
    WAIT = auto()
    """It needs money that purchases under way may release; what comes after it waits too, so that
    it is not overtaken.
    """


class Acquirer:
    """One run over one or many fields: the ledger, the rounds, and when to stop.

    Owns the run's state and, with a journal, writes every step to it before it takes effect
    outside. Single-threaded: whoever fetches in parallel does so between `ask` and `tell`. After an
    error while writing, the object is dead and the run is resumed from the journal, where the truth
    is.
    """

    def __init__(
        self,
        problems: Problem | Mapping[str, Problem],
        *,
        settings: Settings | None = None,
        journal: Journal | None = None,
        run: str = "",
        terms: Callable[[str, str], Terms] | None = None,
        instant: Callable[[Purchase], Settlement | None] | None = None,
        read_with: Callable[[Settlement], Sequence[Settlement]] | None = None,
        clock: Callable[[], float] = time.time,
        watch: Callable[[Event], None] | None = None,
    ) -> None:
        named = {"": problems} if isinstance(problems, Problem) else dict(problems)
        if not named and not self.shared:
            raise InputError("there is nothing to acquire: the data set is empty")
        self.settings = settings or Settings()
        agnostic = self.settings.mode is Mode.AGNOSTIC
        structures = share(named) if len(named) > 1 else [problem.structure for problem in named.values()]
        self.designs = {
            item: Candidates(problem, incremental=agnostic, structure=structure)
            for (item, problem), structure in zip(named.items(), structures, strict=True)
        }
        self.state = RunState(named)
        self.run = run
        self._journal, self._clock, self._watch = journal, clock, watch
        self._terms = terms or (lambda item, name: Terms(calls=int(name not in named[item].block_by_id)))
        self._instant = instant or (lambda purchase: None)
        self._read_with = read_with or (lambda settlement: (settlement,))
        """A settlement with those of the nodes that are read from the same answer."""
        self.ledger = Ledger(self.state, self.settings, clock)
        self._decider = Decider(self.designs, self.state, self.settings, ledger=self.ledger, terms=self._terms)
        self._buffer: list[Event] = []
        self._dead = False
        self._queue = _ItemQueue(named)
        self._gathered: dict[str, None] = {}
        """Items that wait until everything under way is back, to decide with the others."""
        self._deciding = journal is not None and journal.header(run)["format_version"] >= PER_ITEM
        """Whether the journal says of every item what its answers amount to, as soon as it is
        done.
        """
        self._done: dict[str, None] = {}
        """Items that were done since somebody looked."""
        self._begin()
        self._flush()

    def _begin(self) -> None:
        """A session: where the run stands, and what becomes of doubts."""
        if self._journal is not None:
            self._journal.replay(self.run, self._apply)
        self._emit(Event(Kind.SESSION, self._session()))
        for purchase in self.state.pending:
            if not purchase.deferred and purchase.id not in self.state.in_batch:
                self._doubt(purchase)
        for item in self.designs:
            self._queue.join(item)

    shared = False
    """Whether other processes work on the run, too."""

    def _more(self) -> bool:
        """Whether there is another item to work on."""
        return False

    def others_work(self) -> bool:
        """Whether there may be something to do although nothing is under way here."""
        return False

    def knows(self, purchase: Purchase) -> bool:
        """Whether what comes of a purchase is this process's to say."""
        return True

    @property
    def finished(self) -> bool:
        """Every item has stopped and nothing is under way (reviews by people may still be)."""
        return all(item.stopped is not None and not item.waiting for item in self.state.items.values())

    @property
    def stops(self) -> dict[str, Stop | None]:
        return {
            name: None
            if item.stopped is None
            else Stop(Because(item.stopped["because"]), item.stopped["detail"], item.stopped.get("again", False))
            for name, item in self.state.items.items()
        }

    def margin(self, item: str = "") -> DesignMargin:
        """γ of an item as it is: settled purchases only, failed ones left out."""
        state = self.state.items[item]
        return self.designs[item].margin(state.held, state.failed)

    def give(self, responses: Mapping[str, Any], item: str = "", *, flush: bool = True) -> None:
        """Responses that exist already: recorded at no price, never asked.

        A response is a number or a list of them, or a table with `value`, or with the `status` of
        what could not be read, and perhaps the `text` that was answered, what it did `cost`, or
        more `evidence`. What people said about checks may be given, too.
        """
        problem, state, asks = self.designs[item].problem, self.state.items[item], self.designs[item].asks
        for name, value in responses.items():
            block = problem.block_by_id.get(name)
            check = block if isinstance(block, Anchor) else None
            node = asks[name].node if name in asks else name
            if node not in problem.node_by_id and check is None:
                raise InputError(f"responses: there is no node {name!r}")
            if name in state.settled or (check is not None and name in state.pending):
                continue
            buys = Buys.ANSWER if check is None else Buys.ANCHOR
            attempt = state.attempts.get(name, 0)  # a killed session may have begun to ask for it
            purchase = Purchase(item, name, buys, 0.0, attempt=attempt, again_of=node if name in asks else "")
            said = dict(value) if isinstance(value, Mapping) else {"value": value}
            evidence = said.get("evidence") or ({"reply": {"text": said["text"]}} if "text" in said else {})
            evidence = evidence | ({"recorded_cost": said["cost"]} if said.get("cost") is not None else {})
            if said.get("status") is not None:
                if name in state.pending:
                    continue
                self._emit(purchase.intent())
                self._emit(Settlement(purchase, str(said["status"]), ok=False, evidence=evidence).event())
                continue
            value = said["value"]
            numbers = tuple(float(x) for x in (value if isinstance(value, list | tuple) else (value,)))
            wanted = problem.node_by_id[node].dim if check is None else rows_of(problem, check)
            if len(numbers) != wanted:
                raise InputError(f"responses: {'node' if check is None else 'anchor'} {name!r} needs {wanted} numbers")
            if name in state.pending:  # in a batch, which has its answer
                continue
            self._emit(purchase.intent())
            source = "" if check is None else "person"
            outcome = str(said.get("outcome", "given"))
            self._emit(Settlement(purchase, outcome, numbers, evidence=evidence, source=source).event())
            for other, ask in asks.items():  # a response to a node that is asked several times is their mean
                open_still = other not in state.settled and other not in state.pending
                if ask.included and ask.node == name and outcome == "given" and open_still:
                    attempt = state.attempts.get(other, 0)
                    further = Purchase(item, other, buys, 0.0, attempt=attempt, again_of=name)
                    self._emit(further.intent(), Settlement(further, outcome, numbers).event())
        if flush:
            self._flush()

    def ask(self, count: int = 1) -> tuple[Purchase, ...]:
        """Up to `count` purchases to fetch now; their intents are committed when this returns.

        What needs no fetching (relations, values in the file) is settled on the way, intent and
        fact in one commit. An empty answer means: wait for what is under way, or, if `finished`,
        that the run has stopped.
        """
        self._alive()
        result: list[Purchase] = []
        self._portion(count, result)
        self._flush()
        self._judge()
        return tuple(result)

    def _portion(self, count: int, result: list[Purchase]) -> None:
        """Reserve up to `count` purchases, and decide what has to be decided for that."""
        while len(result) < count:
            item = self._queue.first(self._busy)
            if item is None:
                if self._more():
                    continue
                if self.state.under_way or not self._gathered:
                    break
                self._decide_together()
                continue
            step = _Step.GO if self.state.items[item].round else self._advance(item)
            if step is _Step.GO:
                step = self._buy(item, result)
            if step is _Step.WAIT:
                break

    def tell(self, *settlements: Settlement, flush: bool = True) -> None:
        """Commit what came of purchases; after this returns nothing of it can be lost.

        `flush=False` leaves the commit to the next `ask`, one transaction for both, which `ask`
        makes before it decides anything that takes time: right where that `ask` follows at once.
        """
        self._alive()
        for settlement in settlements:
            self._pending(settlement.purchase)
            self._settle(settlement)
        if flush:
            self._flush()

    def _settle(self, settlement: Settlement) -> None:
        """What came of a purchase, and what else stood in the same answer."""
        first, *others = self._read_with(settlement)
        self._emit(first.event())
        for other in others:
            if other.purchase.name not in self.state.items[other.purchase.item].settled:
                self._emit(other.purchase.intent(), other.event())

    def tell_unanswered(self, purchase: Purchase, reason: str, used: Attempted) -> None:
        """Nobody answers this question, as often as it is asked; the commit is left to the next
        `ask`.
        """
        evidence: dict[str, Any] = {"unanswered": reason} | ({"doubtful": used.doubtful} if used.doubtful else {})
        settlement = Settlement(purchase, "unreachable", None, False, used.money, used.calls, evidence)
        self.tell(settlement, flush=False)

    def again(self, purchase: Purchase, tried: int, *, flush: bool = True) -> bool:
        """Reserve one more call for a purchase under way, after so many attempts that count; False
        if a limit forbids it. It may be made once that is committed: with `flush=False`, after the
        next `commit`.
        """
        self._alive()
        self._pending(purchase)
        if not self.ledger.allows_another_call():
            return False
        self._emit(Event(Kind.REPEATED, {"item": purchase.item, "name": purchase.name, "tried": tried}))
        if flush:
            self._flush()
        return True

    def commit(self) -> None:
        """Write down what was told, released or reserved with `flush=False`."""
        self._alive()
        self._flush()

    def release(self, purchase: Purchase, reason: str, *, used: Attempted = NOTHING, flush: bool = True) -> None:
        """Nobody answered, so nothing was got: the reservation ends and the purchase can be made
        later. What the attempts used up is booked. `flush` as for `tell`.
        """
        self._give_back(Kind.RELEASED, purchase, reason, used.document(), flush=flush)

    def abandon(self, purchase: Purchase, reason: str) -> None:
        """Nobody waits for it any more: what was reserved counts as lost, and the purchase can be
        made again.

        Where nothing can be charged (a local model), nothing is lost.
        """
        terms = self._terms(purchase.item, purchase.name)
        if terms.local or not self._used_up(purchase, terms):
            self._give_back(Kind.RELEASED if terms.local else Kind.ABANDONED, purchase, reason)
        else:
            self._give_back(Kind.DOUBT, purchase, reason, {"policy": Doubt.SKIP.value})

    def note(self, event: Event) -> None:
        """Commit a step that somebody else takes with purchases under way."""
        self._alive()
        self._emit(event)
        self._flush()

    def end(self, because: str, detail: str = "") -> None:
        """Say in the journal why this session ends."""
        self._emit(Event(Kind.ENDED, {"because": because, "detail": detail}))
        self._flush()

    def conclude(self, result: Mapping[str, Any]) -> None:
        """Keep the repairs of items that were not decided yet with the run."""
        if self._deciding:
            self._emit(*(_decided(item, repair) for item, repair in result["repairs"].items()))
        else:
            self._emit(Event(Kind.RESULT, result))
        self._flush()

    # What follows decides; everything it decides becomes an event.

    def _advance(self, item: str) -> _Step:
        """Begin the next round of an item that has nothing under way, or stop it."""
        state, decider = self.state.items[item], self._decider
        if not state.planned:
            self._flush()
            self._emit(*decider.beginning())
        given = decider.at_once(item)
        if given:
            self._emit(Event(Kind.ROUND, {"item": item, "names": given}))
            return _Step.GO
        ready, short = decider.ready(item)
        if decider.coupled and not ready and not short and (decider.adaptive or state.unplanned):
            self._gathered[item] = None
            return _Step.LEFT
        stop = decider.check(item, planned=bool(ready))
        if stop is None and not ready and not short:
            self._flush()
            self._emit(*decider.more([item]))
            ready, short = decider.ready(item)
        return self._proceed(item, ready, short, stop)

    def _proceed(self, item: str, ready: list[str], short: bool, stop: Stop | None) -> _Step:
        if stop is None and not ready:
            if short and self.state.awaited:
                return _Step.WAIT
            stop = self._decider.end(item, short=short)
        if stop is not None:
            self._stop(item, stop)
            return _Step.LEFT
        self._emit(self._decider.round(item, ready))
        return _Step.GO

    def _decide_together(self) -> None:
        """Nothing is under way: the items that waited for each other decide, under one budget."""
        self._flush()  # deciding may take its time, and what was told must not be lost meanwhile
        waiting, self._gathered = list(self._gathered), {}
        going = []
        for item in self._queue.sorted(waiting):
            stop = self._decider.check(item, planned=False)
            if stop is not None:
                self._stop(item, stop)
            else:
                going.append(item)
        events = self._decider.more(going)
        self._emit(*events)
        chosen = {event.body["item"] for event in events}
        for item in going:
            if item in chosen or not chosen:
                ready, short = self._decider.ready(item)
                self._proceed(item, ready, short, None)
                self._queue.join(item)
            else:
                self._gathered[item] = None

    def _buy(self, item: str, result: list[Purchase]) -> _Step:
        """Reserve the next purchase of an item's round and hand it out, or settle it at once if
        nobody has to be asked.
        """
        state, stop = self.state.items[item], None
        for name in list(state.round):
            buys, terms = self._kind(item, name)
            tried = state.tried.get(name, 0)
            terms = terms.after(tried)
            price = self.designs[item].price([name], {*state.held, *state.pending})
            found = self.ledger.shortage(price, terms)
            if found is None:
                attempt = state.attempts.get(name, 0)
                purchase = Purchase(
                    item,
                    name,
                    buys,
                    float(price),
                    terms.ceiling,
                    attempt,
                    terms.deferred,
                    terms.calls,
                    terms.model,
                    tried if terms.attempts else 0,
                    terms.attempts if terms.ceiling else 0,
                    self.designs[item].again_of(name),
                )
                self._emit(purchase.intent())
                at_once = Settlement(purchase, "bought") if buys is Buys.RELATION else self._instant(purchase)
                if at_once is None:
                    result.append(purchase)
                else:
                    self._settle(at_once)
                return _Step.GO
            if self.state.awaited and found.because is not Because.TIME:
                return _Step.WAIT  # what is under way may turn out cheaper than what was reserved for it
            stop = stop or found
        assert stop is not None
        self._stop(item, stop)
        return _Step.LEFT

    def _session(self) -> dict[str, Any]:
        """What a session begins with: what it may use, and where the run stands."""
        over = (item.stopped for item in self.state.items.values() if item.stopped is not None)
        return {
            "budget": self.settings.budget,
            "money": self.settings.money,
            "items": len(self.designs),
            "open": sum(len(self._decider.given(item)) for item in self.designs),
            "done": sum(not stop.get("again") for stop in over),
            "spent": float(self.state.spent),
            "paid": float(self.state.settled_money + self.state.lost_money),
            "calls": self.state.calls,
        }

    def _kind(self, item: str, name: str) -> tuple[Buys, Terms]:
        block = self.designs[item].problem.block_by_id.get(name)
        if block is not None and not isinstance(block, Anchor):
            return Buys.RELATION, Terms()
        return Buys.ANSWER if block is None else Buys.ANCHOR, self._terms(item, name)

    def _judge(self) -> None:
        """Say what the answers of items amount to that are done; written with the next events."""
        done, self._done = self._done, {}
        for item in done:
            if self.state.items[item].done and item not in self.state.results:
                self._emit(_decided(item, self._decider.repair(item)))

    def _over(self, item: str) -> bool:
        return self.state.items[item].done

    def plan(self) -> None:
        """Make the schedules that are made before any answer is seen."""
        self._emit(*self._decider.beginning())
        self._flush()

    def _stop(self, item: str, stop: Stop) -> None:
        body = {"item": item, "because": stop.because.value, "detail": stop.detail, "again": stop.again}
        self._emit(Event(Kind.STOPPED, body))

    def _doubt(self, purchase: Purchase) -> None:
        """An intent without an outcome, found on resume: the policy decides, the journal says
        so.
        """
        policy = Doubt.SAME
        terms = self._terms(purchase.item, purchase.name)
        # What goes in batches leaves the machine only after its batch is written down.
        if not (terms.local or terms.batched):
            policy = self.settings.doubt or Doubt.AGAIN
            if self._used_up(purchase, terms):
                policy = Doubt.SKIP
        body = {"item": purchase.item, "name": purchase.name, "policy": policy.value}
        self._emit(Event(Kind.DOUBT, body, purchase.id, purchase.attempt))

    def _used_up(self, purchase: Purchase, terms: Terms) -> bool:
        """Whether it had all the attempts that a purchase has: whoever kills a run does not get
        more of them.
        """
        return bool(terms.attempts) and self.state.attempted(purchase) >= terms.attempts

    def _give_back(
        self,
        kind: Kind,
        purchase: Purchase,
        reason: str,
        used: Mapping[str, Any] | None = None,
        *,
        flush: bool = True,
    ) -> None:
        self._alive()
        self._pending(purchase)
        body = {"item": purchase.item, "name": purchase.name, "reason": reason, **(used or {})}
        self._emit(Event(kind, body, purchase.id, purchase.attempt))
        if flush:
            self._flush()

    def _pending(self, purchase: Purchase) -> None:
        item = self.state.items.get(purchase.item)
        if item is None or item.pending.get(purchase.name) != purchase:
            raise Refused(f"purchase {purchase.id!r} is not under way; it was settled before, or never asked for")

    def _alive(self) -> None:
        if self._dead:
            raise Refused(f"run {self.run}: its journal could not be written; resume it instead of going on")

    def _busy(self, item: str) -> bool:
        """It may have something to do: not stopped, not waiting for its own answers, not for the
        other items.
        """
        state = self.state.items[item]
        idle = not state.round and bool(state.waiting)
        return state.stopped is None and not idle and item not in self._gathered

    def _emit(self, *events: Event) -> None:
        for event in events:
            timed = Event(event.kind, event.body, event.purchase, event.attempt, self._clock())
            self._apply(timed)
            self._buffer.append(timed)
            if timed.kind in _BACK:
                self._queue.join(timed.body["item"])
            if self._deciding and timed.kind in _ENDINGS and self._over(timed.body["item"]):
                self._done[timed.body["item"]] = None

    def _apply(self, event: Event) -> None:
        self.state.apply(event)
        if event.kind is Kind.SETTLED:
            self._decider.tally(event)

    def _flush(self) -> None:
        events, self._buffer = self._buffer, []
        if self._journal is not None:
            try:
                self._journal.append(self.run, events)
            except BaseException:
                self._dead = True
                raise
        if self._watch is not None:
            for event in events:
                self._watch(event)


def _decided(item: str, repair: Mapping[str, Any]) -> Event:
    return Event(Kind.DECIDED, {"item": item, "repair": repair})


class _ItemQueue:
    """A queue of names in a fixed order, none twice.

    `join` is cheap, `first` skips and drops those that are not busy.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._places = {name: place for place, name in enumerate(self._names)}
        self._heap: list[int] = []
        self._waiting: set[int] = set()

    def join(self, name: str) -> None:
        place = self._places[name]
        if place not in self._waiting:
            self._waiting.add(place)
            heapq.heappush(self._heap, place)

    def first(self, busy: Callable[[str], bool]) -> str | None:
        """The first name that is busy, which stays; those before it that are not leave until they
        join again.
        """
        while self._heap:
            name = self._names[self._heap[0]]
            if busy(name):
                return name
            self._waiting.discard(heapq.heappop(self._heap))
        return None

    def add(self, name: str) -> None:
        """One more name, at the end, or a known one again."""
        if name not in self._places:
            self._places[name] = len(self._names)
            self._names.append(name)
        self.join(name)

    def sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self._places.__getitem__)
