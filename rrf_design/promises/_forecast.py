"""What pilots of several sizes could prove and would cost, before a label is bought: "no pilot pays
here" is an answer (docs/algorithms.md, fact 34).

Before anything is spent there is no truth. What is known are sizes, prices and goal, and these give
bounds. What to expect takes answers of some items, whose agreement says which policies are cheap
and about how wrong they are, or somebody's guess how often an answer is right. What agreement can't
show, answers that all say the same and are wrong, is a guess in either case (`agreed_wrong`), and
the forecast says up to which guess a pilot is expected to pay.

What a stronger promise would take: how many labels, and what they cost, if what the pilot saw
goes on. Estimates, and called so.

Answers as somebody guesses them who has none yet: every node right with a given probability, and
errors that come together.

Items differ: that of an item is drawn from a beta distribution with the guessed mean, so that two
nodes are wrong together more often than independent ones would be (recorded answers: 1.5 to 10
times as often), and two wrong answers are the same one now and then. It is a guess, for forecasts
only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker.promise_words import percent_about, percent_above, plain_percent
from rrf_design.promises._pilot_design import FEWEST_OTHERS, OTHERS, PilotPlan, PilotSettings, among_of
from rrf_design.promises._pilot_order import replayed
from rrf_design.promises._play import PlayedPolicy, play
from rrf_design.promises._policies import CHECK_EVERYTHING, SHARES, LastStage
from rrf_design.promises._sheets import AnswerSheet
from rrf_design.risk import (
    AGREED_WRONG,
    Among,
    Forecast,
    Last,
    Limit,
    Prospect,
    Replay,
    Scope,
    Statement,
    best_risk,
    bound,
    evidence,
    fit_crowd,
    forecast,
    lead_family,
    least_labels,
    passing_count,
    pilot_size,
    prospects_of,
    replay,
    sequential_tail,
    share,
    stratified_risk,
    whole,
)

if TYPE_CHECKING:
    from rrf_design.promises._pilot_analysis import PilotResult

SIZES = (0.5, 1.0, 2.0, 4.0)
"""Of the rule of thumb."""
GUESSES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares of agreed answers that are wrong, for which it is said whether a pilot pays."""
RANDOM_CHECKS = " with --random-checks"
NO_PILOT = "no pilot pays here"

Expectation = Callable[[float], list[Prospect]]
"""From a guess of agreed answers that are wrong to what is expected of the policies."""


def forecast_pilot(
    plan: PilotPlan, *, agreed_wrong: float | None = None, accuracy: float | None = None
) -> dict[str, Any]:
    """Least sizes, and for a few sizes: wrong ones allowed, cost of the pilot, least and expected
    cost of everything. No gold is read.

    `accuracy`: somebody's guess how often an answer is right; instead of recorded answers, or where
    there are none.
    """
    settings, size = plan.settings, len(plan.population)
    guess = AGREED_WRONG if agreed_wrong is None else float(share(agreed_wrong, "agreed-wrong", zero=True))
    expect, source = _expectation(plan, accuracy)
    series = {False: [0.0], True: [0.0, *SHARES]} if _dilutes(plan) else {settings.random_checks: [0.0]}
    sizes = _sizes(settings, size)
    aside = settings.aside if plan.models is not None and settings.order == "front" else 0  # recorded answers are there

    def forecasts(wrong: float, shares: Sequence[float]) -> list[Forecast]:
        prospects = None if expect is None else _diluted(expect(wrong), shares, plan)
        found = forecast(
            sizes,
            settings.risk,
            settings.confidence,
            population=size,
            check=_last_price(plan),
            panel=plan.panel,
            prospects=prospects,
            statement=settings.statement,
        )
        return [_with_aside(one, plan, min(aside, size - one.labels)) for one in found]

    found = {checks: forecasts(guess, shares) for checks, shares in series.items()}
    paying = [
        wrong
        for wrong in GUESSES
        if expect is not None and any(one.pays for shares in series.values() for one in forecasts(wrong, shares))
    ]
    other = found.get(not settings.random_checks)
    return {
        "population": size,
        "risk": settings.risk,
        "confidence": settings.confidence,
        "least_labels": _least_pilot(settings, size),
        "best_risk": best_risk(settings.labels, settings.confidence),
        "labels": settings.labels,
        "rule_of_thumb": pilot_size(size, settings.risk),
        "policies": len(plan.policies),
        "aside": aside,
        "expected_from": source,
        "agreed_wrong": None if expect is None else guess,
        "pays_up_to": max(paying, default=None),
        "sizes": [_told(one) for one in found[settings.random_checks]],
        "with_random_checks": None if other is None or settings.random_checks else [_told(one) for one in other],
        "last": str(plan.policies[0].last),
        "check_everything": _last_price(plan) * size,
        "advice": _advice(found, settings.random_checks, plan.policies[0].last),
    }


def _with_aside(one: Forecast, plan: PilotPlan, items: int) -> Forecast:
    """What the items cost that make the order of tests, bought without their truth."""
    more = items * plan.panel
    expected = None if one.expected_cost is None else one.expected_cost + more
    return replace(one, pilot_cost=one.pilot_cost + more, least_cost=one.least_cost + more, expected_cost=expected)


def _told(one: Forecast) -> dict[str, Any]:
    return {**asdict(one), "possible": one.possible, "pays": one.pays}


def _sizes(settings: PilotSettings, size: int) -> list[int]:
    """Around the rule of thumb, and the least that can prove anything."""
    thumb = pilot_size(size, settings.risk)
    return sorted(
        {min(size, max(1, round(part * thumb))) for part in SIZES} | {min(size, _least_pilot(settings, size))}
    )


def _least_pilot(settings: PilotSettings, size: int) -> int:
    """The smallest pilot that proves the statement when nothing in it is wrong."""
    if settings.statement is Statement.FRESH:
        return least_labels(settings.risk, settings.confidence)
    limit, level = Limit.of(settings.risk, among=Among.ALL), 1 - share(settings.confidence, "confidence")
    low, high = 1, size
    while low < high:
        middle = (low + high) // 2
        if passing_count(limit, Scope(settings.statement, middle, size), level) >= 0:
            high = middle
        else:
            low = middle + 1
    return high


def _expectation(plan: PilotPlan, accuracy: float | None) -> tuple[Expectation | None, str]:
    """What is expected of the policies, and in words where that comes from."""
    aside = plan.sheet.only(plan.population.order(plan.settings.seed)[-OTHERS:])  # a pilot takes the first
    if accuracy is not None:
        return (
            _guessed(plan, accuracy),
            f"a guess: {plain_percent(accuracy)} of all answers are right, and errors come together",
        )
    if len(aside) < FEWEST_OTHERS or not (aside.codes >= 0).any():
        return None, "nothing: bounds only"
    return _answered(plan, aside), f"the answers of {len(aside)} items, without gold"


def _answered(plan: PilotPlan, aside: AnswerSheet) -> Expectation:
    plain = [policy for policy in plan.policies if not policy.random_checks]
    played = [replayed(one, aside) for one in play(plain, aside, last=plan.last)]
    crowd = fit_crowd(aside.codes)
    return lambda wrong: prospects_of(crowd, aside.codes, played, among=among_of(plan), agreed_wrong=wrong)


def _guessed(plan: PilotPlan, accuracy: float) -> Expectation:
    prices = plan.sheet.costs.mean(axis=0)
    codes, gold = _guessed_answers(accuracy, len(prices))
    cheap = [int(at) for at in np.argsort(prices, kind="stable")]
    last = Last.GOLD if plan.policies[0].last is LastStage.PERSON else Last.ABSTAIN
    ladders = lead_family(len(cheap), [cheap, cheap[::-1]], last=last)
    played = replay(ladders, codes, prices=prices, check=plan.last.check, gold=gold, withheld=plan.last.withheld)
    return lambda wrong: [_seen(one, wrong, among_of(plan)) for one in played]


def _seen(one: Replay, agreed_wrong: float, among: Among) -> Prospect:
    """A policy whose wrong values are known, because the answers are made up."""
    accepted = one.delivered & ~one.checked
    wrong = float(one.wrong.mean()) + agreed_wrong * float((accepted & ~one.wrong).mean())
    counted = 1.0 if among is Among.ALL else float(one.delivered.mean())
    return Prospect(
        float(one.cost.mean()), min(1.0, wrong / counted) if counted else 0.0, counted, accepted=float(accepted.mean())
    )


def _diluted(prospects: Sequence[Prospect], shares: Sequence[float], plan: PilotPlan) -> list[Prospect]:
    """Each with every share of random checks; what an acceptance rule accepts is what is not sent
    to the person.
    """
    found: list[Prospect] = []
    for part in shares:
        if part == 0.0:
            found += prospects
        elif plan.settings.risk < 1 - part:
            found += [one.diluted(part, check=plan.last.check) for one in prospects]
    return found


def _dilutes(plan: PilotPlan) -> bool:
    """Whether random checks are possible at all: a person makes them, and they prove averages."""
    averages = plan.settings.statement in (Statement.FRESH, Statement.POLICY)
    return averages and plan.policies[0].last is LastStage.PERSON and plan.settings.among is Among.ALL


def _last_price(plan: PilotPlan) -> float:
    """Of an item that no acceptance rule accepts: a check by the person, or else what it costs to
    withhold it.
    """
    return plan.last.check if plan.policies[0].last is LastStage.PERSON else plan.last.withheld


def _advice(found: dict[bool, list[Forecast]], asked: bool, last: LastStage) -> str:
    nothing = f"{NO_PILOT}: {CHECK_EVERYTHING if last is LastStage.PERSON else 'withhold everything'}"
    listed = [(one, checks) for checks, several in found.items() for one in several]
    if all(one.expected_cost is None for one, _ in listed):
        could = [one.labels for one, _ in listed if one.possible]
        if could:
            return (
                f"a pilot of {min(could):,} labels or more could pay; what to expect takes answers of some items"
                " (--responses), or a guess how often one is right (--accuracy 0.9)"
            )
        return nothing
    paying = [
        (one.expected_cost, one.labels, checks) for one, checks in listed if one.pays and one.expected_cost is not None
    ]
    if not paying:
        return nothing
    _, labels, checks = min(paying)
    return f"a pilot of {labels:,} labels{RANDOM_CHECKS if checks and not asked else ''}"


LARGEST = 1_000_000
STEPS = 10_000
"""In so fine shares it is said what a pilot that grows could prove."""


def stronger_promise(result: PilotResult) -> list[dict[str, Any]]:
    """For half the risk with the same policy, or for the risk asked for where none proved it:
    labels, their cost, and what that rests on. Where random checks were not tried, the same with
    the smallest share of them that these labels would do with.
    """
    plan, settings = result.plan, result.plan.settings
    chosen = None if result.chosen is None else result.played[result.chosen.name]
    wanted = settings.risk if chosen is None else settings.risk / 2
    ways = [chosen] if chosen is not None else [p for p in result.played.values() if p.cost.mean() < plan.last.check]
    rate = share(wanted, "risk") if settings.stratify is None else _inside_strata(result, wanted)
    # The one that takes fewest labels; where none gets there, the one that is wrong least often.
    best = min((_needs(result, _way(result, one), rate) for one in ways), key=_fewest, default=(None, Fraction(1)))
    found = [_entry(result, wanted, best)]
    if chosen is None and _dilutes(plan) and not settings.random_checks:
        found += _with_random_checks(result, ways, wanted, rate)
    return found


def _way(result: PilotResult, one: PlayedPolicy) -> tuple[int, int, Fraction]:
    """Of the drawn items, how many a policy left wrong, how many count, and what it had checked."""
    counted = len(result.plan.drawn) if result.plan.settings.among is Among.ALL else int(one.delivered.sum())
    return int(one.wrong.sum()), counted, one.checked_share


def _entry(result: PilotResult, wanted: float, best: tuple[int | None, Fraction]) -> dict[str, Any]:
    labels, kept = best
    return {
        "risk": wanted,
        "policy": CHECK_EVERYTHING if result.chosen is None else result.chosen.name,
        "labels": labels,
        "cost": None if labels is None else labels * (result.plan.last.check + result.plan.panel),
        "if_wrong_share_is": float(kept),
    }


def _with_random_checks(
    result: PilotResult, ways: Sequence[PlayedPolicy], wanted: float, rate: Fraction
) -> list[dict[str, Any]]:
    """The cheapest policy that so many labels are expected to prove once a share of what it accepts
    is checked at random, if it still costs less than checking everything; else nothing.
    """
    check, drawn, found = result.plan.last.check, len(result.plan.drawn), []
    for one in ways:
        for part in (Fraction(str(each)) for each in SHARES):
            wrong, counted, _ = _way(result, one)
            labels, kept = _needs(result, (wrong, counted, part), rate) if rate < 1 - part else (None, Fraction(1))
            cost = float(one.cost.mean()) + float(part) * check * float(one.delivered.mean())
            if labels is not None and labels <= drawn and cost < check:
                found.append((cost, {**_entry(result, wanted, (labels, kept)), "random_checks": float(part)}))
                break
    return [{**entry, "cost_per_item": cost} for cost, entry in sorted(found, key=lambda pair: pair[0])[:1]]


def _fewest(found: tuple[int | None, Fraction]) -> tuple[float, Fraction]:
    return math.inf if found[0] is None else found[0], found[1]


def _inside_strata(result: PilotResult, wanted: float) -> Fraction:
    return stratified_risk(result.plan.population.strata(result.plan.drawn), wanted)


def _needs(result: PilotResult, way: tuple[int, int, Fraction], rate: Fraction) -> tuple[int | None, Fraction]:
    """How many labels a policy takes of which so many were wrong and counted, and the share of
    items that it leaves wrong.
    """
    wrong, counted, checked = way
    if not counted:
        return None, Fraction(0)
    settings, part = result.plan.settings, Fraction(counted, len(result.plan.drawn))  # of the labels, those that count
    seen = Fraction(wrong, counted)
    test = _PromiseTest(
        settings.statement, math.ceil(part * len(result.plan.population)), settings.confidence, settings.sequential
    )
    labels = test.labels(seen, rate / (1 - checked))
    return None if labels is None else math.ceil(labels / part), seen * (1 - checked)


@dataclass(frozen=True, slots=True)
class _PromiseTest:
    """One policy's test, as a pilot makes it: of a share of fresh items or of a finite table, at
    the end or at every moment.
    """

    statement: Statement
    population: int
    confidence: float
    sequential: bool = False

    def labels(self, kept: Fraction, rate: Fraction) -> int | None:
        """The least pilot that proves the rate when it shows its expected number of wrong items,
        rounded up; None where no size does.
        """
        if kept >= rate:
            return None
        wrong = 0
        while True:
            found = self._least(wrong, rate)
            if found is None or math.ceil(kept * found) <= wrong:
                return found
            wrong = math.ceil(kept * found)

    def proves(self, labels: int, wrong: int, rate: Fraction) -> bool:
        level = 1 - share(self.confidence, "confidence")
        if rate >= 1 or wrong > labels:
            return wrong <= labels
        if self.sequential:
            marks = np.zeros(labels, dtype=bool)
            marks[[(2 * at + 1) * labels // (2 * wrong) for at in range(wrong)]] = True  # wrong ones come evenly
            return sequential_tail(marks, rate).at_most(level)
        fresh = self.statement is Statement.FRESH
        scope = Scope(self.statement, labels, None if fresh else self.population)
        return evidence(Limit(rate, among=Among.ALL), scope, labels, wrong).claim.at_most(level)

    def best(self, labels: int) -> float:
        """The smallest rate that so many labels prove when none is wrong, rounded upwards."""
        if self.sequential:
            low, high = 0, STEPS
            while low < high:
                middle = (low + high) // 2
                if self.proves(labels, 0, Fraction(middle, STEPS) if middle else Fraction(1, 2 * STEPS)):
                    high = middle
                else:
                    low = middle + 1
            return high / STEPS
        if self.statement is Statement.FRESH:
            return best_risk(labels, self.confidence)
        size = self.population - labels if self.statement is Statement.REST else self.population
        return bound(self.population, labels, 0, self.confidence) / max(1, size)

    def _least(self, wrong: int, rate: Fraction) -> int | None:
        most = LARGEST if self.statement is Statement.FRESH else self.population
        low, high = max(1, wrong), max(1, wrong)
        while not self.proves(min(high, most), wrong, rate):
            if high >= most:
                return None
            low, high = high + 1, 2 * high
        high = min(high, most)
        while low < high:
            middle = (low + high) // 2
            if self.proves(middle, wrong, rate):
                high = middle
            else:
                low = middle + 1
        return high


def in_words(entries: list[dict[str, Any]], document: Mapping[str, Any]) -> list[str]:
    """For people.

    Labels are counted in all, those of this pilot among them: a stronger promise is another pilot,
    on other items or a larger one from the beginning.
    """
    drawn, size = len(document["drawn"]), document["population"]["size"]
    choice = document["choice"]
    test = _PromiseTest(Statement(document["statement"]), size, document["confidence"], bool(choice["sequential"]))
    checked = max(Fraction(policy["checked_share"]) for policy in choice["policies"])
    best = Fraction(test.best(drawn)) * (1 - checked)
    often = f" with {percent_about(float(checked))} checked at random" if checked else ""
    lines = [f"These {drawn:,} labels could prove {percent_above(best)} at best{often}, had nothing been wrong."]
    for entry in entries:
        wrong = percent_about(entry["if_wrong_share_is"], decimals=2)
        goes_on = f"{wrong} go on being wrong" if entry["if_wrong_share_is"] else "none is wrong there either"
        if "random_checks" in entry:
            lines.append(
                f"--random-checks from the beginning would have helped: with"
                f" {percent_about(entry['random_checks'], decimals=0)} of what is accepted checked at random about"
                f" {entry['labels']:,} labels do, for about {entry['cost_per_item']:,.4g} an item (an estimate)."
            )
        elif entry["labels"] is None:
            lines.append(
                f"For {percent_about(entry['risk'], decimals=2)}: more labels do not help while {wrong} are wrong; it"
                " takes better answers or more checks."
            )
        else:
            lines.append(
                f"For {percent_about(entry['risk'], decimals=2)}: {_needed(entry, drawn, size)}, if {goes_on} (an"
                " estimate)."
            )
    if document["policy"] == CHECK_EVERYTHING and document["check_cost"] > 0:
        lines.append(
            f"A stage that decides for less than {document['check_cost']:,.4g}, before the person (a value of the row,"
            " a command, a stronger model), is what else makes it cheaper."
        )
    return lines


def _needed(entry: Mapping[str, Any], drawn: int, size: int) -> str:
    labels = entry["labels"]
    if entry["policy"] == CHECK_EVERYTHING and labels <= drawn:
        return (
            f"about {labels:,} labels would do for a policy that is tested first, and this pilot has {drawn:,}; fix one"
            " with [ladder], or let more items make the order of tests, before another pilot"
        )
    if labels >= size:
        return f"about {labels:,} labels in all, where the table has {size:,} items"
    seen = f"this pilot has {drawn:,}"
    if labels <= drawn:
        seen += ", and could have been asked for it before it was looked at"
    return f"a pilot of about {labels:,} labels in all, for {entry['cost']:,.2f} ({seen})"


Codes = NDArray[np.int64]
TOGETHER = 0.5
"""The correlation of two nodes' errors."""
COINCIDE = 0.5
"""How often a wrong answer is the common wrong one of its item."""


def _guessed_answers(accuracy: float, nodes: int, *, items: int = 1000) -> tuple[Codes, Codes]:
    """Codes (items, nodes) and the truth (items,), in one coding."""
    right, count = float(share(accuracy, "accuracy")), whole(nodes, "nodes", least=1)
    rng = np.random.default_rng(0)
    scale = (1.0 - TOGETHER) / TOGETHER
    easy = rng.beta(right * scale, (1.0 - right) * scale, size=(items, 1))
    true = rng.random((items, count)) < easy
    common = rng.random((items, count)) < COINCIDE
    own = np.arange(2, count + 2)
    return np.where(true, 0, np.where(common, 1, own)), np.zeros(items, dtype=np.int64)
