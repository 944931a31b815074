"""Gains of pairs against projections."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.decoding.spans import build_spans
from solvers.groups import column_groups
from solvers.kernels.support_pairs import adjacent, scan_pairs


def scan(spans, s, threshold, *, allowed=None):
    pointers, neighbours, blocks = spans.overlap
    parts = spans.project(s)
    gains = np.einsum("ij,ij->i", parts, parts)
    found, doubtful = np.zeros((100, 2), dtype=np.int64), np.zeros((100, 2), dtype=np.int64)
    allowed = np.ones(spans.nodes, dtype=bool) if allowed is None else allowed
    full = len(neighbours) == spans.nodes**2
    order = np.argsort(-gains)
    best, i, j, count, doubts = scan_pairs(
        pointers, neighbours, blocks, parts, gains, order, allowed, threshold, full, 1e-4, found, doubtful
    )
    return best, (i, j), {tuple(pair) for pair in found[:count].tolist()}, doubtful[:doubts].tolist()


@pytest.mark.parametrize("dims", [[1] * 7, [2, 1, 3, 2, 1]])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_against_projections(dims, share):
    rng = np.random.default_rng(len(dims))
    B = rng.normal(size=(40, sum(dims))) * (rng.random((40, sum(dims))) < share)
    spans = build_spans(B, column_groups(dims, sum(dims)))
    s = rng.normal(size=40)
    n = len(dims)
    gains = {(i, j): float(s @ s) - spans.residual((i, j), s) ** 2 for i in range(n) for j in range(i + 1, n)}
    threshold = float(np.median(list(gains.values())))
    best, pair, found, doubtful = scan(spans, s, threshold)
    assert best == pytest.approx(max(gains.values()))
    assert gains[pair] == pytest.approx(best)
    assert found == {pair for pair, gain in gains.items() if gain >= threshold}
    assert doubtful == []


def test_non_adjacent_pairs_add_up():
    from scipy import sparse

    spans = build_spans(sparse.csc_array(np.eye(6)[:, :5]), column_groups(None, 5))
    s = np.array([1.0, 3.0, 2.0, 0.5, 0.1, 9.0])
    best, pair, found, _ = scan(spans, s, 10.0)
    assert best == pytest.approx(13.0)
    assert pair == (1, 2)
    assert found == {(1, 2), (0, 1)}
    allowed = np.array([True, False, True, True, True])
    assert scan(spans, s, 100.0, allowed=allowed)[1] == (0, 2)


def test_dependent_pairs_are_left_to_the_caller():
    spans = build_spans(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]), column_groups(None, 3))
    *_, doubtful = scan(spans, np.array([1.0, 0.0]), 0.5)
    assert doubtful == [[0, 1]]


def test_adjacency():
    pointers, neighbours = np.array([0, 2, 3]), np.array([1, 4, 0])
    assert adjacent(pointers, neighbours, 0, 4)
    assert not adjacent(pointers, neighbours, 0, 3)
    assert not adjacent(pointers, neighbours, 1, 9)
