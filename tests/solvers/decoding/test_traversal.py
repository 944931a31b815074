"""Branching: the nodes that must be met, incumbents, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvers.decoding import SupportDecoder, levels
from solvers.decoding.search import _Task
from solvers.decoding.traversal import LOUD, Scan, Traversal


def task(B, s, radius=0.0):
    return _Task.of(SupportDecoder(B), np.asarray(s, dtype=float), radius, None, None)


def path(nodes):
    return np.eye(nodes - 1, nodes, 1) - np.eye(nodes - 1, nodes)


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_only_nodes_of_the_loudest_rows_must_be_met(storage, monkeypatch):
    monkeypatch.setattr("solvers.decoding.search.as_operator", storage)
    s = np.zeros(7)
    s[[2, 5]] = [3.0, 1.0]
    decoder = SupportDecoder(path(8))
    for radius, nodes in ((0.5, [2, 3]), (3.05, [2, 3, 5, 6])):
        search = Traversal(radius, True, lambda _: None, decoder._touching, lambda _: 0)
        assert search._must_meet(Scan.of(decoder._level, s, 0.0)).tolist() == nodes
    # rows that a projected node touches are seen by all its neighbours; the others are left as they are
    below = decoder._level.without((3,), levels.Basis.of(decoder.spans, (3,)))
    search = Traversal(0.5, True, lambda _: None, decoder._touching, lambda _: 0)
    assert search._must_meet(Scan.of(below, s, 0.0)).tolist() == [5, 6]
    assert search._must_meet(Scan.of(below, s * np.eye(7)[2], 0.0)).tolist() == [2, 3, 4]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_minimiser_reaches_the_best_support(size):
    from itertools import combinations

    rng = np.random.default_rng(size)
    B = rng.normal(size=(12, 8)) * (rng.random((12, 8)) < 0.4)
    s = rng.normal(size=12)
    here = task(B, s)
    search = here.search(size, listing=False)
    best = min(here.decoder.residual(s, part) for part in combinations(range(8), size))
    assert search.residual / here.unit == pytest.approx(best, abs=1e-12)
    assert search.complete
    assert len(set(search.support)) == len(search.support) <= size


def test_unusable_nodes_are_left_out():
    s = path(6) @ np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    here = task(path(6), s, 1e-9)
    here.decoder._usable[2] = False
    assert here.search(2, listing=True).found == []


def test_loud_rows_and_all_rows_list_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(4 * LOUD, 4 * LOUD))
    s = B[:, [5, 30]] @ np.array([1.0, 2.0]) + 0.01 * rng.normal(size=4 * LOUD)
    for radius in (0.1, 0.9 * np.linalg.norm(s)):  # the second leaves so many pairs that the Gram matrix is formed
        first = task(B, s, radius).search(2, listing=True)
        with monkeypatch.context() as patch:
            patch.setattr("solvers.decoding.traversal.LOUD", 10**6)
            second = task(B, s, radius).search(2, listing=True)
        assert sorted(first.found) == sorted(second.found)


def test_progress_is_told_with_the_best_so_far(monkeypatch):
    monkeypatch.setattr("solvers.decoding.traversal.TELLING", 0.0)
    rng = np.random.default_rng(1)
    B, told = rng.normal(size=(20, 12)), []
    s = B[:, [1, 4, 7]] @ np.ones(3)
    SupportDecoder(B).decode(s, k=4, epsilon=0.1, progress=lambda *seen: told.append(seen))
    shares = [share for share, *_ in told]
    assert shares[0] == 0.0 < shares[-1] < 1.0
    assert any(support == (1, 4, 7) and explained for _, support, _, explained in told)
