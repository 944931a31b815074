"""How much of a margin rests on declared covariances: the same design under more and more shrinkage τ.

Σ_τ = (1 − τ)Σ + τ·tr(Σ)/m·I, from what is declared to equal and independent variances. A margin that moves a lot rests on
correlations that somebody estimated; it is told beside a certificate and is none of its claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection

TAUS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """One τ: the proven margin of the design, and the error bound that goes with it (None where there is none)."""

    tau: float
    lower: float
    upper: float
    error_bound: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def sensitivity(
    problem: Problem, select: Selection = None, *, k: int | None = None, taus: Sequence[float] = TAUS
) -> tuple[Shrunk, ...]:
    """The margin and the error bound of what is owned plus selected, for each shrinkage τ instead of the problem's.

    InputError where no block declares a covariance: then there is nothing to shrink.

    >>> import rrf_design as rrf
    >>> labels = {"id": "labels", "nodes": ["x", "y"], "rows": [[1.0, 0.0], [0.0, 1.0]], "covariance": [[1.0, 0.8], [0.8, 1.0]]}
    >>> problem = rrf.Problem(nodes=[{"id": "x"}, {"id": "y"}], anchors=[labels])
    >>> [(row.tau, round(row.lower, 3)) for row in sensitivity(problem, taus=(0.0, 0.5, 1.0))]
    [(0.0, 0.745), (0.5, 0.845), (1.0, 1.0)]
    """
    design = problem.design(select)
    held = [problem.block_by_id[name] for name in design.operator.block_ids]
    if not any(block.covariance is not None for block in held):
        raise InputError("sensitivity: no block of this design declares a covariance, so there is nothing to shrink")
    result = []
    for tau in taus:
        if not 0.0 <= tau <= 1.0:
            raise InputError(f"sensitivity: shrinkage must lie between 0 and 1, not {tau!r}")
        other = problem.model_copy(update={"shrinkage": float(tau)})
        there = other.design(select)
        margin = there.margin(k)
        bound = there.standing(other, margin=margin).error_bound
        result.append(Shrunk(float(tau), margin.lower, margin.upper, bound))
    return tuple(result)
