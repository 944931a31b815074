"""A pilot: random items with known truth, every policy played on them, every test recorded (docs/algorithms.md, facts 23 and 31 to 34).

What the gates assume about k is tested here and not believed. Nothing is looked at before the order of tests is fixed (`ordering`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rrf_design.decisive import decides, delivered_node, is_person
from rrf_design.errors import InputError
from rrf_design.known import known_value
from rrf_design.problem import Problem
from rrf_design.promises import measuring
from rrf_design.promises.family import LadderPolicy, LastRung
from rrf_design.promises.leaks import leaks_of
from rrf_design.promises.looks import earlier_look
from rrf_design.promises.ordering import order_of_tests
from rrf_design.promises.pilot_plans import PilotPlan, tested_limit
from rrf_design.promises.playing import PlayedPolicy, at_worst, play, unrecorded
from rrf_design.promises.policy_forms import PROVEN, UNPROVEN, why_everything
from rrf_design.promises.sheets import AnswerSheet
from rrf_design.promises.truths import Truth, cannot_tell, read_truth
from rrf_design.risk import (
    Among,
    PolicyChoice,
    Scope,
    Statement,
    assess,
    first_look,
)


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
    leaks: Sequence[Mapping[str, Any]] = ()
    """Columns and texts that may give the truth away."""


def gold_truths(plan: PilotPlan, reviews: Mapping[str, Any] | None = None) -> tuple[dict[str, Truth], list[str]]:
    """The truth of each drawn item that has one, and the ids of those that people still have to say."""
    found: dict[str, Truth] = {}
    missing: list[str] = []
    for place in plan.drawn:
        row = plan.sheet.rows[place]
        cell = (reviews or {}).get(row.id)
        if cannot_tell(cell):
            found[row.id] = Truth.unknown()
            continue
        if cell is None and plan.rule.column is not None:
            cell = row.item.gold
        if cell is None and plan.rule.column is None:
            cell = checked_value(row.item.problem)
        try:
            truth = read_truth(cell, row.parser, plan.rule.within(row.shape.problem.delta))
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
        if decides(problem, anchor, delivered_node(problem)) and not is_person(anchor):
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
    shown = leaks_of(plan.dataset, pilot, known)
    played = [at_worst(one, pilot) for one in play(plan.policies, pilot, last=plan.last, truths=known)]
    streams, ordered_by = order_of_tests(plan, aside) if before is None else earlier_look(before, played)
    finite = settings.statement is not Statement.FRESH
    if finite and settings.among is Among.DELIVERED and plan.models is None:
        played = _with_counts(plan, played)
    limit = tested_limit(plan)
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
    return PilotResult(plan, choice, {p.name: p for p in played}, chosen, why, truth_source, measured, kept, shown)


def _with_counts(plan: PilotPlan, played: Sequence[PlayedPolicy]) -> list[PlayedPolicy]:
    """How many of all items each policy delivers: known from the answers alone, where all are there that it asks for."""
    found = []
    for one, everywhere in zip(played, play(plan.policies, plan.sheet, last=plan.last), strict=True):
        known = not unrecorded(everywhere, plan.sheet).any()
        found.append(replace(one, delivers=int(everywhere.delivered.sum())) if known else one)
    return found


def _decide(
    plan: PilotPlan, choice: PolicyChoice, played: Mapping[str, PlayedPolicy]
) -> tuple[LadderPolicy | None, str]:
    if choice.chosen is None:
        return None, UNPROVEN
    chosen = played[choice.chosen]
    mean = float(chosen.cost.mean())
    if chosen.policy.last is LastRung.PERSON and mean >= plan.last.check:
        return None, why_everything(mean, plan.last.check)
    return chosen.policy, PROVEN


def _measure(plan: PilotPlan, pilot: AnswerSheet, aside: AnswerSheet, truths: Sequence[Truth]) -> dict[str, Any]:
    sure, settings = plan.settings.confidence, plan.settings
    disputed = measuring.disputed_gold(pilot, truths, aside)
    # When a pilot that grows stops depends on what it showed, so its bounds are those of the first look, whose size does not.
    size = min(len(pilot), first_look(settings.risk, sure)) if settings.sequential else len(pilot)
    found = measuring.measured(pilot.only(range(size)), truths[:size], plan.dataset.recipe, sure)
    return {**found, "disputed_gold": disputed, "basis": _basis(plan, size)}


def _basis(plan: PilotPlan, size: int) -> str:
    """What the measured bounds rest on, where that is not the whole of a simple draw."""
    if size < len(plan.drawn):
        return (
            f"from the first {size:,} of the {len(plan.drawn):,} items, because when a pilot that grows stops depends on what it showed, and the size of its"
            " first look does not"
        )
    if plan.settings.stratify is not None:
        return f"of items that are mixed over the strata of {plan.settings.stratify!r} as the drawn ones are, not as all are"
    return ""
