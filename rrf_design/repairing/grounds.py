"""On what grounds a repair speaks: the goal, the margin it asks for, what is assumed and how sure that is.

All of it is of the problem, its design and its radius, not of the answers: ten thousand fields of one design share one object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rrf_design.certificates.checker.noise import joint_confidence
from rrf_design.goal import Goal
from rrf_design.verdict import assumed

if TYPE_CHECKING:
    from rrf_design.noise import Radius
    from rrf_design.problem import Problem
    from rrf_design.repairing.contract import Task


@dataclass(frozen=True, slots=True)
class Grounds:
    """Of one problem with one radius; the design, with its k and what is erased, is known to whoever keeps them."""

    problem: Problem
    radius: Radius | None
    goal: Goal
    wanted: float | None
    """The margin that the goal asks for; None where it asks for none, or where none would do."""
    assumes: str
    """The premise of a verdict, in words."""
    sure: float | None
    """The probability that radius and rates hold; None where they are declared."""

    @classmethod
    def of(cls, task: Task) -> Grounds:
        operator, radius = task.operator, task.radius
        goal = Goal.of(task.problem)
        wish = None if radius is None else goal.wanted(radius)
        others = bool(operator.premise.suspects.intersection(operator.block_ids))
        noise = "" if radius is None else radius.words(others=others)
        return cls(
            problem=task.problem,
            radius=radius,
            goal=goal,
            wanted=None if wish == float("inf") else wish,
            assumes=assumed(operator, task.k, noise, unread={operator.node_ids[i] for i in task.erased}),
            sure=joint_confidence(None if radius is None else radius.confidence, operator.premise.sure),
        )

    def hold_for(self, task: Task) -> bool:
        """Whether another field of the same design has the very same problem and radius."""
        return task.problem is self.problem and task.radius is self.radius
