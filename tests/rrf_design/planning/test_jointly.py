"""Plans with joint noise: every selection tried, refusals in one line, and what is said
without it.
"""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.planning._jointly import _joint_designs
from scenarios.declared_relations.jointly import judge_joint


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
