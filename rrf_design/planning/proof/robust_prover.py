"""A bound of its own for the robust objective, min over connected supports of σ_min(B_S) − η_S (docs/algorithms.md, fact 10).

A support that what is owned keeps connected must reach λ_min(G_S) ≥ (t + η_S)², and η_S grows with what is bought around it: the
neighbourhood's own search takes both into account, so its rows hold, though more is no longer always better. Every other support must
still reach t². The linear relaxation of these rows bounds what a budget can buy; designs are looked for, and the last proofs made,
by witness cuts, whose rows forbid single patterns.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rrf_design.planning.optimal import Cheapest, PlanSearch, Threshold
from rrf_design.planning.proof.prover import Prover

if TYPE_CHECKING:
    from rrf_design.market import Mask

BOUNDED = 0.3  # share of the time for the linear bound
HALVED = 12  # targets asked
CLOSE = 1.003  # it ends when the targets left and refuted are this close


class RobustProver(Prover):
    """A `PlanSearch` by witness cuts with the linear bound of hull rows that know radii."""

    def first(self, start: Mask) -> Mask:
        return PlanSearch.first(self, start)

    def tidy(self, mask: Mask, floor: float) -> Mask:
        return PlanSearch.tidy(self, mask, floor)

    def settle(self, threshold: float, budget: Fraction | None, *, hint: Mask, share: float = 1.0) -> Threshold:
        """By witness cuts; where the linear relaxation refutes the threshold, without a search."""
        if self._resolves(threshold) and self.relax(threshold, budget, deadline=self.deadline)[0]:
            return Threshold(impossible=True)
        return PlanSearch.settle(self, threshold, budget, hint=hint, share=share)

    def minimise(
        self, target: float, budget: Fraction | None, incumbent: Mask | None, *, slack: float = 5e-10
    ) -> Cheapest:
        return PlanSearch.minimise(self, target, budget, incumbent, slack=slack)

    def maximise(self, budget: Fraction | None, incumbent: Mask) -> tuple[Mask, float]:
        """The best design that witness cuts find, and the better of both bounds."""
        upper = self._linear(self.arena.value(incumbent), budget)
        mask, other = PlanSearch.maximise(self, budget, incumbent)
        return mask, max(min(upper, other), self.arena.value(mask))

    def _linear(self, value: float, budget: Fraction | None) -> float:
        """The least threshold that the linear relaxation refutes, to a small factor."""
        from rrf_design.planning.proof.bounds import ceiling

        left = self.left()
        limit = None if left is None or self.deadline is None else self.deadline - (1 - BOUNDED) * max(left, 0.0)
        low, upper = max(value, 1e-4 * ceiling(self.arena)), ceiling(self.arena)
        for _ in range(HALVED):
            if upper <= low * CLOSE or self.late():
                break
            ask = (low * upper) ** 0.5
            if self.relax(ask, budget, deadline=limit)[0]:
                upper = ask
            else:
                low = ask
        return upper
