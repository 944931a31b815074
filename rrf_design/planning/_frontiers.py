"""The whole curve: how the best margin grows with money, exact at every step, with the cuts of one
step reused in the next.

From a point (cost, γ) the next one is the cheapest design with a larger margin, and then the best
design for that cost. Both are proven, so the points are exactly the undominated designs; under a
time limit the ones that are not are marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design._shown import ShownRows, axes_of
from rrf_design.arguments import seconds_of
from rrf_design.errors import InputError
from rrf_design.market import Mask, exact
from rrf_design.planning._optimal import PlanSearch, search_for
from rrf_design.planning._outcome import ZERO, starting_design
from rrf_design.planning.contract import Objective, Order, PlanStatus, plain
from rrf_design.planning.goals import nominal, repeatable
from rrf_design.planning.proof.bounds import bound_from_cuts
from rrf_design.planning.proof.master import front_end

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.planning.evaluator import Evaluator
    from rrf_design.problem import Problem
    from solvers.result import Progress

STEP = 1e-6  # margins closer than this (relatively) are one step of the curve


@dataclass(frozen=True, slots=True)
class Point:
    """The best margin that this much money buys.

    `upper_bound` holds for every design of at most this cost.
    """

    cost: float
    gamma: float
    selected: tuple[str, ...]
    status: PlanStatus
    upper_bound: float
    value: float
    gamma_lower: float | None = None
    """Proven about this design's own margin."""
    witness: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    repeats: Mapping[str, int] = field(default_factory=dict)
    """How often nodes are asked that are asked again for the money."""
    error_bound: float | None = None
    """Where asking again is on sale: the error that this design promises, with these repeats."""
    error_floor: float | None = None
    """And what no design and no repeats of at most this cost promise less than."""

    @classmethod
    def of(cls, confirmed: DesignMargin, *, cost: Fraction, selected: tuple[str, ...], **more: Any) -> Point:
        """The point of a design, with the margin that the exact engine proves of it."""
        told = {"upper_bound": confirmed.upper, "value": confirmed.value, "status": PlanStatus.OPTIMAL, **more}
        return cls(
            float(cost),
            confirmed.value,
            selected,
            gamma_lower=confirmed.lower,
            witness=confirmed.witness,
            **told,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Frontier(ShownRows):
    """Undominated designs by rising cost.

    `complete`: nothing beyond the last point has a larger margin: proven. Where asking again is on
    sale the curve is that of the promised error (`of_error`), over purchases and repeats together.
    """

    points: tuple[Point, ...]
    complete: bool
    k: int
    objective: Objective
    budget: float | None
    problem: str
    digest: str
    of_error: bool = False

    def best_within(self, budget: float) -> Point | None:
        """The point that a budget buys; None when even the first costs more."""
        return next((p for p in reversed(self.points) if exact(p.cost) <= exact(budget)), None)

    def _line(self) -> str:
        last = self.points[-1]
        end = "complete" if self.complete else "not complete"
        return f"{len(self.points)} designs, up to γ_{self.k} = {last.gamma:.6g} for {last.cost:g}, {end}"

    def _records(self) -> Iterator[dict[str, Any]]:
        for point in self.points:
            yield {
                "cost": point.cost,
                "gamma": point.gamma,
                "status": str(point.status),
                "selected": list(point.selected),
            }

    def plot(self, axes: Any = None) -> Any:
        """The best margin that each amount of money buys, on matplotlib axes."""
        drawn = axes_of(axes, across="cost", up=f"margin γ_{self.k}")
        drawn.step([p.cost for p in self.points], [p.gamma for p in self.points], where="post", marker="o")
        return drawn

    def to_json(self) -> dict[str, Any]:
        return dict(plain(self))


def frontier(
    problem: Problem,
    *,
    budget: float | None = None,
    most_points: int = 1000,
    k: int | None = None,
    objective: Objective | str | None = None,
    jointly: bool = False,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    front_end: str = "ortools",
    seed: int = 0,
    progress: Progress | None = None,
) -> Frontier:
    """Cost against best margin, from buying nothing up to the budget.

    A point (c, γ) is on the curve when max{γ_k(B(x)) : cost(x) ≤ c} = γ and no smaller cost has a
    margin as large. Where nodes may be asked `again`, and no objective is named, the curve is that
    of the promised error 2ε'/γ instead: what a larger margin and less noise do together, each point
    with its `repeats` and its `error_bound`.

    Parameters
    ----------
    problem
        The problem; what it owns is the first point.
    budget
        Where the curve ends; None: with everything bought.
    most_points
        How many points are looked for.
    k
        How many answers (or units) may be wrong; None: as the problem says.
    objective
        "gamma", "gamma_sigma" or "robust"; None: what the problem declares decides.
    jointly
        Whether held blocks of one `[[noise]]` covariance are whitened together in every selection.
    n_jobs
        Processes, as joblib counts them; the result does not depend on it.
    time_limit
        Seconds for the whole curve; what it leaves open is marked.
    front_end
        Of mixed-integer programs: "ortools", "pulp" or "pulp:NAME".
    seed
        Of whatever is random in the search.
    progress
        Told how far the margin is on its way to a bound on all of them, and in words what is proven
        so far.

    Returns
    -------
    A `Frontier` whose `points` each have `cost`, `gamma`, `selected` and `status`: every cost at
    which more becomes possible.

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
    >>> [(point.cost, point.selected) for point in rrf.frontier(problem).points]
    [(0.0, ()), (3.0, ('calculator', 'atlas'))]
    """
    from rrf_design.files import digest
    from rrf_design.planning.curves import error_curve
    from rrf_design.planning.evaluator import Evaluator

    if budget is not None and not budget >= 0:
        raise InputError(f"budget: must be a number of at least 0, not {budget!r}")
    if jointly:
        from rrf_design.planning._jointly import joint_frontier

        return joint_frontier(problem, k=k, objective=objective, budget=budget)
    of_error = objective is None and bool(repeatable(problem))
    evaluator = Evaluator(problem, k=k, objective=nominal(problem) if of_error else objective)
    order = Order(budget=budget, time_limit=seconds_of(time_limit), seed=seed, n_jobs=n_jobs)
    go = error_curve if of_error else walk
    points, complete = go(evaluator, order, solver=front_end, most_points=most_points, tell=progress)
    return Frontier(points, complete, evaluator.k, evaluator.objective, budget, problem.name, digest(problem), of_error)


def walk(
    evaluator: Evaluator,
    goal: Order,
    *,
    solver: str = "ortools",
    most_points: int = 1000,
    tell: Progress | None = None,
) -> tuple[tuple[Point, ...], bool]:
    """The points from buying nothing upwards, and whether the last one is proven to be the end."""
    start = starting_design(evaluator, goal)
    news = _News(tell)
    search = search_for(evaluator, replace(goal, progress=news), master=front_end(solver))
    money = None if goal.budget is None else exact(goal.budget)
    points = [_point(search, *_best_for(search, evaluator.market.cost(start), start))]
    while len(points) < most_points and not search.late():
        last = points[-1]
        news.walked(points, bound_from_cuts(evaluator, goal.budget))
        threshold = max(last.value * (1 + STEP), ZERO * evaluator.scale * 2)
        found = search.minimise(threshold, money, None)
        if found.impossible:
            return tuple(points), True
        if found.mask is None:
            break
        cost = evaluator.market.cost(found.mask)
        news.costs = f", best for {float(cost):g}"
        mask, upper = _best_for(search, cost, found.mask)
        points.append(_point(search, mask, upper, proven=found.bound >= cost))
    return tuple(points), False


class _News:
    """Words about a walk: the points so far, and the bounds of the step it is at, as the search
    tells them.
    """

    def __init__(self, tell: Progress | None) -> None:
        self.tell = tell
        self.fraction = 0.0
        self.words = ""
        self.costs = ""

    def walked(self, points: list[Point], top: float) -> None:
        last = points[-1]
        self.fraction = min(last.value / top, 1.0) if top > 0 else 1.0
        self.words = f"{len(points)} steps up to γ = {last.value:.6g} for {last.cost:g}, at most {top:.6g} in all"
        self.costs = ""
        if self.tell is not None:
            self.tell(self.fraction, None, self.words)

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        if self.tell is None or bounds is None:
            return
        lower, upper = bounds
        if self.costs or not self.words:
            step = f"{self.costs or 'best for nothing'} between {lower:.6g} and {upper:.6g}"
        else:
            step = f"; the next costs at least {lower:g}"
        self.tell(self.fraction, None, (self.words + step).lstrip(", "))


def _best_for(search: PlanSearch, cost: Fraction, incumbent: Mask) -> tuple[Mask, float]:
    """The best design of at most this cost and a bound on all of them, without purchases that do
    nothing.
    """
    mask, upper = search.maximise(cost, incumbent)
    return search.tidy(mask, search.evaluator.value(mask)), upper


def _point(search: PlanSearch, mask: Mask, upper: float, *, proven: bool = True) -> Point:
    evaluator = search.evaluator
    confirmed = evaluator.confirm(mask, n_jobs=search.goal.n_jobs)
    value = evaluator.confirm_value(mask, confirmed, n_jobs=search.goal.n_jobs)
    zero = value == 0.0 and upper <= ZERO * evaluator.scale * (1 + 1e-9)
    upper = 0.0 if zero else max(upper, value)
    closed = upper <= value * (1 + 1.01 * search.master.gap)
    return Point.of(
        confirmed,
        cost=evaluator.market.cost(mask),
        selected=evaluator.market.names(mask),
        status=PlanStatus.OPTIMAL if closed and proven else PlanStatus.FEASIBLE,
        upper_bound=upper,
        value=value,
    )
