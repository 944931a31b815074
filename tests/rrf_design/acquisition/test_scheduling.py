"""Schedules made before any answer is seen: goals, money, order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from fields import pairs, ring

import rrf_design as rrf
from rrf_design.acquisition.scheduling import Begun, fixed_schedules, in_order, remade_schedules, witness_schedules
from rrf_design.acquisition.shop import Shop


def test_a_schedule_stops_at_the_goal() -> None:
    design = Shop(ring(budget=None, target=0.5))
    names = witness_schedules({"": Begun(design)}, None)[""].names
    assert design.margin(names).lower >= 0.5
    assert design.margin(names[:-1]).lower < 0.5


def test_each_purchase_attacks_another_witness() -> None:
    names = witness_schedules({"": Begun(Shop(pairs()))}, None)[""].names
    assert sorted(names) == ["a0", "a1", "a2"]


def test_money_goes_to_the_worst_item_first() -> None:
    whole = ring(4, budget=None)
    owned = [relation.model_copy(update={"cost": None}) for relation in whole.relations]
    good = rrf.Problem(k=1, nodes=whole.nodes, relations=owned, anchors=whole.anchors)
    designs = {"good": Shop(good), "bad": Shop(pairs(1))}
    assert designs["good"].margin(()).lower > designs["bad"].margin(()).lower == 0.0
    schedules = fixed_schedules(designs, budget=1.0, method="witness", time_limit=None)
    assert {item: schedule.names for item, schedule in schedules.items()} == {"good": (), "bad": ("a0",)}


def test_a_chosen_set_is_ordered_with_its_needs_first() -> None:
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 1.0}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c", "cost": 1.0}],
        anchors=[{"id": "C", "node": "c", "value": 1.0, "cost": 1.0, "requires": ["bc"]}],
    )
    names = in_order(Shop(problem), ["C", "bc", "c"])
    assert sorted(names) == ["C", "bc", "c"]
    assert names.index("c") < names.index("bc") < names.index("C")


def test_choices_are_repeatable() -> None:
    assert len({witness_schedules({"": Begun(Shop(ring(6)))}, Fraction(5))[""].names for _ in range(3)}) == 1
    assert np.isfinite(Shop(ring(6)).margin(()).lower)


def test_after_unread_answers_the_cheapest_goals_get_the_money() -> None:
    """Three equal fields, checks at 3, 1 and 2: with 3 to spend the two cheaper ones get there, and nothing is spread over the dear one."""

    def field(price: float) -> Begun:
        nodes = [{"id": "a"}, {"id": "b"}]
        same = [{"id": "same", "tail": "a", "head": "b"}]
        checks = [{"id": "check a", "node": "a", "cost": price}]
        return Begun(Shop(rrf.Problem(k=1, target=0.3, nodes=nodes, relations=same, anchors=checks)), ("b",), ("b",))

    fields = {"dear": field(3.0), "cheap": field(1.0), "middle": field(2.0)}
    names = {item: schedule.names for item, schedule in remade_schedules(fields, Fraction(3)).items()}
    assert names == {"dear": (), "cheap": ("check a",), "middle": ("check a",)}
