"""A pilot, planned: which random items, which policies are tested, which items make the order of
the tests (docs/algorithms.md, facts 23 and 31 to 34).

The order must owe nothing to the draw of the pilot. For fresh items that means: no item of the
pilot, now or when it grows. For a statement about this very table the draw is all that is random,
so the items are drawn a second time, independently, and may be the pilot's.

Which items a pilot looks at: drawn from a recorded seed and the population's digest, so that
anybody can draw them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b, sha256
from itertools import islice
from typing import Any

import numpy as np

from rrf_design.checker.promise_words import percent_above, plain_percent
from rrf_design.errors import InputError
from rrf_design.files import canonical_json
from rrf_design.promises._buying import NOTHING, BoughtAnswers, LiveModels, buy_answers, buy_checks
from rrf_design.promises._checks import is_known, machine_checks, may_run, refuse_unpriced
from rrf_design.promises._play import LastPrices
from rrf_design.promises._policies import (
    SHARES,
    CascadePolicy,
    CheckStage,
    Escalation,
    LastStage,
    check_stages,
    checks_by_hand,
    common,
    diluted,
    escalations_of,
    family_of,
    stages_by_hand,
)
from rrf_design.promises._sheets import AnswerSheet, PolicyTemplate, TableSheet, read_table
from rrf_design.promises._truths import GoldRule
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.filling import Filler
from rrf_design.questions.recipe import Recipe
from rrf_design.questions.tables import Cells, need_column
from rrf_design.risk import (
    Among,
    Limit,
    Scope,
    Statement,
    Stratum,
    best_risk,
    binomial_is_heaviest,
    draw_order,
    least_labels,
    passing_count,
    pilot_size,
    sequential_tail,
    share,
    stratified_order,
    stratified_risk,
)
from rrf_design.workers import in_chunks

CONFIDENCE = 0.95
OTHERS = 400
"""So many items make the order of tests: enough to fit a crowd of eight."""
FEWEST_OTHERS = 30


@dataclass(frozen=True, slots=True)
class PilotSettings:
    """What is fixed before anything is looked at."""

    labels: int
    risk: float
    confidence: float = CONFIDENCE
    seed: int = 0
    statement: Statement = Statement.FRESH
    among: Among | None = None
    """None: all items where a person decides what no acceptance rule accepts, so that every item is
    delivered; else those that are delivered.
    """
    order: str = "front"
    stratify: str | None = None
    sequential: bool = False
    aside: int = OTHERS
    """So many items, at most, make the order of tests."""
    random_checks: bool = False
    """Whether policies with random checks are tested too: they help with few labels for a small
    risk (fact 34).
    """

    def __post_init__(self) -> None:
        share(self.risk, "risk")
        share(self.confidence, "confidence")
        if self.order not in ("front", "holm"):
            raise InputError(f"order should be front or holm, not {self.order!r}")
        if self.stratify is not None and (self.among is Among.DELIVERED or self.statement is not Statement.FRESH):
            raise InputError(
                "a stratified pilot proves a risk among all items drawn like the pilot's: --among all --statement fresh"
            )
        if self.stratify is not None and self.confidence < 0.5:
            raise InputError("a stratified pilot proves nothing at a confidence below one half")
        if self.sequential and (self.statement is not Statement.FRESH or self.stratify is not None):
            raise InputError(
                "a pilot that may be looked at while it grows proves the statement 'fresh', without strata"
            )


@dataclass(frozen=True, slots=True)
class PilotPlan:
    """The drawn items, before their truth is known."""

    dataset: Dataset
    settings: PilotSettings
    population: Population
    drawn: tuple[int, ...]
    sheet: TableSheet
    """All items, and what is recorded about those that are drawn, and about all where a statement
    or a check needs it.
    """
    policies: tuple[CascadePolicy, ...]
    last: LastPrices
    rule: GoldRule
    models: Mapping[str, Any] | None = None
    """Identities of the models that were asked live; None for recorded answers, which are there for
    every item.
    """
    runs: tuple[str, ...] = ()

    @property
    def pilot(self) -> AnswerSheet:
        return self.sheet.only(self.drawn)

    @property
    def whole(self) -> AnswerSheet:
        """Every item, where the answers of all are read."""
        return self.sheet.only(range(len(self.sheet)))

    @property
    def panel(self) -> float:
        """What everything that a pilot buys of an item costs on average: its answers, and the
        checks of its stages.
        """
        steps = {step for policy in self.policies for step in policy.further}
        rows = self.sheet.rows.values()
        checks = sum(row.price(name) for row in rows for name in row.template.checks if name in steps)
        return float(self.sheet.costs.sum(axis=1).mean()) + checks / len(self.sheet)

    @property
    def aside(self) -> AnswerSheet:
        """The items whose answers make the order of tests; their gold is never read.

        The last of the random order, so that a pilot that grows keeps away from them; for a finite
        statement a draw of its own, which owes nothing to the pilot's.
        """
        return self.sheet.only(aside_places(self.population, self.settings))


def aside_places(population: Population, settings: PilotSettings) -> list[int]:
    fresh = settings.statement is Statement.FRESH
    count = most_aside(settings, len(population)) if fresh else settings.aside
    return places_aside(population, settings.statement, settings.seed, count)


def places_aside(population: Population, statement: Statement, seed: int, count: int) -> list[int]:
    if statement is not Statement.FRESH:
        return population.order(seed, purpose="order of tests")[:count]
    order = population.order(seed)
    return order[len(order) - count :]


def whole_prices(sheet: AnswerSheet, by_hand: Mapping[str, Any] | None, *, live: bool) -> dict[str, float]:
    """What everything that a pilot buys of each item costs: all its answers, and the checks on
    stages of the family; of recorded ones, those that are there.
    """
    steps = {step for stage in _check_stages(sheet, by_hand, live=live) for step in stage.steps}
    found = {}
    for row in sheet.rows:
        checks = [name for name in row.template.checks if name in steps and (live or name not in row.absent)]
        found[row.id] = row.spent([*row.said, *checks])
    return found


def most_aside(settings: PilotSettings, size: int) -> int:
    """How many of the last items of the draw make the order; a pilot that may grow leaves itself as
    much room again.
    """
    outside = size - settings.labels
    return max(0, min(settings.aside, outside // 2 if settings.sequential else outside))


def settings_of(
    dataset: Dataset, *, labels: int | None, risk: float | None, confidence: float | None
) -> tuple[int, float, float]:
    """What the call says, else what [promise] says, else the rule of thumb for the size of a
    pilot.
    """
    dataset.refuse_several("a tested promise")
    promise = dataset.recipe.promise
    wanted = risk if risk is not None else None if promise is None else promise.risk
    if wanted is None:
        raise InputError(f"{dataset.recipe.name}: no risk to keep; give --risk, or risk in [promise]")
    sure = confidence if confidence is not None else CONFIDENCE if promise is None else promise.confidence
    size = labels if labels is not None else None if promise is None else promise.pilot
    return (pilot_size(len(dataset), wanted) if size is None else size), wanted, sure


def plan_pilot(
    dataset: Dataset, answers: RecordedAnswers | BoughtAnswers, settings: PilotSettings, *, small: bool = False
) -> PilotPlan:
    """Draw the items and make the family; InputError says at once when so few labels can't prove
    the risk (`small`: for a forecast, they may).
    """
    if not small:
        large_enough(settings, len(dataset))
    refuse_unpriced(dataset)
    population = Population.of(dataset, stratify=settings.stratify)
    drawn = tuple(population.order(settings.seed)[: settings.labels])
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    wanted = _wanted(dataset, population, drawn, settings)
    sheet = read_table(dataset, answers, nodes, wanted=wanted, priced=answers.priced)
    silent = [
        sheet.rows[place].id for place in drawn if not any(v is not None for v in sheet.rows[place].said.values())
    ]
    if len(silent) == len(drawn) and not small:
        raise InputError(f"no item of the pilot has an answer that can be read, {silent[0]!r} among them")
    by_hand = dataset.recipe.ladder
    last = last_prices(sheet, by_hand)
    ending = LastStage.PERSON if all(one.person is not None for one in set(sheet.templates)) else LastStage.WITHHELD
    prices = {node: float(sheet.costs[:, at].mean()) for at, node in enumerate(nodes)}
    kinds = set(sheet.templates)
    voices = [node for node in nodes if all(node in one.ways or node not in one.prices for one in kinds)]
    policies = family_of(
        nodes,
        prices,
        voices=voices,
        last=ending,
        by_hand=by_hand,
        escalations=_escalations(sheet, by_hand),
        checks=_check_stages(sheet, by_hand, live=isinstance(answers, BoughtAnswers)),
    )
    if settings.among is None:
        everything = policies[0].last is LastStage.PERSON or settings.stratify is not None
        settings = replace(settings, among=Among.ALL if everything else Among.DELIVERED)
    if _dilutes(settings, policies[0].last):
        policies = diluted(policies, settings.risk)
    rule = GoldRule.of(dataset.recipe.data)
    live = answers if isinstance(answers, BoughtAnswers) else None
    return PilotPlan(
        dataset,
        settings,
        population,
        drawn,
        sheet,
        tuple(policies),
        last,
        rule,
        None if live is None else live.models,
        () if live is None else live.runs,
    )


def _wanted(dataset: Dataset, population: Population, drawn: Sequence[int], settings: PilotSettings) -> set[int] | None:
    """The items whose answers a pilot reads; None for all, where machines' checks have to be known
    or rows that are not drawn are counted.
    """
    if settings.statement is not Statement.FRESH or any(
        machine_checks(one.example) for one in dataset.structures.values()
    ):
        return None
    return {*drawn, *aside_places(population, settings), *population.order(settings.seed)[-OTHERS:]}


def _escalations(sheet: TableSheet, by_hand: Mapping[str, Any] | None) -> list[Escalation]:
    """Stages of the exact frontiers of the most common structures, at the recipe's own prices:
    those stay the same while a pilot grows. Equal prices where there are none.
    """
    if by_hand is not None and "order" in by_hand:
        return []
    found: list[Escalation] = []
    for template in common(sheet.templates):
        found += escalations_of(template.problem, _prices(template))
    return list(dict.fromkeys(found))


def _prices(template: PolicyTemplate) -> Mapping[str, float]:
    return template.prices if any(template.prices.values()) else dict.fromkeys(template.prices, 1.0)


def _check_stages(
    sheet: TableSheet | AnswerSheet, by_hand: Mapping[str, Any] | None, *, live: bool
) -> list[CheckStage]:
    """Designs with checks, of the same structures.

    Recorded answers have the checks that are recorded or known; live, all can be fetched.
    """
    templates = list(dict.fromkeys(sheet.templates))
    rows = sheet.rows.values() if isinstance(sheet, TableSheet) else sheet.rows
    there = {name for one in templates for name in one.checks} if live else {name for r in rows for name in r.checked}
    known = [name for template in templates for name in template.checks if name in there]
    named = checks_by_hand(by_hand, list(dict.fromkeys(known)))
    found: list[CheckStage] = []
    for template in common(sheet.templates):
        if named is None:
            found += check_stages(template.problem, _prices(template), there)
        elif named:
            found += stages_by_hand(template.problem, named)
    return list(dict.fromkeys(found))


def _dilutes(settings: PilotSettings, last: LastStage) -> bool:
    """Random checks need a person to make them, and a statement about averages; what is asked for
    and can't be is refused.
    """
    finite = settings.statement not in (Statement.FRESH, Statement.POLICY)
    if settings.random_checks and (last is not LastStage.PERSON or finite or settings.among is not Among.ALL):
        raise InputError(
            "random checks need a check by a person in the recipe, and prove the statements 'fresh' and 'policy' among"
            " all items"
        )
    return settings.random_checks


def buy_pilot(
    dataset: Dataset, settings: PilotSettings, live: LiveModels, *, have: BoughtAnswers = NOTHING
) -> BoughtAnswers:
    """Every answer of the drawn items, and of those that make the order of tests, beside what a
    smaller look bought; what can't prove anything is not bought.
    """
    large_enough(settings, len(dataset))
    _refuse_unknown_rest(dataset, settings)
    population = Population.of(dataset, stratify=settings.stratify)
    drawn = population.order(settings.seed)[: settings.labels]
    aside = aside_places(population, settings) if settings.order == "front" else []
    wanted = [population.ids[place] for place in dict.fromkeys((*drawn, *aside))]
    new = [name for name in wanted if name not in have.answers]
    refuse_unpriced(dataset)
    checks = checks_to_fetch(dataset)
    may_run(dataset, checks, allowed=bool(live.options.get("allow_commands")))
    live = replace(live, purpose="pilot")
    answers = buy_answers(dataset, new, live.after(have))
    found = have.joined(answers)
    live = replace(live, purpose="checks of a pilot")
    return found.joined(buy_checks(dataset, new, live.after(found), answers, checks))


def _refuse_unknown_rest(dataset: Dataset, settings: PilotSettings) -> None:
    """Live, nobody knows yet how many rows outside the pilot are delivered: what needs that number
    is refused before anything is bought.
    """
    ending = (dataset.recipe.ladder or {}).get("last", LastStage.PERSON)
    decided = ending == LastStage.PERSON and all(
        PolicyTemplate(one.example).person for one in dataset.structures.values()
    )
    among = settings.among or (Among.ALL if decided else Among.DELIVERED)
    if settings.statement is Statement.REST and among is Among.DELIVERED:
        raise InputError(
            "how many rows outside the pilot will be delivered is not known while models are asked; --statement rest"
            " takes --among all, or recorded answers of every row"
        )


def checks_to_fetch(dataset: Dataset) -> list[str]:
    """The checks that a live pilot fetches: those on stages of its family whose value nobody knows
    beforehand.
    """
    sheet = read_table(dataset, NOTHING, tuple(dict.fromkeys(dataset.recipe.nodes.values())), wanted=(), priced=False)
    steps = {step for stage in _check_stages(sheet, dataset.recipe.ladder, live=True) for step in stage.steps}
    templates = dict.fromkeys(sheet.templates)
    return list(
        dict.fromkeys(
            n for s in templates for n, check in s.checks.items() if n in steps and not is_known(s.problem, check)
        )
    )


def last_prices(sheet: TableSheet | AnswerSheet, by_hand: Mapping[str, Any] | None) -> LastPrices:
    """A person's price from the recipe.

    What a withheld item costs is [ladder] withheld, else ten times all its answers: without a
    price, silence is cheapest.
    """
    people = [one.person for one in dict.fromkeys(sheet.templates)]
    check = max((float(person.cost or 0.0) for person in people if person is not None), default=0.0)
    withheld = (by_hand or {}).get("withheld")
    if withheld is not None and (type(withheld) not in (int, float) or withheld < 0):
        raise InputError(
            f"[ladder]: withheld = {withheld!r:.40} should be a price, what an item that is withheld costs: a number"
            " that is 0 or more"
        )
    panel = float(sheet.costs.sum(axis=1).mean())
    return LastPrices(check, float(withheld) if withheld is not None else 10.0 * (panel or 1.0))


def large_enough(settings: PilotSettings, size: int) -> None:
    """At its best a pilot shows no wrong item; what it can't prove then, it can't prove at all."""
    labels, sure = settings.labels, settings.confidence
    if not 1 <= labels <= size:
        raise InputError(f"a pilot of {labels} items; the table has {size}")
    if settings.statement is Statement.REST and labels == size:
        raise InputError(f"a pilot of all {size} items leaves no rest to promise anything about; give fewer --labels")
    level, risk = 1 - share(sure, "confidence"), Fraction(str(settings.risk))
    if settings.random_checks:
        risk = max(limit for part in (0.0, *SHARES) if (limit := risk / (1 - Fraction(str(part)))) < 1)
    if settings.sequential:
        proven = sequential_tail(np.zeros(labels, dtype=bool), risk).at_most(level)
    else:
        finite = None if settings.statement is Statement.FRESH else size
        scope = Scope(settings.statement, labels, finite)
        proven = passing_count(Limit(risk, among=Among.ALL), scope, level) >= 0
    if proven:
        return
    least = least_labels(settings.risk, sure)
    best = (
        f"can prove a risk of {percent_above(Fraction(best_risk(labels, sure)))} at best, with none wrong (confidence"
        f" {plain_percent(sure)})"
    )
    if labels >= least or settings.statement is not Statement.FRESH:
        kind = (
            "tests that hold at every moment" if settings.sequential else f"the statement {str(settings.statement)!r}"
        )
        best = (
            f"can't prove a risk of {plain_percent(settings.risk)} by {kind} at confidence {plain_percent(sure)}, even"
            " with none wrong"
        )
    raise InputError(
        f"a pilot of {labels:,} labels {best}; {plain_percent(settings.risk)} needs"
        f" {'more than' if labels >= least else 'at least'} {max(labels, least):,}"
    )


def among_of(plan: PilotPlan) -> Among:
    assert plan.settings.among is not None  # a plan has decided it
    return plan.settings.among


def tested_limit(plan: PilotPlan) -> Limit:
    """The risk that is promised; for draws inside strata, what it means for such a draw."""
    settings = plan.settings
    risk: float | Fraction = settings.risk
    if settings.stratify is not None:
        risk = stratified_risk(plan.population.strata(plan.drawn), settings.risk)
        level, shares = 1 - share(settings.confidence, "confidence"), {one.checked_share for one in plan.policies}
        if not all(binomial_is_heaviest(len(plan.drawn), risk / (1 - part), level) for part in shares):
            raise InputError(
                f"a stratified pilot does not prove so large a risk as {settings.risk:.2%} at a confidence of"
                f" {settings.confidence:.0%}; leave --stratify out"
            )
    return Limit.of(risk, among=among_of(plan))


@dataclass(frozen=True)
class Population:
    """All items of a table under a recipe: their ids in order, what each asks (a digest), and the
    digest of it all.
    """

    ids: tuple[str, ...]
    asked: bytes
    """The SHA-256 of what each asks, 32 bytes after 32."""
    labels: tuple[str, ...] | None
    """The stratum of each item."""
    alike: bytes
    """Of each item, 16 bytes for what the recipe's texts show of it but for its id, in one case and
    spacing; zeros where they show nothing else.
    """

    @classmethod
    def of(cls, dataset: Dataset, *, stratify: str | None = None) -> Population:
        """Texts are read a row at a time, here or by whatever joblib is told, and not kept."""
        if stratify is not None:
            need_column(dataset.table, stratify, "stratify")
            if stratify == dataset.recipe.data.gold_column:
                raise InputError(f"--stratify {stratify}: the draw must not see the gold column")
        ids: list[str] = []
        labels: list[str] = []
        there = False

        def chunks() -> Iterator[list[Cells]]:
            nonlocal there
            items = dataset.items_in_order()
            while some := list(islice(items, TOGETHER)):
                ids.extend(item.id for item in some)
                if stratify is not None:
                    labels.extend(str(item.cells.get(stratify)) for item in some)
                    there = there or any(stratify in item.cells for item in some)
                yield [item.seen for item in some]

        parts = list(in_chunks(_asking, (dataset.recipe,), chunks(), n_jobs=None))
        if stratify is not None and not there:
            raise InputError(f"{dataset.table.name}: no row has a column {stratify!r} to stratify by")
        asked, alike = (b"".join(part) for part in zip(*parts, strict=True))
        return cls(tuple(ids), asked, None if stratify is None else tuple(labels), alike)

    @cached_property
    def digest(self) -> str:
        """Of the canonical JSON of ids, digests and strata, which is never there as a whole."""
        found = sha256(b'{"asked":[')
        for lists, key in ((self.digests(), ""), (self.ids, '],"ids":['), (self.labels, '],"strata":[')):
            if lists is None:
                continue
            found.update(key.encode())
            texts, first = iter(lists), True
            while some := list(islice(texts, TOGETHER)):
                found.update(b"" if first else b",")
                found.update(canonical_json(some)[1:-1].encode())
                first = False
        found.update(b"]}")
        return found.hexdigest()

    def digests(self) -> Iterator[str]:
        """What each item asks, in order."""
        return (self.asked[at : at + 32].hex() for at in range(0, len(self.asked), 32))

    def __len__(self) -> int:
        return len(self.ids)

    def order(self, seed: int, *, purpose: str = "") -> list[int]:
        """A random order of all places; its beginning is the pilot.

        Another purpose draws independently of it.
        """
        if (seed, purpose) not in self._orders:
            head = self.digest + purpose
            drawn = draw_order(len(self), seed, digest=head) if self.labels is None else None
            self._orders[seed, purpose] = drawn or stratified_order(self.labels or (), seed, digest=head)
        return self._orders[seed, purpose]

    @cached_property
    def _orders(self) -> dict[tuple[int, str], list[int]]:
        return {}

    def strata(self, drawn: Sequence[int]) -> list[Stratum]:
        if self.labels is None:
            return [Stratum(len(self), len(drawn))]
        taken = Counter(self.labels[place] for place in drawn)
        return [Stratum(count, taken[label]) for label, count in sorted(Counter(self.labels).items())]

    def twins(self, drawn: Sequence[int]) -> list[dict[str, Any]]:
        """Items outside the pilot that ask what an item of the pilot asks, whatever their id, case
        and spacing.
        """
        keys = [self.alike[at : at + 16] for at in range(0, len(self.alike), 16)]
        inside = {keys[place]: self.ids[place] for place in drawn if any(keys[place])}
        chosen = set(drawn)
        return [
            {"item": name, "pilot_item": inside[key]}
            for place, (name, key) in enumerate(zip(self.ids, keys, strict=True))
            if key in inside and place not in chosen
        ]


TOGETHER = 1000
"""Rows that are digested, and travel to another process, together."""


def _asking(recipe: Recipe) -> Callable[[Sequence[Cells]], tuple[bytes, bytes]]:
    """What rows ask and show, as `Population` keeps it."""
    filler = Filler(recipe)
    names = sorted(filler.columns - {recipe.data.id})

    def told(rows: Sequence[Cells]) -> tuple[bytes, bytes]:
        asked = (bytes.fromhex(filler.digest(row)) for row in rows)
        alike = (repr([(name, _plainly(row.get(name))) for name in names]) for row in rows)
        return b"".join(asked), b"".join(_short_digest(text) if names else bytes(16) for text in alike)

    return told


def _short_digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _plainly(cell: Any) -> Any:
    return " ".join(cell.split()).casefold() if isinstance(cell, str) else cell
