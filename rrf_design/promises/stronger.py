"""What a stronger promise would take: how many labels, and what they cost, if what the pilot saw goes on. Estimates, and called so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rrf_design.promises.family import CHECK_EVERYTHING
from rrf_design.promises.piloting import PilotResult
from rrf_design.risk import Among, best_risk, least_labels
from rrf_design.risk.sentences import percent_about, percent_above

LARGEST = 1_000_000


def stronger_promise(result: PilotResult) -> list[dict[str, Any]]:
    """For half the risk with the same policy, and for a risk that nothing wrong would prove: labels, their cost, and what that rests on."""
    plan, settings = result.plan, result.plan.settings
    price = plan.last.check + plan.panel
    found = []
    chosen = None if result.chosen is None else result.played[result.chosen.name]
    if chosen is None:
        wanted, kept, counted = settings.risk, _cleanest(result), len(plan.drawn)
    else:
        counted = len(plan.drawn) if settings.among is Among.ALL else int(chosen.delivered.sum())
        wanted, kept = (
            settings.risk / 2,
            Fraction(int(chosen.wrong.sum()), max(1, counted)) * (1 - chosen.checked_share),
        )
    labels = _labels(kept, wanted, settings.confidence)
    part = counted / max(1, len(plan.drawn))  # of the labels, those that count
    found.append(
        {
            "risk": wanted,
            "policy": CHECK_EVERYTHING if chosen is None else chosen.name,
            "labels": None if labels is None or not part else math.ceil(labels / part),
            "cost": None if labels is None or not part else math.ceil(labels / part) * price,
            "if_wrong_share_is": float(kept),
        }
    )
    return found


def _cleanest(result: PilotResult) -> Fraction:
    """The smallest wrong share of a policy that costs less than checking everything; 1 where there is none."""
    shares = [
        Fraction(policy.counts[0].marked, policy.counts[0].counted) * (1 - policy.checked_share)
        for policy in result.choice.policies
        if policy.counts[0].counted and policy.cost < result.plan.last.check
    ]
    return min(shares, default=Fraction(1))


def _labels(kept: Fraction, risk: float, confidence: float) -> int | None:
    """The least pilot that proves the risk when it shows its expected number of wrong items, rounded up; None where no size does."""
    if kept >= Fraction(str(risk)):
        return None
    wrong = 0
    while True:
        labels = least_labels(risk, confidence, wrong=wrong)
        if math.ceil(kept * labels) <= wrong or labels > LARGEST:
            return labels if labels <= LARGEST else None
        wrong = math.ceil(kept * labels)


def in_words(entries: list[dict[str, Any]], document: Mapping[str, Any]) -> list[str]:
    """For people. Labels are counted in all, those of this pilot among them: a stronger promise is another pilot, on other items or a larger one from the beginning."""
    drawn, size = len(document["drawn"]), document["population"]["size"]
    best = best_risk(drawn, document["confidence"])
    lines = [f"These {drawn:,} labels could prove {percent_above(Fraction(best))} at best, had nothing been wrong."]
    for entry in entries:
        share = entry["if_wrong_share_is"]
        wrong = percent_about(share, decimals=2)
        goes_on = f"{wrong} go on being wrong" if share else "none is wrong there either"
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
