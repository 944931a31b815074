"""Branching: the nodes that must be met, incumbents, and limits.

Projecting out: what rounding may have moved is bounded by what the level says.
"""

from __future__ import annotations

import numpy as np
import pytest
from exact_matrices import floats, projector, rationals
from scipy import sparse

from solvers._groups import column_groups
from solvers.decoding import SupportDecoder
from solvers.decoding import _traversal as traversal
from solvers.decoding._search import _Task
from solvers.decoding._traversal import LOUD, Basis, PrefixLevel, Scan, Traversal


def task(B, s, radius=0.0):
    return _Task.of(SupportDecoder(B), np.asarray(s, dtype=float), radius, None, None)


def path(nodes):
    return np.eye(nodes - 1, nodes, 1) - np.eye(nodes - 1, nodes)


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_only_nodes_of_the_loudest_rows_must_be_met(storage, monkeypatch):
    monkeypatch.setattr("solvers.decoding._search.as_operator", storage)
    s = np.zeros(7)
    s[[2, 5]] = [3.0, 1.0]
    decoder = SupportDecoder(path(8))
    for radius, nodes in ((0.5, [2, 3]), (3.05, [2, 3, 5, 6])):
        search = Traversal(radius, True, lambda _: None, decoder._touching, lambda _: 0)
        assert search._must_meet(Scan.of(decoder._level, s, 0.0)).tolist() == nodes
    # rows that a projected node touches are seen by all its neighbours; the others are left as they
    # are
    below = decoder._level.without((3,), traversal.Basis.of(decoder.spans, (3,)))
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
            patch.setattr("solvers.decoding._traversal.LOUD", 10**6)
            second = task(B, s, radius).search(2, listing=True)
        assert sorted(first.found) == sorted(second.found)


def test_progress_is_told_with_the_best_so_far(monkeypatch):
    monkeypatch.setattr("solvers.decoding._traversal.TELLING", 0.0)
    rng = np.random.default_rng(1)
    B, told = rng.normal(size=(20, 12)), []
    s = B[:, [1, 4, 7]] @ np.ones(3)
    SupportDecoder(B).decode(s, k=4, epsilon=0.1, progress=lambda *seen: told.append(seen))
    shares = [share for share, *_ in told]
    assert shares[0] == 0.0 < shares[-1] < 1.0
    assert any(support == (1, 4, 7) and explained for _, support, _, explained in told)


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
