"""The witness rule, batches that don't attack one witness twice, and residuals that steer."""

from __future__ import annotations

from fractions import Fraction

from fields import pairs, ring

import rrf_design as rrf
from rrf_design.acquisition.choosing import best_bundle
from rrf_design.acquisition.scheduling import Begun, witness_schedules
from rrf_design.acquisition.shop import Shop


def test_the_bundle_with_most_energy_per_cost_wins() -> None:
    design = Shop(ring())
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
    assert best_bundle(Shop(problem), (), (), most=None) is None


def test_money_is_respected() -> None:
    design = Shop(ring())
    assert best_bundle(design, (), (), most=Fraction(1, 2)) is None
    names = witness_schedules({"": Begun(design)}, Fraction(3))[""].names
    assert design.price(names) <= 3


def test_residuals_steer_among_equally_bad_supports() -> None:
    design = Shop(pairs())
    answers = {f"{side}{i}": (7.0,) for i in range(3) for side in "xy"} | {"y2": (9.0,)}
    bundle = best_bundle(design, (), (), most=None, answers=answers, values={})
    assert bundle is not None
    assert bundle.names == ("a2",)
