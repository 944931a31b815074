"""Money is decimal: plans whose prices and budgets have decimals, against every choice that the
money buys, in exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

import rrf_design as rrf

PRICES = ("0.05", "0.1", "0.15", "0.2", "0.3", "0.7", "1.1", "1.15", "2.5", "3.3")


PREMISES: tuple[dict[str, Any], ...] = ({}, {"unit": "both"}, {"deliver": ["d"]}, {"wrong_checks": 1, "deliver": ["a"]})
"""By turns: each answer on its own; two that fail together; one delivered; one delivered, and a
label may be wrong.
"""


def budget_case(seed: int) -> dict[str, Any]:
    """One plan with decimal prices and a budget that is a sum of such prices, against every subset
    in exact fractions.

    Premises take turns; every third market has a tier, where the second of some blocks costs less.
    """
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
    premise = dict(PREMISES[seed % len(PREMISES)])
    unit = premise.pop("unit", None)
    nodes = [{"id": name} | ({"unit": unit} if unit and name in "bc" else {}) for name in names]
    if "wrong_checks" in premise:
        for anchor in anchors:
            anchor["trusted"] = False
    cost = {block["id"]: Fraction(price) for block, price in zip([*offers, *anchors], prices, strict=True)}
    tier = [str(name) for name in rng.choice(sorted(cost), 3, replace=False)] if seed % 3 == 2 else []
    steps = [str(price) for price in rng.choice(PRICES, 2)]
    tiers = [{"id": "tier", "blocks": tier, "prices": [float(x) for x in steps]}] if tier else []
    problem = rrf.Problem(k=1, nodes=nodes, relations=[*relations, *offers], anchors=anchors, tiers=tiers, **premise)

    def price_of(chosen: Any) -> Fraction:
        inside = sum(name in tier for name in chosen)
        total = sum((cost[name] for name in chosen if name not in tier), Fraction(0))
        return total + sum((Fraction(steps[min(i, 1)]) for i in range(inside)), Fraction(0))

    budget = price_of([str(name) for name in rng.choice(sorted(cost), 3, replace=False)])
    plan = rrf.plan(problem, budget=float(budget))
    subsets = [s for size in range(len(cost) + 1) for s in combinations(sorted(cost), size)]
    affordable = [s for s in subsets if price_of(s) <= budget]
    best = max(problem.margin(list(s)).value for s in affordable)
    return {
        "over": price_of(plan.selected) > budget,
        "worse": plan.gamma < best * (1 - 1e-7) - 1e-9,
        "optimal": str(plan.status) == "optimal",
    }
