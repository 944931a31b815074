"""The erasure margin against its definition, by enumeration and by projection."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from solvers.decoding import erasure_margin, erasures


def by_definition(B, known, k):
    rest = [i for i in range(B.shape[1]) if i not in known]
    sets = combinations(rest, min(2 * k, len(rest)))
    return min(np.linalg.svd(B[:, [*known, *part]], compute_uv=False)[-1] for part in sets)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("known", [(2,), (0, 5)])
def test_enumeration_and_projection(seed, known, monkeypatch):
    B = np.random.default_rng(seed).normal(size=(12, 8))
    truth = by_definition(B, known, 1)
    exact = erasure_margin(B, known=known, k=1)
    assert exact.value == pytest.approx(truth, rel=1e-9)
    assert exact.lower <= truth <= exact.upper * (1 + 1e-12)
    assert np.linalg.norm(B @ exact.direction) == pytest.approx(truth, rel=1e-6)
    monkeypatch.setattr(erasures, "ENUMERATE", 0)
    bounded = erasure_margin(B, known=known, k=1)
    assert bounded.status == "bounded"
    assert 0 < bounded.lower <= truth <= bounded.upper * (1 + 1e-12)
    assert bounded.others >= truth - 1e-12  # leaving out the erased coordinates can only help the others


def test_erasing_costs_less_than_corrupting():
    """One erased and one corrupted node are on three nodes at most; two corrupted ones are on four."""
    B = np.random.default_rng(9).normal(size=(7, 7))
    two = min(np.linalg.svd(B[:, part], compute_uv=False)[-1] for part in combinations(range(7), 4))
    for i in range(7):
        assert erasure_margin(B, known=[i], k=1).value >= two


def test_an_erased_node_that_nothing_sees():
    found = erasure_margin(np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]), known=[2], k=1)
    assert found.value == found.lower == 0.0
    assert found.support[-1] == 2
    assert found.others > 0  # the other two are still told apart
