"""Discrete repair: all exact solvers agree, the gap is honest, nothing is averaged."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.bundles import Backend, Given
from rrf_design.repairing.cpsat import solve
from rrf_design.repairing.discrete import eliminate, elimination_order, enumerate_fields, min_sum
from rrf_design.repairing.energy import Energy, Factor, build_energy
from rrf_design.repairing.fields import make_task


def random_energy(rng, *, nodes=5, tree=False):
    sizes = rng.integers(2, 5, size=nodes)
    factors = [Factor((i,), rng.random(sizes[i])) for i in range(nodes)]
    for i in range(1, nodes):
        j = int(rng.integers(0, i))
        factors.append(Factor((j, i), rng.random((sizes[j], sizes[i]))))
    if not tree:
        factors.append(Factor((0, 2, 4), rng.random((sizes[0], sizes[2], sizes[4]))))
        factors.append(Factor((3, 1), rng.random((sizes[3], sizes[1]))))
    return Energy(tuple(tuple((float(c),) for c in range(size)) for size in sizes), tuple(factors), ())


@pytest.mark.parametrize("seed", range(10))
def test_exact_solvers_agree_with_the_definition(seed):
    energy = random_energy(np.random.default_rng(seed))
    best = min(energy.value(choice) for choice in product(*map(range, energy.sizes)))
    choice, ties = enumerate_fields(energy)
    assert energy.value(choice) == pytest.approx(best, rel=1e-12)
    assert ties == 1
    assert energy.value(eliminate(energy)) == pytest.approx(best, rel=1e-12)
    solved = solve(energy, time_limit=None, seed=0)
    assert solved.complete
    assert energy.value(solved.choice) == pytest.approx(best, rel=1e-9)
    assert energy.value(solved.choice) - solved.gap <= best
    assert solved.gap < 1e-6
    assert energy.value(min_sum(energy)) >= best - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_min_sum_is_exact_on_trees(seed):
    energy = random_energy(np.random.default_rng(100 + seed), tree=True)
    assert min_sum(energy) == enumerate_fields(energy)[0]


def test_low_treewidth_is_seen():
    path = Energy(
        tuple(((0.0,), (1.0,)) for _ in range(40)),
        tuple(Factor((i, i + 1), np.array([[0.0, 1.0], [1.0, 0.0]])) for i in range(39)),
        (),
    )
    assert elimination_order(path)[1] == 4
    assert eliminate(path) in ((0,) * 40, (1,) * 40)


def test_never_an_average(equality, answers):
    """Two answers of each kind: a continuous fit would say 15, the discrete one must choose an answer."""
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
    task, _ = make_task(problem, problem.operator(), {"a": 2, "b": 9, "c": 10}, given=Given(candidates={"a": [5]}))
    energy = build_energy(task)
    assert energy.candidates[0] == ((2.0,), (5.0,), (3.0,))  # its response, its sample, 9 / 3 from b
    assert (6.0,) in energy.candidates[1]
    assert (7.0,) in energy.candidates[2]
    capped, _ = make_task(
        problem, problem.operator(), {"a": 2, "b": 9, "c": 10}, backend=Backend(options={"most_candidates": 1})
    )
    assert build_energy(capped).truncated == ("a", "b")


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
