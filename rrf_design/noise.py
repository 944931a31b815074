"""How far what is measured may be from what is true: one radius, for every verb and for the loop.

With the true operator B + E, (B + E) z* = c + ν and responses y = z* + e, what is computed is s = B y − c = B e + ν − E z*. So
the radius that a decoder meets has two parts (docs/algorithms.md, facts 16 and 17). ‖ν‖ ≤ ε is the noise of the rows:
declared for all of them (`epsilon`), or from a standard deviation, the problem's or that of the blocks that declare one, at a
confidence. ‖E z*‖ ≤ √Σ η_b² ‖z*_{T_b}‖² is what uncertain blocks add, each on all the nodes it names: it grows with the
*field*, also where no answer is wrong. Without a bound on the field nothing can be promised about it beforehand. And where all
answers may be off a little (`tail`: e = e_k + r, ‖r‖ ≤ τ), ‖B r‖ ≤ ‖B‖τ acts as noise, and τ itself is added to every error bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import fsum, inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.checker.noise import NoiseKind, NoiseRadius, radius
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.operator import Operator
    from rrf_design.problem import Problem

DENSE = 400
"""Coordinates up to which the norm of B is taken from its eigenvalues."""
UP = 1.0 + 1e-12
"""Sums of squares in floats are rounded up by this, so that a bound stays a bound."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What a caller knows better than the problem file; None leaves a matter to the file."""

    epsilon: float | None = None
    """Radius over all rows, after weighting and whitening."""
    sigma: float | None = None
    """Instead: standard deviation of every row."""
    confidence: float | None = None
    kind: NoiseKind | str | None = None
    """How sigma becomes a radius: "chi" (default), "gaussian" or "subgaussian"."""
    amplitude: float | None = None
    """A bound on the norm of the true field on the nodes of uncertain blocks."""

    def __post_init__(self) -> None:
        for name, least in (("epsilon", 0.0), ("sigma", None), ("amplitude", None)):
            value = getattr(self, name)
            if value is None:
                continue
            known = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
            if not known or not (value >= 0.0 if least is not None else value > 0.0) or not value < inf:
                bound = "of at least 0" if least is not None else "above 0"
                raise InputError(f"{name} must be a number {bound}, not {value!r}")
        if self.epsilon is not None and self.sigma is not None:
            raise InputError("noise: give epsilon or sigma, not both")
        if self.kind is not None and self.kind not in set(NoiseKind):
            raise InputError(f"noise: {self.kind!r} is not one of {', '.join(NoiseKind)}")


@dataclass(frozen=True, slots=True)
class Radius:
    """What a design meets: the radius of its rows, and what its uncertain blocks add to it."""

    rows: NoiseRadius
    spread: float | None = 0.0
    """Bound on ‖E z*‖; None where blocks are uncertain and nothing bounds the field."""
    tail: float = 0.0
    """Bound on ‖r‖: small errors on all answers, which no decoder looks for."""
    image: float = 0.0
    """Bound on ‖B r‖: what they add to the noise."""

    @property
    def declared(self) -> bool:
        return self.rows.epsilon is not None

    @property
    def epsilon(self) -> float:
        """Of the rows, with what small errors on all answers add; 0 where neither is declared: relations and anchors are then
        taken at their word."""
        return (self.rows.epsilon or 0.0) + self.image * UP

    @property
    def total(self) -> float | None:
        """ε' = ε + ‖E z*‖; None where nothing bounds the field."""
        return None if self.spread is None else (self.epsilon + self.spread) * (UP if self.spread else 1.0)

    def bound(self, lower: float) -> float | None:
        """2ε'/γ and the tail itself: no repair is further off; None where there is no radius or no proven margin."""
        if self.total is None or lower <= 0.0:
            return None
        return (2.0 * self.total / lower * (1 + 4e-16 if self.total else 1.0) + self.tail) * (UP if self.tail else 1.0)

    @property
    def confidence(self) -> float | None:
        """Probability that the radius holds; None where it is declared."""
        return self.rows.confidence

    def words(self, *, others: bool = False) -> str:
        """The premise about noise as part of a sentence; `others`: of the checks that are not wrong altogether."""
        if not self.declared:
            said = "all other relations and checks hold exactly" if others else "relations and checks hold exactly"
        elif self.rows.kind is NoiseKind.DETERMINISTIC:
            said = f"the noise of all rows together is at most {self.rows.epsilon:g}"
        else:
            said = f"the noise is as declared (with probability {self.rows.confidence:g})"
        if self.tail:
            said += f", all other answers together are off by at most {self.tail:g}"
        return said if self.spread == 0.0 else f"{said}, relations are off by no more than their declared uncertainty"


def radius_of(problem: Problem, operator: Operator, noise: Noise | None = None) -> Radius:
    """The radius of one design: what is given, else what the problem declares.

    A problem's epsilon, or its sigma at its confidence, speaks of all rows; where it declares neither, the blocks that
    declare sigma or covariance carry that noise and the others none.
    """
    given = noise or Noise()
    spread = field_spread(problem, operator, amplitude=given.amplitude)
    image = problem.tail * largest_gain(operator) if problem.tail else 0.0
    return Radius(_rows(problem, operator, given), spread, problem.tail, image)


def _rows(problem: Problem, operator: Operator, given: Noise) -> NoiseRadius:
    epsilon, sigma = given.epsilon, given.sigma
    if epsilon is None and sigma is None:
        epsilon, sigma = problem.epsilon, problem.sigma
    height = operator.shape[0]
    if epsilon is not None:
        return NoiseRadius(NoiseKind.DETERMINISTIC, float(epsilon), rows=height)
    blocks = None
    if sigma is None:
        noisy = [j for j, name in enumerate(operator.block_ids) if declares_noise(problem, name)]
        if not noisy and problem.tail:  # rows hold exactly, of answers that are nearly right
            return NoiseRadius(NoiseKind.DETERMINISTIC, 0.0, rows=height)
        if not noisy:
            return NoiseRadius(NoiseKind.NONE, None, rows=height)
        # whitened rows carry unit variance times their family's share w/m
        sigma = max(_share(problem, operator.block_ids[j]) for j in noisy)
        blocks = tuple(operator.block_ids[j] for j in noisy)
        height = int(sum(operator.block_offsets[j + 1] - operator.block_offsets[j] for j in noisy))
    level = problem.confidence if given.confidence is None else given.confidence
    shape = NoiseKind.CHI if given.kind is None else NoiseKind(given.kind)
    if not shape.random:
        raise InputError(f"noise: {shape} needs epsilon, not sigma")
    reach = _reach(shape, float(sigma), height, float(level))
    return NoiseRadius(shape, reach, sigma=float(sigma), confidence=level, rows=height, blocks=blocks)


@lru_cache(maxsize=4096)
def _reach(kind: NoiseKind, sigma: float, rows: int, confidence: float) -> float:
    return radius(kind, sigma=sigma, rows=rows, confidence=confidence)


def declares_noise(problem: Problem, block: str) -> bool:
    entry = problem.block_by_id[block]
    return entry.sigma is not None or entry.covariance is not None


def _share(problem: Problem, block: str) -> float:
    from rrf_design.rows import family_scale

    return family_scale(problem, problem.block_by_id[block]) * (1 + 1e-15)


def field_spread(problem: Problem, operator: Operator, *, amplitude: float | None = None) -> float | None:
    """A bound on ‖E z*‖ before any answer is seen; None where blocks are uncertain and nothing bounds the field.

    Σ_b η_b² ‖z_{T_b}‖² = Σ_i w_i ‖z_i‖² with w_i = Σ η_b² over the uncertain blocks that name node i. With ranges every
    ‖z_i‖ is bounded; with an amplitude R the sum is at most R² max w_i. The smaller of the two holds.
    """
    weights = node_weights(operator)
    if not weights:
        return 0.0
    reach = problem.amplitude if amplitude is None else amplitude
    bounds = [] if reach is None else [reach * sqrt(max(weights.values()))]
    sizes = {name: largest_norm(problem, operator, name) for name in weights}
    if all(size is not None for size in sizes.values()):
        bounds.append(sqrt(fsum(w * (sizes[name] or 0.0) ** 2 for name, w in weights.items())))
    return min(bounds) * UP if bounds else None


def largest_gain(operator: Operator) -> float:
    """A bound on ‖B‖: from the largest eigenvalue of BᵀB where that is small, else from sums of rows and columns."""
    sizes = abs(operator.matrix)
    rough = sqrt(float(sizes.sum(axis=0).max(initial=0.0)) * float(sizes.sum(axis=1).max(initial=0.0))) * UP
    if operator.shape[1] > DENSE or not operator.shape[0]:
        return rough
    gram = (operator.matrix.T @ operator.matrix).toarray()
    return min(rough, sqrt(max(0.0, float(np.linalg.eigvalsh(gram)[-1]))) * (1 + 1e-9))


def spread_at(operator: Operator, field: Mapping[str, Any]) -> float:
    """√Σ η_b² ‖z_{T_b}‖² of one field, given by node id: N of fact 18."""
    weights = node_weights(operator)
    return sqrt(fsum(w * operator.length(name, field[name]) ** 2 for name, w in weights.items())) * UP


def node_weights(operator: Operator) -> dict[str, float]:
    """w_i = Σ η_b² over the uncertain blocks that name node i; only nodes that some uncertain block names."""
    result: dict[str, float] = {}
    for block, nodes in operator.uncertain.items():
        square = float(operator.radii[operator.block_index[block]]) ** 2
        for name in nodes:
            result[name] = result.get(name, 0.0) + square
    return result


def largest_norm(problem: Problem, operator: Operator, node: str) -> float | None:
    """The largest length, in the node's metric, of an answer within its declared range; None without a range."""
    entry = problem.node_by_id[node]
    if entry.range is None:
        return None
    side = max(abs(entry.range[0]), abs(entry.range[1])) * sqrt(entry.dim)
    factor = operator.fiber_factors.get(node)
    return side if factor is None else side * float(np.linalg.norm(factor, 2)) * UP
