"""Markets with everything that ties purchases together, against every choice: queries on sale,
requires, excludes, rules of a group, tiers, free blocks, ties.

A block can only be bought with the queries that it touches. Money is counted in fractions. Plans
with a budget and plans with a target are held against all subsets that keep the rules: none over
the budget, none that breaks a rule, none called optimal that is not, no upper bound below the best.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

import rrf_design as rrf

PRICES = ("0.05", "0.1", "0.1", "0.1", "0.15", "0.2", "0.3", "0.7", "1.1", "0")
NAMES = ("a", "b", "c", "d")
Chosen = tuple[str, ...]


class DrawnMarket:
    """One market, drawn by a seed, with its own prices and rules beside the problem."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng([3, seed])
        self.cost: dict[str, Fraction] = {}
        nodes: list[dict[str, Any]] = [{"id": name} | self._priced(name, 0.3) for name in NAMES]
        relations: list[dict[str, Any]] = []
        for number in range(int(rng.integers(2, 5))):
            tail, head = (NAMES[int(i)] for i in rng.choice(4, 2, replace=False))
            relations.append({"id": f"s{number}", "tail": tail, "head": head})
        anchors: list[dict[str, Any]] = [
            {"id": f"x{number}", "node": NAMES[int(rng.integers(4))], "value": 0.0}
            for number in range(int(rng.integers(2, 5)))
        ]
        self.sold = set(self.cost)
        self.touched = {b["id"]: (b["tail"], b["head"]) for b in relations} | {b["id"]: (b["node"],) for b in anchors}
        for block in (*relations, *anchors):
            block.update(self._priced(block["id"], 0.8))
            if rng.random() < 0.2:
                block["weight"] = float(rng.choice([0.25, 4.0]))
        offers = [block for block in (*relations, *anchors) if "cost" in block]
        self.requires: list[tuple[str, str]] = []
        self.excludes: list[tuple[str, str]] = []
        for rule, kept, share in (("requires", self.requires, 0.5), ("excludes", self.excludes, 0.4)):
            if len(offers) >= 2 and rng.random() < share:
                first, second = (offers[int(i)] for i in rng.choice(len(offers), 2, replace=False))
                if {first["id"], second["id"]} not in [set(pair) for pair in self.requires]:
                    first[rule] = [second["id"]]
                    kept.append((first["id"], second["id"]))
        names = [block["id"] for block in offers]
        self.groups: list[dict[str, Any]] = []
        self.tier: list[str] = []
        self.steps: list[Fraction] = []
        tiers = []
        if len(names) >= 3 and rng.random() < 0.4:
            chosen = [str(name) for name in rng.choice(names, 3, replace=False)]
            bound = {"at_most": int(rng.integers(1, 3))} if rng.random() < 0.6 else {"at_least": 1}
            self.groups = [{"id": "group", "blocks": chosen, **bound}]
        if len(names) >= 3 and rng.random() < 0.35:
            self.tier = [str(name) for name in rng.choice(names, int(rng.integers(2, 4)), replace=False)]
            told = [str(price) for price in rng.choice(PRICES, 2)]
            self.steps = [Fraction(price) for price in told]
            tiers = [{"id": "tier", "blocks": self.tier, "prices": [float(price) for price in told]}]
        premise = self._premise(nodes, anchors)
        self.problem = rrf.Problem(
            k=1, nodes=nodes, relations=relations, anchors=anchors, tiers=tiers, rules=self.groups, **premise
        )

    def _priced(self, name: str, share: float) -> dict[str, float]:
        if self.rng.random() >= share:
            return {}
        price = str(self.rng.choice(PRICES))
        self.cost[name] = Fraction(price)
        return {"cost": float(price)}

    def _premise(self, nodes: list[dict[str, Any]], anchors: list[dict[str, Any]]) -> dict[str, Any]:
        way = self.rng.random()
        if way < 0.2:
            return {"deliver": [str(self.rng.choice(NAMES))]}
        if way < 0.35:
            for anchor in anchors:
                anchor["trusted"] = False
            return {"wrong_checks": 1, "deliver": ["a"]}
        if way < 0.5:
            for node in nodes[1:3]:
                node["unit"] = "both"
        return {}

    def price(self, chosen: Chosen) -> Fraction:
        inside = sum(name in self.tier for name in chosen)
        plain = sum((self.cost[name] for name in chosen if name not in self.tier), Fraction(0))
        return plain + sum((self.steps[min(i, len(self.steps) - 1)] for i in range(inside)), Fraction(0))

    def legal(self, chosen: Chosen) -> bool:
        held = set(chosen)
        counts = [
            (len(held.intersection(g["blocks"])), g.get("at_least", 0), g.get("at_most", 99)) for g in self.groups
        ]
        return (
            all(second in held for first, second in self.requires if first in held)
            and not any({first, second} <= held for first, second in self.excludes)
            and all(least <= count <= most for count, least, most in counts)
            and all(node in held for name in held for node in self.touched.get(name, ()) if node in self.sold)
            and any(node in held or node not in self.sold for node in NAMES)  # a design without a question is none
        )

    def choices(self) -> list[Chosen]:
        names = sorted(self.cost)
        return [s for size in range(len(names) + 1) for s in combinations(names, size) if self.legal(s)]


def bundle_case(seed: int) -> dict[str, Any]:
    """One market, planned with a budget by every method and with a target: `over`, `illegal` and
    `worse` count what is wrong.
    """
    market = DrawnMarket(seed)
    found = {"over": 0, "illegal": 0, "worse": 0, "optimal": 0}
    choices = market.choices()
    if not choices:
        return found
    problem, rng = market.problem, market.rng
    value = {chosen: problem.margin(list(chosen)).value for chosen in choices}
    budget = market.price(choices[int(rng.integers(len(choices)))])
    best = max(value[chosen] for chosen in choices if market.price(chosen) <= budget)
    for method in ("auto", "greedy", "optimal"):
        plan = rrf.plan(problem, budget=float(budget), method=method)
        chosen, optimal = tuple(sorted(plan.selected)), str(plan.status) == "optimal"
        if str(plan.status) == "infeasible":
            found["worse"] += 1
            continue
        found["over"] += market.price(chosen) > budget or abs(float(market.price(chosen)) - plan.cost) > 1e-9
        found["illegal"] += not market.legal(chosen)
        found["worse"] += plan.upper_bound < best * (1 - 1e-7) - 1e-9 or plan.gamma > best * (1 + 1e-7) + 1e-9
        found["worse"] += optimal and plan.gamma < best * (1 - 1e-7) - 1e-9
        found["optimal"] += optimal
    reached = sorted(v for v in value.values() if v > 1e-9)
    if reached:
        target = reached[int(rng.integers(len(reached)))] * (1 - 1e-6)
        least = min(market.price(chosen) for chosen in choices if value[chosen] >= target)
        plan = rrf.plan(problem, target=target)
        chosen = tuple(sorted(plan.selected))
        found["illegal"] += not market.legal(chosen)
        found["worse"] += str(plan.status) == "infeasible" or plan.gamma < target * (1 - 1e-6)
        found["over"] += str(plan.status) == "optimal" and market.price(chosen) > least
        found["optimal"] += str(plan.status) == "optimal"
    return found
