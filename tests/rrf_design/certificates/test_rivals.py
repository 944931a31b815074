"""The pair of a certificate, held to its definition: admissible both, and as far apart as the margin allows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf


def exactly(problem: rrf.Problem, document: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """‖B(e₁ − e₂) + u₁ − u₂‖² and ‖(e₁ − e₂)_D‖², by plain sums of rationals."""
    operator = problem.operator()
    dense = operator.matrix.toarray()
    error = [Fraction(0)] * dense.shape[1]
    rows = [Fraction(0)] * dense.shape[0]
    for side, sign in (("first", 1), ("second", -1)):
        part = document["rivals"][side]
        for name, values in zip(part["support"], part["direction"], strict=True):
            for column, x in zip(operator.groups[operator.node_index[name]], values, strict=True):
                error[column] += sign * Fraction(x)
        for name, values in zip(part["checks"], part["disturbance"], strict=True):
            top = int(operator.block_offsets[operator.block_index[name]])
            for place, x in enumerate(values):
                rows[top + place] += sign * Fraction(x)
    for r, row in enumerate(dense):
        rows[r] += sum((Fraction(float(b)) * e for b, e in zip(row, error, strict=True)), Fraction(0))
    wanted = [c for n in operator.premise.wanted(operator.node_ids) for c in operator.groups[operator.node_index[n]]]
    return sum((x * x for x in rows), Fraction(0)), sum((error[c] ** 2 for c in wanted), Fraction(0))


def generated(seed: int) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "dim": int(rng.integers(1, 3))} for i in range(4)]
    dims = [node["dim"] for node in nodes]
    settings: dict[str, Any] = {"epsilon": 0.05}
    if seed % 3 == 1:
        for node in nodes:
            node["unit"] = f"u{rng.integers(3)}"
    if seed % 3 == 2:
        settings |= {"deliver": ["n0"], "wrong_checks": int(rng.integers(0, 2))}
    relations = [
        {
            "id": f"r{i}{j}",
            "rows": {f"n{i}": [rng.integers(-2, 3, dims[i]).tolist()], f"n{j}": [rng.integers(1, 3, dims[j]).tolist()]},
        }
        for i in range(4)
        for j in range(i)
    ]
    anchors = [{"id": f"a{i}", "node": f"n{i}"} for i in range(4) if rng.random() < 0.8]
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors, **settings)


@pytest.mark.parametrize("seed", range(30))
def test_both_are_admissible_and_as_far_apart_as_can_be(seed: int) -> None:
    problem = generated(seed)
    made = rrf.certify(problem, budgets=() if seed % 3 == 0 else None)
    claim = made.document["rivals"]
    assert claim is not None
    image2, apart2 = exactly(problem, made.document)
    assert image2 <= 4 * Fraction(claim["residual"]) ** 2 <= 4 * Fraction(0.05) ** 2
    assert 0 < Fraction(claim["distance"]) ** 2 <= apart2
    premise = problem.operator().premise
    for side in ("first", "second"):
        assert premise.count(claim[side]["support"]) <= 1
        assert len(claim[side]["checks"]) <= premise.wrong_checks
    if made.gamma_upper > 1e-9:
        assert claim["distance"] == pytest.approx(0.1 / made.gamma_upper, rel=1e-6)
    else:
        assert claim["distance"] == pytest.approx(1.0)
    assert rrf.verify(made).valid


def pair_of_two(**settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a", "sigma": 0.1}],
        **settings,
    )


def test_a_largest_error_keeps_them_closer() -> None:
    made = rrf.certify(pair_of_two(epsilon=1.0), largest_error=0.25)
    assert made.document["rivals"]["distance"] == pytest.approx(0.25, rel=1e-6)
    assert rrf.verify(made).valid
    assert made.to_json()["rivals"] == made.document["rivals"]


def test_there_is_none_where_noise_can_not_hide_it() -> None:
    assert rrf.certify(pair_of_two(), budgets=()).document["noise"]["blocks"] == ["x"]
    assert (
        rrf.certify(pair_of_two(), budgets=()).document["rivals"] is None
    )  # the relation carries no noise, and sees them
    bare = pair_of_two().model_copy(update={"anchors": ({"id": "x", "node": "a"},)})
    assert rrf.certify(bare).document["rivals"] is None
