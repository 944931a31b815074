"""The order in which a pilot tests its policies, fixed before any truth is read (docs/algorithms.md, facts 33 and 34).

It comes from the answers of other items, without gold (fronts of predicted risk against cost), or there is none (Holm).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rrf_design.promises.pilot_plans import FEWEST_OTHERS, PilotPlan, PilotSettings, among_of, tested_limit
from rrf_design.promises.playing import PlayedPolicy, play
from rrf_design.promises.sheets import AnswerSheet
from rrf_design.risk import (
    UNREADABLE,
    Among,
    Limit,
    Replay,
    Scope,
    Statement,
    Stream,
    dilute,
    fit_crowd,
    fixed_sequence,
    front,
    fronts,
    holm,
    passing_count,
    staggered,
    trusted_risk,
)
from rrf_design.risk.counts import BinomialTail, share
from rrf_design.risk.orders import DISCOUNT


def order_of_tests(plan: PilotPlan, aside: AnswerSheet) -> tuple[tuple[Stream, ...], str]:
    """The streams of names that the tests follow, and in words how they were made."""
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
        return staggered(chains, tested_limit(plan), scope, confidence=settings.confidence), f"staggered fronts {made}"
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
    for at, (row, value, own) in enumerate(zip(sheet.rows, one.values, sheet.codes, strict=True)):
        if at in one.by_check:
            codes.append(
                UNREADABLE
            )  # no answer was believed; the order takes the check for right, and the test counts what it says
            continue
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
