"""The witness rule, batches that don't attack one witness twice, and residuals that steer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from fields import ring

import rrf_design as rrf
from rrf_design.acquisition.choosing import best_bundle, fixed_schedules, greedy_schedule, in_order
from rrf_design.acquisition.design import Design


def pairs(count: int = 3) -> rrf.Problem:
    """Unrelated pairs of questions, each with an anchor on sale: every pair is a null witness of its own."""
    return rrf.Problem(
        k=1,
        nodes=[{"id": f"{side}{i}", "prompt": f"{side}{i}?"} for i in range(count) for side in "xy"],
        relations=[{"id": f"r{i}", "tail": f"x{i}", "head": f"y{i}"} for i in range(count)],
        anchors=[{"id": f"a{i}", "node": f"x{i}", "value": 7.0, "cost": 1.0} for i in range(count)],
    )


def test_the_bundle_with_most_energy_per_cost_wins() -> None:
    design = Design(ring())
    witness = design.margin(()).witness
    energy = design.energies(witness)
    rated = {
        b.names[-1]: sum(energy[n] for n in design.wakes(b.names, ())) / float(b.price)
        for b in design.candidates((), (), most=None)
    }
    bundle = best_bundle(design, (), (), most=None)
    assert bundle is not None
    assert rated[bundle.names[-1]] >= max(rated.values()) * (1 - 1e-9)


def test_nothing_sees_a_witness_that_nothing_for_sale_touches() -> None:
    problem = rrf.Problem(k=1, nodes=[{"id": "a"}, {"id": "b"}], anchors=[{"id": "A", "node": "a", "value": 1.0}])
    assert best_bundle(Design(problem), (), (), most=None) is None


def test_money_is_respected() -> None:
    design = Design(ring())
    assert best_bundle(design, (), (), most=Fraction(1, 2)) is None
    names = greedy_schedule(design, most=Fraction(3))
    assert design.price(names) <= 3


def test_a_schedule_stops_at_the_goal() -> None:
    design = Design(ring(budget=None, target=0.5))
    names = greedy_schedule(design, most=None)
    assert design.margin(names).lower >= 0.5
    assert design.margin(names[:-1]).lower < 0.5


def test_each_purchase_attacks_another_witness() -> None:
    names = greedy_schedule(Design(pairs()), most=None)
    assert sorted(names) == ["a0", "a1", "a2"]


def test_residuals_steer_among_equally_bad_supports() -> None:
    design = Design(pairs())
    answers = {f"{side}{i}": (7.0,) for i in range(3) for side in "xy"} | {"y2": (9.0,)}
    bundle = best_bundle(design, (), (), most=None, answers=answers, values={})
    assert bundle is not None
    assert bundle.names == ("a2",)


def test_money_goes_to_the_worst_item_first() -> None:
    whole = ring(4, budget=None)
    owned = [relation.model_copy(update={"cost": None}) for relation in whole.relations]
    good = rrf.Problem(k=1, nodes=whole.nodes, relations=owned, anchors=whole.anchors)
    designs = {"good": Design(good), "bad": Design(pairs(1))}
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
    names = in_order(Design(problem), ["C", "bc", "c"])
    assert sorted(names) == ["C", "bc", "c"]
    assert names.index("c") < names.index("bc") < names.index("C")


def test_choices_are_repeatable() -> None:
    assert len({greedy_schedule(Design(ring(6)), most=Fraction(5)) for _ in range(3)}) == 1
    assert np.isfinite(Design(ring(6)).margin(()).lower)
