"""What pilots of several sizes could prove and would cost, before a label is bought: "no pilot pays here" is an answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rrf_design.promises.ordering import replayed
from rrf_design.promises.pilot_plans import FEWEST_OTHERS, OTHERS, PilotPlan
from rrf_design.promises.playing import play
from rrf_design.risk import Among, Prospect, best_risk, fit_crowd, forecast, least_labels, pilot_size, trusted_risk
from rrf_design.risk.orders import DISCOUNT

SIZES = (0.5, 1.0, 2.0, 4.0)
"""Of the rule of thumb."""


def forecast_pilot(plan: PilotPlan) -> dict[str, Any]:
    """Least sizes, and for a few sizes: wrong ones allowed, cost of the pilot, least and expected cost of everything. No gold is read."""
    settings, size = plan.settings, len(plan.population)
    thumb = pilot_size(size, settings.risk)
    least = least_labels(settings.risk, settings.confidence)
    sizes = sorted({min(size, max(1, round(part * thumb))) for part in SIZES} | {min(size, least)})
    aside = plan.sheet.only(plan.population.order(settings.seed)[-OTHERS:])  # a pilot takes the first
    panel = plan.panel
    prospects = [Prospect(0.0, 0.0)]
    from_answers = len(aside) >= FEWEST_OTHERS and bool((aside.codes >= 0).any())
    if from_answers:
        played = [replayed(one, aside) for one in play(plan.policies, aside, last=plan.last)]
        risks = trusted_risk(
            fit_crowd(aside.codes).right(aside.codes, discount=DISCOUNT), aside.codes, played, among=Among.ALL
        )
        prospects = [
            Prospect(float(one.cost.mean()), min(1.0, max(0.0, float(risk))))
            for one, risk in zip(played, risks, strict=True)
        ]
    found = forecast(
        sizes,
        settings.risk,
        settings.confidence,
        population=size,
        check=plan.last.check,
        panel=panel,
        prospects=prospects,
    )
    pays = [entry for entry in found if entry.pays]
    best = min(pays, key=lambda entry: entry.expected_cost, default=None)
    return {
        "population": size,
        "risk": settings.risk,
        "confidence": settings.confidence,
        "least_labels": least,
        "best_risk": best_risk(settings.labels, settings.confidence),
        "labels": settings.labels,
        "rule_of_thumb": thumb,
        "policies": len(plan.policies),
        "expected_from": f"the answers of {len(aside)} items, without gold" if from_answers else "nothing: bounds only",
        "sizes": [{**asdict(entry), "possible": entry.possible, "pays": entry.pays} for entry in found],
        "check_everything": plan.last.check * size,
        "advice": "no pilot pays here: check everything" if best is None else f"a pilot of {best.labels} labels",
    }
