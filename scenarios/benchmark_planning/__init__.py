"""What planning costs: optima against exact margin evaluations, greedy steps against a cold margin,
portfolios in a minute.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from rrf_design.planning import Evaluator, Order, Tracked, plan, portfolio
from rrf_design.problem import Problem
from scenarios.benchmark_planning.larger_plans import larger_figures, larger_parts, run_frontier, run_larger
from scenarios.kit import Benchmark, Context, Done, Part, Report, Row, Scenario, seconds
from scenarios.kit.rows import column, values, where
from scenarios.planner_comparison import random_field
from solvers import margin


def parts(context: Context) -> list[Part]:
    optimal = [{"kind": "optimal", "k": k, "seed": seed} for k in (1, 2) for seed in range(context["draws"])]
    return [*optimal, {"kind": "gap"}, {"kind": "greedy"}, {"kind": "portfolio"}, *larger_parts(context)]


def run(context: Context, part: Part) -> Row:
    work = {"optimal": _optimal, "gap": _gap, "greedy": _greedy, "portfolio": _portfolio, "larger": run_larger}
    return work.get(part["kind"], run_frontier)(context, part)


def _optimal(context: Context, part: Part) -> dict[str, Any]:
    """Time to the proof of optimality, in exact margin evaluations of the same field."""
    problem = random_field(part["seed"], nodes=context["nodes"], chords=context["chords"], anchors=24, k=part["k"])
    begun = time.perf_counter()
    found = plan(problem, budget=context["budget"], method="optimal", time_limit=context["patience"])
    spent = time.perf_counter() - begun
    field = problem.operator(found.selected).matrix
    one = seconds(lambda: margin(field, k=part["k"], n_jobs=1), at_least=0.2)  # the problem would remember its own
    return {"seconds": spent, "evaluations": spent / one, "gap": found.gap, "status": str(found.status)}


def _gap(context: Context, part: Part) -> dict[str, Any]:
    nodes = context["large"]
    problem = random_field(0, nodes=nodes, chords=2 * nodes, anchors=nodes, k=1)
    begun = time.perf_counter()
    found = plan(problem, budget=0.6 * nodes, method="optimal", time_limit=60.0)
    return {"seconds": time.perf_counter() - begun, "gap": found.gap, "status": str(found.status)}


def _greedy(context: Context, part: Part) -> dict[str, Any]:
    """Average greedy step against a margin from scratch, on one sparse field."""
    problem = sparse_field(context["sparse"])
    evaluator = Evaluator(problem)
    owned = evaluator.operator.matrix[np.flatnonzero(evaluator.rows(evaluator.permanent))]
    sizes = np.diff(evaluator.operator.node_offsets).tolist()
    margin(owned, sizes, k=1)  # compiles
    cold = median(seconds(lambda: margin(owned, sizes, k=1)) for _ in range(3))
    greedy = Tracked(evaluator, Order(budget=2.0 * context["purchases"]), evaluator.market.empty())
    begun = time.perf_counter()
    steps = greedy.run()
    spent = time.perf_counter() - begun
    return {"steps": len(steps), "step": spent / max(len(steps), 1), "cold": cold, "gamma": steps[-1].value}


def sparse_field(nodes: int) -> Problem:
    """A random tree with twice as many chords, a tenth of the nodes anchored, an anchor on sale at
    every node, k = 1.
    """
    rng = np.random.default_rng(0)
    relations = [
        {"id": f"t{i}", "tail": f"n{int(rng.integers(max(0, i - 50), i))}", "head": f"n{i}"} for i in range(1, nodes)
    ]
    for j in range(2 * nodes):
        a, b = (int(i) for i in rng.integers(nodes, size=2))
        if a != b:
            relations.append({"id": f"c{j}", "tail": f"n{a}", "head": f"n{b}"})
    anchors: list[dict[str, Any]] = [
        {"id": f"own{i}", "node": f"n{int(rng.integers(nodes))}"} for i in range(nodes // 10)
    ]
    anchors += [{"id": f"a{i}", "node": f"n{i}", "cost": float(rng.integers(1, 4))} for i in range(nodes)]
    return Problem(nodes=[{"id": f"n{i}"} for i in range(nodes)], relations=relations, anchors=anchors, k=1)


def _portfolio(context: Context, part: Part) -> dict[str, Any]:
    """Four-node items with ten candidates each, no two alike, on two processes."""
    rng = np.random.default_rng(0)
    problems = [_item(rng, number) for number in range(context["items"])]
    begun = time.perf_counter()
    found = portfolio(problems, budget=6.0 * len(problems), n_jobs=2)
    spent = time.perf_counter() - begun
    return {"seconds": spent, "status": str(found.status), "value": found.value, "bound": found.upper_bound}


def _item(rng: Any, number: int) -> Problem:
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    relations: list[dict[str, Any]] = [{"id": "own", "tail": "n0", "head": "n1"}]
    for a, b in pairs:
        scale = {"scale": float(rng.uniform(0.5, 2.0))}
        price = float(rng.integers(1, 4))
        relations.append({"id": f"r{a}{b}", "tail": f"n{a}", "head": f"n{b}", "transport": scale, "cost": price})
    anchors = [
        {"id": f"a{i}", "node": f"n{i}", "weight": float(rng.uniform(0.5, 2.0)), "cost": float(rng.integers(1, 5))}
        for i in range(4)
    ]
    return Problem(
        name=f"item {number}", nodes=[{"id": f"n{i}"} for i in range(4)], relations=relations, anchors=anchors
    )


def report(context: Context, done: Sequence[Done]) -> Report:
    optimal = {k: values(done, kind="optimal", k=k) for k in (1, 2)}
    (gap,), (greedy,), (shared,) = (values(done, kind=kind) for kind in ("gap", "greedy", "portfolio"))
    figures = []
    for k, found in optimal.items():
        tries, times = column(found, "evaluations"), column(found, "seconds")
        proved = f"{len(where(found, status='optimal'))} of {len(found)} proven"
        figures += [
            Benchmark(
                f"evaluations-{k}",
                f"proof of optimality, k = {k}",
                "exact margin evaluations",
                median(tries),
                "evaluations",
                at_most=1000.0,
                detail=f"{proved}, worst gap {max(column(found, 'gap')):.2g}; {sum(n <= 1000 for n in tries)} of"
                f" {len(found)} draws within 1,000, the longest {max(tries):.0f}",
            ),
            Benchmark(
                f"seconds-{k}",
                f"proof of optimality, k = {k}",
                "wall clock",
                median(times),
                "s",
                at_most=5.0,
                detail=f"slowest {max(times):.3g} s",
            ),
        ]
    figures += [
        Benchmark(
            "gap",
            f"{context['large']} nodes, {3 * context['large']} candidates, k = 1, one minute",
            "the proven bound",
            100 * gap["gap"],
            "%",
            at_most=1.0,
            detail=f"{gap['status']} after {gap['seconds']:.3g} s",
        ),
        Benchmark(
            "greedy",
            f"greedy step on {context['sparse']} nodes",
            "a margin from scratch",
            100 * greedy["step"] / greedy["cold"],
            "%",
            at_most=2.0,
            detail=f"{greedy['steps']} purchases; cold margin {greedy['cold']:.3g} s",
        ),
        Benchmark(
            "portfolio",
            f"{context['items']} items with ten candidates each",
            "wall clock, two processes",
            shared["seconds"],
            "s",
            at_most=60.0,
            detail=f"{shared['status']}, smallest margin {shared['value']:.6g}",
        ),
        *larger_figures(context, done),
    ]
    page = context.page()
    page.answer = _answer(context, optimal, greedy, shared)
    page.benchmark(figures)
    larger = [{**d.part, **d.value} for d in done if d.part["kind"] == "larger"]
    page.table("larger", [{name: cell for name, cell in row.items() if name != "kind"} for row in larger])
    return page


def _answer(context: Context, optimal: Mapping[int, list[Row]], greedy: Row, shared: Row) -> str:
    proofs = " and ".join(
        f"{median(v['seconds'] for v in values):.2g} s at k = {k} (as long as"
        f" {median(v['evaluations'] for v in values):,.0f} exact margins,"
        f" {sum(v['status'] == 'optimal' for v in values)} of {len(values)} proven)"
        for k, values in optimal.items()
    )
    state = "proven optimal" if shared["status"] == "optimal" else f"not proven optimal ({shared['status']})"
    return (
        f"In the median a proof of optimality takes {proofs}, a greedy step on {context['sparse']:,} nodes takes"
        f" {greedy['step'] / greedy['cold']:.2%} of the time of a margin from scratch, and a portfolio of"
        f" {context['items']:,} items, {state}, {shared['seconds']:.2g} s."
    )


SCENARIO = Scenario.declared("benchmark-planning", parts, run, report, serial=True)
