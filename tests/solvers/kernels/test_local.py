"""The first incumbent: swaps and kicks find what enumeration finds on small fields, and repeat
themselves.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from solvers.kernels.local import delivered_scores, iterated_search

GO = np.zeros(1, np.int64)


def edges_of(gram):
    n = len(gram)
    pointer, index, value = [0], [], []
    for i in range(n):
        for j in range(n):
            if i != j and gram[i, j] != 0.0:
                index.append(j)
                value.append(gram[i, j])
        pointer.append(len(index))
    edges = np.array(pointer), np.array(index, dtype=np.int64), np.array(value, dtype=np.float64)
    return *edges, np.arange(n + 1), np.arange(n), np.diag(gram).copy()


def test_it_finds_the_least_support_of_small_fields_and_repeats_itself():
    hits = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((11, 14))
        gram = B.T @ B
        least = min(np.linalg.eigvalsh(gram[np.ix_(s, s)])[0] for s in combinations(range(14), 6))
        starts = np.array([rng.choice(14, 6, replace=False) for _ in range(3)])
        chances = rng.random((3, 30, 6))
        value, support = iterated_search(*edges_of(gram), starts, chances, GO)
        again, same = iterated_search(*edges_of(gram), starts, chances, GO)
        assert (value, support.tolist()) == (again, same.tolist())
        assert len(set(support.tolist())) == 6
        assert np.isclose(np.linalg.eigvalsh(gram[np.ix_(support, support)])[0], value)
        assert value >= least - 1e-9
        hits += value <= least * (1.0 + 1e-9) + 1e-12
    assert hits >= 9


def test_short_starts_and_lonely_nodes_are_taken_as_they_are():
    edges = edges_of(np.diag([3.0, 2.0, 1.0]))
    value, support = iterated_search(*edges, np.array([[1, -1]]), np.full((1, 2, 6), 0.5), GO)
    assert (value, support.tolist()) == (2.0, [1, -1])


def test_delivered_scores_are_what_elimination_one_by_one_leaves():
    rng = np.random.default_rng(3)
    for dim in (1, 2):
        B = rng.standard_normal((20, 6 * dim)) * (rng.random((20, 6 * dim)) < 0.5) + np.eye(20, 6 * dim)
        gram = B.T @ B
        owner = np.repeat(np.arange(6), dim)
        wanted = rng.random(6 * dim) < 0.5
        pointer, index, value, *_ = edges_of(gram)
        found = delivered_scores(pointer, index, value, owner, wanted, np.diag(gram).copy(), 2)
        for node in range(6):
            least = np.inf
            for c in np.flatnonzero(wanted & (owner == node)):
                taken = {
                    other: sum(gram[c, x] ** 2 / gram[x, x] for x in np.flatnonzero(owner == other) if x != c)
                    for other in range(6)
                }
                least = min(least, gram[c, c] - taken.pop(node) - sum(sorted(taken.values())[-2:]))
            assert np.isclose(found[node], least) or found[node] == least
