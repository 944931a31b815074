"""Weak supports of the planners, and curves of margin over money."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from small import all_designs, best_within, random_problem

import rrf_design as rrf
from rrf_design.derive import asking
from rrf_design.market import exact
from rrf_design.planning import PlanStatus, curves, plan, supports
from rrf_design.planning.contract import Order
from rrf_design.planning.curves import _design_values, _enumerate_designs, _walk_frontier
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.supports import by_engine, definite, least_eigenvalues, robust_floor, robust_value
from solvers import margin


def stack(seed: int, width: int, count: int = 40) -> np.ndarray:
    rng = np.random.default_rng([seed, width])
    half = rng.integers(-2, 3, size=(count, width, width)) if seed % 2 else rng.normal(size=(count, width, width))
    return half.transpose(0, 2, 1) @ half


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_least_eigenvalues_and_thresholds(seed, width):
    blocks = stack(seed, width)
    plain = np.array([np.linalg.eigvalsh(block)[0] for block in blocks])
    scale = np.trace(blocks, axis1=1, axis2=2).max()
    np.testing.assert_allclose(least_eigenvalues(blocks), plain, atol=1e-12 * scale)
    entries = [[blocks[:, i, j] for j in range(i + 1)] for i in range(width)]
    for level in (0.1, 0.7):
        clear = np.abs(plain - level) > 1e-9 * scale
        np.testing.assert_array_equal(definite(entries, level)[clear], (plain > level)[clear])
    assert (entries[0][0] == blocks[:, 0, 0]).all()  # the lists are not changed


def test_two_by_two_keeps_its_relative_accuracy():
    small = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-13]], [[0.0, 0.0], [0.0, 0.0]]])
    exact = 1e-13 / (2.0 + 1e-13)
    found = least_eigenvalues(small)
    assert found[0] == pytest.approx(exact, rel=1e-2)
    assert found[1] == 0.0


def plain_values(evaluator: Evaluator, mask: np.ndarray) -> dict[tuple[int, ...], float]:
    """σ_min − η of every support of the size that counts, by the definition."""
    rows = evaluator.operator.matrix.toarray()[evaluator.rows(evaluator.active(mask))]
    active = np.flatnonzero(evaluator.active(mask))
    graph = nx.empty_graph(evaluator.n)
    for j in active:
        graph.add_edges_from(combinations(evaluator.block_nodes[j], 2))
    opened = np.flatnonzero(evaluator.opened(mask))
    size = min(evaluator.size, len(opened))
    result = {}
    for count in range(1, size + 1) if evaluator.robust else (size,):
        for support in combinations(opened.tolist(), count):
            part = rows[:, evaluator.columns_of(support)]
            sigma = np.sqrt(max(np.linalg.eigvalsh(part.T @ part)[0], 0.0))
            if evaluator.robust:
                if not nx.is_connected(graph.subgraph(support)):
                    continue
                radii = [evaluator.radii[j] for j in active if set(evaluator.block_nodes[j]) & set(support)]
                sigma -= np.sqrt(np.sum(np.square(radii)))
            result[support] = sigma
    return result


@pytest.mark.parametrize("features", [(), ("dims",), ("nodes",), ("radii",), ("radii", "dims")], ids="-".join)
@pytest.mark.parametrize("seed", range(2))
def test_the_table_finds_the_worst_supports(seed, features):
    evaluator = Evaluator(random_problem(seed, features=features, blocks=6))
    rng = np.random.default_rng(seed)
    for _ in range(6):
        mask = evaluator.market.close(rng.random(len(evaluator.market.items)) < 0.6)
        if not evaluator.opened(mask).any():
            continue
        plain = plain_values(evaluator, mask)
        found = evaluator.evaluate(mask, count=5)
        least = min(plain.values())
        assert found.value == pytest.approx(max(least, 0.0), abs=1e-6)
        worst = found.witnesses[0]
        assert plain[worst.support] == pytest.approx(least, abs=1e-6)
        below = evaluator.evaluate(mask, count=100, below=least + 0.3)
        assert {w.support for w in below.witnesses} >= {s for s, value in plain.items() if value < least + 0.3 - 1e-6}


def test_at_margin_zero_the_whole_null_space_is_there():
    evaluator = Evaluator(random_problem(0, features=("dims",), blocks=4))
    mask = evaluator.market.empty()
    rows = evaluator.operator.matrix.toarray()[evaluator.rows(evaluator.active(mask))]
    found = evaluator.evaluate(mask, count=1)
    assert found.value == 0.0
    support = found.witnesses[0].support
    part = rows[:, evaluator.columns_of(support)]
    null = part.shape[1] - np.linalg.matrix_rank(part, tol=1e-7)
    here = [w for w in found.witnesses if w.support == support]
    assert len(here) == null
    for witness in here:
        assert np.linalg.norm(part @ witness.vector) < 1e-9


@pytest.mark.parametrize("features", [(), ("dims",), ("nodes",)], ids="-".join)
def test_the_engine_says_the_same(features):
    evaluator = Evaluator(random_problem(2, features=features, blocks=6))
    mask = np.ones(len(evaluator.market.items), dtype=bool)
    plain = plain_values(evaluator, mask)
    for count in (1, 6):
        found = by_engine(evaluator, mask, count=count, below=None)
        assert found.value == pytest.approx(min(plain.values()), rel=1e-7, abs=1e-9)
        for witness in found.witnesses:
            assert plain[tuple(sorted(witness.support))] == pytest.approx(witness.value, rel=1e-6, abs=1e-8)


def test_fractional_designs():
    evaluator = Evaluator(random_problem(1, features=("dims",), blocks=6))
    assert evaluator.table is not None
    rng = np.random.default_rng(0)
    shares = rng.random(len(evaluator.variable))
    weights = evaluator.permanent.astype(float)
    weights[evaluator.variable] = shares
    dense = evaluator.operator.matrix.toarray()
    gram = dense.T @ (evaluator.rows(weights)[:, None] * dense)
    plain = {}
    for support in combinations(range(evaluator.n), min(evaluator.size, evaluator.n)):
        columns = evaluator.columns_of(support)
        plain[support] = np.linalg.eigvalsh(gram[np.ix_(columns, columns)])[0]
    level = float(np.median(list(plain.values())))
    weak = evaluator.table.weakest(shares, below=level, count=100)
    assert set(weak) == {support for support, value in plain.items() if value < level}
    for witness in evaluator.table.fractional(shares, below=level, count=100):
        columns = evaluator.columns_of(witness.support)
        energy = witness.vector @ gram[np.ix_(columns, columns)] @ witness.vector
        assert energy == pytest.approx(plain[witness.support], abs=1e-12)


def by_definition(problem: rrf.Problem, names: tuple[str, ...], k: int) -> float:
    """min over node sets of at most 2k that blocks connect of σ_min(B_S) − η_S, from the operator
    alone.
    """
    operator = problem.operator(names)
    dense = operator.matrix.toarray()
    nodes = [[operator.node_index[n] for n in problem.block_by_id[name].nodes] for name in operator.block_ids]
    graph = nx.Graph([pair for touched in nodes for pair in combinations(touched, 2)])
    graph.add_nodes_from(range(len(operator.node_ids)))
    values = []
    for size in range(1, min(2 * k, len(operator.node_ids)) + 1):
        for support in combinations(range(len(operator.node_ids)), size):
            if nx.is_connected(graph.subgraph(support)):
                columns = np.concatenate([operator.groups[i] for i in support])
                strengths = np.linalg.svd(dense[:, columns], compute_uv=False)
                sigma = strengths[-1] if len(strengths) == len(columns) else 0.0
                eta = sum(r * r for r, t in zip(operator.radii, nodes, strict=True) if set(t) & set(support))
                values.append(sigma - np.sqrt(eta))
    return float(min(values))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("features", [("radii",), ("radii", "dims"), ("radii", "nodes")], ids="-".join)
def test_value_is_the_definition(features, k):
    for seed in range(4):
        problem = random_problem(60 + seed, features=features, blocks=9)
        evaluator = Evaluator(problem, k=k, objective="robust")
        mask = evaluator.market.close(np.random.default_rng(seed).random(len(evaluator.market.items)) < 0.7)
        if not evaluator.opened(mask).any() or not evaluator.robust:
            continue
        found = robust_value(evaluator, mask, count=5)
        true = by_definition(problem, evaluator.market.names(mask), k)
        assert found.exact
        assert found.value == pytest.approx(true, abs=1e-12)
        assert found.lower <= true
        operator = problem.operator(evaluator.market.names(mask))
        floor = robust_floor(operator, k=k, lower=margin(operator.matrix, np.diff(operator.node_offsets), k=k).lower)
        assert floor <= max(true, 0.0) + 1e-12  # what a design is certain of, joined by certain blocks as well
        assert found.witnesses[0].value == found.value


def test_radii_of_nodes_that_nothing_joins_do_not_add_up():
    """The worst support of the plain margin may be a node with another far away: only what is
    joined to it makes it less certain.
    """
    for seed, k in ((12, 1), (33, 2)):
        problem = random_problem(seed, features=("radii", "dims") if k == 2 else ("radii",), nodes=5, blocks=7, k=k)
        evaluator = Evaluator(problem, objective="robust")
        for mask in np.random.default_rng(seed).random((20, len(evaluator.market.items))) < 0.5:
            found = robust_value(evaluator, mask)
            assert found.value == pytest.approx(by_definition(problem, evaluator.market.names(mask), k), abs=1e-12)


def cancelling() -> rrf.Problem:
    """Two relations between the same nodes whose couplings cancel: BᵀB is diagonal, the blocks
    still join a and b.
    """
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "plus", "tail": "a", "head": "b", "uncertainty": 0.3},
            {"id": "minus", "tail": "a", "head": "b", "transport": {"scale": -1.0}, "uncertainty": 0.3},
        ],
        anchors=[
            {"id": "on a", "node": "a", "uncertainty": 0.4},
            {"id": "on b", "node": "b", "uncertainty": 0.4},
            {"id": "on c", "node": "c", "rows": [[3.0]], "cost": 1.0},
        ],
    )


def test_couplings_that_cancel_do_not_hide_a_support():
    problem = cancelling()
    evaluator = Evaluator(problem, k=1, objective="robust")
    everything = np.ones(1, dtype=bool)
    found = robust_value(evaluator, everything)
    assert found.witnesses[0].support == (0, 1)
    assert found.value == pytest.approx(by_definition(problem, ("on c",), 1), abs=1e-12)
    assert found.value == pytest.approx(np.sqrt(3.0) - np.sqrt(0.5), abs=1e-12)


def test_a_list_that_is_cut_short_still_bounds_the_value(monkeypatch):
    monkeypatch.setattr(supports, "LISTED", 2)
    problem = random_problem(61, features=("radii",), blocks=9)
    evaluator = Evaluator(problem, k=2, objective="robust")
    everything = np.ones(len(evaluator.market.items), dtype=bool)
    found = robust_value(evaluator, everything)
    true = by_definition(problem, evaluator.market.items, 2)
    assert not found.exact
    assert found.lower <= true <= found.value + 1e-12
    assert evaluator.confirm_value(everything, evaluator.confirm(everything)) <= max(true, 0.0) + 1e-12


def test_large_fields_are_planned_with_radii_too(monkeypatch):
    monkeypatch.setattr("rrf_design.planning.evaluator.TABLE_SUPPORTS", 0)
    problem = random_problem(2, features=("radii",), blocks=6)
    assert Evaluator(problem, objective="robust").table is None
    designs = all_designs(problem, value=lambda names: max(by_definition(problem, names, problem.k), 0.0))
    found = plan(problem, budget=4.0, method="optimal", objective="robust")
    assert found.status is PlanStatus.OPTIMAL
    assert found.value == pytest.approx(best_within(designs, 4.0), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("features", [(), ("nodes", "dims"), ("radii",)], ids="-".join)
def test_enumeration_and_frontier_agree(features):
    problem = random_problem(5, features=features, nodes=4, blocks=5)
    objective = "robust" if "radii" in features else None
    listed = _enumerate_designs(Evaluator(problem, objective=objective), Order(budget=50.0))
    walked = _walk_frontier(Evaluator(problem, objective=objective), Order(budget=50.0))
    assert walked.complete
    assert listed.costs == walked.costs
    assert listed.values == pytest.approx(walked.values, abs=1e-7)


def test_many_designs_at_once_have_the_values_of_each():
    problem = random_problem(3, features=("nodes", "dims"), nodes=4, blocks=5, k=2)
    evaluator = Evaluator(problem)
    designs = [names for _, _, names in all_designs(problem, value=lambda names: 0.0)]
    masks = np.array([evaluator.market.mask(names) for names in designs])
    expected = [problem.margin(names).value for names in designs]
    assert _design_values(evaluator, masks) == pytest.approx(expected, abs=1e-7)


def field(seed: int, **settings: Any) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    nodes = [
        {"id": f"n{i}", "sigma": round(float(rng.uniform(0.02, 0.2)), 2), "most_repeats": int(rng.integers(2, 4))}
        | {"again": round(float(rng.uniform(0.05, 0.5)), 2)}
        for i in range(2)
    ]
    anchors = [
        {"id": f"a{i}", "node": f"n{i % 2}", "value": 1.0, "cost": round(float(rng.uniform(0.2, 1.0)), 2)}
        for i in range(3)
    ]
    relations = [{"id": "r", "tail": "n0", "head": "n1"}]
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors, **settings)


def all_pairs(problem: rrf.Problem) -> list[tuple[Fraction, float]]:
    """Cost and promised error of everything that can be bought and asked."""
    result = []
    names = [node.id for node in problem.nodes]
    for times in product(*[range(1, node.most_repeats + 1) for node in problem.nodes]):
        asked = asking(problem, dict(zip(names, times, strict=True)))
        paid = sum((exact(n.again or 0.0) * (t - 1) for t, n in zip(times, problem.nodes, strict=True)), Fraction(0))
        for chosen in product([False, True], repeat=len(problem.on_sale)):
            design = asked.design([name for name, taken in zip(problem.on_sale, chosen, strict=True) if taken])
            error = design.radius(asked).bound(design.margin().lower)
            if error is not None:
                result.append((paid + design.price, error))
    return sorted(result)


def undominated(pairs: list[tuple[Fraction, float]]) -> list[tuple[Fraction, float]]:
    result: list[tuple[Fraction, float]] = []
    for cost, error in pairs:
        if not result or error < result[-1][1] * (1 - 1e-6):
            result.append((cost, error))
    return result


@pytest.mark.parametrize("seed", range(8))
def test_every_undominated_promise_is_a_point(seed: int) -> None:
    problem = field(seed)
    wanted = undominated(all_pairs(problem))
    found = rrf.frontier(problem)
    assert found.of_error
    assert found.complete
    assert [exact(p.cost) for p in found.points] == [cost for cost, _ in wanted]
    assert [p.error_bound for p in found.points] == pytest.approx([error for _, error in wanted], rel=1e-6)
    assert all(p.status == "optimal" for p in found.points)
    point = found.points[-1]
    made = rrf.certify(asking(problem, point.repeats), point.selected)
    assert made.error_bound == pytest.approx(point.error_bound)
    assert rrf.verify(made).valid


@pytest.mark.parametrize("seed", range(6))
def test_where_not_all_designs_are_tried_a_floor_says_what_nobody_promises(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, wanted = field(seed), undominated(all_pairs(field(seed)))
    monkeypatch.setattr(curves, "LISTED", 0)
    if seed % 2:  # nor all choices of repeats
        monkeypatch.setattr("rrf_design.planning.goals.MOST_CHOICES", 1)
    for point in rrf.frontier(problem).points:
        best = min(error for cost, error in wanted if cost <= exact(point.cost))
        assert point.error_bound is not None
        assert point.error_floor is not None
        assert point.error_floor <= best * (1 + 1e-9) <= point.error_bound * (1 + 2e-9)
        assert point.status != "optimal" or point.error_bound == pytest.approx(best, rel=1e-5)


def test_a_budget_and_a_named_objective() -> None:
    problem = field(1)
    whole, within = rrf.frontier(problem), rrf.frontier(problem, budget=1.0)
    assert [p.cost for p in within.points] == [p.cost for p in whole.points if p.cost <= 1.0] or not within.points[
        0
    ].error_bound
    margins = rrf.frontier(problem, objective="gamma")
    assert not margins.of_error
    assert not any(p.repeats for p in margins.points)


def test_no_promise_without_a_bound_on_the_field() -> None:
    problem = field(1)
    relations = [{"id": "r", "tail": "n0", "head": "n1", "uncertainty": 0.1}]
    with pytest.raises(rrf.InputError, match="no error can be promised beforehand"):
        rrf.frontier(
            problem.model_copy(
                update={"relations": rrf.Problem(nodes=[{"id": "n0"}, {"id": "n1"}], relations=relations).relations}
            )
        )
