"""Small random problems with every feature, and the definition of a best plan: look at all
designs.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

import rrf_design as rrf
from rrf_design.market import Market, exact


def random_problem(
    seed: int, *, features: tuple[str, ...] = (), nodes: int = 5, blocks: int = 7, k: int = 1
) -> rrf.Problem:
    """A field with some owned relations and about `blocks` candidates; `features` switches on what
    a plan may contain.
    """
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(nodes)]
    field = [{"id": name, "dim": int(rng.integers(1, 3)) if "dims" in features else 1} for name in names]
    if "nodes" in features:
        for node in field[-2:]:
            node["cost"] = float(rng.integers(0, 3))
    dims = {node["id"]: node["dim"] for node in field}
    relations, anchors = [], []
    for i in range(1, nodes):
        if rng.random() < 0.5:
            relations.append(_relation(rng, f"own{i}", names[int(rng.integers(i))], names[i], dims))
    for j in range(blocks):
        cost = float(rng.choice([0.5, 1.0, 1.5, 2.0, 3.0]))
        if rng.random() < 0.5:
            tail, head = (names[i] for i in rng.choice(nodes, 2, replace=False))
            block = _relation(rng, f"b{j}", tail, head, dims)
            relations.append(block)
        else:
            node = names[int(rng.integers(nodes))]
            block = {
                "id": f"b{j}",
                "node": node,
                "rows": rng.integers(1, 3, (dims[node], dims[node])).astype(float).tolist(),
            }
            anchors.append(block)
        block["cost"] = cost
        if "noise" in features and rng.random() < 0.5:
            block["sigma"] = float(rng.choice([0.5, 2.0]))
        if "radii" in features and rng.random() < 0.6:
            block["uncertainty"] = float(rng.choice([0.05, 0.2, 0.4]))
        if "links" in features and j and rng.random() < 0.4:
            block["requires" if rng.random() < 0.5 else "excludes"] = [f"b{int(rng.integers(j))}"]
    ids = [f"b{j}" for j in range(blocks)]
    settings = {}
    if "rules" in features:
        settings["rules"] = [
            {"id": "most", "blocks": ids[:4], "at_most": 2},
            {"id": "least", "blocks": ids[3:], "at_least": 1},
        ]
    if "tiers" in features:
        settings["tiers"] = [{"id": "bulk", "blocks": ids[::2], "prices": [2.0, 1.0, 0.5]}]
    return rrf.Problem(name=f"random {seed}", k=k, nodes=field, relations=relations, anchors=anchors, **settings)


def _relation(rng: np.random.Generator, name: str, tail: str, head: str, dims: dict[str, int]) -> dict:
    matrix = rng.integers(-1, 3, (dims[head], dims[tail])).astype(float)
    matrix[0, 0] = 1.0
    return {"id": name, "tail": tail, "head": head, "transport": {"matrix": matrix.tolist()}}


def all_designs(problem: rrf.Problem, *, value=None) -> list[tuple[Fraction, float, tuple[str, ...]]]:
    """(cost, objective, design) of every admissible design, by the definition: closed under needs,
    rules obeyed.
    """
    market = Market(problem)
    value = value or (lambda names: problem.margin(names).value)
    result = []
    for count in range(len(market.items) + 1):
        for chosen in combinations(range(len(market.items)), count):
            mask = market.empty()
            mask[list(chosen)] = True
            names = market.names(mask)
            if (market.close(mask) != mask).any() or not _obeys(problem, names):
                continue
            if not any(node.cost is None or node.id in names for node in problem.nodes):
                continue
            result.append((_bill(problem, names), value(names), names))
    return result


def _bill(problem: rrf.Problem, names: tuple[str, ...]) -> Fraction:
    total, tiered = Fraction(0), {name for tier in problem.tiers for name in tier.blocks}
    for name in names:
        entry = problem.node_by_id.get(name) or problem.block_by_id[name]
        total += 0 if name in tiered else exact(entry.cost or 0.0)
    for tier in problem.tiers:
        for i in range(len(set(tier.blocks) & set(names))):
            total += exact(tier.prices[min(i, len(tier.prices) - 1)])
    return total


def _obeys(problem: rrf.Problem, names: tuple[str, ...]) -> bool:
    chosen = set(names)
    held = chosen | {block.id for block in problem.blocks if block.owned}
    for rule in problem.rules:
        count = len(chosen & set(rule.blocks))
        if count < (rule.at_least or 0) or (rule.at_most is not None and count > rule.at_most):
            return False
    for block in problem.blocks:
        if block.id in held and (not held.issuperset(block.requires) or held.intersection(block.excludes)):
            return False
    return True


def best_within(designs: list[tuple[Fraction, float, tuple[str, ...]]], budget: float) -> float | None:
    values = [value for cost, value, _ in designs if cost <= exact(budget)]
    return max(values) if values else None


def cheapest_reaching(designs: list[tuple[Fraction, float, tuple[str, ...]]], target: float) -> Fraction | None:
    costs = [cost for cost, value, _ in designs if value >= target * (1 - 1e-9)]
    return min(costs) if costs else None
