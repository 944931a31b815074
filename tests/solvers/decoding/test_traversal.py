"""Branching: the nodes that must be met, incumbents, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvers.decoding.spans import build_spans
from solvers.decoding.traversal import Search
from solvers.groups import column_groups


def prepared(B):
    groups = column_groups(None, B.shape[1])
    operator = sparse.csc_array(B)
    return operator, groups, build_spans(operator, groups)


def path(nodes):
    return np.eye(nodes - 1, nodes, 1) - np.eye(nodes - 1, nodes)


def test_only_nodes_of_the_loudest_rows_must_be_met():
    _, _, spans = prepared(path(8))
    s = np.zeros(7)
    s[[2, 5]] = [3.0, 1.0]
    assert Search(0.5, limit=0, deadline=None, listing=True)._must_meet(spans, s).tolist() == [2, 3]
    assert Search(3.05, limit=0, deadline=None, listing=True)._must_meet(spans, s).tolist() == [2, 3, 5, 6]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_minimiser_reaches_the_best_support(size):
    from itertools import combinations

    rng = np.random.default_rng(size)
    B = rng.normal(size=(12, 8)) * (rng.random((12, 8)) < 0.4)
    operator, groups, spans = prepared(B)
    s = rng.normal(size=12)
    search = Search(float(np.linalg.norm(s)), limit=0, deadline=None, listing=False)
    search.run(operator, groups, spans, s, size, np.ones(8, dtype=bool), spans.project(s))
    best = min(spans.residual(part, s) for part in combinations(range(8), size))
    assert search.residual == pytest.approx(best, abs=1e-12)
    assert search.complete
    assert len(set(search.support)) == len(search.support) <= size


def test_unusable_nodes_are_left_out():
    operator, groups, spans = prepared(path(6))
    s = path(6) @ np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    usable = np.array([True, True, False, True, True, True])
    search = Search(1e-9, limit=0, deadline=None, listing=True)
    search.run(operator, groups, spans, s, 2, usable, spans.project(s))
    assert search.found == []
