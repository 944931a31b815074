"""Mixed-integer programs, their front ends, and proofs by them."""

from __future__ import annotations

import io
import pickle
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from small import all_designs, best_within, cheapest_reaching, random_problem

import rrf_design as rrf
from rrf_design.errors import BudgetError, InputError, MissingDependency
from rrf_design.market import exact
from rrf_design.planning import Order, PlanStatus, frontier, plan, portfolio
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof import _pulp_master as pulp_master
from rrf_design.planning.proof._pulp_master import Pulp, _solve_here
from rrf_design.planning.proof.cuts import CutRow
from rrf_design.planning.proof.master import Answer, OrTools, front_end
from rrf_design.planning.proof.program import BinaryProgram, MarketRows
from rrf_design.planning.proof.prover import Prover, RobustProver, applies

AWKWARD = [0.1, 0.07, 0.3333333333333333, 1 / 7, 2.5, 1e-9, 0.7000000000000001, 1.0000000000000002, 123456789.1, 1e-17]


def awkward(seed: int, *, tiers: bool) -> tuple[rrf.Problem, list[float]]:
    """A problem with such prices, and budgets at, just below and between its bills."""
    rng = np.random.default_rng(seed)
    fields = random_problem(seed, blocks=6, features=("tiers",) if tiers else ()).model_dump(exclude_none=True)
    for block in [*fields["relations"], *fields["anchors"]]:
        if "cost" in block:
            block["cost"] = float(rng.choice(AWKWARD))
    for tier in fields.get("tiers", ()):
        tier["prices"] = [float(p) for p in rng.choice(AWKWARD, 3)]
    problem = rrf.Problem(**fields)
    bills = sorted({cost for cost, _, _ in all_designs(problem, value=lambda names: 0.0)})
    chosen = [bills[i] for i in rng.integers(len(bills), size=2)]
    budgets = [float(bill) for bill in chosen]
    return problem, [*budgets, float(np.nextafter(budgets[0], 0.0)), budgets[1] * 0.7 + 1e-12]


@pytest.mark.parametrize("solver", ["ortools", "pulp"])
@pytest.mark.parametrize("tiers", [False, True], ids=["prices", "tiers"])
@pytest.mark.parametrize("seed", range(4))
def test_awkward_decimals_are_neither_overspent_nor_underused(seed, tiers, solver):
    problem, budgets = awkward(seed, tiers=tiers)
    designs = all_designs(problem)
    bill = {names: cost for cost, _, names in designs}
    for budget in budgets:
        found = plan(problem, budget=budget, method="optimal", front_end=solver)
        best = best_within(designs, budget)
        assert bill[found.selected] <= exact(budget)
        assert found.upper_bound >= best * (1 - 1e-12)
        assert found.status is PlanStatus.OPTIMAL
        assert found.gamma == pytest.approx(best, rel=2e-5 if solver == "pulp" else 1e-8, abs=1e-9)
        if best > 0 and found.least_cost:
            least = min(cost for cost, value, _ in designs if cost <= exact(budget) and value >= best * (1 - 1e-9))
            assert bill[found.selected] == least
        if best > 0:
            cheapest = plan(problem, target=best, method="optimal", front_end=solver)
            assert cheapest.gamma >= best * (1 - 1e-8)
            assert exact(cheapest.cost_bound) <= cheapest_reaching(designs, best) * Fraction("1.0000000001")
            if cheapest.status is PlanStatus.OPTIMAL:
                assert bill[cheapest.selected] == cheapest_reaching(designs, best)


@pytest.mark.parametrize("seed", range(3))
def test_frontier_and_portfolio_count_the_same_money(seed):
    problem, budgets = awkward(seed, tiers=seed == 1)
    designs = all_designs(problem)
    bill = {names: cost for cost, _, names in designs}
    for budget in budgets[:2]:
        best = best_within(designs, budget)
        curve = frontier(problem, budget=budget)
        assert curve.complete
        assert all(bill[point.selected] <= exact(budget) for point in curve.points)
        assert curve.points[-1].gamma == pytest.approx(best, rel=1e-6, abs=1e-9)
        shared = portfolio([problem], budget=budget)
        assert bill[shared.shares[0].selected] <= exact(budget)
        assert shared.value == pytest.approx(best, rel=1e-8, abs=1e-9)


def test_one_and_two_are_not_bought_for_two_and_a_half():
    problem = rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y"}],
        anchors=[{"id": "one", "node": "x", "cost": 1.0}, {"id": "two", "node": "y", "cost": 2.0}],
    )
    for solver in ("ortools", "pulp"):
        found = plan(problem, budget=2.5, method="optimal", front_end=solver, aim="worst")
        assert (found.gamma, found.cost) == (0.0, 0.0)
        assert plan(problem, budget=3.0, method="optimal", front_end=solver).cost == 3.0
        with pytest.raises(BudgetError):
            plan(
                problem.model_copy(update={"rules": rrf.Problem(**RULED).rules}),
                budget=2.5,
                method="optimal",
                front_end=solver,
            )


RULED = {
    "nodes": [{"id": "x"}, {"id": "y"}],
    "anchors": [{"id": "one", "node": "x", "cost": 1.0}, {"id": "two", "node": "y", "cost": 2.0}],
    "rules": [{"id": "both", "blocks": ["one", "two"], "at_least": 2}],
}


def test_prices_too_fine_for_the_master_are_decided_in_fractions():
    """Two anchors for one node that differ in the twenty-first digit, and a large price beside
    them.
    """
    names = ["a", "b"]
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[
            *({"id": name, "node": "x", "cost": price} for name, price in zip(names, [3e-21, 2e-21], strict=True)),
            {"id": "dear", "node": "x", "rows": [[0.5]], "cost": 1e6},
        ],
    )
    structure = MarketRows(Evaluator(problem))
    assert structure.unit > structure.grain
    assert int(structure.cost.sum()) < 1 << 51
    both = np.array([True, True, False])
    budget = exact("4e-21")
    assert not structure.overspent(np.array([False, True, False]), budget)
    assert structure.overspent(both, budget)
    again = structure.program(target=None, budget=budget)
    assert OrTools(few=0).solve(again, time_limit=None, seed=0).answer is Answer.FOUND
    assert again.rows[-1].bound == -1  # not both of them
    assert plan(problem, budget=4e-21, method="optimal").selected == ("b",)
    assert plan(problem, target=1.0, method="optimal").selected == ("b",)
    assert plan(problem, target=1.0, method="optimal").status is PlanStatus.OPTIMAL


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("features", [(), ("dims",), ("rules", "links"), ("tiers",)], ids="-".join)
def test_values_and_bounds_are_those_of_all_designs(features, k):
    for seed in range(2):
        problem = random_problem(100 * k + seed, features=features, nodes=6, blocks=8, k=k)
        designs = all_designs(problem)
        for budget in (2.0, 4.5):
            best = best_within(designs, budget)
            if best is None:
                continue
            for method in ("optimal", "witness-cuts"):
                found = plan(problem, budget=budget, method=method, aim="worst")
                assert found.gamma == pytest.approx(best, rel=1e-8, abs=1e-9)
                assert found.upper_bound == pytest.approx(best, rel=1e-7, abs=1e-9)
            if best > 0:
                cheap = plan(problem, target=0.95 * best, method="optimal")
                assert exact(cheap.cost) == cheapest_reaching(designs, 0.95 * best)
                assert exact(cheap.cost_bound) == exact(cheap.cost)


@pytest.mark.parametrize("seed", range(3))
def test_planted_designs_are_never_refuted(seed):
    """Ask in an order that makes rows move between targets, more than once, with money for the
    planted design and no more.
    """
    rng = np.random.default_rng(seed)
    problem = random_problem(seed + 50, nodes=8, blocks=18, k=1 + seed % 2, features=("dims",) if seed == 2 else ())
    evaluator = Evaluator(problem)
    prover = Prover(evaluator, Order())
    planted = [rng.random(len(evaluator.market.items)) < share for share in (0.5, 0.7, 0.9)]
    known = [(evaluator.value(mask), evaluator.market.cost(mask)) for mask in planted]
    fractions = [1.0, 0.3, 0.999999, 0.6, 1.0 - 1e-9, 0.3, 0.9, 1.0, 0.05]
    asked = 0
    for share in fractions:
        for value, cost in known:
            if value <= 1e-3:
                continue
            threshold = share * value * (1 - 1e-13)
            refuted, bound = prover.relax(threshold, cost, deadline=None)
            assert not refuted
            assert bound <= cost
            solved = prover._ask_master(threshold, cost, hint=None, left=None)
            assert solved.answer is Answer.FOUND
            verdict = prover.settle(threshold, cost, hint=evaluator.market.empty())
            assert not verdict.impossible
            assert verdict.reached is not None
            assert evaluator.value(verdict.reached) >= threshold
            assert evaluator.market.cost(verdict.reached) <= cost
            asked += 1
    assert asked >= len(fractions)


def test_a_whole_solution_that_misses_the_target_is_cut_off():
    """Rows are looked for between it and a fractional design; they must be missed by the solution
    itself.
    """
    cut = 0
    for seed in range(6):
        prover = Prover(Evaluator(random_problem(seed + 50, nodes=8, blocks=18, k=1 + seed % 2)), Order())
        threshold = 0.9 * prover.evaluator.value(np.ones(len(prover.evaluator.market.items), dtype=bool))
        solved = prover._ask_master(threshold, None, hint=None, left=None)
        while solved.values is not None and prover.evaluator.value(prover._design(solved.values)) < threshold:
            prover.fractional = prover.relaxation.solve(prover._rows(threshold**2))
            assert prover.separate(solved.values.astype(np.float64), threshold**2, level=threshold**2)
            rows = [row for row in prover._rows(threshold**2) if row is not None]
            assert any(row.coefficients @ solved.values[row.variables] < row.bound for row in rows)
            solved, cut = prover._ask_master(threshold, None, hint=None, left=None), cut + 1
    assert cut


def test_one_pool_serves_rising_and_falling_targets():
    problem = random_problem(12, nodes=5, blocks=9)
    designs = all_designs(problem)
    prover = Prover(Evaluator(problem), Order())
    values = sorted({round(v, 6) for _, v, _ in designs if v > 1e-3})
    for target in [*values[::2], *values[1::2][::-1], values[0]]:
        least = cheapest_reaching(designs, target * (1 - 1e-5))
        found = prover.minimise(target * (1 - 1e-5), None, None)
        assert found.bound == least == prover.evaluator.market.cost(found.mask)
        assert prover.minimise(target * (1 - 1e-5), least - Fraction(1, 100), None).impossible


def test_rows_say_what_must_not_be_bought_and_queries_are_left_out() -> None:
    assert applies(Evaluator(random_problem(1)))
    assert not applies(Evaluator(random_problem(1, features=("nodes",))))
    prover = RobustProver(Evaluator(random_problem(62, features=("radii",), blocks=8), objective="robust"), Order())
    best = best_within(designs_of(prover.evaluator.problem, prover.evaluator), 12.0)
    assert prover.settle(best * 1.01, exact(12.0), hint=prover.evaluator.market.empty()).impossible
    assert any((side.coefficients < 0).any() for side in prover.hulls.sides)


def designs_of(problem, evaluator):
    return all_designs(problem, value=lambda names: evaluator.value(evaluator.market.mask(names)))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_planted_designs_are_never_refuted_of_robust_prover(seed, k):
    """Rows move between targets, more than once, with money for the planted design and no more; and
    no row cuts off a design that reaches.
    """
    problem = random_problem(seed + 60, features=("radii",), nodes=5, blocks=8, k=k)
    evaluator = Evaluator(problem, objective="robust")
    designs = designs_of(problem, evaluator)
    prover = RobustProver(evaluator, Order())
    asked = 0
    for budget in (2.0, 5.0, 3.5, 2.0, 12.0):
        best = best_within(designs, budget)
        if best <= 1e-3:
            continue
        for share in (1.0, 0.5, 0.99):
            threshold = share * best * (1 - 1e-12)
            refuted, cost = prover.relax(threshold, exact(budget), deadline=None)
            assert not refuted
            assert cost <= exact(budget)
            solved = prover._ask_master(threshold, exact(budget), hint=None, left=None)
            assert solved.answer is Answer.FOUND
            verdict = prover.settle(threshold, exact(budget), hint=evaluator.market.empty())
            assert verdict.reached is not None
            assert evaluator.value(verdict.reached) >= threshold
            asked += 1
            for _, value, names in designs:
                if value >= threshold:
                    bought = evaluator.market.mask(names)[evaluator.block_item[evaluator.variable]].astype(np.int64)
                    for side in prover.hulls.sides:
                        assert side.coefficients @ bought[side.blocks] >= side.bound(threshold**2)
        assert prover.settle(best * (1 + 1e-6), exact(budget), hint=evaluator.market.empty()).impossible
    assert asked


@pytest.mark.parametrize(
    "features", [("radii",), ("radii", "dims"), ("radii", "rules"), ("radii", "tiers")], ids="-".join
)
@pytest.mark.parametrize("k", [1, 2])
def test_plans_are_the_best_of_all_designs(features, k):
    for seed in range(2):
        problem = random_problem(seed + 70 + 10 * k, features=features, blocks=7, k=k)
        evaluator = Evaluator(problem, objective="robust")
        designs = designs_of(problem, evaluator)
        for budget in (2.0, 4.5):
            best = best_within(designs, budget)
            if best is None or not evaluator.robust:
                continue
            found = plan(problem, budget=budget, method="optimal", objective="robust")
            assert found.value == pytest.approx(best, rel=1e-8, abs=1e-9)
            assert found.upper_bound == pytest.approx(best, rel=1e-6, abs=1e-9)
            if best > 1e-3:
                assert found.status is PlanStatus.OPTIMAL
                cheap = plan(problem, target=0.97 * best, method="optimal", objective="robust")
                assert exact(cheap.cost) == exact(cheap.cost_bound) == cheapest_reaching(designs, 0.97 * best)


def program(seed: int, *, minimise: bool, hint: bool = False) -> BinaryProgram:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(4):
        where = np.sort(rng.choice(6, size=3, replace=False))
        rows.append(CutRow(where, rng.integers(-2, 6, size=3), int(rng.integers(1, 7))))
    cost = rng.integers(1, 9, size=6)
    first = np.ones(6, dtype=bool) if hint else None
    return BinaryProgram(6, tuple(rows), 0, cost, Fraction(1, 4), minimise=minimise, hint=first)


def solutions(given: BinaryProgram) -> list[np.ndarray]:
    every = (np.array(bits) for bits in product([0, 1], repeat=given.variables))
    return [x for x in every if all(r.coefficients @ x[r.variables] >= r.bound for r in given.rows)]


@pytest.mark.parametrize("few", [0, 20], ids=["solver", "looked-at"])
@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_what_is_found_is_what_enumeration_finds(seed, minimise, few):
    given = program(seed, minimise=minimise, hint=seed % 2 == 0)
    every = solutions(given)
    found = OrTools(few=few).solve(given, time_limit=None, seed=0)
    if not every:
        assert found.answer is Answer.INFEASIBLE
        assert found.values is None
        return
    assert found.answer is Answer.FOUND
    assert found.values is not None
    assert any((found.values == x).all() for x in every)
    least = min(int(given.cost @ x) for x in every) * given.unit
    assert found.cost_bound <= least
    assert found.proven is minimise
    if minimise:
        assert int(given.cost @ found.values) * given.unit == least == found.cost_bound


@pytest.mark.parametrize("few", [-1, 0])
def test_no_rows_and_no_variables(few):
    empty = BinaryProgram(0, (), 0, np.zeros(0, np.int64), Fraction(1), minimise=True)
    found = OrTools(few=few).solve(empty, time_limit=1.0, seed=0)
    assert (found.answer, found.proven, found.cost_bound) == (Answer.FOUND, True, 0)
    impossible = BinaryProgram(0, (CutRow(np.zeros(0, np.int64), np.zeros(0, np.int64), 1),), 0, np.zeros(0, np.int64), Fraction(1), minimise=True)  # fmt: skip
    assert OrTools(few=few).solve(impossible, time_limit=1.0, seed=0).answer is Answer.INFEASIBLE


def test_a_row_without_coefficients_never_reaches_a_solver():
    row = CutRow(np.array([0]), np.array([0]), 0)
    bad = BinaryProgram(1, (row,), 0, np.ones(1, np.int64), Fraction(1), minimise=True)
    with pytest.raises(AssertionError, match="says nothing"):
        OrTools().solve(bad, time_limit=None, seed=0)


def test_front_ends_by_name():
    assert front_end().name == "ortools"
    assert front_end("pulp").name.startswith("pulp")
    with pytest.raises(InputError, match='solver: \'gurobi\' is not known; use "ortools", "pulp" or "pulp:NAME"'):
        front_end("gurobi")
    OrTools().ready()


@pytest.fixture
def pulp_master_program():
    return MarketRows(Evaluator(random_problem(3, features=("rules",), blocks=6))).program(
        target=None, budget=None, minimise=True
    )


def test_one_process_serves_every_program(pulp_master_program):
    master = front_end("pulp")
    assert isinstance(master, Pulp)
    first = master.solve(pulp_master_program, time_limit=None, seed=0)
    process = master._process
    again = master.solve(pulp_master_program, time_limit=1e3, seed=0)
    here = _solve_here(pulp_master_program, "", None)
    assert master._process is process
    for solved in (first, again):
        assert (solved.answer, solved.proven, solved.cost_bound) == (Answer.FOUND, True, here.cost_bound)
    assert here.cost_bound == front_end("ortools").solve(pulp_master_program, time_limit=None, seed=0).cost_bound


def test_an_interrupt_ends_the_process_and_removes_its_files(pulp_master_program, monkeypatch):
    master = Pulp()
    master.solve(pulp_master_program, time_limit=None, seed=0)
    process, folder = master._process, Path(master._ended.peek()[2][1].name)
    assert folder.is_dir()
    assert process.poll() is None

    def stopped(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pulp_master.pickle, "load", stopped)
        with pytest.raises(KeyboardInterrupt):
            master.solve(pulp_master_program, time_limit=None, seed=0)
    assert process.poll() is not None
    assert not folder.exists()
    assert (
        master.solve(pulp_master_program, time_limit=None, seed=0).answer is Answer.FOUND
    )  # a new process starts when needed


def test_a_missing_solver_is_named(pulp_master_program):
    with pytest.raises(MissingDependency, match="PuLP finds no 'NOSUCH' on this machine; it finds"):
        Pulp("NOSUCH").solve(pulp_master_program, time_limit=None, seed=0)


def test_a_process_that_dies_is_a_clear_error(pulp_master_program):
    master = Pulp()
    master.solve(pulp_master_program, time_limit=None, seed=0)
    master._process.kill()
    master._process.wait()
    with pytest.raises(MissingDependency, match="pulp ended without an answer"):
        master.solve(pulp_master_program, time_limit=None, seed=0)


def test_the_program_reads_tasks_until_there_are_no_more(pulp_master_program, monkeypatch):
    tasks, answers = io.BytesIO(), io.BytesIO()
    for solver in ("", "NOSUCH"):
        pickle.dump((pulp_master_program, solver, None), tasks)
    tasks.seek(0)
    pulp_master._serve(tasks, answers)
    answers.seek(0)
    assert np.asarray(pickle.load(answers).values).dtype == bool
    assert isinstance(pickle.load(answers), MissingDependency)
