"""What decoders return, truly frozen: the error, what else explains the data, and how far the
search got.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SyndromeExplanation:
    """A support that explains the syndrome within ε, and contains no smaller one that does."""

    support: tuple[int, ...]
    residual: float
    error: Array  # (coordinates,)
    edge: bool = False
    """|residual − ε| is below the tolerance, so floats can't tell on which side it lies."""

    def __post_init__(self) -> None:
        self.error.setflags(write=False)


@dataclass(frozen=True, slots=True)
class SyndromeDecoding:
    """The exact decoder's answer to one syndrome.

    When `verified`, it is a proof in exact arithmetic for B, s and the radius ε + tolerance as the
    floats they are: the listed supports leave at most the radius, every other minimal one of at
    most k nodes leaves more.
    """

    support: tuple[int, ...]
    error: Array  # (coordinates,): ê, zero outside support and known nodes
    residual: float
    explained: bool
    """Some support of at most k nodes reaches ε; otherwise `support` has the least residual of
    all.
    """
    explanations: tuple[SyndromeExplanation, ...]
    """Every inclusion-minimal support of at most k nodes that explains the data, the chosen one
    first.
    """
    complete: bool
    """False when a limit cut the search short: then there may be more explanations, or a better
    support.
    """
    best_smaller: float
    """Least residual of all supports with fewer nodes than the chosen one: the proof that none of
    them explains.
    """
    epsilon: float
    tolerance: float
    k: int
    tested: int
    """Supports judged one by one; the rest was excluded by arithmetic."""
    known: tuple[int, ...] = ()
    undecided: tuple[tuple[int, ...], ...] = ()
    """Supports too near the radius for floats and too large for rationals: they may explain the
    data, or not.
    """
    zero_rule: bool = False
    """Directions below 1e-10 of their node's length, but not exactly zero, were taken for zero (the
    paper's rule).
    """

    def __post_init__(self) -> None:
        self.error.setflags(write=False)

    @property
    def verified(self) -> bool:
        """Nothing was cut short, left undecided, or settled by the zero rule alone."""
        return self.complete and not self.undecided and not self.zero_rule

    @property
    def unique(self) -> bool:
        """Proved: exactly one minimal support of at most k nodes explains the data."""
        return self.complete and len(self.explanations) == 1 and not self.undecided


@dataclass(frozen=True, slots=True)
class ConvexSolution:
    """A point of a group-ℓ₁ problem with its duality gap: objective − gap is a lower bound on the
    optimum.
    """

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
