"""Where a fractional design is weak: connected supports only, weakest first, each really below the
level.

Regions are connected, larger than a support, no larger than asked for, and each is listed once;
they raise the linear bound.

Mended designs reach the target within the money, by the compiled way and the plain one.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from small import all_designs, cheapest_reaching, random_problem

import rrf_design as rrf
from rrf_design.planning import Order
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof._neighbourhoods import Neighbourhoods
from rrf_design.planning.proof._weak_supports import (
    WIDEST,
    Exchange,
    Mender,
    WeakSupports,
    _hopeless,
    around,
    grown,
    stages,
)
from rrf_design.planning.proof.program import MarketRows
from rrf_design.planning.proof.prover import Prover


def plain_gram(evaluator: Evaluator, shares: np.ndarray) -> np.ndarray:
    held = evaluator.permanent.astype(float)
    held[evaluator.variable] = shares
    dense = evaluator.operator.matrix.toarray()
    return dense.T @ (evaluator.rows(held)[:, None] * dense)


def least(evaluator: Evaluator, gram: np.ndarray, support) -> float:
    columns = evaluator.columns_of(tuple(support))
    return float(np.linalg.eigvalsh(gram[np.ix_(columns, columns)])[0])


def graph_of(evaluator: Evaluator, held: np.ndarray) -> nx.Graph:
    graph = nx.empty_graph(evaluator.n)
    for j in np.flatnonzero(held):
        graph.add_edges_from(combinations(evaluator.block_nodes[j], 2))
    return graph


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_every_weak_connected_set_holds_one_that_is_found(seed, features):
    evaluator = Evaluator(random_problem(seed, features=features, blocks=7, k=2))
    rng = np.random.default_rng(seed)
    shares = np.where(rng.random(len(evaluator.variable)) < 0.3, 0.0, rng.random(len(evaluator.variable)))
    weak = WeakSupports(evaluator)
    held = evaluator.permanent.astype(float)
    held[evaluator.variable] = shares
    gram = plain_gram(evaluator, shares)
    np.testing.assert_allclose(weak.gram(held), gram, atol=1e-12)
    graph = graph_of(evaluator, held > 1e-9)
    level = 0.4
    prefixes, grown = weak.look(shares, level)
    found = [frozenset(int(i) for i in row if i >= 0) for row in prefixes]
    assert len(set(found)) == len(found)
    for nodes in found:
        assert nx.is_connected(graph.subgraph(nodes))
        assert least(evaluator, gram, sorted(nodes)) <= level + 1e-9
    for size in range(1, min(evaluator.size, evaluator.n) + 1):
        for nodes in combinations(range(evaluator.n), size):
            if nx.is_connected(graph.subgraph(nodes)) and least(evaluator, gram, nodes) < level - 1e-9:
                assert any(one <= set(nodes) for one in found)
    values = [least(evaluator, gram, [int(i) for i in row if i >= 0]) for row in grown]
    assert values == sorted(values) or np.allclose(values, np.sort(values), atol=1e-12)
    for prefix, whole in zip(prefixes, grown, strict=True):
        assert {int(i) for i in prefix if i >= 0} <= {int(i) for i in whole if i >= 0}


def test_the_graph_is_that_of_the_blocks_held():
    evaluator = Evaluator(random_problem(4, blocks=7))
    weak = WeakSupports(evaluator)
    held = np.arange(len(evaluator.block_nodes)) % 2 == 0
    pointer, neighbours = weak.graph(held)
    plain = graph_of(evaluator, held)
    for i in range(evaluator.n):
        assert neighbours[pointer[i] : pointer[i + 1]].tolist() == sorted(plain[i])
    nothing = weak.graph(np.zeros(len(held), dtype=bool))
    assert len(nothing[1]) == 0


def connected(weak: WeakSupports, shares: np.ndarray, region: tuple[int, ...]) -> bool:
    pointer, neighbours = weak.graph(weak.held(shares) > 0.0)
    reached, left = {region[0]}, [region[0]]
    while left:
        node = left.pop()
        for other in neighbours[pointer[node] : pointer[node + 1]].tolist():
            if other in region and other not in reached:
                reached.add(other)
                left.append(other)
    return reached == set(region)


@pytest.mark.parametrize("k", [1, 2])
def test_regions_are_connected_and_listed_once(k):
    evaluator = Evaluator(random_problem(7, nodes=9, blocks=20, k=k))
    weak = WeakSupports(evaluator)
    shares = np.random.default_rng(k).random(len(evaluator.variable))
    size = evaluator.size
    one = list(grown(weak, shares, 2.0, more=1))
    two = list(grown(weak, shares, 2.0, more=2))
    wide = list(around(weak, shares, 2.0, tight=[*one, *two]))
    assert one
    assert two
    assert wide
    for listed, lengths in ((one, {size + 1}), (two, {size + 1, size + 2}), (wide, range(size + 1, WIDEST + 1))):
        assert len(set(listed)) == len(listed)
        assert all(len(region) in lengths and connected(weak, shares, region) for region in listed)


@pytest.mark.parametrize("seed", range(6))
def test_the_linear_bound_rises_and_stays_below_the_cheapest_design(seed):
    problem = random_problem(seed + 20, nodes=7, blocks=10, k=1 + seed % 2)
    designs, evaluator = all_designs(problem), Evaluator(problem)
    values = sorted({value for _, value, _ in designs if value > 1e-3})
    for target in values[len(values) // 2 :: 20]:
        least = cheapest_reaching(designs, target)
        single, wide = Prover(evaluator, Order()), Prover(evaluator, Order())
        single.regions = 0
        _, alone = single.relax(target * (1 - 1e-9), None, deadline=None)
        _, together = wide.relax(target * (1 - 1e-9), None, deadline=None)
        assert alone <= together <= least


def test_wide_nodes_and_small_fields_have_none():
    known = {k: stages(WeakSupports(Evaluator(random_problem(1, nodes=9, blocks=12, k=k)))) for k in (1, 2, 3)}
    assert known == {1: 1, 2: 3, 3: 0}
    assert stages(WeakSupports(Evaluator(random_problem(1, nodes=3, blocks=6, k=2)))) == 0


def reach(evaluator: Evaluator, start: np.ndarray, threshold: float, budget, *, compiled: bool) -> np.ndarray | None:
    weak, hoods, structure = WeakSupports(evaluator), Neighbourhoods(evaluator), MarketRows(evaluator)
    if compiled:
        units = None if budget is None else int(budget / structure.unit)
        search = Exchange(weak, hoods, structure.cost[: len(evaluator.market.items)])
        return search.reach(start, threshold**2, units, deadline=None, effort=20.0, seed=1)
    mender = Mender(weak, hoods, threshold**2, np.random.default_rng(1))
    return mender.reach(start, budget, deadline=None, effort=20.0)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize("seed", [2, 5, 6, 7])
def test_the_cheapest_design_is_found_on_small_fields(seed, compiled):
    problem = random_problem(seed, nodes=5, blocks=8, k=1 + seed % 2)
    evaluator = Evaluator(problem)
    designs = all_designs(problem)
    top = max(value for _, value, _ in designs)
    assert top > 0.1
    for share in (0.5, 0.95):
        least = cheapest_reaching(designs, share * top)
        for start in (evaluator.market.empty(), np.ones(len(evaluator.market.items), dtype=bool)):
            found = reach(evaluator, start, share * top, least, compiled=compiled)
            assert found is not None
            assert evaluator.market.cost(found) == least
            assert evaluator.value(found) >= share * top * (1 - 1e-9)


def test_a_search_is_hopeless_when_the_rounds_left_would_not_save_enough():
    costs = [100, 90, 82, 76, 72, 70]
    assert not _hopeless(costs, 65, 4.0)  # 6 in the second half, with two thirds more to come
    assert _hopeless(costs, 57, 4.0)
    assert not _hopeless(costs[:4], 10, 1.0)  # too early to say
    assert _hopeless(costs[:4], 10, 0.0)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
def test_what_nothing_reaches_is_not_found(compiled):
    evaluator = Evaluator(random_problem(10, nodes=6, blocks=8))
    assert reach(evaluator, evaluator.market.empty(), 100.0, None, compiled=compiled) is None


def test_rules_are_kept():
    problem = random_problem(3, nodes=5, blocks=8, features=("rules", "links"))
    evaluator = Evaluator(problem)
    for cost, value, _ in all_designs(problem)[::7]:
        if value > 1e-3:
            found = reach(evaluator, evaluator.market.empty(), value, cost, compiled=False)
            if found is not None and not evaluator.market.broken(found):
                assert evaluator.market.cost(found) <= cost
                assert (evaluator.market.close(found) == found).all()


class Endless(Exception):
    """Weak sets were listed again and again."""


def listed_at_most(mender: Mender, times: int) -> None:
    """Listing weak sets more often is a fault."""
    plain, left = mender._weak, iter(range(times))

    def counted(nodes):
        if next(left, None) is None:
            raise Endless
        return plain(nodes)

    mender._weak = counted


def two_prices(seed: int) -> rrf.Problem:
    """Two nodes, one held check on each, and one more on sale for the second."""
    a, b, c, d = np.random.default_rng(seed).uniform(0.3, 3.0, 4).round(2).tolist()
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "same", "tail": "a", "head": "b", "transport": {"scale": a}}],
        anchors=[
            {"id": "x", "node": "a", "rows": [[b]]},
            {"id": "y", "node": "b", "rows": [[c]], "cost": 1.0},
            {"id": "z", "node": "b", "rows": [[d]], "cost": 1.0},
        ],
        rules=[{"id": "one", "blocks": ["y", "z"], "at_most": 1}],
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_repair_ends_where_two_tests_differ_by_rounding(seed):
    evaluator = Evaluator(two_prices(seed))
    weak, hoods = WeakSupports(evaluator), Neighbourhoods(evaluator)
    mask = evaluator.market.empty()
    mask[0] = True
    at = float(np.linalg.eigvalsh(weak.gram(evaluator.active(mask).astype(float)))[0]) / (1 + 1e-12)
    for step in range(-3, 4):
        mender = Mender(weak, hoods, at * (1 + step * 2.0**-53), np.random.default_rng(0))
        mender.hold(mask)
        listed_at_most(mender, 1 + len(mask))
        mender.mend(None)


def test_a_repair_ends_when_its_time_is_up():
    evaluator = Evaluator(two_prices(1))
    empty, one = evaluator.market.empty(), evaluator.market.empty()
    one[0] = True
    between = (evaluator.value(empty) + evaluator.value(one)) / 2
    assert evaluator.value(empty) < between
    mender = Mender(WeakSupports(evaluator), Neighbourhoods(evaluator), between**2, np.random.default_rng(0))
    assert mender.reach(empty, None, deadline=None, effort=1.0) is not None
    assert mender.reach(empty, None, deadline=-1.0, effort=1.0) is None


LOOKS = 2000
"""At the clock, in a second of it."""

FEATURES = ("dims", "nodes", "noise", "radii", "links", "rules", "tiers")
ENDLESS = (848, 1265, 1375, 1955)
"""Of 2,083 such plans, those whose repair never ended."""


@pytest.mark.parametrize("seed", [*ENDLESS, *range(20)])
def test_small_plans_end_by_their_limit(seed, monkeypatch):
    """On a clock that only goes on when it is looked at, and with few listings in one repair."""
    rng = np.random.default_rng(seed)
    features = tuple(name for name in FEATURES if rng.random() < 0.3)
    nodes, blocks, k = int(rng.integers(2, 6)), int(rng.integers(2, 8)), int(rng.integers(1, 3))
    blocks = max(blocks, 4) if "rules" in features else blocks  # fewer than a rule speaks of
    problem = random_problem(seed, features=features, nodes=nodes, blocks=blocks, k=k)
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        if looks > 2 * LOOKS:
            raise Endless
        return looks / LOOKS

    plain = Mender.mend

    def mend(mender, *given, **named):
        listed_at_most(mender, 2 + len(mender.market.items))
        ended = plain(mender, *given, **named)
        del mender._weak
        return ended

    monkeypatch.setattr(Mender, "mend", mend)
    monkeypatch.setattr("time.monotonic", clock)
    for budget in (1.0, 2.0, 3.5):
        looks = 0
        with suppress(rrf.BudgetError):
            rrf.plan(problem, budget=budget, method="optimal", time_limit=1.0)
