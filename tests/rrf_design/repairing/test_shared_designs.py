"""A shared design with an item's own values is the operator of its own problem, row for row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.repairing.engine import SharedDesign, operator_key


def problem(*, offset: Any = 0.0, first: Any = (1.0, 2.0), second: float | None = 5.0) -> rrf.Problem:
    """Noise of every kind: a sigma, a covariance, a family that shares its weight; one node and one
    anchor on sale.
    """
    return rrf.Problem(
        k=1,
        nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}, {"id": "c", "cost": 1.0}],
        relations=[
            {"id": "r", "tail": "a", "head": "b", "offset": offset, "covariance": [[2.0, 1.0], [1.0, 3.0]]},
            {"id": "s", "tail": "b", "head": "a", "family": "f", "weight": 4.0},
            {"id": "t", "tail": "a", "head": "b", "family": "f", "weight": 4.0},
        ],
        anchors=[
            {"id": "x", "node": "a", "value": list(first), "sigma": 0.5},
            {"id": "y", "node": "c", "value": second, "cost": 2.0} if second is not None else {"id": "y", "node": "c", "cost": 2.0},
        ],
    )  # fmt: skip


def shared(own: rrf.Problem, held: frozenset[str], absent: frozenset[str]) -> SharedDesign:
    return SharedDesign(own, own.structure.holding(held, absent))


@pytest.mark.parametrize("held", [frozenset(), frozenset({"c"}), frozenset({"c", "y"})])
def test_it_is_the_item_s_own_operator(held: frozenset[str]) -> None:
    template = shared(problem(), held, frozenset())
    own = problem(offset=[0.5, -1.0], first=(3.0, 4.0), second=9.0)
    values: dict[str, Any] = {"r": (0.5, -1.0), "x": (3.0, 4.0)} | ({"y": (9.0,)} if "y" in held else {})
    cast = template.aimed(values)
    slow = own.operator(sorted(held))
    np.testing.assert_allclose(cast.matrix.toarray(), slow.matrix.toarray(), atol=1e-14)
    np.testing.assert_allclose(cast.target, slow.target, atol=1e-14)
    assert cast.block_ids == slow.block_ids
    assert template.key == operator_key(template.operator)
    np.testing.assert_array_equal(template.operator.magnitudes.toarray(), abs(template.operator.matrix.toarray()))


def test_an_owned_anchor_may_be_absent() -> None:
    template = shared(problem(), frozenset(), frozenset({"x"}))
    assert "x" not in template.operator.block_ids
    assert template.aimed({}).target.tolist() == [0.0] * template.operator.shape[0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "check 'x': no value is known"),
        ({"x": (1.0,)}, "is not a value for 2 rows"),
        ({"x": 1.0}, "is not a value for 2 rows"),
        ({"x": (1.0, 2.0), "r": (1.0, 2.0, 3.0)}, "is not a value for 2 rows"),
    ],
)
def test_values_that_do_not_fit(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        shared(problem(), frozenset(), frozenset()).aimed(values)


def test_one_number_is_the_offset_of_every_row_of_a_relation() -> None:
    template = shared(problem(), frozenset(), frozenset())
    both = [template.aimed({"x": (1.0, 2.0), "r": given}).target for given in (0.5, (0.5, 0.5))]
    np.testing.assert_array_equal(both[0], both[1])
