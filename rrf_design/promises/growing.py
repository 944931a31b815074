"""A pilot that grows until its answer is clear: tests that hold at every moment, so that stopping early costs nothing of the promise.

It is clear when more labels could not pay: what the cheapest policy that still looks good would save on the items left, against the policy in hand (or against checking everything), is less
than the next labels cost. That is a rule about money only; whatever it decides, the promise holds.
"""

from __future__ import annotations

from dataclasses import replace

from rrf_design.promises.family import CHECK_EVERYTHING
from rrf_design.promises.pilot_plans import PilotSettings
from rrf_design.promises.piloting import PilotResult
from rrf_design.risk import first_look

GROWTH = 1.5


def stages(settings: PilotSettings, *, already: int = 0) -> list[PilotSettings]:
    """The looks at a pilot: one at its full size, or several of growing size where the tests allow it. `already`: labels of an earlier look."""
    if not settings.sequential:
        return [settings]
    size = max(first_look(settings.risk, settings.confidence), already)
    found = []
    while size < settings.labels:
        found.append(replace(settings, labels=size))
        size = max(size + 1, int(size * GROWTH))
    return [*found, settings]


def why_stop(result: PilotResult, more: int) -> str | None:
    """In words, why `more` further labels would not pay; None while they may."""
    plan = result.plan
    left = len(plan.population) - len(plan.drawn)
    price = plan.last.check + plan.panel
    now = plan.last.check if result.chosen is None else float(result.played[result.chosen.name].cost.mean())
    hopeful = [
        float(result.played[policy.name].cost.mean())
        for policy in result.choice.policies
        if policy.counts[0].marked <= plan.settings.risk * max(1, policy.counts[0].counted)
    ]
    gain = max(0.0, now - min(hopeful, default=now)) * left
    if gain >= more * price:
        return None
    held = CHECK_EVERYTHING if result.chosen is None else "the policy in hand"
    return f"{more} more labels cost {more * price:.4g}, and nothing that still looks good saves more than {gain:.4g} against {held}"
