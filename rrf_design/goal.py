"""What is wanted of a design, and whether it is reached: one goal, one tolerance, one answer for
every verb.

A target is a margin: it is reached when what is certain of the margin, uncertainty of relations
subtracted, is at least that. δ is an error: it is reached when the promised bound 2ε'/γ is at most
δ, with the radius ε' of the design itself (`rrf_design.noise`). Without either, any positive margin
will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.noise import Radius
    from rrf_design.problem import Problem

POSITIVE = 1e-6
"""A margin that stands for "positive" where one must be asked for: smaller ones promise a million
times the noise.
"""
REACHED = 1e-9
"""A bound within this relative distance of what is wanted reaches it: what is proven is a hair
below what is true.
"""


CERTAIN = "with declared uncertainty taken off"
"""Which margin a target is held against: what the uncertainty of relations leaves of γ."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The margin to reach and the error that is acceptable; None where nothing is asked."""

    target: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.target is not None and not 0.0 <= self.target < inf:
            raise InputError(f"target: must be a number of at least 0, not {self.target!r}")
        if self.delta is not None and not 0.0 < self.delta < inf:
            raise InputError(f"delta: must be a number above 0, not {self.delta!r}")

    @classmethod
    def of(cls, problem: Problem) -> Goal:
        return cls(problem.target, problem.delta)

    @property
    def named(self) -> bool:
        return self.target is not None or self.delta is not None

    def wanted(self, radius: Radius) -> float | None:
        """The margin that a design with this radius must have: the larger of the target and 2ε'/δ.

        None where nothing is asked; infinite where δ can't be promised because nothing bounds the
        field.
        """
        margins = [] if self.target is None else [self.target]
        if self.delta is not None:
            spare = self.delta - radius.tail
            margins.append(inf if radius.total is None or spare <= 0.0 else 2.0 * radius.total / spare)
        return max(margins, default=None)

    def reached(self, *, lower: float, robust_lower: float, radius: Radius) -> bool:
        """Whether proven margins are enough before any answer is seen: `met` by the bound that the
        radius gives.
        """
        return self.met(lower=lower, robust_lower=robust_lower, bound=radius.bound(lower))

    def met(self, *, lower: float, robust_lower: float, bound: float | None) -> bool:
        """Whether proven margins and a proven bound on the error are enough.

        `lower` is nominal, `robust_lower` what relations' uncertainty leaves of it. A bound holds
        whatever is left of the margin: the uncertainty is in its radius. So δ alone asks for the
        bound alone.
        """
        if lower <= 0.0 or (self.delta is None and robust_lower <= 0.0):
            return False
        if self.target is not None and not reaches(robust_lower, self.target):
            return False
        return self.delta is None or (bound is not None and bound <= self.delta * (1 + REACHED))

    def words(self, *, uncertain: bool = False) -> str:
        """The goal as the end of "it reaches ...": the margin 0.5, an error of at most 0.1.

        `uncertain`: relations are, so that the margin that counts is not γ itself.
        """
        figure = f" {CERTAIN}" if uncertain else ""
        parts = [] if self.target is None else [f"the margin {self.target:.6g}{figure}"]
        if self.delta is not None:
            parts.append(f"an error of at most {self.delta:g}")
        return " and ".join(parts) or "a positive margin"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a design stands before any answer is seen: its certain margins, its radius, and the
    goal held against them.
    """

    goal: Goal
    k: int
    lower: float
    robust_lower: float
    radius: Radius

    @property
    def wanted(self) -> float | None:
        margin = self.goal.wanted(self.radius)
        return None if margin == inf else margin

    @property
    def reached(self) -> bool:
        return self.goal.reached(lower=self.lower, robust_lower=self.robust_lower, radius=self.radius)

    @property
    def error_bound(self) -> float | None:
        """2ε'/γ, and the tail: no repair of at most k wrong answers is further off; None where
        nothing can be promised.
        """
        return self.radius.bound(self.lower) if self.radius.declared or self.radius.spread else None

    def compared(self) -> str:
        """Each figure that the goal is held against, by its name, beside what is wanted of it; as
        what follows γ.
        """
        parts = []
        if self.goal.target is not None:
            certain = f"{self.robust_lower:.6g} {CERTAIN}, " if self.robust_lower < self.lower else ""
            parts.append(f"{certain}wanted {self.goal.target:.6g}")
        if self.goal.delta is not None:
            bound = self.radius.bound(self.lower)
            promised = "no error is promised" if bound is None else f"the promised error is {bound:.6g}"
            parts.append(f"{promised}, wanted at most {self.goal.delta:.6g}")
        return "; ".join(parts)

    def words(self) -> str:
        """What is reached or missed, in a sentence."""
        if self.reached:
            return f"This reaches {self.goal.words()}: proven."
        if self.goal.delta is not None and self.radius.total is None:
            return (
                "No error can be promised before the run: relations are uncertain, and nothing bounds the true answers;"
                " give their nodes a range, or the problem an amplitude."
            )
        return f"This does not reach {self.goal.words()}."

    def to_json(self) -> dict[str, Any]:
        return {
            "wanted": self.wanted,
            "reached": self.reached,
            "epsilon": self.radius.total,
            "robust_lower": self.robust_lower,
            "error_bound": self.error_bound,
        }


def reaches(value: float, wanted: float | None) -> bool:
    """A proven margin is enough: at least what is wanted, or positive where nothing is."""
    return value > 0.0 if wanted is None else value >= wanted * (1 - REACHED)
