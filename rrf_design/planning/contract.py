"""What a planner is asked, and what it answers.

The design problem (paper, "Design problem"): choose purchases Q within a budget so that γ_k(B(Q))
is largest, or the cheapest Q that reaches a target. Every planner, from random to provably optimal,
is one function object with one method and returns a `Plan`: the design, its exact margin, and a
proven bound on what any design could reach.

A plan is written as a document: JSON with a format name, a version and the digest of its problem.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from rrf_design._shown import ShownRows, axes_of
from rrf_design.documents import checked, read, sealed, write
from rrf_design.errors import InputError, Refused
from rrf_design.goal import REACHED as REACHED
from rrf_design.goal import reaches

if TYPE_CHECKING:
    from rrf_design.goal import Standing
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.problem import Problem
    from solvers.result import Progress

OPTIMALITY = 1e-7  # a plan within this relative distance of its bound is called optimal; the gap is always stated


def plain(value: Any) -> Any:
    """A result as JSON holds it: dataclasses and mappings as objects, tuples as lists, enums as
    their words.
    """
    if is_dataclass(value):
        return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, StrEnum) else value


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
    """γ_k,Σ: rows whitened by their declared noise, so that the margin is signal relative to
    noise.
    """
    ROBUST = "robust"
    """min over supports of σ_min(B_S) − η_S, whitened: what is left for certain when blocks are off
    by their radii.
    """


class Aim(StrEnum):
    """What money is spent for; 0.2 called the first two `smallest` and `count`."""

    WORST = "worst"
    """The smallest margin is as large as possible."""
    REACHED = "reached"
    """As many components (or items) as possible reach the goal."""
    LEXIMIN = "leximin"
    """The smallest margin is as large as possible, then the next, and so on."""

    @classmethod
    def _missing_(cls, value: object) -> Aim | None:
        return {"smallest": cls.WORST, "count": cls.REACHED}.get(str(value))

    @classmethod
    def named(cls, value: Aim | str) -> Aim:
        """The aim of this name; InputError for what is none."""
        try:
            return cls(value)
        except ValueError:
            raise InputError(f"aim: {value!r} is not one of {', '.join(cls)}") from None


@dataclass(frozen=True, slots=True)
class ComponentShare:
    """A part of the field that no block ties to another, and what a plan makes of it."""

    nodes: tuple[str, ...]
    gamma: float
    reached: bool
    """It has the margin of the goal: the target, else 2ε/δ, else any."""
    cost: float


@dataclass(frozen=True, slots=True)
class Step:
    """One purchase: what it cost with the queries it opened, the witness it attacks, and the margin
    after it.
    """

    block: str
    cost: float
    gamma: float
    support: tuple[str, ...]
    witness: Mapping[str, tuple[float, ...]]
    energy: float
    """‖C_j h‖² of the witness h before the purchase (over the null space of the worst support at
    margin zero).
    """
    opened: tuple[str, ...] = ()
    """Queries asked for this block's sake."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan(ShownRows):
    """What to buy, how good it is, and how far from the best possible.

    `upper_bound` bounds the objective of every design that the budget and the rules admit; without
    a budget, of every design. `gap` is (upper_bound − value)/upper_bound; for a cheapest design it
    is (cost − cost_bound)/cost instead. Zero bounds mean: nothing above the numerical zero of 1e-10
    is possible.
    """

    selected: tuple[str, ...]
    cost: float
    gamma: float
    upper_bound: float
    gap: float
    status: PlanStatus
    trajectory: tuple[Step, ...]
    value: float
    """The objective of the design; equals `gamma` unless the objective is robust. Where `aim` is
    `reached`, how many components are.
    """
    objective: Objective
    k: int
    method: str
    budget: float | None = None
    target: float | None = None
    cost_bound: float | None = None
    """No design that costs less reaches the target; without a target, no cheaper design has the
    margin of this one.
    """
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
    """What the problem's goal makes of this design: the margin it must have.

    The four are `rrf_design.goal.Standing`.
    """
    epsilon: float | None = None
    robust_lower: float | None = None
    error_bound: float | None = None
    owned_gamma: float | None = None
    """The objective before anything is bought: where the trajectory starts."""
    repeats: Mapping[str, int] = field(default_factory=dict)
    """Nodes that are asked more often than the problem says, and how often: part of the cost, and
    of ε.
    """
    aim: Aim = Aim.WORST
    components: tuple[ComponentShare, ...] = ()
    """What the design makes of each component of the field; none where they were not told apart."""
    stands: bool | None = None
    """Whether the design reaches the problem's own goal, or has any margin where it has none; None
    where that was not asked.
    """

    def with_standing(self, standing: Standing) -> Plan:
        return replace(
            self,
            wanted=standing.wanted,
            epsilon=standing.radius.total,
            robust_lower=standing.robust_lower,
            error_bound=standing.error_bound,
            stands=standing.reached,
        )

    @property
    def reached(self) -> bool:
        """Whether the target is met; for a plan that has none, whether the design reaches the
        problem's own goal, as every verb says.
        """
        return self.stands is not False if self.target is None else self.met

    @property
    def met(self) -> bool:
        """Whether the plan is what was ordered: its target is met; without a target there is none
        to miss.
        """
        if self.target is None:
            return True
        if self.aim is Aim.REACHED:
            return all(one.reached for one in self.components)
        return self.status is not PlanStatus.INFEASIBLE and reaches(self.value, self.target)

    @property
    def least_cost(self) -> bool:
        """Whether it is proven that nothing cheaper is as good: reaches the target, or has this
        margin.
        """
        return self.cost == 0.0 or (self.cost_bound is not None and self.cost_bound >= self.cost)

    @property
    def left_over(self) -> float | None:
        return None if self.budget is None else max(0.0, self.budget - self.cost)

    def _line(self) -> str:
        bought = ", ".join(self.selected) or "nothing"
        return f"{self.status}: γ_{self.k} = {self.gamma:.6g} for {self.cost:g}, buys {bought}"

    def _records(self) -> Iterator[dict[str, Any]]:
        for step in self.trajectory:
            yield {"block": step.block, "cost": step.cost, "gamma": step.gamma, "support": list(step.support)}

    def plot(self, axes: Any = None) -> Any:
        """The margin after each purchase against the money spent, on matplotlib axes."""
        spent = [0.0, *accumulate(step.cost for step in self.trajectory)]
        start = self.owned_gamma if self.owned_gamma is not None else 0.0
        drawn = axes_of(axes, across="cost", up=f"margin γ_{self.k}")
        drawn.step(spent, [start, *(step.gamma for step in self.trajectory)], where="post", marker="o")
        return drawn

    def to_json(self) -> dict[str, Any]:
        return {**plain(self), "least_cost": self.least_cost, "reached": self.reached}


@dataclass(frozen=True, slots=True)
class Order:
    """The most that may be spent (None: no limit), the margin to reach (None: as large as
    possible), and the means.
    """

    budget: float | None = None
    target: float | None = None
    time_limit: float | None = None
    seed: int = 0
    n_jobs: int | None = None
    progress: Progress | None = None
    """Told the proven lower and upper bound so far: of the objective, or of the cost where there is
    a target.
    """


class Planner(Protocol):
    """One method.

    A planner keeps no state between calls; whatever it learns (cuts) it leaves in the evaluator's
    pool.
    """

    @property
    def name(self) -> str: ...

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        """The best design this planner finds for the goal; the evaluator's problem is never
        changed."""
        ...


def to_document(plan: Plan) -> dict[str, Any]:
    return sealed("rrf-plan", plan.to_json())


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan whole or not at all."""
    write(path, to_document(plan))


def read_plan(path: str | os.PathLike[str], problem: Problem | None = None) -> Plan:
    """Read a plan; with a problem, Refused unless the plan was made for exactly that problem."""
    document = read(path, what="plan")
    try:
        return _from_document(document, problem)
    except (InputError, Refused) as error:
        raise type(error)(f"{path}: {error}") from None


def _from_document(document: Any, problem: Problem | None = None) -> Plan:
    try:
        plan = _plan(dict(checked(document, "rrf-plan", what="plan")))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the plan is damaged ({type(error).__name__}: {error})") from None
    if problem is not None:
        from rrf_design.files import digest

        if plan.digest != digest(problem):
            raise Refused(
                f"the plan was made for {plan.problem!r} with digest {plan.digest[:12]}, not for {problem.name!r} with"
                f" {digest(problem)[:12]}; plan again"
            )
        problem.resolve(plan.selected)
    return plan


def _plan(document: dict[str, Any]) -> Plan:
    told = {key: value for key, value in document.items() if key not in ("format", "version", "least_cost", "reached")}
    if not isinstance(told["digest"], str) or not isinstance(told["problem"], str):
        raise ValueError("digest and problem should be texts")
    told["selected"] = tuple(str(name) for name in told["selected"])
    told["status"] = PlanStatus(told["status"])
    told["objective"] = Objective(told["objective"])
    told["aim"] = Aim(told.get("aim", Aim.WORST))
    told["components"] = tuple(
        ComponentShare(**{**one, "nodes": tuple(one["nodes"])}) for one in told.get("components", ())
    )
    told["trajectory"] = tuple(_step(step) for step in told["trajectory"])
    told["support"] = tuple(told["support"])
    told["notes"] = tuple(told["notes"])
    told["repeats"] = {str(name): int(times) for name, times in told.get("repeats", {}).items()}
    told["witness"] = {name: tuple(part) for name, part in told["witness"].items()}
    for key in ("cost", "gamma", "upper_bound", "gap", "value"):
        told[key] = float(told[key])
    return Plan(**told)


def _step(step: dict[str, Any]) -> Step:
    return Step(
        block=step["block"],
        cost=float(step["cost"]),
        gamma=float(step["gamma"]),
        support=tuple(step["support"]),
        witness={name: tuple(part) for name, part in step["witness"].items()},
        energy=float(step["energy"]),
        opened=tuple(step["opened"]),
    )
