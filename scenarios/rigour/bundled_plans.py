"""Markets with everything that ties purchases together, against every choice: queries on sale,
requires, excludes, rules of a group, tiers, free blocks, ties.

A block can only be bought with the queries that it touches. Money is counted in fractions. Plans
with a budget and plans with a target are held against all subsets that keep the rules: none over
the budget, none that breaks a rule, none called optimal that is not, no upper bound below the best.

The same markets with noise, uncertain blocks, answers of two numbers and promised errors are
planned with a limit of time. What a limit ends may be worse, and says nothing false; and it does
end: a plan that computes on long after its limit is stopped and counted.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.errors import RRFError

PRICES = ("0.05", "0.1", "0.1", "0.1", "0.15", "0.2", "0.3", "0.7", "1.1", "0")
NAMES = ("a", "b", "c", "d")
Chosen = tuple[str, ...]
LIMIT = 0.2  # seconds
PATIENCE = 100  # times the limit, of computing: then a plan is stopped
FEW = 40  # choices that are gone through where a limit may end a plan


class DrawnMarket:
    """One market, drawn by a seed, with its own prices and rules beside the problem."""

    def __init__(self, seed: int, *, varied: bool = False) -> None:
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
        if varied:
            premise |= self._varied(nodes, relations, anchors)
        self.problem = rrf.Problem(
            nodes=nodes, relations=relations, anchors=anchors, tiers=tiers, rules=self.groups, **{"k": 1} | premise
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

    def _varied(
        self, nodes: list[dict[str, Any]], relations: list[dict[str, Any]], anchors: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Answers of two numbers, noise, copies and uncertain blocks; an error to promise."""
        rng = self.rng
        wide = int(rng.choice([1, 1, 2]))
        noisy, uncertain, copied = (share * float(rng.random() < 0.4) for share in (0.6, 0.6, 0.6))
        for node in nodes:
            node["dim"] = wide
        for block in (*relations, *anchors):
            matrix = rng.integers(-1, 3, (wide, wide)).astype(float)
            matrix[0, 0] = 1.0
            if "tail" in block:
                block["transport"] = {"matrix": matrix.tolist()}
            else:
                block |= {"rows": (np.abs(matrix) + np.eye(wide)).tolist(), "value": [0.0] * wide}
            if rng.random() < noisy:
                block["sigma"] = float(rng.choice([0.5, 1.0, 2.0]))
            elif rng.random() < uncertain:
                block["uncertainty"] = float(rng.choice([0.05, 0.2]))
            elif rng.random() < copied:
                block |= {"family": "copies", "weight": 1.0}
        premise: dict[str, Any] = {"k": int(rng.integers(1, 3))}
        premise |= {"epsilon": 0.1} if rng.random() < 0.4 else {}
        return premise | ({"delta": float(rng.choice([0.5, 2.0]))} if rng.random() < 0.3 else {})

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


class StillPlanning(BaseException):
    """What ends a plan that does not end by itself; no planner catches it."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise `StillPlanning` after so many seconds of computing, however busy the machine is."""

    def stop(*_: Any) -> None:
        raise StillPlanning

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def limited_case(seed: int) -> dict[str, Any]:
    """One market, planned with a budget and with a target, each with a limit: how many plans were
    `tried` and `ended`, by how many seconds of computing the slowest was `late`, and how many say
    something `false`.
    """
    market = DrawnMarket(seed, varied=True)
    rng, found = market.rng, {"tried": 0, "ended": 0, "late": 0.0, "false": 0, "optimal": 0, "refused": 0}
    budget, target = float(rng.choice([0.3, 0.8, 2.0])), float(rng.choice([0.1, 0.4, 0.8]))
    method = str(rng.choice(["auto", "optimal", "witness-cuts"]))
    goals: list[dict[str, Any]] = [{"budget": budget}, {"target": target}]
    for goal in goals:
        found["tried"] += 1
        plan, begun = None, time.process_time()
        try:
            with stopped_after(PATIENCE * LIMIT):
                plan = rrf.plan(market.problem, method=method, time_limit=LIMIT, **goal)
        except RRFError:  # nothing is affordable, or the method is not for such a problem
            found["refused"] += 1
        except StillPlanning:
            found["ended"] -= 1
        found["ended"] += 1
        found["late"] = max(found["late"], time.process_time() - begun - LIMIT)
        if plan is not None:
            found["false"] += not _true(market, plan, **goal)
            found["optimal"] += str(plan.status) == "optimal"
    return found


def _true(market: DrawnMarket, plan: Any, *, budget: float | None = None, target: float | None = None) -> bool:
    """Whether a plan is what it says, and where there are few choices: whether no other contradicts
    it.
    """
    chosen, status, problem = tuple(sorted(plan.selected)), str(plan.status), market.problem
    if status == "infeasible":
        legal = True
    else:
        legal = market.legal(chosen) and abs(float(market.price(chosen)) - plan.cost) <= 1e-9
        legal &= budget is None or market.price(chosen) <= Fraction(str(budget))
    choices = market.choices()
    if not legal or len(choices) > FEW or problem.delta is not None or any(b.uncertainty for b in problem.blocks):
        return legal
    value = {choice: problem.margin(list(choice)).value for choice in choices}
    if target is not None:
        reaching = [market.price(choice) for choice in choices if value[choice] >= target * (1 - 1e-9)]
        if status == "infeasible":
            return not reaching
        return status != "optimal" or market.price(chosen) <= min(reaching, default=Fraction(0))
    assert budget is not None
    best = max((value[c] for c in choices if market.price(c) <= Fraction(str(budget))), default=0.0)
    if abs(plan.gamma - value[chosen]) > 1e-7 * (1 + value[chosen]) or plan.upper_bound < best * (1 - 1e-7) - 1e-9:
        return False
    return status != "optimal" or plan.gamma >= best * (1 - 1e-5) - 1e-9
