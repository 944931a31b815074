"""The order in which a pilot tests its policies, fixed before any truth is read
(docs/algorithms.md, facts 33 and 34).

It comes from the answers of other items, without gold (fronts of predicted risk against cost), or
there is none (Holm). Checks that decide are taken at their word there, and where several fronts
share the tests, a further one counts what checks say as answers: how often a check is right is
predicted, and not believed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Anchor
from rrf_design.promises._pilot_design import FEWEST_OTHERS, PilotPlan, PilotSettings, among_of, tested_limit
from rrf_design.promises._play import PlayedPolicy, play, unrecorded
from rrf_design.promises._sheets import AnswerSheet, ItemAnswers, code_among
from rrf_design.promises._truths import Said
from rrf_design.risk import (
    DISCOUNT,
    UNREADABLE,
    Among,
    BinomialTail,
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
    share,
    staggered,
    trusted_risk,
)


def order_of_tests(plan: PilotPlan, aside: AnswerSheet) -> tuple[tuple[Stream, ...], str]:
    """The streams of names that the tests follow, and in words how they were made."""
    names, settings = [policy.name for policy in plan.policies], plan.settings
    aside = aside.only([at for at, row in enumerate(aside.rows) if not row.said.keys() <= row.absent])
    if settings.order == "holm":
        return holm(names), "Holm's method"
    if len(aside) < FEWEST_OTHERS or not (aside.codes >= 0).any():
        return holm(
            names
        ), f"Holm's method: only {len(aside)} items outside the pilot have answers to make an order from"
    gates = _played(plan, aside)
    there = {one.policy for one in gates if not unrecorded(one, aside).any()}
    if not there:
        return holm(names), "Holm's method: every policy asks for answers that are not recorded"
    plan = replace(plan, policies=tuple(policy for policy in plan.policies if policy.undiluted in there))
    names = [policy.name for policy in plan.policies]
    which = "outside the pilot" if settings.statement is Statement.FRESH else "drawn on their own"
    made = f"from the answers of {len(aside)} items {which}, without gold"
    checked = any(policy.random_checks for policy in plan.policies)
    if settings.among is Among.ALL and not settings.sequential and not checked:
        chains = _chains(plan, aside, gates)
        scope = Scope(
            settings.statement, len(plan.drawn), None if settings.statement is Statement.FRESH else len(plan.population)
        )
        return staggered(chains, tested_limit(plan), scope, confidence=settings.confidence), f"staggered fronts {made}"
    played = _predicted(plan, aside, gates, None)
    right = fit_crowd(aside.codes).right(aside.codes, discount=DISCOUNT)
    risks = trusted_risk(right, aside.codes, played, among=among_of(plan))
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
    # What is safest among little delivers too few to be proven, and would end the sequence before
    # it begins: start where a proof is likeliest.
    start = max(range(len(places)), key=lambda at: chances[at])
    chain = [names[place] for place in places[start:]]
    if chances[start] == 0.0:
        return holm(names), "Holm's method: no policy delivers enough on the items outside the pilot to be proven alone"
    return fixed_sequence(chain), f"front of predicted risk against cost {made}"


def _chains(plan: PilotPlan, aside: AnswerSheet, gates: Sequence[PlayedPolicy]) -> list[list[str]]:
    """Fronts of names.

    Where policies escalate to checks: first with what decides taken at its word, as the recipe
    says; then with checks that may err like answers, so that one that is worse than its word does
    not take every policy with it.
    """
    names = [policy.name for policy in plan.policies]
    plainly = _predicted(plan, aside, gates, None)
    found = fronts(fit_crowd(aside.codes), aside.codes, plainly, prices=aside.costs.mean(axis=0))
    heard = Heard.of(aside, {step for policy in plan.policies for step in policy.further})
    if heard.checks:
        warily = _predicted(plan, aside, gates, heard)
        other = fronts(fit_crowd(heard.codes), heard.codes, warily, prices=heard.prices)[0]
        found = [found[0], other, *found[1:]]
    return [[names[place] for place in chain] for chain in found]


def _played(plan: PilotPlan, aside: AnswerSheet) -> list[PlayedPolicy]:
    """Every acceptance rule on the items that make the order, without random checks."""
    return play([policy for policy in plan.policies if not policy.random_checks], aside, last=plan.last)


def _predicted(plan: PilotPlan, aside: AnswerSheet, gates: Sequence[PlayedPolicy], heard: Heard | None) -> list[Replay]:
    """Every policy as it is predicted from; random checks share what is accepted."""
    found = {one.policy: replayed(one, aside, heard) for one in gates}
    return [
        dilute(found[policy.undiluted], policy.checked_share, check=plan.last.check)
        if policy.random_checks
        else found[policy]
        for policy in plan.policies
    ]


def _chance(
    settings: PilotSettings, labels: int, delivered: float, risk: float, *, checked_share: Fraction = Fraction(0)
) -> float:
    """The chance that a policy is proven when it delivers this share and its predicted risk, before
    random checks, is true.
    """
    count = round(labels * delivered)
    if count < 1:
        return 0.0
    allowed = passing_count(
        Limit(share(settings.risk, "risk") / (1 - checked_share), among=Among.ALL),
        Scope(Statement.FRESH, count),
        1 - share(settings.confidence, "confidence"),
    )
    return BinomialTail(count, Fraction(str(min(1.0, max(0.0, risk)))), allowed).value if allowed >= 0 else 0.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said of the delivered value of each item: codes as a sheet has them, with a column
    for every check that speaks of it.
    """

    checks: tuple[str, ...]
    said: tuple[tuple[Said | None, ...], ...]
    codes: NDArray[np.int64]
    prices: NDArray[np.float64]

    @classmethod
    def of(cls, sheet: AnswerSheet, steps: Collection[str]) -> Heard:
        """`steps`: the checks that are listened to, among other names."""
        known = (name for row in sheet.rows for name, check in row.template.checks.items() if _speaks(row, check))
        checks = [name for name in dict.fromkeys(known) if name in steps]
        said, codes = [], np.full((len(sheet), len(sheet.nodes) + len(checks)), UNREADABLE, dtype=np.int64)
        codes[:, : len(sheet.nodes)] = sheet.codes
        for at, row in enumerate(sheet.rows):
            values = (*(row.implied.get(node) for node in sheet.nodes), *(row.checked.get(name) for name in checks))
            for place in range(len(sheet.nodes), len(values)):
                codes[at, place] = code_among(values[place], values, codes[at, :place].tolist(), new=place)
            said.append(values)
        prices = [np.mean([r.price(name) for r in sheet.rows if name in r.template.checks]) for name in checks]
        return cls(tuple(checks), tuple(said), codes, np.concatenate([sheet.costs.mean(axis=0), prices]))


def _speaks(row: ItemAnswers, check: Anchor) -> bool:
    return check.nodes == (row.template.node,) and check.rows is None


def replayed(one: PlayedPolicy, sheet: AnswerSheet, heard: Heard | None = None) -> Replay:
    """As `rrf_design.risk` predicts from it: accepted values as codes.

    Where checks were not listened to, what they decide is taken for right.
    """
    codes = []
    for at, value in enumerate(one.values):
        if heard is None and at in one.by_check:
            codes.append(UNREADABLE)
            continue
        said = [sheet.rows[at].implied.get(node) for node in sheet.nodes] if heard is None else heard.said[at]
        own = (sheet.codes if heard is None else heard.codes)[at].tolist()
        codes.append(code_among(value, said, own, new=len(own)))
    none = np.zeros(len(sheet), dtype=bool)
    return Replay(
        one.name, one.cost.copy(), one.delivered.copy(), none, ~one.delivered, np.array(codes, dtype=np.int64)
    )
