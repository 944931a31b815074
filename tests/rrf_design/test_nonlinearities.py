"""Products, powers, thresholds and clauses: what they mean, their second derivatives, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flint import arb

import rrf_design as rrf
from rrf_design.nonlinearities import Nonlinear
from rrf_design.repairing.autodiff import value_and_jacobian

FORMS: list[dict[str, Any]] = [
    {"product": ["a", "b", "c"], "head": "d", "weight": 4.0},
    {"power": {"a": 2.0, "b": -1.5, "c": 0.5}, "factor": 3.0, "head": "d"},
    {"threshold": "a", "at": 5.0, "head": "b"},
    {"threshold": "a", "at": 0.1, "head": "b"},
    {"clause": ["a", "not b", "c"]},
]
PLACE = {name: i for i, name in enumerate("abcd")}


@pytest.mark.parametrize("form", FORMS)
def test_rows_and_second_derivatives(form: dict[str, Any]) -> None:
    entry = Nonlinear(id="x", **form)

    def rows(z: Any) -> Any:
        return np.array(entry.rows({name: z[i] for name, i in PLACE.items()}))

    center = np.array([1.25, 0.75, 2.0, 3.0])
    balls = [arb(float(x), 1e-3) for x in center]
    found = entry.hessians({name: balls[i] for name, i in PLACE.items()}, PLACE)
    jacobian = value_and_jacobian(rows, center)[1]
    assert len(found) == entry.height == len(jacobian)
    step = 1e-6
    for i in range(4):
        moved = value_and_jacobian(rows, center + step * np.eye(4)[i])[1]
        for row in range(entry.height):
            for j in range(4):
                bound = found[row][i][j]
                true = abs(moved[row, j] - jacobian[row, j]) / step
                assert true <= float(arb(bound).abs_upper()) * (1 + 1e-3) + 1e-6


def test_where_a_threshold_bends_nothing_is_bounded() -> None:
    entry = Nonlinear(id="x", threshold="a", at=1.0, head="b")
    balls = {name: arb(1.0, 0.5) for name in "ab"}
    assert not entry.hessians(balls, {"a": 0, "b": 1})[0][0][0].is_finite()


def meaning(form: dict[str, Any], **values: float) -> bool:
    return not any(Nonlinear(id="x", **form).rows(values))


def test_what_they_mean() -> None:
    assert meaning({"product": ["a", "b"], "head": "c"}, a=2, b=3, c=6)
    assert not meaning({"product": ["a", "b"], "head": "c"}, a=2, b=3, c=5)
    assert meaning({"power": {"a": 2.0}, "factor": 0.5, "head": "b"}, a=4, b=8)
    for score, passed in ((60.0, 1.0), (50.0, 1.0), (50.0, 0.0), (40.0, 0.0)):  # at the threshold itself either fits
        assert meaning({"threshold": "a", "at": 50.0, "head": "b"}, a=score, b=passed)
    assert not meaning({"threshold": "a", "at": 50.0, "head": "b"}, a=40.0, b=1.0)
    assert meaning({"clause": ["a", "not b"]}, a=0, b=0)
    assert not meaning({"clause": ["a", "not b"]}, a=0, b=1)


def problem(form: dict[str, Any], **settings: Any) -> rrf.Problem:
    return rrf.Problem(nodes=[{"id": name} for name in "abc"], nonlinear=[{"id": "x", **form}], **settings)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, "give one of product, power, threshold and clause, not none"),
        ({"product": ["a"], "clause": ["b"]}, "not product and clause"),
        ({"product": ["a"]}, "head is missing"),
        ({"product": [], "head": "a"}, "product"),
        ({"clause": ["a"], "head": "b"}, "a clause has no head"),
        ({"threshold": "a", "head": "b"}, "at goes with threshold"),
        ({"product": ["a"], "at": 1.0, "head": "b"}, "at goes with threshold"),
        ({"product": ["a"], "factor": 2.0, "head": "b"}, "factor goes with power"),
        ({"product": ["a", "a"], "head": "b"}, "names a node twice"),
        ({"product": ["a", "zz"], "head": "b"}, "unknown node 'zz'"),
        ({"produkt": ["a"], "head": "b"}, "unknown key 'produkt'; did you mean 'product'?"),
    ],
)
def test_what_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(rrf.InputError) as caught:
        problem(bad)
    assert str(caught.value).startswith("nonlinear 'x': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tail": 0.1}, "tail does not go with nonlinear relations"),
        ({"anchors": [{"id": "y", "node": "a", "cost": 1.0}]}, "leave out cost"),
        ({"anchors": [{"id": "y", "node": "a", "uncertainty": 1.0}]}, "leave out uncertainty"),
        ({"nodes": [{"id": "a", "dim": 2}, {"id": "b"}]}, "plain numbers; leave out dim"),
    ],
)
def test_what_does_not_go_together(settings: dict[str, Any], message: str) -> None:
    given = {"nodes": [{"id": "a"}, {"id": "b"}], "nonlinear": [{"id": "x", "product": ["a"], "head": "b"}], **settings}
    with pytest.raises(rrf.InputError, match=message):
        rrf.Problem(**given)
    with pytest.raises(rrf.InputError, match="local_radius goes with nonlinear relations"):
        rrf.Problem(nodes=[{"id": "a"}], local_radius=1.0)


def test_global_claims_are_refused_in_one_line_and_files_keep_them() -> None:
    field = problem({"power": {"a": 2.0}, "head": "b"}, local_radius=0.5)
    assert rrf.loads(rrf.dumps(field)) == field
    for verb in (field.margin, lambda: rrf.plan(field, budget=1.0), lambda: rrf.certify(field)):
        with pytest.raises(rrf.InputError, match="nonlinear 'x': margins, plans and certificates speak of all fields"):
            verb()
