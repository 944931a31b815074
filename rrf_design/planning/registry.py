"""Planners by name, and the one call that most users need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from rrf_design.bundles import MEANS, Backend, Measure, bundled, without_infinity
from rrf_design.errors import InputError
from rrf_design.goal import Goal
from rrf_design.itemwise import for_each_item
from rrf_design.market import exact
from rrf_design.planning.contract import Order, Plan, Planner
from rrf_design.planning.reaching import nominal, reach
from rrf_design.planning.repeats import repeatable, weigh

if TYPE_CHECKING:
    from rrf_design.problem import Problem

AUTO_SECONDS = 60.0


def _greedy() -> Planner:
    from rrf_design.planning.greedy import Greedy

    return Greedy()


def _lookahead() -> Planner:
    from rrf_design.planning.greedy import Greedy

    return Greedy("lookahead", pairs=True)


def _local() -> Planner:
    from rrf_design.planning.local import Local

    return Local()


def _optimal() -> Planner:
    from rrf_design.planning.optimal import Optimal

    return Optimal()


def _witness_cuts() -> Planner:
    from rrf_design.planning.optimal import Optimal

    return Optimal("witness-cuts", hulls=False)


def _baseline(name: str) -> Callable[[], Planner]:
    def make() -> Planner:
        from rrf_design.planning.baselines import baseline

        return baseline(name)

    return make


PLANNERS: dict[str, Callable[[], Planner]] = {
    "greedy": _greedy,
    "lookahead": _lookahead,
    "local": _local,
    "optimal": _optimal,
    "witness-cuts": _witness_cuts,
    **{name: _baseline(name) for name in ("margin", "random", "degree", "rank", "trace", "logdet", "eopt", "qr")},
}


@cache
def _offered() -> Mapping[str, EntryPoint]:
    """Planners of other packages: entry points of the group ``rrf_design.planners``, each a class or function without arguments."""
    return {entry.name: entry for entry in entry_points(group="rrf_design.planners") if entry.name not in PLANNERS}


def planner(name: str, *, solver: str = "ortools") -> Planner:
    """A planner by name; `solver` is the master's front end where there is one."""
    if name in _offered():
        return _foreign(name)
    if name not in PLANNERS:
        raise InputError(f"method: {name!r} is not one of auto, {', '.join([*PLANNERS, *_offered()])}")
    if name == "optimal" and solver != "ortools":
        from rrf_design.planning.optimal import Optimal

        return Optimal(solver=solver)
    return PLANNERS[name]()


def _foreign(name: str) -> Planner:
    try:
        found: Planner = _offered()[name].load()()
    except Exception as error:  # another package's code: whatever it raises, the caller needs one line
        raise InputError(f"method: the package of {name!r} can't be loaded ({error})") from None
    return found


@bundled(measure=Measure, backend=Backend)
@for_each_item("rrf_design.handover", "plan_dataset")
def plan(
    problem: Problem,
    *,
    budget: float | None = None,
    target: float | None = None,
    method: str = "auto",
    n_jobs: int | None = None,
    time_limit: float | None = None,
    measure: Measure | None = None,
    backend: Backend | None = None,
) -> Plan:
    """What to buy: the largest margin within a budget, or the cheapest design that reaches a target.

    Of a data set, for every item under one budget (`plan_dataset`). Without budget and target the problem's own are used: its budget, and the margin that its target and its δ ask for
    (`rrf_design.goal`). With both, the cheapest design within the budget. method "auto" tries to
    prove optimality for a minute, or as long as the time limit says, and the plan states how far it came; it is greedy on
    fields of thousands of coordinates. `measure` says which margin is meant (k, objective), `backend` how the work is done; its
    `progress` is told the bounds so far: of the margin, or of the cost where there is a target.

    Returns a `Plan`: `selected`, `cost`, `gamma`, a proven `upper_bound` and `gap`, `status` (optimal, feasible, infeasible), and
    one `trajectory` entry per purchase with the witness it was made for.

    >>> import rrf_design as rrf
    >>> problem = rrf.Problem(
    ...     k=1,
    ...     epsilon=0.1,
    ...     nodes=[{"id": "plain"}, {"id": "reworded"}, {"id": "capital"}],
    ...     relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
    ...     anchors=[
    ...         {"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0},
    ...         {"id": "atlas", "node": "capital", "value": 1.0, "cost": 2.0},
    ...     ],
    ... )
    >>> found = rrf.plan(problem, budget=3.0)
    >>> found.selected, found.cost, found.status.value
    (('calculator', 'atlas'), 3.0, 'optimal')
    """
    from rrf_design.files import digest
    from rrf_design.planning.arena import Arena
    from rrf_design.planning.proof.weak import DENSE

    means = Backend.of(backend, "plan", *MEANS, n_jobs=n_jobs, time_limit=time_limit)
    which = measure or Measure()
    objective, time_limit = which.objective, means.time_limit
    budget, wish = asked(problem, budget, target)
    if which.jointly:
        return _jointly(problem, which, method, budget=budget, wish=wish)
    if objective is None and wish is not None and wish.target is None:
        objective = nominal(problem)  # an error is held against the nominal margin (docs/algorithms.md, fact 17)
    if method == "auto":
        method = "optimal" if problem.whole.shape[1] <= DENSE else "greedy"
        if method == "optimal" and time_limit is None:
            time_limit = AUTO_SECONDS
    chosen = planner(method, solver=means.front_end)

    def solve(asked: Problem, paid: Fraction) -> Plan:
        left = None if budget is None else float(exact(budget) - paid)
        order = Order(left, None, without_infinity(time_limit), means.seed, means.n_jobs, means.progress)
        return reach(Arena(asked, k=which.k, objective=objective), chosen, order, wish)

    if wish is not None and wish.delta is not None and repeatable(problem):
        return replace(weigh(problem, wish, solve, budget=budget), problem=problem.name, digest=digest(problem))
    return solve(problem, Fraction(0))


def _jointly(problem: Problem, which: Measure, method: str, *, budget: float | None, wish: Goal | None) -> Plan:
    from rrf_design.planning.jointly import joint_plan

    if method not in ("auto", "optimal"):
        raise InputError(f"method: {method!r} does not go with jointly, which tries every selection; leave one out")
    if which.objective not in (None, "gamma_sigma"):
        raise InputError(f"objective: {which.objective} does not go with jointly, which is about γ_Σ; leave one out")
    return joint_plan(problem, k=which.k, budget=budget, wish=wish)


def asked(problem: Problem, budget: float | None, target: float | None) -> tuple[float | None, Goal | None]:
    """Budget and goal as asked for, else as the problem says; InputError when neither says anything."""
    wish = None if target is None else Goal(float(target))
    if budget is None and target is None:
        budget, wish = problem.budget, Goal.of(problem)
        wish = wish if wish.named else None
        if budget is None and wish is None:
            raise InputError(
                "plan: neither a budget nor a target is given; pass one (--budget, --target), or declare budget, target"
                " or delta in [problem]"
            )
    if budget is not None and not (0.0 <= float(budget) < float("inf")):
        raise InputError(f"budget: must be a number of at least 0, not {budget!r}")
    return budget, wish
