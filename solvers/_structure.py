"""What a field can't see, structurally: its group spark, and the gauge directions of every
component.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from solvers._exact import smallest_singular_pair
from solvers._gram import make_field
from solvers._minimiser import Minimiser

LARGEST_COMPONENT = 4000  # coordinates of a component whose null space is computed densely


@dataclass(frozen=True, slots=True)
class Spark:
    """The least number of nodes that carry a null vector of B (infinite: B is injective).

    `value` None means: more than `searched`, the largest size that was looked at.
    """

    value: float | None
    searched: int
    support: tuple[int, ...]
    direction: NDArray[np.float64] | None


def group_spark(B: Any, groups: Any = None, *, at_most: int | None = None, n_jobs: int | None = None) -> Spark:
    """Group spark of B: the fewest nodes whose columns are dependent, searched up to `at_most`
    (default: all).

    γ_k > 0 exactly when it exceeds 2k. `value` is infinite where all columns are independent, None
    where the search ended before.

    >>> import numpy as np
    >>> from solvers import group_spark
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> group_spark(B).value, group_spark(B[:2]).value
    (inf, 3.0)
    """
    field = make_field(B, groups)
    top = field.n if at_most is None else min(at_most, field.n)
    if _injective(field):
        return Spark(value=math.inf, searched=field.n, support=(), direction=None)
    for size in range(1, top + 1):
        found = Minimiser(field, size, n_jobs=n_jobs).solve(())
        if found.zero:
            return Spark(value=float(size), searched=size, support=found.support, direction=found.direction)
    return Spark(value=None, searched=top, support=(), direction=None)


def _injective(field: Any) -> bool:
    for nodes in field.components:
        block = field.restrict(nodes)
        if block.shape[1] > LARGEST_COMPONENT:
            return False  # not decided here: the search by size decides
        sigma, _ = smallest_singular_pair(block)
        if sigma <= 1e-10 * float(np.max(field.column_norms, initial=0.0)):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Gauge:
    """A basis of the null space of one component: (coordinates, dimension), orthonormal columns
    over all coordinates.
    """

    nodes: tuple[int, ...]
    basis: NDArray[np.float64]

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[1])


def gauge_directions(D: Any, groups: Any = None, *, tolerance: float = 1e-10) -> tuple[Gauge, ...]:
    """ker D by connected component: the fields that no relation can tell from zero.

    Transports that don't close around a cycle (holonomy) shrink the null space; it is computed from
    D itself, so that is taken into account. A node without any row is a component of its own and
    free. Components with more than 4,000 coordinates are refused.

    >>> import numpy as np
    >>> from solvers import gauge_directions
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    >>> len(gauge_directions(B))  # all three may be off by the same
    1
    """
    field = make_field(D, groups)
    scale = float(np.max(field.column_norms, initial=0.0))
    result = []
    for nodes in field.components:
        block = field.restrict(nodes)
        if block.shape[1] > LARGEST_COMPONENT:
            raise ValueError(
                f"D: a component has {block.shape[1]} coordinates; gauges are computed up to {LARGEST_COMPONENT}"
            )
        if block.shape[0] == 0:
            local = np.eye(block.shape[1])
        else:
            _, values, right = linalg.svd(block, full_matrices=block.shape[0] < block.shape[1])
            rank = int((values > tolerance * max(scale, 1e-300)).sum())
            local = right[rank:].T
        basis = np.zeros((len(field.groups.order), local.shape[1]))
        basis[field.groups.order[field.columns_of(nodes)]] = local
        result.append(Gauge(nodes=tuple(int(i) for i in nodes), basis=basis))
    return tuple(result)
