"""How an empty field begins, and the problem that is left once things were bought and others failed.

The witness rule needs a witness, and a field without answers has none. So the first questions are those of the cheapest
design that reaches the goal, or has any margin at all; the planner finds it on the problem that is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from rrf_design.acquisition.asking import weighed
from rrf_design.acquisition.choosing import best_bundle, present_margin
from rrf_design.acquisition.shop import Bundle, Shop
from rrf_design.decisive import decisive_checks
from rrf_design.derive import owning, realised
from rrf_design.errors import BudgetError, InputError
from rrf_design.goal import POSITIVE, Goal, reaches
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.planning import Plan

LOOKED_AT = 100
"""So many sets of purchases are looked at on the way to a goal."""


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

    problem = what_is_left(design.asked(held, failed), held, failed)
    if problem is None:
        return None
    for wish in (Goal.of(problem), Goal(POSITIVE)):
        found = _plan(problem, budget=most, wish=wish) if wish.named else None
        if found is not None and found.status is not PlanStatus.INFEASIBLE:
            return _bundle(design, found, held, problem)
    found = None if most is None else _plan(problem, budget=most, wish=Goal())
    return None if found is None or not found.selected else _bundle(design, found, held, problem)


def next_bundle(
    design: Shop,
    held: Collection[str],
    failed: Collection[str],
    *,
    most: Fraction | None,
    answers: Mapping[str, tuple[float, ...]] | None = None,
    values: Mapping[str, tuple[float, ...]] | None = None,
) -> Bundle | None:
    """The best affordable purchase: against the worst witness, or asking again, or the first questions where there is no witness.

    Where answers could not be read, or no purchase alone helps, the cheapest few that reach the goal together.
    """
    if present_margin(design, held, failed) is None:
        found = first_bundle(design, held, failed, most=most)
        return reaching_bundle(design, held, failed, most=most) if found is None else found
    unread = not design.opened(held).isdisjoint(failed)
    found = reaching_bundle(design, held, failed, most=most) if unread else None
    if found is None:
        found = best_bundle(design, held, failed, most=most, answers=answers, values=values)
        found = weighed(design, held, failed, found, most=most) if design.asks else found
    return reaching_bundle(design, held, failed, most=most) if found is None and not unread else found


def reaching_bundle(
    design: Shop, held: Collection[str], failed: Collection[str], *, most: Fraction | None
) -> Bundle | None:
    """The cheapest set of purchases that reaches the goal, or the cheapest among the `LOOKED_AT` that were looked at.

    A question with one row may lower the margin that two rows would raise, and what could not be read may have to be related to
    something before a check of it helps: there the witness rule sees no single purchase, or a dearer one. Its own way comes first, then
    single purchases, then sets in the order of their price, for as long as they are cheaper than the best.
    """
    if not Goal.of(design.problem).named or not _may_reach(design, held, failed, most):
        return None
    best = _witnessed(design, held, failed, most=most)
    queue: list[tuple[Fraction, int, tuple[str, ...]]] = [(Fraction(0), 0, ())]
    seen: set[frozenset[str]] = {frozenset()}
    while queue and len(seen) <= LOOKED_AT:
        price, _, names = heappop(queue)
        if best is not None and price >= best.price:
            break
        left = most if best is None else best.price
        for bundle in design.candidates({*held, *names}, failed, most=None if left is None else left - price):
            found = Bundle((*names, *bundle.names), price + bundle.price, 1.0)
            if frozenset(found.names) in seen or (best is not None and found.price >= best.price):
                continue
            seen.add(frozenset(found.names))
            if reached(design, {*held, *found.names}, failed):
                best = found
            else:
                heappush(queue, (found.price, len(seen), found.names))
    return best


def _witnessed(design: Shop, held: Collection[str], failed: Collection[str], *, most: Fraction | None) -> Bundle | None:
    """The witness rule's own way to the goal, in one bundle; None where it gets stuck before."""
    names: list[str] = []
    left = most
    while bundle := best_bundle(design, {*held, *names}, failed, most=left):
        names.extend(bundle.names)
        left = None if left is None else left - bundle.price
        if reached(design, {*held, *names}, failed):
            return Bundle(tuple(names), design.price(names, held), 1.0)
    return None


def _may_reach(design: Shop, held: Collection[str], failed: Collection[str], most: Fraction | None) -> bool:
    """Whether no bound speaks against it: everything affordable together leaves the present questions a margin that would do."""
    if present_margin(design, held, failed) is None:
        return True
    ceiling = design.ceiling(held, failed, design.candidates(held, failed, most=most))
    return ceiling > 0.0 and reaches(ceiling, Goal.of(design.problem).target)


def reached(design: Shop, held: Collection[str], failed: Collection[str]) -> bool:
    """Whether a field reaches its goal, or any margin where it has none; an empty one does not."""
    return present_margin(design, held, failed) is not None and design.standing(held, failed).reached


def cost_of_goal(design: Shop, held: Collection[str], failed: Collection[str]) -> Fraction | None:
    """What the witness rule would spend from here to the goal (without one: to any margin); None if it gets nowhere.

    Zero where the field is there already.
    """
    names, total = set(held), Fraction(0)
    while True:
        if reached(design, names, failed):
            return total
        bundle = next_bundle(design, names, failed, most=None)
        if bundle is None:
            return None
        names.update(bundle.names)
        total += bundle.price


def deciding_check(
    design: Shop, held: Collection[str], failed: Collection[str], *, most: Fraction | None
) -> tuple[str, ...]:
    """The check that decides a field none of whose answers could be read; nothing where there is none, or it was made.

    Without an answer there is no margin and nothing to repair, but where one value is all that is delivered, a trusted check of it
    is that value.
    """
    for anchor in decisive_checks(design.problem, without={*held, *failed}):
        names = design.closure(anchor.id, held)
        if names == (anchor.id,) and (most is None or design.price(names, held) <= most):
            return names
    return ()


def _plan(problem: Problem, *, budget: Fraction | None, wish: Goal) -> Plan | None:
    """A greedy plan within the money for a wish, or for the largest margin where there is none."""
    from rrf_design.planning import plan

    money = None if budget is None else float(budget)
    asked = problem.model_copy(update={"budget": money, "target": wish.target, "delta": wish.delta})
    try:
        return plan(asked, method="greedy")
    except (BudgetError, InputError):  # too little money for any question, or rules that what is left can't keep
        return None


def _bundle(design: Shop, found: Plan, held: Collection[str], planned: Problem) -> Bundle | None:
    names = [name for step in found.trajectory for name in (*step.opened, step.block)]
    names = list(dict.fromkeys([*names, *found.selected]))
    nodes = [name for name in names if name in design.problem.node_by_id]
    more = {node: times - planned.node_by_id[node].repeats for node, times in found.repeats.items()}
    ordered = (*nodes, *(name for name in names if name not in nodes), *design.asks_for(more, held))
    return Bundle(ordered, design.price(ordered, held), 1.0) if ordered else None
