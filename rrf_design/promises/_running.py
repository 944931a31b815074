"""A policy run on the items outside its pilot, and the table that it delivers.

What may be said about a run under a policy: its promise, with the denominator that was tested,
what went to people, and what it cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker.promise_words import average_above, looks_words, percent, plain_percent
from rrf_design.checks import worth_of
from rrf_design.documents import sealed
from rrf_design.errors import InputError, Refused
from rrf_design.promises._buying import BoughtAnswers, LiveModels, identities
from rrf_design.promises._checks import check_names, program_digests
from rrf_design.promises._decisions import HeldDecisions
from rrf_design.promises._pilot_analysis import checked_value
from rrf_design.promises._pilot_design import Population, last_prices, places_aside, whole_prices
from rrf_design.promises._play import PlayedPolicy, play
from rrf_design.promises._policies import CHECK_EVERYTHING, CascadePolicy, LastStage
from rrf_design.promises._policy_document import check_applies
from rrf_design.promises._reuse import buy_stages, refuse_other_outcomes
from rrf_design.promises._sheets import AnswerSheet, ItemAnswers, read_sheet
from rrf_design.promises._truths import GoldRule, Truth, cannot_tell, person_question, read_truth, row_text, shown
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.datasets import Dataset
from rrf_design.repairing.contract import Repair
from rrf_design.risk import Among, Statement
from rrf_design.tables.delivered import Delivery
from rrf_design.tables.rows import Row, Value
from rrf_design.verdict import Verdict


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """What became of every item."""

    sentence: str
    totals: _RunTotals
    delivery: Delivery
    """A row for each item, in the order of the table."""
    reviews: tuple[tuple[str, str, str], ...]
    """(id, question, text) of the items that wait for a person."""
    document: Mapping[str, Any]
    unlabelled: int = 0
    """Rows of the pilot whose truth is not at hand, though its tests had it: people said it, in a
    review file of the pilot.
    """
    pilot_cost: float = 0.0
    """What the pilot cost, in the recipe's prices: answers and checks of its items, truths that
    people said; live, also what it bought of the items that made its order of tests beyond what the
    run has use for. With `cost` that is everything, once.
    """
    disputed: tuple[str, ...] = ()
    """Items that the policy delivers by itself, and of which a review says something else."""

    @property
    def complete(self) -> bool:
        """Whether every item is settled as the policy says: delivered, decided by a person, or
        withheld where the policy withholds.
        """
        return not self.reviews and not self.unlabelled

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.delivery)

    @property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """The delivered cells of each item, in the order of the table."""
        return tuple(cells for _, cells in self.delivery.cells())

    @property
    def about_pilot(self) -> str:
        """The rows that the sentence does not speak of."""
        drawn = len(self.document["drawn"])
        return (
            f"Beside these, the pilot's {drawn:,} items are delivered with their truth; answers, checks and people's"
            f" truths of the pilot cost {self.pilot_cost:,.2f}."
        )

    def to_json(self) -> dict[str, Any]:
        totals = self.totals
        return sealed(
            "rrf-policy-run",
            {
                "sentence": self.sentence,
                **{
                    key: self.document[key]
                    for key in ("policy", "risk", "confidence", "statement", "among", "population", "recipe")
                },
                "delivered": totals.delivered,
                "to_people": totals.to_people,
                "waiting": len(self.reviews),
                "pilot_without_truth": self.unlabelled,
                "pilot_cost": self.pilot_cost,
                "disputed": list(self.disputed),
                "cost": totals.cost,
                "check_everything": totals.check_everything,
                "budget": totals.budget,
                "verdicts": self.delivery.verdicts,
                "items": [{"id": name, **row} for name, row in zip(self.ids, self.rows, strict=True)],
            },
        )


def run_policy(
    dataset: Dataset,
    answers: RecordedAnswers | LiveModels,
    document: Any,
    *,
    reviews: Mapping[str, Any] | None = None,
) -> PolicyRun:
    """Run a policy that still applies, on recorded answers or live, stage after stage.

    Refused when recipe, table or models have changed, or the policy does not prove what it says;
    before anything is asked.
    """
    from collections.abc import Mapping as Known

    stratify = document.get("stratify") if isinstance(document, Known) else None
    population = Population.of(dataset, stratify=stratify if isinstance(stratify, str) else None)
    models = identities(dataset, answers) if isinstance(answers, LiveModels) else None
    data = check_applies(document, dataset.recipe.digest, population, models=models, programs=program_digests(dataset))
    _belongs(data, dataset)
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    piloted = set(data["drawn"])
    if isinstance(answers, LiveModels):
        known: RecordedAnswers | BoughtAnswers = buy_stages(dataset, answers, data, nodes)
    else:
        known = answers
    sheet = read_sheet(dataset, known, nodes)
    last = last_prices(sheet, dataset.recipe.ladder)
    rest = [place for place, name in enumerate(sheet.ids) if name not in piloted]
    outside = sheet.only(rest)
    rule = GoldRule.of(dataset.recipe.data)
    said = dict(reviews or {})
    rows: dict[str, Row] = {}
    played: PlayedPolicy | None = None
    if data["policy"] != CHECK_EVERYTHING:
        policy = CascadePolicy.from_json(data["ladder"])
        pilot = sheet.only(data["places"])
        truths, recorded = [_known_truth(row, said, rule) for row in pilot.rows], not isinstance(answers, LiveModels)
        refuse_other_outcomes(data, pilot, truths, last=last, recorded=recorded)
        (played,) = play(
            [policy.undiluted], outside, last=replace(last, withheld=0.0)
        )  # a price to choose by; nobody pays it
        _unanswered(outside, played)
        repairs = HeldDecisions(outside).repairs(played.held)
        checked = _drawn_to_check(policy, played, population.digest, data["seed"], rest)
        played = replace(
            played, policy=policy, delivered=played.delivered & ~checked, cost=played.cost + last.check * checked
        )
        for at, row in enumerate(outside.rows):
            if checked[at]:
                reason = (
                    f"{plain_percent(policy.random_checks)} of what the policy accepts is checked by a person, and this"
                    " item was drawn"
                )
                rows[row.id] = _held_back(row, float(played.cost[at]), reason, repairs[at])
            else:
                rows[row.id] = _played_row(row, played, at, repairs[at], data)
    else:
        for row in outside.rows:
            rows[row.id] = _held_back(row, last.check, "the pilot proved no policy; a person decides")
    waiting, unlabelled = [], 0
    whole = whole_prices(sheet, dataset.recipe.ladder, live=data["models"] is not None)
    pilot_cost = _beside(data, population, outside, played, whole)
    disputed = [] if played is None else _disputed(outside, played, said, rule)
    person = played is None or played.policy.last is LastStage.PERSON
    for row in sheet.rows:
        if row.id in piloted:
            cell = _pilot_truth(row, said, rule)
            unlabelled += cell is None
            pilot_cost += whole[row.id] + (last.check if _by_people(row, said, rule) else 0.0)
            rows[row.id] = _looked_up(row, whole[row.id], cell, rule, "the pilot's truth")
        elif rows[row.id].answer is None and said.get(row.id) is not None:
            rows[row.id] = _looked_up(row, rows[row.id].cost, said[row.id], rule, "the reviewer")
        elif rows[row.id].answer is None and person and row.template.person is not None:
            waiting.append((row.id, question_of(row), row_text(row.item.cells, hidden=[rule.column])))
    untold = sum(name not in piloted and cannot_tell(said.get(name)) for name in sheet.ids if rows[name].answer is None)
    totals = replace(_totals(dataset, outside, played, last.check), waiting=len(waiting), untold=untold)
    delivery = Delivery(dataset, [rows[name] for name in sheet.ids])
    sentence = _run_sentence(data, totals)
    return PolicyRun(sentence, totals, delivery, tuple(waiting), data, unlabelled, pilot_cost, tuple(disputed))


def _row(row: ItemAnswers, cost: float, repair: Repair | None, verdict: Verdict, **said: Any) -> Row:
    """A row of this item; what the product's own repair says of it orders it for review."""
    first, person = row.implied.get(row.template.node), row.template.person
    raw = row.raw or (None if first is None else shown(first, row.parser))
    found: dict[str, Any] = {}
    if repair is not None:
        found = {"wrong": repair.support, "gamma": repair.gamma, "misfit": repair.residual}
    return Row(
        row.id,
        (Value(verdict, raw=raw, **said),),
        cost=cost,
        structure=row.item.structure,
        worth=0.0 if person is None else worth_of(person),
        settled=said.get("answer") is not None,
        **found,
    )


def _held_back(row: ItemAnswers, cost: float, reason: str, repair: Repair | None = None) -> Row:
    return _row(row, cost, repair, Verdict.INCOMPLETE if repair is None else repair.verdict, reason=reason)


def _played_row(row: ItemAnswers, played: PlayedPolicy, at: int, repair: Repair | None, data: Mapping[str, Any]) -> Row:
    """What the policy makes of an item: its value, or why there is none."""
    value, cost = played.values[at], float(played.cost[at])
    if value is None:
        where = "goes to a person" if played.policy.last is LastStage.PERSON else "is withheld"
        why = "No answer could be read." if repair is None else repair.reason[:1].upper() + repair.reason[1:]
        return _held_back(row, cost, f"no gate of the policy accepts its answers; it {where}. {why}", repair)
    first = row.implied.get(row.template.node)
    promise = f"the policy keeps its risk of {data['risk']} ({data['statement']}, confidence {data['confidence']})"
    return _row(
        row,
        cost,
        repair,
        Verdict.INCOMPLETE if repair is None else repair.verdict,
        answer=shown(value, row.parser),
        assumes=promise,
        changed=first is None or shown(first, row.parser) != shown(value, row.parser),
        reason=_reason(played, at),
    )


def _reason(played: PlayedPolicy, at: int) -> str:
    if at not in played.by_check:
        more = f" with {', '.join(played.more[at])}" if played.more and played.more[at] else ""
        return f"delivered under the policy{more}: {played.name}"
    where = ", where no gate of the policy accepts the answers" if played.policy.order else ""
    return f"the check {played.more[at][-1]!r} states the value{where}"


def _looked_up(row: ItemAnswers, cost: float, cell: Any, rule: GoldRule, who: str) -> Row:
    """An item whose truth somebody knows: that is what is delivered."""
    if cannot_tell(cell):
        return _held_back(row, cost, f"{who} is that nobody can tell")
    truth = _truth_of(row, cell, rule)
    if truth is None:
        why = "an item of the pilot whose truth is not at hand; give the review file of the pilot"
        return _held_back(row, cost, why)
    return _row(
        row,
        cost,
        None,
        Verdict.CHECKED,
        answer=shown(truth.values[0], row.parser),
        assumes=f"{who} is right",
        bound=0.0,
        changed=not truth.right(row.implied.get(row.template.node)),
        reason=f"{who} states the value",
    )


def _truth_of(row: ItemAnswers, cell: Any, rule: GoldRule) -> Truth | None:
    """What a cell says is right of an item; its name where it can't be read."""
    try:
        return read_truth(cell, row.parser, rule.within(row.template.problem.delta))
    except InputError as error:
        raise InputError(f"item {row.id!r}: {error}") from None


def _beside(
    data: Mapping[str, Any],
    population: Population,
    outside: AnswerSheet,
    played: PlayedPolicy | None,
    whole: Mapping[str, float],
) -> float:
    """What a live pilot bought of the items that made its order of tests, and the run did not ask
    for: recorded answers cost nobody anything more.
    """
    if data["models"] is None or data["order"] != "front":
        return 0.0
    places = places_aside(population, Statement(data["statement"]), data["seed"], data["aside"])
    aside = {population.ids[place] for place in places}
    rows = [(at, row) for at, row in enumerate(outside.rows) if row.id in aside]
    used = 0.0 if played is None else sum(row.price(step) for at, row in rows for step in played.held[at])
    return sum(whole[row.id] for _, row in rows) - used


def _belongs(data: Mapping[str, Any], dataset: Dataset) -> None:
    """The cascade's steps are the recipe's."""
    ladder = data["ladder"] or {}
    known = {*dataset.recipe.nodes.values(), *check_names(dataset)}
    for step in (*ladder.get("order", ()), *ladder.get("further", ())):
        if step not in known:
            raise Refused(f"the policy's ladder asks {step!r:.60}, which the recipe does not have; pilot it anew")


def _pilot_truth(row: ItemAnswers, said: Mapping[str, Any], rule: GoldRule) -> Any:
    """What a pilot takes for the truth of an item, from the same places in the same order."""
    if said.get(row.id) is not None:
        return said[row.id]
    return row.item.gold if rule.column is not None else checked_value(row.item.problem)


def _disputed(outside: AnswerSheet, played: PlayedPolicy, said: Mapping[str, Any], rule: GoldRule) -> list[str]:
    """Delivered by the policy, and said to be wrong by somebody who was not asked."""
    found = []
    for row, delivered, value in zip(outside.rows, played.delivered, played.values, strict=True):
        truth = _known_truth(row, said, rule) if delivered and said.get(row.id) is not None else None
        if truth is not None and not truth.right(value):
            found.append(row.id)
    return found


def _known_truth(row: ItemAnswers, said: Mapping[str, Any], rule: GoldRule) -> Truth | None:
    cell = _pilot_truth(row, said, rule)
    return Truth.unknown() if cannot_tell(said.get(row.id)) else _truth_of(row, cell, rule)


def _by_people(row: ItemAnswers, said: Mapping[str, Any], rule: GoldRule) -> bool:
    """Whether the truth of an item of the pilot took a person: there is no column and no exact
    check that knows it.
    """
    return said.get(row.id) is not None or (rule.column is None and checked_value(row.item.problem) is None)


def _drawn_to_check(
    policy: CascadePolicy, played: PlayedPolicy, digest: str, seed: int, places: Sequence[int]
) -> NDArray[np.bool_]:
    """Which accepted items a person checks: each with its own chance, from the recorded seed and
    its place alone.
    """
    limit = math.ceil(policy.checked_share * 2**64)  # upwards: no smaller share than was tested
    keys = (sha256(f"{digest}:{seed}:random check:{place}".encode()).digest()[:8] for place in places)
    drawn = np.array([int.from_bytes(key, "big") < limit for key in keys], dtype=bool)
    return np.asarray(drawn & played.delivered)


def _totals(dataset: Dataset, outside: AnswerSheet, played: PlayedPolicy | None, check: float) -> _RunTotals:
    promise = dataset.recipe.promise
    budget = None if promise is None else promise.budget
    everything = check * len(outside)
    if played is None:
        return _RunTotals(0, len(outside), LastStage.PERSON, everything, everything, budget)
    count = int(played.delivered.sum())
    return _RunTotals(count, len(outside) - count, played.policy.last, float(played.cost.sum()), everything, budget)


def _unanswered(outside: AnswerSheet, played: PlayedPolicy) -> None:
    """Recorded answers must hold what the policy asks: a node that was never asked is not one whose
    answer can't be read.
    """
    for row, held in zip(outside.rows, played.held, strict=True):
        for name in held:
            if name in row.absent:
                what = "makes check" if name in row.template.checks else "asks node"
                raise InputError(f"item {row.id!r}: the policy {what} {name!r}, which the recorded answers do not have")


def question_of(row: ItemAnswers) -> str:
    person = row.template.person
    own = None if person is None else person_question(row.item.problem, person.id)
    return own or f"What is right about {row.id}?"


@dataclass(frozen=True, slots=True)
class _RunTotals:
    """What a run under a policy came to, for its sentence."""

    delivered: int
    to_people: int
    last: LastStage | None
    cost: float
    check_everything: float
    budget: float | None
    what: str = "values"
    waiting: int = 0
    """Of those that went to a person, how many are not decided yet."""
    untold: int = 0
    """How many of them nobody could decide."""

    @property
    def over_budget(self) -> float:
        """What it costs more than the budget, calls and people together."""
        return 0.0 if self.budget is None else max(0.0, self.cost - self.budget)


def _run_sentence(document: Mapping[str, Any], totals: _RunTotals) -> str:
    """What may be said about the delivered values, with the denominator that was tested."""
    if document["policy"] == CHECK_EVERYTHING:
        go = "value goes" if totals.to_people == 1 else f"{totals.what} go"
        return (
            f"Nothing is delivered unchecked: {totals.to_people:,} {go} to a person, for"
            f" {totals.check_everything:,.2f}{_budget(totals)}."
        )
    looks = looks_words(document)
    risk, sure = Fraction(str(document["risk"])), Fraction(str(document["confidence"]))
    among_all = document["among"] == str(Among.ALL)
    size = totals.delivered + totals.to_people if among_all else totals.delivered
    most = int(risk * size)
    person = totals.last is LastStage.PERSON
    done = "delivered" if not (among_all and totals.waiting) else "delivered or waiting"
    noun = f"{size:,} {totals.what} {done if person or not among_all else 'run under the policy'}"
    rate, sure_words = f"at most {most:,} ({percent(risk)}) are wrong", f"with confidence {percent(sure)}"
    statement = document["statement"]
    if statement == str(Statement.FRESH):
        drawn = len(document["drawn"])
        average = f"at most {average_above(risk * size)} ({percent(risk)}) are wrong"
        claim = (
            f"Of the {noun}, {average} on average over such tables, {sure_words}, for items drawn like the pilot's"
            f" {drawn:,}"
        )
    elif statement == str(Statement.REST):
        claim = f"Of the {noun} outside the pilot, {rate}, {sure_words}"
    else:
        claim = str(document["sentence"]).removesuffix(looks).rstrip(".")
    among = " of them" if person and among_all else ""
    against = f", against {totals.check_everything:,.2f} for checking all" if person else ""
    paid = f"cost {totals.cost:,.2f}{_budget(totals)}{against}"
    return f"{claim}; {totals.to_people:,}{among} {_gone(totals)}; {paid}.{looks}"


def _gone(totals: _RunTotals) -> str:
    """What became of the items that no acceptance rule accepted, in words; what is not decided yet
    is not delivered yet.
    """
    if totals.last is not LastStage.PERSON:
        return "is withheld" if totals.to_people == 1 else "are withheld"
    if totals.waiting:
        left = "all of them" if totals.waiting == totals.to_people > 1 else f"{totals.waiting:,} of these"
        return f"went to a person, and {'it waits' if totals.to_people == 1 else f'{left} wait'} for an answer"
    return f"went to a person{f', who could not tell {totals.untold:,}' if totals.untold else ''}"


def _budget(totals: _RunTotals) -> str:
    return "" if totals.budget is None else f" of {totals.budget:,.2f}"
