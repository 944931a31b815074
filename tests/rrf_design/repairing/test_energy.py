"""The tabulated energy is the formula: ½‖Dz − q‖² + β/2 ‖Az − b‖² + μ Σ ℓ."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.bundles import Backend, Given
from rrf_design.noise import Noise
from rrf_design.repairing.energy import build_energy, close, edit_price
from rrf_design.repairing.fields import make_task


@pytest.mark.parametrize("deviation", ["edit", "distance"])
def test_tables_add_up_to_the_formula(deviation):
    problem = rrf.Problem(
        nodes=[{"id": "a", "dim": 2, "metric": 4.0}, {"id": "b", "dim": 2}, {"id": "c"}],
        relations=[
            {"id": "r", "tail": "a", "head": "b", "transport": {"permute": [1, 0]}, "offset": [1.0, 0.0], "weight": 2.0}
        ],
        anchors=[
            {"id": "x", "nodes": ["b", "c"], "rows": [[1.0, 2.0, 3.0]], "value": 4.0, "sigma": 0.5},
            {"id": "y", "node": "c", "value": [1.0]},
        ],
    )
    responses = {"a": (1.0, 2.0), "b": (0.0, 1.0), "c": 2.0}
    options = {"beta": 0.7, "mu": 0.3, "deviation": deviation}
    task, _ = make_task(
        problem,
        problem.operator(),
        responses,
        given=Given(candidates={"c": [5.0], "b": [(2.0, 2.0)]}),
        backend=Backend(options=options),
    )
    energy = build_energy(task)
    operator = problem.operator()
    anchor = np.repeat([kind == "anchor" for kind in operator.block_kinds], np.diff(operator.block_offsets))
    for choice in product(*map(range, energy.sizes)):
        field = {name: energy.candidates[i][choice[i]] for i, name in enumerate(operator.node_ids)}
        rows = operator.syndrome(field)
        distance = [np.linalg.norm(np.subtract(field[n], np.atleast_1d(responses[n]))) for n in field]
        edits = sum(distance) if deviation == "distance" else sum(d > 0 for d in distance)
        expected = 0.5 * rows[~anchor] @ rows[~anchor] + 0.35 * rows[anchor] @ rows[anchor] + 0.3 * edits
        assert energy.value(choice) == pytest.approx(expected)


def test_price_of_an_edit(equality, answers):
    operator = equality("star").operator()
    noisy, _ = make_task(equality("star"), operator, answers(1, 1, 5, 1), noise=Noise(0.2))
    assert edit_price(noisy) == pytest.approx(0.02)
    exact, _ = make_task(equality("star"), operator, answers(1, 1, 5, 1))
    assert 0 < edit_price(exact) < 1e-5


def test_unknown_deviation(equality, answers):
    with pytest.raises(rrf.InputError, match="deviation must be"):
        rrf.repair(equality("star"), answers(1, 1, 1, 1), method="discrete", deviation="squared")


def invoice(**settings):
    return rrf.Problem(
        nodes=[{"id": name} for name in ("net", "tax", "total")],
        relations=[{"id": "sum", "sum": ["net", "tax"], "head": "total"}],
        **settings,
    )


@pytest.mark.parametrize(("k", "counts"), [(1, (2, 2, 2)), (2, (2, 2, 2)), (3, (3, 3, 3))])
def test_sums_say_what_an_answer_should_have_been_and_stop_at_k(k, counts):
    task, _ = make_task(invoice(k=k), invoice(k=k).operator(), {"net": 100, "tax": 19, "total": 120})
    found, cut = close(task)
    assert tuple(map(len, found)) == counts
    assert found[2][:2] == ((120.0,), (119.0,))
    assert not cut


def test_a_missing_answer_is_computed_from_the_others():
    fixed = rrf.repair(invoice(), {"net": 100, "tax": 19, "total": None}, method="discrete")
    assert fixed.nearest["total"] == (119.0,)


def test_too_many_combinations_are_said_to_be_cut():
    nodes = [{"id": f"p{i}"} for i in range(8)]
    problem = rrf.Problem(
        nodes=[*nodes, {"id": "t"}],
        relations=[{"id": "sum", "sum": [node["id"] for node in nodes], "head": "t"}],
    )
    said = {node["id"]: 1.0 for node in nodes} | {"t": 9.0}
    samples = {node["id"]: [0.0, 2.0, 3.0] for node in nodes}
    task, _ = make_task(problem, problem.operator(), said, given=Given(candidates=samples))
    assert "t" in close(task)[1]
