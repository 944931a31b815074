"""The bent field: coordinates unit by unit, rows set aside, and a tangent under the problem's premise."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing.autodiff import value_and_jacobian
from rrf_design.repairing.tangent import BentField, TangentMargins

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
SAID = {"width": (4.0,), "other": (12.0,), "height": (3.0,), "area": (11.0,)}


def test_coordinates_come_unit_by_unit_and_back() -> None:
    field = BentField.of(PROBLEM)
    assert list(field.place) == ["width", "height", "area", "other"]
    units = field.by_unit(SAID)
    assert units == {"mini": (4.0, 3.0, 11.0), "big": (12.0,)}
    assert field.by_node(units) == SAID
    assert field.residual(SAID) == pytest.approx(np.sqrt(1 + 1 + 1))


def test_what_is_set_aside_is_not_measured() -> None:
    field = BentField.of(PROBLEM)
    operator = field.tangent(np.eye(4))
    assert operator.block_ids == ("same", "plan", "clerk", "rectangle")
    clerk = operator.block_ids.index("clerk")
    assert field.without([clerk]).residual(SAID) == pytest.approx(np.sqrt(2))


def test_margins_of_the_tangent_are_those_of_the_premise() -> None:
    field = BentField.of(PROBLEM)
    _, jacobian = value_and_jacobian(field, np.array([4.0, 3.0, 12.0, 12.0]))
    operator = field.tangent(jacobian)
    assert operator.premise.suspects == {"same", "plan", "clerk"}
    assert field.bent == {"width", "height"}
    margins = TangentMargins.of(operator, 1, field.bent)
    assert margins.value == 0.0  # the whole unit may move, and two of its checks may be wrong
    plain = BentField.of(PROBLEM.model_copy(update={"wrong_checks": 0, "deliver": None}))
    alone = TangentMargins.of(plain.tangent(jacobian), 1, plain.bent)
    assert alone.value == pytest.approx(float(np.linalg.svd(jacobian, compute_uv=False)[-1]))
    assert alone.near == alone.delivered
