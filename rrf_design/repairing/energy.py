"""The candidate-field energy as tables: ½‖Dz − q‖² + β/2 ‖Az − b‖² + μ Σ ℓᵢ(zᵢ; yᵢ) over finite candidate sets.

Candidates are what the model said (responses and samples) and what that becomes along relations; nothing else is ever
put in, and in particular no anchor's value, because that would inject an oracle. Each row block is one table over the
candidates of its nodes, each node one table for the deviation from its response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from rrf_design.errors import InputError
from rrf_design.repairing.baselines import agree
from rrf_design.repairing.contract import Array, Task, Values
from rrf_design.repairing.transports import JointMove, joint_moves, moves

MOST_CANDIDATES = 64
LARGEST_TABLE = 2_000_000
MOST_COMBINATIONS = 20_000
"""Of answers that a relation among several nodes is solved with, at a time."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Cost of the joint choice of some nodes: axes of `table` follow `nodes`."""

    nodes: tuple[int, ...]
    table: Array


@dataclass(frozen=True, slots=True)
class Energy:
    """All tables of one field, over the candidates of every node."""

    candidates: tuple[tuple[Values, ...], ...]  # by node index, the response first where there is one
    factors: tuple[Factor, ...]
    truncated: tuple[str, ...]
    """Nodes whose closure was cut at the cap: the truth may have been cut off with it."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(part) for part in self.candidates)

    def value(self, choice: tuple[int, ...]) -> float:
        """The energy of one choice per node, added up exactly as it is defined."""
        return float(sum(factor.table[tuple(choice[i] for i in factor.nodes)] for factor in self.factors))


def build_energy(task: Task) -> Energy:
    """Close the candidates under transport and tabulate the energy. Options: beta, mu, depth, most_candidates, deviation."""
    candidates, truncated = close(task)
    empty = [task.operator.node_ids[i] for i, part in enumerate(candidates) if not part]
    if empty:
        raise InputError(
            f"node {empty[0]!r} has no candidate: no response, no sample, and no relation brings one to it; give samples"
        )
    beta = float(task.options.get("beta", 1.0))
    factors = [_block_factor(task, j, candidates, beta) for j in range(len(task.operator.block_ids))]
    mu = edit_price(task)
    for i, name in enumerate(task.operator.node_ids):
        if name in task.values:
            factors.append(Factor((i,), mu * _deviation(task, task.values[name], candidates[i])))
    return Energy(candidates, tuple(factors), truncated)


def edit_price(task: Task) -> float:
    """μ: given, or what the noise may explain (ε²/2), or at ε = 0 so little that it only settles ties in residual."""
    if task.options.get("mu") is not None:
        return float(task.options["mu"])
    if task.epsilon > 0.0:
        return 0.5 * task.epsilon**2
    return 1e-6 * (0.5 * float(task.syndrome @ task.syndrome) or 1.0) / len(task.operator.node_ids)


def close(task: Task) -> tuple[tuple[tuple[Values, ...], ...], tuple[str, ...]]:
    """Responses and samples of every node, transported along relations `depth` times (default: until nothing is new).

    A relation among several nodes says of one answer what the others make of it. Such a value stands for an answer that was
    wrong or is missing, and so do those it was made from; values that need more wrong answers than k allows are not made.
    """
    depth = task.options.get("depth")
    rounds = len(task.operator.node_ids) if depth is None else int(depth)
    pool = _Pool(task, int(task.options.get("most_candidates", MOST_CANDIDATES)))
    for name in task.operator.node_ids:
        for value in (*((task.values[name],) if name in task.values else ()), *task.candidates.get(name, ())):
            pool.add(name, value, 0)
    steps, joint = moves(task), joint_moves(task)
    fresh = pool.settle()
    for _ in range(rounds):
        for move in steps:
            for value, replaced in fresh[move.source]:
                pool.add(move.target, move(np.array(value)), replaced)
        for together in joint:
            pool.combine(together, fresh)
        fresh = pool.settle()
        if not any(fresh.values()):
            break
    values = tuple(tuple(value for value, _ in pool.found[name]) for name in task.operator.node_ids)
    return values, tuple(sorted(pool.cut))


class _Pool:
    """Candidates of every node as they are found, each with the number of answers that were replaced to make it."""

    def __init__(self, task: Task, cap: int) -> None:
        units = task.operator.premise.partition(task.operator.node_ids).values()
        largest = sorted((len(nodes) for nodes in units), reverse=True)[: task.k]
        self.cap, self.most = cap, sum(largest) + len(task.erased)
        self.found: dict[str, list[tuple[Values, int]]] = {name: [] for name in task.operator.node_ids}
        self.cut: set[str] = set()
        self._settled = dict.fromkeys(self.found, 0)

    def add(self, name: str, value: Sequence[float] | Array, replaced: int) -> None:
        there = np.asarray(value, dtype=np.float64)
        if any(agree(there, np.array(other)) for other, _ in self.found[name]):
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

    def combine(self, move: JointMove, fresh: Mapping[str, Sequence[Any]]) -> None:
        """Every combination of settled values with something new in it, as far as k allows."""
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


def _block_factor(task: Task, j: int, candidates: Any, beta: float) -> Factor:
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
        images = np.array([rows[:, operator.groups[i]] @ whiten(task, i, value) for value in candidates[i]])
        place = [1] * len(nodes)
        place[axis] = len(candidates[i])
        total = total + images.reshape(*place, len(target))
    weight = beta if operator.block_kinds[j] == "anchor" else 1.0
    return Factor(nodes, 0.5 * weight * np.square(total).sum(axis=-1))


def whiten(task: Task, node: int, value: Values) -> Array:
    factor = task.operator.fiber_factors.get(task.operator.node_ids[node])
    plain = np.array(value)
    return plain if factor is None else np.asarray(factor.T @ plain)


def _deviation(task: Task, response: Values, candidates: tuple[Values, ...]) -> Array:
    """ℓ: 1 for any other answer ("edit", the default), or its distance from the response ("distance")."""
    kind = task.options.get("deviation", "edit")
    if kind == "edit":
        return np.array([0.0 if agree(np.array(value), np.array(response)) else 1.0 for value in candidates])
    if kind == "distance":
        return np.array([float(np.linalg.norm(np.subtract(value, response))) for value in candidates])
    raise InputError(f'deviation must be "edit" or "distance", not {kind!r}')
