"""Discrete repair: all exact solvers agree, the gap is honest, nothing is averaged. The tabulated
energy is the formula: ½‖Dz − q‖² + β/2 ‖Az − b‖² + μ Σ ℓ. CP-SAT: the gap holds for the true
energy, and a limit is said. Candidates move along relations.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.noise import Noise
from rrf_design.repairing._discrete import (
    _build_energy,
    _close,
    _edit_price,
    _eliminate,
    _elimination_order,
    _Energy,
    _enumerate_fields,
    _Factor,
    _min_sum,
    moves,
    solve,
)
from rrf_design.repairing.contract import WorkSettings
from rrf_design.repairing.fields import make_task


def random_energy(rng, *, nodes=5, tree=False):
    sizes = rng.integers(2, 5, size=nodes)
    factors = [_Factor((i,), rng.random(sizes[i])) for i in range(nodes)]
    for i in range(1, nodes):
        j = int(rng.integers(0, i))
        factors.append(_Factor((j, i), rng.random((sizes[j], sizes[i]))))
    if not tree:
        factors.append(_Factor((0, 2, 4), rng.random((sizes[0], sizes[2], sizes[4]))))
        factors.append(_Factor((3, 1), rng.random((sizes[3], sizes[1]))))
    return _Energy(tuple(tuple((float(c),) for c in range(size)) for size in sizes), tuple(factors), ())


@pytest.mark.parametrize("seed", range(10))
def test_exact_solvers_agree_with_the_definition(seed):
    energy = random_energy(np.random.default_rng(seed))
    best = min(energy.value(choice) for choice in product(*map(range, energy.sizes)))
    choice, ties = _enumerate_fields(energy)
    assert energy.value(choice) == pytest.approx(best, rel=1e-12)
    assert ties == 1
    assert energy.value(_eliminate(energy)) == pytest.approx(best, rel=1e-12)
    solved = solve(energy, time_limit=None, seed=0)
    assert solved.complete
    assert energy.value(solved.choice) == pytest.approx(best, rel=1e-9)
    assert energy.value(solved.choice) - solved.gap <= best
    assert solved.gap < 1e-6
    assert energy.value(_min_sum(energy)) >= best - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_min_sum_is_exact_on_trees(seed):
    energy = random_energy(np.random.default_rng(100 + seed), tree=True)
    assert _min_sum(energy) == _enumerate_fields(energy)[0]


def test_low_treewidth_is_seen():
    path = _Energy(
        tuple(((0.0,), (1.0,)) for _ in range(40)),
        tuple(_Factor((i, i + 1), np.array([[0.0, 1.0], [1.0, 0.0]])) for i in range(39)),
        (),
    )
    assert _elimination_order(path)[1] == 4
    assert _eliminate(path) in ((0,) * 40, (1,) * 40)


def test_never_an_average(equality, answers):
    """Two answers of each kind: a continuous fit would say 15, the discrete one must choose an
    answer.
    """
    fixed = rrf.repair(
        equality("star", anchors={3: 20.0}, epsilon=0.1), answers(10, 10, 20, 20), method="discrete", k=2
    )
    assert {value[0] for value in fixed.repaired.values()} <= {10.0, 20.0}
    assert fixed.support == ("n0", "n1")


@pytest.mark.parametrize("solver", ["enumeration", "dynamic programming", "cp-sat", "min-sum"])
def test_solvers_by_name(solver, equality, answers):
    problem = equality("complete", epsilon=0.1)
    fixed = rrf.repair(problem, answers(1, 1, 3, 1), method="discrete", solver=solver)
    assert fixed.method == f"discrete, {solver}"
    assert fixed.support == ("n2",)
    assert (fixed.certainty == "heuristic") == (solver == "min-sum")


def test_unknown_solver(equality, answers):
    with pytest.raises(rrf.InputError, match="unknown discrete solver"):
        rrf.repair(equality("star"), answers(1, 1, 1, 1), method="discrete", solver="guess")


def test_candidates_are_samples_and_what_they_become(equality, answers):
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 3.0}},
            {"id": "bc", "tail": "b", "head": "c", "offset": 1.0},
        ],
    )
    task, _ = make_task(problem, problem.operator(), {"a": 2, "b": 9, "c": 10}, candidates={"a": [5]})
    energy = _build_energy(task)
    assert energy.candidates[0] == ((2.0,), (5.0,), (3.0,))  # its response, its sample, 9 / 3 from b
    assert (6.0,) in energy.candidates[1]
    assert (7.0,) in energy.candidates[2]
    capped, _ = make_task(
        problem, problem.operator(), {"a": 2, "b": 9, "c": 10}, work=WorkSettings(options={"most_candidates": 1})
    )
    assert _build_energy(capped).truncated == ("a", "b")


def test_anchor_values_are_never_candidates(equality, answers):
    fixed = rrf.repair(equality("star", anchors={0: 17.0}), answers(19, 19, 19, 19), method="discrete")
    assert all(found == [(19.0,)] for found in map(list, fixed.diagnostics.details["candidates"].values()))
    assert fixed.certainty == "unexplained"
    assert set(fixed.repaired.values()) == {None}
    assert fixed.verdict == "incomplete"  # among these candidates nothing fits; that is no proof that nothing does


def test_candidate_recall(equality, answers):
    problem = equality("star", anchors={0: 17.0})
    truth = answers(17, 17, 17, 17)
    absent = rrf.repair(problem, answers(19, 19, 19, 19), method="discrete", truth=truth)
    assert absent.diagnostics.details["candidate_recall"] == 0.0
    assert "candidate absence" in absent.failures
    there = rrf.repair(problem, answers(19, 19, 19, 19), candidates={"n3": [17]}, truth=truth)
    assert there.method.startswith("discrete")
    assert there.diagnostics.details["candidate_recall"] == 1.0
    assert all(value == (17.0,) for value in there.repaired.values())


def test_objective_is_the_energy_as_defined(equality, answers):
    problem = equality("star", anchors={0: 2.0})
    fixed = rrf.repair(problem, answers(1, 1, 1, 1), method="discrete", beta=0.5, mu=10.0)
    assert fixed.support == ()
    assert fixed.diagnostics.objective == pytest.approx(0.5 * 0.5 * 1.0)


@pytest.mark.parametrize("deviation", ["edit", "distance"])
def test_tables_add_up_to_the_formula(deviation):
    problem = rrf.Problem(
        nodes=[{"id": "a", "dim": 2, "metric": 4.0}, {"id": "b", "dim": 2}, {"id": "c"}],
        relations=[
            {"id": "r", "tail": "a", "head": "b", "transport": {"permute": [1, 0]}, "offset": [1.0, 0.0], "weight": 2.0}
        ],
        anchors=[
            {"id": "x", "nodes": ["b", "c"], "rows": [[1.0, 2.0, 3.0]], "value": 4.0, "sigma": 0.5},
            {"id": "y", "node": "c", "value": [1.0]},
        ],
    )
    responses = {"a": (1.0, 2.0), "b": (0.0, 1.0), "c": 2.0}
    options = {"beta": 0.7, "mu": 0.3, "deviation": deviation}
    task, _ = make_task(
        problem,
        problem.operator(),
        responses,
        candidates={"c": [5.0], "b": [(2.0, 2.0)]},
        work=WorkSettings(options=options),
    )
    energy = _build_energy(task)
    operator = problem.operator()
    anchor = np.repeat([kind == "anchor" for kind in operator.block_kinds], np.diff(operator.block_offsets))
    for choice in product(*map(range, energy.sizes)):
        field = {name: energy.candidates[i][choice[i]] for i, name in enumerate(operator.node_ids)}
        rows = operator.syndrome(field)
        distance = [np.linalg.norm(np.subtract(field[n], np.atleast_1d(responses[n]))) for n in field]
        edits = sum(distance) if deviation == "distance" else sum(d > 0 for d in distance)
        expected = 0.5 * rows[~anchor] @ rows[~anchor] + 0.35 * rows[anchor] @ rows[anchor] + 0.3 * edits
        assert energy.value(choice) == pytest.approx(expected)


def test_price_of_an_edit(equality, answers):
    operator = equality("star").operator()
    noisy, _ = make_task(equality("star"), operator, answers(1, 1, 5, 1), noise=Noise(0.2))
    assert _edit_price(noisy) == pytest.approx(0.02)
    exact, _ = make_task(equality("star"), operator, answers(1, 1, 5, 1))
    assert 0 < _edit_price(exact) < 1e-5


def test_unknown_deviation(equality, answers):
    with pytest.raises(rrf.InputError, match="deviation must be"):
        rrf.repair(equality("star"), answers(1, 1, 1, 1), method="discrete", deviation="squared")


def invoice(**settings):
    return rrf.Problem(
        nodes=[{"id": name} for name in ("net", "tax", "total")],
        relations=[{"id": "sum", "sum": ["net", "tax"], "head": "total"}],
        **settings,
    )


@pytest.mark.parametrize(("k", "counts"), [(1, (2, 2, 2)), (2, (2, 2, 2)), (3, (3, 3, 3))])
def test_sums_say_what_an_answer_should_have_been_and_stop_at_k(k, counts):
    task, _ = make_task(invoice(k=k), invoice(k=k).operator(), {"net": 100, "tax": 19, "total": 120})
    found, cut = _close(task)
    assert tuple(map(len, found)) == counts
    assert found[2][:2] == ((120.0,), (119.0,))
    assert not cut


def test_a_missing_answer_is_computed_from_the_others():
    fixed = rrf.repair(invoice(), {"net": 100, "tax": 19, "total": None}, method="discrete")
    assert fixed.nearest["total"] == (119.0,)


def test_too_many_combinations_are_said_to_be_cut():
    nodes = [{"id": f"p{i}"} for i in range(8)]
    problem = rrf.Problem(
        nodes=[*nodes, {"id": "t"}],
        relations=[{"id": "sum", "sum": [node["id"] for node in nodes], "head": "t"}],
    )
    said = {node["id"]: 1.0 for node in nodes} | {"t": 9.0}
    samples = {node["id"]: [0.0, 2.0, 3.0] for node in nodes}
    task, _ = make_task(problem, problem.operator(), said, candidates=samples)
    assert "t" in _close(task)[1]


def clique(rng, nodes, candidates):
    factors = [_Factor((i, j), rng.random((candidates, candidates))) for i in range(nodes) for j in range(i + 1, nodes)]
    return _Energy(tuple(tuple((float(c),) for c in range(candidates)) for _ in range(nodes)), tuple(factors), ())


def test_rounding_is_in_the_gap():
    energy = clique(np.random.default_rng(0), 5, 3)
    solved = solve(energy, time_limit=None, seed=0)
    assert solved.complete
    assert 0 <= solved.gap < 1e-9 * len(energy.factors)


def test_no_field_within_the_limit_is_an_error_that_says_so():
    energy = clique(np.random.default_rng(1), 12, 8)
    with pytest.raises(rrf.RetryLater, match="raise the time limit"):
        solve(energy, time_limit=0.0, seed=0)


@pytest.fixture
def task():
    problem = rrf.Problem(
        nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}, {"id": "c", "dim": 1}, {"id": "d", "dim": 2}],
        relations=[
            {
                "id": "ab",
                "tail": "a",
                "head": "b",
                "transport": {"matrix": [[2.0, 1.0], [0.0, 1.0]]},
                "offset": [1.0, 0.0],
            },
            {"id": "bc", "tail": "b", "head": "c", "transport": {"select": [0]}},
            {"id": "bd", "tail": "d", "head": "b", "transport": {"scale": -1.0}},
        ],
    )
    valid = {"a": (1.0, 2.0), "b": (5.0, 2.0), "c": 5.0, "d": (-5.0, -2.0)}
    return make_task(problem, problem.operator(), valid)[0]


def test_moves_carry_valid_answers_to_valid_answers(task):
    found = moves(task)
    assert len(found) == 5  # a projection has no way back
    for move in found:
        np.testing.assert_allclose(move([np.array(task.values[move.sources[0]])]), task.values[move.target], atol=1e-12)


def test_relations_among_several_are_solved_for_each_of_their_nodes():
    problem = rrf.Problem(
        nodes=[{"id": "net"}, {"id": "tax"}, {"id": "total"}, {"id": "parts", "dim": 2}],
        relations=[
            {"id": "sum", "sum": ["net", "tax"], "head": "total", "offset": 1.0},
            {"id": "rate", "rows": {"net": [[0.5]], "tax": [[-2.0]]}, "offset": 3.0},
            {"id": "whole", "sum": ["parts"], "head": "total"},
        ],
    )
    valid = {"net": 14.0, "tax": 2.0, "total": 17.0, "parts": (10.0, 7.0)}
    task = make_task(problem, problem.operator(), valid)[0]
    found = moves(task)
    several = ["net", "tax", "total"]
    assert sorted(move.target for move in found) == sorted([*several, "net", "tax", "total"])  # no parts from their sum
    for move in found:
        said = [np.array(task.values[name]) for name in move.sources]
        np.testing.assert_allclose(move(said), task.values[move.target], atol=1e-12)
