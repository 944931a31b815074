"""What a run leaves behind: purchases, margin, repair; one document, the same live and read back from the journal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rrf_design import files
from rrf_design.acquisition.design import Design, realised
from rrf_design.acquisition.journal import Journal, Kind
from rrf_design.acquisition.state import Buys, ItemState, RunState, Settled
from rrf_design.acquisition.stopping import Because, goal, robust_lower
from rrf_design.errors import InputError, RRFError
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.certificates import Certificate

FORMAT = "rrf-run"
VERSION = 1
_STATUS = {
    name: name
    for name in (
        "parse failure",
        "ambiguous",
        "out of range",
        "compile failure",
        "rejected",
        "timeout",
        "memory",
        "crash",
    )
} | {"refused": "refusal", "empty": "missing", "in doubt": "missing", "non-integer": "non-integer"}
"""How a failed answer is named to the repair, which treats it as an erasure and never as a zero."""


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

    def to_json(self) -> dict[str, Any]:
        return {
            "item": self.item,
            "name": self.name,
            "buys": self.buys.value,
            "outcome": self.outcome,
            "ok": self.ok,
            "value": None if self.value is None else list(self.value),
            "price": self.price,
            "money": self.money,
            "attempt": self.attempt,
            "at": self.at,
        }


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
    selected: tuple[str, ...]
    answers: Mapping[str, tuple[float, ...]]
    failed: Mapping[str, str]
    """Nodes and anchors that gave no value, and why."""
    anchors: Mapping[str, tuple[float, ...]]
    trajectory: tuple[Mapping[str, Any], ...]
    repair: Mapping[str, Any] | None
    """The repair's own document; None while the run is unfinished, or when there was nothing to repair from."""
    problem: Problem
    """The field as it turned out: anchor values filled in, everything that gave no value left out."""

    def certify(self, **options: Any) -> Certificate:
        """The certificate of the field as it turned out; `options` go to `rrf_design.certify`."""
        from rrf_design.certificates import certify

        held = {*self.problem.node_by_id, *self.problem.block_by_id}
        return certify(self.problem, [name for name in self.selected if name in held], **options)

    @property
    def repaired(self) -> Mapping[str, Any] | None:
        return None if self.repair is None else self.repair.get("repaired")

    @property
    def reached(self) -> bool:
        """The goal is certified; without a goal, that anything at all is promised."""
        return self.robust_lower > 0.0 if self.goal is None else self.robust_lower >= self.goal

    def to_json(self) -> dict[str, Any]:
        return {
            "item": self.item,
            "name": self.name,
            "stopped_because": self.stopped_because,
            "detail": self.detail,
            "k": self.k,
            "gamma": self.gamma,
            "gamma_lower": self.gamma_lower,
            "robust_lower": self.robust_lower,
            "goal": self.goal,
            "selected": list(self.selected),
            "answers": {name: list(value) for name, value in self.answers.items()},
            "failed": dict(self.failed),
            "anchors": {name: list(value) for name, value in self.anchors.items()},
            "trajectory": [dict(entry) for entry in self.trajectory],
            "repair": None if self.repair is None else dict(self.repair),
        }


@dataclass(frozen=True, slots=True)
class Acquisition:
    """A run, finished or paused. For a single problem the figures are its own, for a data set the worst of its items."""

    run: str
    stopped_because: str
    detail: str
    spent: float
    """In the problem's unit of cost, with what a crash may have lost."""
    lost: float
    """Of it: reservations of purchases whose outcome a crash swallowed and that were made again."""
    money: float
    calls: int
    gamma_lower: float
    purchases: tuple[Bought, ...]
    items: tuple[ItemResult, ...]
    open_reviews: int
    header: Mapping[str, Any]

    @property
    def repaired(self) -> Mapping[str, Any] | None:
        """Node to repaired values; for a data set, item to that."""
        if len(self.items) == 1 and self.items[0].item == "":
            return self.items[0].repaired
        return {entry.item: entry.repaired for entry in self.items}

    @property
    def reached(self) -> bool:
        """Finished, and the goal of every item is certified."""
        unfinished = self.stopped_because in (Because.PAUSED.value, "unfinished") or self.open_reviews > 0
        return not unfinished and all(entry.reached for entry in self.items)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "run": self.run,
            "stopped_because": self.stopped_because,
            "detail": self.detail,
            "spent": self.spent,
            "lost": self.lost,
            "money": self.money,
            "calls": self.calls,
            "gamma_lower": self.gamma_lower,
            "purchases": [entry.to_json() for entry in self.purchases],
            "repaired": None if self.repaired is None else _plain(self.repaired),
            "open_reviews": self.open_reviews,
            "items": [entry.to_json() for entry in self.items],
            "header": dict(self.header),
        }


def conclude(designs: Mapping[str, Design], state: RunState) -> dict[str, Any]:
    """Repair every field that has stopped: what the journal keeps as the run's result."""
    return {"repairs": {item: _repair(design, state.items[item]) for item, design in designs.items()}}


def _repair(design: Design, state: ItemState) -> dict[str, Any]:
    from rrf_design.repair import repair, to_document

    answers = state.values(Buys.ANSWER)
    if not answers:
        return {"repaired": None, "reason": "no answer could be read"}
    problem, selected = finished_problem(design, state)
    silent = {
        name: {"status": _STATUS.get(entry.outcome, "error")}
        for name, entry in state.settled.items()
        if entry.buys is Buys.ANSWER and not entry.ok
    }
    try:
        found = repair(problem, {**answers, **silent}, select=selected)
    except RRFError as error:
        return {"repaired": None, "reason": str(error)}
    return to_document(found)


def finished_problem(design: Design, state: ItemState) -> tuple[Problem, tuple[str, ...]]:
    """The problem as it turned out (values filled in, failed anchors gone) and what of it was bought."""
    failed = {name for name in state.failed if name in design.problem.block_by_id}
    unknown = {a.id for a in design.problem.anchors if a.value is None and a.id not in state.settled and a.owned}
    problem = realised(design.problem, failed=failed | unknown, values=state.values(Buys.ANCHOR))
    bought = tuple(name for name, entry in state.settled.items() if entry.ok and name not in design.given)
    asked = tuple(name for name in state.settled if name in design.problem.node_by_id and name not in design.given)
    return problem, problem.resolve([name for name in dict.fromkeys((*bought, *asked)) if _on_sale(problem, name)])


def _on_sale(problem: Problem, name: str) -> bool:
    entry = problem.node_by_id.get(name) or problem.block_by_id.get(name)
    return entry is not None and entry.cost is not None


def collect(
    run: str, designs: Mapping[str, Design], state: RunState, header: Mapping[str, Any], *, because: str, detail: str
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
        gamma_lower=min(entry.gamma_lower for entry in items),
        purchases=tuple(_bought(item, entry) for item, one in state.items.items() for entry in one.settled.values()),
        items=items,
        open_reviews=sum(purchase.deferred for purchase in state.pending),
        header=dict(header),
    )


def read_run(run: str, *, store: str | os.PathLike[str] | None = None) -> Acquisition:
    """A run as its journal has it; nothing is asked, bought or written."""
    with Journal(store) as journal:
        run = journal.find(run)
        header = journal.header(run)
        designs = {item: Design(files.from_document(doc)) for item, doc in journal.problems(run).items()}
        state = RunState(designs)
        for event in journal.events(run):
            state.apply(event)
    ended = state.ended or {"because": "unfinished", "detail": ""}
    return collect(run, designs, state, header, because=ended["because"], detail=ended["detail"])


def answer_log(run: str, *, store: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """The raw answers of a run as records that the replay model reads, each with its item and node."""
    with Journal(store) as journal:
        return [
            {**event.body["evidence"], "item": event.body["item"], "node": event.body["name"]}
            for event in journal.events(journal.find(run))
            if event.kind is Kind.SETTLED and event.body["evidence"].get("format") == "rrf-answer"
        ]


def _bought(item: str, entry: Settled) -> Bought:
    return Bought(
        item,
        entry.name,
        entry.buys,
        entry.outcome,
        entry.ok,
        entry.value,
        entry.price,
        entry.money,
        entry.attempt,
        entry.at,
    )


def _item(item: str, design: Design, run: RunState) -> ItemResult:
    state, problem = run.items[item], design.problem
    repairs = (run.result or {}).get("repairs", {})
    try:
        margin = design.settled_margin(state.held, state.failed)
        value, lower, robust = margin.value, margin.lower, robust_lower(margin)
        wanted = goal(problem, margin.operator.shape[0])
    except InputError:  # no answer could be read: an empty field promises nothing
        value = lower = robust = 0.0
        wanted = goal(problem)
    answers = state.values(Buys.ANSWER)
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
        selected=tuple(name for name in state.settled if name not in design.given),
        answers=answers,
        failed={name: entry.outcome for name, entry in state.settled.items() if not entry.ok},
        anchors=state.values(Buys.ANCHOR),
        trajectory=tuple(state.trajectory),
        repair=repairs.get(item),
        problem=realised(problem, failed=state.failed, values=state.values(Buys.ANCHOR)) if answers else problem,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return list(value) if isinstance(value, tuple) else value
