"""How an empty field begins, and the problem that is left once things were bought and others failed.

The witness rule needs a witness, and a field without answers has none. So the first questions are those of the cheapest
design that reaches the goal, or has any margin at all; the planner finds it on the problem that is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from rrf_design.acquisition.choosing import best_bundle, present_margin
from rrf_design.acquisition.shop import Bundle, Shop
from rrf_design.derive import owning, realised
from rrf_design.design import standing_of
from rrf_design.errors import BudgetError, InputError
from rrf_design.goal import POSITIVE, Goal
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.planning import Plan


def what_is_left(problem: Problem, held: Collection[str], failed: Collection[str]) -> Problem | None:
    """The problem from here on: what is held is owned, what failed is gone; None when no question is left."""
    if all(node.id in failed for node in problem.nodes):
        return None
    try:
        return owning(realised(problem, failed=failed, values={}), held)
    except InputError:  # what is left is no problem by itself
        return None


def first_bundle(
    design: Shop, held: Collection[str], failed: Collection[str], *, most: Fraction | None
) -> Bundle | None:
    """What an empty field buys first: the cheapest design that reaches the goal, else any margin, else what money can do."""
    from rrf_design.planning import PlanStatus

    problem = what_is_left(design.problem, held, failed)
    if problem is None:
        return None
    for wish in (Goal.of(problem), Goal(POSITIVE)):
        found = _plan(problem, budget=most, wish=wish) if wish.named else None
        if found is not None and found.status is not PlanStatus.INFEASIBLE:
            return _bundle(design, found, held)
    found = None if most is None else _plan(problem, budget=most, wish=Goal())
    return None if found is None or not found.selected else _bundle(design, found, held)


def next_bundle(
    design: Shop,
    held: Collection[str],
    failed: Collection[str],
    *,
    most: Fraction | None,
    answers: Mapping[str, tuple[float, ...]] | None = None,
    values: Mapping[str, tuple[float, ...]] | None = None,
) -> Bundle | None:
    """The best affordable purchase: against the worst witness, or the first questions where there is none."""
    if present_margin(design, held, failed) is None:
        return first_bundle(design, held, failed, most=most)
    return best_bundle(design, held, failed, most=most, answers=answers, values=values)


def cost_of_goal(design: Shop, held: Collection[str], failed: Collection[str]) -> Fraction | None:
    """What the witness rule would spend from here to the goal (without one: to any margin); None if it gets nowhere.

    Zero where the field is there already.
    """
    names, total = set(held), Fraction(0)
    while True:
        margin = present_margin(design, names, failed)
        if margin is not None and standing_of(design.problem, margin).reached:
            return total
        bundle = next_bundle(design, names, failed, most=None)
        if bundle is None:
            return None
        names.update(bundle.names)
        total += bundle.price


def direct_checks(
    design: Shop, held: Collection[str], failed: Collection[str], *, most: Fraction | None
) -> tuple[str, ...]:
    """Checks on sale that state the value of a question whose answer could not be read, the cheapest of each.

    Their rows compare no answer, so they raise no margin; but they say what the answer would have been. Where the
    problem names what is delivered, only that is worth it.
    """
    problem = design.problem
    wanted = getattr(problem, "deliver", None) or [node.id for node in problem.nodes]
    names: list[str] = []
    for node in (name for name in wanted if name in failed):
        direct = [a for a in problem.anchors if a.rows is None and a.nodes == (node,) and a.id not in failed]
        if any(anchor.owned or anchor.id in held for anchor in direct):
            continue
        for anchor in sorted(direct, key=lambda a: design.price([a.id], [*held, *names])):
            price = design.price([*names, anchor.id], held)
            if design.closure(anchor.id, [*held, *names, node]) == (anchor.id,) and (most is None or price <= most):
                names.append(anchor.id)
                break
    return tuple(names)


def _plan(problem: Problem, *, budget: Fraction | None, wish: Goal) -> Plan | None:
    """A greedy plan within the money for a wish, or for the largest margin where there is none."""
    from rrf_design.planning import plan

    money = None if budget is None else float(budget)
    # a run asks once: no goal may rest on repeats
    nodes = tuple(node if node.again is None else node.model_copy(update={"again": None}) for node in problem.nodes)
    asked = problem.model_copy(update={"budget": money, "target": wish.target, "delta": wish.delta, "nodes": nodes})
    try:
        return plan(asked, method="greedy")
    except (BudgetError, InputError):  # too little money for any question, or rules that what is left can't keep
        return None


def _bundle(design: Shop, found: Plan, held: Collection[str]) -> Bundle | None:
    names = [name for step in found.trajectory for name in (*step.opened, step.block)]
    names = list(dict.fromkeys([*names, *found.selected]))
    nodes = [name for name in names if name in design.problem.node_by_id]
    ordered = (*nodes, *(name for name in names if name not in nodes))
    return Bundle(ordered, design.price(ordered, held), 1.0) if ordered else None
