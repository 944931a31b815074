"""Plans and margins with joint noise, on small random fields: every selection by the definition, in
arithmetic of its own.

Rows are written down by hand with the covariance of just what is held, the margin of each selection
is the least singular value over all supports of rows whitened together, and the curve is what no
cheaper selection beats. `frontier` and `plan` with `jointly`, and `certify`'s margin of a fixed
selection, are held to that.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from rrf_design.derive import joined_problem
from rrf_design.planning import frontier, plan
from rrf_design.problem import Problem

NEAR = 1e-7
STEP = 2e-6  # margins closer than a millionth are one step of a curve


def joint_case(seed: int) -> tuple[Any, list[Any], Any, list[float]]:
    """Problem, its rows (block by block, one each), the covariance of all of them, and prices (0:
    owned).
    """
    rng = np.random.default_rng([29, seed])
    nodes = int(rng.integers(2, 5))
    labels = int(rng.integers(2, 4))
    half = rng.normal(size=(labels, labels))
    shared = half @ half.T + float(rng.choice([0.05, 0.5])) * np.eye(labels)
    shared = (shared + shared.T) / 2
    rows, prices, anchors = [], [], []
    for i in range(labels):
        at = int(rng.integers(nodes))
        rows.append(np.eye(nodes)[at])
        prices.append(float(rng.choice([0.0, 0.5, 1.0, 1.5])) if i else 1.0)
        price = {"cost": prices[-1]} if prices[-1] else {}
        anchors.append({"id": f"a{i}", "node": f"n{at}", "value": 1.0, "sigma": float(shared[i, i] ** 0.5), **price})
    relations, sigmas = [], []
    for i in range(int(rng.integers(2, 5))):
        tail, head = rng.choice(nodes, 2, replace=False).tolist()
        scale = float(rng.choice([-1.0, 1.0, 2.0]))
        rows.append(np.eye(nodes)[head] - scale * np.eye(nodes)[tail])
        sigmas.append(round(float(rng.uniform(0.5, 1.5)), 2))
        prices.append(float(rng.choice([0.0, 0.0, 0.7])) if len(prices) > 3 or i else 0.0)
        price = {"cost": prices[-1]} if prices[-1] else {}
        relation = {"id": f"r{i}", "tail": f"n{tail}", "head": f"n{head}", "transport": {"scale": scale}}
        relations.append({**relation, "sigma": sigmas[-1], **price})
    whole = np.zeros((len(rows), len(rows)))
    whole[:labels, :labels] = shared
    for i, sigma in enumerate(sigmas):
        whole[labels + i, labels + i] = sigma**2
    noise = {"id": "annotator", "blocks": [a["id"] for a in anchors], "covariance": shared.tolist()}
    problem = Problem(
        nodes=[{"id": f"n{i}"} for i in range(nodes)], anchors=anchors, relations=relations, noise=[noise]
    )
    return problem, rows, whole, prices


def enumerated(rows: list[Any], whole: Any, held: list[int]) -> float:
    """γ_1 of the held rows, whitened by the covariance that is theirs."""
    if not held:
        return 0.0
    white = np.linalg.solve(np.linalg.cholesky(whole[np.ix_(held, held)]), np.array([rows[i] for i in held]))
    count = white.shape[1]
    supports = [list(pair) for pair in combinations(range(count), min(2, count))]
    values = [np.linalg.svd(white[:, s], compute_uv=False) for s in supports]
    return min(float(v[-1]) if len(held) >= len(s) else 0.0 for v, s in zip(values, supports, strict=True))


def judge_joint(seed: int) -> bool:
    """Whether the joint curve, the best plan for a budget and the margin of every point on it are
    the enumerated ones.
    """
    problem, rows, whole, prices = joint_case(seed)
    names = [block.id for block in (*problem.anchors, *problem.relations)]
    sold = [i for i, price in enumerate(prices) if price]
    owned = [i for i, price in enumerate(prices) if not price]
    curve: dict[float, float] = {}
    for count in range(len(sold) + 1):
        for chosen in combinations(sold, count):
            cost = round(sum(prices[i] for i in chosen), 9)
            curve[cost] = max(curve.get(cost, 0.0), enumerated(rows, whole, sorted([*owned, *chosen])))
    found = frontier(problem, jointly=True)
    best = 0.0
    for cost in sorted(curve):
        best = max(best, curve[cost])
        point = found.best_within(cost + 1e-9)
        if point is None or abs(point.gamma - best) > STEP * max(1.0, best) or point.cost > cost + 1e-9:
            return False
    for point in found.points:
        together, chosen_names = joined_problem(problem, point.selected)
        held = sorted(owned + [names.index(name) for name in point.selected])
        plain = enumerated(rows, whole, held)
        bounds = together.margin(chosen_names)
        if not bounds.lower * (1 - NEAR) - NEAR <= plain <= bounds.upper * (1 + NEAR) + NEAR:
            return False
        if problem.margin(point.selected).lower > plain * (1 + NEAR) + NEAR:
            return False  # the bound without joint noise must stay one
    budget = sorted(curve)[len(curve) // 2]
    wanted = max(gamma for cost, gamma in curve.items() if cost <= budget)
    planned = plan(problem, budget=budget, jointly=True)
    return bool(abs(planned.gamma - wanted) <= STEP * max(1.0, wanted) and planned.cost <= budget + 1e-9)
