"""What to buy next: the witness rule, alone or steered by residuals, and schedules that are fixed beforehand.

Each purchase attacks the worst witness of the design *with everything already chosen in it*, so a batch never attacks
one witness twice. In model-agnostic mode only the operator decides; in model-adaptive mode, among supports that are
(nearly) equally bad, the one where the answers disagree most comes first, which is more efficient and introduces selection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rrf_design.acquisition.design import Bundle, Design
from rrf_design.acquisition.stopping import goal
from rrf_design.planning.costs import exact

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from rrf_design.planning import Plan

NEARLY = 1.05
"""Supports within this factor of the margin count as equally bad when residuals may steer."""
MOST_SUPPORTS = 64
"""So many of them are compared by their residuals."""
BLIND = 1e-18
"""‖C h‖² below this sees nothing of a unit witness."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """All purchases of one item in order, fixed before any answer is seen."""

    names: tuple[str, ...]
    bound: float | None = None
    """No design that the money allows has a margin above this: the planner's proof, where there is one."""


def best_bundle(
    design: Design,
    held: Collection[str],
    failed: Collection[str],
    *,
    most: Fraction | None,
    answers: Mapping[str, tuple[float, ...]] | None = None,
    values: Mapping[str, tuple[float, ...]] | None = None,
) -> Bundle | None:
    """The affordable bundle with the largest ‖C h‖²/cost; None when none sees the witness (then none can help).

    `answers` and `values` let residuals steer; without them the choice depends on the operator alone.
    """
    present = design.margin(held, failed)
    witness = present.witness
    if answers is not None:
        witness = _steered(design, held, failed, answers, values or {}) or witness
    energy = design.energies(witness)
    rated = []
    for bundle in design.candidates(held, failed, most=most):
        sees = sum(energy[block] for block in design.wakes(bundle.names, held))
        if sees > BLIND:
            rated.append(Bundle(bundle.names, bundle.price, sees))
    rated.sort(key=lambda b: -_score(b.sees, b.price))
    for bundle in rated:
        # New nodes can lower the margin (it is monotone in blocks only); such a purchase would undo itself.
        opens = any(name in design.problem.node_by_id for name in bundle.names)
        if not opens or design.margin({*held, *bundle.names}, failed).upper >= present.lower:
            return bundle
    return None


def _score(sees: float, price: Fraction) -> float:
    """‖C h‖² per cost, rounded so that a tie is a tie on every machine and the order in the file decides."""
    return float(f"{sees / float(price):.9g}") if price else np.inf


def greedy_schedule(design: Design, *, most: Fraction | None, held: Collection[str] = ()) -> tuple[str, ...]:
    """The witness rule played to its end without any answer; stops at the goal, at the budget, or when it is blind."""
    wanted = goal(design.problem)
    names: list[str] = list(held)
    spent = Fraction(0)
    while True:
        if wanted is not None and design.margin(names).lower >= wanted > 0:
            break
        bundle = best_bundle(design, names, (), most=None if most is None else most - spent)
        if bundle is None:
            break
        names.extend(bundle.names)
        spent += bundle.price
    return tuple(names[len(held) :])


def fixed_schedules(
    designs: Mapping[str, Design], *, budget: float | None, method: str, time_limit: float | None
) -> dict[str, Schedule]:
    """For every item, all purchases in order, decided before any answer is seen.

    With money or a goal the planner decides (for many items the portfolio planner, over all of them at once); without
    both, or with method="witness", the witness rule is played to its end.
    """
    goals = {item: goal(design.problem) for item, design in designs.items()}
    if method == "witness" or (budget is None and any(value is None for value in goals.values())):
        return _witness_schedules(designs, budget)
    if len(designs) == 1:
        item, design = next(iter(designs.items()))
        return {item: _planned(design, budget=budget, target=goals[item], method=method, time_limit=time_limit)}
    return _portfolio(designs, budget=budget, goals=goals, method=method, time_limit=time_limit)


def _witness_schedules(designs: Mapping[str, Design], budget: float | None) -> dict[str, Schedule]:
    """The worst item first: under one budget, money goes to the field with the smallest margin that it can still help."""
    if budget is None:
        return {item: Schedule(greedy_schedule(design, most=None)) for item, design in designs.items()}
    left = exact(budget)
    result: dict[str, list[str]] = {item: [] for item in designs}
    open_items = {item: design.margin(()).lower for item, design in designs.items()}
    while open_items:
        item = min(open_items, key=lambda name: open_items[name])
        design, names = designs[item], result[item]
        wanted = goal(design.problem)
        bundle = None
        if wanted is None or open_items[item] < wanted:
            bundle = best_bundle(design, names, (), most=left)
        if bundle is None:
            del open_items[item]
            continue
        names.extend(bundle.names)
        left -= bundle.price
        open_items[item] = design.margin(names).lower
    return {item: Schedule(tuple(names)) for item, names in result.items()}


def _planned(
    design: Design, *, budget: float | None, target: float | None, method: str, time_limit: float | None
) -> Schedule:
    from rrf_design.planning import plan

    found = plan(design.problem, budget=budget, target=target, method=method, time_limit=time_limit)
    return Schedule(_steps(design, found), found.upper_bound)


def _steps(design: Design, plan: Plan) -> tuple[str, ...]:
    """A plan's purchases in its own order, queries before the blocks that need them."""
    names = [name for step in plan.trajectory for name in (*step.opened, step.block)]
    rest = in_order(design, [name for name in plan.selected if name not in names], held=names)
    return tuple(dict.fromkeys((*names, *rest)))


def _portfolio(
    designs: Mapping[str, Design],
    *,
    budget: float | None,
    goals: Mapping[str, float | None],
    method: str,
    time_limit: float | None,
) -> dict[str, Schedule]:
    """Many items: without a common budget each is planned by itself, with one the portfolio planner spends it.

    When all items share a goal, as many as possible reach it; otherwise the smallest margin is made as large as possible.
    """
    if budget is None:
        return {
            item: _planned(design, budget=None, target=goals[item], method=method, time_limit=time_limit)
            for item, design in designs.items()
        }
    from rrf_design.planning import portfolio

    common = set(goals.values())
    target = common.pop() if len(common) == 1 else None
    found = portfolio(
        [design.problem for design in designs.values()],
        budget=budget,
        aim="smallest" if target is None else "count",
        target=target,
        time_limit=time_limit,
    )
    shares = zip(designs.items(), found.shares, strict=True)
    return {item: Schedule(in_order(design, share.selected)) for (item, design), share in shares}


def in_order(design: Design, selected: Collection[str], *, held: Collection[str] = ()) -> tuple[str, ...]:
    """A chosen set in the order of the witness rule, each with what it needs before it; what is blind comes last."""
    names: list[str] = list(held)
    left = [name for name in selected if name not in names]
    while left:
        energy = design.energies(design.margin(names).witness)
        closures = {name: design.closure(name, names) for name in left}
        score = {
            name: _score(sum(energy[b] for b in design.wakes(c, names)), design.price(c, names))
            for name, c in closures.items()
        }
        best = max(left, key=lambda name: score[name])
        names.extend(name for name in closures[best] if name not in names)
        left = [name for name in left if name not in names]
    return tuple(names[len(held) :])


def _steered(
    design: Design,
    held: Collection[str],
    failed: Collection[str],
    answers: Mapping[str, tuple[float, ...]],
    values: Mapping[str, tuple[float, ...]],
) -> Mapping[str, tuple[float, ...]] | None:
    """Among nearly worst supports, the witness of the one with the largest observed residual around it."""
    operator = design.margin(held, failed).operator
    if not set(operator.node_ids) <= set(answers) or len(operator.node_ids) < 2:
        return None
    energy = {b: e for b, e in _residual_energy(design, operator.block_ids, answers, values).items() if e > BLIND}
    if not energy:
        return None  # the answers agree wherever they can be compared: nothing to steer by
    equal = design.supports_below(held, failed, factor=NEARLY, most=MOST_SUPPORTS)
    touched = {
        block: {operator.node_index[name] for name in design.problem.block_by_id[block].nodes} for block in energy
    }

    def residual(support: Collection[int]) -> float:
        return sum(energy[block] for block, nodes in touched.items() if nodes.intersection(support))

    if not equal:
        return None
    chosen = max(equal, key=lambda entry: float(f"{residual(entry.support):.9g}"))
    return operator.unstack(np.asarray(chosen.direction), only=chosen.support)


def _residual_energy(
    design: Design,
    blocks: Collection[str],
    answers: Mapping[str, tuple[float, ...]],
    values: Mapping[str, tuple[float, ...]],
) -> dict[str, float]:
    """‖rows of the block · y − target‖² in whitened coordinates, for blocks whose target is known."""
    full = design.full
    zero = {name: (0.0,) * design.problem.node_by_id[name].dim for name in full.node_ids}
    stacked = full.stack({**zero, **{name: answers[name] for name in full.node_ids if name in answers}})
    result = {}
    known = realised_target(design, values)
    for block in blocks:
        j = full.block_index[block]
        rows = slice(int(full.block_offsets[j]), int(full.block_offsets[j + 1]))
        target = known.get(block, full.target[rows])
        if not np.isnan(target).any():
            part = full.rows_of(block) @ stacked - target
            result[block] = float(part @ part)
    return result


def realised_target(design: Design, values: Mapping[str, tuple[float, ...]]) -> dict[str, np.ndarray]:
    """Whitened targets of anchors whose value came from a source during the run."""
    from rrf_design.rows import whitener

    result = {}
    for name, value in values.items():
        block = design.problem.block_by_id[name]
        target = np.asarray(value, dtype=np.float64)
        white = whitener(design.problem, block, len(target))
        scale = np.sqrt(block.weight / design.problem.family_size[block.family_name])
        result[name] = scale * (target if white is None else white @ target)
    return result
