"""Purchases that would mend a margin: single ones that see the witness, and the cheapest set that reaches the goal.

Every purchase named has had its margin computed. The planner is asked for the cheapest set and its proof; where that
takes too long, buying witness by witness finds a set, and nothing more is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rrf_design.reporting.fieldview import witness_energies

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin
    from rrf_design.problem import Problem

TRIED = 8
"""Single purchases whose margin is computed."""
PLANNED = 200
"""With at most so many blocks on sale, the planner is asked for the cheapest set,"""
PLAN_SECONDS = 20.0
"""for at most so long,"""
POSITIVE = 1e-6
"""and this margin stands for "positive" where the problem names none."""
STEPS = 20
"""Purchases after which buying witness by witness gives up: so much is a plan's business, not an explanation's."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """Something that can be bought, with everything that it needs, and the margin afterwards."""

    ids: tuple[str, ...]
    cost: float
    gamma: float
    lower: float
    status: str

    def to_json(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "cost": self.cost,
            "gamma": self.gamma,
            "lower": self.lower,
            "status": self.status,
        }


def single_purchases(
    problem: Problem, margin: DesignMargin, visible: Mapping[str, float], options: Mapping[str, Any]
) -> tuple[Purchase, ...]:
    owned = set(margin.selected)
    offers = []
    for name, energy in visible.items():
        block = problem.block_by_id[name]
        if block.owned or name in owned:
            continue
        ids = with_needs(problem, name, owned)
        cost = price(problem, ids)
        offers.append((energy / max(cost, 1e-9), ids, cost))
    offers.sort(key=lambda offer: (-offer[0], offer[2]))
    tried = []
    for _, ids, cost in offers[:TRIED]:
        after = problem.margin([*margin.selected, *ids], k=margin.k, **options)
        tried.append(Purchase(ids, cost, after.value, after.lower, str(after.status)))
    return tuple(sorted(tried, key=lambda p: (-p.gamma, p.cost)))


def with_needs(problem: Problem, name: str, owned: set[str]) -> tuple[str, ...]:
    """A block on sale with what it requires and the nodes it would have to ask, in file order."""
    needed: set[str] = set()
    queue = [name]
    while queue:
        here = queue.pop()
        block = problem.block_by_id.get(here)
        if here in needed or here in owned or (block is not None and block.owned and here != name):
            continue
        needed.add(here)
        if block is not None:
            queue += [*block.requires, *(n for n in block.nodes if problem.node_by_id[n].cost is not None)]
    return problem.resolve(needed)


def price(problem: Problem, ids: tuple[str, ...]) -> float:
    """Sum of the listed prices of blocks and nodes (tiers are the planner's business)."""
    things = (problem.block_by_id.get(name) or problem.node_by_id[name] for name in ids)
    return float(sum(thing.cost or 0.0 for thing in things))


def cheapest_mend(
    problem: Problem,
    margin: DesignMargin,
    singles: tuple[Purchase, ...],
    goal: float | None,
    options: Mapping[str, Any],
) -> tuple[Purchase | None, bool]:
    """The cheapest set that reaches the goal, and whether that is proven; without a proof the cheapest found of: the
    planner's, the single purchases tried, and buying witness by witness."""
    reaching = [offer for offer in singles if reaches(offer.lower, goal)]
    if len(problem.on_sale) <= PLANNED:
        planned, proven = _cheapest(problem, margin, goal, options)
        if proven:
            return planned, True
        if planned is not None:
            reaching.append(planned)
    stepwise = _witness_by_witness(problem, margin, goal, options)
    if stepwise is not None:
        reaching.append(stepwise)
    return min(reaching, key=lambda offer: (offer.cost, -offer.gamma), default=None), False


def _cheapest(
    problem: Problem, margin: DesignMargin, goal: float | None, options: Mapping[str, Any]
) -> tuple[Purchase | None, bool]:
    """What the planner says, with what is selected already counted as owned."""
    from rrf_design.planning import PlanStatus, plan

    rest = _owning(problem, frozenset(margin.selected))
    limit = min(PLAN_SECONDS, options.get("time_limit") or PLAN_SECONDS)
    found = plan(rest, target=POSITIVE if goal is None else goal, k=margin.k, objective="gamma_sigma", time_limit=limit)
    if found.status is PlanStatus.INFEASIBLE:
        return None, True
    after = problem.margin([*margin.selected, *found.selected], k=margin.k, **options)
    if not reaches(after.lower, goal):
        return None, False
    bought = Purchase(found.selected, found.cost, after.value, after.lower, str(after.status))
    return bought, found.status is PlanStatus.OPTIMAL


def _owning(problem: Problem, names: frozenset[str]) -> Problem:
    """The problem after these purchases; rules and tiers that they touch are left out."""
    from rrf_design.files import from_document, to_document

    if not names:
        return problem
    document = to_document(problem)
    for section in ("nodes", "relations", "anchors"):
        for entry in document.get(section, []):
            if entry["id"] in names:
                del entry["cost"]
    for section in ("rules", "tiers"):
        document[section] = [entry for entry in document.get(section, []) if not names.intersection(entry["blocks"])]
    return from_document(document)


def reaches(lower: float, goal: float | None) -> bool:
    """A proven margin is enough: at least the goal, or positive where none is named."""
    return lower > 0 if goal is None else lower >= goal


def _witness_by_witness(
    problem: Problem, margin: DesignMargin, goal: float | None, options: Mapping[str, Any]
) -> Purchase | None:
    """Buys what sees the current witness best per cost, again and again; then gives back what is not needed."""
    chosen: tuple[str, ...] = ()
    now = margin
    everything = problem.operator("all")
    while not reaches(now.lower, goal):
        owned = {*margin.selected, *chosen}
        if len(chosen) >= STEPS:
            return None
        offers = [
            (energy, with_needs(problem, name, owned))
            for name, energy in witness_energies(problem, now.witness, everything).items()
            if energy > 0 and name not in owned and not problem.block_by_id[name].owned
        ]
        if not offers:
            return None
        chosen += max(offers, key=lambda offer: offer[0] / max(price(problem, offer[1]), 1e-9))[1]
        now = problem.margin([*margin.selected, *chosen], k=margin.k, **options)
    for name in sorted(chosen, key=lambda n: -price(problem, (n,))):
        fewer = tuple(n for n in chosen if n != name)
        if name in {needed for n in fewer if n in problem.block_by_id for needed in with_needs(problem, n, set())}:
            continue
        after = problem.margin([*margin.selected, *fewer], k=margin.k, **options)
        if reaches(after.lower, goal):
            chosen, now = fewer, after
    return Purchase(problem.resolve(chosen), price(problem, chosen), now.value, now.lower, str(now.status))
