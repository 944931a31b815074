"""What every field of a run does next, decided on what is settled: a round of purchases, more
waiting, or an end with its reason.

Pure decisions: nothing here writes or asks. Each answers with the events that the loop commits, so
that a resumed run stands on the same ground and decides the same. Where items share one budget, who
buys next is decided for all of them together, when everything asked for is back: so neither the
order in which answers arrive nor a resumed session changes it.

Adaptive: fields that money can bring to their goal go first, the cheapest before the dearer. That
is the largest number of goals reached, and money is never spread so thin that nobody gets there.
While there are such fields the others wait; afterwards what is left goes to whatever sees most of
its witness per cost.

Triage (`_triage`): what is missing or unread is asked for, where that can bring an item to its
goal; what is disputed can't be helped by more questions and goes to a check that decides it, or
where checks may be wrong to as many as can't all be. Machines come before people, and among equals
what costs least to settle comes first, then what is surely wrong, then what disagrees most, as far
as answers say so: the order of the file comes last. What is left then checks what is only
consistent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from rrf_design._margin import DesignMargin
from rrf_design.acquisition._candidates import Candidates, PricedOffer
from rrf_design.acquisition._concluding import repaired
from rrf_design.acquisition._ledger import Ledger
from rrf_design.acquisition._purchases import Buys
from rrf_design.acquisition._selection import (
    Position,
    Schedule,
    bounds_certain_margin,
    fixed_schedules,
    remade_schedules,
    score_of,
)
from rrf_design.acquisition._state import RunState
from rrf_design.acquisition._triage import NextPurchase, admitted, remedy_of, spare_check, spared
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.settings import Mode, Settings, Terms
from rrf_design.acquisition.stopping import Because, Stop, View, between_rounds, for_triage
from rrf_design.checks import (
    decides,
    sole_delivered,
)
from rrf_design.design import standing_of
from rrf_design.errors import InputError
from rrf_design.goal import CERTAIN
from rrf_design.market import exact
from rrf_design.problem import Problem
from rrf_design.verdict import Verdict


@dataclass(frozen=True, slots=True)
class _Proposal:
    """What an item would buy next, and what it would still cost to reach its goal; None if that
    can't be reached.
    """

    offers: tuple[PricedOffer, ...]
    goal: Fraction | None


def share(proposals: Mapping[str, _Proposal], left: Fraction | None) -> dict[str, tuple[PricedOffer, ...]]:
    """What is bought in this wave, by item; never more than `left` together.

    Items that are not named wait for the next.
    """
    buying = {item: proposal for item, proposal in proposals.items() if proposal.offers}
    if left is None:
        return {item: proposal.offers for item, proposal in buying.items()}
    admitted: list[str] = []
    promised = Fraction(0)
    reachable = [(proposal.goal, item) for item, proposal in buying.items() if proposal.goal]
    for cost, item in sorted(reachable, key=lambda entry: entry[0]):  # stable: file order among equals
        if promised + cost <= left:
            promised += cost
            admitted.append(item)
    if not admitted:
        first = {item: proposal.offers[0] for item, proposal in buying.items()}
        admitted = sorted(buying, key=lambda item: -score_of(first[item].sees, first[item].price))
    chosen: dict[str, tuple[PricedOffer, ...]] = {}
    for item in admitted:
        fitting = []
        for offer in buying[item].offers:
            if offer.price > left:
                break
            left -= offer.price
            fitting.append(offer)
        if fitting:
            chosen[item] = tuple(fitting)
    return chosen


def _why_settled(repair: Mapping[str, Any]) -> str:
    return f"{repair['verdict']}, assuming that {repair['assumes']}"


class Decider:
    """Knows the fields, reads the run's state, and remembers only what it computed."""

    def __init__(
        self,
        designs: Mapping[str, Candidates],
        state: RunState,
        settings: Settings,
        *,
        ledger: Ledger,
        terms: Callable[[str, str], Terms],
    ) -> None:
        from rrf_design.repairing import RepairEngine

        self.designs, self.state, self.settings, self.ledger, self._terms = designs, state, settings, ledger, terms
        self.triage = settings.mode is Mode.TRIAGE
        self._rule = for_triage(settings.rule) if self.triage else between_rounds(settings.rule)
        self.adaptive = settings.mode is not Mode.AGNOSTIC
        self.coupled = len(designs) > 1 and (settings.budget is not None or self.triage)
        """Whether what one item spends another one lacks: then purchases beyond a schedule are
        decided for all together.
        """
        self._goal_costs: dict[tuple[str, frozenset[str], frozenset[str]], Fraction | None] = {}
        self._anchored = {item: _direct_anchors(design.problem) for item, design in designs.items()}
        self._read = self._recalled = (0, 0)
        self._repairs: dict[str, tuple[Any, Mapping[str, Any]]] = {}
        """Triage: what the answers of each item amount to, with what it was computed from."""
        self._engine = RepairEngine()

    def admit(self, item: str) -> None:
        """One more item, which is decided on by itself."""
        self._anchored[item] = _direct_anchors(self.designs[item].problem)

    def forget(self, item: str) -> None:
        """An item that is done, or that another process has now."""
        self._anchored.pop(item, None)
        self._repairs.pop(item, None)

    def tally(self, event: Event) -> None:
        """Count readable answers, and answers that agree with a value bought for them, as they come
        in.
        """
        item, state = event.body["item"], self.state.items[event.body["item"]]
        entry = state.settled[event.body["name"]]
        if entry.buys is Buys.ANSWER:
            self._read = (self._read[0] + entry.ok, self._read[1] + 1)
        for anchor, node in self._anchored[item].items():
            truth, answer = state.settled.get(anchor), state.settled.get(node)
            if entry.name in (anchor, node) and truth and answer and truth.ok and answer.ok:
                self._recalled = (self._recalled[0] + (truth.value == answer.value), self._recalled[1] + 1)

    def margin(self, item: str) -> DesignMargin | None:
        """γ of an item as it is: settled purchases only, failed ones left out; None while the field
        is empty.
        """
        state = self.state.items[item]
        return Position(self.designs[item], state.held, state.failed).margin

    def _coming(self, item: str) -> Position:
        """An item with everything that is under way, which counts as held."""
        state = self.state.items[item]
        return Position(self.designs[item], state.held.union(state.pending), state.failed)

    def given(self, item: str) -> list[str]:
        """What belongs to the field from the start and still has to be fetched: answers, and values
        of owned anchors.
        """
        design, state = self.designs[item], self.state.items[item]
        there = design.given.union(state.settled)
        asks = (name for name, ask in design.asks.items() if ask.included and ask.node in there)
        names = (*design.questions, *asks, *design.owned_checks)
        return [name for name in names if name not in state.taken and name not in state.settled]

    def at_once(self, item: str) -> list[str]:
        """What of that can be fetched now: a check waits for the answers it is about, because a
        judge is shown them.
        """
        names, problem = self.given(item), self.designs[item].problem
        anchors = problem.block_by_id
        return [
            name
            for name in names
            if name not in anchors or not set(names).intersection(map(problem.asked_as, anchors[name].nodes))
        ]

    def ready(self, item: str) -> tuple[list[str], bool]:
        """Scheduled names that can be asked for now, and whether some could not be for want of
        money.
        """
        state, design = self.state.items[item], self.designs[item]
        if state.unplanned and not self.adaptive:
            return [], False  # the schedule counts on something that failed
        lost, answered = state.unplanned, design.opened(state.held)
        coming = {name for name in (*state.schedule, *state.taken) if name not in state.settled}
        found: list[str] = []
        short = False
        for name in state.schedule:
            if name in state.taken or name in state.settled:
                continue
            block = design.problem.block_by_id.get(name)
            again_of = design.again_of(name)
            if block is None and self._waits(design.problem, name, coming):
                continue  # it is shown what the others come to
            nodes = (again_of or name,) if block is None else block.nodes
            if lost.intersection(nodes):
                continue  # it was chosen for an answer that then could not be read
            if (block is not None or again_of) and (not answered.issuperset(nodes) or not coming.isdisjoint(nodes)):
                continue  # a judge is shown the answer, so it has to be there
            price = design.price([*found, name], {*state.held, *state.pending})
            ceiling = sum((exact(self._terms(item, other).ceiling) for other in [*found, name]), Fraction(0))
            if self.ledger.affordable(price, ceiling):
                found.append(name)
            else:
                short = True
        return found, short

    @staticmethod
    def _waits(problem: Problem, name: str, coming: Collection[str]) -> bool:
        """Whether a question is asked after others that are still to be answered."""
        nodes = problem.node_by_id
        if name not in nodes or nodes[name].after is None:
            return False
        return any(other in nodes and nodes[other].after is None for other in coming)

    def check(self, item: str, *, planned: bool) -> Stop | None:
        """The first stopping rule that fires; in triage, that the item is checked, or consistent
        and nothing affordable checks it.
        """
        if self.triage and Verdict(self.repair(item)["verdict"]).passes:
            return None if self._spare_check(item) else Stop(Because.TARGET, _why_settled(self.repair(item)))
        return self._rule.check(self._view(item, planned=planned))

    def round(self, item: str, names: list[str]) -> Event:
        """The next round, with the margin it was decided on."""
        margin = self.margin(item)
        body: dict[str, Any] = {"item": item, "names": names[: self.settings.batch]}
        body |= {"committed": float(self.state.committed), "gamma_lower": 0.0, "gamma": 0.0, "support": []}
        if margin is not None:
            body |= {"gamma_lower": margin.lower, "gamma": margin.value, "support": list(margin.support)}
        return Event(Kind.ROUND, body)

    def beginning(self) -> list[Event]:
        """Agnostic: all schedules at once, before the first question is asked.

        Adaptive: nothing is planned yet.
        """
        new = {item: design for item, design in self.designs.items() if not self.state.items[item].planned}
        fixed = dict.fromkeys(new, Schedule(())) if self.adaptive else self._fixed(new)
        return [
            _schedule(item, [*self.given(item), *s.names], bound=s.bound, route=s.route) for item, s in fixed.items()
        ]

    def more(self, items: Iterable[str]) -> list[Event]:
        """What these items buy beyond their schedules, decided together; those that are not named
        need nothing, or wait.
        """
        wanted = list(items)
        if self.triage:
            return self._triaged(wanted)
        if self.adaptive:
            return self._wave(wanted) or self._decisions(wanted, self.ledger.left)
        events = self._anew([item for item in wanted if self.state.items[item].unplanned])
        left = self.ledger.left
        if left is not None:
            prices = (self._price(event.body["item"], event.body["names"]) for event in events)
            left -= sum(prices, Fraction(0))
        bare = [event.body["item"] for event in events if not event.body["names"]]
        return [*events, *self._decisions(bare, left)]

    def end(self, item: str, *, short: bool) -> Stop:
        """Why an item stops that no rule stopped: there is nothing left that it could buy."""
        state = self.state.items[item]
        if short:
            return Stop(Because.BUDGET, "what is left of the schedule is not affordable", again=True)
        if state.pending:
            return Stop(Because.WAITING, f"{len(state.pending)} reviews by people are open", again=True)
        if self.triage:
            return self._undecided(item)
        margin = self.margin(item)
        if margin is None:
            return self._empty(item)
        if self.adaptive:
            known = "so nothing can raise the margin" if isfinite(margin.upper) else "as far as it is known"
            return Stop(Because.EXHAUSTED, f"nothing affordable sees the worst witness, {known}")
        certain, figure = margin.lower, "margin"
        if bounds_certain_margin(self.designs[item].problem):
            certain, figure = standing_of(self.designs[item].problem, margin).robust_lower, f"margin, {CERTAIN},"
        if state.bound is not None and certain >= state.bound * (1 - 1e-6):
            detail = (
                f"the planner proved that no affordable design has a {figure} above {state.bound:.6g}, and it is"
                f" {certain:.6g}"
            )
            return Stop(Because.EXHAUSTED, detail)
        lost = len(state.failed)
        detail = (
            f"; {lost} of it could not be read, and planning again found nothing that makes up for it" if lost else ""
        )
        return Stop(Because.SCHEDULE, f"all that was planned is bought{detail}")

    def _remedy(self, item: str) -> NextPurchase | None:
        return remedy_of(self.designs[item], self.state.items[item], self.repair(item))

    def _spare_check(self, item: str) -> NextPurchase | None:
        """A machine check of an item that is only consistent. Without a budget nobody said that
        there is money to spare: only what is free is bought.
        """
        return spare_check(
            self.designs[item], self.state.items[item], self.repair(item), self.ledger.left or Fraction(0)
        )

    def _undecided(self, item: str) -> Stop:
        """Triage: why an item ends for which nothing more is bought."""
        if Verdict(self.repair(item)["verdict"]).passes:
            later = self._spare_check(item) is not None  # money is kept for questions that were not asked yet
            return Stop(Because.TARGET, _why_settled(self.repair(item)), again=later)
        verdict, remedy = self.repair(item)["verdict"], self._remedy(item)
        if remedy is not None:
            detail = f"{verdict}; settling it costs {float(remedy.settling):g}, which is not left"
            return Stop(Because.BUDGET, detail, again=True)
        return Stop(Because.EXHAUSTED, f"{verdict}, and nothing on sale decides it")

    def repair(self, item: str) -> Mapping[str, Any]:
        """What the answers of an item amount to so far: the repair's document."""
        state = self.state.items[item]
        present = (state.held, state.failed)
        if item not in self._repairs or self._repairs[item][0] != present:
            self._repairs[item] = (present, repaired(self.designs[item], state, self._engine))
        return self._repairs[item][1]

    def _triaged(self, items: Collection[str]) -> list[Event]:
        """Triage: who buys what in this wave, over all items that are still open."""
        open_items = [item for item in items if not self.state.items[item].pending]
        unsettled = [item for item in open_items if not Verdict(self.repair(item)["verdict"]).passes]
        remedies = {item: remedy for item in unsettled if (remedy := self._remedy(item)) is not None}
        chosen = admitted(remedies, self.ledger.left)
        # What is open is settled as far as it can be: what is left makes sure of the rest.
        if not chosen and not any(map(self._unasked, self.designs)):
            spare = {item: self._spare_check(item) for item in open_items if item not in remedies}
            chosen = spared({item: check for item, check in spare.items() if check is not None}, self.ledger.left)
        return [self._chosen(item, one.names) for item, one in chosen.items()]

    def _unasked(self, item: str) -> bool:
        """Whether a question that is always asked is still to be paid for."""
        return not self.state.items[item].settled.keys() >= set(self.designs[item].questions)

    def _empty(self, item: str) -> Stop:
        state, design = self.state.items[item], self.designs[item]
        if state.failed:
            return Stop(
                Because.UNREADABLE, f"none of {len(state.failed)} answers could be read, and nothing else helps"
            )
        prices = [offer.price for offer in design.offers(state.held, state.failed, most=None)]
        if not prices:
            return Stop(Because.EXHAUSTED, "no question on sale is part of a relation or a check, so none can help")
        detail = f"nothing has been asked, and the least that helps costs {float(min(prices)):g}"
        return Stop(Because.BUDGET, detail, again=True)

    def _wave(self, items: Collection[str]) -> list[Event]:
        """Adaptive: every item proposes, and one budget is shared among the proposals."""
        left = self.ledger.left
        proposals = {
            item: _Proposal(self._offers(item, left), self._goal_cost(item) if self.coupled else None) for item in items
        }
        chosen = share(proposals, left)
        return [self._chosen(item, [n for b in offers for n in b.names]) for item, offers in chosen.items()]

    def _chosen(self, item: str, names: Collection[str]) -> Event:
        """What was decided while answers come in; what is left of a schedule that counts on an
        unread answer gives way to it.
        """
        return _schedule(item, names, replaces=bool(self.state.items[item].unplanned))

    def _offers(self, item: str, left: Fraction | None) -> tuple[PricedOffer, ...]:
        """Up to `batch` purchases, each against the worst witness of the design with the others in
        it.
        """
        state = self.state.items[item]
        shared = self.settings.shared
        answers = state.values(Buys.ANSWER) if shared is None else None
        there = replace(self._coming(item), answers=answers, values=state.values(Buys.ANCHOR), shared=shared)
        found: list[PricedOffer] = []
        while len(found) < self.settings.batch and (offer := there.next_offer(most=left)) is not None:
            found.append(offer)
            there = there.after(offer.names)
            left = None if left is None else left - offer.price
        return tuple(found)

    def _goal_cost(self, item: str) -> Fraction | None:
        """What the goal would still cost; computed once for items that are alike."""
        there = self._coming(item)
        key = (there.design.problem.structure.key, there.held, there.failed)
        if key not in self._goal_costs:
            self._goal_costs[key] = there.cost_of_goal()
        return self._goal_costs[key]

    def _anew(self, items: Collection[str]) -> list[Event]:
        """Agnostic: plan again from where they are, for items whose schedule counts on something
        that failed.

        Where a check failed the planner plans what is left; it knows nothing of unread answers, so
        where there are any the cheapest way to the goal is looked for with the margins of a repair.
        """
        unread: dict[str, Position] = {}
        rest: dict[str, Candidates] = {}
        for item in items:
            there = self._coming(item)
            if not there.failed.isdisjoint(there.design.problem.node_by_id):
                unread[item] = there
            elif (problem := replace(there, held=there.held.difference(there.failed)).rest) is not None:
                rest[item] = Candidates(problem)
        try:
            plans = self._fixed(rest)
        except InputError:  # rules of the problem that what is left can't keep
            plans = {}
        left = self.ledger.left
        if left is not None:
            left -= sum((self._price(item, schedule.names) for item, schedule in plans.items()), Fraction(0))
        plans = {item: replace(plan, names=self._renamed(item, plan.names, rest[item])) for item, plan in plans.items()}
        plans |= remade_schedules(unread, left)
        listed = [(item, plans.get(item, Schedule(()))) for item in items]
        return [_schedule(item, s.names, bound=s.bound, replaces=True, route=s.route) for item, s in listed]

    def _fixed(self, designs: Mapping[str, Candidates]) -> dict[str, Schedule]:
        left, settings = self.ledger.left, self.settings
        budget = None if left is None else float(left)
        return fixed_schedules(designs, budget=budget, method=settings.method, time_limit=settings.time_limit)

    def _renamed(self, item: str, names: Collection[str], rest: Candidates) -> tuple[str, ...]:
        """A schedule for what is left, its asks under the names that are still free."""
        more = Counter(rest.asks[name].node for name in names if name in rest.asks)
        state = self.state.items[item]
        used = {*state.held, *state.pending}
        return (*(name for name in names if name not in rest.asks), *self.designs[item].asks_for(more, used))

    def _price(self, item: str, names: Collection[str]) -> Fraction:
        state = self.state.items[item]
        return self.designs[item].price(names, {*state.held, *state.pending})

    def _decisions(self, items: Collection[str], left: Fraction | None) -> list[Event]:
        """The last resort of fields none of whose answers could be read: a check that decides
        them.
        """
        events = []
        for item in items:
            if not self.state.items[item].failed or self.margin(item) is not None:
                continue
            names = self._coming(item).deciding_check(most=left)
            if names:
                left = None if left is None else left - self._price(item, names)
                events.append(_schedule(item, names))
        return events

    def _settled(self, item: str) -> str | None:
        """The verdict of a repair that reaches the goal already, though its margin alone does not,
        and what it assumes; None where none does.

        A check may have decided it, whatever was answered; and where answers may steer, they may
        bound better what uncertain relations add than anything that was known before
        (docs/algorithms.md, fact 18).
        """
        state, design = self.state.items[item], self.designs[item]
        node = sole_delivered(design.problem, state.held)
        told = [a for a in design.problem.anchors if (entry := state.settled.get(a.id)) is not None and entry.ok]
        decided = node is not None and any(decides(design.problem, a, node, held=state.held) for a in told)
        better = self.adaptive and (bool(design.full.uncertain) or design.full.premise.wrong_checks > 0)
        if state.pending or not (decided or better):
            return None
        found = self.repair(item)
        return _why_settled(found) if Verdict(found["verdict"]).passes else None

    def _view(self, item: str, *, planned: bool) -> View:
        state, design = self.state.items[item], self.designs[item]
        margin = self.margin(item)
        history = [
            (float(entry["committed"]), float(entry["gamma_lower"]))
            for entry in state.trajectory
            if "gamma_lower" in entry
        ]
        history.append((float(self.state.committed), 0.0 if margin is None else margin.lower))
        if state.trajectory and design.asks.keys() >= set(state.trajectory[-1]["names"]):
            history = []  # asking again is not done for the margin

        anew = bool(state.unplanned) and not self.adaptive

        def affordable() -> list[PricedOffer]:
            return design.offers(state.held, state.failed, most=self.ledger.left)

        def further(most: Fraction | None) -> list[PricedOffer]:
            return design.further(state.held, state.failed, most=most)

        return View(
            problem=design.asked(state.held, state.failed),
            margin=lambda: margin,
            ceiling=lambda: (
                inf if further(self.ledger.left) else design.ceiling(state.held, state.failed, affordable())
            ),
            left=lambda: (
                len(affordable()) + len(further(self.ledger.left)),
                len(design.offers(state.held, state.failed, most=None)) + len(further(None)),
            ),
            planned=planned or margin is None or anew or bool(state.pending),
            history=tuple(history),
            read=self._read,
            recalled=self._recalled,
            committed_money=float(self.state.committed_money),
            calls=self.state.calls,
            seconds=self.ledger.seconds,
            settled=lambda: self._settled(item),
        )


def _direct_anchors(problem: Problem) -> dict[str, str]:
    """Anchors that state one node's whole value, by the node they state."""
    return {anchor.id: anchor.nodes[0] for anchor in problem.anchors if anchor.rows is None and len(anchor.nodes) == 1}


def _schedule(
    item: str, names: Collection[str], *, bound: float | None = None, replaces: bool = False, route: str = ""
) -> Event:
    body: dict[str, Any] = {"item": item, "names": list(names), "bound": bound}
    body |= {"replaces": True} if replaces else {}
    body |= {"route": route} if route else {}
    return Event(Kind.SCHEDULE, body)
