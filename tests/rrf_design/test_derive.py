"""Derived problems keep what they say they keep."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.derive import owning, realised, with_radii, without_noise
from rrf_design.errors import InputError


def market() -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 1.0}],
        relations=[
            {"id": "r", "tail": "a", "head": "b", "family": "f", "sigma": 0.5},
            {"id": "s", "tail": "b", "head": "c", "family": "f"},
        ],
        anchors=[{"id": f"x{i}", "node": "a", "value": 1.0, "cost": 9.0} for i in range(3)],
        tiers=[{"id": "t", "blocks": ["x0", "x1", "x2"], "prices": [5.0, 2.0]}],
        rules=[{"id": "most", "blocks": ["x0", "x1", "x2"], "at_most": 2, "at_least": 1}],
    )


def test_without_noise_rows_are_in_the_units_of_the_file() -> None:
    bare = without_noise(market())
    assert abs(bare.whole.matrix.toarray()[0, 0]) == pytest.approx(2**-0.5)
    assert without_noise(bare) is bare


def test_owning_leaves_the_bill_of_the_rest_as_it_was() -> None:
    problem = market()
    rest = owning(problem, ["x0", "c"])
    assert rest.block_by_id["x0"].owned
    assert rest.node_by_id["c"].cost is None
    assert (rest.tiers[0].prices, rest.rules[0].at_most, rest.rules[0].at_least) == ((2.0,), 1, 0)
    before, after = problem.structure.market, rest.structure.market
    assert after.extra(["x1", "x2"], ()) == before.extra(["x1", "x2"], {"x0"}) == 4
    assert np.array_equal(rest.margin().operator.matrix.toarray(), problem.operator(["x0", "c"]).matrix.toarray())
    assert owning(problem, []) is problem


def test_what_failed_is_gone_and_rows_that_stay_are_the_same() -> None:
    problem = market()
    left = realised(problem, failed=["s", "x2"], values={"x1": (4.0,)})
    assert set(left.block_by_id) == {"r", "x0", "x1"}
    row = problem.whole.rows_of("r").toarray()
    assert left.whole.rows_of("r").toarray() == pytest.approx(row, rel=1e-15)
    assert left.block_by_id["x1"].value == (4.0,)  # type: ignore[union-attr]
    gone = realised(problem, failed=["b"], values={})
    assert set(gone.node_by_id) == {"a", "c"}
    assert not gone.relations


def test_radii_of_a_calibration_replace_those_of_the_file() -> None:
    assert with_radii(market(), {"r": 0.2}).block_by_id["r"].uncertainty == 0.2
    with pytest.raises(InputError, match="'q' is not a block"):
        with_radii(market(), {"q": 0.1})


@pytest.mark.parametrize("shared", [{"correlation": 0.5}, {"covariance": (0.3 + 0.7 * np.eye(3)).tolist()}])
def test_rows_stay_what_they_were_when_others_that_share_their_noise_fail(shared: dict[str, object]) -> None:
    anchors = [{"id": f"x{i}", "node": "a", "value": 1.0, "sigma": 1.0} for i in range(3)]
    relations = [
        {"id": f"r{i}", "tail": "a", "head": "b", "family": "f", "correlation": 0.25, "sigma": 1.0} for i in range(3)
    ]
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=relations,
        anchors=anchors,
        noise=[{"id": "n", "blocks": ["x0", "x1", "x2"], **shared}],
    )
    for failed in (["x1", "r0"], ["x0", "x2", "r0", "r1"]):
        left = realised(problem, failed=failed, values={})
        before = problem.structure.holding((), failed).operator.matrix.toarray()
        np.testing.assert_allclose(left.whole.matrix.toarray(), before, rtol=1e-9)
        assert len(left.noise) == (len(failed) == 2)
    assert without_noise(problem).noise == ()


def test_what_turned_out_as_it_was_written_is_the_same_problem() -> None:
    """Then everything that was computed of it holds, and thousands of equal items share one structure."""
    nodes, anchors = [{"id": "a"}], [{"id": "x", "node": "a", "value": 7.0, "cost": 1.0}]
    problem = rrf.Problem(nodes=nodes, anchors=anchors)
    assert realised(problem, failed=(), values={"x": (7.0,)}) is problem
    assert realised(problem, failed=(), values={"x": (8.0,)}).anchors[0].value == (8.0,)
    assert realised(problem, failed=("x",), values={}).anchors == ()
