"""What no design can do: bounds, cuts, hulls and neighbourhoods."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog
from small import all_designs, random_problem

from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof import _neighbourhoods as neighbourhoods
from rrf_design.planning.proof import bounds, cuts
from rrf_design.planning.proof._neighbourhoods import HOPELESS, HullPool, HullRow, Neighbourhoods, _Side
from rrf_design.planning.proof.bounds import (
    MarketRelaxation,
    bound_from_cuts,
    ceiling,
    knapsack,
    lifted,
    relaxation_bound,
    safe_cost,
)
from rrf_design.planning.proof.cuts import SCALE, CutRow, _counts_up_to, _covering, _keep_stronger, _weights_for
from rrf_design.planning.proof.program import MarketRows, relaxed
from rrf_design.planning.supports import Witness
from rrf_design.problem import Problem


@pytest.mark.parametrize("seed", range(8))
def test_the_knapsack_is_its_linear_program_rounded_up(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 7))
    gains = rng.integers(-1, 5, size=count) / 3.0
    prices = rng.integers(0, 4, size=count) / 2.0  # some are free, some tie
    for budget in (0.0, 0.7, 2.5, 100.0):
        solved = linprog(-np.maximum(gains, 0.0), A_ub=prices[None], b_ub=[budget], bounds=[(0, 1)] * count)
        assert -solved.fun * (1 - 1e-9) <= knapsack(gains, prices, budget) <= -solved.fun * (1 + 1e-9) + 1e-12
    assert knapsack(gains, prices, None) == pytest.approx(np.maximum(gains, 0.0).sum())


def test_the_knapsack_is_never_below_the_exact_one():
    """Prices whose float sums round the wrong way: still at least what rationals say can be
    bought.
    """
    prices = np.array([0.1] * 10)
    gains = np.ones(10)
    budget = float(sum(Fraction(0.1) for _ in range(10)))
    assert knapsack(gains, prices, budget) >= 10.0
    assert knapsack(gains, np.array([0.1, 0.2, 0.3] + [0.1] * 7), 0.6) >= 3.0
    assert knapsack(np.zeros(0), np.zeros(0), 1.0) == 0.0


FEATURES = [(), ("dims",), ("noise",), ("nodes",), ("tiers",), ("links",)]


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_no_design_within_the_budget_passes_any_bound(features):
    problem = random_problem(11, features=features, blocks=6)
    evaluator = Evaluator(problem)
    designs = all_designs(problem, value=None)
    for mask in ([False] * len(evaluator.market.items), [True] * len(evaluator.market.items)):
        found = evaluator.evaluate(np.array(mask), count=10)
        for witness in found.witnesses:
            evaluator.pool.add(witness)
    rng = np.random.default_rng(0)
    for budget in (0.0, 2.0, 4.5, None):
        best = max((value for cost, value, _ in designs if budget is None or cost <= budget), default=0.0)
        assert bound_from_cuts(evaluator, budget) >= best * (1 - 1e-9)
        assert ceiling(evaluator) >= best * (1 - 1e-9)
        assert relaxation_bound(evaluator, budget) >= best * (1 - 1e-9)
        assert relaxation_bound(evaluator, budget) <= bound_from_cuts(evaluator, budget) * (1 + 1e-9)
        kept = len(evaluator.pool.ungated())
        for _ in range(5 if kept else 0):
            assert bound_from_cuts(evaluator, budget, rng.random(kept)) >= best * (1 - 1e-9)


def test_without_cuts_the_ceiling_is_all_there_is():
    evaluator = Evaluator(random_problem(2, blocks=5))
    assert bound_from_cuts(evaluator, 1.0) == ceiling(evaluator)
    everything = np.ones(len(evaluator.market.items), dtype=bool)
    single = min(np.linalg.norm(evaluator.operator.matrix.toarray()[:, columns], 2) for columns in evaluator.columns)
    assert evaluator.value(everything) <= ceiling(evaluator) == pytest.approx(single)


@pytest.mark.parametrize("seed", range(3))
def test_a_lifted_cut_still_cuts_its_design_off_and_holds_for_every_other(seed):
    evaluator = Evaluator(random_problem(seed, blocks=7, features=("dims",)))
    mask = evaluator.market.empty()
    target = 0.5 * evaluator.value(np.ones(len(mask), dtype=bool)) + 0.2
    present = evaluator.active(mask)
    for witness in evaluator.evaluate(mask, count=4).witnesses:
        stronger = lifted(evaluator, witness, present, target * target, np.arange(len(present), dtype=float))
        assert stronger.support == witness.support
        energies = evaluator.energies(stronger)
        assert np.linalg.norm(stronger.vector) == pytest.approx(1.0)
        assert energies[present].sum() < target * target
        for bits in list(product([False, True], repeat=len(mask)))[::9]:
            design = np.array(bits)
            assert evaluator.value(design) ** 2 <= energies[evaluator.active(design)].sum() * (1 + 1e-9) + 1e-12


def random_rows(rng: np.random.Generator, variables: int, count: int) -> list[CutRow]:
    rows = []
    for _ in range(count):
        used = np.sort(rng.choice(variables, size=int(rng.integers(1, variables + 1)), replace=False))
        coefficients = rng.integers(-1, 5, size=len(used))
        rows.append(
            CutRow(used, coefficients, int(rng.integers(0, max(int(np.maximum(coefficients, 0).sum()), 1) + 1)))
        )
    return rows


def test_no_prices_prove_too_much():
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(60):
        rows, cost = random_rows(rng, 6, 5), rng.integers(0, 9, size=6)
        best = least(rows, cost)
        if best is None:
            continue
        seen += 1
        for prices in (rng.random(5) * 3, np.zeros(5), rng.random(5) * 1e7, rng.random(5) * 1e-9):
            assert safe_cost(rows, prices, cost) <= best
    assert seen > 20


def least(rows: list[CutRow], cost: np.ndarray) -> int | None:
    """The cheapest whole solution, by looking at all."""
    found = [
        int(cost @ x)
        for x in map(np.array, product([0, 1], repeat=len(cost)))
        if all(int(row.coefficients @ x[row.variables]) >= row.bound for row in rows)
    ]
    return min(found, default=None)


def test_the_linear_bound_is_proven_in_full_and_follows_its_rows():
    """Three of three at 2, 3 and 4, then two of them, then none: rows change their bound and are
    switched off.
    """
    structure = MarketRows(Evaluator(random_problem(1, blocks=4)))
    relaxation = MarketRelaxation(structure)
    variables = np.flatnonzero(structure.cost)[:3]
    for need in (3, 2, 1, 2):
        row = CutRow(variables, np.ones(3, dtype=np.int64), need)
        solved = relaxation.solve([row])
        cheapest = int(np.sort(structure.cost[variables])[:need].sum())
        proven = safe_cost([*structure.rows, row], solved.prices, structure.cost)
        assert proven == cheapest
        assert solved.cost >= proven - 1e-6
    assert relaxation.solve([None]).cost == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_rows_given_as_they_are_missed_have_the_optimum_of_all(seed, monkeypatch):
    """Rows that come, change and are switched off, and a solver that begins anew all the time."""
    monkeypatch.setattr(bounds, "CROWDED", 1)
    monkeypatch.setattr(bounds, "FEW", 0)
    rng = np.random.default_rng(seed)
    structure = MarketRows(Evaluator(random_problem(seed, nodes=7, blocks=14)))
    relaxation, rows = MarketRelaxation(structure), list[CutRow | None]()
    for _ in range(8):
        for _ in range(6):
            some = rng.choice(structure.variables, size=4, replace=False)
            rows.append(CutRow(some, rng.integers(1, 4, size=4), int(rng.integers(1, 5))))
        for at in rng.integers(len(rows), size=3):
            row = rows[at]
            rows[at] = None if row is None else CutRow(row.variables, row.coefficients, row.bound % 4 + 1)
        solved = relaxation.solve(rows)
        there = [row for row in rows if row is not None]
        everything = relaxed(structure.program(target=None, budget=None, cuts=there))
        assert solved.cost == pytest.approx(structure.cost @ everything)
        prices = [p for p, row in zip(solved.prices[len(structure.rows) :], rows, strict=True) if row is not None]
        proven = safe_cost(
            [*structure.rows, *there], np.array([*solved.prices[: len(structure.rows)], *prices]), structure.cost
        )
        assert solved.cost - 1e-4 <= proven < solved.cost + 1


FEATURES_CUTS = [(), ("dims",), ("nodes",), ("noise",), ("radii",), ("radii", "nodes")]


def closed(evaluator: Evaluator) -> list[np.ndarray]:
    every = (np.array(bits, dtype=bool) for bits in product([False, True], repeat=len(evaluator.market.items)))
    return [m for m in every if (evaluator.market.close(m) == m).all() and evaluator.opened(m).any()]


def values_of(evaluator: Evaluator, structure: MarketRows, mask: np.ndarray) -> np.ndarray:
    values = np.zeros(structure.variables, dtype=np.int64)
    values[: len(mask)] = mask
    for number, block in enumerate(structure.waiting):
        values[len(mask) + number] = evaluator.active(mask)[block]
    return values


@pytest.mark.parametrize("features", FEATURES_CUTS, ids="-".join)
def test_rows_hold_for_whatever_reaches_the_target_and_bounds_for_everything(features):
    evaluator = Evaluator(random_problem(31, features=features, blocks=6))
    structure, designs = MarketRows(evaluator), closed(evaluator)
    for mask in designs[::3]:
        for witness in evaluator.evaluate(mask, count=4).witnesses:
            evaluator.pool.add(witness, mask, master=True)
    reached = np.array([evaluator.value(mask) for mask in designs])
    bounds = evaluator.pool.bounds(np.array(designs))
    assert (reached**2 <= bounds * (1 + 1e-9) + 1e-12).all()
    cut = 0
    for target in np.unique(reached[reached > 1e-6])[::-3]:
        rows = evaluator.pool.rows(float(target**2), structure)
        for mask, value in zip(designs, reached, strict=True):
            values = values_of(evaluator, structure, mask)
            kept = all(int(row.coefficients @ values[row.variables]) >= row.bound for row in rows)
            assert kept or value < target
            cut += not kept
    assert cut > 0


def test_a_witness_is_kept_once_and_the_master_gets_it_when_it_is_told_to():
    evaluator = Evaluator(random_problem(1, blocks=5))
    witness = evaluator.evaluate(evaluator.market.empty(), count=1).witnesses[0]
    assert evaluator.pool.add(witness)
    assert evaluator.pool.rows_known == 0
    assert not evaluator.pool.add(Witness(witness.support, -witness.vector, 0.0), master=True)
    assert evaluator.pool.rows_known == 1
    energies, owned = evaluator.pool.stacked()
    assert energies.shape == (1, len(evaluator.variable))
    assert owned[0] + energies[0].sum() == pytest.approx(evaluator.energies(witness).sum())


def test_an_empty_pool_says_nothing():
    evaluator = Evaluator(random_problem(1, blocks=4))
    assert np.isinf(evaluator.pool.bounds(np.zeros((2, len(evaluator.market.items)), dtype=bool))).all()
    assert evaluator.pool.rows(1.0, MarketRows(evaluator)) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_covering_row_in_whole_numbers_is_never_stronger_than_the_real_one(seed):
    rng = np.random.default_rng(seed)
    energies = np.where(rng.random(6) < 0.3, 1e-14, rng.random(6))
    if seed % 2:
        energies[0] = -0.3
    need = 1.1
    row = _covering(energies, np.arange(6), need, (), ())
    for chosen in (np.array(bits) for bits in product([0, 1], repeat=6)):
        if energies @ chosen >= need:
            assert row.coefficients @ chosen[row.variables] >= row.bound
    assert row.coefficients.max() <= 2 * SCALE
    gated = _covering(energies, np.arange(6), need, (6, 7), ())
    for chosen in (np.array(bits) for bits in product([0, 1], repeat=8)):
        if not chosen[6:].all():
            assert gated.coefficients @ chosen[gated.variables] >= gated.bound  # switched off


def test_of_equal_left_sides_the_largest_bound_stays():
    rows: dict[bytes, CutRow] = {}
    one, two = np.array([0, 1]), np.array([1, 1])
    for bound in (1, 3, 2):
        _keep_stronger(rows, CutRow(one, two, bound))
    _keep_stronger(rows, CutRow(one, np.array([1, 2]), 1))
    assert sorted(row.bound for row in rows.values()) == [1, 3]


def test_hull_rows_join_the_witnesses():
    evaluator = Evaluator(random_problem(31, blocks=6))
    shares = np.zeros(len(evaluator.variable))
    everything = evaluator.value(np.ones(len(evaluator.market.items), dtype=bool))
    added = [
        evaluator.pool.add_hull(s, shares, everything**2)
        for s in combinations(range(evaluator.n), min(evaluator.size, evaluator.n))
    ]
    assert any(added)
    assert evaluator.pool.rows_known > 0
    full = np.ones(len(evaluator.variable))
    assert not any(evaluator.pool.add_hull(s, full, 0.25 * everything**2) for s in combinations(range(evaluator.n), 2))


FEATURES_HULLS = [(), ("dims",), ("nodes",), ("noise",), ("nodes", "dims", "noise")]


def every_design(evaluator: Evaluator) -> list[np.ndarray]:
    """All closed designs in which something has been asked."""
    items = len(evaluator.market.items)
    masks = [
        evaluator.market.close((np.arange(items)[None] == np.array(c)[:, None]).any(axis=0)) for c in _subsets(items)
    ]
    return [mask for mask in {m.tobytes(): m for m in masks}.values() if evaluator.opened(mask).any()]


def _subsets(items: int) -> list[list[int]]:
    return [list(c) for count in range(items + 1) for c in combinations(range(items), count)]


def left_minus_bound(evaluator: Evaluator, structure: MarketRows, mask: np.ndarray, target: float) -> np.ndarray:
    """What a design leaves of each row of the pool; negative where it breaks one."""
    values = np.zeros(structure.variables, dtype=np.int64)
    values[: len(mask)] = mask
    for number, block in enumerate(structure.waiting):
        values[len(mask) + number] = evaluator.active(mask)[block]
    rows = evaluator.pool.rows(target, structure)
    return np.array([int(row.coefficients @ values[row.variables]) - row.bound for row in rows])


@pytest.mark.parametrize("features", FEATURES_HULLS, ids="-".join)
@pytest.mark.parametrize("short", [False, True], ids=["whole lists", "short lists"])
def test_rows_hold_for_every_design_that_reaches_the_target(features, short, monkeypatch):
    if short:
        monkeypatch.setattr(cuts, "MOST_COUNTS", 8)
        monkeypatch.setattr(cuts, "MOST_KINDS", 3)
    rng = np.random.default_rng(len(features))
    evaluator = Evaluator(random_problem(31, features=features, blocks=7))
    structure = MarketRows(evaluator)
    designs = every_design(evaluator)
    reached = np.array([evaluator.value(mask) for mask in designs])
    targets = np.unique(reached[reached > 1e-6])[::-4]
    size = min(evaluator.size, evaluator.n)
    for target in targets:
        for support in combinations(range(evaluator.n), size):
            evaluator.pool.add_hull(support, 0.5 * rng.random(len(evaluator.variable)), float(target**2))
    assert evaluator.pool.rows_known > 0
    for target in targets:  # a row made for one target is asked about all of them, in both directions
        for mask, value in zip(designs, reached, strict=True):
            if value >= target:
                assert (left_minus_bound(evaluator, structure, mask, float(target**2)) >= 0).all()


def test_designs_below_the_target_are_cut_off():
    evaluator = Evaluator(random_problem(5, blocks=7))
    structure = MarketRows(evaluator)
    designs = every_design(evaluator)
    reached = np.array([evaluator.value(mask) for mask in designs])
    target = float(np.quantile(reached[reached > 0], 0.7))
    for mask in designs:
        shares = evaluator.active(mask)[evaluator.variable].astype(float)
        for support in combinations(range(evaluator.n), min(evaluator.size, evaluator.n)):
            evaluator.pool.add_hull(support, shares, target**2)
    broken = [(left_minus_bound(evaluator, structure, mask, target**2) < 0).any() for mask in designs]
    assert broken == (reached < target * (1 - 1e-9)).tolist()


def test_a_support_that_nothing_on_sale_can_help_is_said_to_be_hopeless():
    evaluator = Evaluator(random_problem(5, blocks=7))
    assert evaluator.pool.add_hull((0, 1), np.ones(len(evaluator.variable)), 1e6)
    row = evaluator.pool.rows(1e6, MarketRows(evaluator))[0]
    assert len(row.variables) == 0
    assert row.bound == 1


def test_counts_and_weights_are_listed_without_repetition():
    assert _counts_up_to((1, 2)).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert _counts_up_to(()).shape == (1, 0)
    tried = _weights_for(3)
    assert len(np.unique(tried, axis=0)) == len(tried)
    assert [1.0, 2.0, 3.0] in tried.tolist()
    assert [2.0, 2.0, 2.0] not in tried.tolist()


def every_mask(evaluator: Evaluator) -> np.ndarray:
    return np.array(list(product([False, True], repeat=len(evaluator.market.items))))


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
@pytest.mark.parametrize("short", [False, True], ids=["whole lists", "members taken for granted"])
def test_rows_hold_for_every_design_that_reaches_the_target_of_neighbourhoods(features, short, monkeypatch):
    if short:
        monkeypatch.setattr(neighbourhoods, "TAKEN", (0.3,))
    rng = np.random.default_rng(len(features))
    evaluator = Evaluator(random_problem(31, features=features, blocks=7, k=2))
    masks = every_mask(evaluator)
    reached = np.array([evaluator.value(mask) for mask in masks])
    targets = np.unique(reached[reached > 1e-3])[::-5]
    pool = HullPool(evaluator)
    for target in targets:
        for size in (1, 2, 3, 4, 5, 6):  # of more than four nodes: regions of supports
            for support in combinations(range(evaluator.n), size):
                for shares in (
                    0.6 * rng.random(len(evaluator.variable)),
                    np.round(rng.random(len(evaluator.variable))),
                ):
                    row = pool.hoods[support].separate(shares, float(target**2))
                    if row is not None:
                        pool.add(row, float(target**2))
    assert len(pool.sides) > 5
    bought = masks[:, evaluator.block_item[evaluator.variable]].astype(np.int64)
    for target in [
        *targets,
        *(0.5 * (targets[1:] + targets[:-1])),
        0.1 * targets[-1],
    ]:  # re-targeted, in both directions
        good = bought[reached >= target]
        for side, bound in zip(pool.sides, pool.bounds(float(target**2)), strict=True):
            assert bound != HOPELESS or not len(good)
            assert (good[:, side.blocks] @ side.coefficients >= bound).all()


@pytest.mark.parametrize("bits", [1, 2, 63], ids="{} bits".format)
def test_rows_around_more_nodes_than_a_mask_holds_still_hold(bits, monkeypatch):
    """With radii, for every design that reaches a target: where a mask has no room for all nodes,
    rows only ask for less.
    """
    monkeypatch.setattr(neighbourhoods, "BITS", bits)
    evaluator = Evaluator(random_problem(62, features=("radii",), blocks=7, k=2), objective="robust")
    assert evaluator.robust
    masks = every_mask(evaluator)
    reached = np.array([evaluator.value(mask) for mask in masks])
    bought = masks[:, evaluator.block_item[evaluator.variable]].astype(np.int64)
    rng, pool = np.random.default_rng(3), HullPool(evaluator)
    for target in np.unique(reached[reached > 1e-3])[::-7]:
        for support in (some for size in (1, 2, 3, 4) for some in combinations(range(evaluator.n), size)):
            assert len(pool.hoods[support].spread.supports) == (len(support) <= bits)
            row = pool.hoods[support].separate(np.round(rng.random(len(evaluator.variable))), float(target**2))
            if row is not None:
                pool.add(row, float(target**2))
        good = bought[reached >= target]
        for side, bound in zip(pool.sides, pool.bounds(float(target**2)), strict=True):
            assert (good[:, side.blocks] @ side.coefficients >= bound).all()
    assert pool.sides


def test_a_support_of_64_nodes_is_asked_as_if_nothing_were_uncertain():
    """k = 32: one node more than a mask holds.

    Half an anchor at each end misses the row that a whole one at either keeps.
    """
    problem = Problem(
        k=32,
        nodes=[{"id": f"n{i}"} for i in range(64)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}", "uncertainty": 1e-4} for i in range(63)],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in (0, 63)],
    )
    robust, plain = Evaluator(problem, objective="robust"), Evaluator(problem, objective="gamma")
    assert robust.table is None  # of all sizes from 1 to 64 there are too many, though of 64 nodes there is one
    assert plain.table is not None
    rows = [Neighbourhoods(evaluator)[tuple(range(64))].separate(np.zeros(2), 1e-4) for evaluator in (robust, plain)]
    assert all(row is not None and (row.weights.tolist(), row.bound) == ([1, 1], 1) for row in rows)


def test_a_region_asks_for_what_all_its_supports_need_together():
    """A triangle whose pairs each need an anchor: half an anchor at every node is enough for the
    pairs, but two are needed.
    """
    problem = Problem(
        k=1,
        nodes=[{"id": f"n{i}"} for i in range(3)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % 3}"} for i in range(3)],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in range(3)],
    )
    hoods = Neighbourhoods(Evaluator(problem))
    target, shares = 1.2, np.full(3, 0.5)
    assert len(hoods[0, 1].sets) == 0
    assert all(hoods[pair].separate(shares, target) is None for pair in combinations(range(3), 2))
    triangle = hoods[0, 1, 2]
    assert triangle.sets.tolist() == [[0, 1], [0, 2], [1, 2]]
    row = triangle.separate(shares, target)
    assert row is not None
    assert row.weights.tolist() == [1, 1, 1]
    assert row.bound == 2
    assert triangle.bound(np.array([1, 1, 0]), target) == 1


def test_a_bound_asked_again_or_from_elsewhere_is_the_same():
    rng = np.random.default_rng(3)
    evaluator = Evaluator(random_problem(8, blocks=8, k=1))
    one, two = HullPool(evaluator), HullPool(evaluator)
    for support in combinations(range(evaluator.n), 2):
        for target in (0.3, 0.9):
            row = one.hoods[support].separate(0.4 * rng.random(len(evaluator.variable)), target)
            if row is not None:
                one.add(row, target)
                two.add(row, target)
    targets = [0.05, 0.2, 0.35, 0.5, 0.9, 1.5, 40.0]
    rising = [one.bounds(t).tolist() for t in targets]
    falling = [two.bounds(t).tolist() for t in reversed(targets)][::-1]
    assert rising == falling
    assert rising == [one.bounds(t).tolist() for t in targets]
    fresh = [[_search(side, t) for side in one.sides] for t in targets]
    assert rising == fresh


def _search(side, target: float) -> int:
    found = [hood.bound(weights, target) for hood, weights in side.around]
    return HOPELESS if None in found else max(found)


def test_a_row_that_asks_nothing_is_not_given_to_a_solver():
    evaluator = Evaluator(random_problem(5, blocks=7))
    pool = HullPool(evaluator)
    hoods = Neighbourhoods(evaluator)
    for support in combinations(range(evaluator.n), 2):
        row = hoods[support].separate(np.zeros(len(evaluator.variable)), 0.5)
        if row is not None:
            pool.add(row, 0.5)
    variable_of = np.arange(len(evaluator.variable))
    for target in (0.5, 1e-8, 0.5, 1e-8):
        rows = [row for row in pool.rows(target, variable_of) if row is not None]
        assert all(row.bound >= 1 for row in rows)
        assert all(len(row.variables) == 0 or row.coefficients.any() for row in rows)


def test_only_equal_matrices_are_one_kind():
    evaluator = Evaluator(random_problem(2, blocks=9))
    for support in combinations(range(evaluator.n), 2):
        hood = Neighbourhoods(evaluator)[support]
        at = 0
        columns = evaluator.columns_of(support)
        for number, size in enumerate(hood.sizes):
            for member in hood.members[at : at + size]:
                assert np.array_equal(
                    evaluator.block_gram(int(evaluator.variable[member]), columns), hood.parts[number]
                )
            at += size


class Hood:
    """A neighbourhood whose bound at a target is what the test says; counts how often it is
    asked.
    """

    def __init__(self, support, members, bound):
        self.support, self.members, self._bound, self.asked = support, np.array(members), bound, []

    def bound(self, weights, target):
        self.asked.append(target)
        return self._bound(target)


def steps(target: float) -> int | None:
    return None if target > 9.0 else int(target)


@pytest.fixture
def pool() -> HullPool:
    return HullPool(Evaluator(random_problem(1, blocks=5)))


def test_a_bound_between_two_equal_ones_needs_no_search():
    hood = Hood((0,), [0], lambda target: 2 if target < 5.0 else steps(target))
    side = _Side(np.array([0]), np.array([1]), [(hood, np.array([1]))])
    assert [side.bound(t) for t in (1.0, 4.0, 2.0, 3.0, 7.0, 9.5, 20.0)] == [2, 2, 2, 2, 7, HOPELESS, HOPELESS]
    assert hood.asked == [1.0, 4.0, 7.0, 9.5]
    assert [target for target, _ in side.known] == [1.0, 2.0, 3.0, 4.0, 7.0, 9.5, 20.0]


def test_the_largest_bound_of_all_supports_counts():
    low, high = Hood((0,), [0], lambda target: 1), Hood((1,), [0], steps)
    side = _Side(np.array([0]), np.array([1]), [(low, np.array([1])), (high, np.array([1]))])
    assert (side.bound(3.0), side.bound(9.5)) == (3, HOPELESS)


def test_a_row_is_kept_once_and_raised_by_a_larger_bound(pool):
    weak, strong = Hood((0, 1), [4, 2], lambda target: 1), Hood((1, 2), [2, 4], lambda target: 3)
    assert pool.add(HullRow(weak, np.array([1, 2]), 1), 2.0)
    assert not pool.add(HullRow(weak, np.array([1, 2]), 1), 2.0)
    assert pool.learnt == 1
    assert pool.sides[0].blocks.tolist() == [2, 4]
    assert pool.sides[0].coefficients.tolist() == [2, 1]
    assert pool.add(HullRow(strong, np.array([2, 1]), 3), 2.0)  # the same left side, found around another support
    assert len(pool.sides) == 1
    assert pool.learnt == 2
    assert pool.bounds(2.0).tolist() == [3]
    assert pool.add(HullRow(strong, np.array([2, 1]), None), 2.5)
    assert not pool.add(HullRow(strong, np.array([2, 1]), 100), 2.5)  # nothing is larger than hopeless


def test_rows_are_cut_down_to_their_bound_and_say_nothing_at_zero(pool):
    hood = Hood((0, 1), [0, 1, 2], lambda target: int(target))
    pool.add(HullRow(hood, np.array([1, 0, 5]), 2), 2.0)
    pool.add(HullRow(Hood((3,), [0, 1, 2], lambda target: None), np.zeros(3, np.int64), None), 2.0)
    variable_of = np.array([10, 11, 12])
    row, hopeless = pool.rows(2.0, variable_of)
    assert row is not None
    assert (row.variables.tolist(), row.coefficients.tolist(), row.bound) == ([10, 12], [1, 2], 2)
    assert hopeless is not None
    assert (len(hopeless.variables), hopeless.bound) == (0, 1)  # 0 ≥ 1: no design reaches this target
    assert pool.rows(0.5, variable_of)[0] is None
