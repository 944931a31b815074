"""How much of a margin rests on declared covariances: the same design under more and more shrinkage
τ.

Σ_τ = (1 − τ)Σ + τ·tr(Σ)/m·I, from what is declared to equal and independent variances. A margin
that moves a lot rests on correlations that somebody estimated; it is told beside a certificate and
is none of its claims. So is what estimates from few repeats cost: by how much each variance was
raised, and the margin if they were taken at their word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rrf_design.derive import shared_words
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection

SHOWN = 6
"""Estimates that a sentence names."""
ESTIMATED_IN = ("nodes", "relations", "anchors", "noise")
TAUS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class _Shrunk:
    """One τ: the proven margin of the design, and the error bound that goes with it (None where
    there is none).
    """

    tau: float
    lower: float
    upper: float
    error_bound: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def sensitivity(
    problem: Problem, select: Selection = None, *, k: int | None = None, taus: Sequence[float] = TAUS
) -> tuple[_Shrunk, ...]:
    """The margin and the error bound of what is owned plus selected, for each shrinkage τ instead
    of the problem's.

    InputError where no block declares a covariance: then there is nothing to shrink.

    >>> import rrf_design as rrf
    >>> eye, noise = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.8], [0.8, 1.0]]
    >>> labels = {"id": "labels", "nodes": ["x", "y"], "rows": eye, "covariance": noise}
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
        result.append(_Shrunk(float(tau), margin.lower, margin.upper, bound))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class _RaisedNoise:
    """A block or node whose noise was estimated: from how many repeats, and what its variance is
    multiplied with for that.
    """

    name: str
    repeats: int
    inflation: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def raised_noise(problem: Problem, select: Selection = None) -> tuple[_RaisedNoise, ...]:
    """What of a design was only estimated, blocks first.

    >>> import rrf_design as rrf
    >>> label = {"id": "label", "node": "x", "sigma": 1.0, "estimated_from": 60}
    >>> problem = rrf.Problem(nodes=[{"id": "x"}], anchors=[label])
    >>> [(one.name, round(one.inflation, 2)) for one in raised_noise(problem)]
    [('label', 1.56)]
    """
    if not problem.estimated:
        return ()
    entries = {**problem.block_by_id, **problem.node_by_id}
    known = problem.design(select).operator.held.inflation
    return tuple(_RaisedNoise(name, entries[name].estimated_from or 0, by) for name, by in known.items())


def raised_words(problem: Problem, select: Selection = None, *, k: int | None = None) -> str:
    """What estimates from so few repeats cost this design, in sentences; nothing where none is
    used.
    """
    found = raised_noise(problem, select)
    if not found:
        return ""
    listed = ", ".join(f"{one.name} {one.inflation:.4g} times ({one.repeats} repeats)" for one in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    bare = problem.model_copy(update={part: _known(getattr(problem, part)) for part in ESTIMATED_IN})
    now, then = (one.design(select).standing(one, margin=one.design(select).margin(k)) for one in (problem, bare))
    promise = "" if now.error_bound is None or then.error_bound is None else _instead(now.error_bound, then.error_bound)
    return (
        f"Estimated from repeats, variances count more: {listed}{more}. Taken at their word the margin would be"
        f" {then.lower:.6g} instead of {now.lower:.6g}{promise}."
    )


def _instead(now: float, then: float) -> str:
    return f", and the error bound {then:.6g} instead of {now:.6g}"


def _known(entries: Any) -> Any:
    return tuple(
        entry if entry.estimated_from is None else entry.model_copy(update={"estimated_from": None})
        for entry in entries
    )


def beside_certificate(
    problem: Problem, select: Selection = None, *, k: int | None = None, sweep: bool = False
) -> dict[str, Any]:
    """What is told beside a certificate and is none of its claims, by key: with `sweep` the margin
    under shrinkage (`sensitivity`), shared noise, and variances that were only estimated.
    """
    told: dict[str, Any] = {}
    if sweep:
        told["sensitivity"] = [row.to_json() for row in sensitivity(problem, select, k=k)]
    if shared := shared_words(problem, problem.design(select).operator.block_ids):
        told["shared_noise"] = shared
    if guessed := raised_words(problem, select, k=k):
        told["estimated"] = [one.to_json() for one in raised_noise(problem, select)]
        told["estimated_words"] = guessed
    return told
