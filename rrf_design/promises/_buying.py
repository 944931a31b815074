"""What a pilot or a policy asks is bought through the product's own loop: journal, cache, prices,
retries.

A pilot needs every answer of its items, a policy one stage after the other. Either way the
questions are known beforehand, so the loop gets problems in which they are asked in any case and
nothing is on sale: it decides nothing. Checks are fetched afterwards, from problems that hold the
answers they are made from.

An item that asks the same question several times, or several judges, wants answers of their own, in
a pilot that buys them together as on stages that buy one after the other. So a problem with one of
them holds the others too, as not asked: the loop numbers them as it does in the item's whole
problem.

The same command twice buys nothing twice: the journal is looked through for a run of exactly these
questions, and that run is gone on with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from rrf_design import files
from rrf_design.blocks import Anchor
from rrf_design.errors import InputError, RetryLater
from rrf_design.field import Node
from rrf_design.market import declared, exact
from rrf_design.problem import Problem
from rrf_design.promises._checks import is_known, machine_checks, shown_to
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.questions.datasets import Dataset
from rrf_design.responses.parsed import INVALID, Parser

_STATUS = {"refused": "refusal", "empty": "missing", "truncated": "error", "in doubt": "error"}
_LOST = frozenset({"timeout", "rate_limited", "unreachable", "failed", "in doubt"})
"""Calls that got nothing: whether they fail depends on the day and not on the item."""
_LIMITS = {"calls used up": "--max-calls", "money used up": "--money"}
_MISSING = {"status": "missing"}


@dataclass(frozen=True, slots=True)
class LiveModels:
    """Who is asked, and how: what `acquire` takes.

    `model`: a name, several by name, an adapter; None for the recipe's own. `budget`: what answers
    and checks may cost, in the recipe's prices; nobody is asked for what would go beyond it.
    """

    model: Any = None
    store: str | os.PathLike[str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: float | Fraction | None = None
    purpose: str = ""
    """What it is bought for, as `runs` lists it."""

    def entries(self, dataset: Dataset) -> dict[str, dict[str, Any]]:
        """The models that will be asked, judges among them, by name, with their options."""
        from rrf_design.acquisition import entries_of

        own = dataset.recipe.models
        if self.model is None and not own:
            raise InputError(
                f"{dataset.recipe.name}: it names no model; say which is asked with --model, or give --responses"
            )
        examples = {name: one.example for name, one in dataset.structures.items()}
        return entries_of(self.model, self.options.get("model_options"), None, own, examples)

    def after(self, bought: BoughtAnswers) -> LiveModels:
        """With so much less to spend, and so many calls less: one limit for all runs of a pilot or
        policy.
        """
        money, calls = self.options.get("money"), self.options.get("calls")
        budget = None if self.budget is None else exact(self.budget) - bought.price
        left = {} if money is None else {"money": max(0.0, money - bought.money)}
        left |= {} if calls is None else {"calls": max(0, calls - bought.calls)}
        return replace(self, options={**self.options, **left}, budget=budget)


@dataclass(frozen=True, slots=True)
class BoughtAnswers:
    """Answers by item and node, as recorded ones are looked up, and who gave them."""

    answers: Mapping[str, Mapping[str, RecordedAnswer]]
    models: Mapping[str, Any]
    """Identities of the models, by name: what can change an answer."""
    runs: tuple[str, ...] = ()
    money: float = 0.0
    """What the calls really cost, where prices are known."""
    calls: int = 0
    price: Fraction = Fraction(0)
    """In the recipe's prices."""

    @property
    def priced(self) -> bool:
        """Whether they may say what they cost: what was bought has a price."""
        return bool(self.answers)

    def of(self, item: str) -> Mapping[str, RecordedAnswer]:
        return self.answers.get(item, {})

    def joined(self, other: BoughtAnswers) -> BoughtAnswers:
        """Both together; one and the same models."""
        names = dict.fromkeys((*self.answers, *other.answers))
        return BoughtAnswers(
            {name: {**self.of(name), **other.of(name)} for name in names},
            other.models or self.models,
            tuple(dict.fromkeys((*self.runs, *other.runs))),
            self.money + other.money,
            self.calls + other.calls,
            self.price + other.price,
        )


NOTHING = BoughtAnswers({}, {})


def buy_answers(
    dataset: Dataset, ids: Sequence[str], live: LiveModels, *, nodes: Iterable[str] | None = None
) -> BoughtAnswers:
    """Every answer of these items, or those of some nodes; RetryLater where the run paused before
    it had them all.
    """

    wanted = None if nodes is None else set(nodes)
    problems: dict[str, Problem] = {}
    given: dict[str, dict[str, Any]] = {}
    price = Fraction(0)
    for item in dataset.only(ids).items_in_order():
        problem = _questions(item.problem, wanted)
        if problem is not None:
            problems[item.id] = problem
            others = [node.id for node in problem.nodes if wanted is not None and node.id not in wanted]
            if others:
                given[item.id] = _not_asked(problem, others)
            price += sum(declared(node) for node in problem.nodes if node.id not in others)
    return _bought(dataset, problems, live, given, price=price) if problems else NOTHING


def buy_checks(
    dataset: Dataset, ids: Sequence[str], live: LiveModels, answers: BoughtAnswers, checks: Collection[str]
) -> BoughtAnswers:
    """What these checks say of the items that have them, made from the answers at hand; RetryLater
    as above. What is known is not fetched.
    """
    work = checking_work(dataset, ids, answers, checks)
    return _bought(dataset, work.problems, live, work.given, price=work.price) if work.problems else NOTHING


@dataclass(frozen=True, slots=True)
class _CheckingWork:
    """Checks to be made of items, by item: the problem that a run of the loop is given, the answers
    it begins with, and what all of it costs.
    """

    problems: Mapping[str, Problem]
    given: Mapping[str, Mapping[str, Any]]
    price: Fraction


def checking_work(
    dataset: Dataset, ids: Sequence[str], answers: BoughtAnswers, checks: Collection[str]
) -> _CheckingWork:
    problems: dict[str, Problem] = {}
    given: dict[str, dict[str, Any]] = {}
    price = Fraction(0)
    for item in dataset.only(ids).items_in_order():
        problem = item.problem
        wanted = [a for a in machine_checks(problem) if a.id in checks and not is_known(problem, a)]
        if wanted:
            said, parsers = answers.of(item.id), item.parsers
            judges = [a for a in machine_checks(problem) if _judge(a)] if any(map(_judge, wanted)) else []
            others = [anchor for anchor in judges if anchor not in wanted]
            shown = {name for anchor in (*wanted, *others) for name in shown_to(problem, anchor)}
            nodes = [node for node in problem.nodes if node.id in shown]
            given[item.id] = {node.id: _given(said.get(node.id), parsers.get(node.id), node) for node in nodes}
            market = dataset.structures[item.structure].example.structure.market
            price += market.spent(anchor.id for anchor in wanted)
            given[item.id] |= {anchor.id: dict(_MISSING) for anchor in others}
            held = [anchor for anchor in machine_checks(problem) if anchor in wanted or anchor in others]
            problems[item.id] = _checking(problem, nodes, held, files.canonical_digest(given[item.id]))
    return _CheckingWork(problems, given, price)


def _bought(
    dataset: Dataset,
    problems: Mapping[str, Problem],
    live: LiveModels,
    given: Mapping[str, Mapping[str, Any]],
    *,
    price: Fraction,
) -> BoughtAnswers:
    """One run of the loop, or the one that was begun for exactly this; what was given is not bought
    again.
    """
    from rrf_design.acquisition import acquire
    from rrf_design.acquisition.stopping import default

    if live.budget is not None and price > exact(live.budget):
        raise InputError(
            f"the next questions and checks, of {len(problems)} items, cost {float(price):g}, and"
            f" {float(live.budget):g} of the budget is left; none of them was bought. A larger --budget goes on"
        )
    entries = live.entries(dataset)  # the recipe's own models are asked where nobody names others
    resume = _earlier_run(problems, entries, live.store, lambda: identities(dataset, live))
    count = f"{len(problems):,} item{'s' * (len(problems) != 1)}"
    title = f"{live.purpose}, {count}" if live.purpose else None
    options = {**live.options, "responses": given or None, "title": title}
    if resume is not None:
        options["stop"] = default()  # a limit on calls is that of this call, not of the one that was interrupted
    result = acquire(problems, entries, store=live.store, resume=resume, **options)
    found: dict[str, dict[str, RecordedAnswer]] = {}
    for entry in result.items:
        had = given.get(entry.item, {})
        names = [name for name in (*entry.nodes, *(a.id for a in problems[entry.item].anchors)) if name not in had]
        lacking = [name for name in names if not _asked(entry, name)]
        if lacking:
            why = f"{result.stopped_because}{f': {result.detail}' if result.detail else ''}"
            more = next((option for word, option in _LIMITS.items() if word in why), None)
            again = "repeat the command" if more is None else f"repeat the command with a larger {more}"
            raise RetryLater(
                f"run {result.run} ended before everything was answered, {entry.item!r} at {lacking[0]!r} among it"
                f" ({why}); {again} to go on"
            )
        found[entry.item] = answers_of(entry, problems[entry.item], names)
    return BoughtAnswers(found, _identities(result.run, live.store), (result.run,), result.money, result.calls, price)


def identities(dataset: Dataset, live: LiveModels) -> dict[str, Any]:
    """Who would answer, without asking: what can change an answer of each model."""
    from contextlib import ExitStack

    from rrf_design.acquisition.settings import answering
    from rrf_design.models.roster import Roster

    with ExitStack() as stack:
        roster = Roster.start(live.entries(dataset), stack)
        return {name: answering(model.identity) for name, model in roster.items()}


def _checking(problem: Problem, nodes: Sequence[Node], checks: Sequence[Anchor], shown: str) -> Problem:
    """Checks that are made in any case, of answers that are there.

    Its name holds the digest of these: the same checks of other answers are other work.
    """
    held = [node.model_copy(update={"cost": None}) for node in nodes]
    owned = [anchor.model_copy(update={"cost": None, "requires": (), "excludes": ()}) for anchor in checks]
    return Problem(name=f"{problem.name} {shown[:16]}", models=problem.models, nodes=held, anchors=owned)


def _given(answer: RecordedAnswer | None, parser: Parser | None, node: Node) -> dict[str, Any]:
    """An answer as the loop takes it: its value, or why there is none, and its words."""
    from rrf_design.tables.items import read_answer

    if answer is None:
        return dict(_MISSING)
    read = read_answer(answer, parser, node.dim)
    value = None if read.parsed is None else read.parsed.value
    said = {"status": read.status or "parse failure"} if value is None else {"value": list(value)}
    return said | ({} if read.text is None else {"text": read.text})


def all_questions(problem: Problem) -> Problem | None:
    """What a pilot asks of an item."""
    return _questions(problem, None)


def _questions(problem: Problem, wanted: set[str] | None) -> Problem | None:
    """Only questions, each asked in any case at its price; with those that equal one of them,
    though they are not wanted: its name then says which are.
    """
    asked = [node for node in problem.nodes if wanted is None or node.id in wanted]
    kept = [n for n in problem.nodes if wanted is None or n.id in wanted or any(_same_question(n, o) for o in asked)]
    unasked = [node.id for node in kept if node.prompt is None]
    if unasked:
        raise InputError(f"node {unasked[0]!r} has no prompt; a live pilot asks every node")
    nodes = [node.model_copy(update={"cost": None, "price": float(declared(node))}) for node in kept]
    name = problem.name if len(kept) == len(asked) else f"{problem.name} {', '.join(node.id for node in asked)}"
    return Problem(name=name, models=problem.models, nodes=nodes) if nodes else None


def _same_question(one: Node, other: Node) -> bool:
    """Whether the loop may take them for equal, though they name two models: two names may mean
    one. It says whether they are.
    """
    from rrf_design.questions.templates import render

    if one.prompt is None or other.prompt is None:
        return False
    text = one.prompt if one.variables is None else render(one.prompt, one.variables)
    return text == (other.prompt if other.variables is None else render(other.prompt, other.variables))


def _judge(anchor: Anchor) -> bool:
    return isinstance(anchor.source, Mapping) and "verifier" in anchor.source


def _not_asked(problem: Problem, nodes: Collection[str]) -> dict[str, Any]:
    """These nodes as responses that there are none of, and what asking them again would be."""
    again = problem.structure.market.asks.items()
    return {name: dict(_MISSING) for name in (*nodes, *(name for name, ask in again if ask.node in nodes))}


def _earlier_run(
    problems: Mapping[str, Problem],
    entries: Mapping[str, Mapping[str, Any]],
    store: Any,
    answering_now: Callable[[], Mapping[str, Any]],
) -> str | None:
    """The newest run of exactly these questions to the same models, asked for in these words: at
    another address, or of another version, they are others.
    """
    from rrf_design.acquisition import Journal
    from rrf_design.acquisition.stores import no_journal

    if no_journal(store) is not None:
        return None
    digests = {item: files.digest(problem) for item, problem in problems.items()}
    with Journal(store) as journal:
        for summary in journal.summaries():
            if summary.items != len(digests):
                continue
            header = journal.header(summary.run)
            same = header["digests"] == digests and _words(header.get("models") or {}) == _words(entries)
            if same and _answered_by(header) == answering_now():
                return summary.run
    return None


def _words(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    """What was asked for, by name; adapters that a program made have no words."""
    found = {name: entry.get("use") for name, entry in entries.items()}
    return {name: use if isinstance(use, str) else None for name, use in found.items()}


def _identities(run: str, store: Any) -> dict[str, Any]:
    from rrf_design.acquisition import Journal

    with Journal(store) as journal:
        return _answered_by(journal.header(run))


def _answered_by(header: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run, by its header: what can change an answer of each of its models."""
    from rrf_design.acquisition.settings import answering

    return {name: answering(entry["identity"]) for name, entry in (header.get("models") or {}).items()}


def answers_of(entry: Any, problem: Problem, names: Iterable[str]) -> dict[str, RecordedAnswer]:
    """What a run has of these names of an item; what it did not come to is not there."""
    numbers = {node.id for node in problem.nodes if node.repeats > 1 or node.parser is None}
    programs = {anchor.id for anchor in problem.anchors if not _judge(anchor)}  # they fail by what they are given
    return {
        name: _answer(entry, name, as_read=name in numbers, called=name not in programs)
        for name in names
        if _asked(entry, name)
    }


def _asked(entry: Any, name: str) -> bool:
    return name in entry.answers or name in entry.anchors or name in entry.failed


def _answer(entry: Any, name: str, *, as_read: bool, called: bool) -> RecordedAnswer:
    """What was said in its own words.

    `as_read`: as the loop read it: the node was asked several times, and its answer is no single
    one of these, or it names no parser. `called`: a model was.
    """
    text = entry.texts.get(name)
    if name in entry.failed:
        said = str(entry.failed[name])
        status = _STATUS.get(said, said)
        lost = called and not text and said in _LOST
        return RecordedAnswer(text=text, status=status if status in INVALID else "error", lost=lost)
    if name in entry.anchors:
        return RecordedAnswer(value=tuple(entry.anchors[name]))
    if text is not None and not as_read:
        return RecordedAnswer(text=text)
    return RecordedAnswer(value=tuple(entry.answers[name]), text=text)
