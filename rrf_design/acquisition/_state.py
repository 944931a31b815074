"""The state of a run: a fold over its journal, and nothing else changes it.

`RunState.apply` is the only way the state moves, live and on resume alike; so a resumed run stands
exactly where the journal says. Money is counted three ways that add up to what is committed:
settled, reserved by purchases under way, and lost to purchases that a crash left in doubt, or that
a user did not wait for, and that can be made again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import fsum
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from rrf_design.acquisition._purchases import BatchRecord, Buys, Doubt, Purchase, Settled
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.market import exact

if TYPE_CHECKING:
    from rrf_design.problem import Problem


@dataclass(slots=True)
class _Used:
    """What one model of the run was asked for, and what it took."""

    answers: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    money: Fraction = Fraction(0)

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("answers", "calls", "input_tokens", "output_tokens")}
        return {**counts, "money": float(self.money)}


class _Attempted(NamedTuple):
    """What was begun for a purchase: calls beyond the first, and attempts that count, those of
    earlier sessions too.
    """

    calls: int
    tried: int


class Booked(NamedTuple):
    """What counts against the limits of a run: settled, reserved and lost together."""

    price: Fraction = Fraction(0)
    money: Fraction = Fraction(0)
    calls: int = 0
    open: int = 0
    """Purchases under way."""

    def less(self, other: Booked) -> Booked:
        price, money = (a - b if b else a for a, b in zip(self[:2], other[:2], strict=True))
        return Booked(price, money, self.calls - other.calls, self.open - other.open)


def _total(*parts: Fraction) -> Fraction:
    """Their sum; most runs have no prices, and exact sums of nothing cost time too."""
    return sum((part for part in parts if part), _NOTHING)


_NOTHING = Fraction(0)


class RunState:
    """Everything the journal says, item by item, with the ledger over all of them."""

    def __init__(self, items: Iterable[str] | Mapping[str, Problem]) -> None:
        problems = items if isinstance(items, Mapping) else {}
        self.items = {
            item: ItemState(
                medians=frozenset(n.id for n in problems[item].nodes if n.take) if problems else frozenset()
            )
            for item in items
        }
        self.settled_price = Fraction(0)
        self.settled_money = Fraction(0)
        self.lost_price = Fraction(0)
        self.lost_money = Fraction(0)
        self.calls = 0
        self.used: defaultdict[str, _Used] = defaultdict(_Used)
        """By model; what older journals do not say whom they asked for is under ""."""
        self.batches: dict[str, BatchRecord] = {}
        """By token: batches with purchases that are still under way."""
        self.in_batch: dict[str, str] = {}
        """Purchase to the token of its batch."""
        self._left_in: dict[str, int] = {}
        self.calls_reserved = 0
        self.doubtful: Counter[str] = Counter()
        """Calls in the books that the other side may never have seen, by purchase: a connection or
        a session ended before a byte of an answer came back.
        """
        self.heard: set[str] = set()
        """Models of which a call was answered."""
        self.key_refused = False
        """A session ended because a server did not take the key (status 401)."""
        self.under_way = 0
        """Purchases that the run waits for."""
        self.sessions = 0
        self.ended: Mapping[str, Any] | None = None
        self.results: dict[str, Mapping[str, Any]] = {}
        """Repairs by item, as they were concluded; what is bought later makes an item's repair
        void.
        """
        self.seconds_before = 0.0
        self.session_at = 0.0
        self._last_at = 0.0
        self._reserved = Fraction(0)
        self._ceilings = Fraction(0)
        self.elsewhere = Booked()
        """In the books of the run, and not of the items here: other processes have them, or they
        are done.
        """

    @property
    def booked(self) -> Booked:
        """What the items here have in the books."""
        price = _total(self.settled_price, self.lost_price, self._reserved)
        money = _total(self.settled_money, self.lost_money, self._ceilings)
        return Booked(price, money, self.calls + self.calls_reserved, self.under_way)

    @property
    def committed(self) -> Fraction:
        """Spent, lost and reserved: what must never exceed the budget."""
        return self.settled_price + self.lost_price + self._reserved + self.elsewhere.price

    @property
    def committed_money(self) -> Fraction:
        return self.settled_money + self.lost_money + self._ceilings + self.elsewhere.money

    @property
    def awaited(self) -> int:
        """Purchases that may turn out cheaper than what is reserved for them, anywhere."""
        return self.under_way + max(0, self.elsewhere.open)

    def forget(self, item: str) -> None:
        """Drop an item that others may have now; what it has settled stays in the sums."""
        state = self.items.pop(item)
        for purchase in state.pending.values():
            self._reserve(purchase, -1)
            self.calls_reserved -= purchase.calls + state.repeated.get(purchase.name, (0, 0))[0]
            self.under_way -= not purchase.deferred
        self.results.pop(item, None)

    def kept(self) -> dict[str, Any]:
        """The sums as they are, for `restore`."""
        return {name: getattr(self, name) for name in _SUMS}

    def restore(self, sums: Mapping[str, Any], items: Mapping[str, ItemState]) -> None:
        """Take back what was decided and could not be written."""
        for name, value in sums.items():
            setattr(self, name, value)
        self.items.update(items)

    @property
    def spent(self) -> Fraction:
        return self.settled_price + self.lost_price

    @property
    def pending(self) -> list[Purchase]:
        return [purchase for item in self.items.values() for purchase in item.pending.values()]

    def apply(self, event: Event) -> None:
        if event.kind is Kind.SESSION and self.sessions and not event.body.get("joined"):
            self.seconds_before += max(0.0, self._last_at - self.session_at)
        self._last_at = event.at or self._last_at
        getattr(self, f"_{event.kind.value}")(event)

    def _schedule(self, event: Event) -> None:
        body, item = event.body, self.items[event.body["item"]]
        if body.get("replaces"):
            item.schedule = [name for name in item.schedule if name in item.taken or name in item.settled]
        item.schedule.extend(body["names"])
        item.bound = body.get("bound")
        item.planned = True
        item.planned_without = item.failed

    def _round(self, event: Event) -> None:
        item = self.items[event.body["item"]]
        item.round.extend(event.body["names"])
        item.taken.update(event.body["names"])
        item.trajectory.append(event.body)

    def _session(self, event: Event) -> None:
        self.sessions += 1
        if event.body.get("joined"):  # one more process: nothing that was stopped begins anew
            return
        self.session_at = event.at
        self.ended = None
        for item in self.items.values():
            # What ended the last session (time, calls, a server that was away) may be over.
            if item.stopped is not None and item.stopped.get("again"):
                item.stopped = None

    def _intent(self, event: Event) -> None:
        purchase = Purchase.of(event)
        item = self.items[purchase.item]
        if purchase.name in item.round:
            item.round.remove(purchase.name)
        item.pending[purchase.name] = purchase
        item.attempts[purchase.name] = event.attempt + 1
        self._reserve(purchase, 1)
        self.calls_reserved += purchase.calls
        self.under_way += not purchase.deferred

    def _repeated(self, event: Event) -> None:
        item, name = self.items[event.body["item"]], event.body["name"]
        item.repeated[name] = (item.repeated.get(name, (0, 0))[0] + 1, event.body["tried"])
        self.calls_reserved += 1

    def attempted(self, purchase: Purchase) -> int:
        """How many attempts at a purchase under way count if it ends now: those before, and the one
        that was begun last.
        """
        _, tried = self.items[purchase.item].repeated.get(purchase.name, (0, purchase.tried))
        return tried + 1

    def _batched(self, event: Event) -> None:
        token = event.body["token"]
        if event.body.get("batch") is not None:
            self.batches[token] = self.batches[token].named(event.body["batch"])
            return
        purchases = tuple(event.body["purchases"])
        self.batches[token] = BatchRecord(token, event.body["model"], purchases, mark=event.body.get("mark", ""))
        self.in_batch.update(dict.fromkeys(purchases, token))
        self._left_in[token] = len(purchases)

    def _settled(self, event: Event) -> None:
        body = event.body
        purchase, _ = self._unreserve(body)
        self.items[body["item"]].settled[body["name"]] = Settled.of(event, purchase)
        self.results.pop(body["item"], None)
        if body["price"]:
            self.settled_price += exact(body["price"])
        if body["money"]:
            self.settled_money += exact(body["money"])
        self.calls += body["calls"]
        said = body["evidence"]
        reply = said.get("reply") or {}
        usage = reply.get("usage")
        if reply.get("attempts") and (body["ok"] or reply.get("text")):  # not what an earlier run was answered
            self.heard.add(purchase.model)
        self._in_doubt(event, said.get("doubtful") or (usage or {}).get("doubtful", 0))
        if purchase.model or body["calls"] or body["money"]:
            self._use(purchase, body["calls"], exact(body["money"]), usage, answers=1)

    def _released(self, event: Event) -> None:
        purchase, _ = self._unreserve(event.body)
        calls, money = event.body.get("calls", 0), exact(event.body.get("money", 0.0))
        self.calls += calls  # attempts that nobody answered
        self.lost_money += money
        self._in_doubt(event, event.body.get("doubtful", 0))
        self.key_refused |= event.body.get("status") == 401
        if calls or money:
            self._use(purchase, calls, money)
        item = self.items[purchase.item]
        if calls:  # it had all its attempts: whoever asks anew begins anew
            item.tried.pop(purchase.name, None)
        item.round.insert(0, purchase.name)

    def _dropped(self, event: Event) -> None:
        self.items[event.body["item"]].round.remove(event.body["name"])

    def _doubt(self, event: Event) -> None:
        purchase, attempted = self._unreserve(event.body)
        item = self.items[purchase.item]
        policy = Doubt(event.body["policy"])
        if policy is not Doubt.SAME:
            money = self._lose(purchase, attempted, given_up=policy is Doubt.SKIP)
        if policy is Doubt.SKIP:
            item.settled[purchase.name] = Settled.in_doubt(purchase, money=float(money), at=event.at)
            return
        item.round.insert(0, purchase.name)

    def _abandoned(self, event: Event) -> None:
        purchase, attempted = self._unreserve(event.body)
        self.items[purchase.item].round.insert(0, purchase.name)
        self._lose(purchase, attempted)

    def _lose(self, purchase: Purchase, attempted: _Attempted, *, given_up: bool = False) -> Fraction:
        """It may have been charged: what was reserved for the attempts that were begun counts as
        spent, and nothing was got for it. Says how much money that is.
        """
        calls = (purchase.calls or int(purchase.buys is Buys.ANSWER)) + attempted.calls
        money = exact(purchase.ceiling)
        if purchase.attempts:
            money *= Fraction(min(attempted.tried - purchase.tried, purchase.attempts), purchase.attempts)
        self.items[purchase.item].tried[purchase.name] = attempted.tried
        if given_up:
            self.settled_price += exact(purchase.price)
            self.settled_money += money
        else:
            self.lost_price += exact(purchase.price)
            self.lost_money += money
        self.calls += calls
        self._use(purchase, calls, money)
        if calls:
            self.doubtful[purchase.id] += calls
        return money

    def _in_doubt(self, event: Event, calls: int) -> None:
        if calls:
            self.doubtful[str(event.purchase)] += calls

    def _use(
        self,
        purchase: Purchase,
        calls: int,
        money: Fraction,
        usage: Mapping[str, Any] | None = None,
        *,
        answers: int = 0,
    ) -> None:
        used = self.used[purchase.model]
        used.answers += answers
        used.calls += calls
        used.money += money
        used.input_tokens += (usage or {}).get("input_tokens", 0)
        used.output_tokens += (usage or {}).get("output_tokens", 0)

    def _stopped(self, event: Event) -> None:
        self.items[event.body["item"]].stopped = event.body

    def _ended(self, event: Event) -> None:
        self.ended = event.body

    def _decided(self, event: Event) -> None:
        self.results[event.body["item"]] = event.body["repair"]

    def _result(self, event: Event) -> None:
        self.results.update(event.body["repairs"])

    def _reserve(self, purchase: Purchase, sign: int) -> None:
        if purchase.price:  # most questions of a live run have none, and exact sums of nothing cost time too
            self._reserved += sign * exact(purchase.price)
        if purchase.ceiling:
            self._ceilings += sign * exact(purchase.ceiling)

    def _unreserve(self, body: Mapping[str, Any]) -> tuple[Purchase, _Attempted]:
        item, name = self.items[body["item"]], body["name"]
        purchase = item.pending.pop(name)
        calls, tried = item.repeated.pop(name, (0, purchase.tried))
        self._reserve(purchase, -1)
        self.calls_reserved -= purchase.calls + calls
        self.under_way -= not purchase.deferred
        token = self.in_batch.pop(purchase.id, None)
        if token is not None:
            self._left_in[token] -= 1
            if not self._left_in[token]:
                del self.batches[token]
        return purchase, _Attempted(calls, tried + 1)


_SUMS = (
    *("settled_price", "settled_money", "lost_price", "lost_money", "_reserved", "_ceilings"),
    *("calls", "calls_reserved", "under_way"),
)


@dataclass(slots=True)
class ItemState:
    """One field of the run."""

    medians: frozenset[str] = frozenset()
    """Nodes whose answer is the median of their repeats; that of others is the mean."""
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
    """Calls for a purchase that sessions made which ended before its outcome came: they count as
    attempts at it.
    """
    repeated: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of what is pending: how many calls were reserved beyond the first, and how many attempts
    counted before the last.
    """
    trajectory: list[Mapping[str, Any]] = field(default_factory=list)
    """One entry per round: names, what was committed before it, and the margin it started from."""
    stopped: Mapping[str, Any] | None = None

    def copy(self) -> ItemState:
        """As it is now; what happens to one of both does not change the other."""
        own = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return ItemState(**{name: copy(value) for name, value in own.items()})

    @property
    def held(self) -> frozenset[str]:
        """Bought, whatever became of it."""
        return frozenset(self.settled)

    @property
    def failed(self) -> frozenset[str]:
        """What gave no value.

        Of a node that is asked several times only as many asks count as failed as could not be
        read, the last ones: the node itself fails where none could.
        """
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
        """What was read, by name; of a node that was asked several times, the mean or the median of
        what could be read.
        """
        found = {
            name: entry.value
            for name, entry in dict(self.settled).items()  # also read by threads that fetch
            if entry.buys is buys and entry.ok and entry.value is not None
        }
        for asks in self._asked_again() if buys is Buys.ANSWER else ():
            read = [found.pop(name) for name in asks if name in found]
            if read:
                node = self.settled[asks[-1]].again_of
                middle = median if node in self.medians else _mean
                found[node] = tuple(middle(part) for part in zip(*read, strict=True))
        return found


def _mean(part: tuple[float, ...]) -> float:
    return fsum(part) / len(part)
