"""The paper's greedy: what it buys in which order, at zero margin too, and what it does about
ties.

The greedy that follows the margin through purchases buys what the greedy with a table buys.
"""

from __future__ import annotations

import numpy as np
import pytest
from small import random_problem

import rrf_design as rrf
from rrf_design.planning import evaluator as module
from rrf_design.planning import plan
from rrf_design.planning._greedy import Tracked, _overlapping, local_to_blocks, witness_greedy
from rrf_design.planning.contract import Order
from rrf_design.planning.evaluator import Evaluator


def test_anchors_the_pair_and_not_the_clique(clique_and_pair):
    found = plan(clique_and_pair, budget=1.0, method="greedy")
    assert found.selected == ("a-p0",)
    assert found.gamma > 0.6
    assert set(found.trajectory[0].support) == {"p0", "p1"}


def test_one_anchor_per_pair(pairs):
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
