"""What a stronger promise would take: how many labels, and what they cost, if what the pilot saw goes on. Estimates, and called so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rrf_design.promises.family import CHECK_EVERYTHING
from rrf_design.promises.piloting import PilotResult
from rrf_design.risk import Among, Limit, Scope, Statement, best_risk, bound, stratified_risk
from rrf_design.risk.arguments import share
from rrf_design.risk.sentences import percent_about, percent_above
from rrf_design.risk.sequences import sequential_tail
from rrf_design.risk.statements import evidence

LARGEST = 1_000_000
STEPS = 10_000
"""In so fine shares it is said what a pilot that grows could prove."""


def stronger_promise(result: PilotResult) -> list[dict[str, Any]]:
    """For half the risk with the same policy, or for the risk asked for where none proved it: labels, their cost, and what that rests on."""
    plan, settings = result.plan, result.plan.settings
    price, drawn = plan.last.check + plan.panel, len(plan.drawn)
    chosen = None if result.chosen is None else result.played[result.chosen.name]
    wanted = settings.risk if chosen is None else settings.risk / 2
    ways = [
        (int(one.wrong.sum()), drawn if settings.among is Among.ALL else int(one.delivered.sum()), one.checked_share)
        for one in ([chosen] if chosen is not None else result.played.values())
        if chosen is not None or float(one.cost.mean()) < plan.last.check
    ]
    rate = share(wanted, "risk") if settings.stratify is None else _inside_strata(result, wanted)
    # The one that takes fewest labels; where none gets there, the one that is wrong least often.
    best = min((_needs(result, way, rate) for way in ways), key=_fewest, default=(None, Fraction(1)))
    labels, kept = best
    return [
        {
            "risk": wanted,
            "policy": CHECK_EVERYTHING if chosen is None else chosen.name,
            "labels": labels,
            "cost": None if labels is None else labels * price,
            "if_wrong_share_is": float(kept),
        }
    ]


def _fewest(found: tuple[int | None, Fraction]) -> tuple[float, Fraction]:
    return math.inf if found[0] is None else found[0], found[1]


def _inside_strata(result: PilotResult, wanted: float) -> Fraction:
    return stratified_risk(result.plan.population.strata(result.plan.drawn), wanted)


def _needs(result: PilotResult, way: tuple[int, int, Fraction], rate: Fraction) -> tuple[int | None, Fraction]:
    """How many labels a policy takes of which so many were wrong and counted, and the share of items that it leaves wrong."""
    wrong, counted, checked = way
    if not counted:
        return None, Fraction(0)
    settings, part = result.plan.settings, Fraction(counted, len(result.plan.drawn))  # of the labels, those that count
    seen = Fraction(wrong, counted)
    test = PromiseTest(
        settings.statement, math.ceil(part * len(result.plan.population)), settings.confidence, settings.sequential
    )
    labels = test.labels(seen, rate / (1 - checked))
    return None if labels is None else math.ceil(labels / part), seen * (1 - checked)


@dataclass(frozen=True, slots=True)
class PromiseTest:
    """One policy's test, as a pilot makes it: of a share of fresh items or of a finite table, at the end or at every moment."""

    statement: Statement
    population: int
    confidence: float
    sequential: bool = False

    def labels(self, kept: Fraction, rate: Fraction) -> int | None:
        """The least pilot that proves the rate when it shows its expected number of wrong items, rounded up; None where no size does."""
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
    """For people. Labels are counted in all, those of this pilot among them: a stronger promise is another pilot, on other items or a larger one from the beginning."""
    drawn, size = len(document["drawn"]), document["population"]["size"]
    choice = document["choice"]
    test = PromiseTest(Statement(document["statement"]), size, document["confidence"], bool(choice["sequential"]))
    checked = max(Fraction(policy["checked_share"]) for policy in choice["policies"])
    best = Fraction(test.best(drawn)) * (1 - checked)
    often = f" with {percent_about(float(checked))} checked at random" if checked else ""
    lines = [f"These {drawn:,} labels could prove {percent_above(best)} at best{often}, had nothing been wrong."]
    for entry in entries:
        wrong = percent_about(entry["if_wrong_share_is"], decimals=2)
        goes_on = f"{wrong} go on being wrong" if entry["if_wrong_share_is"] else "none is wrong there either"
        if entry["labels"] is None:
            lines.append(
                f"For {percent_about(entry['risk'], decimals=2)}: more labels do not help while {wrong} are wrong; it takes better answers or more checks."
            )
        else:
            lines.append(
                f"For {percent_about(entry['risk'], decimals=2)}: {_needed(entry, drawn, size)}, if {goes_on} (an estimate)."
            )
    return lines


def _needed(entry: Mapping[str, Any], drawn: int, size: int) -> str:
    labels = entry["labels"]
    if entry["policy"] == CHECK_EVERYTHING and labels <= drawn:
        return (
            f"about {labels:,} labels would do for a policy that is tested first, and this pilot has {drawn:,}; fix one with [ladder], or let more items make the"
            " order of tests, before another pilot"
        )
    if labels >= size:
        return f"about {labels:,} labels in all, where the table has {size:,} items"
    seen = f"this pilot has {drawn:,}"
    if labels <= drawn:
        seen += ", and could have been asked for it before it was looked at"
    return f"a pilot of about {labels:,} labels in all, for {entry['cost']:,.2f} ({seen})"
