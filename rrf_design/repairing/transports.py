"""Moving answers along relations: affine maps between nodes, forwards and (where they can be inverted) backwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rrf_design.blocks import Relation
from rrf_design.repairing.contract import Array, Task
from rrf_design.rows import block_rows, block_target

INVERTIBLE = 1e8
"""Transports with a larger condition number are not inverted: the answer would be mostly rounding."""


@dataclass(frozen=True, slots=True)
class Move:
    """z_target = matrix z_source + offset."""

    source: str
    target: str
    matrix: Array
    offset: Array

    def __call__(self, value: Array) -> Array:
        return np.asarray(self.matrix @ value + self.offset)


def moves(task: Task) -> tuple[Move, ...]:
    """Every relation of the design as one or two moves."""
    result = []
    for name in task.operator.block_ids:
        block = task.problem.block_by_id[name]
        if not isinstance(block, Relation) or block.pair is None or len(block.nodes) == 1:
            continue
        tail, head = (task.problem.node_by_id[name] for name in block.pair)
        matrix = block.transport.as_matrix(tail_dim=tail.dim, head_dim=head.dim)
        offset = np.broadcast_to(np.asarray(block.offset, dtype=np.float64), (head.dim,))
        result.append(Move(tail.id, head.id, matrix, offset))
        if tail.dim == head.dim and np.linalg.cond(matrix) < INVERTIBLE:
            inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
            result.append(Move(head.id, tail.id, inverse, -inverse @ offset))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class JointMove:
    """z_target = Σ matrices[i] z_sources[i] + offset: what the other answers of a relation among several say of one."""

    sources: tuple[str, ...]
    target: str
    matrices: tuple[Array, ...]
    offset: Array

    def __call__(self, values: Sequence[Array]) -> Array:
        return np.asarray(sum((m @ v for m, v in zip(self.matrices, values, strict=True)), self.offset))


def joint_moves(task: Task) -> tuple[JointMove, ...]:
    """Every relation among several nodes, solved for each node whose part of the rows can be inverted."""
    result = []
    for name in task.operator.block_ids:
        block = task.problem.block_by_id[name]
        if not isinstance(block, Relation) or block.pair is not None:
            continue
        parts = block_rows(task.problem, block)
        offset = block_target(block, len(next(iter(parts.values()))))
        for target, own in parts.items():
            if own.shape[0] != own.shape[1] or not np.linalg.cond(own) < INVERTIBLE:
                continue
            inverse = np.asarray(np.linalg.inv(own), dtype=np.float64)
            others = {source: -inverse @ part for source, part in parts.items() if source != target}
            result.append(JointMove(tuple(others), target, tuple(others.values()), inverse @ offset))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Chart:
    """One connected part of the field seen from its first node: z_i = maps[i](z_reference), all invertible."""

    reference: str
    maps: dict[str, Move]

    def canonical(self, node: str, value: Array) -> Array:
        move = self.maps[node]
        return np.asarray(np.linalg.solve(move.matrix, value - move.offset))


def charts(task: Task) -> tuple[Chart, ...]:
    """Parts connected by invertible transports, each with maps from its first node (breadth first)."""
    steps: dict[str, list[Move]] = {name: [] for name in task.operator.node_ids}
    both = moves(task)
    pairs = {(move.source, move.target) for move in both}
    for move in both:
        if (move.target, move.source) in pairs:
            steps[move.source].append(move)
    seen: set[str] = set()
    result = []
    for name in task.operator.node_ids:
        if name in seen:
            continue
        dim = task.problem.node_by_id[name].dim
        maps = {name: Move(name, name, np.eye(dim), np.zeros(dim))}
        queue = deque([name])
        while queue:
            here = queue.popleft()
            for move in steps[here]:
                if move.target not in maps and np.linalg.cond(move.matrix) < INVERTIBLE:
                    base = maps[here]
                    maps[move.target] = Move(name, move.target, move.matrix @ base.matrix, move(base.offset))
                    queue.append(move.target)
        seen.update(maps)
        result.append(Chart(name, maps))
    return tuple(result)
