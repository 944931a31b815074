"""A pilot: random items with known truth, every policy played on them, every test recorded (docs/algorithms.md, facts 23 and 31 to 34).

Nothing is looked at before the order of tests is fixed: it comes from the answers of other items, without gold (a front of predicted risk against cost), or
there is none (Holm). The order must owe nothing to the draw of the pilot. For fresh items that means: no item of the pilot, now or when it grows. For a statement about this very
table the draw is all that is random, so the items are drawn a second time, independently, and may be the pilot's. What the gates assume about k is tested here
and not believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rrf_design.decisive import decides, delivered_node, is_person
from rrf_design.errors import InputError, Refused
from rrf_design.known import known_value
from rrf_design.problem import Problem
from rrf_design.promises import measuring
from rrf_design.promises.buying import NOTHING, BoughtAnswers, LiveModels, buy_answers
from rrf_design.promises.drawing import Population
from rrf_design.promises.family import CHECK_EVERYTHING, SHARES, LadderPolicy, LastRung, diluted, family
from rrf_design.promises.playing import LastPrices, PlayedPolicy, play
from rrf_design.promises.sheets import AnswerSheet, read_sheet
from rrf_design.promises.truths import GoldRule, Truth, read_truth
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.datasets import Dataset
from rrf_design.risk import (
    Among,
    Limit,
    PolicyChoice,
    Replay,
    Scope,
    Statement,
    Stream,
    assess,
    best_risk,
    dilute,
    first_look,
    fit_crowd,
    fixed_sequence,
    front,
    fronts,
    holm,
    least_labels,
    passing_count,
    pilot_size,
    sequential_tail,
    staggered,
    stratified_risk,
    trusted_risk,
)
from rrf_design.risk.counts import BinomialTail, share
from rrf_design.risk.orders import DISCOUNT

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
    """None: all items where a person decides what no gate accepts, so that every item is delivered; else those that are delivered."""
    order: str = "front"
    stratify: str | None = None
    sequential: bool = False
    aside: int = OTHERS
    """So many items, at most, make the order of tests."""
    random_checks: bool = False
    """Whether policies with random checks are tested too: they help with few labels for a small risk (fact 34)."""

    def __post_init__(self) -> None:
        share(self.risk, "risk")
        share(self.confidence, "confidence")
        if self.order not in ("front", "holm"):
            raise InputError(f"order should be front or holm, not {self.order!r}")
        if self.stratify is not None and (self.among is Among.DELIVERED or self.statement is not Statement.FRESH):
            raise InputError(
                "a stratified pilot proves a risk among all items drawn like the pilot's: --among all --statement fresh"
            )
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
    sheet: AnswerSheet
    """All items with what is recorded about them."""
    policies: tuple[LadderPolicy, ...]
    last: LastPrices
    rule: GoldRule
    models: Mapping[str, Any] | None = None
    """Identities of the models that were asked live; None for recorded answers, which are there for every item."""
    runs: tuple[str, ...] = ()

    @property
    def pilot(self) -> AnswerSheet:
        return self.sheet.only(self.drawn)

    @property
    def aside(self) -> AnswerSheet:
        """The items whose answers make the order of tests; their gold is never read. The last of the random order, so that a pilot that grows keeps away
        from them; for a finite statement a draw of its own, which owes nothing to the pilot's."""
        return self.sheet.only(aside_places(self.population, self.settings))


def aside_places(population: Population, settings: PilotSettings) -> list[int]:
    if settings.statement is not Statement.FRESH:
        return population.order(settings.seed, purpose="order of tests")[: settings.aside]
    order = population.order(settings.seed)
    return order[len(order) - most_aside(settings, len(order)) :]


def most_aside(settings: PilotSettings, size: int) -> int:
    """How many of the last items of the draw make the order; a pilot that may grow leaves itself as much room again."""
    outside = size - settings.labels
    return max(0, min(settings.aside, outside // 2 if settings.sequential else outside))


@dataclass(frozen=True, slots=True)
class PilotResult:
    """The choice with everything that proves it; `chosen` is None where checking everything is the answer."""

    plan: PilotPlan
    choice: PolicyChoice
    played: Mapping[str, PlayedPolicy]
    chosen: LadderPolicy | None
    why: str
    truth_source: str
    measured: Mapping[str, Any]
    aside: int
    """So many items, the last of the draw, made the order of tests."""


def settings_of(
    dataset: Dataset, *, labels: int | None, risk: float | None, confidence: float | None
) -> tuple[int, float, float]:
    """What the call says, else what [promise] says, else the rule of thumb for the size of a pilot."""
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
    """Draw the items and make the family; InputError says at once when so few labels can't prove the risk (`small`: for a forecast, they may)."""
    if not small:
        large_enough(settings, len(dataset))
    population = Population.of(dataset, stratify=settings.stratify)
    drawn = tuple(population.order(settings.seed)[: settings.labels])
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    sheet = read_sheet(dataset, answers, nodes)
    silent = [
        sheet.rows[place].id for place in drawn if not any(v is not None for v in sheet.rows[place].said.values())
    ]
    if len(silent) == len(drawn) and not small:
        raise InputError(f"no item of the pilot has an answer that can be read, {silent[0]!r} among them")
    by_hand = dataset.recipe.ladder
    last = last_prices(sheet, by_hand)
    ending = LastRung.PERSON if all(row.shape.person is not None for row in sheet.rows) else LastRung.WITHHELD
    prices = {node: float(sheet.costs[:, at].mean()) for at, node in enumerate(nodes)}
    voices = [node for node in nodes if all(node in row.shape.ways or node not in row.said for row in sheet.rows)]
    policies = family(nodes, prices, voices=voices, last=ending, by_hand=by_hand)
    if settings.among is None:
        everything = policies[0].last is LastRung.PERSON or settings.stratify is not None
        settings = replace(settings, among=Among.ALL if everything else Among.DELIVERED)
    if _dilutes(settings, policies[0].last):
        policies = diluted(policies, settings.risk)
    delta = sheet.rows[0].shape.problem.delta
    rule = GoldRule.of(dataset.recipe.data, tolerance=delta)
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


def _dilutes(settings: PilotSettings, last: LastRung) -> bool:
    """Random checks need a person to make them, and a statement about averages; what is asked for and can't be is refused."""
    finite = settings.statement not in (Statement.FRESH, Statement.POLICY)
    if settings.random_checks and (last is not LastRung.PERSON or finite or settings.among is not Among.ALL):
        raise InputError(
            "random checks need a check by a person in the recipe, and prove the statements 'fresh' and 'policy' among all items"
        )
    return settings.random_checks


def buy_pilot(
    dataset: Dataset, settings: PilotSettings, live: LiveModels, *, have: BoughtAnswers = NOTHING
) -> BoughtAnswers:
    """Every answer of the drawn items, and of those that make the order of tests, beside what a smaller look bought; what can't prove anything is not bought."""
    large_enough(settings, len(dataset))
    population = Population.of(dataset, stratify=settings.stratify)
    drawn = population.order(settings.seed)[: settings.labels]
    aside = aside_places(population, settings) if settings.order == "front" else []
    wanted = [population.ids[place] for place in dict.fromkeys((*drawn, *aside))]
    return have.joined(
        buy_answers(dataset, [name for name in wanted if name not in have.answers], live.after(have.money))
    )


def last_prices(sheet: AnswerSheet, by_hand: Mapping[str, Any] | None) -> LastPrices:
    """A person's price from the recipe. What a withheld item costs is [ladder] withheld, else ten times all its answers: without a price, silence is cheapest."""
    people = [row.shape.person for row in sheet.rows]
    check = max((float(person.cost or 0.0) for person in people if person is not None), default=0.0)
    withheld = (by_hand or {}).get("withheld")
    panel = float(sheet.costs.sum(axis=1).mean())
    return LastPrices(check, float(withheld) if withheld is not None else 10.0 * (panel or 1.0))


def large_enough(settings: PilotSettings, size: int) -> None:
    """At its best a pilot shows no wrong item; what it can't prove then, it can't prove at all."""
    labels, sure = settings.labels, settings.confidence
    if not 1 <= labels <= size:
        raise InputError(f"a pilot of {labels} items; the table has {size}")
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
    best = f"can prove a risk of {best_risk(labels, sure):.2%} at best, with none wrong (confidence {sure:.0%})"
    if labels >= least or settings.statement is not Statement.FRESH:
        kind = (
            "tests that hold at every moment" if settings.sequential else f"the statement {str(settings.statement)!r}"
        )
        best = f"can't prove a risk of {settings.risk:.2%} by {kind} at confidence {sure:.0%}, even with none wrong"
    raise InputError(
        f"a pilot of {labels} labels {best}; {settings.risk:.2%} needs {'more than' if labels >= least else 'at least'} {max(labels, least)}"
    )


def gold_truths(plan: PilotPlan, reviews: Mapping[str, Any] | None = None) -> tuple[dict[str, Truth], list[str]]:
    """The truth of each drawn item that has one, and the ids of those that people still have to say."""
    found: dict[str, Truth] = {}
    missing: list[str] = []
    for place in plan.drawn:
        row = plan.sheet.rows[place]
        cell = (reviews or {}).get(row.id)
        if cell is None and plan.rule.column is not None:
            cell = row.item.gold
        if cell is None and plan.rule.column is None:
            cell = checked_value(row.item.problem)
        try:
            truth = read_truth(cell, row.parser, plan.rule)
        except InputError as error:
            raise InputError(f"{plan.dataset.table.name}: item {row.id!r}: {error}") from None
        if truth is None:
            missing.append(row.id)
        else:
            found[row.id] = truth
    return found, missing


def checked_value(problem: Problem) -> list[float] | None:
    """What an exact check says that nobody has to be asked for: a value, or arithmetic over what the item knows."""
    for anchor in problem.anchors:
        if decides(anchor, delivered_node(problem)) and not is_person(anchor):
            value = known_value(problem, anchor)
            if value is not None:
                return [float(number) for number in value]
    return None


def run_pilot(
    plan: PilotPlan, truths: Mapping[str, Truth], *, truth_source: str, before: Mapping[str, Any] | None = None
) -> PilotResult:
    """Play, test, choose, measure. `before`: the policy that an earlier look at this pilot wrote; its order of tests stays."""
    settings = plan.settings
    pilot, aside = plan.pilot, plan.aside
    known = [truths[name] for name in pilot.ids]
    played = play(plan.policies, pilot, last=plan.last, truths=known)
    streams, ordered_by = _order(plan, aside) if before is None else earlier_look(before, played)
    finite = settings.statement is not Statement.FRESH
    if finite and settings.among is Among.DELIVERED and plan.models is None:
        played = _with_counts(plan, played)
    limit = _limit(plan)
    choice = assess(
        played,
        limit,
        settings.confidence,
        order=streams,
        statement=Scope(settings.statement, len(pilot), len(plan.population) if finite else None),
        sequential=settings.sequential,
        ordered_by=ordered_by,
    )
    chosen, why = _decide(plan, choice, {p.name: p for p in played})
    measured = _measure(plan, pilot, aside, known)
    kept = len(aside) if before is None else int(before["aside"])
    return PilotResult(plan, choice, {p.name: p for p in played}, chosen, why, truth_source, measured, kept)


def among_of(plan: PilotPlan) -> Among:
    assert plan.settings.among is not None  # a plan has decided it
    return plan.settings.among


def _limit(plan: PilotPlan) -> Limit:
    settings = plan.settings
    risk: float | Fraction = settings.risk
    if settings.stratify is not None:
        risk = stratified_risk(plan.population.strata(plan.drawn), settings.risk)
    return Limit.of(risk, among=among_of(plan))


def _with_counts(plan: PilotPlan, played: Sequence[PlayedPolicy]) -> list[PlayedPolicy]:
    """How many of all items each policy delivers: known from the answers alone."""
    everywhere = play(plan.policies, plan.sheet, last=plan.last)
    return [replace(one, delivers=int(all_.delivered.sum())) for one, all_ in zip(played, everywhere, strict=True)]


def _order(plan: PilotPlan, aside: AnswerSheet) -> tuple[tuple[Stream, ...], str]:
    names = [policy.name for policy in plan.policies]
    settings = plan.settings
    if settings.order == "holm":
        return holm(names), "Holm's method"
    if len(aside) < FEWEST_OTHERS or not (aside.codes >= 0).any():
        return holm(
            names
        ), f"Holm's method: only {len(aside)} items outside the pilot have answers to make an order from"
    played = _predicted(plan, aside)
    crowd = fit_crowd(aside.codes)
    which = "outside the pilot" if settings.statement is Statement.FRESH else "drawn on their own"
    made = f"from the answers of {len(aside)} items {which}, without gold"
    checked = any(policy.random_checks for policy in plan.policies)
    if settings.among is Among.ALL and not settings.sequential and not checked:
        chains = [
            [names[place] for place in chain]
            for chain in fronts(crowd, aside.codes, played, prices=aside.costs.mean(axis=0))
        ]
        scope = Scope(
            settings.statement, len(plan.drawn), None if settings.statement is Statement.FRESH else len(plan.population)
        )
        return staggered(chains, _limit(plan), scope, confidence=settings.confidence), f"staggered fronts {made}"
    risks = trusted_risk(crowd.right(aside.codes, discount=DISCOUNT), aside.codes, played, among=among_of(plan))
    places = front(risks, [float(one.cost.mean()) for one in played])
    shares = [1.0 if settings.among is Among.ALL else float(played[at].delivered.mean()) for at in places]
    chances = [
        _chance(
            settings,
            len(plan.drawn),
            part,
            float(risks[at]) / float(1 - played[at].checked_share),
            checked_share=played[at].checked_share,
        )
        for at, part in zip(places, shares, strict=True)
    ]
    # What is safest among little delivers too few to be proven, and would end the sequence before it begins: start where a proof is likeliest.
    start = max(range(len(places)), key=lambda at: chances[at])
    chain = [names[place] for place in places[start:]]
    if chances[start] == 0.0:
        return holm(names), "Holm's method: no policy delivers enough on the items outside the pilot to be proven alone"
    return fixed_sequence(chain), f"front of predicted risk against cost {made}"


def _predicted(plan: PilotPlan, aside: AnswerSheet) -> list[Replay]:
    """Every policy on the items that make the order; random checks share what their gate accepts."""
    plain = [policy for policy in plan.policies if not policy.random_checks]
    gates = {one.policy: replayed(one, aside) for one in play(plain, aside, last=plan.last)}
    return [
        dilute(gates[policy.gates], policy.checked_share, check=plan.last.check)
        if policy.random_checks
        else gates[policy]
        for policy in plan.policies
    ]


def _chance(
    settings: PilotSettings, labels: int, delivered: float, risk: float, *, checked_share: Fraction = Fraction(0)
) -> float:
    """The chance that a policy is proven when it delivers this share and its predicted risk, before random checks, is true."""
    count = round(labels * delivered)
    if count < 1:
        return 0.0
    allowed = passing_count(
        Limit(share(settings.risk, "risk") / (1 - checked_share), among=Among.ALL),
        Scope(Statement.FRESH, count),
        1 - share(settings.confidence, "confidence"),
    )
    return BinomialTail(count, Fraction(str(min(1.0, max(0.0, risk)))), allowed).value if allowed >= 0 else 0.0


def replayed(one: PlayedPolicy, sheet: AnswerSheet) -> Replay:
    """As `rrf_design.risk` predicts from it: accepted values as codes."""
    from rrf_design.promises.truths import same

    codes = []
    for row, value, own in zip(sheet.rows, one.values, sheet.codes, strict=True):
        said = ((int(code), row.implied.get(sheet.nodes[code])) for code in dict.fromkeys(own.tolist()) if code >= 0)
        near = (
            None
            if value is None
            else next((code for code, voice in said if voice is not None and same(value, voice)), None)
        )
        codes.append(-1 if value is None else len(sheet.nodes) if near is None else near)
    none = np.zeros(len(sheet), dtype=bool)
    return Replay(
        one.name, one.cost.copy(), one.delivered.copy(), none, ~one.delivered, np.array(codes, dtype=np.int64)
    )


def _decide(
    plan: PilotPlan, choice: PolicyChoice, played: Mapping[str, PlayedPolicy]
) -> tuple[LadderPolicy | None, str]:
    if choice.chosen is None:
        return None, f"no policy is proven to keep the risk; {CHECK_EVERYTHING} does"
    chosen = played[choice.chosen]
    mean = float(chosen.cost.mean())
    if chosen.policy.last is LastRung.PERSON and mean >= plan.last.check:
        return None, f"the cheapest proven policy costs {mean:.4g} an item, a check {plan.last.check:.4g}"
    return chosen.policy, "the cheapest policy that is proven to keep the risk"


def _measure(plan: PilotPlan, pilot: AnswerSheet, aside: AnswerSheet, truths: Sequence[Truth]) -> dict[str, Any]:
    sure, settings = plan.settings.confidence, plan.settings
    disputed = measuring.disputed_gold(pilot, truths, aside)
    # When a pilot that grows stops depends on what it showed, so its bounds are those of the first look, whose size does not.
    size = min(len(pilot), first_look(settings.risk, sure)) if settings.sequential else len(pilot)
    found = measuring.measured(pilot.only(range(size)), truths[:size], plan.dataset.recipe, sure)
    return {**found, "disputed_gold": disputed}


def refuse_second_look(document: Mapping[str, Any], plan: PilotPlan) -> Mapping[str, Any] | None:
    """The earlier look at this pilot, or None where the document is about another table.

    A pilot is tested once. Testing it again with more labels or another goal, after looking, would break its promise; a sequential one may grow.
    """
    settings = plan.settings
    if (document.get("population") or {}).get("digest") != plan.population.digest:
        return None
    said = [document.get(key) for key in ("seed", "risk", "confidence", "statement", "among", "order", "random_checks")]
    now = [
        settings.seed,
        settings.risk,
        settings.confidence,
        str(settings.statement),
        str(settings.among),
        settings.order,
        any(policy.random_checks for policy in plan.policies),
    ]
    sequential = bool((document.get("choice") or {}).get("sequential")) and settings.sequential
    labels = len(document.get("drawn") or ())
    if said != now or (labels != settings.labels and not (sequential and settings.labels >= labels)):
        raise Refused(
            f"this table was piloted already, with {labels} labels, risk {document.get('risk')} and seed {document.get('seed')}; another look at it would"
            " void the promise. A pilot that is to grow while it is looked at is --sequential from the beginning"
        )
    most = len(plan.population) - int(document.get("aside") or 0)
    if settings.order == "front" and settings.labels > most:
        raise Refused(
            f"the order of tests was made from the last items of the draw; this pilot can grow to {most} labels"
        )
    return document


def earlier_look(document: Mapping[str, Any], played: Sequence[PlayedPolicy]) -> tuple[tuple[Stream, ...], str]:
    """The order of tests of an earlier look. Another order for the same items would be another chance; so would other truths for items that were looked at."""
    from rrf_design.risk import prove_choice

    choice = prove_choice(document["choice"])
    marks = {entry["policy"]: entry["marks"] for entry in document["policies"]}
    if set(marks) != {one.name for one in played}:
        raise Refused(
            "the policies are not those of the earlier look at this pilot; pilot a changed recipe in another file"
        )
    changed = [one.name for one in played if not one.marks.startswith(marks[one.name])]
    if changed:
        raise Refused(
            f"items of the pilot come out otherwise than at the first look ({changed[0]}): a truth or an answer was changed after looking, which voids the promise"
        )
    return choice.streams, choice.ordered_by
