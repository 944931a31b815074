"""Rungs from the planner: which answers to ask first, and how many of them for which k (docs/algorithms.md, facts 21 and 24).

The exact frontier of a structure's asks, all of them on sale, names the cheapest design for every margin that can be had at k = 1 and k = 2. Its designs, in the order of
their cost, make one order of asking; margins never fall when something is bought, so every beginning of that order has at least the margin of the
designs it holds. For a margin g let T_k(g) be the shortest beginning that has it at k. A climb certifies at k = 0, else 1, else 2, each rung with the margin of the one
before or the next larger one: what was contested once must be no easier to accept later. At k = 0, where a margin means nothing, a rung asks two
answers fewer than at k = 1, and at least two: in a field where all answer the same question γ_k is √(T − 2k), and T − 2k is the lead that the rung asks for.

Each structure is planned once, and nothing here looks at answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

from rrf_design.decisive import delivered_node
from rrf_design.market import exact
from rrf_design.problem import Problem

LARGEST_K = 2
MOST_ASKS = 12
"""Structures with more asks get no climbs: their frontiers take long, and a time limit would make the family depend on the clock."""
MOST_STRUCTURES = 3
"""The most common ones: a family for every oddity would cost more tests than it is worth."""
MOST_MARGINS = 12
CLOSE = 1e-9
Shared = TypeVar("Shared")


@dataclass(frozen=True, slots=True)
class Climb:
    """Nodes in the order they are asked, and rungs (answers, k), from few answers to many."""

    order: tuple[str, ...]
    rungs: tuple[tuple[int, int], ...]
    level: bool
    """Every rung from k = 0 on asks for the same margin: where all answer one question, that is a lead."""


def common(shapes: Sequence[Shared]) -> list[Shared]:
    """The most common of these objects, the most frequent first."""
    counts = Counter(id(shape) for shape in shapes)
    distinct = {id(shape): shape for shape in shapes}
    return sorted(distinct.values(), key=lambda shape: -counts[id(shape)])[:MOST_STRUCTURES]


def climbs_of(problem: Problem, prices: Mapping[str, float]) -> list[Climb]:
    """The climbs of one structure, each distinct one once; none where the frontier would be too large."""
    from rrf_design.derive import on_sale

    if problem.nonlinear or not 2 <= len(problem.nodes) <= MOST_ASKS:
        return []
    sold = on_sale(problem, prices)
    order, margins = _order(sold)
    reach = _reach(sold, order, margins)
    plain = _plainly(sold)
    if _paid(sold, plain, _reach(sold, plain, margins)) == _paid(sold, order, reach):
        order = plain
    found: dict[tuple[tuple[int, int], ...], bool] = {}
    for place in range(len(margins)):
        for steps in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)):
            for kept in ((0, 1, 2), (0, 1), (1, 2), (0, 2)):
                chosen = {k: place + steps[k] for k in kept}
                if len(kept) == 2 and abs(chosen[kept[1]] - chosen[kept[0]]) > 1:
                    continue
                rungs = tuple((reach[k][at], k) for k, at in chosen.items() if at in reach[k])
                if len(rungs) == len(kept) and all(after[0] > before[0] for before, after in pairwise(rungs)):
                    found.setdefault(rungs, len(set(chosen.values())) == 1 and kept in ((0, 1), (0, 1, 2)))
    return [Climb(order, rungs, level) for rungs, level in found.items()]


def _plainly(sold: Problem) -> tuple[str, ...]:
    """What is delivered, then cheap ones first, equals as the recipe has them: which of two nodes of one price a frontier takes means nothing."""
    delivered = delivered_node(sold)
    place = {node.id: (node.id != delivered, node.cost or 0.0, at) for at, node in enumerate(sold.nodes)}
    return tuple(sorted(place, key=place.__getitem__))


def _paid(sold: Problem, order: Sequence[str], reach: Mapping[int, Mapping[int, int]]) -> object:
    """What each rung costs: two orders with the same bills are equally good."""
    bill = [0, *accumulate(exact(sold.node_by_id[name].cost or 0.0) for name in order)]
    return {k: {place: (answers, bill[answers]) for place, answers in rungs.items()} for k, rungs in reach.items()}


def _order(sold: Problem) -> tuple[tuple[str, ...], list[float]]:
    """Nodes as the frontier's designs add them, cheap ones first where a design adds several; and every margin that can be had."""
    from rrf_design.bundles import Measure
    from rrf_design.planning import frontier

    price = {node.id: float(node.cost or 0.0) for node in sold.nodes}
    order: dict[str, None] = {}
    margins: list[float] = []
    for k in range(1, LARGEST_K + 1):
        for point in frontier(sold, measure=Measure(k)).points:
            if point.gamma > CLOSE:
                margins.append(point.gamma)
                order.update(dict.fromkeys(sorted((n for n in point.selected if n in price), key=price.__getitem__)))
    order.update(dict.fromkeys(sorted(price, key=price.__getitem__)))
    distinct: list[float] = []
    for margin in sorted(margins):
        if not distinct or margin > distinct[-1] * (1 + 1e-6):
            distinct.append(margin)
    return tuple(order), distinct[:MOST_MARGINS]


def _reach(sold: Problem, order: Sequence[str], margins: Sequence[float]) -> dict[int, dict[int, int]]:
    """T_k: for each k and place of a margin, how many answers reach it."""
    found: dict[int, dict[int, int]] = {k: {} for k in range(LARGEST_K + 1)}
    for k in range(1, LARGEST_K + 1):
        for answers in range(1, len(order) + 1):
            gamma = sold.margin(select=list(order[:answers]), k=k).lower
            for place, wanted in enumerate(margins):
                if gamma >= wanted * (1 - 1e-6):
                    found[k].setdefault(place, answers)
    found[0] = {place: answers - 2 for place, answers in found[1].items() if answers > 3}
    return found
