"""Discrete repair: the candidate field of least energy; whole answers are chosen, never averaged.

Exact by enumeration (small products), by dynamic programming along an elimination order (low treewidth), or by CP-SAT;
min-sum message passing is a heuristic and labelled so. "auto" takes the first exact one that fits.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from rrf_design.errors import InputError
from rrf_design.repairing.contract import Array, Decoder, DecoderOutcome, Task
from rrf_design.repairing.energy import Energy, Factor, build_energy, whiten

SMALL_PRODUCT = 20_000
SMALL_TABLE = 1_000_000
SOLVERS = ("auto", "enumeration", "dynamic programming", "cp-sat", "min-sum")


class Discrete(Decoder):
    """Whole answers chosen among candidates; see `rrf_design.repairing.energy`."""

    name = "discrete"
    options = ("solver", "beta", "mu", "deviation", "depth", "most_candidates")

    def __init__(self, solver: str = "auto") -> None:
        self.solver = solver

    def decode(self, task: Task) -> DecoderOutcome:
        energy = build_energy(task)
        solver = str(task.options.get("solver", self.solver))
        if solver not in SOLVERS:
            raise InputError(f"unknown discrete solver {solver!r}; known: {', '.join(SOLVERS)}")
        if solver == "auto":
            solver = _fitting(energy)
        gap: float | None = 0.0
        complete, ties = True, 1
        if solver == "enumeration":
            choice, ties = enumerate_fields(energy)
        elif solver == "dynamic programming":
            choice = eliminate(energy)
        elif solver == "min-sum":
            choice, gap = min_sum(energy), None
        else:
            from rrf_design.repairing.cpsat import solve

            solved = solve(energy, time_limit=task.time_limit, seed=task.seed)
            choice, gap, complete = solved.choice, solved.gap, solved.complete
        return _outcome(task, energy, choice, solver, gap=gap, complete=complete, ties=ties)


def _outcome(
    task: Task, energy: Energy, choice: tuple[int, ...], solver: str, *, gap: float | None, complete: bool, ties: int
) -> DecoderOutcome:
    operator = task.operator
    error = np.zeros(operator.shape[1])
    for i, pick in enumerate(choice):
        name = operator.node_ids[i]
        value = energy.candidates[i][pick]
        if value != task.values.get(name):
            error[operator.groups[i]] = task.response[operator.groups[i]] - whiten(task, i, value)
    notes = []
    if energy.truncated:
        notes.append(f"candidates of {', '.join(energy.truncated)} were cut at the cap; raise most_candidates")
    if ties > 1:
        notes.append(f"{ties} candidate fields have this least energy; the first was taken")
    return DecoderOutcome(
        error=error,
        method=f"discrete, {solver}",
        heuristic=solver == "min-sum",
        complete=complete,
        gap=gap,
        objective=energy.value(choice),
        notes=tuple(notes),
        details={
            "candidates": dict(zip(operator.node_ids, energy.candidates, strict=True)),
            "candidate_counts": dict(zip(operator.node_ids, energy.sizes, strict=True)),
            "ties": ties,
        },
    )


def _fitting(energy: Energy) -> str:
    if prod(energy.sizes) <= SMALL_PRODUCT:
        return "enumeration"
    return "dynamic programming" if _largest_table(energy) <= SMALL_TABLE else "cp-sat"


def enumerate_fields(energy: Energy) -> tuple[tuple[int, ...], int]:
    """Every candidate field; the first of least energy, and how many share it."""
    if prod(energy.sizes) > 50 * SMALL_PRODUCT:
        raise InputError(f"{prod(energy.sizes)} candidate fields are too many to enumerate; use another solver")
    best, choice, ties = np.inf, (0,) * len(energy.sizes), 0
    for fields in product(*(range(size) for size in energy.sizes)):
        value = energy.value(fields)
        slack = 1e-12 * max(1.0, abs(best)) if np.isfinite(best) else 0.0
        if value < best - slack:
            best, choice, ties = value, fields, 1
        elif value <= best + slack:
            ties += 1
    return choice, ties


def elimination_order(energy: Energy) -> tuple[list[int], int]:
    """Greedy order (smallest joint table first) and the size of its largest table."""
    near: list[set[int]] = [set() for _ in energy.sizes]
    for factor in energy.factors:
        for i in factor.nodes:
            near[i].update(factor.nodes)
            near[i].discard(i)

    def cost(i: int) -> int:
        return energy.sizes[i] * prod(energy.sizes[j] for j in near[i])

    costs = {i: cost(i) for i in range(len(energy.sizes))}
    order, largest = [], 1
    while costs:
        node = min(costs, key=costs.__getitem__)
        largest = max(largest, costs.pop(node))
        order.append(node)
        for i in near[node]:
            near[i] |= near[node]
            near[i] -= {i, node}
            costs[i] = cost(i)
    return order, largest


def _largest_table(energy: Energy) -> int:
    return elimination_order(energy)[1]


def eliminate(energy: Energy) -> tuple[int, ...]:
    """Bucket elimination: minimise one node away at a time, then read the choices back."""
    order, largest = elimination_order(energy)
    if largest > 20 * SMALL_TABLE:
        raise InputError(f"dynamic programming would need a table of {largest} entries; use cp-sat")
    factors = list(energy.factors)
    decisions: list[tuple[int, tuple[int, ...], Array]] = []
    for node in order:
        bucket = [factor for factor in factors if node in factor.nodes]
        factors = [factor for factor in factors if node not in factor.nodes]
        others = tuple(sorted({i for factor in bucket for i in factor.nodes} - {node}))
        table = np.zeros((*(energy.sizes[i] for i in others), energy.sizes[node]))
        for factor in bucket:
            table = table + _aligned(factor, (*others, node))
        decisions.append((node, others, np.argmin(table, axis=-1)))
        factors.append(Factor(others, table.min(axis=-1)))
    choice = [0] * len(energy.sizes)
    for node, others, table in reversed(decisions):
        choice[node] = int(table[tuple(choice[i] for i in others)])
    return tuple(choice)


def _aligned(factor: Factor, nodes: tuple[int, ...]) -> Array:
    """The factor's table with one axis per node of `nodes`, length one where it does not depend on it."""
    order = [factor.nodes.index(i) for i in nodes if i in factor.nodes]
    table = np.transpose(factor.table, order)
    shape = iter(table.shape)
    return table.reshape([next(shape) if i in factor.nodes else 1 for i in nodes])


def min_sum(energy: Energy, *, rounds: int = 60, damping: float = 0.5) -> tuple[int, ...]:
    """Damped min-sum on the factor graph, then the best choice seen; exact on trees, a heuristic otherwise."""
    incoming = {(f, i): np.zeros(energy.sizes[i]) for f, factor in enumerate(energy.factors) for i in factor.nodes}
    best: tuple[float, tuple[int, ...]] = (np.inf, (0,) * len(energy.sizes))
    for _ in range(rounds):
        beliefs = [np.zeros(size) for size in energy.sizes]
        for (_, i), message in incoming.items():
            beliefs[i] = beliefs[i] + message
        choice = tuple(int(np.argmin(belief)) for belief in beliefs)
        value = energy.value(choice)
        if value < best[0]:
            best = (value, choice)
        change = 0.0
        for f, factor in enumerate(energy.factors):
            outgoing = {i: beliefs[i] - incoming[f, i] for i in factor.nodes}
            total = factor.table
            for axis, i in enumerate(factor.nodes):
                place = [1] * len(factor.nodes)
                place[axis] = -1
                total = total + outgoing[i].reshape(place)
            for axis, i in enumerate(factor.nodes):
                rest = tuple(a for a in range(len(factor.nodes)) if a != axis)
                message = total.min(axis=rest) - outgoing[i]
                message = damping * incoming[f, i] + (1 - damping) * (message - message.min())
                change = max(change, float(np.abs(message - incoming[f, i]).max()))
                incoming[f, i] = message
        if change <= 1e-12 * max(1.0, abs(best[0])):
            break
    return best[1]
