"""What holds for all items of a structure, worked out once for each: margins, explanations,
certificates, plans (docs/algorithms.md, facts 13 and 21).

The item that comes first in the table speaks for those like it: they differ in texts, offsets and
values only, which no margin and no proof depends on. Of several structures the worst one speaks for
the data set.

A plan for a whole table spends one budget over all items, or reaches the goal in each at least
cost. Every structure is solved once: its curve of undominated designs, or its cheapest design.
Items are only counted, so a hundred thousand of them cost no more than their structures. Before any
answer is seen equal items are equal, so where the money does not last for all of them the first of
the table come first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from rrf_design._shown import ShownRows
from rrf_design.arguments import seconds_of
from rrf_design.documents import sealed
from rrf_design.errors import InputError
from rrf_design.goal import reaches
from rrf_design.market import exact
from rrf_design.planning import spend
from rrf_design.planning.contract import REACHED, Aim, Objective, Order, PlanStatus
from rrf_design.planning.curves import Curve, curves_of, goal_curve
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.goals import planned_margin, repeatable
from rrf_design.planning.registry import plan
from rrf_design.problem import Problem
from rrf_design.questions.datasets import Dataset
from rrf_design.workers import shared_out
from solvers.tasks import active_client

if TYPE_CHECKING:
    from rrf_design.certificates import Certificate
    from solvers.result import Progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Speaker(Generic[T]):
    """The result of one structure: the item that it was found for, and how many are like it."""

    item: str
    count: int
    problem: Problem
    result: T


@dataclass(frozen=True, slots=True, repr=False)
class ByStructure(ShownRows, Generic[T]):
    """One result for each structure of a data set, in the order of the table."""

    dataset: Dataset
    speakers: tuple[Speaker[T], ...]
    value: Callable[[T], float]

    @property
    def worst(self) -> Speaker[T]:
        """The structure with the smallest value; the first of them."""
        return min(self.speakers, key=lambda speaker: self.value(speaker.result))

    def to_json(self) -> dict[str, Any]:
        """The document of the worst structure, and those of all beside it."""
        parts = [
            {"item": speaker.item, "items": speaker.count, **_document(speaker.result)} for speaker in self.speakers
        ]
        return {
            **_document(self.worst.result),
            "item": self.worst.item,
            "items": len(self.dataset),
            "structures": parts,
        }

    def _line(self) -> str:
        return f"{self.dataset.table.name!r}: {len(self.dataset)} items, {len(self.speakers)} structures"

    def _records(self) -> Iterator[dict[str, Any]]:
        for speaker in self.speakers:
            yield {"item": speaker.item, "items": speaker.count, "value": self.value(speaker.result)}


def by_structure(dataset: Dataset, solve: Callable[[Problem], T], value: Callable[[T], float]) -> ByStructure[T]:
    """`solve` for the first item of each structure; `value` says which result is the worst: the
    smallest.
    """
    speakers = (replace(one, result=solve(one.problem)) for one in _first_items(dataset))
    return ByStructure(dataset, tuple(speakers), value)


def _first_items(dataset: Dataset) -> Iterator[Speaker[Any]]:
    """The first item of each structure, before anything is solved."""
    wanted = dict(dataset.structures)
    for item in dataset.items_in_order():
        if not wanted:
            return
        shared = wanted.pop(item.structure, None)
        if shared is not None:
            yield Speaker(item.id, shared.count, item.problem, None)


def certify_dataset(dataset: Dataset, select: Any = None, **options: Any) -> ByStructure[Certificate]:
    """A certificate for each structure; `options` are those of `certify`.

    On a cluster each structure is a piece of work.
    """
    from rrf_design.certificates import certify

    if active_client() is None:
        return by_structure(dataset, lambda problem: certify(problem, select, **options), _certain)
    from joblib import delayed

    speakers = list(_first_items(dataset))
    n_jobs, progress = options.get("n_jobs"), options.get("progress")
    told = options | {"n_jobs": None, "progress": None}
    tasks = (delayed(certify)(one.problem, select, **told) for one in speakers)
    found = []
    for one, result in zip(speakers, shared_out(tasks, n_jobs=n_jobs), strict=True):
        found.append(replace(one, result=result))
        if progress is not None:
            progress(len(found) / len(speakers), None, f"{len(found)} of {len(speakers)} structures are certified")
    return ByStructure(dataset, tuple(found), _certain)


def _certain(certificate: Certificate) -> float:
    return certificate.robust_lower


def save_certificates(
    found: ByStructure[Certificate], path: str | os.PathLike[str]
) -> tuple[ByStructure[Certificate], list[Path]]:
    """Write them: one file for a single structure, a folder with one file for each of several."""
    target = Path(path)
    if len(found.speakers) == 1:
        paths = [target]
    else:
        if target.suffix.lower() == ".json":
            raise InputError(
                f"{target}: the items have {len(found.speakers)} structures, and each its own certificate; name a"
                " folder"
            )
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{target}: can't be made a folder for certificates ({error.strerror})") from None
        paths = [
            target / f"{number:03d}-{_safe(speaker.item)}.json"
            for number, speaker in enumerate(found.speakers, start=1)
        ]
    saved = tuple(
        Speaker(speaker.item, speaker.count, speaker.problem, speaker.result.save(place))
        for speaker, place in zip(found.speakers, paths, strict=True)
    )
    return ByStructure(found.dataset, saved, found.value), paths


def _document(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.to_json()
    return found


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)[:40]


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """What one item buys."""

    selected: tuple[str, ...]
    cost: float
    gamma: float
    reached: bool
    repeats: Mapping[str, int] = field(default_factory=dict)
    """How often nodes are asked that are asked again for the money."""

    def to_json(self) -> dict[str, Any]:
        told = {"selected": list(self.selected), "cost": self.cost, "gamma": self.gamma, "reached": self.reached}
        return told | ({"repeats": dict(self.repeats)} if self.repeats else {})

    @property
    def bought(self) -> str:
        """What is bought, in words."""
        asks = (f"ask {name} {times} times" for name, times in self.repeats.items())
        return ", ".join([*self.selected, *asks]) or "nothing"


@dataclass(frozen=True, slots=True, repr=False)
class DatasetPlan(ShownRows):
    """What every item buys.

    `value` is how many items reach the goal, or the smallest margin; none does better than
    `upper_bound`.
    """

    dataset: Dataset
    shares: Mapping[str, tuple[tuple[ItemPlan, int], ...]]
    """By structure: designs, each with the number of items that get it, in the order of the
    table.
    """
    cost: float
    value: float
    upper_bound: float
    status: PlanStatus
    aim: Aim
    budget: float | None
    target: float | None

    @property
    def reached(self) -> bool:
        """Every item reaches what is wanted of it."""
        return self.status is not PlanStatus.INFEASIBLE and all(
            share.reached for parts in self.shares.values() for share, count in parts if count
        )

    def items(self) -> Iterator[tuple[str, ItemPlan]]:
        """Every item with what it buys, in the order of the table."""
        left = {
            key: chain.from_iterable(repeat(share, count) for share, count in parts)
            for key, parts in self.shares.items()
        }
        for item in self.dataset.items_in_order():
            yield item.id, next(left[item.structure])

    def to_json(self) -> dict[str, Any]:
        content = {
            "items": {name: share.to_json() for name, share in self.items()},
            "cost": self.cost,
            "value": self.value,
            "upper_bound": self.upper_bound,
            "status": str(self.status),
            "aim": str(self.aim),
            "budget": self.budget,
            "target": self.target,
            "reached": self.reached,
            "structures": len(self.shares),
        }
        return sealed("rrf-dataset-plan", content)

    def _records(self) -> Iterator[dict[str, Any]]:
        return ({"id": name, **share.to_json()} for name, share in self.items())

    def sentence(self) -> str:
        count = len(self.dataset)
        what = (
            f"{self.value:g} of {count} items reach the goal"
            if self.aim is Aim.REACHED
            else f"the smallest margin of {count} items is {self.value:.6g}"
        )
        money = "" if self.budget is None else f" of {self.budget:g}"
        sure = {"optimal": "proven to be the best", "infeasible": "the goal is out of reach for some: proven"}
        return f"{what} for {self.cost:g}{money} ({sure.get(str(self.status), 'not proven to be best')})"

    def _line(self) -> str:
        return f"{self.dataset.table.name!r}: {self.sentence()}"


def plan_dataset(
    dataset: Dataset,
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
) -> DatasetPlan:
    """One budget over all items, so that as many as possible reach their goal (without one: the
    smallest margin is largest).

    Without a budget the goal is reached in each item at least cost, each by `plan`. `time_limit` is
    for each structure.
    """
    if jointly:
        raise InputError("plan: jointly speaks of one problem; plan an item by itself")
    wanted = None if aim is None else Aim.named(aim)
    if wanted is Aim.LEXIMIN or (wanted is not None and budget is None):
        raise InputError(f"plan over a table: aim {wanted} goes with one problem, or with rrf.portfolio; leave it out")
    classes = list(dataset.structures.values())
    counts = [one.count for one in classes]
    if budget is None:
        plans = [
            plan(
                one.example,
                target=target,
                method=method,
                k=k,
                objective=objective,
                n_jobs=n_jobs,
                time_limit=time_limit,
                front_end=front_end,
                seed=seed,
                progress=progress,
            )
            for one in classes
        ]
        shares = {
            one.key: ((ItemPlan(p.selected, p.cost, p.gamma, p.reached, p.repeats), one.count),)
            for one, p in zip(classes, plans, strict=True)
        }
        statuses = {p.status for p in plans}
        worst = next(s for s in (PlanStatus.INFEASIBLE, PlanStatus.FEASIBLE, PlanStatus.OPTIMAL) if s in statuses)
        cost = sum((n * exact(p.cost) for n, p in zip(counts, plans, strict=True)), Fraction(0))
        value = float(sum(n for n, p in zip(counts, plans, strict=True) if p.reached))
        return DatasetPlan(dataset, shares, float(cost), value, float(len(dataset)), worst, Aim.REACHED, None, target)
    if method != "auto":
        raise InputError("plan: method does not go with one budget for all items")
    for name, unused in (("front_end", front_end != "ortools"), ("progress", progress is not None)):
        if unused:
            raise InputError(f"plan with one budget for all items: it has no use for {name}; leave it out")
    order = Order(budget=float(budget), time_limit=seconds_of(time_limit), seed=seed)
    return _within(dataset, order, target, k, objective, n_jobs, wanted)


def _within(
    dataset: Dataset,
    order: Order,
    target: float | None,
    k: int | None,
    objective: Objective | str | None,
    n_jobs: int | None,
    wanted: Aim | None,
) -> DatasetPlan:
    from joblib import delayed

    budget = order.budget or 0.0
    if not 0 <= budget < float("inf"):
        raise InputError(f"budget: must be a number of at least 0, not {budget!r}")
    classes = list(dataset.structures.values())
    counts = [one.count for one in classes]
    if (
        wanted is not Aim.WORST
        and target is None
        and objective is None
        and any(_weighs_repeats(one.example) for one in classes)
    ):
        return _within_errors(dataset, order, k)
    goals = {planned_margin(one.example) for one in classes} if target is None else {target}
    common = goals.pop() if len(goals) == 1 else None
    if wanted is Aim.REACHED and common is None:
        raise InputError("aim reached: give the target that items should reach, or every item the same goal")
    aim = wanted or (Aim.WORST if common is None else Aim.REACHED)
    tasks = (delayed(curves_of)([one.example], k, objective, order) for one in classes)
    curves: list[Curve] = [part[0] for part in shared_out(tasks, n_jobs=n_jobs)]
    spending = spend(curves, counts, exact(budget), aim=aim, target=common)
    shares: dict[str, tuple[tuple[ItemPlan, int], ...]] = {}
    cost, values = Fraction(0), []
    for one, curve, picked in zip(classes, curves, spending.picks, strict=True):
        evaluator = Evaluator(one.example, k=k, objective=objective)
        parts = []
        for design, count in picked.items():
            share, value = _confirmed(evaluator, curve.designs[design], common)
            parts.append((share, count))
            cost += count * curve.costs[design]
            values.append((value, share.reached, count))
        shares[one.key] = tuple(sorted(parts, key=lambda part: not part[0].reached))
    reached = float(sum(count for _, ok, count in values if ok))
    value = min(v for v, _, _ in values) if aim is Aim.WORST else reached
    closed = spending.bound <= value * (1 + 2 * REACHED) + 1e-15
    status = PlanStatus.OPTIMAL if closed else PlanStatus.FEASIBLE
    return DatasetPlan(dataset, shares, float(cost), value, max(spending.bound, value), status, aim, budget, common)


def _weighs_repeats(problem: Problem) -> bool:
    """A promised error is wanted, and asking again is on sale."""
    return problem.delta is not None and bool(repeatable(problem))


def _within_errors(dataset: Dataset, order: Order, k: int | None) -> DatasetPlan:
    """As many items as possible at their own δ, by purchases and by asking again."""
    classes = list(dataset.structures.values())
    counts = [one.count for one in classes]
    budget = order.budget or 0.0
    found = [goal_curve(one.example, k=k, order=order) for one in classes]
    curves = [curve for curve, _ in found]
    spending = spend(curves, counts, exact(budget), aim=Aim.REACHED, target=1.0)
    shares: dict[str, tuple[tuple[ItemPlan, int], ...]] = {}
    cost, value = Fraction(0), 0
    for one, (curve, points), picked in zip(classes, found, spending.picks, strict=True):
        parts = []
        for place, count in picked.items():
            point, reached = points[place], reaches(curve.values[place], 1.0)
            parts.append((ItemPlan(point.selected, point.cost, point.gamma, reached, point.repeats), count))
            cost += count * curve.costs[place]
            value += count * reached
        shares[one.key] = tuple(sorted(parts, key=lambda part: not part[0].reached))
    status = PlanStatus.OPTIMAL if spending.bound <= value else PlanStatus.FEASIBLE
    top = max(float(value), spending.bound)
    return DatasetPlan(dataset, shares, float(cost), float(value), top, status, Aim.REACHED, budget, None)


def _confirmed(evaluator: Evaluator, packed: bytes, target: float | None) -> tuple[ItemPlan, float]:
    """A design of the curve with its exact margin."""
    mask = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(evaluator.market.items)).astype(bool)
    confirmed = evaluator.confirm(mask)
    value = evaluator.confirm_value(mask, confirmed)
    reached = target is None or reaches(value, target)
    names = evaluator.market.names(mask)
    return ItemPlan(names, float(evaluator.market.cost(mask)), confirmed.value, bool(reached)), value
