"""Larger plans for the planning benchmark: the same minute for hull rows, witness cuts alone, and
the greedy.

Five draws for the planner, the first of them for what it is compared with: the whole takes a
quarter of an hour.

Random trees with a third of their edges on sale, twice as many chords as nodes at 1 to 3, an anchor
at every node at 2 to 5.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from rrf_design.planning import frontier, plan
from rrf_design.problem import Problem
from scenarios.kit import Benchmark, Context, Done, Part
from scenarios.kit.rows import column, values, where

METHODS = ("auto", "witness-cuts", "greedy")


@dataclass(frozen=True, slots=True)
class PlanInstance:
    """A size of field with its budget per node, and the gap in per cent that is asked for."""

    key: str
    nodes: int
    k: int
    dim: int
    money: float
    asked: float
    methods: tuple[str, ...] = METHODS
    radius: float = 0.0
    """Of every relation on sale; then the objective is the robust one."""

    @property
    def words(self) -> str:
        dim = f", dimension {self.dim}" if self.dim > 1 else ""
        return f"{self.nodes} nodes{dim}, k = {self.k}{', robust' if self.radius else ''}"


INSTANCES = (
    PlanInstance("larger-200-1", 200, 1, 1, 0.5, 1e-5),
    PlanInstance("larger-1000-1", 1000, 1, 1, 0.5, 1e-5, ("auto",)),
    PlanInstance("larger-100-2", 100, 2, 1, 0.6, 10.0),
    PlanInstance("larger-24-3", 24, 3, 1, 1.0, 15.0),
    PlanInstance("larger-24-2-3", 24, 2, 3, 1.0, 1e-5),
    PlanInstance("larger-60-2-robust", 60, 2, 1, 0.8, 35.0, ("auto", "witness-cuts"), radius=0.1),
)


MOSTLY = "larger-100-2"  # most draws of it are asked to be proven optimal


def larger_field(seed: int, nodes: int, *, k: int, dim: int = 1, radius: float = 0.0) -> Problem:
    """The random field of these benchmarks; nodes of more than one dimension are related by random
    rotations.

    With a radius, every relation on sale is that uncertain.
    """
    rng = np.random.default_rng(seed)
    tree = [(int(rng.integers(i)), i) for i in range(1, nodes)]
    on_sale = set(rng.permutation(len(tree))[: len(tree) // 3].tolist())
    pairs = set(tree)
    relations = [_relation(rng, "t", pair, dim, sold=t in on_sale) for t, pair in enumerate(tree)]
    while len(pairs) < len(tree) + min(2 * nodes, nodes * (nodes - 1) // 2 - len(tree)):
        a, b = sorted(int(i) for i in rng.choice(nodes, 2, replace=False))
        if (a, b) not in pairs:
            pairs.add((a, b))
            relations.append(_relation(rng, "c", (a, b), dim, sold=True))
    anchors = [{"id": f"a{i}", "node": f"n{i}", "cost": float(rng.integers(2, 6))} for i in range(nodes)]
    if radius:
        relations = [{**r, "uncertainty": radius} if "cost" in r else r for r in relations]
    names = [{"id": f"n{i}", "dim": dim} for i in range(nodes)]
    return Problem(name=f"larger {seed}", k=k, nodes=names, relations=relations, anchors=anchors)


def _relation(rng: Any, letter: str, pair: tuple[int, int], dim: int, *, sold: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"id": f"{letter}{pair[0]}-{pair[1]}", "tail": f"n{pair[0]}", "head": f"n{pair[1]}"}
    if dim > 1:
        result["transport"] = {"matrix": np.linalg.qr(rng.normal(size=(dim, dim)))[0].tolist()}
    if sold:
        result["cost"] = float(rng.integers(1, 4))
    return result


def larger_parts(context: Context) -> list[Part]:
    """The planner on every draw of every instance, the others on the first one, and one
    frontier.
    """
    seeds = range(1, 1 + context["larger-draws"])
    listed = [
        {"kind": "larger", "instance": i.key, "method": method, "seed": seed}
        for i in INSTANCES
        for seed in seeds
        for method in i.methods
        if method == "auto" or seed == 1
    ]
    return [*listed, {"kind": "larger-frontier"}]


def run_larger(context: Context, part: Part) -> dict[str, Any]:
    """One minute of one method: what it found, what it proved, and the time it took, of the clock
    and of the processor.
    """
    instance = next(i for i in INSTANCES if i.key == part["instance"])
    nodes = max(6, int(instance.nodes * context["larger-share"]))
    problem = larger_field(part["seed"], nodes, k=instance.k, dim=instance.dim, radius=instance.radius)
    begun, worked = time.perf_counter(), time.process_time()
    found = plan(
        problem, budget=float(int(instance.money * nodes)), method=part["method"], time_limit=context["larger-seconds"]
    )
    return {
        "status": str(found.status),
        "value": found.value,
        "bound": found.upper_bound,
        "gap": 100 * (found.upper_bound / found.value - 1) if found.value > 0 else None,
        "seconds": time.perf_counter() - begun,
        "processor": time.process_time() - worked,
    }


def run_frontier(context: Context, part: Part) -> dict[str, Any]:
    """The whole curve of 200 nodes, k = 1, in a minute: how much of it is proven."""
    problem = larger_field(1, max(6, int(200 * context["larger-share"])), k=1)
    begun = time.perf_counter()
    found = frontier(problem, time_limit=context["larger-seconds"])
    proven = sum(str(point.status) == "optimal" for point in found.points)
    return {
        "complete": found.complete,
        "proven": proven,
        "points": len(found.points),
        "seconds": time.perf_counter() - begun,
    }


def larger_figures(context: Context, done: Sequence[Done]) -> list[Benchmark]:
    """The gap of every instance beside that of the others, and the frontier."""
    figures, within = [], f"{context['larger-seconds']:g} s"
    for instance in INSTANCES:
        mine, *rest = (values(done, instance=instance.key, method=method) for method in instance.methods)
        beside = zip(instance.methods[1:], rest, strict=True)
        others = ", ".join(f"{name}: {_median_gap(found):.3g} % on the first" for name, found in beside)
        solved = len(where(mine, status="optimal"))
        figures.append(
            Benchmark(
                instance.key,
                f"{instance.words}, {within}",
                "the proven bound; worst of the draws",
                max(_gap(v) for v in mine),
                "%",
                at_most=instance.asked,
                detail=f"{solved} of {len(mine)} optimal, median "
                f"{_median_gap(mine):.3g} % in {median(column(mine, 'seconds')):.3g} s "
                f"({median(column(mine, 'processor')):.3g} s of one core)" + (f"; {others}" if others else ""),
            )
        )
        if instance.key == MOSTLY:
            share = 100 * solved / len(mine)
            words = f"{instance.words}, {within}"
            figures.append(Benchmark(f"{MOSTLY}-optimal", words, "all draws", share, "% optimal", at_least=50.0))
    (found,) = values(done, kind="larger-frontier")
    end = "complete" if found["complete"] else "not complete"
    figures.append(
        Benchmark(
            "larger-frontier",
            f"frontier of 200 nodes, k = 1, {within}",
            "the points it found",
            100 * found["proven"] / max(found["points"], 1),
            "% proven",
            at_least=100.0,
            detail=f"{found['proven']} of {found['points']} points proven, {end} after {found['seconds']:.3g} s",
        )
    )
    return figures


def _gap(value: dict[str, Any]) -> float:
    return float("inf") if value["gap"] is None else float(value["gap"])


def _median_gap(values: Sequence[dict[str, Any]]) -> float:
    return median(_gap(v) for v in values)
