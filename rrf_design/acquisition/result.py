"""What a run leaves behind: purchases, margin, repair; one document, the same live and read back
from the journal.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design import files
from rrf_design._shown import ShownRows, bars_on
from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition._concluding import conclude, repaired_together
from rrf_design.acquisition._purchases import Buys, Settled
from rrf_design.acquisition._state import ItemState, RunState
from rrf_design.acquisition.classes import with_room
from rrf_design.acquisition.journal import Journal, Kind
from rrf_design.acquisition.stopping import Because
from rrf_design.checks import decisive_checks, delivered_node, is_person, machine_deciding
from rrf_design.derive import realised
from rrf_design.design import standing_of
from rrf_design.documents import in_todays_words, sealed
from rrf_design.errors import InputError
from rrf_design.goal import Goal
from rrf_design.market import exact
from rrf_design.problem import Problem
from rrf_design.texts import digits
from rrf_design.verdict import Verdict, counted, worst

if TYPE_CHECKING:
    from rrf_design.certificates import Certificate


@dataclass(frozen=True, slots=True)
class Bought:
    """One settled purchase."""

    item: str
    name: str
    buys: Buys
    outcome: str
    ok: bool
    value: tuple[float, ...] | None
    price: float
    money: float
    attempt: int
    at: float = 0.0
    """When it was settled: seconds since 1970."""
    source: str = ""
    """Who said so, for an anchor: the kind of its source."""

    def to_json(self) -> dict[str, Any]:
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}


@dataclass(frozen=True, slots=True)
class ItemResult:
    """One field at the end of a run."""

    item: str
    name: str
    stopped_because: str
    detail: str
    k: int
    gamma: float
    gamma_lower: float
    robust_lower: float
    """The same when every block is off by its declared uncertainty."""
    goal: float | None
    """The margin that the problem's goal makes of this design; None without one."""
    reached: bool
    """The design, as it was bought and read, reaches the goal; without one, its margin is
    positive.
    """
    selected: tuple[str, ...]
    answers: Mapping[str, tuple[float, ...]]
    failed: Mapping[str, str]
    """Nodes and anchors that gave no value, and why."""
    anchors: Mapping[str, tuple[float, ...]]
    trajectory: tuple[Mapping[str, Any], ...]
    repair: Mapping[str, Any] | None
    """The repair's own document; None while the run is unfinished, or when there was nothing to
    repair from.
    """
    nodes: tuple[str, ...]
    """Every question of the field."""
    problem: Problem
    """The field as it turned out: anchor values filled in, everything that gave no value left
    out.
    """
    texts: Mapping[str, str] = field(default_factory=dict)
    """What was answered, word for word, by node."""
    cost: float = 0.0
    """What its answers and checks cost, in the problem's unit; recorded ones as they were recorded.
    """
    repeats: Mapping[str, int] = field(default_factory=dict)
    """Nodes whose answer is the mean of several, and how many could be read."""

    def certify(self, **options: Any) -> Certificate:
        """The certificate of what was read, without the rows of what was not; `options` go to
        `rrf_design.certify`.

        Where answers could not be read the verdict rests on more: on rows that touch them, too
        (`rrf_design.premise`).
        """
        from rrf_design.certificates import certify

        held = {*self.problem.node_by_id, *self.problem.block_by_id}
        return certify(self.problem, [name for name in self.selected if name in held], **options)

    @property
    def repaired(self) -> Mapping[str, Any] | None:
        return None if self.repair is None else self.repair.get("repaired")

    @property
    def verdict(self) -> Verdict:
        """What may be believed of this field; incomplete while there is no repair."""
        return Verdict((self.repair or {}).get("verdict", Verdict.INCOMPLETE))

    @property
    def assumes(self) -> str:
        return str((self.repair or {}).get("assumes", ""))

    @property
    def unread(self) -> tuple[str, ...]:
        """Nodes that were asked and whose answer could not be read."""
        return tuple(name for name in self.failed if name in self.nodes)

    @property
    def asked(self) -> tuple[str, ...]:
        return tuple(name for name in self.nodes if name in self.answers or name in self.failed)

    @property
    def unasked(self) -> tuple[str, ...]:
        return tuple(name for name in self.nodes if name not in self.answers and name not in self.failed)

    def to_json(self) -> dict[str, Any]:
        own = [entry.name for entry in fields(self) if entry.name not in ("nodes", "problem", "texts", "cost")]
        derived = ("verdict", "assumes", "asked", "unasked", "unread")
        return {name: _plain(getattr(self, name)) for name in (*own, *derived)}


@dataclass(frozen=True, slots=True, repr=False)
class Acquisition(ShownRows):
    """A run, finished or paused.

    For a single problem the figures are its own, for a data set the worst of its items.
    """

    run: str
    stopped_because: str
    detail: str
    spent: float
    """In the problem's unit of cost, with what a crash may have lost."""
    lost: float
    """Of it: reservations of purchases whose outcome a crash swallowed and that were made again."""
    money: float
    calls: int
    doubtful: Mapping[str, int]
    """Of the calls, by purchase: those that broke off before a byte came back.

    They are in the books; the provider, who may never have seen them, has at most so many calls
    less for each of these purchases, and none less for any other.
    """
    gamma_lower: float
    purchases: tuple[Bought, ...]
    items: tuple[ItemResult, ...]
    open_reviews: int
    header: Mapping[str, Any]
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each model of the run was asked for and took: answers, calls, tokens, money."""
    on_sale: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What would still decide rows that are not checked, by who makes the check (`machine`,
    `person`): how many `rows`, and the least that one costs (`from`).
    """

    @property
    def unspent(self) -> float | None:
        """What is left of the budget; None without one."""
        budget = (self.header.get("settings") or {}).get("budget")
        return None if budget is None else max(0.0, float(exact(budget) - exact(self.spent)))

    @property
    def money_left(self) -> str:
        """What was left unspent, and what it could still buy, in a sentence; empty where there is
        nothing to say.
        """
        if [entry.item for entry in self.items] == [""]:
            return ""  # one problem, no table
        parts = []
        for who, entry in self.on_sale.items():
            what = "a machine check" if who == "machine" else "a person"
            many = f"{entry['rows']:,.0f} row{'' if entry['rows'] == 1 else 's'}"
            parts.append(f"{what} would decide {many} more, from {digits(entry['from'])} each")
        if self.unspent is None:
            machine = self.on_sale.get("machine")
            return "" if machine is None else f"Not bought, without a budget: {parts[0]}."
        if not self.unspent:
            return ""
        return f"{digits(self.unspent)} unspent: {'; '.join(parts) or 'nothing on sale decides another row'}."

    @property
    def repaired(self) -> Mapping[str, Any] | None:
        """Node to repaired values; for a data set, item to that."""
        if len(self.items) == 1 and self.items[0].item == "":
            return self.items[0].repaired
        return {entry.item: entry.repaired for entry in self.items}

    @property
    def verdict(self) -> Verdict:
        """That of the worst field."""
        return worst(entry.verdict for entry in self.items) or Verdict.INCOMPLETE

    @property
    def verdicts(self) -> dict[str, int]:
        return counted(entry.verdict for entry in self.items)

    @property
    def finished(self) -> bool:
        open_ended = (Because.PAUSED.value, Because.PENDING.value, "unfinished")
        return self.stopped_because not in open_ended and self.open_reviews == 0

    @property
    def passes(self) -> bool:
        """Finished, and every field is checked or consistent."""
        return self.finished and self.verdict.passes

    def _line(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.verdicts.items() if count)
        return f"run {self.run}: {counts or 'no item'}; spent {self.spent:g}; {self.stopped_because}"

    def _records(self) -> Iterator[dict[str, Any]]:
        for entry in self.items:
            yield {
                "item": entry.item or entry.name,
                "verdict": entry.verdict.value,
                "gamma_lower": entry.gamma_lower,
                "cost": entry.cost,
                "assumes": entry.assumes,
                "stopped_because": entry.stopped_because,
            }

    def plot(self, axes: Any = None) -> Any:
        """How many fields have each verdict, on matplotlib axes."""
        return bars_on(axes, self.verdicts, across="fields")

    def to_json(self) -> dict[str, Any]:
        own = [entry.name for entry in fields(self) if entry.name not in ("purchases", "items")]
        content = {name: _plain(getattr(self, name)) for name in (*own, "verdict", "verdicts", "repaired", "unspent")}
        content |= {name: [entry.to_json() for entry in getattr(self, name)] for name in ("purchases", "items")}
        return sealed("rrf-run", content)


def collect(
    run: str,
    designs: Mapping[str, Candidates],
    state: RunState,
    header: Mapping[str, Any],
    *,
    because: str,
    detail: str,
) -> Acquisition:
    """The run as a document."""
    items = tuple(_item(item, design, state) for item, design in designs.items())
    return Acquisition(
        run=run,
        stopped_because=because,
        detail=detail or "; ".join(dict.fromkeys(entry.detail for entry in items if entry.detail)),
        spent=float(state.spent),
        lost=float(state.lost_price),
        money=float(state.settled_money + state.lost_money),
        calls=state.calls,
        doubtful=dict(state.doubtful),
        gamma_lower=min(entry.gamma_lower for entry in items),
        purchases=tuple(_bought(item, entry) for item, one in state.items.items() for entry in one.settled.values()),
        items=items,
        open_reviews=sum(purchase.deferred for purchase in state.pending),
        header=dict(header),
        models={name: used.to_json() for name, used in state.used.items()},
        on_sale=_still_on_sale(designs, state),
    )


def _still_on_sale(designs: Mapping[str, Candidates], run: RunState) -> dict[str, dict[str, float]]:
    """The checks that would decide rows which nothing has checked."""
    prices: dict[str, list[Fraction]] = {"machine": [], "person": []}
    for item, design in designs.items():
        state, repair = run.items[item], run.results.get(item) or {}
        gone = {*state.held, *state.failed, *state.pending}
        least: dict[str, list[Fraction]] = {"machine": [], "person": []}
        for one in design.fields(state.held):
            document = (repair.get("fields") or {}).get(delivered_node(one.problem), repair)
            if document.get("verdict") == Verdict.CHECKED:
                continue
            machines = machine_deciding(one.problem, without=gone)
            people = [anchor for anchor in decisive_checks(one.problem, without=gone) if is_person(anchor)]
            for who, listed in (("machine", machines), ("person", people)):
                least[who] += [one.price([listed[0].id], state.held)] if listed else []
        for who, found in least.items():
            prices[who] += [min(found)] if found else []
    return {who: {"rows": len(found), "from": float(min(found))} for who, found in prices.items() if found}


def read_run(run: str, *, store: str | os.PathLike[str] | None = None) -> Acquisition:
    """A run as its journal has it; nothing is asked, bought or written."""
    with Journal(store, read_only=True) as journal:
        run = journal.find(run)
        header = journal.header(run)
        designs = {item: Candidates(with_room(files.from_document(doc))) for item, doc in journal.problems(run).items()}
        state = RunState({item: design.problem for item, design in designs.items()})
        journal.replay(run, state.apply)
    state.results.update(conclude(designs, state)["repairs"])  # a run that is under way, or was killed, is shown too
    ended = state.ended or {"because": "unfinished", "detail": ""}
    return collect(run, designs, state, header, because=ended["because"], detail=ended["detail"])


TOGETHER = 64
"""Items whose verdicts are worked out together: equal ones by one product of matrices."""


class RunFollower:
    """A run while somebody else writes it: read on and on, never locked, never written.

    Verdicts are those of the answers there are so far: they are worked out here, not by the run,
    and change with what is bought; the run's own result replaces them.

    Parameters
    ----------
    run : str
        Its name, the beginning of it, or "last".
    store : path or address, optional
        The journal.

    Examples
    --------
    >>> try:
    ...     RunFollower("last", store="no-such.sqlite")
    ... except InputError as error:
    ...     print(str(error).partition(";")[0])
    no-such.sqlite: no journal of runs
    """

    def __init__(self, run: str, *, store: str | os.PathLike[str] | None = None) -> None:
        self._store = store
        with Journal(store, read_only=True) as journal:
            self.run = journal.find(run)
            self.header = journal.header(self.run)
            self._documents = journal.problems(self.run)
        self._state = RunState(self._documents.keys())
        self._designs: dict[str, Candidates] = {}
        self._structures: dict[Any, Any] = {}
        self._engine: Any = None
        self._verdicts: dict[str, tuple[int, str]] = {}
        self._failures: Counter[str] = Counter()
        self._settled_at: deque[float] = deque(maxlen=400)
        self._seen = 0

    def read(self) -> int:
        """Take in what was written since; how many events that was."""
        with Journal(self._store, read_only=True) as journal:
            events = journal.events(self.run, after=self._seen)
        for event in events:
            self._state.apply(event)
            if event.kind is Kind.SETTLED:
                self._settled_at.append(event.at)
                if not event.body["ok"]:
                    self._failures[str(event.body["outcome"])] += 1
        self._seen += len(events)
        return len(events)

    def decide(self, seconds: float) -> int:
        """Work out verdicts of items whose answers are there, for at most about so many seconds of
        processor time; how many are left to be done.
        """
        from rrf_design.repairing import RepairEngine

        if self._engine is None:
            self._engine = RepairEngine()
        until, due = time.thread_time() + seconds, list[str]()
        for name, item in self._state.items.items():
            known = self._verdicts.get(name, (0, ""))[0]
            if not (name in self._state.results or item.pending or item.round or len(item.settled) == known):
                due.append(name)
        for start in range(0, len(due), TOGETHER):
            if time.thread_time() >= until:
                return len(due) - start
            part = {name: (self._design(name), self._state.items[name]) for name in due[start : start + TOGETHER]}
            for name, found in repaired_together(part, self._engine).items():
                self._verdicts[name] = len(self._state.items[name].settled), str(found["verdict"])
        return 0

    def _design(self, name: str) -> Candidates:
        """The item's field; equal ones share their structure."""
        if name not in self._designs:
            problem = with_room(files.from_document(self._documents[name]))
            structure = self._structures.setdefault(problem.structure.key, problem.structure)
            problem.__dict__["structure"] = structure
            self._designs[name] = Candidates(problem, structure=structure)
            self._state.items[name].medians = frozenset(node.id for node in problem.nodes if node.take)
        return self._designs[name]

    def progress(self) -> dict[str, Any]:
        """Where the run stands: what is told while it is watched."""
        state, settings = self._state, self.header.get("settings") or {}
        verdicts = Counter(verdict for name, (_, verdict) in self._verdicts.items() if name not in state.results)
        verdicts.update(str(Verdict(found["verdict"])) for found in state.results.values())
        quick = [at for at in self._settled_at if at > self._settled_at[-1] - 60.0] if self._settled_at else []
        span = quick[-1] - quick[0] if len(quick) > 1 else 0.0
        return {
            "run": self.run,
            "items": len(state.items),
            "answered": sum(bool(i.settled) and not i.waiting and not i.round for i in state.items.values()),
            "verdicts": {verdict.value: verdicts.get(verdict.value, 0) for verdict in Verdict},
            "spent": float(state.spent),
            "budget": settings.get("budget"),
            "money": float(state.settled_money + state.lost_money),
            "money_limit": settings.get("money"),
            "calls": state.calls,
            "in_flight": state.under_way,
            "failures": dict(self._failures),
            "a_second": (len(quick) - 1) / span if span else None,
            "at": self._settled_at[-1] if self._settled_at else None,
            "because": None if state.ended is None else str(state.ended["because"]),
            "events": self._seen,
        }


def answer_log(run: str, *, store: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """The raw answers of a run as records that the replay model reads, each with its item and
    node; what a check was told has its `source`.
    """
    with Journal(store, read_only=True) as journal:
        found = journal.find(run)
        together = {
            item: others
            for item, document in journal.problems(found).items()
            if (others := files.from_document(document).read_together)
        }
        return [
            {
                **event.body["evidence"],
                **{"item": event.body["item"], "node": name},
                **({"source": event.body["source"]} if event.body.get("source") else {}),
            }
            for event in journal.events(found)
            if event.kind is Kind.SETTLED and event.body["evidence"].get("format") == "rrf-answer"
            for name in (
                event.body["name"],
                *together.get(event.body["item"], {}).get(event.body["name"], ()),
            )
        ]


def _bought(item: str, entry: Settled) -> Bought:
    return Bought(item, **{own.name: getattr(entry, own.name) for own in fields(Bought)[1:]})


def _item(item: str, design: Candidates, run: RunState) -> ItemResult:
    state, problem = run.items[item], design.problem
    try:
        missing = design.included.difference(state.settled)  # a limit may end a run before all of the field was asked
        gone = state.failed.union(missing)
        margin = design.settled_margin(state.held, gone)
        standing = standing_of(design.asked(state.held, gone), margin)
        value = margin.value
        lower, robust = standing.lower, standing.robust_lower
        wanted, reached = standing.wanted, standing.reached
    except InputError:  # no answer could be read: an empty field promises nothing
        value = lower = robust = 0.0
        wanted, reached = Goal.of(problem).target, False
    answers, asked = state.values(Buys.ANSWER), design.asked(state.held, state.failed)
    failed = state.failed.difference(design.asks)
    stopped = state.stopped or {"because": "unfinished", "detail": ""}
    return ItemResult(
        item=item,
        name=problem.name,
        stopped_because=stopped["because"],
        detail=stopped["detail"],
        k=problem.k,
        gamma=value,
        gamma_lower=lower,
        robust_lower=robust,
        goal=wanted,
        reached=reached,
        selected=tuple(name for name in state.settled if name not in design.given and name not in design.asks),
        answers=answers,
        failed={name: state.settled[name].outcome for name in state.settled if name in failed},
        anchors=state.values(Buys.ANCHOR),
        trajectory=tuple(state.trajectory),
        repair=in_todays_words(run.results.get(item)),
        nodes=tuple(node.id for node in problem.nodes),
        problem=(
            realised(asked, failed=state.failed, values=state.values(Buys.ANCHOR), held=state.held | state.failed)
            if answers
            else problem
        ),
        texts={name: entry.text for name, entry in state.settled.items() if entry.text},
        cost=_cost(design, state),
        repeats={name: n for name, n in design.repeats(state.held, state.failed).items() if n > 1 and name in answers},
    )


def _cost(design: Candidates, state: ItemState) -> float:
    settled = {name: entry.recorded for name, entry in state.settled.items() if entry.came_about}
    return float(design.structure.market.spent(settled, settled))


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value
