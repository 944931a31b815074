"""Projecting out: what rounding may have moved is bounded by what the level says."""

from __future__ import annotations

import numpy as np
import pytest
from exact_matrices import floats, projector, rationals
from scipy import sparse

from solvers.decoding.levels import Basis, PrefixLevel
from solvers.groups import column_groups


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_noise_bounds_the_error_of_the_projected_columns(storage):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(10, 6))
    B[:, 1] = B[:, 0] + 1e-6 * rng.normal(size=10)
    groups = column_groups(None, 6)
    level = PrefixLevel.root(storage(B), groups)
    for node in (0, 1):
        level = level.without((node,), Basis.of(level.spans, (node,)))
    computed = level.operator if isinstance(level.operator, np.ndarray) else level.operator.toarray()
    exact = rationals(B) - projector(B[:, :2]) * rationals(B)
    lengths = np.linalg.norm(floats(exact - rationals(computed)), axis=0)[2:]
    assert all(gap <= bound for gap, bound in zip(lengths, level.noise[2:], strict=True))
    assert level.noise[2:].max() < 1e-7  # the second node was nearly in the span of the first
    assert level.prefix == (0, 1)
    assert level.rank == 2
    assert level.covered.all()


def test_an_empty_basis_leaves_everything():
    level = PrefixLevel.root(np.eye(3), column_groups(None, 3))
    basis = Basis.of(level.spans, ())
    np.testing.assert_array_equal(basis.leave(np.arange(3.0)), np.arange(3.0))
    assert basis.wide(3).shape == (3, 0)
