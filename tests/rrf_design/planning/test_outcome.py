"""From a design to a plan: the least that must be bought, the order of purchases, and the notes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from small import random_problem

import rrf_design as rrf
from rrf_design.errors import BudgetError, InputError
from rrf_design.planning._outcome import finish, starting_design, trajectory
from rrf_design.planning.contract import Order, PlanStatus
from rrf_design.planning.evaluator import Evaluator

NODES = [{"id": "a"}, {"id": "b"}]
RELATION = {"id": "r", "tail": "a", "head": "b"}
ANCHORS = [{"id": "x", "node": "a", "cost": 2.0}, {"id": "y", "node": "b", "cost": 3.0}]


def arena_of(**more) -> Evaluator:
    return Evaluator(rrf.Problem(**{"nodes": NODES, "relations": [RELATION], "anchors": ANCHORS, **more}))


def test_without_demands_nothing_is_bought_first():
    assert not starting_design(arena_of(), Order(budget=0.0)).any()


def test_rules_are_met_at_least_cost_or_refused():
    rule = {"id": "one", "blocks": ["x", "y"], "at_least": 1}
    evaluator = arena_of(rules=[rule])
    assert evaluator.market.names(starting_design(evaluator, Order())) == ("x",)
    with pytest.raises(BudgetError, match="budget: 1 is too little; the least that must be bought costs 2") as caught:
        starting_design(evaluator, Order(budget=1.0))
    assert (caught.value.needed, caught.value.available) == (2.0, 1.0)
    with pytest.raises(InputError, match="rules: no design satisfies them all"):
        starting_design(arena_of(rules=[rule, {"id": "none", "blocks": ["x", "y"], "at_most": 0}]), Order())


def test_where_nothing_is_asked_a_query_comes_first():
    evaluator = arena_of(nodes=[{"id": "a", "cost": 4.0}, {"id": "b", "cost": 1.0}], relations=[])
    assert evaluator.market.names(starting_design(evaluator, Order())) == ("b",)
    with pytest.raises(BudgetError, match="a query must be asked before there is anything to observe"):
        starting_design(evaluator, Order(budget=0.5))


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
