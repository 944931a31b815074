"""The candidate-field energy as tables: ½‖Dz − q‖² + β/2 ‖Az − b‖² + μ Σ ℓᵢ(zᵢ; yᵢ) over finite candidate sets.

Candidates are what the model said (responses and samples) and what that becomes along relations; nothing else is ever
put in, and in particular no anchor's value, because that would inject an oracle. Each row block is one table over the
candidates of its nodes, each node one table for the deviation from its response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rrf_design.errors import InputError
from rrf_design.repairing.baselines import agree
from rrf_design.repairing.contract import Array, Task, Values
from rrf_design.repairing.transports import moves

MOST_CANDIDATES = 64
LARGEST_TABLE = 2_000_000


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
    """Responses and samples of every node, transported along relations `depth` times (default: until nothing is new)."""
    cap = int(task.options.get("most_candidates", MOST_CANDIDATES))
    depth = task.options.get("depth")
    rounds = len(task.operator.node_ids) if depth is None else int(depth)
    found: dict[str, list[Values]] = {name: [] for name in task.operator.node_ids}
    cut: set[str] = set()

    def add(name: str, value: Values) -> bool:
        if any(agree(np.array(value), np.array(other)) for other in found[name]):
            return False
        if len(found[name]) >= cap:
            cut.add(name)
            return False
        found[name].append(value)
        return True

    for name in task.operator.node_ids:
        if name in task.values:
            add(name, task.values[name])
        for sample in task.candidates.get(name, ()):
            add(name, sample)
    fresh = {name: list(values) for name, values in found.items()}
    steps = moves(task)
    for _ in range(rounds):
        arrived: dict[str, list[Values]] = {name: [] for name in found}
        for move in steps:
            for value in fresh[move.source]:
                there = tuple(float(x) for x in move(np.array(value)))
                if add(move.target, there):
                    arrived[move.target].append(there)
        fresh = arrived
        if not any(fresh.values()):
            break
    return tuple(tuple(found[name]) for name in task.operator.node_ids), tuple(sorted(cut))


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
