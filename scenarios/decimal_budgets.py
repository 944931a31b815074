"""Money is decimal: plans whose prices and budgets have decimals, against every choice that the money buys, in exact fractions."""

from __future__ import annotations

from typing import Any

PRICES = ("0.05", "0.1", "0.15", "0.2", "0.3", "0.7", "1.1", "1.15", "2.5", "3.3")


def budget_case(seed: int) -> dict[str, Any]:
    """One plan with decimal prices and a budget that is a sum of such prices, against every subset in exact fractions."""
    from fractions import Fraction
    from itertools import combinations

    import numpy as np

    import rrf_design as rrf

    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]
    prices = [str(price) for price in rng.choice(PRICES, 6)]
    pairs = [(0, 2), (0, 3), (1, 3)]
    relations: list[dict[str, Any]] = [{"id": f"r{i}", "tail": names[i], "head": names[i + 1]} for i in range(2)]
    offers: list[dict[str, Any]] = [
        {"id": f"s{i}", "tail": names[a], "head": names[b]} for i, (a, b) in enumerate(pairs)
    ]
    anchors: list[dict[str, Any]] = [{"id": f"x{i}", "node": names[i], "value": [0.0]} for i in range(3)]
    for block, price in zip([*offers, *anchors], prices, strict=True):
        block["cost"] = float(price)
    problem = rrf.Problem(k=1, nodes=[{"id": name} for name in names], relations=[*relations, *offers], anchors=anchors)
    cost = {block["id"]: Fraction(price) for block, price in zip([*offers, *anchors], prices, strict=True)}
    budget = sum((cost[name] for name in rng.choice(sorted(cost), 3, replace=False)), Fraction(0))
    plan = rrf.plan(problem, budget=float(budget))
    subsets = [s for size in range(len(cost) + 1) for s in combinations(sorted(cost), size)]
    affordable = [s for s in subsets if sum((cost[name] for name in s), Fraction(0)) <= budget]
    best = max(problem.margin(list(s)).value for s in affordable)
    return {
        "over": sum((cost[name] for name in plan.selected), Fraction(0)) > budget,
        "worse": plan.gamma < best * (1 - 1e-7) - 1e-9,
        "optimal": str(plan.status) == "optimal",
    }
