"""Judges with a rate, answers that scatter, noise that was estimated, and what units cost: each
held to its definition.

Rates: every outcome of a few judges is enumerated in rationals, and the margin with every choice of
checks taken away. Scatter: answers are drawn, and the plan that weighs repeats is held against
every choice of repeats and blocks. Estimates: logs of repeats are drawn, and the truth is held
against what was made of them. Costs: fields of units and plain ones with as many columns, groups of
the same size and the same neighbours, in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from rrf_design.derive import asking
from rrf_design.errors import InputError
from rrf_design.planning import plan
from rrf_design.problem import Problem
from scenarios.kit import Context, Done, Part, Report, Row, Scenario
from scenarios.kit.rows import batches, column, seeds_of, totals, values
from solvers import delivered_margin, margin

BATCH = 250
WHAT = ("rates", "scatter", "estimates")
DRAWS = 200


def rates(seed: int) -> Row:
    """How many judges may be wrong, and the margin that they leave, against enumeration."""
    rng = np.random.default_rng([31, seed])
    listed = [round(float(rng.uniform(0.01, 0.4)), 2) for _ in range(int(rng.integers(1, 6)))]
    level = float(rng.choice([0.8, 0.9, 0.95, 0.99]))
    judges = [{"id": f"j{i}", "node": f"n{rng.integers(3)}", "rate": rate} for i, rate in enumerate(listed)]
    ties = [{"id": "r0", "tail": "n0", "head": "n1"}, {"id": "r1", "tail": "n1", "head": "n2"}]
    problem = Problem(k=1, confidence=level, nodes=[{"id": f"n{i}"} for i in range(3)], relations=ties, anchors=judges)
    chances = [Fraction(0)] * (len(listed) + 1)
    for wrong in product([False, True], repeat=len(listed)):
        pairs = zip(listed, wrong, strict=True)
        chances[sum(wrong)] += prod((Fraction(r) if bad else 1 - Fraction(r)) for r, bad in pairs)
    most = next(a for a in range(len(chances)) if sum(chances[: a + 1]) >= Fraction(level))
    rows = problem.whole.matrix.toarray()
    spare = range(len(ties), len(rows))
    plain = min(
        float(np.linalg.svd(np.delete(rows, gone, axis=0)[:, pair], compute_uv=False)[-1])
        for gone in combinations(spare, min(2 * most, len(spare)))
        for pair in combinations(range(3), 2)
    )
    found = problem.margin()
    right = found.lower <= plain * (1 + 1e-9) + 1e-12 and plain <= found.upper * (1 + 1e-9) + 1e-9
    return {"wrong": int(problem.whole.premise.wrong_checks != most or not right)}


def scatter(seed: int, *, plans: bool) -> dict[str, Any]:
    """Drawn answers against both radii; where asked for, the plan against every choice of repeats
    and blocks.
    """
    rng = np.random.default_rng([37, seed])
    nodes = [
        {
            "id": f"n{i}",
            "sigma": round(float(rng.uniform(0.02, 0.2)), 2),
            "again": round(float(rng.uniform(0.05, 0.5)), 2),
            "most_repeats": int(rng.integers(2, 4)),
        }
        for i in range(2)
    ]
    prices = [{}, *({"cost": round(float(rng.uniform(0.2, 1.0)), 2)} for _ in range(2))]
    anchors = [{"id": f"a{i}", "node": f"n{i % 2}", "value": 1.0, **price} for i, price in enumerate(prices)]
    problem = Problem(
        k=1,
        delta=round(float(rng.uniform(0.8, 3.0)), 2),
        nodes=nodes,
        relations=[{"id": "r", "tail": "n0", "head": "n1"}],
        anchors=anchors,
    )
    radius = problem.design("all").radius(problem)
    drawn = rng.standard_normal((DRAWS, 2)) * [node["sigma"] for node in nodes]
    outside = np.linalg.norm(drawn @ problem.operator("all").matrix.toarray().T, axis=1) > radius.epsilon
    outside |= np.linalg.norm(drawn, axis=1) > radius.tail
    return {"outside": int(outside.sum()), "wrong": int(plans and not _cheapest_agrees(problem))}


def _cheapest_agrees(problem: Any) -> bool:
    """No choice of repeats and blocks that reaches the goal is cheaper than a plan called optimal,
    or than its proven bound.
    """
    best: float | None = None
    names = [node.id for node in problem.nodes]
    for times in product(*(range(1, node.most_repeats + 1) for node in problem.nodes)):
        asked = asking(problem, dict(zip(names, times, strict=True)))
        paid = sum((t - 1) * node.again for t, node in zip(times, problem.nodes, strict=True))
        for taken in product([False, True], repeat=len(problem.on_sale)):
            design = asked.design([name for name, one in zip(problem.on_sale, taken, strict=True) if one])
            if design.standing(asked).reached:
                total = paid + float(design.price)
                best = total if best is None else min(best, total)
    try:
        found = plan(problem, time_limit=5.0)
    except InputError:
        return best is None
    if best is None or not found.reached:
        return best is None and not found.reached
    reached = asking(problem, found.repeats)
    sound = reached.design(found.selected).standing(reached).reached and found.cost >= best - 1e-9
    return (
        sound and (found.cost_bound or 0.0) <= best + 1e-9 and (found.status != "optimal" or found.cost <= best + 1e-9)
    )


def estimates(seed: int) -> dict[str, Any]:
    """A log of Gaussian repeats: is the true covariance at most what the rows were whitened
    with?
    """
    rng = np.random.default_rng([41, seed])
    rows = int(rng.integers(1, 4))
    half = rng.standard_normal((rows, rows)) + np.eye(rows)
    truth = half @ half.T
    repeats = int(rng.integers(40, 200))
    log = rng.multivariate_normal(np.zeros(rows), truth, size=repeats)
    estimate = np.atleast_2d(np.cov(log.T))
    check = {"id": "a", "node": "x", "covariance": ((estimate + estimate.T) / 2).tolist(), "estimated_from": repeats}
    white = Problem(nodes=[{"id": "x", "dim": rows}], anchors=[check]).operator([]).matrix.toarray()
    return {"missed": int(np.linalg.eigvalsh(white @ truth @ white.T)[-1] > 1.0)}


def costs(columns: int, k: int, seed: int) -> dict[str, Any]:
    """Seconds of the processor for units, for what is delivered, and for plain nodes: as many
    columns, groups of two, the same neighbours.

    In turns, the best of seven each: what else a machine does is in no ratio.
    """
    rng = np.random.default_rng([43, seed])
    pairs = columns // 2
    chords = {(i, (i + 1) % pairs) for i in range(pairs)}
    while len(chords) < 3 * pairs:
        a, b = sorted(map(int, rng.choice(pairs, 2, replace=False)))
        chords.add((a, b))
    united, plain = _united(sorted(chords), pairs, rng), _plain(sorted(chords), pairs, rng)
    half, whole = np.arange(0, columns, 2), np.arange(columns)
    work: dict[str, Callable[[], Any]] = {
        "units": lambda: margin(*united, k=k),
        "plain": lambda: margin(*plain, k=k),
        "half": lambda: delivered_margin(*plain, half, k=k),
        "everything": lambda: delivered_margin(*plain, whole, k=k),
    }
    seconds = dict.fromkeys(work, float("inf"))
    for turn in range(8):
        for name, do in work.items():
            began = time.process_time()
            do()
            if turn:  # the first compiles
                seconds[name] = min(seconds[name], time.process_time() - began)
    ratios = {f"{name} / plain": seconds[name] / seconds["plain"] for name in ("units", "half", "everything")}
    return {"columns": columns, "k": k, "field": seed, **seconds, **ratios}


def _united(chords: Sequence[tuple[int, int]], pairs: int, rng: Any) -> tuple[Any, list[Any]]:
    """Scalar nodes in units of two: ties between members of neighbouring units, one inside each,
    columns in any order.
    """
    ends = [(2 * a + rng.integers(2), 2 * b + rng.integers(2)) for a, b in chords for _ in range(2)]
    ends += [(2 * u, 2 * u + 1) for u in range(pairs)]
    rows = np.repeat(np.arange(len(ends)), 2)
    ties = sparse.csr_array(
        (np.tile([-1.0, 1.0], len(ends)), (rows, np.array(ends).ravel())), shape=(len(ends), 2 * pairs)
    )
    held = np.flatnonzero(rng.random(2 * pairs) < 0.3)
    matrix = sparse.csr_array(sparse.vstack([ties, sparse.eye_array(2 * pairs).tocsr()[held]]))
    order = rng.permutation(2 * pairs)
    place = np.argsort(order)
    return sparse.csr_array(matrix[:, order]), [place[[2 * u, 2 * u + 1]] for u in range(pairs)]


def _plain(chords: Sequence[tuple[int, int]], pairs: int, rng: Any) -> tuple[Any, list[Any]]:
    """Nodes of dimension two on the same graph, each relation a rotation."""
    rows, columns, values = [], [], []
    for number, (a, b) in enumerate(chords):
        angle = rng.uniform(0, 2 * np.pi)
        turned = ((np.cos(angle), -np.sin(angle)), (np.sin(angle), np.cos(angle)))
        for x in range(2):
            rows += [2 * number + x] * 3
            columns += [2 * b + x, 2 * a, 2 * a + 1]
            values += [1.0, -turned[x][0], -turned[x][1]]
    ties = sparse.csr_array((values, (rows, columns)), shape=(2 * len(chords), 2 * pairs))
    held = np.flatnonzero(rng.random(2 * pairs) < 0.3)
    matrix = sparse.csr_array(sparse.vstack([ties, sparse.eye_array(2 * pairs).tocsr()[held]]))
    return matrix, [[2 * u, 2 * u + 1] for u in range(pairs)]


def parts(context: Context) -> list[Part]:
    timed = ({"columns": c, "k": k, "seed": s} for c, k in context["sizes"] for s in range(context["draws"]))
    fields, plans = context["fields"], context["plans"]
    return [*(batch for what in WHAT for batch in batches(fields, BATCH, what=what, plans=plans)), *timed]


def run(context: Context, part: Part) -> Row:
    if "columns" in part:
        return costs(part["columns"], part["k"], part["seed"])
    ask = {"rates": rates, "scatter": lambda s: scatter(s, plans=s < part["plans"]), "estimates": estimates}
    found = [ask[part["what"]](seed) for seed in seeds_of(part)]
    return {"what": part["what"], "fields": len(found), **totals(found, " ".join(found[0]))}


def report(context: Context, done: Sequence[Done]) -> Report:
    fields = [{"what": what, **totals(values(done, what=what), "fields wrong outside missed")} for what in WHAT]
    judged, scattered, logs = fields
    clocks = values(done, "columns")
    ratios = {name: column(clocks, f"{name} / plain") for name in ("units", "half", "everything")}
    middle = {name: float(np.median(found)) for name, found in ratios.items()}
    share = scattered["outside"] / (scattered["fields"] * DRAWS)
    missed, plans = logs["missed"] / logs["fields"], min(context["plans"], context["fields"])
    page = context.page()
    page.none("rates", judged["wrong"], f"of {judged['fields']} fields differ")
    page.check("scatter", share <= 0.05, f"{share:.4f} of {scattered['fields'] * DRAWS} draws outside")
    page.none("plans", scattered["wrong"], f"of {plans} plans differ")
    page.check("estimates", missed <= 0.025, f"{missed:.4f} of {logs['fields']} logs")
    page.answer = (
        f"{page.met} of {len(page.verdicts)} promises hold"
        f" ({judged['wrong']} of {judged['fields']} fields with judges and {scattered['wrong']} of"
        f" {plans} plans with repeats differ from enumeration, {share:.2%} of"
        f" drawn answers leave their radius, {missed:.2%} of estimates fall short of the truth), and units cost"
        f" {middle['units']:.2f} times what plain nodes do."
    )
    for name, found in ratios.items():
        told = f"median {middle[name]:.2f} of {len(clocks)}, largest {max(found):.2f}"
        page.at_full(name, middle[name] <= 1.3, told)
    page.table("fields", fields)
    page.table("costs", clocks)
    page.bars(
        "costs",
        dict(
            zip(
                ("units of two nodes", "half of all values delivered", "all values delivered"),
                middle.values(),
                strict=True,
            )
        ),
        y="processor time, of that of plain nodes",
        caption=f"What protection costs, as the median of {len(clocks)} fields; 1.3 is the most that was allowed.",
    )
    return page


SCENARIO = Scenario.declared("judges-and-scatter", parts, run, report)
