"""Planners by name, and the one call that most users need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING

from rrf_design.errors import InputError
from rrf_design.planning.contract import Goal, Objective, Plan, Planner

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena
    from rrf_design.problem import Problem

AUTO_ITEMS = 400  # up to so many items a proof of optimality is worth trying
AUTO_SUPPORTS = 2_000_000
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
    **{name: _baseline(name) for name in ("margin", "random", "degree", "rank", "trace", "logdet", "eopt", "qr")},
}


def planner(name: str, *, solver: str = "ortools") -> Planner:
    """A planner by name; `solver` is the master's front end where there is one."""
    if name not in PLANNERS:
        raise InputError(f"method: {name!r} is not one of auto, {', '.join(PLANNERS)}")
    if name == "optimal" and solver != "ortools":
        from rrf_design.planning.optimal import Optimal

        return Optimal(solver=solver)
    return PLANNERS[name]()


def plan(
    problem: Problem,
    *,
    budget: float | None = None,
    target: float | None = None,
    method: str = "auto",
    k: int | None = None,
    objective: Objective | str | None = None,
    solver: str = "ortools",
    n_jobs: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    progress: Callable[[float, float], None] | None = None,
) -> Plan:
    """What to buy: the largest margin within a budget, or the cheapest design that reaches a target.

    Without budget and target the problem's own are used; a problem with epsilon and delta has the target 2ε/δ. With both,
    the cheapest design within the budget. method "auto" proves optimality where that is realistic (a minute unless a
    time limit is given) and is greedy on larger fields. `progress` is told the bounds so far: of the margin, or of the
    cost where there is a target.
    """
    from rrf_design.planning.arena import Arena

    budget, target = wanted(problem, budget, target)
    goal = Goal(budget, target, _seconds(time_limit), seed, n_jobs, progress)
    arena = Arena(problem, k=k, objective=objective)
    if method == "auto":
        method = "optimal" if provable(arena) else "greedy"
        if method == "optimal" and time_limit is None:
            goal = replace(goal, time_limit=AUTO_SECONDS)
    return planner(method, solver=solver).plan(arena, goal)


def provable(arena: Arena) -> bool:
    """Whether a proof of optimality is realistic for this field."""
    supports = comb(arena.n, min(arena.size, arena.n))
    return len(arena.market.items) <= AUTO_ITEMS and (arena.table is not None or supports <= AUTO_SUPPORTS)


def wanted(problem: Problem, budget: float | None, target: float | None) -> tuple[float | None, float | None]:
    """Budget and target as asked for, else as the problem says; InputError when neither says anything."""
    if budget is None and target is None:
        budget, target = problem.budget, problem.target
        if target is None and problem.delta is not None and problem.epsilon is not None:
            target = 2 * problem.epsilon / problem.delta
        if budget is None and target is None:
            raise InputError(
                "plan: neither a budget nor a target is given; pass one (--budget, --target), or declare budget, target,"
                " or epsilon with delta in [problem]"
            )
    for name, value in (("budget", budget), ("target", target)):
        if value is not None and not (0.0 <= float(value) < float("inf")):
            raise InputError(f"{name}: must be a number of at least 0, not {value!r}")
    return budget, target


def _seconds(time_limit: float | None) -> float | None:
    if time_limit is not None and not time_limit >= 0:
        raise InputError(f"time_limit: must be a number of seconds, not {time_limit!r}")
    return time_limit
