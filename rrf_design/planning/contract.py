"""What a planner is asked, and what it answers.

The design problem (paper, "Design problem"): choose purchases Q within a budget so that γ_k(B(Q)) is largest, or the
cheapest Q that reaches a target. Every planner, from random to provably optimal, is one function object with one
method and returns a `Plan`: the design, its exact margin, and a proven bound on what any design could reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from rrf_design.goal import REACHED as REACHED
from rrf_design.goal import reaches

if TYPE_CHECKING:
    from rrf_design.goal import Standing
    from rrf_design.planning.arena import Arena
    from solvers.result import Progress

OPTIMALITY = 1e-7  # a plan within this relative distance of its bound is called optimal; the gap is always stated


class PlanStatus(StrEnum):
    OPTIMAL = "optimal"
    """No design does better by more than the stated gap (at most 1e-7): proven."""
    FEASIBLE = "feasible"
    """A valid design; the gap says how far a better one could be."""
    INFEASIBLE = "infeasible"
    """The target is out of reach: proven. The plan then is the best that the money can buy."""


class Objective(StrEnum):
    GAMMA = "gamma"
    """γ_k of the rows with their weights, as if every block were equally noisy."""
    GAMMA_SIGMA = "gamma_sigma"
    """γ_k,Σ: rows whitened by their declared noise, so that the margin is signal relative to noise."""
    ROBUST = "robust"
    """min over supports of σ_min(B_S) − η_S, whitened: what is left for certain when blocks are off by their radii."""


@dataclass(frozen=True, slots=True)
class Step:
    """One purchase: what it cost with the queries it opened, the witness it attacks, and the margin after it."""

    block: str
    cost: float
    gamma: float
    support: tuple[str, ...]
    witness: Mapping[str, tuple[float, ...]]
    energy: float
    """‖C_j h‖² of the witness h before the purchase (over the null space of the worst support at margin zero)."""
    opened: tuple[str, ...] = ()
    """Queries asked for this block's sake."""

    def to_json(self) -> dict[str, Any]:
        return {
            "block": self.block,
            "cost": self.cost,
            "gamma": self.gamma,
            "support": list(self.support),
            "witness": {name: list(part) for name, part in self.witness.items()},
            "energy": self.energy,
            "opened": list(self.opened),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What to buy, how good it is, and how far from the best possible.

    `upper_bound` bounds the objective of every design that the budget and the rules admit; without a budget, of every
    design. `gap` is (upper_bound − value)/upper_bound; for a cheapest design it is (cost − cost_bound)/cost instead.
    Zero bounds mean: nothing above the numerical zero of 1e-10 is possible.
    """

    selected: tuple[str, ...]
    cost: float
    gamma: float
    upper_bound: float
    gap: float
    status: PlanStatus
    trajectory: tuple[Step, ...]
    value: float
    """The objective of the design; equals `gamma` unless the objective is robust."""
    objective: Objective
    k: int
    method: str
    budget: float | None = None
    target: float | None = None
    cost_bound: float | None = None
    """No design that costs less reaches the target; without a target, no cheaper design has the margin of this one."""
    gamma_lower: float = 0.0
    gamma_upper: float = 0.0
    support: tuple[str, ...] = ()
    witness: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The hardest direction that is left when everything selected has been bought."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Name of the problem, and below its digest: a plan for another problem is refused."""
    digest: str = ""
    wanted: float | None = None
    """What the problem's goal makes of this design: the margin it must have. The four are `rrf_design.goal.Standing`."""
    epsilon: float | None = None
    robust_lower: float | None = None
    error_bound: float | None = None
    owned_gamma: float | None = None
    """The objective before anything is bought: where the trajectory starts."""
    repeats: Mapping[str, int] = field(default_factory=dict)
    """Nodes that are asked more often than the problem says, and how often: part of the cost, and of ε."""
    stands: bool | None = None
    """Whether the design reaches the problem's own goal, or has any margin where it has none; None where that was not asked."""

    def with_standing(self, standing: Standing) -> Plan:
        told = standing.to_json()
        taken = {name: told[name] for name in ("wanted", "epsilon", "robust_lower", "error_bound")}
        return replace(self, **taken, stands=standing.reached)

    @property
    def reached(self) -> bool:
        """Whether the target is met; for a plan that has none, whether the design reaches the problem's own goal, as every verb says."""
        return self.stands is not False if self.target is None else self.met

    @property
    def met(self) -> bool:
        """Whether the plan is what was ordered: its target is met; without a target there is none to miss."""
        return self.target is None or (self.status is not PlanStatus.INFEASIBLE and reaches(self.value, self.target))

    @property
    def least_cost(self) -> bool:
        """Whether it is proven that nothing cheaper is as good: reaches the target, or has this margin."""
        return self.cost == 0.0 or (self.cost_bound is not None and self.cost_bound >= self.cost)

    @property
    def left_over(self) -> float | None:
        return None if self.budget is None else max(0.0, self.budget - self.cost)

    def to_json(self) -> dict[str, Any]:
        return {
            "selected": list(self.selected),
            "cost": self.cost,
            "gamma": self.gamma,
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "status": str(self.status),
            "trajectory": [step.to_json() for step in self.trajectory],
            "value": self.value,
            "objective": str(self.objective),
            "k": self.k,
            "method": self.method,
            "budget": self.budget,
            "target": self.target,
            "cost_bound": self.cost_bound,
            "least_cost": self.least_cost,
            "gamma_lower": self.gamma_lower,
            "gamma_upper": self.gamma_upper,
            "support": list(self.support),
            "witness": {name: list(part) for name, part in self.witness.items()},
            "notes": list(self.notes),
            "problem": self.problem,
            "digest": self.digest,
            "wanted": self.wanted,
            "reached": self.reached,
            "stands": self.stands,
            "epsilon": self.epsilon,
            "robust_lower": self.robust_lower,
            "error_bound": self.error_bound,
            "owned_gamma": self.owned_gamma,
            "repeats": dict(self.repeats),
        }


@dataclass(frozen=True, slots=True)
class Order:
    """The most that may be spent (None: no limit), the margin to reach (None: as large as possible), and the means."""

    budget: float | None = None
    target: float | None = None
    time_limit: float | None = None
    seed: int = 0
    n_jobs: int | None = None
    progress: Progress | None = None
    """Told the proven lower and upper bound so far: of the objective, or of the cost where there is a target."""


class Planner(Protocol):
    """One method. A planner keeps no state between calls; whatever it learns (cuts) it leaves in the arena's pool."""

    @property
    def name(self) -> str: ...

    def plan(self, arena: Arena, goal: Order) -> Plan:
        """The best design this planner finds for the goal; the arena's problem is never changed."""
        ...
