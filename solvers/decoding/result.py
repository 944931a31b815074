"""What decoders return, truly frozen: the error, what else explains the data, and how far the search got."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A support that explains the syndrome within ε, and contains no smaller one that does."""

    support: tuple[int, ...]
    residual: float
    error: Array  # (coordinates,)
    edge: bool = False
    """|residual − ε| is below the tolerance, so floats can't tell on which side it lies."""

    def __post_init__(self) -> None:
        self.error.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Decoding:
    """The exact decoder's answer to one syndrome."""

    support: tuple[int, ...]
    error: Array  # (coordinates,): ê, zero outside support and known nodes
    residual: float
    explained: bool
    """Some support of at most k nodes reaches ε; otherwise `support` has the least residual of all."""
    explanations: tuple[Explanation, ...]
    """Every inclusion-minimal support of at most k nodes that explains the data, the chosen one first."""
    complete: bool
    """False when a limit cut the search short: then there may be more explanations, or a better support."""
    best_smaller: float
    """Least residual of all supports with fewer nodes than the chosen one: the proof that none of them explains."""
    epsilon: float
    tolerance: float
    k: int
    tested: int
    """Supports judged one by one; the rest was excluded by arithmetic."""
    known: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.error.setflags(write=False)

    @property
    def unique(self) -> bool:
        """Proved: exactly one minimal support of at most k nodes explains the data."""
        return self.complete and len(self.explanations) == 1


@dataclass(frozen=True, slots=True)
class ConvexSolution:
    """A point of a group-ℓ₁ problem with its duality gap: objective − gap is a lower bound on the optimum."""

    error: Array
    objective: float
    gap: float
    residual: float
    penalty: float
    """λ of the penalised form this is (for the constrained form: the one found for its ε)."""
    iterations: int
    converged: bool

    def __post_init__(self) -> None:
        self.error.setflags(write=False)
