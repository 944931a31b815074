"""`pilot`: random items are asked and their truth learnt; which policy is proven on them?

Here the answers come together (recorded ones, or bought live), the truths (gold, exact checks, or
people), and the interim analyses of a pilot that grows. What is done with one of them is in
`promises.pilot`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rrf_design._shown import Shown, axes_of
from rrf_design.checker.looks import counted
from rrf_design.checker.promises import prove_policy
from rrf_design.checks import delivered_node
from rrf_design.documents import checked, kind_of
from rrf_design.errors import InputError
from rrf_design.promises._buying import NOTHING, BoughtAnswers, LiveModels
from rrf_design.promises._pilot_analysis import gold_truths, refuse_second_look, run_pilot, stages, why_stop
from rrf_design.promises._pilot_design import (
    OTHERS,
    PilotPlan,
    PilotSettings,
    buy_pilot,
    checks_to_fetch,
    large_enough,
    most_aside,
    plan_pilot,
    settings_of,
)
from rrf_design.promises._policy_document import policy_document
from rrf_design.promises._reuse import recalled_pilot
from rrf_design.promises._running import question_of
from rrf_design.promises._truths import EXACT_CHECKS, refuse_strangers, row_text
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.risk import Among, Statement, choice

if TYPE_CHECKING:
    from rrf_design.questions import Dataset

LIVE_OTHERS = 100
"""Calibration items that are asked live, where each of their answers is bought."""
Question = tuple[str, str, str]
"""An item, what a person is asked about it, and the text of its row."""


@dataclass(frozen=True, slots=True, repr=False)
class Pilot(Shown):
    """What a pilot came to: its policy, or the items whose truth people have to say first."""

    document: Mapping[str, Any] | None
    """The policy as `acquire(policy=…)` and `verify` take it; None while truths are missing."""
    drawn: int
    waiting: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    """For people: the items that wait, and those they answered already."""

    @property
    def policy(self) -> str | None:
        """The name of the cheapest policy that is proven, or "check everything"."""
        return None if self.document is None else str(self.document["policy"])

    @property
    def sentence(self) -> str | None:
        """What may be said of the table under this policy."""
        return None if self.document is None else str(prove_policy(self.document).document["sentence"])

    def _line(self) -> str:
        if self.document is None:
            return f"{len(self.waiting)} of {self.drawn} labels are missing"
        return f"{self.policy}: {self.sentence}"

    def to_json(self) -> dict[str, Any]:
        """The policy's document; while truths are missing, how many, and of which items."""
        if self.document is None:
            return {"waiting": len(self.waiting), "drawn": self.drawn, "waiting_items": list(self.waiting)}
        return dict(self.document)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Pilot:
        """The pilot of what `to_json` gave, or of a policy; without questions for people."""
        if kind_of(data) is None and {"drawn", "waiting_items"} <= set(data):
            return cls(None, int(data["drawn"]), tuple(data["waiting_items"]))
        document = dict(checked(data, "rrf-policy", what="policy"))
        return cls(document, len(document["drawn"]))

    def plot(self, axes: Any = None) -> Any:
        """Every policy by its cost and how many values were wrong under it in the pilot, on
        matplotlib axes; proven ones are filled.
        """
        drawn = axes_of(axes, across="cost of an item", up="wrong in the pilot")
        entries = () if self.document is None else self.document["policies"]
        for entry in sorted(entries, key=lambda one: bool(one["proven"])):
            drawn.plot(entry["cost"], entry["wrong"], "o", color="C0", fillstyle="full" if entry["proven"] else "none")
        return drawn


def pilot(
    dataset: Dataset,
    responses: RecordedAnswers | LiveModels | str | os.PathLike[str],
    *,
    labels: int | None = None,
    risk: float | None = None,
    confidence: float | None = None,
    truths: Mapping[str, Any] | None = None,
    statement: str = "fresh",
    among: str | None = None,
    order: str = "front",
    stratify: str | None = None,
    sequential: bool = False,
    random_checks: bool = False,
    aside: int | None = None,
    seed: int = 0,
    before: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Pilot:
    """How a table should be run: the cheapest policy that is proven to keep a risk.

    Random items are asked in full and their truth is learnt; every policy is played on them, and
    tested in an order that was fixed without any truth (docs/promises.md). With n items drawn and x
    of them wrong under a policy, "more than a share r of all is wrong" is refuted where
    P(Bin(n, r) ≤ x) ≤ 1 − `confidence`.

    Parameters: `dataset` is the recipe with its table; `responses` is a file of recorded answers,
    or `LiveModels`, whose answers are bought once. `labels` items are drawn with `seed`; at most
    the share `risk` may be wrong; what is left out is taken from the recipe's `[promise]`.
    `truths`: what people said, by item (an empty mapping: they will be asked); without it, the gold
    column or exact checks know every truth, and `InputError` says so before anything is bought.
    `statement`: of which items the promise speaks ("fresh" ones like these, the "policy" over this
    table, the "file" handed over, or its "rest" outside the pilot); `among`: its denominator, "all"
    items or those "delivered". `order`: of the tests, "front" (made from `aside` further items
    without their truth) or "holm". `stratify`: draw in proportion over this column. `sequential`:
    the pilot grows to `labels` and stops when more would not pay. `random_checks`: also test
    policies that have a random share of deliveries checked. `before`: the policy that an earlier
    pilot of this table wrote, which is gone on with. `progress` hears each interim analysis in
    words.

    Returns a `Pilot`: its `document` is the policy, or None while `waiting` items lack a truth.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> recipe = '[data]\\ntable = "t.csv"\\nid = "no"\\ngold = "sum"\\n[answer]\\nof = "a"\\n'
    >>> asks = [f'[[ask]]\\nid = "{name}"\\nprompt = "1 + 1?"\\ncost = 1.0\\n' for name in "ab"]
    >>> person = '[[check]]\\nid = "p"\\nof = "a"\\nby = {person = "?"}\\ncost = 9.0\\n'
    >>> text = recipe + asks[0] + asks[1] + 'like = "a"\\n' + person
    >>> _ = (folder / "r.toml").write_text(text)
    >>> rows = [f"{n},2\\n" for n in range(200)]
    >>> _ = (folder / "t.csv").write_text("no,sum\\n" + "".join(rows))
    >>> said = [f"{n},{node},2\\n" for n in range(200) for node in "ab"]
    >>> _ = (folder / "said.csv").write_text("id,node,text\\n" + "".join(said))
    >>> found = rrf.pilot(rrf.dataset(folder / "r.toml"), folder / "said.csv", labels=60, risk=0.1)
    >>> found.policy
    'consistent at k = 0 within a; else person'
    """
    settings = pilot_settings(
        dataset,
        live=isinstance(responses, LiveModels),
        labels=labels,
        risk=risk,
        confidence=confidence,
        statement=statement,
        among=among,
        order=order,
        stratify=stratify,
        sequential=sequential,
        random_checks=random_checks,
        aside=aside,
        seed=seed,
    )
    with ExitStack() as stack:
        if not isinstance(responses, RecordedAnswers | LiveModels):
            responses = stack.enter_context(RecordedAnswers(dataset, responses, checks=True))
        return _grown(_Answers(dataset, responses), settings, truths, before, progress)


def pilot_settings(
    dataset: Dataset,
    *,
    live: bool,
    labels: int | None = None,
    risk: float | None = None,
    confidence: float | None = None,
    statement: str = "fresh",
    among: str | None = None,
    order: str = "front",
    stratify: str | None = None,
    sequential: bool = False,
    random_checks: bool = False,
    aside: int | None = None,
    seed: int = 0,
) -> PilotSettings:
    """What a pilot fixes before anything is looked at, the recipe's `[promise]` where the call says
    nothing.
    """
    size, wanted, sure = settings_of(dataset, labels=labels, risk=risk, confidence=confidence)
    if aside is not None and aside < 0:
        raise InputError(f"--aside {aside}: should be a number of items, 0 or more")
    return PilotSettings(
        labels=size,
        risk=wanted,
        confidence=sure,
        seed=seed,
        statement=choice(Statement, statement, "--statement"),
        among=None if among is None else choice(Among, among, "--among"),
        order=order,
        stratify=stratify,
        sequential=sequential,
        random_checks=random_checks,
        aside=aside if aside is not None else LIVE_OTHERS if live else OTHERS,
    )


class _Answers:
    """Where the answers come from: recorded for all items, or models that are asked for the drawn
    ones.
    """

    def __init__(self, dataset: Dataset, source: RecordedAnswers | LiveModels) -> None:
        self.dataset, self._source, self._bought = dataset, source, NOTHING

    @property
    def live(self) -> bool:
        return isinstance(self._source, LiveModels)

    def go_on(self, before: Mapping[str, Any]) -> None:
        """With what an earlier analysis of this pilot bought; Refused where other models are asked
        now.
        """
        if isinstance(self._source, LiveModels) and before["models"] is not None:
            checks, runs = checks_to_fetch(self.dataset), before["runs"]
            self._bought = recalled_pilot(self.dataset, self._source, runs, models=before["models"], checks=checks)

    def plan(self, settings: PilotSettings, *, buy: bool = True) -> PilotPlan:
        known: RecordedAnswers | BoughtAnswers
        if isinstance(self._source, LiveModels):
            if buy:
                self._bought = buy_pilot(self.dataset, settings, self._source, have=self._bought)
            known = self._bought if buy else NOTHING
        else:
            known = self._source
        return plan_pilot(self.dataset, known, settings, small=not buy)


def _grown(
    answers: _Answers,
    settings: PilotSettings,
    said: Mapping[str, Any] | None,
    earlier: Mapping[str, Any] | None,
    progress: Callable[[str], None] | None,
) -> Pilot:
    """The policy of the last analysis: the only one, or the first after which more labels would
    not pay.
    """
    tell = progress or (lambda words: None)
    large_enough(settings, len(answers.dataset))
    settings = replace(settings, aside=most_aside(settings, len(answers.dataset)))
    before = None if earlier is None else refuse_second_look(earlier, answers.plan(settings, buy=False))
    if before is not None:
        settings = replace(settings, aside=int(before["aside"]))
        answers.go_on(before)
    if said is None and answers.live:
        _missing(answers.plan(settings, buy=False), said)
    analyses = stages(settings, already=0 if before is None else len(before["drawn"]))
    for now, following in zip(analyses, [*analyses[1:], None], strict=True):
        if len(analyses) > 1:
            tell(f"looking at {now.labels:,} labels, of {settings.labels:,} at most")
        plan = answers.plan(now)
        known, missing = _missing(plan, said)
        if missing:
            return _waiting(plan, said or {}, missing)
        source = plan.rule.words(len(said or {})) or EXACT_CHECKS
        result = run_pilot(plan, known, truth_source=source, before=before)
        document, why = counted(policy_document(result), delivered_node(plan.sheet.rows[plan.drawn[0]].item.problem))
        if why is not None:
            tell(why)
        lost = [row.id for row in plan.pilot.rows if row.lost]
        if lost:
            items = "1 item" if len(lost) == 1 else f"{len(lost):,} items"
            tell(
                f"calls failed for {items} of the pilot, {lost[0]!r} among them: what these would have answered is not"
                " known, so policies that ask it count them as wrong"
            )
        stop = None if following is None else why_stop(result, following.labels - now.labels)
        if stop is not None:
            document = {**document, "stopped_because": stop}
            break
        before = document
    return Pilot(document, len(document["drawn"]))


def _missing(plan: PilotPlan, said: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """The truths that are known, and the drawn items without one; nobody to ask is an error."""
    refuse_strangers(said or {}, {plan.population.ids[place] for place in plan.drawn})
    known, missing = gold_truths(plan, said or {})
    if missing and said is None:
        column = plan.rule.column
        where = "name a gold column in [data]" if column is None else f"fill in the gold column {column!r}"
        raise InputError(
            f"{len(missing):,} of {len(plan.drawn):,} drawn items have no truth, {missing[0]!r} among them; {where}, or"
            " ask people with --review"
        )
    return known, missing


def _waiting(plan: PilotPlan, said: Mapping[str, Any], missing: list[str]) -> Pilot:
    wanted = {*missing, *said}
    rows = [row for row in (plan.sheet.rows[place] for place in plan.drawn) if row.id in wanted]
    hidden = [plan.rule.column]
    questions = tuple((row.id, question_of(row), row_text(row.item.cells, hidden=hidden)) for row in rows)
    return Pilot(None, len(plan.drawn), tuple(missing), questions)
