"""What the solvers return: value, rigorous bounds and witness together, truly frozen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from html import escape

import numpy as np
from numpy.typing import NDArray

from solvers._exact import scaled_above, scaled_below
from solvers._gram import NodeColumns

EXACT_GAP = 1e-9
"""Bounds closer than this (relatively) are called exact."""
ULP_ROOM = 2e-10
"""What is proven of λ = σ² lies this much below it (relatively): half of the gap that is left."""
ZERO = 1e-10
"""The paper's rule, absolute and relative; the witness's residual is below 1e-9 then."""
DOUBTFUL = 1e-6
"""A σ below this share of the longest column may be rounding of an exact zero."""
RESIDUAL = 1e-9
"""Of the witness of a numerical zero, absolute and relative to the longest column: the paper's rule
is 1e-10 for what a float computation finds, and this is proven.
"""

Progress = Callable[[float | None, tuple[float, float] | None, str], None]
"""How everything that takes time tells how far it is: the share that is done (None where nobody can
say), the lower and the upper bound that are proven so far (None where there are none), and what
else there is to say in words (possibly none).
"""


class Status(StrEnum):
    EXACT = "exact"
    """Every support was looked at: lower and upper differ by rounding only, or the margin is a zero
    (`Margin`).
    """
    BOUNDED = "bounded"
    """Stopped early or numerically undecided: the truth is between lower and upper."""

    @classmethod
    def of(cls, lower: float, upper: float) -> Status:
        """What two bounds that hold say of a margin that is no zero."""
        return cls.EXACT if upper - lower <= EXACT_GAP * upper else cls.BOUNDED


class LowerFrom(StrEnum):
    SEARCH = "search"
    MATRIX = "the whole matrix"
    """σ_min of everything bounds every support."""
    COUPLINGS = "couplings"
    """No node can be a centre."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class SupportValue:
    """One node set with its smallest singular value and a unit vector that attains it (over all
    coordinates).
    """

    support: tuple[int, ...]
    value: float
    direction: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.direction.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a computation may say of its minimum, in the caller's units."""

    value: float
    lower: float
    upper: float
    status: Status

    @classmethod
    def settled(
        cls, sigma: float, lower: float, upper: float, *, zero: bool, scale: float, exponent: int, sure: bool = True
    ) -> Bounds:
        """From what was computed (σ) and proven, all in units of 2^exponent; `scale` is the longest
        column.

        `zero`: floats take σ for zero. They are believed where the witness's residual `upper` is
        tiny as well. `sure`: the search has ended, so that bounds that meet are exact.
        """
        above = scaled_above(upper, exponent)
        if zero and upper <= RESIDUAL * scale and above <= RESIDUAL:
            return cls(0.0, 0.0, above, Status.EXACT)
        if zero:
            return cls(0.0, 0.0, above, Status.BOUNDED)
        lower = min(lower, upper)
        value = min(max(sigma, lower), upper)
        status = Status.of(lower, upper) if sure else Status.BOUNDED
        return cls(math.ldexp(value, exponent), scaled_below(lower, exponent), above, status)


@dataclass(frozen=True, slots=True, repr=False)
class Margin:
    """γ over supports of at most `support_size` nodes.

    `lower` and `upper` hold in exact arithmetic for the matrix as given; `value` is `upper` rounded
    to nearest. A zero margin has `value` and `lower` 0.0: with `upper` 0.0 when the columns of the
    support are dependent in exact rational arithmetic (`direction` is then the exact null vector,
    rounded), and with `upper` the witness's own tiny residual (at most 1e-9, absolute and relative
    to the longest column) where only the paper's rule for a numerical zero is met. Where floats
    find a zero and the residual is larger, rows are too far apart for them: `value` is 0.0, which
    promises least, and the status is bounded.
    """

    value: float
    lower: float
    upper: float
    support: tuple[int, ...]
    direction: NDArray[np.float64]  # (coordinates,), unit norm, supported on `support`
    status: Status
    method: str
    support_size: int
    groups: NodeColumns
    tested: int = 0
    """Supports and subtrees that were looked at one by one; the rest was excluded by bounds."""
    lower_from: LowerFrom = LowerFrom.SEARCH
    """What proved `lower`: the search, or what says more than the search did in its time."""

    def __post_init__(self) -> None:
        self.direction.setflags(write=False)
        if not 0.0 <= self.lower <= self.upper:
            raise AssertionError(f"bounds out of order: {self.lower} > {self.upper}")

    def __repr__(self) -> str:
        found = f"{self.value:.6g}" if self.status == "exact" else f"between {self.lower:.6g} and {self.upper:.6g}"
        nodes = ", ".join(map(str, self.support[:20])) + (" …" if len(self.support) > 20 else "")
        return f"Margin({found}, {self.status}, support ({nodes}), {self.method})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"

    @property
    def k(self) -> int:
        """The corruption budget this margin speaks of: supports hold 2k nodes."""
        return self.support_size // 2

    @property
    def zero(self) -> bool:
        return self.value == 0.0

    def indistinguishable_pair(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Two errors e₁, e₂ on at most half the support each, with e₁ − e₂ the witness: at γ = 0,
        one syndrome.
        """
        half = (len(self.support) + 1) // 2
        first = np.zeros_like(self.direction)
        for node in self.support[:half]:
            first[self.groups[node]] = self.direction[self.groups[node]]
        return first, first - self.direction
