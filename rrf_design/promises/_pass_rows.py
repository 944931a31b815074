"""A table as a pass sees it: codes of its answers, and the row that each answer, check, label or
silence delivers.

What a delivery is expected to take, before anybody looks: from the answers alone.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.checks import (
    decided_premise,
    decided_verdict,
    decides,
    is_person,
    known_value,
    sole_delivered,
    worth_of,
)
from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.promises._asks import AUTO, AskPlan, SomeAnswers, ask_order, cheapest, tried_rows
from rrf_design.promises._buying import BoughtAnswers, LiveModels, buy_answers
from rrf_design.promises._decisions import HeldDecisions
from rrf_design.promises._one_pass import OnePass
from rrf_design.promises._pilot_design import settings_of
from rrf_design.promises._running import question_of
from rrf_design.promises._sheets import AnswersByItem, AnswerSheet, ItemAnswers, code_among, read_sheet
from rrf_design.promises._truths import GoldRule, Said, Truth, cannot_tell, read_truth, shown
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.repairing.contract import Repair
from rrf_design.risk import UNREADABLE, boundary
from rrf_design.tables.rows import Row, Value
from rrf_design.texts import cell_text
from rrf_design.verdict import Verdict

if TYPE_CHECKING:
    from rrf_design.questions.datasets import Dataset

RISKS = (0.01, 0.02, 0.05, 0.1)
"""The risks of a forecast, beside the one that is asked for."""
USUAL = 0.05
"""The risk of the curve where none is asked for."""
PAYS = 0.95
"""A delivery pays where it is expected to cost less than this part of looking at every row."""


def forecast_delivery(
    dataset: Dataset,
    responses: RecordedAnswers | str | os.PathLike[str] | None,
    *,
    risk: float | None = None,
    confidence: float | None = None,
    asks: int | str | None = None,
) -> dict[str, Any]:
    """Looks to expect at several risks before anybody looks, and whether that pays: from the
    answers, no truth is read. Without answers, what the proof takes at least.

    `curve`: at the risk asked for, what answers and looks cost together if so many answers of each
    row are bought, the cheapest first; `best` how many that advises. `asks`: the forecast is for so
    many.
    """
    promise = dataset.recipe.promise
    wanted = risk if risk is not None else None if promise is None else promise.risk
    _, _, sure = settings_of(dataset, labels=None, risk=wanted or RISKS[0], confidence=confidence)
    plan = AskPlan.of(dataset, asks, risk=wanted or USUAL, confidence=sure)
    whole = None if responses is None else PassRows.read(dataset, responses, None)
    curve = [] if whole is None else plan.curve(whole, rows=len(dataset))
    best = cheapest(curve).answers if curve and whole is not None and whole.label_cost else len(plan.prices)
    if plan.count == AUTO:
        plan = replace(plan, count=best)
    table = whole
    if responses is not None and int(plan.count) < len(plan.prices):
        table = PassRows.read(dataset, responses, None, asks=plan)
    size, level = len(dataset), 1 - Fraction(str(sure))
    found = []
    for one in sorted({*RISKS, *([] if wanted is None else [wanted])}):
        allowed = int(Fraction(str(one)) * size)
        least = boundary(size, allowed, level, most=1).needed(0)
        row: dict[str, Any] = {"risk": one, "allowed": allowed, "least": least}
        if table is not None:
            session = OnePass(
                table.codes,
                risk=Fraction(str(one)),
                confidence=Fraction(str(sure)),
                seed=0,
                digest=lambda picks, withheld: "",
                settled=table.settled,
            )
            cut = session.expected()
            open_rows = size - len(table.settled)
            answers = float(sum(table.paid))
            everything = open_rows * table.label_cost
            cost = answers + cut.looks * table.label_cost
            pays = cost < PAYS * everything if table.label_cost else cut.looks < PAYS * open_rows
            row |= {"looks": round(cut.looks, 1), "likely_most": round(cut.likely_most, 1)}
            row |= {"cost": round(cost, 6), "check_everything": everything, "pays": bool(pays)}
        found.append(row)
    told = {"rows": size, "confidence": sure, "risk": wanted, "risks": found, "answers_known": table is not None}
    return {**told, "asks": plan.count, "best": best, "curve": [point.to_json() for point in curve]}


if TYPE_CHECKING:
    from rrf_design.blocks import Anchor
    from rrf_design.questions.datasets import Dataset


class PassRows:
    """A table as a pass sees it: codes of answers, and what each code, check and label delivers."""

    def __init__(self, dataset: Dataset, sheet: AnswerSheet, repairs: Sequence[Repair | None]) -> None:
        self._sheet, self._repairs = sheet, repairs
        self.ids = sheet.ids
        self.size = len(sheet)
        self.places = {name: place for place, name in enumerate(self.ids)}
        self.rule = GoldRule.of(dataset.recipe.data)
        people = [row.template.person for row in sheet.rows if row.template.person is not None]
        self.label_cost = max((float(person.cost or 0.0) for person in people), default=0.0)
        self.settled = {place: found for place, row in enumerate(sheet.rows) if (found := _decided(row)) is not None}
        """Of every row that a trusted check decides: which, and the value."""
        self._values = [_values(row, sheet, repair) for row, repair in zip(sheet.rows, repairs, strict=True)]
        self.codes = np.array([_coded(values) for values in self._values], dtype=np.int64)
        self.codes = self.codes.reshape(self.size, len(sheet.nodes) + 1)
        if self.size and (self.codes[:, -1] == UNREADABLE).all():
            self.codes = self.codes[:, :-1]
        self.paid = [row.spent([*_answered(row), *row.checked]) for row in sheet.rows]
        self.nodes = sheet.nodes
        hidden = (dataset.recipe.data.id, self.rule.column)
        groups: dict[str, list[int]] = {}
        for place, row in enumerate(sheet.rows):
            shown_cells = {key: cell for key, cell in row.item.cells.items() if key not in hidden}
            key = json.dumps([row.item.structure, shown_cells], sort_keys=True, default=str)
            groups.setdefault(key if shown_cells else row.id, []).append(place)
        self._alike = {place: members for members in groups.values() for place in members if len(members) > 1}

    @classmethod
    def read(
        cls,
        dataset: Dataset,
        responses: RecordedAnswers | LiveModels | str | os.PathLike[str],
        budget: float | None,
        *,
        asks: AskPlan | None = None,
    ) -> PassRows:
        """Answers that are recorded, or that models are asked for: all, or as many as planned."""
        order = tuple(ask_order(dataset))
        count = len(order) if asks is None or asks.count == AUTO else int(asks.count)
        with ExitStack() as stack:
            known: AnswersByItem
            if isinstance(responses, LiveModels):
                known = cls._bought(dataset, replace(responses, budget=budget), order, asks)
            elif isinstance(responses, RecordedAnswers):
                known = responses
            else:
                known = stack.enter_context(RecordedAnswers(dataset, responses, checks=True))
            if count < len(order) and not isinstance(known, BoughtAnswers):
                known = SomeAnswers(known, order[count:])
            return cls.of(dataset, known)

    @classmethod
    def of(cls, dataset: Dataset, known: AnswersByItem) -> PassRows:
        """The rows of a table with these answers."""
        sheet = read_sheet(dataset, known, tuple(dict.fromkeys(dataset.recipe.nodes.values())))
        repairs = HeldDecisions(sheet).repairs([(*_answered(row), *row.checked) for row in sheet.rows])
        return cls(dataset, sheet, repairs)

    @classmethod
    def _bought(cls, dataset: Dataset, live: LiveModels, order: Sequence[str], asks: AskPlan | None) -> BoughtAnswers:
        """Answers that models are asked for now. Where a plan wants it, some rows are answered in
        full first, and what they show says how many answers the others are bought.
        """
        ids = list(dataset)
        if asks is None:
            return buy_answers(dataset, ids, live)
        if asks.count != AUTO:
            return buy_answers(dataset, ids, live, nodes=order[: int(asks.count)])
        tried = tried_rows(dataset, ids, asks.seed)
        if not tried:
            return buy_answers(dataset, ids, live)
        full = buy_answers(dataset, tried, live)
        part = cls.of(dataset.only(tried), full)
        best = cheapest(asks.curve(part, rows=len(ids))).answers if part.label_cost else len(order)
        others = [name for name in ids if name not in set(tried)]
        return full.joined(buy_answers(dataset, others, live.after(full), nodes=order[:best]))

    @property
    def digest(self) -> str:
        """Of all answers and checks, and what they cost."""
        said = [
            [row.id, {name: _plain(value) for name, value in sorted({**row.said, **row.checked}.items())}, paid]
            for row, paid in zip(self._sheet.rows, self.paid, strict=True)
        ]
        return canonical_digest({"answers": said})

    @property
    def rule_words(self) -> str:
        """Whose word is the truth."""
        people = "people"
        if self.rule.column is not None:
            people = f"gold column {self.rule.column!r}, and people where it is empty"
        return people if self.rule.tolerance is None else f"{people}, right within {self.rule.tolerance:g}"

    def affordable(self, budget: float | None) -> int | None:
        """How many labels the rest of the budget pays; None for any number."""
        if budget is None or self.label_cost <= 0:
            return None
        rest = Fraction(str(budget)) - sum((Fraction(str(paid)) for paid in self.paid), Fraction(0))
        return max(0, int(rest / Fraction(str(self.label_cost))))

    def question(self, place: int) -> str:
        """What a person is asked about a row."""
        return question_of(self._sheet.rows[place])

    def shown_cells(self, place: int) -> dict[str, Any]:
        """What may be shown of a row: its cells without the truth."""
        cells = self._sheet.rows[place].item.cells
        return {key: cell for key, cell in cells.items() if key != self.rule.column}

    def answers(self, place: int) -> dict[str, Any]:
        """What was answered, by node, as it would be delivered."""
        return self._sheet.rows[place].votes

    def alike(self, place: int) -> list[int]:
        """Other rows that show the same."""
        return [other for other in self._alike.get(place, ()) if other != place]

    def gold(self, place: int) -> Any:
        """The gold cell of a row; None where it is empty."""
        if self.rule.column is None:
            return None
        cell = self._sheet.rows[place].item.gold
        return None if cell is None or (isinstance(cell, str) and not cell.strip()) else cell

    def truth(self, place: int, value: Any) -> Truth:
        """What a label says; InputError with the row's name where it can't be read."""
        row = self._sheet.rows[place]
        if cannot_tell(value):
            return Truth.unknown()
        try:
            found = read_truth(value, row.parser, self.rule.within(row.template.problem.delta))
        except InputError as error:
            raise InputError(f"row {row.id!r}: {error}") from None
        if found is None:
            raise InputError(f"row {row.id!r}: the label is empty; write ? where nobody can tell")
        return found

    def right(self, place: int, truth: Truth) -> list[int]:
        """The codes of the answers that a label says are right."""
        codes = {int(code) for code in self.codes[place] if code != UNREADABLE}
        return sorted(code for code in codes if truth.right(self._values[place][code]))

    def cells(self, place: int, code: int) -> list[str]:
        """The texts that are delivered of a row when this answer is."""
        return [cell_text(self._shown(place, code))]

    def _shown(self, place: int, code: int) -> Any:
        value = None if code == UNREADABLE else self._values[place][code]
        return None if value is None else shown(value, self._sheet.rows[place].parser)

    def looked_row(self, place: int, truth: Truth, code: int, *, wrong: bool, own: bool) -> Row:
        """A row that somebody labelled: what was answered if it is right, else what they said."""
        cost = self.paid[place] + (self.label_cost if own else 0.0)
        if not truth.values:
            return self.empty_row(place, "nobody can tell what is right", cost=cost)
        answer = shown(truth.values[0], self._sheet.rows[place].parser) if wrong else self._shown(place, code)
        reason = "somebody looked: it was wrong, and is fixed" if wrong else "somebody looked: it is right"
        value = Value(
            Verdict.CHECKED,
            "what people said is right",
            answer=answer,
            raw=self._raw(place),
            bound=0.0,
            changed=cell_text(answer) != cell_text(self._first(place)),
            reason=reason,
        )
        return self._row(place, value, cost)

    def checked_row(self, place: int) -> Row:
        """A row that a trusted check decides."""
        check, said = self.settled[place]
        answer = shown(said, self._sheet.rows[place].parser)
        changed = cell_text(answer) != cell_text(self._first(place))
        value = Value(
            Verdict.CHECKED,
            decided_premise(check),
            answer=answer,
            raw=self._raw(place),
            bound=0.0,
            changed=changed,
            reason=f"{check.id} states the value.",
        )
        return self._row(place, value, self.paid[place])

    def unseen_row(self, place: int, code: int, promise: str | None) -> Row:
        """A row that nobody looked at. Without a promise it has a value where its answers are
        consistent by themselves.
        """
        repair, answer = self._repairs[place], self._shown(place, code)
        verdict = Verdict.INCOMPLETE if repair is None else repair.verdict
        own = None if repair is None else repair.repaired.get(self._sheet.rows[place].template.node)
        explained = self._sheet.rows[place].words(own)
        parser = self._sheet.rows[place].parser
        agrees = explained is not None and cell_text(shown(explained, parser)) == cell_text(answer)
        reason = "no answer could be read" if repair is None else repair.reason
        if repair is not None and verdict in (Verdict.CONSISTENT, Verdict.AMBIGUOUS) and not agrees:
            verdict = Verdict.CONTRADICTED if verdict is Verdict.CONSISTENT else verdict
            reason = "labels of other rows taught to believe another answer than most of this row's"
        if promise is None and not (verdict is Verdict.CONSISTENT and agrees):
            return self.empty_row(place, reason, verdict=verdict)
        if promise is not None and verdict is Verdict.CONTRADICTED:
            reason = f"{_tally(self._sheet.rows[place])}; handed over is the one to believe most"
        assumes = promise if promise is not None else repair.assumes if repair is not None else ""
        changed = cell_text(answer) != cell_text(self._first(place))
        value = Value(verdict, assumes, answer=answer, raw=self._raw(place), changed=changed, reason=reason)
        return replace(self._row(place, value, self.paid[place]), settled=promise is not None)

    def empty_row(
        self, place: int, reason: str, *, cost: float | None = None, verdict: Verdict = Verdict.INCOMPLETE
    ) -> Row:
        value = Value(verdict, raw=self._raw(place), reason=reason)
        return self._row(place, value, self.paid[place] if cost is None else cost)

    def _row(self, place: int, value: Value, cost: float) -> Row:
        row, repair = self._sheet.rows[place], self._repairs[place]
        found: dict[str, Any] = {}
        if repair is not None:
            found = {"wrong": repair.support, "gamma": repair.gamma, "misfit": repair.residual}
        worth = 0.0 if row.template.person is None else worth_of(row.template.person)
        return Row(row.id, (value,), cost=cost, structure=row.item.structure, worth=worth, **found)

    def _first(self, place: int) -> Any:
        """What the delivered question itself was answered."""
        row = self._sheet.rows[place]
        said = row.implied.get(row.template.node)
        return None if said is None else shown(said, row.parser)

    def _raw(self, place: int) -> Any:
        return self._sheet.rows[place].raw or self._first(place)


def _tally(row: ItemAnswers) -> str:
    """What the answers of a row say of the delivered value, in words."""
    said = [cell_text(shown(value, row.parser)) for value in row.implied.values() if value is not None]
    counts = Counter(said).most_common()
    shares = [f"{text[:40]}{'…' * (len(text) > 40)} ({count})" for text, count in counts[:4]]
    return f"{len(said)} answers, {len(counts)} values: {', '.join(shares)}{', …' * (len(counts) > 4)}"


def _answered(row: ItemAnswers) -> list[str]:
    """The nodes that were asked."""
    return [node for node in row.said if node not in row.absent]


def _decided(row: ItemAnswers) -> tuple[Anchor, Said] | None:
    """The trusted check of machines that decides a row, and its value."""
    problem = row.template.problem
    node = sole_delivered(problem)
    if node is None:
        return None

    def trusted(anchor: Anchor) -> bool:
        return decides(problem, anchor, node) and decided_verdict(anchor) is Verdict.CHECKED

    for name, value in row.checked.items():
        if trusted(row.template.checks[name]):
            return row.template.checks[name], value
    for anchor in row.item.problem.anchors:
        if trusted(anchor) and not is_person(anchor):
            known = known_value(row.item.problem, anchor)
            if known is not None:
                return anchor, tuple(float(number) for number in known)
    return None


def _values(row: ItemAnswers, sheet: AnswerSheet, repair: Repair | None) -> list[Said | None]:
    """What each node's answer delivers, and last, where answers are more than votes, what explains
    them.
    """
    said = [row.implied.get(node) for node in sheet.nodes]
    explained = None
    if repair is not None and not row.template.identity and repair.verdict in (Verdict.CONSISTENT, Verdict.AMBIGUOUS):
        explained = row.words(repair.repaired.get(row.template.node))
    return [*said, explained]


def _coded(values: Sequence[Said | None]) -> list[int]:
    found: list[int] = []
    for place, said in enumerate(values):
        found.append(code_among(said, values, found, new=place))
    return found


def _plain(value: Said | None) -> Any:
    return list(value) if isinstance(value, tuple) else value
