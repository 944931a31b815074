"""Ask and tell: the acquisition loop without any model in it, for everyone's own infrastructure.

`ask` hands out purchases whose intents are already committed to the journal; the caller fetches them however it likes and
`tell`s what came of them. One item works in rounds: it decides on what is settled, asks for up to `batch` things at
once, and decides again when all of them are back, so that the order in which answers arrive never changes a choice.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from rrf_design.acquisition import choosing
from rrf_design.acquisition.design import Design, Solved
from rrf_design.acquisition.journal import Event, Journal, Kind
from rrf_design.acquisition.state import Buys, Doubt, Purchase, RunState, Settlement
from rrf_design.acquisition.stopping import Because, Rule, Stop, View, default, record
from rrf_design.blocks import Anchor
from rrf_design.errors import InputError, Refused
from rrf_design.margins import DesignMargin
from rrf_design.planning.costs import exact
from rrf_design.problem import Problem


class Mode(StrEnum):
    AGNOSTIC = "agnostic"
    """The whole schedule is fixed before any answer is seen."""
    ADAPTIVE = "adaptive"
    """Observed residuals may steer; more efficient, and it introduces selection, so it is recorded."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What fetching something means: the most it can cost in money, whether a person does it, where it happens."""

    ceiling: float = 0.0
    deferred: bool = False
    local: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run decides. Everything here is part of its header and fixed for its life, except `budget`, `money` and `stop`, where they are given on resume."""

    budget: float | None = None
    money: float | None = None
    mode: Mode = Mode.AGNOSTIC
    batch: int = 1
    stop: Rule | None = None
    method: str = "auto"
    """How an agnostic schedule is made: a method of `plan`, or "witness" for the paper's rule."""
    doubt: Doubt | None = None
    """For purchases that left the machine and whose outcome a crash swallowed: AGAIN (default) or SKIP."""
    time_limit: float | None = None

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InputError(f"batch must be at least 1, not {self.batch}")
        for name in ("budget", "money"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"{name} must be zero or more, not {value!r}")

    @property
    def rule(self) -> Rule:
        return default() if self.stop is None else self.stop

    def document(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "money": self.money,
            "mode": self.mode.value,
            "batch": self.batch,
            "stop": self.rule.describe(),
            "rule": record(self.rule),
            "method": self.method,
            "doubt": (self.doubt or Doubt.AGAIN).value,
        }


class Acquirer:
    """One run over one or many fields: the ledger, the rounds, and when to stop.

    Owns the run's state and, with a journal, writes every step to it before it takes effect outside. Single-threaded:
    whoever fetches in parallel does so between `ask` and `tell`. After an error while writing, the object is dead
    and the run is resumed from the journal, where the truth is.
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
        clock: Callable[[], float] = time.time,
        watch: Callable[[Event], None] | None = None,
    ) -> None:
        named = {"": problems} if isinstance(problems, Problem) else dict(problems)
        if not named:
            raise InputError("there is nothing to acquire: the data set is empty")
        self.settings = settings or Settings()
        agnostic = self.settings.mode is Mode.AGNOSTIC
        shared: dict[bytes, Solved] = {}
        self.designs = {item: Design(problem, incremental=agnostic, shared=shared) for item, problem in named.items()}
        self.state = RunState(named)
        self.run = run
        self._journal, self._clock, self._watch = journal, clock, watch
        self._terms = terms or (lambda item, name: Terms())
        self._instant = instant or (lambda purchase: None)
        self._buffer: list[Event] = []
        self._dead = False
        self._anchored = {item: _direct_anchors(problem) for item, problem in named.items()}
        self._read = self._recalled = (0, 0)
        for event in journal.events(run) if journal is not None else ():
            self._apply(event)
        self._emit(Event(Kind.SESSION, {"budget": self.settings.budget, "money": self.settings.money}))
        for purchase in self.state.pending:
            if not purchase.deferred:
                self._doubt(purchase)
        # Items are finished roughly in order; those at the front that have stopped are not looked at again.
        self._unstopped = deque(name for name, item in self.state.items.items() if item.stopped is None)
        self._flush()

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

    def give(self, responses: Mapping[str, Any], item: str = "") -> None:
        """Responses that exist already: recorded at no price, never asked."""
        problem, state = self.designs[item].problem, self.state.items[item]
        for name, value in responses.items():
            if name not in problem.node_by_id:
                raise InputError(f"responses: there is no node {name!r}")
            if name in state.settled:
                continue
            numbers = tuple(float(x) for x in (value if isinstance(value, list | tuple) else (value,)))
            if len(numbers) != problem.node_by_id[name].dim:
                raise InputError(f"responses: node {name!r} needs {problem.node_by_id[name].dim} numbers")
            purchase = Purchase(item, name, Buys.ANSWER, 0.0)
            self._emit(purchase.intent())
            self._emit(Settlement(purchase, "given", numbers).event())
        self._flush()

    def ask(self, count: int = 1) -> tuple[Purchase, ...]:
        """Up to `count` purchases to fetch now; their intents are committed when this returns.

        What needs no fetching (relations, values in the file) is settled on the way, intent and fact in one commit. An
        empty answer means: wait for what is under way, or, if `finished`, that the run has stopped.
        """
        self._alive()
        result: list[Purchase] = []
        for item in self._unstopped:
            if len(result) >= count:
                break
            state = self.state.items[item]
            while len(result) < count:
                if state.stopped is not None or (not state.round and (state.waiting or not self._advance(item))):
                    break
                purchase = self._intend(item, state.round[0]) if state.round else None
                if purchase is None:
                    continue
                at_once = Settlement(purchase, "bought") if purchase.buys is Buys.RELATION else self._instant(purchase)
                if at_once is not None:
                    self._emit(at_once.event())
                else:
                    result.append(purchase)
        self._flush()
        while self._unstopped and self.state.items[self._unstopped[0]].stopped is not None:
            self._unstopped.popleft()
        return tuple(result)

    def tell(self, *settlements: Settlement, flush: bool = True) -> None:
        """Commit what came of purchases; after this returns nothing of it can be lost.

        `flush=False` leaves the commit to the next `ask`, one transaction for both: right where an answer that a
        crash swallows can be had again for nothing.
        """
        self._alive()
        for settlement in settlements:
            self._pending(settlement.purchase)
            self._emit(settlement.event())
        if flush:
            self._flush()

    def release(self, purchase: Purchase, reason: str) -> None:
        """Nobody was reached, so nothing was bought: the reservation ends and the purchase can be made later."""
        self._alive()
        self._pending(purchase)
        body = {"item": purchase.item, "name": purchase.name, "reason": reason}
        self._emit(Event(Kind.RELEASED, body, purchase.id, purchase.attempt))
        self._flush()

    def end(self, because: str, detail: str = "") -> None:
        """Say in the journal why this session ends."""
        self._emit(Event(Kind.ENDED, {"because": because, "detail": detail}))
        self._flush()

    def conclude(self, result: Mapping[str, Any]) -> None:
        """Keep repair and certificate with the run."""
        self._emit(Event(Kind.RESULT, result))
        self._flush()

    # What follows decides; everything it decides becomes an event.

    def _advance(self, item: str) -> bool:
        """Begin the next round of an item, or stop it; False when there is nothing to ask for now."""
        state = self.state.items[item]
        if not state.schedule:
            self._fix_schedules()
        given = [name for name in self._given(item) if name not in state.taken and name not in state.settled]
        if given:
            self._emit(Event(Kind.ROUND, {"item": item, "names": given}))
            return True
        margin = self._margin_or_stop(item)
        if margin is None:
            return False
        ready, short = self._ready(item)
        stop = self.settings.rule.check(self._view(item, planned=bool(ready)))
        if stop is None and not ready and self.settings.mode is Mode.ADAPTIVE:
            self._emit(Event(Kind.SCHEDULE, {"item": item, "names": self._choose(item)}))
            ready, short = self._ready(item)
        if stop is None and not ready:
            stop = self._out_of_schedule(item, short=short)
        if stop is not None:
            self._stop(item, stop)
            return False
        body = {"item": item, "names": ready[: self.settings.batch], "committed": float(self.state.committed)}
        body |= {"gamma_lower": margin.lower, "gamma": margin.value, "support": list(margin.support)}
        self._emit(Event(Kind.ROUND, body))
        return True

    def _margin_or_stop(self, item: str) -> DesignMargin | None:
        try:
            return self.margin(item)
        except InputError as error:
            self._stop(item, Stop(Because.UNREADABLE, str(error)))
            return None

    def _stop(self, item: str, stop: Stop) -> None:
        body = {"item": item, "because": stop.because.value, "detail": stop.detail, "again": stop.again}
        self._emit(Event(Kind.STOPPED, body))

    def _given(self, item: str) -> list[str]:
        """What belongs to the field from the start and still has to be fetched: answers, and values of owned anchors."""
        problem = self.designs[item].problem
        names = [node.id for node in problem.nodes if node.cost is None]
        return names + [anchor.id for anchor in problem.anchors if anchor.owned and anchor.value is None]

    def _fix_schedules(self) -> None:
        """Agnostic: all schedules at once, before the first question is asked. Adaptive: how much each item may spend."""
        fixed = dict.fromkeys(self.designs, choosing.Schedule(()))
        if self.settings.mode is Mode.AGNOSTIC:
            fixed = choosing.fixed_schedules(
                self.designs,
                budget=self.settings.budget,
                method=self.settings.method,
                time_limit=self.settings.time_limit,
            )
        for item, schedule in fixed.items():
            if not self.state.items[item].schedule:
                body = {"item": item, "names": [*self._given(item), *schedule.names], "bound": schedule.bound}
                self._emit(Event(Kind.SCHEDULE, body))

    def _ready(self, item: str) -> tuple[list[str], bool]:
        """Scheduled names that can be asked for now, and whether some could not be for want of money."""
        state, design = self.state.items[item], self.designs[item]
        failed, answered = state.failed, design.opened(state.held)
        ready: list[str] = []
        short = False
        for name in state.schedule:
            if name in state.taken or name in state.settled:
                continue
            block = design.problem.block_by_id.get(name)
            nodes = (name,) if block is None else block.nodes
            if any(node in failed for node in nodes):
                continue  # its rows would never count
            if block is not None and not answered.issuperset(nodes):
                continue
            price = design.price([*ready, name], {*state.held, *state.pending})
            ceiling = sum(self._terms(item, other).ceiling for other in [*ready, name])
            if not self._affordable(price, ceiling):
                short = True
                continue
            ready.append(name)
        return ready, short

    def _choose(self, item: str) -> list[str]:
        """Adaptive: up to `batch` purchases, each against the worst witness of the design with the others in it."""
        state, design = self.state.items[item], self.designs[item]
        held = {*state.held, *state.pending}
        left = self._left(item)
        names: list[str] = []
        for _ in range(self.settings.batch):
            bundle = choosing.best_bundle(
                design,
                held,
                state.failed,
                most=left,
                answers=state.values(Buys.ANSWER),
                values=state.values(Buys.ANCHOR),
            )
            if bundle is None:
                break
            names.extend(bundle.names)
            held.update(bundle.names)
            left = None if left is None else left - bundle.price
        return names

    def _out_of_schedule(self, item: str, *, short: bool) -> Stop:
        state = self.state.items[item]
        if short:
            return Stop(Because.BUDGET, "what is left of the schedule is not affordable", again=True)
        if state.pending:
            return Stop(Because.WAITING, f"{len(state.pending)} reviews by people are open", again=True)
        if self.settings.mode is Mode.ADAPTIVE:
            return Stop(Because.EXHAUSTED, "nothing affordable sees the worst witness, so nothing can raise the margin")
        lower = self.margin(item).lower
        if state.bound is not None and lower >= state.bound * (1 - 1e-6):
            detail = f"the planner proved that no affordable design has a margin above {state.bound:.6g}, and it is {lower:.6g}"
            return Stop(Because.EXHAUSTED, detail)
        dead = [name for name in state.schedule if name not in state.taken and name not in state.settled]
        detail = f"; {len(dead)} purchases were left out because an answer they need could not be read" if dead else ""
        return Stop(Because.SCHEDULE, f"all that was planned is bought{detail}")

    def _view(self, item: str, *, planned: bool) -> View:
        state, design = self.state.items[item], self.designs[item]
        history = [
            (float(entry["committed"]), float(entry["gamma_lower"]))
            for entry in state.trajectory
            if "gamma_lower" in entry
        ]

        def left() -> tuple[int, int]:
            return (
                len(design.candidates(state.held, state.failed, most=self._left(item))),
                len(design.candidates(state.held, state.failed, most=None)),
            )

        def ceiling() -> float:
            return design.ceiling(
                state.held, state.failed, design.candidates(state.held, state.failed, most=self._left(item))
            )

        history.append((float(self.state.committed), self.margin(item).lower))
        return View(
            problem=design.problem,
            margin=lambda: self.margin(item),
            ceiling=ceiling,
            left=left,
            planned=planned,
            history=tuple(history),
            read=self._read,
            recalled=self._recalled,
            committed_money=float(self.state.committed_money),
            calls=self.state.calls,
            seconds=self.state.seconds_before + self._clock() - self.state.session_at,
        )

    def _tally(self, event: Event) -> None:
        """Count readable answers, and answers that agree with a value bought for them, as they come in."""
        item, state = event.body["item"], self.state.items[event.body["item"]]
        entry = state.settled[event.body["name"]]
        if entry.buys is Buys.ANSWER:
            self._read = (self._read[0] + entry.ok, self._read[1] + 1)
        for anchor, node in self._anchored[item].items():
            truth, answer = state.settled.get(anchor), state.settled.get(node)
            if entry.name in (anchor, node) and truth and answer and truth.ok and answer.ok:
                self._recalled = (self._recalled[0] + (truth.value == answer.value), self._recalled[1] + 1)

    def _left(self, item: str) -> Fraction | None:
        """What this item may still spend. Adaptive items share the budget evenly, so that none depends on another's luck."""
        if self.settings.budget is None:
            return None
        left = exact(self.settings.budget) - self.state.committed
        if self.settings.mode is Mode.AGNOSTIC or len(self.designs) == 1:
            return left
        state = self.state.items[item]
        own = sum((exact(e.price) for e in state.settled.values()), Fraction(0))
        own += sum((exact(p.price) for p in state.pending.values()), Fraction(0))
        return min(left, exact(self.settings.budget) / len(self.designs) - own)

    def _affordable(self, price: Fraction, ceiling: float) -> bool:
        within = self.settings.budget is None or self.state.committed + price <= exact(self.settings.budget)
        money = self.settings.money
        return within and (money is None or self.state.committed_money + exact(ceiling) <= exact(money))

    def _intend(self, item: str, name: str) -> Purchase | None:
        """The purchase with its reservation, or None if there is no money for it any more."""
        state, design = self.state.items[item], self.designs[item]
        block = design.problem.block_by_id.get(name)
        buys = Buys.ANSWER if block is None else Buys.ANCHOR if isinstance(block, Anchor) else Buys.RELATION
        terms = self._terms(item, name) if buys is not Buys.RELATION else Terms()
        price = design.price([name], {*state.held, *state.pending})
        if not self._affordable(price, terms.ceiling):
            self._emit(Event(Kind.DROPPED, {"item": item, "name": name, "reason": "not affordable"}))
            return None
        attempt = state.attempts.get(name, 0)
        purchase = Purchase(item, name, buys, float(price), terms.ceiling, attempt, terms.deferred)
        self._emit(purchase.intent())
        return purchase

    def _doubt(self, purchase: Purchase) -> None:
        """An intent without an outcome, found on resume: the policy decides, the journal says so."""
        policy = Doubt.SAME
        if not self._terms(purchase.item, purchase.name).local:
            policy = self.settings.doubt or Doubt.AGAIN
        body = {"item": purchase.item, "name": purchase.name, "policy": policy.value}
        self._emit(Event(Kind.DOUBT, body, purchase.id, purchase.attempt))

    def _pending(self, purchase: Purchase) -> None:
        known = (
            self.state.items[purchase.item].pending.get(purchase.name) if purchase.item in self.state.items else None
        )
        if known != purchase:
            raise Refused(f"purchase {purchase.id!r} is not under way; it was settled before, or never asked for")

    def _alive(self) -> None:
        if self._dead:
            raise Refused(f"run {self.run}: its journal could not be written; resume it instead of going on")

    def _emit(self, event: Event) -> None:
        event = Event(event.kind, event.body, event.purchase, event.attempt, self._clock())
        self._apply(event)
        self._buffer.append(event)

    def _apply(self, event: Event) -> None:
        self.state.apply(event)
        if event.kind is Kind.SETTLED:
            self._tally(event)

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


def _direct_anchors(problem: Problem) -> dict[str, str]:
    """Anchors that state one node's whole value, by the node they state."""
    return {anchor.id: anchor.nodes[0] for anchor in problem.anchors if anchor.rows is None and len(anchor.nodes) == 1}
