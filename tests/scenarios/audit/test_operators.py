from __future__ import annotations

import numpy as np

from scenarios.audit import operators


def test_the_field_decides_what_an_operator_error_adds() -> None:
    small, large = (operators.operator_error(size, 1, master=0) for size in (1.0, 1000.0))
    assert not small["paper_broken"]
    assert large["paper_broken"]
    assert not small["our_broken"]
    assert not large["our_broken"]
    assert small["paper_bound"] == large["paper_bound"]
    assert large["residual_of_truth"] > large["paper_radius"]


def test_small_example_covers_the_truth_only_with_the_uncertainty_declared() -> None:
    paper, ours = operators.small_example()
    assert paper["distance_to_truth"] is None
    assert ours["distance_to_truth"] <= ours["bound"]


def test_the_printed_pair_is_compared_column_by_column() -> None:
    found = operators.worst_pair()
    assert found["columns"] == [[], [2]]
    assert found["support"] == found["least_pair"]


def test_blind_sets_are_minimal_and_all_there() -> None:
    pairs = np.array([[-1.0, 1, 0, 0, 0], [0, 0, -1, 1, 0]])
    found = operators.witnesses(pairs)
    assert found["blind_sets"] == 3
    assert found["anchors_that_help"] == 5
    assert found["anchors_that_raise_the_margin"] == 0
    last = operators.witnesses(np.vstack([pairs, [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]))
    assert (last["blind_sets"], last["anchors_that_raise_the_margin"]) == (1, 2)
