"""CP-SAT: the gap holds for the true energy, and a limit is said."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing.cpsat import solve
from rrf_design.repairing.energy import Energy, Factor


def clique(rng, nodes, candidates):
    factors = [Factor((i, j), rng.random((candidates, candidates))) for i in range(nodes) for j in range(i + 1, nodes)]
    return Energy(tuple(tuple((float(c),) for c in range(candidates)) for _ in range(nodes)), tuple(factors), ())


def test_rounding_is_in_the_gap():
    energy = clique(np.random.default_rng(0), 5, 3)
    solved = solve(energy, time_limit=None, seed=0)
    assert solved.complete
    assert 0 <= solved.gap < 1e-9 * len(energy.factors)


def test_no_field_within_the_limit_is_an_error_that_says_so():
    energy = clique(np.random.default_rng(1), 12, 8)
    with pytest.raises(rrf.RetryLater, match="raise the time limit"):
        solve(energy, time_limit=0.0, seed=0)
