"""A market of recorded answers for one item, and policies that buy in it until a margin is certified.

Nine answers at one call each; relations that are free once both answers are there; checks of an answer by an external evaluator
at the price of eight calls. A policy plans again when an answer that it paid for could not be read. Nothing is asked: answers come from a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from rrf_design.planning import plan
from rrf_design.problem import Problem
from rrf_design.repair import repair

Values = Sequence[float] | None

QUERIES = ("original", "second", "third", "fourth", "sample0", "sample1", "sample2", "sample3", "reflection")
CHECK_COST = 8.0
EPSILON = 0.01
"""Right integers satisfy their relations exactly; this leaves room for rounding, and 2ε/γ stays far below half an integer."""


def market(dim: int, k: int, target: float, asked: Mapping[str, Values], anchored: Sequence[str]) -> Problem:
    """What can still be bought: answers not asked yet, and checks. Answers that could not be read are gone."""
    nodes = [
        {"id": name, "dim": dim, **({} if name in asked else {"cost": 1.0})}
        for name in QUERIES
        if name not in asked or asked[name] is not None
    ]
    there = [str(node["id"]) for node in nodes]
    typed = [name for name in there if name in QUERIES[:4]]
    relations = [{"id": f"{a}~{b}", "tail": a, "head": b} for place, a in enumerate(typed) for b in typed[place + 1 :]]
    # Samples repeat one prompt: four copies of one comparison share one weight, so asking again adds no information.
    first = "original" if "original" in there else there[0]
    for name in there:
        if name.startswith("sample") and name != first:
            relations.append({"id": f"{first}~{name}", "tail": first, "head": name, "family": "samples"})
        elif name == "reflection" and name != first:
            relations.append({"id": f"{first}~{name}", "tail": first, "head": name})
    checks = [
        {"id": f"check {name}", "node": name, **({} if name in anchored else {"cost": CHECK_COST})} for name in there
    ]
    return Problem(name="market", k=k, target=target, nodes=nodes, relations=relations, anchors=checks)


@cache
def choose(
    policy: str, k: int, target: float, readable: tuple[str, ...], lost: tuple[str, ...], checked: tuple[str, ...]
) -> tuple[str, ...]:
    """What a policy buys next in this state; () when it has nothing to add. Margins of identity fields don't depend on the dimension."""
    if len(lost) == len(QUERIES):
        return ()  # every answer was paid for, and none can be read
    state: dict[str, Values] = {**dict.fromkeys(readable, (0.0,)), **dict.fromkeys(lost, None)}
    problem = market(1, k, target, state, checked)
    return tuple(plan(problem, target=target, method=policy, time_limit=10.0).selected)


@cache
def certified(k: int, readable: tuple[str, ...], lost: tuple[str, ...], checked: tuple[str, ...]) -> float:
    """Proven lower bound on γ_k of what has been bought."""
    if not readable:
        return 0.0
    state: dict[str, Values] = {**dict.fromkeys(readable, (0.0,)), **dict.fromkeys(lost, None)}
    return float(market(1, k, 0.0, state, checked).margin().lower)


@dataclass(frozen=True, slots=True)
class Play:
    """What one policy asked and checked, what it paid, and the margin that this certifies."""

    asked: Mapping[str, Values]
    checked: tuple[str, ...]
    cost: float
    gamma: float


def buy(recorded: Mapping[str, Values], policy: str, *, k: int, target: float, seed: int) -> Play:
    """Play one policy to its end; `random` takes the wares in the order that the seed gives."""
    asked: dict[str, Values] = {"original": recorded["original"]}
    checked: list[str] = []
    cost, gamma = 1.0, 0.0
    wares = [*QUERIES[1:], *(f"check {name}" for name in QUERIES)]
    order = [wares[int(i)] for i in np.random.default_rng(seed).permutation(len(wares))]
    for _ in range(len(wares)):
        readable = tuple(name for name in QUERIES if asked.get(name) is not None)
        lost = tuple(name for name in QUERIES if name in asked and asked[name] is None)
        state = readable, lost, tuple(name for name in QUERIES if name in checked)
        gamma = certified(k, *state)
        if gamma >= target * (1 - 1e-9):
            break
        if policy == "random":
            bought: Sequence[str] = [order.pop(0)] if order else []
        else:
            bought = choose(policy, k, target, *state)
        checks = [name.removeprefix("check ") for name in bought if name.startswith("check ")]
        names = dict.fromkeys([name for name in bought if name in QUERIES] + checks)
        fresh = [name for name in names if name not in asked]
        if not bought:
            break
        asked.update({name: recorded[name] for name in fresh})
        usable = [name for name in checks if asked[name] is not None and name not in checked]
        cost += len(fresh) + CHECK_COST * len(usable)
        checked += usable
    return Play(asked, tuple(checked), cost, gamma)


def answer(
    dim: int, k: int, asked: Mapping[str, Values], anchored: Sequence[str], truth: Sequence[float]
) -> list[float] | None:
    """Repair what was bought; the checks say the truth. None when nothing could be read."""
    values = {name: tuple(value) for name, value in asked.items() if value is not None}
    if not values:
        return None
    problem = market(dim, k, 0.0, {name: asked[name] for name in asked}, anchored)
    document = problem.model_dump(by_alias=True, exclude_defaults=True)
    document["nodes"] = [node for node in document["nodes"] if node["id"] in values]
    document["relations"] = [r for r in document.get("relations", ()) if r["tail"] in values and r["head"] in values]
    document["anchors"] = [
        {key: v for key, v in a.items() if key != "cost"} | {"value": list(truth)}
        for a in document["anchors"]
        if a["node"] in anchored
    ]
    fixed = repair(type(problem)(**document), values, method="exact", epsilon=EPSILON)
    known = [value for value in fixed.repaired.values() if value is not None]
    return [float(v) for v in np.round(np.median(np.array(known), axis=0))]  # answers are integers


def vote(samples: Sequence[Sequence[float] | None]) -> Sequence[float] | None:
    """The most frequent readable answer; among equals the first."""
    readable = [tuple(value) for value in samples if value is not None]
    return max(readable, key=readable.count, default=None)


def vote_play(recorded: Mapping[str, Values], *, k: int) -> Play:
    """Self-consistency: four samples, no plan, whatever margin that happens to give."""
    names = [name for name in QUERIES if name.startswith("sample")]
    readable = tuple(name for name in names if recorded[name] is not None)
    lost = tuple(name for name in names if recorded[name] is None)
    return Play({name: recorded[name] for name in names}, (), float(len(names)), certified(k, readable, lost, ()))
