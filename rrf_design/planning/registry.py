"""Planners by name, and the one call that most users need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from math import inf
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from rrf_design.arguments import is_dataset, seconds_of
from rrf_design.errors import InputError
from rrf_design.goal import Goal
from rrf_design.market import exact
from rrf_design.noise import radius_of
from rrf_design.planning.contract import Aim, Objective, Order, Plan, Planner, PlanStatus
from rrf_design.planning.goals import nominal, reach, repeatable, weigh

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.questions import Dataset
    from rrf_design.tables import DatasetPlan
    from solvers.result import Progress

AUTO_SECONDS = 60.0


def _made(module: str, name: str, *arguments: Any, **settings: Any) -> Planner:
    """A planner whose module is imported when somebody asks for it."""
    made: Planner = getattr(import_module(f"rrf_design.planning.{module}"), name)(*arguments, **settings)
    return made


PLANNERS: dict[str, Callable[..., Planner]] = {
    "greedy": partial(_made, "_greedy", "Greedy"),
    "lookahead": partial(_made, "_greedy", "Greedy", "lookahead", pairs=True),
    "local": partial(_made, "_optimal", "Local"),
    "optimal": partial(_made, "_optimal", "Optimal"),
    "witness-cuts": partial(_made, "_optimal", "Optimal", "witness-cuts", hulls=False),
}


@cache
def _offered() -> Mapping[str, EntryPoint]:
    """Planners of other packages: entry points of the group ``rrf_design.planners``, each a class
    or function without arguments.
    """
    return {entry.name: entry for entry in entry_points(group="rrf_design.planners") if entry.name not in PLANNERS}


def planner(name: str, *, solver: str = "ortools") -> Planner:
    """A planner by name; `solver` is the master's front end where there is one."""
    if name in _offered():
        return _foreign(name)
    if name not in PLANNERS:
        raise InputError(f"method: {name!r} is not one of auto, {', '.join([*PLANNERS, *_offered()])}")
    return PLANNERS[name](**({"solver": solver} if name == "optimal" else {}))


def _foreign(name: str) -> Planner:
    try:
        found: Planner = _offered()[name].load()()
    except Exception as error:  # another package's code: whatever it raises, the caller needs one line
        raise InputError(f"method: the package of {name!r} can't be loaded ({error})") from None
    return found


class _Settings(TypedDict, total=False):
    """The keywords of `plan`, for its overloads."""

    budget: float | None
    target: float | None
    method: str
    aim: Aim | str | None
    k: int | None
    objective: Objective | str | None
    jointly: bool
    n_jobs: int | None
    time_limit: float | None
    front_end: str
    seed: int
    progress: Progress | None


@overload
def plan(problem: Problem, **settings: Unpack[_Settings]) -> Plan: ...


@overload
def plan(problem: Dataset, **settings: Unpack[_Settings]) -> DatasetPlan: ...


def plan(
    problem: Problem | Dataset,
    *,
    budget: float | None = None,
    target: float | None = None,
    method: str = "auto",
    aim: Aim | str | None = None,
    k: int | None = None,
    objective: Objective | str | None = None,
    jointly: bool = False,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    front_end: str = "ortools",
    seed: int = 0,
    progress: Progress | None = None,
) -> Any:
    """What to buy: the largest margin within a budget, or the cheapest design that reaches a
    target.

    Over 0/1 choices x of what is on sale, max γ_k(B(x)) subject to cost(x) ≤ budget; or min cost(x)
    subject to γ_k(B(x)) ≥ target. Without budget and target the problem's own are used: its budget,
    and the margin that its target and its δ ask for (`rrf_design.goal`). With both, the cheapest
    design within the budget. With a budget alone, where the problem's goal is an error δ, the
    promised error is made small instead of the margin large.

    Parameters
    ----------
    problem
        A problem; or a data set, for every item under one budget.
    budget
        What may be spent; None: no limit, or the problem's.
    target
        The margin to reach; None: as large as possible, or what the problem asks for.
    method
        "greedy", "optimal", "lookahead", "local", "witness-cuts" or a planner of another package.
        "auto" tries to prove optimality for a minute, or as long as the time limit says, and the
        plan states how far it came; it is greedy on fields of thousands of coordinates.
    aim
        "worst": the smallest margin is as large as possible. "reached": as many components of the
        field as possible reach the goal (the target, else 2ε/δ, else any margin), then their
        margins in leximin order, then the least cost. "leximin": that order alone. None: "worst",
        and where a budget can't raise the smallest margin "reached", which the plan then says.
    k
        How many answers (or units) may be wrong; None: as the problem says.
    objective
        "gamma", "gamma_sigma" or "robust"; None: what the problem declares decides.
    jointly
        Whether held blocks of one `[[noise]]` covariance are whitened together in every selection.
    n_jobs
        Processes, as joblib counts them; the result does not depend on it.
    time_limit
        Seconds; infinite: none.
    front_end
        Of mixed-integer programs: "ortools", "pulp" or "pulp:NAME".
    seed
        Of whatever is random in a planner.
    progress
        Told the bounds so far: of the margin, or of the cost where there is a target.

    Returns
    -------
    A `Plan`: `selected`, `cost`, `gamma`, a proven `upper_bound` and `gap`, `status` (optimal,
    feasible, infeasible), and one `trajectory` entry per purchase with the witness it was made for.
    Of a data set a `DatasetPlan`.

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
    if is_dataset(problem):
        from rrf_design.tables import plan_dataset

        return plan_dataset(
            problem,
            budget=budget,
            target=target,
            method=method,
            aim=aim,
            k=k,
            objective=objective,
            jointly=jointly,
            n_jobs=n_jobs,
            time_limit=time_limit,
            front_end=front_end,
            seed=seed,
            progress=progress,
        )
    from rrf_design.files import digest
    from rrf_design.planning._components import components_of, plan_components
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.planning.proof import DENSE

    seconds = seconds_of(time_limit)
    wanted = None if aim is None else Aim.named(aim)
    budget, goal = asked(problem, budget, target)
    if wanted in (Aim.REACHED, Aim.LEXIMIN) and (jointly or budget is None):
        raise InputError(
            f"aim: {wanted} does not go with jointly" if jointly else f"aim: {wanted} needs a budget to be shared out"
        )
    if jointly:
        return _jointly(problem, k, objective, method, budget=budget, goal=goal)
    if wanted is None and _by_error(problem, goal, objective, method):
        given = Order(budget, None, seconds, seed, n_jobs, progress)
        promising = _least_error(problem, given, k, planner("optimal", solver=front_end))
        if promising.error_bound is not None:
            return replace(promising, components=components_of(promising, problem, objective=None))
    if objective is None and goal is not None and goal.target is None:
        objective = nominal(problem)  # an error is held against the nominal margin (docs/algorithms.md, fact 17)
    if method == "auto":
        method = "optimal" if problem.whole.matrix.shape[1] <= DENSE else "greedy"
        if method == "optimal" and time_limit is None:
            seconds = AUTO_SECONDS
    chosen = planner(method, solver=front_end)

    def solve(asked: Problem, paid: Fraction) -> Plan:
        left = None if budget is None else float(exact(budget) - paid)
        order = Order(left, None, seconds, seed, n_jobs, progress)
        return reach(Evaluator(asked, k=k, objective=objective), chosen, order, goal)

    order = Order(budget, None, seconds, seed, n_jobs, progress)
    if wanted in (Aim.REACHED, Aim.LEXIMIN):
        return plan_components(problem, aim=wanted, k=k, objective=objective, order=order, goal=goal)
    if goal is not None and goal.delta is not None and repeatable(problem):
        return replace(weigh(problem, goal, solve, budget=budget), problem=problem.name, digest=digest(problem))
    found = solve(problem, Fraction(0))
    if wanted is None and goal is None and budget is not None:
        found = _beyond_the_worst(problem, found, order, objective)
    return found if found.components else replace(found, components=components_of(found, problem, objective=objective))


def _beyond_the_worst(problem: Problem, found: Plan, order: Order, objective: Objective | str | None) -> Plan:
    """Where money does not raise the smallest margin, what it does for the other components; the
    plan itself where it does, or where there are none.
    """
    from rrf_design.planning._components import MOST_NODES, plan_components, unraised

    start = found.owned_gamma or 0.0
    if (
        found.status is not PlanStatus.OPTIMAL
        or found.value > start * (1 + 1e-9) + 1e-12
        or len(problem.nodes) > MOST_NODES
    ):
        return found
    if not problem.resolve("all"):
        return found
    why = unraised(problem, found)
    try:
        other = plan_components(problem, aim=Aim.REACHED, k=found.k, objective=objective, order=order, goal=None)
    except InputError as error:
        return replace(found, notes=(*found.notes, f"{why} ({error})"))
    if len(other.components) < 2 or not other.selected:
        return replace(found, notes=(*found.notes, why))
    words = f"{why}; so the money goes to as many other components as it brings to the goal (aim reached)"
    return replace(other, notes=(words, *(note for note in other.notes if note not in found.notes)))


def _by_error(problem: Problem, goal: Goal | None, objective: Objective | str | None, method: str) -> bool:
    """Whether a budget is to be spent on the promised error: the problem's own goal is one, and
    neither another goal nor another means was asked for.
    """
    own = problem.delta is not None and problem.target is None and goal is None
    return own and objective is None and method in ("auto", "optimal")


def _least_error(problem: Problem, order: Order, k: int | None, chosen: Planner) -> Plan:
    """The plan whose promised error is least: of all designs where they are few; else of those with
    the largest margins, and where noise grows with what is held nothing more is claimed.
    """
    from rrf_design.planning.curves import least_error_plan
    from rrf_design.planning.evaluator import Evaluator

    if order.time_limit is None:
        order = replace(order, time_limit=AUTO_SECONDS)
    ends = [radius_of(problem, end) for end in problem.structure.ends()]
    evaluator = Evaluator(problem, k=k, objective=nominal(problem))
    alike = (ends[0].total, ends[0].tail) == (ends[1].total, ends[1].tail) and not repeatable(problem)
    if not alike and (found := least_error_plan(evaluator, order)) is not None:
        return found
    plans = [chosen.plan(evaluator, order)]
    if alike:
        return plans[0]
    plans.append(chosen.plan(Evaluator(problem, k=k), order))
    best = min(plans, key=lambda one: inf if one.error_bound is None else one.error_bound)
    note = "whether another design within the budget promises a smaller error was not decided"
    return replace(best, status=PlanStatus.FEASIBLE, notes=(*best.notes, note))


def _jointly(
    problem: Problem,
    k: int | None,
    objective: Objective | str | None,
    method: str,
    *,
    budget: float | None,
    goal: Goal | None,
) -> Plan:
    from rrf_design.planning._jointly import joint_plan

    if method not in ("auto", "optimal"):
        raise InputError(f"method: {method!r} does not go with jointly, which tries every selection; leave one out")
    return joint_plan(problem, k=k, objective=objective, budget=budget, goal=goal)


def asked(problem: Problem, budget: float | None, target: float | None) -> tuple[float | None, Goal | None]:
    """Budget and goal as asked for, else as the problem says; InputError when neither says
    anything.
    """
    goal = None if target is None else Goal(float(target))
    if budget is None and target is None:
        budget, goal = problem.budget, Goal.of(problem)
        goal = goal if goal.named else None
        if budget is None and goal is None:
            raise InputError(
                "plan: neither a budget nor a target is given; pass one (--budget, --target), or declare budget, target"
                " or delta in [problem]"
            )
    if budget is not None and not (0.0 <= float(budget) < float("inf")):
        raise InputError(f"budget: must be a number of at least 0, not {budget!r}")
    return budget, goal
