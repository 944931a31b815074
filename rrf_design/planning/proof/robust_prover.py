"""Proofs for the robust objective, min over connected supports of σ_min(B_S) − η_S (docs/algorithms.md, facts 10 and 28).

A purchase helps a support, joins its nodes, and makes it less certain: more is no longer always better. But what lies around a support
still decides alone whether it reaches a target, part by part as the purchases join it, and the search for the least purchases knows
that. So hull rows hold as they are, with larger bounds, and the linear bound, the master and the exchanges are those of the plain
margin. Where buying too much is what is wrong, a row says it of the uncertain blocks that are bought: with all of these, so much more
is needed here (`neighbourhoods`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rrf_design.market import exact
from rrf_design.planning.optimal import PlanSearch
from rrf_design.planning.proof.bounds import ceiling
from rrf_design.planning.proof.prover import TOUCH_UP, Prover

if TYPE_CHECKING:
    from rrf_design.market import Mask
    from rrf_design.planning.arena import Arena
    from rrf_design.planning.contract import Order
    from rrf_design.planning.proof.master import Master

STEPS = 12  # thresholds for a first design
HALVED = 5  # times the way from it to the next threshold


class RobustProver(Prover):
    """A `Prover` whose rows know radii; designs are made by exchanges alone where the market is plain."""

    def __init__(self, arena: Arena, goal: Order, *, master: Master | None = None) -> None:
        super().__init__(arena, goal, master=master)
        self.regions = 0  # with radii what a region asks for takes too long to list for what it is worth

    def first(self, start: Mask) -> Mask:
        """What can be made for the highest of a few thresholds, and then for higher ones still."""
        if not self.arena.market.plain:
            return PlanSearch.first(self, start)
        budget = None if self.goal.budget is None else exact(self.goal.budget)
        best, high = None, ceiling(self.arena)
        for step in range(1, STEPS):
            ask = (1 - step / STEPS) * ceiling(self.arena)
            best = self._mended(start, ask, budget, effort=TOUCH_UP)
            if best is not None:
                break
            high = ask
        if best is None:
            return PlanSearch.first(self, start)
        for _ in range(HALVED):
            ask = (self.arena.value(best) + high) / 2
            found = self._mended(best, ask, budget, effort=1.0)
            best, high = (best, ask) if found is None else (found, max(high, self.arena.value(found)))
        return best

    def tidy(self, mask: Mask, floor: float) -> Mask:
        return PlanSearch.tidy(self, mask, floor)
