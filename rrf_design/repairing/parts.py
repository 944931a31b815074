"""What a decoder chooses from: the answered nodes of each unit together, and every erased node by itself.

A wrong unit may be wrong in all its answers and costs one of k. An erased node's error is known to be there and costs nothing,
whatever its unit: so it is a part of its own, and its unit is what was answered of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from solvers import NodeColumns


@dataclass(frozen=True, slots=True)
class Parts:
    """Columns and nodes of each part, and which parts are erased nodes."""

    groups: NodeColumns
    members: tuple[tuple[int, ...], ...]
    part_of: tuple[int, ...]
    """(nodes,)"""
    known: tuple[int, ...]

    @classmethod
    def of(cls, operator: Operator, erased: tuple[int, ...] = ()) -> Parts:
        from solvers import column_groups

        names, premise = operator.node_ids, operator.premise
        if not premise.units:
            every = tuple(range(len(names)))
            return cls(operator.groups, tuple((i,) for i in every), every, erased)
        gone = set(erased)
        found = premise.partition(name for i, name in enumerate(names) if i not in gone)
        members = [tuple(operator.node_index[name] for name in nodes) for nodes in found.values()]
        members += [(i,) for i in erased]
        part_of = {i: part for part, nodes in enumerate(members) for i in nodes}
        columns = [np.concatenate([operator.groups[i] for i in nodes]) for nodes in members]
        return cls(
            groups=column_groups(columns, operator.shape[1]),
            members=tuple(members),
            part_of=tuple(part_of[i] for i in range(len(names))),
            known=tuple(range(len(found), len(members))),
        )

    @property
    def single(self) -> bool:
        """Every part is one node."""
        return len(self.members) == len(self.part_of)

    def covering(self, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """The parts that hold these nodes."""
        return tuple(sorted({self.part_of[i] for i in nodes}))

    def moved(
        self, support: tuple[int, ...], error: NDArray[np.float64], operator: Operator, slack: float
    ) -> tuple[int, ...]:
        """The nodes of some parts that an error changes by more than rounding; all of a part of one node."""
        if self.single:
            return support
        nodes = sorted(i for part in support for i in self.members[part])
        return tuple(i for i in nodes if float(np.abs(error[operator.groups[i]]).max()) > slack)
