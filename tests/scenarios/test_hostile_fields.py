"""Hostile fields are repeatable, fit their groups, and stay the same numbers in every form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from scenarios.hostile_fields import FAMILIES, field, handed_over


@pytest.mark.parametrize("family", FAMILIES)
def test_fields_are_repeatable_and_fit_their_groups(family: str) -> None:
    matrix, sizes, k = field(family, 3)
    again, _, _ = field(family, 3)
    assert (matrix == again).all()
    assert matrix.shape[1] == sum(sizes)
    assert np.isfinite(matrix).all()
    assert k in (1, 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_form_holds_the_same_numbers(family: str) -> None:
    names = set()
    for seed in range(6):
        matrix, _, _ = field(family, seed)
        name, given = handed_over(matrix, seed)
        names.add(name)
        dense = given.toarray() if sparse.issparse(given) else given
        assert np.array_equal(dense, matrix)
    assert len(names) == 6
