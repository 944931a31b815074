"""Local repair of nonlinear relations: what it finds, what it promises, and that it says how far.
The bent field: coordinates unit by unit, rows set aside, and a tangent under the problem's premise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.autodiff import value_and_jacobian
from rrf_design.repairing._local import _BentField, _TangentMargins


def room(**settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": name} for name in ("width", "height", "area", "reworded")],
        nonlinear=[{"id": "rectangle", "product": ["width", "height"], "head": "area"}],
        relations=[{"id": "same", "tail": "area", "head": "reworded"}],
        anchors=[{"id": "plan", "node": "width", "value": 4.0}, {"id": "ruler", "node": "height", "value": 3.0}],
        **settings,
    )


SAID = {"width": 4, "height": 3, "area": 14, "reworded": 12}


def test_a_wrong_product_is_found_and_promised_nearby() -> None:
    fixed = rrf.repair(room(local_radius=0.5), SAID)
    assert fixed.verdict == "consistent"
    assert fixed.support == ("area",)
    assert fixed.repaired["area"] == pytest.approx((12.0,))
    assert fixed.error_bound == pytest.approx(0.0, abs=1e-9)
    assert "the truth lies within 0.5 of these values (a local promise)" in fixed.assumes
    assert fixed.reason.startswith("local: within 0.5")
    details = fixed.diagnostics.details
    assert details["scope"] == "local"
    assert 0 < details["estimated_curvature"] <= details["curvature"]


def test_noise_gives_a_bound_and_a_goal_decides() -> None:
    noisy = rrf.repair(room(local_radius=0.1, epsilon=0.01, delta=1.0), SAID)
    assert noisy.verdict == "consistent"
    assert noisy.error_bound == pytest.approx(0.02 / (0.618034 - 0.05 * 2**0.5), rel=1e-3)
    assert rrf.repair(room(local_radius=0.1, epsilon=0.01, delta=0.02), SAID).verdict == "incomplete"


@pytest.mark.parametrize(
    ("settings", "said", "verdict", "reason"),
    [
        ({}, SAID, "ambiguous", "without local_radius nothing is promised"),
        ({"local_radius": 5.0}, SAID, "ambiguous", "curvature takes the tangent margin"),
        (
            {"local_radius": 0.5},
            {**SAID, "width": 9, "reworded": 30},
            "incomplete",
            "that is no proof that there is none",
        ),
    ],
)
def test_what_is_not_promised(settings: dict[str, Any], said: dict[str, Any], verdict: str, reason: str) -> None:
    fixed = rrf.repair(room(**settings), said)
    assert fixed.verdict == verdict
    assert reason in fixed.reason
    assert fixed.error_bound is None
    if verdict == "incomplete":
        assert set(fixed.repaired.values()) == {None}


def test_bad_calls() -> None:
    with pytest.raises(rrf.InputError, match="node 'area': missing; a local repair needs an answer at every node"):
        rrf.repair(room(), {"width": 4, "height": 3, "reworded": 12})
    with pytest.raises(rrf.InputError, match="method: does not apply to the local repair"):
        rrf.repair(room(), SAID, method="convex")
    with pytest.raises(rrf.InputError, match="anchor 'x': no value is known yet"):
        rrf.repair(room().model_copy(update={"anchors": ({"id": "x", "node": "width"},)}), SAID)


def test_its_page_is_made_with_the_field_and_says_that_it_is_local() -> None:
    from rrf_design.repairing.contract import to_document
    from rrf_design.reporting.documents import read, render

    field = room(local_radius=0.5)
    made = render(read(to_document(rrf.repair(field, SAID)), problem=field))
    assert "a local promise" in made
    assert "Not drawn, since they are no rows of B: the nonlinear relations rectangle." in made


def shared(**settings: Any) -> rrf.Problem:
    """Three models on a room: one of them gave three answers."""
    return rrf.Problem(
        nodes=[{"id": name, "unit": "mini"} for name in ("width", "height", "area")]
        + [{"id": name, "unit": name} for name in ("other", "third")],
        nonlinear=[{"id": "rectangle", "product": ["width", "height"], "head": "area"}],
        relations=[
            {"id": "same", "tail": "area", "head": "other"},
            {"id": "also", "tail": "area", "head": "third"},
            {"id": "cross", "tail": "other", "head": "third"},
        ],
        anchors=[
            {"id": "plan", "node": "width", "value": 4.0},
            {"id": "ruler", "node": "height", "value": 3.0},
            {"id": "clerk", "node": "area", "value": 12.0},
        ],
        epsilon=0.01,
        local_radius=0.1,
        **settings,
    )


WRONG = {"width": 5, "height": 3, "area": 14, "other": 12, "third": 12}


def test_k_counts_units_and_only_what_is_delivered_decides() -> None:
    fixed = rrf.repair(shared(deliver=["area"], delta=0.1), WRONG)
    assert fixed.verdict == "consistent"
    assert fixed.support == ("width", "area")  # one unit
    assert fixed.assumes.startswith("at most 1 of 3 units is wrong")
    assert set(fixed.bounds) == {"area"}
    assert "away in what is delivered" in fixed.reason
    assert rrf.repair(shared(delta=0.1), WRONG).error_bound > fixed.error_bound
    alone = shared().model_copy(update={"nodes": tuple(n.model_copy(update={"unit": None}) for n in shared().nodes)})
    assert rrf.repair(alone, WRONG).verdict == "incomplete"  # two answers, each on its own


def test_a_wrong_check_is_named() -> None:
    base = shared(wrong_checks=1, deliver=["area"], delta=1.0)
    anchors = tuple(a.model_copy(update={"value": 13.0}) if a.id == "clerk" else a for a in base.anchors)
    right = {"width": 4, "height": 3, "area": 12, "other": 12, "third": 12}
    fixed = rrf.repair(base.model_copy(update={"anchors": anchors}), right)
    assert fixed.wrong_checks == ("clerk",)
    assert fixed.support == ()
    assert "and at most 1 of 7 checks are wrong" in fixed.assumes
    trusted = tuple(a.model_copy(update={"trusted": True}) for a in anchors)
    held = rrf.repair(base.model_copy(update={"anchors": trusted}), right)
    assert held.wrong_checks != ("clerk",)


PROBLEM = rrf.Problem(
    deliver=["area"],
    wrong_checks=1,
    nodes=[
        {"id": "width", "unit": "mini"},
        {"id": "other", "unit": "big"},
        {"id": "height", "unit": "mini"},
        {"id": "area", "unit": "mini"},
    ],
    nonlinear=[{"id": "rectangle", "product": ["width", "height"], "head": "area", "trusted": True}],
    relations=[{"id": "same", "tail": "area", "head": "other"}],
    anchors=[{"id": "plan", "node": "width", "value": 4.0}, {"id": "clerk", "node": "area", "value": 12.0}],
)
BENT_SAID = {"width": (4.0,), "other": (12.0,), "height": (3.0,), "area": (11.0,)}


def test_coordinates_come_unit_by_unit_and_back() -> None:
    field = _BentField.of(PROBLEM)
    assert list(field.place) == ["width", "height", "area", "other"]
    units = field.by_unit(BENT_SAID)
    assert units == {"mini": (4.0, 3.0, 11.0), "big": (12.0,)}
    assert field.by_node(units) == BENT_SAID
    assert field.residual(BENT_SAID) == pytest.approx(np.sqrt(1 + 1 + 1))


def test_what_is_set_aside_is_not_measured() -> None:
    field = _BentField.of(PROBLEM)
    operator = field.tangent(np.eye(4))
    assert operator.block_ids == ("same", "plan", "clerk", "rectangle")
    clerk = operator.block_ids.index("clerk")
    assert field.without([clerk]).residual(BENT_SAID) == pytest.approx(np.sqrt(2))


def test_margins_of_the_tangent_are_those_of_the_premise() -> None:
    field = _BentField.of(PROBLEM)
    _, jacobian = value_and_jacobian(field, np.array([4.0, 3.0, 12.0, 12.0]))
    operator = field.tangent(jacobian)
    assert operator.premise.suspects == {"same", "plan", "clerk"}
    assert field.bent == {"width", "height"}
    margins = _TangentMargins.of(operator, 1, field.bent)
    assert margins.value == 0.0  # the whole unit may move, and two of its checks may be wrong
    plain = _BentField.of(PROBLEM.model_copy(update={"wrong_checks": 0, "deliver": None}))
    alone = _TangentMargins.of(plain.tangent(jacobian), 1, plain.bent)
    assert alone.value == pytest.approx(float(np.linalg.svd(jacobian, compute_uv=False)[-1]))
    assert alone.near == alone.delivered
