"""Planners: greedy, optimal, cheapest, local, jointly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small import all_designs, best_within, cheapest_reaching, random_problem

import rrf_design as rrf
from rrf_design.errors import BudgetError
from rrf_design.market import exact
from rrf_design.planning import PlanStatus, plan, planner
from rrf_design.planning import evaluator as module
from rrf_design.planning._greedy import Tracked, _overlapping, local_to_blocks, witness_greedy
from rrf_design.planning._jointly import _joint_designs
from rrf_design.planning._optimal import Climber, Local, _teach, tidy
from rrf_design.planning.contract import Order
from rrf_design.planning.evaluator import Evaluator
from scenarios.declared_relations.jointly import judge_joint


def test_pairs_are_anchored_before_cliques(clique_and_pair, pairs) -> None:
    found = plan(clique_and_pair, budget=1.0, method="greedy")
    assert found.selected == ("a-p0",)
    assert found.gamma > 0.6
    assert set(found.trajectory[0].support) == {"p0", "p1"}
    found = plan(pairs, budget=6.0, method="greedy")
    assert found.selected == tuple(f"a{2 * i}" for i in range(6))
    assert [step.gamma for step in found.trajectory[:5]] == [0.0] * 5
    assert found.trajectory[-1].gamma == pytest.approx(found.gamma)
    assert found.gamma > 0.6


def test_trajectory_is_the_margin_after_each_purchase():
    problem = random_problem(2, nodes=6, blocks=9)
    found = plan(problem, budget=7.0, method="greedy")
    bought = []
    for step in found.trajectory:
        bought.append(step.block)
        assert step.gamma == pytest.approx(problem.margin(bought).value, abs=1e-7)
    assert set(bought) == set(found.selected)
    assert sum(step.cost for step in found.trajectory) == pytest.approx(found.cost)


def test_each_purchase_sees_its_witness_best_per_cost():
    problem = random_problem(8, nodes=6, blocks=9)
    found = plan(problem, budget=9.0, method="greedy")
    everything = problem.operator("all")
    bought: list[str] = []
    for step in found.trajectory:
        before = problem.margin(bought)
        if before.value > 0:
            h = everything.stack({n: step.witness.get(n, 0.0) for n in everything.node_ids})
            assert np.linalg.norm(h) == pytest.approx(1.0)
            assert np.linalg.norm(problem.operator(bought).matrix @ h) == pytest.approx(before.value)
            left = 9.0 - sum(problem.block_by_id[name].cost for name in bought)
            scores = {
                name: float(np.square(everything.rows_of(name) @ h).sum()) / problem.block_by_id[name].cost
                for name in problem.on_sale
                if name not in bought and problem.block_by_id[name].cost <= left
            }
            assert scores[step.block] == pytest.approx(max(scores.values()))
        bought.append(step.block)


def test_ties_go_to_the_cheaper_then_to_file_order():
    def anchored(*blocks):
        return rrf.Problem(nodes=[{"id": "x"}], anchors=[{"node": "x", **block} for block in blocks])

    equal = anchored({"id": "late", "cost": 1.0}, {"id": "later", "cost": 1.0})
    assert plan(equal, budget=1.0, method="greedy").selected == ("late",)
    same_ratio = anchored({"id": "big", "weight": 2.0, "cost": 2.0}, {"id": "small", "cost": 1.0})
    assert plan(same_ratio, budget=2.5, method="greedy").trajectory[0].block == "small"


def test_complementary_anchors_need_the_look_ahead_or_the_null_space(complementary):
    for method in ("greedy", "lookahead", "local", "optimal"):
        found = plan(complementary, budget=2.0, method=method)
        assert found.selected == ("first", "second")
        assert found.gamma == pytest.approx(1.0)
    assert [step.gamma for step in plan(complementary, budget=2.0, method="greedy").trajectory] == [0.0, 1.0]


def test_look_ahead_buys_the_pair_that_the_greedy_misses():
    """One loud block sees the null vector best, but only the two quiet ones together remove the
    null space.
    """
    problem = rrf.Problem(
        nodes=[{"id": "x", "dim": 2}],
        anchors=[
            {"id": "loud", "node": "x", "rows": [[3.0, 3.0]], "cost": 2.0},
            {"id": "one", "node": "x", "rows": [[1.0, 0.0]], "cost": 1.0},
            {"id": "two", "node": "x", "rows": [[0.0, 1.0]], "cost": 1.0},
        ],
    )
    assert plan(problem, budget=2.0, method="greedy").gamma == 0.0
    assert plan(problem, budget=2.0, method="lookahead").selected == ("one", "two")
    assert plan(problem, budget=2.0, method="optimal").selected == ("one", "two")


def test_free_blocks_are_taken_first():
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[{"id": "paid", "node": "x", "weight": 9.0, "cost": 1.0}, {"id": "free", "node": "x", "cost": 0.0}],
    )
    found = plan(problem, budget=0.0, method="greedy")
    assert found.selected == ("free",)
    assert plan(problem, budget=0.0).selected == ("free",)
    assert plan(problem, budget=1.0, method="greedy").trajectory[0].block == "free"


def test_large_fields_take_the_same_steps():
    """The tracked greedy (no table of supports) buys what the table's greedy buys, and bounds it
    from above.
    """
    problem = random_problem(6, nodes=12, blocks=20)
    evaluator = Evaluator(problem)
    run = Tracked(evaluator, Order(budget=8.0), evaluator.market.empty())
    steps = run.run()
    reference = plan(problem, budget=8.0, method="greedy")
    positive = [(evaluator.market.items[s.item], s.value) for s in steps if s.value > 0]
    for name, value in positive:
        assert value == pytest.approx(
            problem.margin([evaluator.market.items[s.item] for s in steps][: _place(steps, evaluator, name)]).value
        )
    assert run.upper >= plan(problem, budget=8.0, method="optimal").gamma * (1 - 1e-12)
    assert steps[-1].value >= 0.5 * reference.gamma


def _place(steps, evaluator, name):
    return 1 + [evaluator.market.items[s.item] for s in steps].index(name)


@pytest.mark.parametrize("k", [1, 2])
def test_at_margin_zero_large_fields_use_every_null_vector_too(k):
    """The tracked greedy scores by the same span of null vectors as the table's, so both buy the
    same in the same order.
    """
    for seed in range(4):
        problem = random_problem(80 + seed, nodes=8, blocks=14, k=k, features=("dims",) if seed % 2 else ())
        evaluator = Evaluator(problem)
        steps = Tracked(evaluator, Order(budget=9.0), evaluator.market.empty()).run()
        reference = witness_greedy(evaluator, Order(budget=9.0), start=evaluator.market.empty())
        zeros = 1 + sum(
            step.value == 0.0 for step in reference
        )  # the first purchase after the last zero is scored so too
        assert [s.item for s in steps[:zeros]] == [s.item for s in reference[:zeros]]
        assert [s.energy for s in steps[:zeros]] == pytest.approx([s.energy for s in reference[:zeros]])


def test_a_block_that_many_invisible_errors_share_is_bought_first(pairs, monkeypatch):
    monkeypatch.setattr("rrf_design.planning.evaluator.TABLE_SUPPORTS", 0)
    link = {"id": "link", "tail": "n0", "head": "n11", "cost": 1.0}
    both = pairs.model_copy(update={"relations": (*pairs.relations, type(pairs.relations[0])(**link))})
    assert plan(both, budget=6.0, method="greedy").trajectory[0].block == "link"


def test_stops_at_the_target(pairs):
    found = plan(pairs, target=0.5, method="greedy")
    assert found.cost == 6.0
    assert found.reached
    missed = plan(pairs, budget=3.0, target=0.5, method="greedy")
    assert not missed.reached
    assert "not decided" in " ".join(missed.notes) or missed.status == "infeasible"


def test_supports_are_grouped_by_shared_nodes():
    assert _overlapping([(0, 1), (2, 3), (1, 4), (5,), (3, 4)]) == [[0, 1, 2, 4], [3]]
    assert _overlapping([(7, 8), (1, 2), (8, 9)]) == [[0, 2], [1]]
    assert _overlapping([]) == []


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_the_designs_and_the_bound_holds(seed, features):
    evaluator = Evaluator(random_problem(seed, features=features, blocks=7))
    start = evaluator.market.empty()
    tracked = Tracked(evaluator, Order(budget=6.0), start)
    steps = tracked.run()
    before = start
    for step in steps:
        assert (step.before == before).all()
        assert step.value == pytest.approx(evaluator.value(step.after), rel=1e-7, abs=1e-9)
        assert step.energy > 0.0
        before = step.after
    assert float(evaluator.market.cost(before)) <= 6.0
    bought = [
        mask for mask in map(np.array, np.ndindex(*(2,) * len(start))) if evaluator.market.cost(mask.astype(bool)) <= 6
    ]
    assert tracked.upper >= max(evaluator.value(mask.astype(bool)) for mask in bought) * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_it_reaches_what_the_greedy_with_a_table_reaches(seed):
    evaluator = Evaluator(random_problem(seed, blocks=7))
    start = evaluator.market.empty()
    plain = witness_greedy(evaluator, Order(), start=start)
    tracked = Tracked(evaluator, Order(), start).run()
    assert bool(plain) == bool(tracked)
    if plain:
        assert tracked[-1].value == pytest.approx(plain[-1].value, rel=1e-6, abs=1e-9)


def test_only_what_is_allowed_is_bought_and_a_target_ends_it():
    evaluator = Evaluator(random_problem(1, blocks=7))
    allowed = np.arange(len(evaluator.market.items)) < 3
    steps = Tracked(evaluator, Order(), evaluator.market.empty(), allowed=allowed).run()
    assert all(step.item < 3 for step in steps)
    whole = Tracked(evaluator, Order(), evaluator.market.empty()).run()
    short = Tracked(evaluator, Order(target=1e-6), evaluator.market.empty()).run()
    assert len(short) <= len(whole)
    assert all(step.value < 1e-6 for step in short[:-1])


def test_it_is_for_large_fields_whose_queries_are_asked(monkeypatch):
    assert not local_to_blocks(Evaluator(random_problem(1)))
    monkeypatch.setattr(module, "TABLE_SUPPORTS", 0)
    assert local_to_blocks(Evaluator(random_problem(1)))
    assert not local_to_blocks(Evaluator(random_problem(1, features=("nodes",))))
    assert not local_to_blocks(Evaluator(random_problem(1, features=("radii",))))


FEATURES = [
    (),
    ("dims",),
    ("nodes",),
    ("rules",),
    ("tiers",),
    ("links",),
    ("noise",),
    ("nodes", "rules", "tiers", "links", "dims", "noise"),
]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_optimum_is_the_best_of_all_designs(features, k):
    problem = random_problem(7 * k + len(features), features=features, k=k, blocks=6)
    designs = all_designs(problem)
    for budget in (1.0, 3.5):
        best = best_within(designs, budget)
        if best is None:
            with pytest.raises(BudgetError):
                plan(problem, budget=budget, method="optimal")
            continue
        found = plan(problem, budget=budget, method="optimal")
        assert found.status is PlanStatus.OPTIMAL
        assert found.gamma == pytest.approx(best, rel=1e-8, abs=1e-9)
        assert found.upper_bound >= best * (1 - 1e-12)
        assert exact(found.cost) <= exact(budget)
        assert (exact(found.cost), found.selected) in {(cost, names) for cost, _, names in designs}
        assert found.gamma == problem.margin(found.selected).value


@pytest.mark.parametrize("features", FEATURES, ids="-".join)
def test_of_the_best_designs_the_cheapest_is_bought(features):
    for seed in range(3):
        problem = random_problem(40 + seed, features=features, blocks=7)
        designs = all_designs(problem)
        for budget in (2.5, 5.0):
            best = best_within(designs, budget)
            if best is None:
                continue
            found = plan(problem, budget=budget, method="optimal", aim="worst")
            least = min(cost for cost, value, _ in designs if cost <= exact(budget) and value >= best * (1 - 1e-9))
            assert exact(found.cost) == least
            assert found.least_cost
            assert found.to_json()["least_cost"] is True


def test_a_cost_that_was_not_proven_least_is_not_called_so():
    problem = random_problem(40, blocks=7)
    assert not plan(problem, budget=5.0, method="greedy").least_cost
    assert not plan(problem, budget=5.0, method="optimal", time_limit=0.0).least_cost


@pytest.mark.parametrize("features", [("dims",), ("nodes", "links")], ids="-".join)
def test_large_fields_ask_the_engine_instead_of_a_table(features, monkeypatch):
    monkeypatch.setattr("rrf_design.planning.evaluator.TABLE_SUPPORTS", 0)
    problem = random_problem(21, features=features, blocks=6)
    assert Evaluator(problem).table is None
    found = plan(problem, budget=4.0, method="optimal")
    assert found.status is PlanStatus.OPTIMAL
    assert found.gamma == pytest.approx(best_within(all_designs(problem), 4.0), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_robust_optimum_is_the_best_of_all_designs(seed):
    problem = random_problem(seed, features=("radii",), blocks=6)
    evaluator = Evaluator(problem, objective="robust")
    designs = all_designs(problem, value=lambda names: evaluator.value(evaluator.market.mask(names)))
    found = plan(problem, budget=4.0, method="optimal", objective="robust", aim="worst")
    assert found.status is PlanStatus.OPTIMAL
    assert found.value == pytest.approx(best_within(designs, 4.0), rel=1e-8, abs=1e-9)
    assert found.value <= found.gamma


@pytest.mark.parametrize("features", [(), ("nodes", "tiers"), ("rules", "links")], ids="-".join)
def test_pulp_and_ortools_agree(features):
    problem = random_problem(3, features=features, blocks=6)
    one, two = (plan(problem, budget=4.0, method="optimal", front_end=solver) for solver in ("ortools", "pulp"))
    assert two.gamma == pytest.approx(one.gamma, rel=1e-5)
    assert one.status is two.status is PlanStatus.OPTIMAL
    assert one.gap <= 2e-9
    assert two.gap <= 2e-5
    target = 0.9 * one.gamma
    costs = [plan(problem, target=target, method="optimal", front_end=solver).cost for solver in ("ortools", "pulp")]
    assert exact(costs[0]) == exact(costs[1]) == cheapest_reaching(all_designs(problem), target)


def test_no_time_gives_a_valid_plan_with_an_honest_gap():
    problem = random_problem(5, nodes=9, blocks=16, k=1)
    best = plan(problem, budget=6.0, method="optimal")
    hasty = plan(problem, budget=6.0, method="optimal", time_limit=0.0)
    assert best.status is PlanStatus.OPTIMAL
    assert hasty.gamma <= best.gamma * (1 + 1e-9)
    assert hasty.upper_bound >= best.gamma * (1 - 1e-12)
    assert hasty.gap == pytest.approx((hasty.upper_bound - hasty.value) / hasty.upper_bound)
    assert hasty.status is (PlanStatus.OPTIMAL if hasty.gap <= 1e-8 else PlanStatus.FEASIBLE)
    assert hasty.cost <= 6.0


def test_a_plan_is_reproducible():
    problem = random_problem(11, nodes=7, blocks=10)
    assert plan(problem, budget=5.0, seed=3) == plan(problem, budget=5.0, seed=3, n_jobs=2)


def test_zero_needs_no_purchase_and_is_proven_when_none_helps(pairs) -> None:
    found = plan(pairs, budget=5.0, method="optimal", aim="worst")
    assert (found.gamma, found.upper_bound, found.gap, found.status) == (0.0, 0.0, 0.0, PlanStatus.OPTIMAL)
    assert found.selected == ()
    assert plan(pairs, budget=6.0, method="optimal").gamma > 0.5
    found = plan(pairs, target=0.0)
    assert (found.selected, found.cost, found.status) == ((), 0.0, PlanStatus.OPTIMAL)


def test_equal_blocks_are_interchangeable():
    import rrf_design as rrf

    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[{"id": f"a{i}", "node": "x", "cost": 1.0} for i in range(12)],
    )
    found = plan(problem, budget=5.0, method="optimal")
    assert found.selected == ("a0", "a1", "a2", "a3", "a4")
    assert found.gamma == pytest.approx(5**0.5)


@pytest.mark.parametrize("features", [(), ("nodes",), ("tiers", "links"), ("rules", "noise")], ids="-".join)
def test_no_design_that_reaches_the_target_costs_less(features):
    problem = random_problem(4, features=features, blocks=6)
    designs = all_designs(problem)
    for target in sorted({value for _, value, _ in designs if value > 1e-6})[::7]:
        found = plan(problem, target=target, method="optimal")
        assert exact(found.cost) == cheapest_reaching(designs, target)
        assert found.gamma >= target * (1 - 1e-9)
        assert found.status is PlanStatus.OPTIMAL
        assert found.cost_bound == found.cost
        assert found.reached


def test_unreachable_target_comes_with_the_largest_margin_money_can_buy(pairs):
    everything = pairs.margin("all").value
    found = plan(pairs, target=everything * 1.01)
    assert found.status is PlanStatus.INFEASIBLE
    assert not found.reached
    assert found.gamma == pytest.approx(everything)
    assert "out of reach" in found.notes[0]


def test_budget_and_target_together(pairs):
    reachable = plan(pairs, budget=6.0).gamma
    assert plan(pairs, budget=6.0, target=reachable).cost == 6.0
    poor = plan(pairs, budget=5.0, target=reachable)
    assert poor.status is PlanStatus.INFEASIBLE
    assert poor.gamma == 0.0
    assert poor.cost <= 5.0


def test_error_bound_as_target():
    """2ε/γ ≤ δ with ε = 0.1 and δ = 0.4 is γ ≥ 0.5."""
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        epsilon=0.1,
        delta=0.4,
        anchors=[
            {"id": "weak", "node": "x", "weight": 0.2, "cost": 1.0},
            {"id": "strong", "node": "x", "weight": 0.25, "cost": 1.5},
            {"id": "dear", "node": "x", "cost": 4.0},
        ],
    )
    found = plan(problem)
    assert found.target == pytest.approx(0.5)
    assert found.selected == ("strong",)


FEATURES_LOCAL = [(), ("dims",), ("nodes",), ("rules",), ("tiers",), ("links",)]


@pytest.mark.parametrize("features", FEATURES_LOCAL, ids="-".join)
def test_it_lies_between_the_greedy_and_the_best(features):
    problem = random_problem(4, features=features, blocks=6)
    designs, budget = all_designs(problem), 4.0
    greedy = planner("greedy").plan(Evaluator(problem), Order(budget=budget))
    found = Local().plan(Evaluator(problem), Order(budget=budget))
    best = best_within(designs, budget)
    assert found.cost <= budget
    assert greedy.value * (1 - 1e-9) <= found.value <= best * (1 + 1e-9)
    assert found.upper_bound >= best * (1 - 1e-9)
    assert found == Local().plan(Evaluator(problem), Order(budget=budget))  # the same seed does the same


def test_neighbours_are_one_purchase_or_one_exchange_away():
    evaluator = Evaluator(random_problem(2, blocks=6))
    start = evaluator.market.empty()
    start[[0, 3]] = True
    climber = Climber(evaluator, Order(budget=5.0), start)
    near = climber._neighbours(start)
    assert len({mask.tobytes() for mask in near}) == len(near) > 0
    for mask in near:
        assert int((mask & ~start).sum()) == 1
        assert int((start & ~mask).sum()) <= 1
        assert evaluator.market.cost(mask) <= exact(5.0)
    wanted = [
        mask
        for drop in (None, 0, 3)
        for add in (1, 2, 4, 5)
        if evaluator.market.cost(mask := _moved(start, drop, add)) <= exact(5.0)
    ]
    assert {mask.tobytes() for mask in near} == {mask.tobytes() for mask in wanted}


def _moved(start: np.ndarray, drop: int | None, add: int) -> np.ndarray:
    mask = start.copy()
    if drop is not None:
        mask[drop] = False
    mask[add] = True
    return mask


@pytest.mark.parametrize("features", [(), ("dims",), ("rules",)], ids="-".join)
def test_tidying_keeps_the_floor_and_nothing_that_it_does_not_need(features):
    evaluator = Evaluator(random_problem(4, features=features, blocks=6))
    everything = np.ones(len(evaluator.market.items), dtype=bool)
    if evaluator.market.broken(everything):
        everything[2:4] = False
    floor = 0.5 * evaluator.value(everything)
    kept = tidy(evaluator, everything, floor)
    assert evaluator.value(kept) >= floor
    assert not evaluator.market.broken(kept)
    for item in np.flatnonzero(kept):
        smaller = evaluator.market.drop(kept, int(item))
        assert evaluator.value(smaller) < floor or evaluator.market.broken(smaller)


@pytest.mark.parametrize("features", [(), ("dims",), ("nodes",)], ids="-".join)
def test_what_a_design_teaches_holds_for_every_other(features):
    evaluator = Evaluator(random_problem(6, features=features, blocks=6))
    empty = evaluator.market.empty()
    value = _teach(evaluator, empty, 0.8, rng=np.random.default_rng(0), count=8)
    assert value == evaluator.value(empty)
    designs = np.array(list(np.ndindex(*(2,) * len(empty))), dtype=bool)
    bounds = evaluator.pool.bounds(designs)
    for mask, bound in zip(designs, bounds, strict=True):
        if (evaluator.market.close(mask) == mask).all():
            assert evaluator.value(mask) ** 2 <= bound * (1 + 1e-9) + 1e-12


def annotator(**settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "same", "tail": "a", "head": "b", "transport": {"scale": -1.0}, "sigma": 1.0},
            {"id": "next", "tail": "b", "head": "c", "sigma": 1.0, "cost": 1.0},
        ],
        anchors=[
            {"id": f"label {x}", "node": x, "sigma": 1.0, "cost": p} for x, p in (("a", 1.0), ("b", 1.0), ("c", 1.2))
        ],
        noise=[{"id": "annotator", "blocks": ["label a", "label b"], "covariance": [[1.0, 0.8], [0.8, 1.0]]}],
        **settings,
    )


def test_the_best_selection_is_another_one_with_joint_noise() -> None:
    bound, joint = rrf.plan(annotator(), budget=3.2), rrf.plan(annotator(), budget=3.2, jointly=True)
    assert bound.selected == ("next", "label a", "label c")
    assert joint.selected == ("label a", "label b", "label c")
    assert joint.gamma == pytest.approx(1.0)
    assert joint.status == "optimal"
    assert joint.trajectory[-1].gamma == joint.gamma
    assert any("plan --jointly tries every selection" in note for note in bound.notes)
    assert rrf.plan(annotator(), target=0.9, jointly=True).cost == pytest.approx(3.2)
    missed = rrf.plan(annotator(), target=5.0, jointly=True)
    assert missed.status == "infeasible"


def test_the_curve_rises_and_ends_with_everything() -> None:
    found = rrf.frontier(annotator(), jointly=True)
    assert [p.cost for p in found.points] == [0.0, 1.0, 2.0, 3.0, 3.2, 4.2]
    assert found.complete
    assert rrf.frontier(annotator(), budget=3.0, jointly=True).points[-1].cost == 3.0


@pytest.mark.parametrize("seed", range(30))
def test_small_fields_agree_with_enumeration(seed: int) -> None:
    assert judge_joint(seed)


def test_refusals() -> None:
    plain = rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", "cost": 1.0}])
    with pytest.raises(rrf.InputError, match="jointly: no blocks share a covariance"):
        rrf.plan(plain, budget=1.0, jointly=True)
    with pytest.raises(rrf.InputError, match="'greedy' does not go with jointly"):
        rrf.plan(annotator(), budget=1.0, jointly=True, method="greedy")
    with pytest.raises(rrf.InputError, match="objective: gamma does not go with jointly"):
        rrf.frontier(annotator(), jointly=True, objective="gamma")
    many = annotator().model_copy(
        update={"anchors": (*annotator().anchors, *(rrf.Anchor(id=f"x{i}", node="a", cost=1.0) for i in range(9)))}
    )
    with pytest.raises(rrf.InputError, match="13 purchases are on sale, and all selections of at most 11"):
        _joint_designs(many)


@pytest.mark.parametrize("seed", range(16))
def test_a_plan_that_a_limit_may_end_says_nothing_false(seed):
    """Whatever it came to: an admissible design with its own margin, and bounds that hold."""
    rng = np.random.default_rng(seed)
    features = tuple(name for name in ("dims", "nodes", "noise", "links", "rules", "tiers") if rng.random() < 0.5)
    problem = random_problem(seed, features=features, nodes=4, blocks=5, k=int(rng.integers(1, 3)))
    designs = {frozenset(names): (cost, value) for cost, value, names in all_designs(problem)}
    budget, target = float(rng.choice([3.0, 5.0])), float(rng.choice([0.05, 0.4]))
    affordable = [value for cost, value in designs.values() if cost <= budget]
    reaching = [cost for cost, value in designs.values() if value >= target * (1 - 1e-9)]
    if not affordable:
        with pytest.raises(BudgetError):
            plan(problem, budget=budget, time_limit=0.2)
    else:
        best = plan(problem, budget=budget, time_limit=0.2)
        assert float(designs[frozenset(best.selected)][0]) == best.cost <= budget
        assert best.gamma == pytest.approx(designs[frozenset(best.selected)][1], abs=1e-9)
        assert best.upper_bound >= max(affordable) * (1 - 1e-9)
        assert best.status != "optimal" or best.gamma >= max(affordable) * (1 - 1e-5) - 1e-9
    cheapest = plan(problem, target=target, time_limit=0.2)
    if cheapest.status == "infeasible":
        assert not reaching
    elif cheapest.status == "optimal":
        assert cheapest.cost == float(min(reaching))
