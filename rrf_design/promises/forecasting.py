"""What pilots of several sizes could prove and would cost, before a label is bought: "no pilot pays here" is an answer (docs/algorithms.md, fact 34).

Before anything is spent there is no truth. What is known are sizes, prices and goal, and these give bounds. What to expect takes answers of some items, whose agreement says which policies are
cheap and about how wrong they are, or somebody's guess how often an answer is right. What agreement can't show, answers that all say the same and are wrong, is a guess in either
case (`agreed_wrong`), and the forecast says up to which guess a pilot is expected to pay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from rrf_design.promises.family import CHECK_EVERYTHING, SHARES, LastRung
from rrf_design.promises.ordering import replayed
from rrf_design.promises.pilot_plans import FEWEST_OTHERS, OTHERS, PilotPlan, PilotSettings, among_of
from rrf_design.promises.playing import play
from rrf_design.promises.sheets import AnswerSheet
from rrf_design.risk import (
    Among,
    Forecast,
    Last,
    Limit,
    Prospect,
    Replay,
    Scope,
    Statement,
    best_risk,
    fit_crowd,
    forecast,
    lead_family,
    least_labels,
    passing_count,
    pilot_size,
    prospects_of,
    replay,
)
from rrf_design.risk.arguments import share
from rrf_design.risk.forecasts import AGREED_WRONG
from rrf_design.risk.guesses import guessed_answers
from rrf_design.risk.sentences import plain_percent

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
    """Least sizes, and for a few sizes: wrong ones allowed, cost of the pilot, least and expected cost of everything. No gold is read.

    `accuracy`: somebody's guess how often an answer is right; instead of recorded answers, or where there are none.
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
        "least_labels": least_pilot(settings, size),
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
    return sorted({min(size, max(1, round(part * thumb))) for part in SIZES} | {min(size, least_pilot(settings, size))})


def least_pilot(settings: PilotSettings, size: int) -> int:
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
        return _guessed(
            plan, accuracy
        ), f"a guess: {plain_percent(accuracy)} of all answers are right, and errors come together"
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
    codes, gold = guessed_answers(accuracy, len(prices))
    cheap = [int(at) for at in np.argsort(prices, kind="stable")]
    last = Last.GOLD if plan.policies[0].last is LastRung.PERSON else Last.ABSTAIN
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
    """Each with every share of random checks; what a gate accepts is what is not sent to the person."""
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
    return averages and plan.policies[0].last is LastRung.PERSON and plan.settings.among is Among.ALL


def _last_price(plan: PilotPlan) -> float:
    """Of an item that no gate accepts: a check by the person, or else what it costs to withhold it."""
    return plan.last.check if plan.policies[0].last is LastRung.PERSON else plan.last.withheld


def _advice(found: dict[bool, list[Forecast]], asked: bool, last: LastRung) -> str:
    nothing = f"{NO_PILOT}: {CHECK_EVERYTHING if last is LastRung.PERSON else 'withhold everything'}"
    listed = [(one, checks) for checks, several in found.items() for one in several]
    if all(one.expected_cost is None for one, _ in listed):
        could = [one.labels for one, _ in listed if one.possible]
        if could:
            return (
                f"a pilot of {min(could):,} labels or more could pay; what to expect takes answers of some items (--responses), or a guess how often"
                " one is right (--accuracy 0.9)"
            )
        return nothing
    paying = [
        (one.expected_cost, one.labels, checks) for one, checks in listed if one.pays and one.expected_cost is not None
    ]
    if not paying:
        return nothing
    _, labels, checks = min(paying)
    return f"a pilot of {labels:,} labels{RANDOM_CHECKS if checks and not asked else ''}"
