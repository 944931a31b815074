"""From a chosen design to a plan: the exact margin, the order of purchases, the bound, and what a
user should know.

What a plan says about its design is computed here by the exact engine, whatever the planner
believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rrf_design.derive import shared_words
from rrf_design.errors import BudgetError, InputError
from rrf_design.goal import reaches
from rrf_design.market import Mask, exact
from rrf_design.planning._greedy import Pick, witness_greedy
from rrf_design.planning.contract import OPTIMALITY, Objective, Order, Plan, PlanStatus, Step
from rrf_design.planning.proof.bounds import bound_from_cuts
from rrf_design.planning.proof.master import Answer, OrTools
from rrf_design.planning.proof.program import MarketRows

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.goal import Standing
    from rrf_design.planning.evaluator import Evaluator

ZERO = 1e-10  # the paper's numerical zero, absolute and relative
ORDERED = 16  # null directions looked at when a large design is put into an order: it has been chosen already
SHOWN = 4  # notes name at most so many blocks


def starting_design(evaluator: Evaluator, goal: Order) -> Mask:
    """The cheapest design that the rules admit: empty, unless something must be bought before
    anything else.

    InputError when the rules contradict each other, BudgetError when what they demand costs more
    than may be spent.
    """
    market = evaluator.market
    mask = market.empty()
    if not market.broken(mask) and not market.opens_nothing:
        return mask
    solved = OrTools().solve(
        MarketRows(evaluator).program(target=None, budget=None, minimise=True), time_limit=None, seed=0
    )
    if solved.answer is Answer.INFEASIBLE:
        raise InputError(f"rules: no design satisfies them all ({market.broken(mask)}); relax a rule or an exclusion")
    assert solved.values is not None
    mask = market.close(solved.values[: len(market.items)])
    needed = market.cost(mask)
    if goal.budget is not None and needed > exact(goal.budget):
        why = market.broken(market.empty()) or "a query must be asked before there is anything to observe"
        raise BudgetError(
            f"budget: {float(goal.budget):g} is too little; the least that must be bought costs {float(needed):g}"
            f" ({why})",
            needed=float(needed),
            available=float(goal.budget),
        )
    return mask


def trajectory(evaluator: Evaluator, mask: Mask, start: Mask) -> list[Pick]:
    """A design as a sequence of purchases: the witness greedy over its own blocks, then whatever no
    witness asked for.
    """
    from rrf_design.planning._greedy import Tracked, local_to_blocks

    if local_to_blocks(evaluator):
        steps = Tracked(evaluator, Order(), start & mask, allowed=mask, null=ORDERED).run()
    else:
        steps = witness_greedy(evaluator, Order(), start=start & mask, allowed=mask)
    reached = steps[-1].after if steps else start & mask
    witness = steps[-1].witness if steps else None
    for item in np.flatnonzero(mask & ~reached):
        if not reached[item]:
            before, reached = reached, evaluator.market.add(reached, int(item))
            steps.append(Pick(int(item), before, reached, witness, 0.0, evaluator.value(reached)))
    return steps


def finish(
    evaluator: Evaluator,
    mask: Mask,
    goal: Order,
    *,
    method: str,
    start: Mask,
    steps: Sequence[Pick] | None = None,
    upper: float | None = None,
    cost_bound: Fraction | None = None,
    infeasible: bool = False,
    gap: float = OPTIMALITY,
    notes: Sequence[str] = (),
) -> Plan:
    """The plan for a chosen design.

    Without `upper` the bound comes from the witnesses seen on the way.
    """
    from rrf_design.files import digest

    market = evaluator.market
    confirmed = evaluator.confirm(mask, n_jobs=goal.n_jobs)
    value = evaluator.confirm_value(mask, confirmed, n_jobs=goal.n_jobs)
    if upper is None:
        upper = bound_from_cuts(evaluator, goal.budget)
    if value == 0.0 and upper <= ZERO * max(1.0, evaluator.scale):
        upper = 0.0
    upper = max(upper, value)
    cost = market.cost(mask)
    reached = goal.target is None or reaches(value, goal.target)
    if goal.target is None:
        distance = (upper - value) / upper if upper > 0 else 0.0
        status = PlanStatus.OPTIMAL if distance <= gap else PlanStatus.FEASIBLE
    else:
        least = cost if cost == 0 else cost_bound or Fraction(0)
        distance = float((cost - least) / cost) if cost > 0 else 0.0
        status = PlanStatus.OPTIMAL if reached and least >= cost else PlanStatus.FEASIBLE
        if not reached:
            distance = (upper - value) / upper if upper > 0 else 0.0
        if infeasible or (not reached and not reaches(upper, goal.target)):
            status = PlanStatus.INFEASIBLE
        cost_bound = least if reached else cost_bound
    order = trajectory(evaluator, mask, start) if steps is None else steps
    plan = Plan(
        selected=market.names(mask),
        cost=float(cost),
        gamma=confirmed.value,
        upper_bound=upper,
        gap=distance,
        status=status,
        trajectory=_opening(evaluator, start & mask) + tuple(_step(evaluator, purchase) for purchase in order),
        value=value,
        objective=evaluator.objective,
        k=evaluator.k,
        method=method,
        budget=goal.budget,
        target=goal.target,
        cost_bound=None if cost_bound is None else float(cost_bound),
        gamma_lower=confirmed.lower,
        gamma_upper=confirmed.upper,
        support=confirmed.support,
        witness=confirmed.witness,
        notes=(*notes, *_notes(evaluator, goal, mask, confirmed, status, reached)),
        problem=evaluator.original.name,
        digest=digest(evaluator.original),
        owned_gamma=evaluator.value(market.empty()),
    )
    return plan.with_standing(_standing(evaluator, mask, confirmed))


def _standing(evaluator: Evaluator, mask: Mask, confirmed: DesignMargin) -> Standing:
    """The design held against the problem's own goal, in the problem's own units of noise whatever
    was maximised.
    """
    design = evaluator.design(mask)
    if evaluator.original is not evaluator.problem:
        design = design.of(evaluator.original.structure)
        confirmed = design.margin(evaluator.k)
    return design.standing(evaluator.original, margin=confirmed)


def _opening(evaluator: Evaluator, start: Mask) -> tuple[Step, ...]:
    """What rules demand before any witness has a say, one entry per block with the queries it
    opens.
    """
    market = evaluator.market
    mask, steps = market.empty(), []
    for item in [*np.flatnonzero(start)[::-1]]:  # blocks come after queries in the order of items: let them open those
        if not mask[item]:
            before, mask = mask, market.add(mask, int(item))
            steps.append(_step(evaluator, Pick(int(item), before, mask, None, 0.0, evaluator.value(mask))))
    return tuple(steps)


def _step(evaluator: Evaluator, purchase: Pick) -> Step:
    market = evaluator.market
    added = purchase.after & ~purchase.before
    added[purchase.item] = False
    witness = {} if purchase.witness is None else evaluator.witness_names(purchase.witness)
    witness = {name: part for name, part in witness.items() if any(part)}
    return Step(
        block=market.items[purchase.item],
        cost=float(market.cost(purchase.after) - market.cost(purchase.before)),
        gamma=purchase.value,
        support=tuple(witness),
        witness=witness,
        energy=purchase.energy,
        opened=market.names(added),
    )


def _notes(
    evaluator: Evaluator, goal: Order, mask: Mask, confirmed: DesignMargin, status: PlanStatus, reached: bool
) -> list[str]:
    """What a user would ask next about this plan."""
    market = evaluator.market
    notes = []
    if not len(market.items):
        notes.append("nothing is on sale: give a block or a query a cost to make it a candidate")
    elif goal.budget is not None and not mask.any():
        dear = min(float(market.cost(market.add(market.empty(), i))) for i in range(len(market.items)))
        if dear > goal.budget:
            notes.append(f"the budget of {goal.budget:g} buys nothing: the cheapest purchase costs {dear:g}")
    blind = [
        name
        for i, name in enumerate(market.items)
        if i >= market.node_items and not market.banned[i] and _blind(evaluator, i)
    ]
    if blind:
        notes.append(f"can't help, because all their rows are zero: {_some(blind)}")
    if market.banned.any():
        notes.append(f"can't be bought beside what they exclude: {_some(market.names(market.banned))}")
    if confirmed.value == 0.0 and len(market.items) and not evaluator.market.node_items and evaluator.plain:
        everything = evaluator.evaluate(np.ones(len(market.items), dtype=bool), count=1)
        if everything.value == 0.0 and everything.witnesses:
            nodes = [evaluator.operator.node_ids[i] for i in everything.witnesses[0].support]
            notes.append(
                f"even with everything bought, an error on {_some(nodes)} stays invisible: nothing on sale sees it"
            )
    if evaluator.objective is not Objective.GAMMA:
        shared = shared_words(evaluator.original, evaluator.operator.block_ids, verb="plan").removesuffix(".")
        notes += [shared] if shared else []
    if not reached and status is PlanStatus.FEASIBLE:
        notes.append("the target is missed by this plan; whether another design reaches it was not decided")
    return notes


def _blind(evaluator: Evaluator, item: int) -> bool:
    a, b = evaluator.operator.block_offsets[evaluator.item_block[item] : evaluator.item_block[item] + 2]
    return int(evaluator.operator.matrix.indptr[b] - evaluator.operator.matrix.indptr[a]) == 0


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(names[:SHOWN])
    return f"{listed} and {len(names) - SHOWN} more" if len(names) > SHOWN else listed
