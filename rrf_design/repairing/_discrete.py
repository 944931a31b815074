"""Discrete repair: the candidate field of least energy ½‖Dz − q‖² + β/2 ‖Az − b‖² + μ Σ ℓᵢ(zᵢ; yᵢ);
whole answers are chosen, never averaged.

Candidates are what the model said (responses and samples) and what that becomes along relations;
nothing else is ever put in, and in particular no anchor's value, because that would inject an
oracle. Each row block is one table over the candidates of its nodes, each node one table for the
deviation from its response.

Exact by enumeration (small products), by dynamic programming along an elimination order (low
treewidth), or by CP-SAT; min-sum message passing is a heuristic and labelled so. "auto" takes the
first exact one that fits.

For CP-SAT there is one Boolean per candidate and one per joint entry of a table, tied by marginals.
It minimises integers, so costs are scaled and rounded: a field's rounded energy is off by at most
half a unit per table. The winner is evaluated again exactly, and the gap is that value minus the
solver's bound less this rounding, so it is a bound on the true energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from rrf_design.blocks import Relation
from rrf_design.errors import InputError, RetryLater
from rrf_design.repairing.contract import SAME, Array, Decoder, DecoderOutcome, Task, Values
from rrf_design.rows import block_rows, block_target

INVERTIBLE = 1e8
"""Transports with a larger condition number are not inverted: the answer would be mostly
rounding.
"""
SMALL_PRODUCT = 20_000
SMALL_TABLE = 1_000_000
SOLVERS = ("auto", "enumeration", "dynamic programming", "cp-sat", "min-sum")


class Discrete(Decoder):
    """Whole answers chosen among candidates; see `rrf_design.repairing._discrete`."""

    name = "discrete"
    options = ("solver", "beta", "mu", "deviation", "depth", "most_candidates")

    def __init__(self, solver: str = "auto") -> None:
        self.solver = solver

    def decode(self, task: Task) -> DecoderOutcome:
        energy = _build_energy(task)
        solver = str(task.work.options.get("solver", self.solver))
        if solver not in SOLVERS:
            raise InputError(f"unknown discrete solver {solver!r}; known: {', '.join(SOLVERS)}")
        if solver == "auto":
            solver = _fitting(energy)
        gap: float | None = 0.0
        complete, ties = True, 1
        if solver == "enumeration":
            choice, ties = _enumerate_fields(energy)
        elif solver == "dynamic programming":
            choice = _eliminate(energy)
        elif solver == "min-sum":
            choice, gap = _min_sum(energy), None
        else:
            solved = solve(energy, time_limit=task.work.time_limit, seed=task.work.seed)
            choice, gap, complete = solved.choice, solved.gap, solved.complete
        return _outcome(task, energy, choice, solver, gap=gap, complete=complete, ties=ties)


def _outcome(
    task: Task, energy: _Energy, choice: tuple[int, ...], solver: str, *, gap: float | None, complete: bool, ties: int
) -> DecoderOutcome:
    operator = task.operator
    error = np.zeros(operator.shape[1])
    for i, pick in enumerate(choice):
        name = operator.node_ids[i]
        value = energy.candidates[i][pick]
        if value != task.values.get(name):
            error[operator.groups[i]] = task.response[operator.groups[i]] - _whiten(task, i, value)
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


def _fitting(energy: _Energy) -> str:
    if prod(energy.sizes) <= SMALL_PRODUCT:
        return "enumeration"
    return "dynamic programming" if _elimination_order(energy)[1] <= SMALL_TABLE else "cp-sat"


def _enumerate_fields(energy: _Energy) -> tuple[tuple[int, ...], int]:
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


def _elimination_order(energy: _Energy) -> tuple[list[int], int]:
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


def _eliminate(energy: _Energy) -> tuple[int, ...]:
    """Bucket elimination: minimise one node away at a time, then read the choices back."""
    order, largest = _elimination_order(energy)
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
        factors.append(_Factor(others, table.min(axis=-1)))
    choice = [0] * len(energy.sizes)
    for node, others, table in reversed(decisions):
        choice[node] = int(table[tuple(choice[i] for i in others)])
    return tuple(choice)


def _aligned(factor: _Factor, nodes: tuple[int, ...]) -> Array:
    """The factor's table with one axis per node of `nodes`, length one where it does not depend on
    it.
    """
    order = [factor.nodes.index(i) for i in nodes if i in factor.nodes]
    table = np.transpose(factor.table, order)
    shape = iter(table.shape)
    return table.reshape([next(shape) if i in factor.nodes else 1 for i in nodes])


def _min_sum(energy: _Energy) -> tuple[int, ...]:
    """Damped min-sum on the factor graph, then the best choice seen; exact on trees, a heuristic
    otherwise.
    """
    incoming = {(f, i): np.zeros(energy.sizes[i]) for f, factor in enumerate(energy.factors) for i in factor.nodes}
    best: tuple[float, tuple[int, ...]] = (np.inf, (0,) * len(energy.sizes))
    for _ in range(60):
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
                message = 0.5 * (incoming[f, i] + (message - message.min()))
                change = max(change, float(np.abs(message - incoming[f, i]).max()))
                incoming[f, i] = message
        if change <= 1e-12 * max(1.0, abs(best[0])):
            break
    return best[1]


MOST_CANDIDATES = 64
LARGEST_TABLE = 2_000_000
MOST_COMBINATIONS = 20_000
"""Of answers that a relation among several nodes is solved with, at a time."""


@dataclass(frozen=True, slots=True)
class _Factor:
    """Cost of the joint choice of some nodes: axes of `table` follow `nodes`."""

    nodes: tuple[int, ...]
    table: Array


@dataclass(frozen=True, slots=True)
class _Energy:
    """All tables of one field, over the candidates of every node."""

    candidates: tuple[tuple[Values, ...], ...]  # by node index, the response first where there is one
    factors: tuple[_Factor, ...]
    truncated: tuple[str, ...]
    """Nodes whose closure was cut at the cap: the truth may have been cut off with it."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(part) for part in self.candidates)

    def value(self, choice: tuple[int, ...]) -> float:
        """The energy of one choice per node, added up exactly as it is defined."""
        return float(sum(factor.table[tuple(choice[i] for i in factor.nodes)] for factor in self.factors))


def _build_energy(task: Task) -> _Energy:
    """Close the candidates under transport and tabulate the energy.

    Options: beta, mu, depth, most_candidates, deviation.
    """
    candidates, truncated = _close(task)
    empty = [task.operator.node_ids[i] for i, part in enumerate(candidates) if not part]
    if empty:
        raise InputError(
            f"node {empty[0]!r} has no candidate: no response, no sample, and no relation brings one to it; give"
            " samples"
        )
    beta = float(task.work.options.get("beta", 1.0))
    factors = [_block_factor(task, j, candidates, beta) for j in range(len(task.operator.block_ids))]
    mu = _edit_price(task)
    for i, name in enumerate(task.operator.node_ids):
        if name in task.values:
            factors.append(_Factor((i,), mu * _deviation(task, task.values[name], candidates[i])))
    return _Energy(candidates, tuple(factors), truncated)


def _edit_price(task: Task) -> float:
    """μ: given, or what the noise may explain (ε²/2), or at ε = 0 so little that it only settles
    ties in residual.
    """
    if task.work.options.get("mu") is not None:
        return float(task.work.options["mu"])
    if task.epsilon > 0.0:
        return 0.5 * task.epsilon**2
    return 1e-6 * (0.5 * float(task.syndrome @ task.syndrome) or 1.0) / len(task.operator.node_ids)


def _close(task: Task) -> tuple[tuple[tuple[Values, ...], ...], tuple[str, ...]]:
    """Responses and samples of every node, transported along relations `depth` times (default:
    until nothing is new).

    A relation among several nodes says of one answer what the others make of it. Such a value
    stands for an answer that was wrong or is missing, and so do those it was made from; values that
    need more wrong answers than k allows are not made.
    """
    depth = task.work.options.get("depth")
    rounds = len(task.operator.node_ids) if depth is None else int(depth)
    pool = _Pool(task, int(task.work.options.get("most_candidates", MOST_CANDIDATES)))
    for name in task.operator.node_ids:
        for value in (*((task.values[name],) if name in task.values else ()), *task.candidates.get(name, ())):
            pool.add(name, value, 0)
    steps = moves(task)
    fresh = pool.settle()
    for _ in range(rounds):
        for move in steps:
            pool.carry(move, fresh)
        fresh = pool.settle()
        if not any(fresh.values()):
            break
    values = tuple(tuple(value for value, _ in pool.found[name]) for name in task.operator.node_ids)
    return values, tuple(sorted(pool.cut))


class _Pool:
    """Candidates of every node as they are found, each with the number of answers that were
    replaced to make it.
    """

    def __init__(self, task: Task, cap: int) -> None:
        units = task.operator.premise.partition(task.operator.node_ids).values()
        largest = sorted((len(nodes) for nodes in units), reverse=True)[: task.k]
        self.cap, self.most = cap, sum(largest) + len(task.erased)
        self.found: dict[str, list[tuple[Values, int]]] = {name: [] for name in task.operator.node_ids}
        self.cut: set[str] = set()
        self._settled = dict.fromkeys(self.found, 0)

    def add(self, name: str, value: Sequence[float] | Array, replaced: int) -> None:
        there = np.asarray(value, dtype=np.float64)
        if any(_agree(there, np.array(other)) for other, _ in self.found[name]):
            return
        if len(self.found[name]) >= self.cap:
            self.cut.add(name)
        else:
            self.found[name].append((tuple(float(x) for x in there), replaced))

    def settle(self) -> dict[str, list[tuple[Values, int]]]:
        """What is new since the last time."""
        new = {name: values[self._settled[name] :] for name, values in self.found.items()}
        self._settled = {name: len(values) for name, values in self.found.items()}
        return new

    def carry(self, move: _Move, fresh: Mapping[str, Sequence[tuple[Values, int]]]) -> None:
        """What is new along a relation of two; among several, every combination of settled values
        with something new in it, as far as k allows.
        """
        if len(move.sources) == 1:
            for value, replaced in fresh[move.sources[0]]:
                self.add(move.target, move([np.array(value)]), replaced)
            return
        settled = [self.found[name][: self._settled[name]] for name in move.sources]
        if not any(fresh[name] for name in move.sources):
            return
        if prod(len(part) for part in settled) > MOST_COMBINATIONS:
            self.cut.add(move.target)
            return
        for chosen in product(*settled):
            replaced = 1 + sum(count for _, count in chosen)
            if replaced <= self.most:
                self.add(move.target, move([np.array(value) for value, _ in chosen]), replaced)


@dataclass(frozen=True, slots=True)
class _Move:
    """z_target = Σ matrices[i] z_sources[i] + offset: what the other answers of a relation say of
    one.
    """

    sources: tuple[str, ...]
    target: str
    matrices: tuple[Array, ...]
    offset: Array

    def __call__(self, values: Sequence[Array]) -> Array:
        return np.asarray(sum((m @ v for m, v in zip(self.matrices, values, strict=True)), self.offset))


def moves(task: Task) -> tuple[_Move, ...]:
    """Every relation, solved for each node whose part of the rows can be inverted; those of two
    nodes first.
    """
    result = []
    for name in task.operator.block_ids:
        block = task.problem.block_by_id[name]
        if not isinstance(block, Relation) or len(block.nodes) == 1 < len(block.pair or ()):
            continue
        parts = block_rows(task.problem, block)
        offset = block_target(block, len(next(iter(parts.values()))))
        for target, own in reversed(parts.items()) if block.pair is not None else parts.items():  # the head first
            if own.shape[0] != own.shape[1] or not np.linalg.cond(own) < INVERTIBLE:
                continue
            inverse = np.asarray(np.linalg.inv(own), dtype=np.float64)
            others = {source: -inverse @ part for source, part in parts.items() if source != target}
            result.append(_Move(tuple(others), target, tuple(others.values()), inverse @ offset))
    return tuple(sorted(result, key=lambda move: len(move.sources) > 1))


def _agree(first: Array, second: Array) -> bool:
    scale = max(1.0, float(np.abs(first).max()), float(np.abs(second).max()))
    return bool(np.abs(first - second).max() <= SAME * scale)


def _block_factor(task: Task, j: int, candidates: Any, beta: float) -> _Factor:
    operator = task.operator
    rows = operator.rows_of(operator.block_ids[j]).tocsc()
    target = operator.target[operator.block_offsets[j] : operator.block_offsets[j + 1]]
    names = task.problem.block_by_id[operator.block_ids[j]].nodes
    nodes = tuple(operator.node_index[name] for name in names)
    shape = tuple(len(candidates[i]) for i in nodes)
    if np.prod(shape, dtype=float) * len(target) > LARGEST_TABLE:
        raise InputError(f"block {operator.block_ids[j]!r} has too many joint candidates; lower most_candidates")
    total = -np.broadcast_to(target, (*shape, len(target)))
    for axis, i in enumerate(nodes):
        images = np.array([rows[:, operator.groups[i]] @ _whiten(task, i, value) for value in candidates[i]])
        place = [1] * len(nodes)
        place[axis] = len(candidates[i])
        total = total + images.reshape(*place, len(target))
    weight = beta if operator.block_kinds[j] == "anchor" else 1.0
    return _Factor(nodes, 0.5 * weight * np.square(total).sum(axis=-1))


def _whiten(task: Task, node: int, value: Values) -> Array:
    factor = task.operator.fiber_factors.get(task.operator.node_ids[node])
    plain = np.array(value)
    return plain if factor is None else np.asarray(factor.T @ plain)


def _deviation(task: Task, response: Values, candidates: tuple[Values, ...]) -> Array:
    """ℓ: 1 for any other answer ("edit", the default), or its distance from the response
    ("distance").
    """
    kind = task.work.options.get("deviation", "edit")
    if kind == "edit":
        return np.array([0.0 if _agree(np.array(value), np.array(response)) else 1.0 for value in candidates])
    if kind == "distance":
        return np.array([float(np.linalg.norm(np.subtract(value, response))) for value in candidates])
    raise InputError(f'deviation must be "edit" or "distance", not {kind!r}')


LARGEST_TOTAL = 2.0**46
"""Scaled energies stay below this, far from 64-bit overflow."""


@dataclass(frozen=True, slots=True)
class _Assignment:
    choice: tuple[int, ...]
    gap: float
    complete: bool


def solve(energy: _Energy, *, time_limit: float | None, seed: int) -> _Assignment:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    picks = [[model.new_bool_var(f"x{i}_{c}") for c in range(size)] for i, size in enumerate(energy.sizes)]
    for part in picks:
        model.add_exactly_one(part)
    worst = sum(float(factor.table.max()) for factor in energy.factors)
    scale = LARGEST_TOTAL / max(worst, 1e-300)
    terms: list[Any] = []
    for f, factor in enumerate(energy.factors):
        costs = np.rint(factor.table * scale).astype(np.int64)
        if len(factor.nodes) == 1:
            terms += [int(cost) * pick for cost, pick in zip(costs, picks[factor.nodes[0]], strict=True)]
            continue
        joint = {
            place: model.new_bool_var(f"y{f}_{'_'.join(map(str, place))}")
            for place in product(*map(range, costs.shape))
        }
        for axis, i in enumerate(factor.nodes):
            for c in range(costs.shape[axis]):
                model.add(sum(var for place, var in joint.items() if place[axis] == c) == picks[i][c])
        terms += [int(costs[place]) * var for place, var in joint.items()]
    model.minimize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # one worker is repeatable
    solver.parameters.random_seed = seed
    if time_limit is not None:
        solver.parameters.max_time_in_seconds = time_limit
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise RetryLater(f"CP-SAT found no candidate field within {time_limit} s; raise the time limit")
    choice = tuple(next(c for c, pick in enumerate(part) if solver.boolean_value(pick)) for part in picks)
    rounding = 0.5 * len(energy.factors)
    bound = (solver.best_objective_bound - rounding) / scale
    return _Assignment(choice, max(0.0, energy.value(choice) - bound), status == cp_model.OPTIMAL)
