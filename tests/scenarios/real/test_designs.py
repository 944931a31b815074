from __future__ import annotations

import math

import numpy as np
import pytest

from scenarios.real.designs import DESIGNS, prepared, problem, recovered_placements

# Closed forms: principal 2x2 blocks of the anchored Laplacians.
EXACT = {
    "spanning_tree": math.sqrt(2 - math.sqrt(2)),
    "typed_complete": math.sqrt(2),
    "tree_plus_anchor": math.sqrt((5 - math.sqrt(13)) / 2),
    "triangle_anchor_isolate": 1.0,
    "complete_plus_anchor": math.sqrt(2),
}


@pytest.mark.parametrize("dim", [1, 8])
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_margins_are_the_published_and_the_closed_ones(design, dim: int) -> None:  # type: ignore[no-untyped-def]
    gamma = prepared(design.name, dim).gamma
    assert gamma == pytest.approx(EXACT.get(design.name, 0.0), abs=1e-12)
    assert round(gamma, 3) == design.published


@pytest.mark.parametrize(
    ("name", "missed"),
    [
        ("one_relation", {1, 2, 3}),
        ("paired_relations", {1, 3}),
        ("three_node_chain", {3}),
        ("triangle_plus_isolate", {3}),
        ("triangle_anchor_component", {3}),
        ("spanning_tree", set()),
        ("typed_complete", set()),
        ("tree_plus_anchor", set()),
        ("triangle_anchor_isolate", set()),
        ("complete_plus_anchor", set()),
    ],
)
def test_which_placements_a_design_recovers(name: str, missed: set[int]) -> None:
    for dim in (1, 8):
        errors = recovered_placements(name, dim)
        assert {node for node, error in enumerate(errors) if error > 1e-9} == missed


def test_weights_and_anchor_values_reach_the_problem() -> None:
    design = DESIGNS[6]
    built = problem(design, dim=2, weights=[4.0, 4.0, 4.0], value=[3.0, 5.0])
    operator = built.operator()
    assert np.abs(operator.matrix.toarray()).max() == 2.0
    assert operator.target[-2:] == pytest.approx([3.0, 5.0])
    assert prepared("typed_complete", 1, 2).gamma == 0.0
