"""One budget over a table: what the portfolio planner finds item by item, from the structures
alone.
"""

from __future__ import annotations

import json
import random

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.planning import Aim, PlanStatus, portfolio
from rrf_design.tables import plan_dataset

RECIPE = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.005},
    "ask": [
        {"id": "total", "prompt": "Total?"},
        {"id": "reworded", "prompt": "To pay?", "like": "total", "cost": 1.0, "buy": "if needed"},
        {"id": "again", "prompt": "Again?", "like": "total", "cost": 1.5, "buy": "if needed"},
    ],
    "check": [{"id": "clerk", "of": "total", "by": {"person": "{{ no }}"}, "cost": "{{ minutes }}"}],
}


def table(count: int, seed: int = 1) -> list[dict[str, object]]:
    chance = random.Random(seed)
    return [{"no": str(number), "minutes": chance.choice([1, 2, 3, 4])} for number in range(count)]


@pytest.mark.parametrize("budget", [0.0, 7.5, 20.0, 33.0, 1000.0])
def test_it_is_the_portfolio_of_all_items(budget: float) -> None:
    """The slow and obvious way: every item by itself."""
    items = rrf.dataset(RECIPE, table(20))
    found = rrf.plan(items, budget=budget)
    target = 1e-6  # what any positive margin stands for, without noise
    slow = portfolio(list(items.values()), budget=budget, aim=Aim.COUNT, target=target)
    assert found.status is slow.status is PlanStatus.OPTIMAL
    assert (found.value, found.cost) == (slow.value, slow.cost)
    assert found.cost <= budget
    assert sum(share.cost for _, share in found.items()) == pytest.approx(found.cost)
    assert sum(share.reached for _, share in found.items()) == found.value
    for name, share in found.items():
        assert items[name].margin(list(share.selected)).value == pytest.approx(share.gamma, rel=1e-9)


def test_without_a_budget_every_item_reaches_its_goal_at_least_cost() -> None:
    items = rrf.dataset(RECIPE, table(12))
    found = plan_dataset(items)
    singles = {name: rrf.plan(problem) for name, problem in items.items()}
    assert found.reached
    assert found.cost == sum(one.cost for one in singles.values())
    assert {name: share.cost for name, share in found.items()} == {name: one.cost for name, one in singles.items()}


def test_its_document() -> None:
    found = rrf.plan(rrf.dataset(RECIPE, table(6)), budget=6.0)
    document = json.loads(json.dumps(found.to_json()))
    assert {"items", "cost", "value", "status"} <= document.keys()
    assert set(document["items"]) == {str(number) for number in range(6)}
    assert {"selected", "cost", "gamma"} <= document["items"]["0"].keys()
    assert len(found.to_frame()) == 6
    assert "items reach the goal" in repr(found)
    assert found.sentence() in found._repr_html_()


def test_what_can_not_be() -> None:
    items = rrf.dataset(RECIPE, table(3))
    with pytest.raises(InputError, match="budget: must be a number"):
        plan_dataset(items, budget=-1.0)
    with pytest.raises(InputError, match="method does not go with one budget"):
        plan_dataset(items, budget=1.0, method="greedy")


def test_one_budget_buys_repeats_where_they_are_on_sale() -> None:
    """Equal to the portfolio of the items' own goals, item by item."""
    recipe = {
        "data": {"id": "no"},
        "problem": {"k": 1, "delta": 1.6},
        "nodes": [
            {"id": name, "sigma": 0.1, "again": 0.05, "most_repeats": 3, "prompt": "{{ no }}"} for name in ("a", "b")
        ],
        "relations": [{"id": "same", "tail": "a", "head": "b"}],
        "anchors": [
            {"id": "known", "node": "a", "value": 1.0},
            {"id": "label", "node": "b", "value": 1.0, "cost": "{{ minutes }}"},
        ],
    }
    items = rrf.dataset(recipe, table(8))
    for budget in (0.0, 0.3, 0.9, 50.0):
        found = rrf.plan(items, budget=budget)
        slow = portfolio(list(items.values()), budget=budget, aim=Aim.COUNT)
        assert (found.value, found.status) == (slow.value, slow.status)
        assert found.cost == pytest.approx(slow.cost)
    assert found.value == 8
    assert any(share.repeats for _, share in found.items())
    assert any("repeats" in share.to_json() for _, share in found.items())
    free = rrf.plan(items)
    assert all(share.repeats for _, share in free.items())
    with pytest.raises(InputError, match="jointly speaks of one problem"):
        rrf.plan(items, budget=1.0, jointly=True)
