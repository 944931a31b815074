"""Gains of pairs against projections."""

from __future__ import annotations

import numpy as np
import pytest

from solvers._groups import column_groups
from solvers.decoding.spans import build_spans
from solvers.kernels.support_pairs import adjacent, scan_pairs, scan_rows


def residual(B, columns, s):
    return float(np.linalg.norm(B[:, columns] @ np.linalg.lstsq(B[:, columns], s, rcond=1e-10)[0] - s))


def scan(spans, s, top, *, allowed=None, seek=False):
    """The pairs that may gain `top` (or the best one), with the smallest shifts that make sense."""
    pointers, neighbours, blocks = spans.overlap
    parts = spans.project(s)
    gains = np.einsum("ij,ij->i", parts, parts)
    found = np.zeros((100, 2), dtype=np.int64)
    allowed = np.ones(spans.nodes, dtype=bool) if allowed is None else allowed
    full = len(neighbours) == spans.nodes**2
    count, i, j = scan_pairs(
        pointers,
        neighbours,
        blocks,
        parts,
        gains,
        allowed,
        spans.shift,
        1e-14,
        top,
        float(s @ s),
        full,
        seek,
        found,
    )
    return (i, j) if seek else {tuple(pair) for pair in found[:count].tolist()}


@pytest.mark.parametrize("dims", [[1] * 7, [2, 1, 3, 2, 1]])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_against_projections(dims, share):
    rng = np.random.default_rng(len(dims))
    B = rng.normal(size=(40, sum(dims))) * (rng.random((40, sum(dims))) < share)
    spans = build_spans(B, column_groups(dims, sum(dims)))
    s = rng.normal(size=40)
    groups = np.split(np.arange(sum(dims)), np.cumsum(dims)[:-1])
    pairs = [(i, j) for i in range(len(dims)) for j in range(i + 1, len(dims))]
    gains = {(i, j): float(s @ s) - residual(B, np.r_[groups[i], groups[j]], s) ** 2 for i, j in pairs}
    top = float(np.sort(list(gains.values()))[len(gains) // 2]) - 1e-9
    assert scan(spans, s, top) == {pair for pair, gain in gains.items() if gain >= top}
    assert gains[scan(spans, s, top, seek=True)] == pytest.approx(max(gains.values()))


def test_non_adjacent_pairs_add_up():
    from scipy import sparse

    spans = build_spans(sparse.csc_array(np.eye(6)[:, :5]), column_groups(None, 5))
    s = np.array([1.0, 3.0, 2.0, 0.5, 0.1, 9.0])
    assert scan(spans, s, 9.9) == {(1, 2), (0, 1)}
    assert scan(spans, s, 0.0, seek=True) == (1, 2)
    allowed = np.array([True, False, True, True, True])
    assert scan(spans, s, 0.0, allowed=allowed, seek=True) == (0, 2)


def test_dependent_pairs_are_left_to_the_caller():
    spans = build_spans(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]), column_groups(None, 3))
    assert (0, 1) in scan(spans, np.array([1.0, 0.0]), 1e9)


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_on_the_threshold_is_never_lost(seed):
    """The shift outweighs rounding: the pair whose exact gain is the threshold is reported, though
    the scan is in floats.
    """
    rng = np.random.default_rng(seed)
    for _ in range(50):
        B = rng.normal(size=(9, 5))
        B[:, 1] = B[:, 0] + 10.0 ** -int(rng.integers(1, 8)) * rng.normal(size=9)
        s = B[:, :2] @ rng.normal(size=2) + 0.1 * rng.normal(size=9)
        spans = build_spans(B, column_groups(None, 5))
        assert (0, 1) in scan(spans, s, float(s @ s) - residual(B, [0, 1], s) ** 2)


def test_few_rows_exclude_only_what_all_rows_exclude():
    rng = np.random.default_rng(1)
    B = rng.normal(size=(40, 20))
    s = B[:, [3, 8]] @ np.array([1.0, -2.0]) + 0.01 * rng.normal(size=40)
    loud = B[:8] / np.linalg.norm(B[:8], axis=0)
    parts = s[:8] @ loud
    found = np.zeros((200, 2), dtype=np.int64)
    energy = float(s[:8] @ s[:8])
    count = scan_rows(loud, parts, parts * parts, 1e-14, energy - 0.2**2, energy, found)
    left = {tuple(pair) for pair in found[:count].tolist()}
    pairs = [(i, j) for i in range(20) for j in range(i + 1, 20)]
    assert {pair for pair in pairs if residual(B, list(pair), s) <= 0.2} == {(3, 8)} <= left
    assert left == {pair for pair in pairs if residual(B[:8], list(pair), s[:8]) <= 0.2}
    assert scan_rows(loud, parts, parts * parts, 1e-14, 0.0, energy, found[:5]) == 190  # more than the buffer holds


def test_adjacency():
    pointers, neighbours = np.array([0, 2, 3]), np.array([1, 4, 0])
    assert adjacent(pointers, neighbours, 0, 4)
    assert not adjacent(pointers, neighbours, 0, 3)
    assert not adjacent(pointers, neighbours, 1, 9)
