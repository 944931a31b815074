"""Many fields, one budget: a data set of items (docs/algorithms.md, fact 13: it separates).

For a fixed target the cheapest design of a data set is the cheapest design of every item, so each
item is reduced to its curve of undominated designs (`curves`), exactly, and one search over the
curves spends the money.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design._shown import ShownRows, axes_of
from rrf_design.arguments import seconds_of
from rrf_design.errors import BudgetError, InputError
from rrf_design.goal import reaches
from rrf_design.market import Mask, exact
from rrf_design.planning.contract import REACHED, Aim, Objective, Order, PlanStatus
from rrf_design.planning.curves import Curve, curves_of, shape
from rrf_design.planning.evaluator import Evaluator

if TYPE_CHECKING:
    from rrf_design.planning._frontiers import Point
    from rrf_design.problem import Problem

CHUNK = 64  # fields per task


@dataclass(frozen=True, slots=True)
class Share:
    """What one item gets out of the common budget."""

    name: str
    selected: tuple[str, ...]
    cost: float
    gamma: float
    reached: bool
    repeats: Mapping[str, int] = field(default_factory=dict)
    """How often nodes are asked that are asked again for the money."""


@dataclass(frozen=True, slots=True, repr=False)
class Portfolio(ShownRows):
    """One design per item.

    `value` is the smallest margin or the number of items at the target; no spending of the budget
    does better than `upper_bound`.
    """

    shares: tuple[Share, ...]
    cost: float
    value: float
    upper_bound: float
    status: PlanStatus
    aim: Aim
    budget: float
    target: float | None

    def _line(self) -> str:
        return f"{self.status}: {self.aim} = {self.value:.6g} over {len(self.shares)} fields for {self.cost:g}"

    def _records(self) -> Iterator[dict[str, Any]]:
        for share in self.shares:
            yield {
                "name": share.name,
                "selected": list(share.selected),
                "cost": share.cost,
                "gamma": share.gamma,
                "reached": share.reached,
            }

    def plot(self, axes: Any = None) -> Any:
        """The margin of every field against what is spent on it, on matplotlib axes."""
        drawn = axes_of(axes, across="cost", up="margin")
        drawn.plot([share.cost for share in self.shares], [share.gamma for share in self.shares], "o")
        return drawn

    def to_json(self) -> dict[str, Any]:
        return {
            "cost": self.cost,
            "value": self.value,
            "upper_bound": self.upper_bound,
            "status": str(self.status),
            "aim": str(self.aim),
            "budget": self.budget,
            "target": self.target,
            "items": [
                {"name": s.name, "selected": list(s.selected), "cost": s.cost, "gamma": s.gamma, "reached": s.reached}
                | ({"repeats": dict(s.repeats)} if s.repeats else {})
                for s in self.shares
            ],
        }


def portfolio(
    problems: Sequence[Problem],
    *,
    budget: float,
    aim: Aim | str = Aim.WORST,
    target: float | None = None,
    k: int | None = None,
    objective: Objective | str | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> Portfolio:
    """Spend one budget over many fields, exactly.

    With designs x_i of the fields and Σ cost(x_i) ≤ budget, max min_i γ_k(B_i(x_i)); or max #{i :
    γ_k(B_i(x_i)) ≥ target}.

    Parameters
    ----------
    problems
        The fields.
    budget
        What may be spent on all of them together.
    aim
        "worst" (the least margin as large as possible), "reached" (as many fields as possible at
        the target; without a target, at their own `delta`, by purchases and by asking again) or
        "leximin" (the least margin as large as possible, then the next, and so on).
    target
        The margin that "reached" counts.
    k
        How many answers (or units) may be wrong; None: as each problem says.
    objective
        "gamma", "gamma_sigma" or "robust"; None: what each problem declares decides.
    n_jobs
        Processes, as joblib counts them; the result does not depend on it.
    time_limit
        Seconds for each field that is too large to enumerate.
    seed
        Of whatever is random in the search.

    Returns
    -------
    A `Portfolio` with one share per field: what to buy, its cost and margin, and whether it reaches
    the target.

    >>> import rrf_design as rrf
    >>> anchors = [{"id": "x", "node": "a", "cost": 1.0}]
    >>> fields = [rrf.Problem(nodes=[{"id": "a"}], anchors=anchors) for _ in range(3)]
    >>> found = rrf.portfolio(fields, budget=2.0, aim="reached", target=0.5)
    >>> found.cost, sum(share.reached for share in found.shares)
    (2.0, 2)
    """
    from joblib import Parallel, delayed

    aim = _checked(aim, target, problems, budget)
    order = Order(budget=budget, time_limit=seconds_of(time_limit), seed=seed)
    if aim is Aim.REACHED and target is None:
        if objective is not None:
            raise InputError("objective: items' own goals are promised errors, which have one margin; leave it out")
        return _own_goals(problems, order, k)
    chunks = [problems[i : i + CHUNK] for i in range(0, len(problems), CHUNK)]
    work = Parallel(n_jobs=n_jobs)
    curves = [c for part in work(delayed(curves_of)(chunk, k, objective, order) for chunk in chunks) for c in part]
    money = exact(budget)
    spending = spend(curves, [1] * len(curves), money, aim=aim, target=target)
    chosen, bound = [next(iter(picked)) for picked in spending.picks], spending.bound
    picks = [curve.designs[i] for curve, i in zip(curves, chosen, strict=True)]
    parts = [picks[i : i + CHUNK] for i in range(0, len(picks), CHUNK)]
    pairs = zip(chunks, parts, strict=True)
    shares = tuple(s for part in work(delayed(_confirm)(c, p, k, objective, target) for c, p in pairs) for s in part)
    value = min(s.gamma for s in shares) if aim is not Aim.REACHED else float(sum(s.reached for s in shares))
    if aim is not Aim.REACHED and objective == Objective.ROBUST:
        value = min(curve.values[i] for curve, i in zip(curves, chosen, strict=True))
    cost = sum((curve.costs[i] for curve, i in zip(curves, chosen, strict=True)), Fraction(0))
    closed = bound <= value * (1 + 2 * REACHED) + 1e-15
    return Portfolio(
        shares=shares,
        cost=float(cost),
        value=value,
        upper_bound=max(bound, value),
        status=PlanStatus.OPTIMAL if closed else PlanStatus.FEASIBLE,
        aim=aim,
        budget=float(budget),
        target=target,
    )


def _own_goals(problems: Sequence[Problem], order: Order, k: int | None) -> Portfolio:
    """As many items as possible at their own δ, by purchases and by asking again: items that are
    alike share one curve.
    """
    from rrf_design.files import digest
    from rrf_design.planning.curves import goal_curve

    budget = order.budget or 0.0
    known: dict[str, tuple[Curve, tuple[Point, ...]]] = {}
    keys = [digest(problem) for problem in problems]
    for key, problem in zip(keys, problems, strict=True):
        if key not in known:
            known[key] = goal_curve(problem, k=k, order=order)
    spending = spend([known[key][0] for key in keys], [1] * len(keys), exact(budget), aim=Aim.REACHED, target=1.0)
    shares, cost = [], Fraction(0)
    for key, problem, picked in zip(keys, problems, spending.picks, strict=True):
        (curve, points), chosen = known[key], next(iter(picked))
        point, reached = points[chosen], reaches(curve.values[chosen], 1.0)
        shares.append(Share(problem.name, point.selected, point.cost, point.gamma, reached, point.repeats))
        cost += curve.costs[chosen]
    value = float(sum(share.reached for share in shares))
    status = PlanStatus.OPTIMAL if spending.bound <= value else PlanStatus.FEASIBLE
    return Portfolio(
        tuple(shares), float(cost), value, max(value, spending.bound), status, Aim.REACHED, float(budget), None
    )


@dataclass(frozen=True, slots=True)
class _Allotment:
    """For each class of equal items, how many get which design of its curve; no spending does
    better than `bound`.
    """

    picks: tuple[dict[int, int], ...]
    bound: float


def spend(
    curves: Sequence[Curve], counts: Sequence[int], money: Fraction, *, aim: Aim, target: float | None
) -> _Allotment:
    """One budget over classes of equal items, exactly: a class is as much work as one item, however
    many it has.
    """
    if aim is Aim.LEXIMIN:
        return _leximin(curves, counts, money)
    return (_smallest if aim is Aim.WORST else _count)(curves, counts, money, target)


def _leximin(curves: Sequence[Curve], counts: Sequence[int], money: Fraction) -> _Allotment:
    """The list of margins that is largest in leximin order, item by item."""
    from rrf_design.planning._components import best_spending

    each = [place for place, count in enumerate(counts) for _ in range(count)]
    state, whole = best_spending([curves[place] for place in each], money, aim=Aim.LEXIMIN, reached=())
    picks: list[dict[int, int]] = [{} for _ in curves]
    for place, design in zip(each, state[3], strict=True):
        picks[place][design] = picks[place].get(design, 0) + 1
    sure = whole and all(curve.complete for curve in curves)
    return _Allotment(tuple(picks), min(state[2]) if sure else float("inf"))


def _checked(aim: Aim | str, target: float | None, problems: Sequence[Problem], budget: float) -> Aim:
    result = Aim.named(aim)
    if not problems:
        raise InputError("portfolio: there is no item")
    if not 0 <= budget < float("inf"):
        raise InputError(f"budget: must be a number of at least 0, not {budget!r}")
    if result is Aim.REACHED and target is None and any(problem.delta is None for problem in problems):
        raise InputError("aim reached: give the target that items should reach, or every item a delta")
    return result


def _smallest(curves: Sequence[Curve], counts: Sequence[int], money: Fraction, target: float | None) -> _Allotment:
    """Largest t such that every item can reach t within the money: a search over all margins that
    occur.
    """
    tops = min((curve.values[-1] for curve in curves if curve.complete), default=float("inf"))
    levels = sorted({v for curve in curves for v in curve.values if v <= tops * (1 + REACHED)})
    chosen = _reaching(curves, counts, levels, money)
    if chosen is None:
        raise _too_little(curves, counts, money)
    picks = tuple({i: count} for i, count in zip(chosen, counts, strict=True))
    settled = [(curve, count) for curve, count in zip(curves, counts, strict=True) if curve.complete]
    if len(settled) == len(curves):
        return _Allotment(picks, min(curve.values[i] for curve, i in zip(curves, chosen, strict=True)))
    known, many = [curve for curve, _ in settled], [count for _, count in settled]
    loose = _reaching(known, many, levels, money) if settled else None
    return _Allotment(
        picks, min((curve.values[i] for curve, i in zip(known, loose or [], strict=True)), default=float("inf"))
    )


def _reaching(
    curves: Sequence[Curve], counts: Sequence[int], levels: Sequence[float], money: Fraction
) -> list[int] | None:
    """The cheapest designs for the highest level that the money reaches; None when it doesn't reach
    the first.
    """
    low, high, best = 0, len(levels) - 1, None
    while low <= high:
        middle = (low + high) // 2
        picks = [curve.reaching(levels[middle]) for curve in curves]
        costs = (n * c.costs[i] for c, n, i in zip(curves, counts, picks, strict=True) if i is not None)
        if all(i is not None for i in picks) and sum(costs, Fraction(0)) <= money:
            best, low = [int(i) for i in picks if i is not None], middle + 1
        else:
            high = middle - 1
    return best


def _count(curves: Sequence[Curve], counts: Sequence[int], money: Fraction, target: float | None) -> _Allotment:
    """Cheapest items first: with one reward per item that is exact."""
    assert target is not None
    spent = sum((n * curve.costs[0] for curve, n in zip(curves, counts, strict=True)), Fraction(0))
    if spent > money:
        raise _too_little(curves, counts, money)
    reach = [curve.reaching(target) for curve in curves]
    picks = [{0: n} for n in counts]
    extra = sorted(
        (curve.costs[i] - curve.costs[0], place)
        for place, (curve, i) in enumerate(zip(curves, reach, strict=True))
        if i is not None
    )
    reached = 0
    for price, place in extra:
        wanted, design = counts[place], reach[place] or 0
        able = wanted if price <= 0 else min(wanted, int((money - spent) / price))
        spent += able * price
        reached += able
        if able and design:
            picks[place] = {design: able} | ({0: wanted - able} if able < wanted else {})
        if able < wanted:
            break
    known = [place for place, curve in enumerate(curves) if curve.complete]
    if len(known) == len(curves):
        return _Allotment(tuple(picks), float(reached))
    # Items whose curve is not proven might reach it for nothing, and leave the money to the others.
    loose = _count([curves[p] for p in known], [counts[p] for p in known], money, target) if known else None
    unsure = sum(n for n, curve in zip(counts, curves, strict=True) if not curve.complete)
    return _Allotment(tuple(picks), unsure + (0.0 if loose is None else loose.bound))


def _too_little(curves: Sequence[Curve], counts: Sequence[int], money: Fraction) -> BudgetError:
    needed = sum((n * curve.costs[0] for curve, n in zip(curves, counts, strict=True)), Fraction(0))
    return BudgetError(
        f"budget: {float(money):g} is too little; the items' rules demand purchases for {float(needed):g}",
        needed=float(needed),
        available=float(money),
    )


def _confirm(
    problems: Sequence[Problem], designs: Sequence[bytes], k: int | None, objective: Any, target: float | None
) -> list[Share]:
    known: dict[bytes, Any] = {}
    result = []
    for problem, packed in zip(problems, designs, strict=True):
        evaluator = Evaluator(problem, k=k, objective=objective)
        mask: Mask = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(evaluator.market.items)).astype(bool)
        key = shape(evaluator) + packed
        if key not in known:
            confirmed = evaluator.confirm(mask)
            known[key] = (confirmed.value, evaluator.confirm_value(mask, confirmed))
        gamma, value = known[key]
        reached = target is None or reaches(value, target)
        result.append(
            Share(problem.name, evaluator.market.names(mask), float(evaluator.market.cost(mask)), gamma, bool(reached))
        )
    return result
