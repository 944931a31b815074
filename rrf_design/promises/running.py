"""A policy run on the items outside its pilot, and the table that it delivers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.documents import sealed
from rrf_design.errors import InputError, Refused
from rrf_design.promises.buying import BoughtAnswers, LiveModels, identities
from rrf_design.promises.checks import check_names, program_digests
from rrf_design.promises.climbing import climb
from rrf_design.promises.drawing import Population
from rrf_design.promises.family import CHECK_EVERYTHING, LadderPolicy, LastRung
from rrf_design.promises.outcomes_again import refuse_other_outcomes
from rrf_design.promises.pilot_plans import last_prices, places_aside, whole_prices
from rrf_design.promises.piloting import checked_value
from rrf_design.promises.playing import PlayedPolicy, play
from rrf_design.promises.policy_proofs import check_applies, prove_policy
from rrf_design.promises.policy_rows import delivered_row, held_back, looked_up, ranked, truth_of
from rrf_design.promises.reviews import person_question, row_text
from rrf_design.promises.run_sentences import RunTotals, run_sentence
from rrf_design.promises.sheets import AnswerSheet, SheetRow, read_sheet
from rrf_design.promises.truths import GoldRule, Truth, cannot_tell
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.datasets import Dataset
from rrf_design.risk import Statement
from rrf_design.risk.sentences import plain_percent
from rrf_design.verdict import Verdict, counted


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """What became of every item. `rows` in the order of the table, as the delivered table has them."""

    sentence: str
    totals: RunTotals
    rows: tuple[Mapping[str, Any], ...]
    ids: tuple[str, ...]
    reviews: tuple[tuple[str, str, str], ...]
    """(id, question, text) of the items that wait for a person."""
    document: Mapping[str, Any]
    unlabelled: int = 0
    """Rows of the pilot whose truth is not at hand, though its tests had it: people said it, in a review file of the pilot."""
    pilot_cost: float = 0.0
    """What the pilot cost, in the recipe's prices: answers and checks of its items, truths that people said; live, also what it bought of the items that made its
    order of tests beyond what the run has use for. With `cost` that is everything, once."""
    disputed: tuple[str, ...] = ()
    """Items that the policy delivers by itself, and of which a review says something else."""

    @property
    def complete(self) -> bool:
        """Whether every item is settled as the policy says: delivered, decided by a person, or withheld where the policy withholds."""
        return not self.reviews and not self.unlabelled

    @property
    def about_pilot(self) -> str:
        """The rows that the sentence does not speak of."""
        drawn = len(self.document["drawn"])
        return f"Beside these, the pilot's {drawn:,} items are delivered with their truth; answers, checks and people's truths of the pilot cost {self.pilot_cost:,.2f}."

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
                "verdicts": counted([Verdict(row["verdict"]) for row in self.rows]),
                "items": [{"id": name, **row} for name, row in zip(self.ids, self.rows, strict=True)],
            },
        )

    def pairs(self, dataset: Dataset) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Input rows beside their results, for `rrf_design.questions.delivery.deliver`."""
        for item, row in zip(dataset.items_in_order(), self.rows, strict=True):
            yield item.cells, row


def run_policy(
    dataset: Dataset,
    answers: RecordedAnswers | LiveModels,
    document: Any,
    *,
    reviews: Mapping[str, Any] | None = None,
) -> PolicyRun:
    """Run a policy that still applies, on recorded answers or live, rung after rung.

    Refused when recipe, table or models have changed, or the policy does not prove what it says; before anything is asked.
    """
    from collections.abc import Mapping as Known

    stratify = document.get("stratify") if isinstance(document, Known) else None
    population = Population.of(dataset, stratify=stratify if isinstance(stratify, str) else None)
    models = identities(dataset, answers) if isinstance(answers, LiveModels) else None
    prove_policy(document)
    data = check_applies(document, dataset.recipe.digest, population, models=models, programs=program_digests(dataset))
    _belongs(data, dataset)
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    piloted = set(data["drawn"])
    if isinstance(answers, LiveModels):
        known: RecordedAnswers | BoughtAnswers = climb(dataset, answers, data, nodes)
    else:
        known = answers
    sheet = read_sheet(dataset, known, nodes)
    last = last_prices(sheet, dataset.recipe.ladder)
    rest = [place for place, name in enumerate(sheet.ids) if name not in piloted]
    outside = sheet.only(rest)
    rule = GoldRule.of(dataset.recipe.data)
    said = dict(reviews or {})
    rows: dict[str, dict[str, Any]] = {}
    played: PlayedPolicy | None = None
    if data["policy"] != CHECK_EVERYTHING:
        policy = LadderPolicy.from_json(data["ladder"])
        pilot = sheet.only(data["places"])
        truths, recorded = [_known_truth(row, said, rule) for row in pilot.rows], not isinstance(answers, LiveModels)
        refuse_other_outcomes(data, pilot, truths, last=last, recorded=recorded)
        (played,) = play(
            [policy.gates], outside, last=replace(last, withheld=0.0)
        )  # a price to choose by; nobody pays it
        _unanswered(outside, played)
        verdicts = _verdicts(outside, played)
        checked = _drawn_to_check(policy, played, population.digest, data["seed"], rest)
        played = replace(
            played, policy=policy, delivered=played.delivered & ~checked, cost=played.cost + last.check * checked
        )
        for at, row in enumerate(outside.rows):
            if checked[at]:
                reason = f"{plain_percent(policy.random_checks)} of what the policy accepts is checked by a person, and this item was drawn"
                rows[row.id] = {**held_back(row, float(played.cost[at]), reason), "verdict": str(verdicts[at][0])}
            else:
                rows[row.id] = delivered_row(row, played, at, verdicts[at], data)
    else:
        for row in outside.rows:
            rows[row.id] = held_back(row, last.check, "the pilot proved no policy; a person decides")
    waiting, unlabelled = [], 0
    whole = whole_prices(sheet, dataset.recipe.ladder, live=data["models"] is not None)
    pilot_cost = _beside(data, population, outside, played, whole)
    disputed = [] if played is None else _disputed(outside, played, said, rule)
    person = played is None or played.policy.last is LastRung.PERSON
    for row in sheet.rows:
        if row.id in piloted:
            cell = _pilot_truth(row, said, rule)
            unlabelled += cell is None
            pilot_cost += whole[row.id] + (last.check if _by_people(row, said, rule) else 0.0)
            rows[row.id] = {**looked_up(row, cell, rule, "the pilot's truth"), "cost": whole[row.id]}
        elif rows[row.id]["answer"] is None and said.get(row.id) is not None:
            rows[row.id] = {**looked_up(row, said[row.id], rule, "the reviewer"), "cost": rows[row.id]["cost"]}
        elif rows[row.id]["answer"] is None and person and row.shape.person is not None:
            waiting.append((row.id, question_of(row), row_text(row.item.cells, hidden=[rule.column])))
    untold = sum(
        name not in piloted and cannot_tell(said.get(name)) for name in sheet.ids if rows[name]["answer"] is None
    )
    totals = replace(_totals(dataset, outside, played, last.check), waiting=len(waiting), untold=untold)
    ordered = ranked([rows[name] for name in sheet.ids])
    sentence = run_sentence(data, totals)
    return PolicyRun(
        sentence, totals, ordered, sheet.ids, tuple(waiting), data, unlabelled, pilot_cost, tuple(disputed)
    )


def _beside(
    data: Mapping[str, Any],
    population: Population,
    outside: AnswerSheet,
    played: PlayedPolicy | None,
    whole: Mapping[str, float],
) -> float:
    """What a live pilot bought of the items that made its order of tests, and the run did not ask for: recorded answers cost nobody anything more."""
    if data["models"] is None or data["order"] != "front":
        return 0.0
    places = places_aside(population, Statement(data["statement"]), data["seed"], data["aside"])
    aside = {population.ids[place] for place in places}
    rows = [(at, row) for at, row in enumerate(outside.rows) if row.id in aside]
    used = 0.0 if played is None else sum(row.price(step) for at, row in rows for step in played.held[at])
    return sum(whole[row.id] for _, row in rows) - used


def _belongs(data: Mapping[str, Any], dataset: Dataset) -> None:
    """The ladder's steps are the recipe's."""
    ladder = data["ladder"] or {}
    known = {*dataset.recipe.nodes.values(), *check_names(dataset)}
    for step in (*ladder.get("order", ()), *ladder.get("further", ())):
        if step not in known:
            raise Refused(f"the policy's ladder asks {step!r:.60}, which the recipe does not have; pilot it anew")


def _pilot_truth(row: SheetRow, said: Mapping[str, Any], rule: GoldRule) -> Any:
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


def _known_truth(row: SheetRow, said: Mapping[str, Any], rule: GoldRule) -> Truth | None:
    cell = _pilot_truth(row, said, rule)
    return Truth.unknown() if cannot_tell(said.get(row.id)) else truth_of(row, cell, rule)


def _by_people(row: SheetRow, said: Mapping[str, Any], rule: GoldRule) -> bool:
    """Whether the truth of an item of the pilot took a person: there is no column and no exact check that knows it."""
    return said.get(row.id) is not None or (rule.column is None and checked_value(row.item.problem) is None)


def _drawn_to_check(
    policy: LadderPolicy, played: PlayedPolicy, digest: str, seed: int, places: Sequence[int]
) -> NDArray[np.bool_]:
    """Which accepted items a person checks: each with its own chance, from the recorded seed and its place alone."""
    limit = math.ceil(policy.checked_share * 2**64)  # upwards: no smaller share than was tested
    keys = (sha256(f"{digest}:{seed}:random check:{place}".encode()).digest()[:8] for place in places)
    drawn = np.array([int.from_bytes(key, "big") < limit for key in keys], dtype=bool)
    return np.asarray(drawn & played.delivered)


def _totals(dataset: Dataset, outside: AnswerSheet, played: PlayedPolicy | None, check: float) -> RunTotals:
    promise = dataset.recipe.promise
    budget = None if promise is None else promise.budget
    everything = check * len(outside)
    if played is None:
        return RunTotals(0, len(outside), LastRung.PERSON, everything, everything, budget)
    count = int(played.delivered.sum())
    return RunTotals(count, len(outside) - count, played.policy.last, float(played.cost.sum()), everything, budget)


def _unanswered(outside: AnswerSheet, played: PlayedPolicy) -> None:
    """Recorded answers must hold what the policy asks: a node that was never asked is not one whose answer can't be read."""
    for row, held in zip(outside.rows, played.held, strict=True):
        for name in held:
            if name in row.absent:
                what = "makes check" if name in row.shape.checks else "asks node"
                raise InputError(f"item {row.id!r}: the policy {what} {name!r}, which the recorded answers do not have")


def _verdicts(outside: AnswerSheet, played: PlayedPolicy) -> list[tuple[Verdict, str]]:
    """What the product says of the answers that were bought, at the recipe's own k; the policy's promise does not rest on it."""
    from rrf_design.promises.decisions import held_verdicts

    return held_verdicts(outside, played.held)


def question_of(row: SheetRow) -> str:
    person = row.shape.person
    own = None if person is None else person_question(row.item.problem, person.id)
    return own or f"What is right about {row.id}?"
