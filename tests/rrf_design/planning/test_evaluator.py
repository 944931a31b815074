"""The evaluator of designs, the contract of planners, and what a plan claims."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from small import random_problem

import rrf_design as rrf
from rrf_design.errors import BudgetError, InputError, MissingDependency, Refused
from rrf_design.planning import PLANNERS, plan, planner, read_plan, write_plan
from rrf_design.planning import evaluator as module
from rrf_design.planning._outcome import finish, starting_design, trajectory
from rrf_design.planning.contract import Objective, Order, Plan, PlanStatus, Step
from rrf_design.planning.evaluator import Evaluator, _choose_objective

FEATURES = [(), ("dims",), ("nodes",), ("noise", "dims"), ("radii",)]


def masks(evaluator: Evaluator) -> list[np.ndarray]:
    """Every design that is closed under what its purchases need."""
    every = (np.array(bits, dtype=bool) for bits in product([False, True], repeat=len(evaluator.market.items)))
    return [mask for mask in every if (evaluator.market.close(mask) == mask).all()]


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_what_is_active_and_open_is_what_the_design_holds(features):
    evaluator = Evaluator(random_problem(3, features=features, blocks=5))
    for mask in masks(evaluator):
        names = set(evaluator.market.names(mask))
        opened = {evaluator.operator.node_ids[i] for i in np.flatnonzero(evaluator.opened(mask))}
        active = {evaluator.operator.block_ids[j] for j in np.flatnonzero(evaluator.active(mask))}
        assert opened == {node.id for node in evaluator.problem.nodes if node.cost is None or node.id in names}
        assert active == {
            block.id
            for block in evaluator.problem.blocks
            if (block.owned or block.id in names) and opened.issuperset(block.nodes)
        }


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_table_and_engine_give_one_value(features, monkeypatch):
    problem = random_problem(5, features=features, blocks=4)
    small = Evaluator(problem)
    assert small.table is not None
    monkeypatch.setattr(module, "TABLE_SUPPORTS", 0)
    large = Evaluator(problem)
    assert large.table is None
    for mask in masks(small):
        assert small.value(mask) == pytest.approx(large.value(mask), rel=1e-6, abs=1e-9)
        if small.opened(mask).any() and not small.robust:
            assert small.confirm(mask).value == pytest.approx(small.value(mask), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
def test_a_witness_is_a_linear_function_of_the_choice(features):
    """‖B(x)h‖² = what owned blocks see of h plus what bought ones do, and the energies are never
    negative.
    """
    evaluator = Evaluator(random_problem(8, features=features, blocks=5))
    dense = evaluator.operator.matrix.toarray()
    for mask in masks(evaluator)[::5]:
        for witness in evaluator.evaluate(mask, count=3).witnesses:
            energies = evaluator.energies(witness)
            h = np.zeros(dense.shape[1])
            h[evaluator.columns_of(witness.support)] = witness.vector
            assert np.linalg.norm(witness.vector) == pytest.approx(1.0)
            for other in masks(evaluator)[::7]:
                rows = dense[evaluator.rows(evaluator.active(other))]
                assert energies[evaluator.active(other)].sum() == pytest.approx(np.square(rows @ h).sum(), abs=1e-12)
            assert evaluator.witness_names(witness).keys() == {evaluator.operator.node_ids[i] for i in witness.support}


def test_weights_and_grams_are_those_of_the_blocks():
    evaluator = Evaluator(random_problem(8, features=("dims",), blocks=5))
    dense = evaluator.operator.matrix.toarray()
    columns = np.arange(dense.shape[1])
    for j in range(len(evaluator.block_nodes)):
        rows = dense[evaluator.operator.block_offsets[j] : evaluator.operator.block_offsets[j + 1]]
        assert evaluator.weights[j] == pytest.approx(np.square(rows).sum())
        np.testing.assert_allclose(evaluator.block_gram(j, columns), rows.T @ rows, atol=1e-14)
        assert all(j in evaluator.touching[i] for i in evaluator.block_nodes[j])
    assert evaluator.scale == pytest.approx(np.sqrt(np.square(dense).sum(axis=0).max()))


def test_nothing_asked_is_worth_nothing():
    problem = rrf.Problem(nodes=[{"id": "a", "cost": 1.0}], anchors=[{"id": "x", "node": "a"}])
    evaluator = Evaluator(problem)
    assert evaluator.value(evaluator.market.empty()) == 0.0
    assert evaluator.evaluate(evaluator.market.empty()).witnesses == ()


def test_the_objective_is_what_a_goal_is_held_against():
    plain, noisy, robust = (random_problem(1, features=features) for features in ((), ("noise",), ("radii",)))
    assert _choose_objective(plain, None) is Objective.GAMMA
    assert _choose_objective(noisy, None) is Objective.GAMMA_SIGMA
    assert _choose_objective(robust, None) is Objective.ROBUST
    assert _choose_objective(robust, "gamma") is Objective.GAMMA
    with pytest.raises(InputError, match="objective: 'sigma' is not one of gamma, gamma_sigma, robust"):
        _choose_objective(plain, "sigma")
    assert not Evaluator(robust, objective="gamma").robust
    assert Evaluator(robust).robust


def generated(seed: int) -> rrf.Problem | None:
    """A few questions and checks on sale, under units, delivered values, suspect checks, or several
    of these.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5))
    nodes: list[dict[str, Any]] = [{"id": f"n{i}"} for i in range(n)]
    for i, node in enumerate(nodes):
        if rng.random() < 0.5:
            node["unit"] = f"u{rng.integers(2)}"
        if i and rng.random() < 0.2:
            node["cost"] = float(rng.integers(0, 3))
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    relations: list[dict[str, Any]] = [
        {"id": f"r{i}{j}", "tail": f"n{j}", "head": f"n{i}", "transport": {"scale": float(rng.choice([1, 2, -1]))}}
        for i, j in pairs
    ]
    anchors: list[dict[str, Any]] = [
        {"id": f"a{i}", "node": f"n{i}", "cost": float(rng.integers(1, 4))} for i in range(n) if rng.random() < 0.7
    ]
    for block in relations:
        if rng.random() < 0.4:
            block["cost"] = float(rng.integers(1, 4))
    settings: dict[str, Any] = {}
    if rng.random() < 0.5:
        settings["deliver"] = [f"n{rng.integers(n)}"]
    if rng.random() < 0.5:
        settings["wrong_checks"] = 1
        for block in (*relations, *anchors):
            if rng.random() < 0.5:
                block["trusted"] = True
    if rng.random() < 0.3:
        for block in anchors:
            if "trusted" not in block:
                block["uncertainty"] = 0.02
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, **settings)
    few = len(problem.resolve("all")) <= 6
    return problem if few and not problem.structure.operator.premise.plain else None


def designs(problem: rrf.Problem) -> list[tuple[float, float]]:
    """Cost and value of every design, each margin by itself."""
    market, found = problem.structure.market, []
    evaluator = Evaluator(problem)
    items = problem.resolve("all")
    for size in range(len(items) + 1):
        for chosen in combinations(items, size):
            mask = market.mask(chosen)
            if (market.close(mask) == mask).all():
                margin = evaluator.problem.design(chosen).margin()
                value = margin.value
                if evaluator.objective == "robust":
                    value = min(value, evaluator.problem.design(chosen).robust_lower(margin))
                found.append((float(market.cost(mask)), value))
    return found


@pytest.mark.parametrize("block", range(4))
def test_the_best_and_the_cheapest_of_all_designs(block: int) -> None:
    proven = count = 0
    for seed in range(block * 12, block * 12 + 12):
        problem = generated(seed)
        if problem is None:
            continue
        every = designs(problem)
        best = max(value for cost, value in every if cost <= 3.0)
        bought = rrf.plan(problem, budget=3.0, aim="worst")
        assert bought.value <= best * (1 + 1e-9) + 1e-12
        assert bought.upper_bound >= best * (1 - 1e-9) - 1e-9
        if bought.status == "optimal":
            assert bought.value == pytest.approx(best, rel=1e-6, abs=1e-9)
        reaching = [cost for cost, value in every if value >= 0.4]
        cheapest = rrf.plan(problem, target=0.4)
        if cheapest.status == "optimal":
            assert reaching
            assert cheapest.cost == pytest.approx(min(reaching))
        elif cheapest.status == "infeasible":
            assert not reaching
        assert cheapest.cost_bound is None or not reaching or cheapest.cost_bound <= min(reaching) + 1e-9
        proven += (bought.status == "optimal") + (cheapest.status != "feasible")
        count += 2
    assert proven >= 0.8 * count


def test_a_design_without_what_is_delivered_is_worth_nothing() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b", "cost": 2.0}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a"}],
        deliver=["b"],
    )
    assert rrf.plan(problem, budget=1.0).gamma == 0.0
    assert rrf.plan(problem, budget=1.0).upper_bound == 0.0
    bought = rrf.plan(problem, budget=2.0)
    assert (bought.selected, bought.status) == (("b",), "optimal")


def test_the_split_that_nobody_needs_is_not_bought() -> None:
    def field(**settings: Any) -> rrf.Problem:
        return rrf.Problem(
            nodes=[{"id": "total"}, {"id": "net"}, {"id": "tax"}],
            anchors=[
                {"id": "ledger", "node": "total"},
                {"id": "sum", "nodes": ["net", "tax", "total"], "rows": [[1.0, 1.0, -1.0]]},
                {"id": "label", "node": "net", "cost": 0.8},
            ],
            **settings,
        )

    assert rrf.plan(field(), target=0.3).selected == ("label",)
    bought = rrf.plan(field(deliver=["total"]), target=0.3)
    assert (bought.selected, bought.cost, bought.status) == ((), 0.0, "optimal")


def test_against_a_wrong_check_more_are_bought() -> None:
    anchors = [{"id": f"a{i}", "node": "n", "cost": 1.0} for i in range(4)]
    field = {"nodes": [{"id": "n"}], "anchors": anchors}
    assert rrf.plan(rrf.Problem(**field), target=0.9).cost == 1.0
    assert rrf.plan(rrf.Problem(**field, wrong_checks=1), target=0.9).cost == 3.0


def test_a_frontier_speaks_of_what_is_delivered() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        anchors=[{"id": "x", "node": "a", "cost": 1.0}, {"id": "y", "node": "b", "cost": 1.0}],
        deliver=["b"],
    )
    points = rrf.frontier(problem).points
    assert [(point.cost, point.selected) for point in points] == [(0.0, ()), (1.0, ("y",))]


PLAN = Plan(
    selected=("a",),
    cost=2.0,
    gamma=0.5,
    upper_bound=0.6,
    gap=0.1,
    status=PlanStatus.FEASIBLE,
    trajectory=(Step("a", 2.0, 0.5, ("n",), {"n": (1.0,)}, 0.25, ("q",)),),
    value=0.5,
    objective=Objective.GAMMA,
    k=1,
    method="greedy",
    budget=3.0,
)


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({}, True),
        ({"target": 0.5}, True),
        ({"target": 0.5 * (1 + 1e-12)}, True),
        ({"target": 0.51}, False),
        ({"target": 0.4, "status": PlanStatus.INFEASIBLE}, False),
        ({"target": 0.5, "value": 0.3}, False),
    ],
)
def test_reached_asks_the_objective_and_not_the_margin(changes, reached):
    plan = replace(PLAN, **changes)
    assert plan.reached is reached
    assert plan.to_json()["reached"] is reached


@pytest.mark.parametrize(
    ("cost", "bound", "least"), [(0.0, None, True), (2.0, None, False), (2.0, 1.5, False), (2.0, 2.0, True)]
)
def test_cheapest_is_said_only_where_it_is_proven(cost, bound, least):
    assert replace(PLAN, cost=cost, cost_bound=bound).least_cost is least


def test_what_is_left_over():
    assert PLAN.left_over == 1.0
    assert replace(PLAN, cost=3.0000000001).left_over == 0.0
    assert replace(PLAN, budget=None).left_over is None


def test_the_document_says_plain_values():
    told = PLAN.to_json()
    assert told["status"] == "feasible"
    assert type(told["status"]) is str
    assert told["trajectory"] == [
        {"block": "a", "cost": 2.0, "gamma": 0.5, "support": ["n"], "witness": {"n": [1.0]}, "energy": 0.25, "opened": ["q"]}
    ]  # fmt: skip
    assert set(told) >= {"selected", "cost", "gamma", "upper_bound", "gap", "status", "trajectory"}


def test_a_standing_fills_in_what_the_goal_makes_of_it():
    problem = rrf.Problem(
        k=1, delta=1.0, epsilon=0.1, nodes=[{"id": "n"}], anchors=[{"id": "a", "node": "n", "value": 1.0}]
    )
    standing = problem.design().standing(problem)
    told = PLAN.with_standing(standing)
    assert told.wanted == pytest.approx(0.2)
    assert told.epsilon == pytest.approx(0.1)
    assert (told.error_bound, told.robust_lower) == (standing.error_bound, standing.robust_lower)
    assert (told.value, told.target, told.selected) == (PLAN.value, PLAN.target, PLAN.selected)


def test_statuses_and_objectives_are_the_words_that_scripts_rely_on():
    assert [str(status) for status in PlanStatus] == ["optimal", "feasible", "infeasible"]
    assert [str(objective) for objective in Objective] == ["gamma", "gamma_sigma", "robust"]


def test_round_trip(tmp_path, pairs):
    made = plan(pairs, budget=6.0, method="greedy")
    write_plan(made, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", pairs) == made
    document = json.loads((tmp_path / "plan.json").read_text())
    assert (document["format"], document["version"]) == ("rrf-plan", 2)
    assert {"selected", "cost", "gamma", "upper_bound", "gap", "status", "trajectory"} <= set(document)
    assert {"block", "cost", "gamma", "support"} <= set(document["trajectory"][0])


def test_a_plan_for_another_problem_is_refused(tmp_path, pairs, clique_and_pair):
    write_plan(plan(pairs, budget=1.0, method="greedy"), tmp_path / "plan.json")
    with pytest.raises(Refused, match=r"made for 'pairs' with digest .* not for 'clique and pair'"):
        read_plan(tmp_path / "plan.json", clique_and_pair)


@pytest.mark.parametrize("digest", [None, 1.5, {}, []])
def test_a_plan_whose_digest_is_no_text_is_damaged(tmp_path, pairs, digest):
    write_plan(plan(pairs, budget=1.0, method="greedy"), tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**document, "digest": digest}))
    with pytest.raises(InputError, match="the plan is damaged"):
        read_plan(tmp_path / "plan.json", pairs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a readable plan"),
        ("[]", "not a plan: the format should be 'rrf-plan'"),
        ('{"format": "rrf-certificate"}', "not a plan"),
        ('{"format": "rrf-plan", "version": 99}', "plan version 99 is not known here"),
        ('{"format": "rrf-plan", "version": 2}', "the plan is damaged"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "other.json")


NODES = [{"id": "a"}, {"id": "b"}]
RELATION = {"id": "r", "tail": "a", "head": "b"}
ANCHORS = [{"id": "x", "node": "a", "cost": 2.0}, {"id": "y", "node": "b", "cost": 3.0}]


def arena_of(**more) -> Evaluator:
    return Evaluator(rrf.Problem(**{"nodes": NODES, "relations": [RELATION], "anchors": ANCHORS, **more}))


def test_first_purchases_are_demands_then_queries() -> None:
    assert not starting_design(arena_of(), Order(budget=0.0)).any()
    evaluator = arena_of(nodes=[{"id": "a", "cost": 4.0}, {"id": "b", "cost": 1.0}], relations=[])
    assert evaluator.market.names(starting_design(evaluator, Order())) == ("b",)
    with pytest.raises(BudgetError, match="a query must be asked before there is anything to observe"):
        starting_design(evaluator, Order(budget=0.5))


def test_rules_are_met_at_least_cost_or_refused():
    rule = {"id": "one", "blocks": ["x", "y"], "at_least": 1}
    evaluator = arena_of(rules=[rule])
    assert evaluator.market.names(starting_design(evaluator, Order())) == ("x",)
    with pytest.raises(BudgetError, match="budget: 1 is too little; the least that must be bought costs 2") as caught:
        starting_design(evaluator, Order(budget=1.0))
    assert (caught.value.needed, caught.value.available) == (2.0, 1.0)
    with pytest.raises(InputError, match="rules: no design satisfies them all"):
        starting_design(arena_of(rules=[rule, {"id": "none", "blocks": ["x", "y"], "at_most": 0}]), Order())


@pytest.mark.parametrize("features", [(), ("nodes",), ("links",)], ids="-".join)
def test_a_trajectory_buys_the_design_and_nothing_else(features):
    evaluator = Evaluator(random_problem(7, features=features, blocks=6))
    mask = evaluator.market.close(np.arange(len(evaluator.market.items)) % 2 == 0)
    steps = trajectory(evaluator, mask, evaluator.market.empty())
    before = evaluator.market.empty()
    for step in steps:
        assert (step.before == before).all()
        assert step.after[step.item]
        assert not before[step.item]
        assert step.value == pytest.approx(evaluator.value(step.after))
        before = step.after
    assert (before == mask).all()


@pytest.mark.parametrize(
    ("target", "upper", "bound", "status"),
    [
        (None, None, None, PlanStatus.OPTIMAL),  # everything is bought: the cuts know that no more can be had
        (None, 5.0, None, PlanStatus.FEASIBLE),
        (0.1, 5.0, Fraction(5), PlanStatus.OPTIMAL),
        (0.1, 5.0, Fraction(2), PlanStatus.FEASIBLE),
        (3.0, 5.0, None, PlanStatus.FEASIBLE),
        (3.0, 2.0, None, PlanStatus.INFEASIBLE),
    ],
)
def test_a_status_is_never_more_than_was_proven(target, upper, bound, status):
    evaluator = arena_of()
    everything = np.ones(2, dtype=bool)
    found = finish(
        evaluator, everything, Order(target=target), method="test", start=evaluator.market.empty(), upper=upper, cost_bound=bound
    )  # fmt: skip
    if upper is None:
        evaluator.pool.add(evaluator.evaluate(everything).witnesses[0])
        found = finish(evaluator, everything, Order(), method="test", start=evaluator.market.empty())
    assert found.status is status
    assert found.upper_bound >= found.value == pytest.approx(evaluator.confirm(everything).value)
    assert found.cost == 5.0
    assert sorted(step.block for step in found.trajectory) == ["x", "y"]
    if status is PlanStatus.FEASIBLE and target == 3.0:
        assert "whether another design reaches it was not decided" in " ".join(found.notes)


def test_notes_say_what_a_user_would_ask_next():
    def notes(evaluator: Evaluator, goal: Order) -> str:
        return " ".join(
            finish(evaluator, evaluator.market.empty(), goal, method="test", start=evaluator.market.empty()).notes
        )

    assert "nothing is on sale" in notes(arena_of(anchors=[]), Order(budget=1.0))
    assert "the budget of 1 buys nothing: the cheapest purchase costs 2" in notes(arena_of(), Order(budget=1.0))
    blind = [{"id": "z", "node": "a", "rows": [[0.0]], "cost": 1.0}]
    assert "can't help, because all their rows are zero: z" in notes(arena_of(anchors=blind), Order(budget=5.0))
    assert "an error on a, b stays invisible" in notes(arena_of(anchors=blind), Order(budget=5.0))


def test_messages(pairs):
    with pytest.raises(InputError, match="neither a budget nor a target is given"):
        plan(pairs)
    with pytest.raises(InputError, match="budget: must be a number of at least 0, not -1"):
        plan(pairs, budget=-1.0)
    with pytest.raises(InputError, match="target: must be a number of at least 0, not nan"):
        plan(pairs, target=float("nan"))
    with pytest.raises(InputError, match="method: 'best' is not one of auto, greedy"):
        plan(pairs, budget=1.0, method="best")
    with pytest.raises(InputError, match="objective: 'sigma' is not one of gamma, gamma_sigma, robust"):
        plan(pairs, budget=1.0, objective="sigma")
    with pytest.raises(InputError, match="solver: 'glpk' is not known"):
        plan(pairs, budget=1.0, method="optimal", front_end="glpk")
    with pytest.raises(MissingDependency, match="PuLP finds no 'NOSUCH'"):
        plan(pairs, budget=6.0, method="optimal", front_end="pulp:NOSUCH")
    with pytest.raises(InputError, match="time_limit: must be a number of seconds"):
        plan(pairs, budget=1.0, time_limit=-1.0)


def test_the_problem_may_say_what_is_wanted():
    settings = {"nodes": [{"id": "x"}], "anchors": [{"id": "a", "node": "x", "cost": 1.0}]}
    assert plan(rrf.Problem(budget=1.0, **settings)).budget == 1.0
    assert plan(rrf.Problem(target=0.5, **settings)).target == 0.5
    assert plan(rrf.Problem(budget=1.0, target=0.5, **settings), budget=2.0).target is None


def test_nothing_on_sale_or_affordable_is_said(pairs) -> None:
    found = plan(pairs, budget=0.5)
    assert found.selected == ()
    assert found.status is PlanStatus.OPTIMAL
    assert "the budget of 0.5 buys nothing: the cheapest purchase costs 1" in found.notes
    found = plan(rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x"}]), budget=1.0)
    assert (found.gamma, found.status) == (1.0, PlanStatus.OPTIMAL)
    assert "nothing is on sale" in found.notes[0]


def test_candidates_that_no_rows_can_help():
    problem = rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y"}],
        anchors=[{"id": "zero", "node": "x", "rows": [[0.0]], "cost": 1.0}, {"id": "a", "node": "x", "cost": 1.0}],
    )
    found = plan(problem, budget=5.0, aim="worst")
    assert found.gamma == 0.0
    assert found.selected == ()
    assert "can't help, because all their rows are zero: zero" in found.notes
    assert any("an error on" in note and "y" in note and "stays invisible" in note for note in found.notes)


def test_objectives_differ_and_are_named():
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[
            {"id": "sharp", "node": "x", "sigma": 0.5, "uncertainty": 1.9, "cost": 1.0},
            {"id": "heavy", "node": "x", "weight": 2.0, "sigma": 2.0, "cost": 1.0},
            {"id": "sure", "node": "x", "sigma": 1.0, "cost": 1.0},
        ],
    )
    bought = {objective: plan(problem, budget=1.0, objective=objective) for objective in Objective}
    assert bought[Objective.GAMMA].selected == ("heavy",)
    assert bought[Objective.GAMMA].gamma == pytest.approx(2**0.5)
    assert bought[Objective.GAMMA_SIGMA].selected == ("sharp",)
    assert bought[Objective.GAMMA_SIGMA].gamma == pytest.approx(2.0)
    assert bought[Objective.ROBUST].selected == ("sure",)
    assert bought[Objective.ROBUST].value == pytest.approx(1.0)
    assert all(found.objective is objective for objective, found in bought.items())
    assert plan(problem, budget=1.0).objective is Objective.ROBUST


def test_robust_without_radii_is_the_plain_margin():
    problem = random_problem(1)
    assert plan(problem, budget=4.0, objective="robust").gamma == plan(problem, budget=4.0).gamma


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_keeps_the_contract(name):
    problem = random_problem(9, features=("nodes", "rules", "links"), nodes=6, blocks=8)
    best = plan(problem, budget=6.0, method="optimal")
    found = plan(problem, budget=6.0, method=name)
    market = Evaluator(problem).market
    mask = market.mask(found.selected)
    assert market.names(mask) == found.selected
    assert market.broken(mask) == ""
    assert found.cost == float(market.cost(mask)) <= 6.0
    assert found.gamma == problem.margin(found.selected).value
    assert found.gamma <= best.gamma * (1 + 1e-8)
    assert found.upper_bound >= best.gamma * (1 - 1e-8)
    assert 0.0 <= found.gap <= 1.0
    assert found.method == name == planner(name).name
    assert {step.block for step in found.trajectory} | {n for s in found.trajectory for n in s.opened} == set(
        found.selected
    )
    assert found.trajectory[-1].gamma == pytest.approx(found.gamma, abs=1e-7) if found.trajectory else True
