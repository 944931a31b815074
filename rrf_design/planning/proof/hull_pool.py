"""All hull rows found so far for one arena, and their bounds at every target asked about.

A row is a left side, Σ weights·blocks, with the supports it was found around. Its bound depends on the target only, and rises
with it: so one pool serves budgets, targets and frontiers alike, and a bound between two known equal ones needs no search.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.planning.proof.cuts import Row
from rrf_design.planning.proof.neighbourhoods import HullRow, Neighbourhood, Neighbourhoods

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

HOPELESS = float("inf")
"""Instead of a bound: no purchase around this support reaches the target."""
Whole = NDArray[np.int64]
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class _Side:
    """One left side. `known` holds (target, bound) by rising target; HOPELESS comes last."""

    blocks: Whole  # positions among the arena's variable blocks
    coefficients: Whole
    around: list[tuple[Neighbourhood, Whole]] = field(default_factory=list)
    known: list[tuple[float, float]] = field(default_factory=list)
    made: dict[float, Row] = field(default_factory=dict)
    least: int = field(init=False)
    """Of the left side, whatever is bought."""

    def __post_init__(self) -> None:
        self.least = int(np.minimum(self.coefficients, 0).sum())

    def bound(self, target: float) -> float:
        at = bisect_left(self.known, (target, -HOPELESS))
        if at < len(self.known) and self.known[at][0] == target:
            return self.known[at][1]
        below = self.known[at - 1][1] if at else self.least
        above = self.known[at][1] if at < len(self.known) else None
        found = below if below in (HOPELESS, above) else self._search(target)
        insort(self.known, (target, found))
        return found

    def _search(self, target: float) -> float:
        least = [hood.bound(weights, target) for hood, weights in self.around]
        return HOPELESS if None in least else max(b for b in least if b is not None)

    def row(self, target: float, variable_of: Whole) -> Row | None:
        """For this target, coefficients cut down to what they can be needed for; None where the target asks nothing."""
        bound = self.bound(target)
        if bound <= self.least:
            return None
        if bound not in self.made:
            if bound == HOPELESS:
                self.made[bound] = Row(_NONE, _NONE, 1)
            else:
                cut = np.minimum(self.coefficients, int(bound) - self.least)
                self.made[bound] = Row(variable_of[self.blocks], cut, int(bound))
        return self.made[bound]


class HullPool:
    """Left sides by what they say; grows only."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.hoods = Neighbourhoods(arena)
        self.sides: list[_Side] = []
        self._index: dict[bytes, int] = {}
        self._raised = 0

    @property
    def learnt(self) -> int:
        """Changes with everything that is learnt."""
        return len(self.sides) + self._raised

    def add(self, row: HullRow, target: float) -> bool:
        """Keep a row found at a target; False when it is known, or a larger bound for the same left side is."""
        hood = row.neighbourhood
        used = np.flatnonzero(row.weights)
        used = used[np.argsort(hood.members[used])]
        blocks, coefficients = hood.members[used], row.weights[used]
        key = blocks.tobytes() + b"|" + coefficients.tobytes()
        if not len(used):
            key += repr(hood.support).encode()
        bound = HOPELESS if row.bound is None else float(row.bound)
        if key not in self._index:
            self._index[key] = len(self.sides)
            self.sides.append(_Side(blocks, coefficients, [(hood, row.weights)], [(target, bound)]))
            return True
        side = self.sides[self._index[key]]
        if bound <= side.bound(target):
            return False
        side.around.append((hood, row.weights))
        side.known = [(target, bound)]
        self._raised += 1
        return True

    def bounds(self, target: float) -> NDArray[np.float64]:
        """(sides,) the bound of each, or HOPELESS."""
        return np.array([side.bound(target) for side in self.sides])

    def rows(self, target: float, variable_of: Whole) -> list[Row | None]:
        """One row per left side for this target; None where the target asks nothing of it. The same object where it is the same row.

        A row that asks nothing must never reach a solver: with its coefficients cut down to 0 it reads as something else.
        """
        return [side.row(target, variable_of) for side in self.sides]
