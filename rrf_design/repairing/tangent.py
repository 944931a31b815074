"""A field with nonlinear relations as local repair reads it: rows of B and nonlinear rows together, and their tangent under the premise.

Coordinates come unit by unit, so that a unit is one group of them and k counts units. The tangent at a field is an operator
like any other: what fails together, what is delivered and which checks may be wrong is decided by `premise.protected`, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design.operators import Operator
from rrf_design.premise import Premise, protected
from rrf_design.repairing.contract import Array, Values

if TYPE_CHECKING:
    from rrf_design.problem import Problem


@dataclass(frozen=True)
class BentField:
    """M(z): rows of B, then nonlinear rows, block by block; z in the order of `place`."""

    problem: Problem
    matrix: Array
    target: Array
    place: Mapping[str, int]
    units: Mapping[str, tuple[str, ...]]
    """Unit to its nodes, in the order of their coordinates."""
    kept: NDArray[np.int64] | None = None
    """Rows that are left when checks are set aside; None for all."""

    @classmethod
    def of(cls, problem: Problem) -> BentField:
        whole = problem.whole
        if np.isnan(whole.target).any():
            whole.syndrome(dict.fromkeys(whole.node_ids, (0.0,)))  # names the anchor whose value is missing
        units = {unit: tuple(nodes) for unit, nodes in whole.premise.partition(whole.node_ids).items()}
        names = [name for nodes in units.values() for name in nodes]
        order = [whole.node_index[name] for name in names]
        place = {name: at for at, name in enumerate(names)}
        return cls(problem, whole.matrix.toarray()[:, order], whole.target, place, units)

    def __call__(self, z: Any) -> Any:
        values = {name: z[i] for name, i in self.place.items()}
        linear = list(self.matrix @ z - self.target) if len(self.target) else []
        rows = np.array([*linear, *(row for entry in self.problem.nonlinear for row in entry.rows(values))])
        return rows if self.kept is None else rows[self.kept]

    def residual(self, repaired: Mapping[str, Values]) -> float:
        """‖M(z)‖ of a field by node, over the rows that are left."""
        return float(np.linalg.norm(self(np.array([repaired[name][0] for name in self.place]))))

    def hessians(self, balls: Any) -> list[Any]:
        ball = {name: balls[i] for name, i in self.place.items()}
        return [matrix for entry in self.problem.nonlinear for matrix in entry.hessians(ball, self.place)]

    @property
    def bent(self) -> frozenset[str]:
        """Nodes along which some row is not linear: second derivatives see only these."""
        return frozenset(name for entry in self.problem.nonlinear for name in entry.bent)

    def by_unit(self, said: Mapping[str, Values]) -> dict[str, Values]:
        """Answers as `repair_nonlinear` takes them: a unit is one node of several numbers."""
        return {unit: tuple(said[name][0] for name in nodes) for unit, nodes in self.units.items()}

    def by_node(self, repaired: Mapping[str, Values]) -> dict[str, Values]:
        """The way back."""
        return {
            name: (value,)
            for unit, nodes in self.units.items()
            for name, value in zip(nodes, repaired[unit], strict=True)
        }

    def without(self, blocks: Sequence[int]) -> BentField:
        """The same with the rows of some blocks set aside."""
        heights = self._heights
        aside = np.zeros(len(heights), dtype=np.bool_)
        aside[list(blocks)] = True
        return replace(self, kept=np.flatnonzero(~np.repeat(aside, heights)).astype(np.int64))

    @property
    def _heights(self) -> Any:
        return np.array([*self.problem.whole.heights, *(entry.height for entry in self.problem.nonlinear)], np.int64)

    def tangent(self, jacobian: Array) -> Operator:
        """The rows of all blocks at some field, linearised, under the problem's premise."""
        whole = self.problem.whole
        offsets = np.concatenate([[0], np.cumsum(self._heights)])
        bent = [entry.id for entry in self.problem.nonlinear]
        return Operator(
            matrix=sparse.csr_array(jacobian),
            target=np.zeros(len(jacobian)),
            node_ids=tuple(self.place),
            node_offsets=np.arange(len(self.place) + 1),
            block_ids=(*whole.block_ids, *bent),
            block_offsets=offsets,
            block_kinds=(*whole.block_kinds, *(["relation"] * len(bent))),
            radii=np.zeros(len(offsets) - 1),
            fiber_factors={},
            uncertain={},
            premise=whole.premise,
        )


@dataclass(frozen=True, slots=True)
class TangentMargins:
    """γ of the tangent: of what is delivered, and of that together with every node along which rows bend."""

    value: float
    delivered: float
    """Proven, as the next."""
    near: float

    @classmethod
    def of(cls, operator: Operator, k: int, bent: frozenset[str]) -> TangentMargins:
        own = protected(operator, k).solved
        premise = operator.premise
        if premise.deliver is None or bent <= premise.deliver:
            return cls(own.value, own.lower, own.lower)
        wider: Premise = replace(premise, deliver=premise.deliver | bent)
        return cls(own.value, own.lower, protected(operator, k, premise=wider).solved.lower)
