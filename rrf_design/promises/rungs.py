"""Rungs from the planner: which answers to ask first, and how many of them for which k (docs/algorithms.md, facts 21 and 24).

The exact frontier of a structure's asks, all of them on sale, names the cheapest design for every margin that can be had at k = 1 and k = 2. Its designs, in the order of
their cost, make one order of asking; margins never fall when something is bought, so every beginning of that order has at least the margin of the
designs it holds. For a margin g let T_k(g) be the shortest beginning that has it at k. A climb certifies at k = 0, else 1, else 2, each rung with the margin of the one
before or the next larger one: what was contested once must be no easier to accept later. At k = 0, where a margin means nothing, a rung asks two
answers fewer than at k = 1, and at least two: in a field where all answer the same question γ_k is √(T − 2k), and T − 2k is the lead that the rung asks for.

What climbs further may buy checks that machines make, as a design of the exact frontier over asks and checks together: at k = 1, at k = 2, and where every
answer may be wrong, which is where a check that decides, or one whose noise is small against what is wanted, has a margin and answers have none. The
cheapest such designs that reach the problem's own goal are rungs (`CheckRung`), those of the two cheapest checks that decide each for itself too, for one may be worse than its word; and so is the cheapest quorum of checks that may be wrong, but not all.

Each structure is planned once, and nothing here looks at answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

from rrf_design.blocks import Anchor
from rrf_design.decisive import decides, delivered_node, quorum, sole_delivered, suspect_statements
from rrf_design.market import exact
from rrf_design.problem import Problem
from rrf_design.promises.checks import machine_checks, shown_to

LARGEST_K = 2
MOST_ASKS = 12
"""Structures with more asks get no climbs: their frontiers take long, and a time limit would make the family depend on the clock."""
MOST_STRUCTURES = 3
"""The most common ones: a family for every oddity would cost more tests than it is worth."""
MOST_MARGINS = 12
MOST_DESIGNS = 2
"""Of the frontier for each k: every design with checks goes with every ladder before it, and every test costs."""
CLOSE = 1e-9
Shared = TypeVar("Shared")


@dataclass(frozen=True, slots=True)
class Climb:
    """Nodes in the order they are asked, and rungs (answers, k), from few answers to many."""

    order: tuple[str, ...]
    rungs: tuple[tuple[int, int], ...]
    level: bool
    """Every rung from k = 0 on asks for the same margin: where all answer one question, that is a lead."""


@dataclass(frozen=True, slots=True)
class CheckRung:
    """A design with checks: answers and checks in the order they are bought, for items that no gate before it accepts. k: how many answers may
    be wrong; None for all of them."""

    steps: tuple[str, ...]
    k: int | None


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


def check_rungs(problem: Problem, prices: Mapping[str, float], names: Collection[str]) -> list[CheckRung]:
    """The designs of one structure's frontier that hold some of the named checks, each distinct one once. Where the frontier would be too large: the cheapest
    checks that decide, each for itself."""
    checks = [anchor for anchor in machine_checks(problem) if anchor.id in names]
    sure = _deciding(problem, checks)
    if problem.nonlinear or len(problem.nodes) + len(checks) > MOST_ASKS:
        return [_rung(problem, [check], None) for check in sure[:MOST_DESIGNS]]
    found = [rung for check in sure[:MOST_DESIGNS] for rung in _designs(problem, prices, [check], None)]
    found += _designs(problem, prices, sure, None)
    if len(sure) < len(checks):
        # What decides needs no k and no judge before it; designs of such checks alone are there already.
        for k in (None, *range(1, LARGEST_K + 1)):
            designs = _designs(problem, prices, checks, k)
            found += [rung for rung in designs if any(check.id in rung.steps for check in checks if check not in sure)]
    suspects = {check.id for check in suspect_statements(problem, delivered_node(problem))}
    several = [check for check in checks if check.id in suspects]
    if len(several) >= quorum(problem):
        found.append(_rung(problem, several[: quorum(problem)], None))
    return list(dict.fromkeys(found))


def _designs(problem: Problem, prices: Mapping[str, float], checks: Sequence[Anchor], k: int | None) -> list[CheckRung]:
    """The cheapest designs with checks on the exact frontier over asks and these checks that reach the problem's goal at k."""
    from rrf_design.bundles import Measure
    from rrf_design.derive import on_sale
    from rrf_design.planning import frontier

    if not checks:
        return []
    asks, known = on_sale(problem, prices), {check.id for check in checks}
    plain = [check.model_copy(update={"requires": (), "excludes": ()}) for check in checks]
    sold = asks.model_copy(update={"anchors": (*asks.anchors, *plain)})
    most = len(sold.nodes) if k is None else k
    found: list[CheckRung] = []
    for point in frontier(sold, measure=Measure(most)).points:
        if len(found) == MOST_DESIGNS or known.isdisjoint(point.selected) or point.gamma <= CLOSE:
            continue
        held = [check for check in checks if check.id in point.selected]
        design = sold.design(point.selected)
        if _deciding(problem, held) or design.standing(sold, margin=design.margin(most)).reached:
            found.append(_rung(problem, held, k, point.selected))
    return found


def rungs_by_hand(problem: Problem, names: Sequence[str]) -> list[CheckRung]:
    """These checks, for every k; one rung where a check decides and k means nothing."""
    checks = [anchor for name in names for anchor in machine_checks(problem) if anchor.id == name]
    if len(checks) < len(names):
        return []
    ks = (None,) if _deciding(problem, checks) else (None, *range(1, LARGEST_K + 1))
    return [_rung(problem, checks, k) for k in ks]


def _deciding(problem: Problem, checks: Sequence[Anchor]) -> list[Anchor]:
    """Those that state all that is delivered, and are not suspect."""
    node = sole_delivered(problem)
    return [] if node is None else [check for check in checks if decides(problem, check, node)]


def _rung(problem: Problem, checks: Sequence[Anchor], k: int | None, design: Collection[str] = ()) -> CheckRung:
    """The design's answers, and those that its checks are made from; then its checks. Where checks decide, no other answer is needed."""
    shown = {name for check in checks for name in shown_to(problem, check)}
    needed = shown if len(_deciding(problem, checks)) == len(checks) else shown.union(design)
    asked = [name for name in _plainly(problem) if name in needed]
    return CheckRung((*asked, *(check.id for check in checks)), k)
