"""Which columns belong to which node: sizes, lists, and what doesn't fit."""

from __future__ import annotations

import numpy as np
import pytest

from solvers._groups import NodeColumns, column_groups


def test_sizes_lists_and_nothing_name_the_same_columns() -> None:
    sized, listed = column_groups([2, 1], 3), column_groups([[0, 1], [2]], 3)
    assert sized == listed
    assert [part.tolist() for part in sized] == [[0, 1], [2]]
    assert column_groups(None, 2) == NodeColumns.of_sizes([1, 1])
    assert column_groups(sized, 3) is sized


def test_columns_may_be_interleaved() -> None:
    groups = column_groups([[0, 2], [3, 1]], 4)
    assert groups[-1].tolist() == [3, 1]
    assert [part.tolist() for part in groups[0:2]] == [[0, 2], [3, 1]]
    assert groups.sizes.tolist() == [2, 2]
    with pytest.raises(IndexError):
        groups[2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "the field is empty"),
        ([2, 0], "node 1 has size 0"),
        ([2, 2], "add up to 4, but the matrix has 3"),
        ([[0], []], "entry 1 must be a non-empty list"),
        ([[0], [0.5]], "entry 1 must be a non-empty list"),
        ([[0, 1], [1]], "each of the 3 columns exactly once"),
    ],
)
def test_messages(groups: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        column_groups(groups, 3)


def test_an_empty_matrix_has_no_field() -> None:
    with pytest.raises(ValueError, match="the field is empty"):
        column_groups(None, 0)
    assert NodeColumns.of_sizes(np.ones(3)) != [0, 1, 2]
