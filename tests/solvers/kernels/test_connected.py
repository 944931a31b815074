"""Weak connected sets: each least one is met once, none is missed, near given nodes as well as
everywhere.
"""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from solvers.kernels.connected import grow_sets, weak_sets

SHIFT = 0.6


def random_field(seed: int, *, dim: int) -> tuple[np.ndarray, np.ndarray, nx.Graph]:
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(8, 10, seed=seed)
    rows = []
    for a, b in graph.edges:
        row = np.zeros((dim, 8 * dim))
        row[:, a * dim : (a + 1) * dim] = rng.normal(size=(dim, dim))
        row[:, b * dim : (b + 1) * dim] = -np.eye(dim)
        rows.append(row)
    stacked = np.vstack([*rows, 0.7 * np.eye(8 * dim)[rng.permutation(8 * dim)[: 5 * dim]]])
    return stacked.T @ stacked, np.arange(0, 8 * dim + 1, dim), graph


def arrays(graph: nx.Graph) -> tuple[np.ndarray, np.ndarray]:
    lists = [sorted(graph[i]) for i in range(8)]
    return np.cumsum([0, *map(len, lists)]), np.array([j for each in lists for j in each], dtype=np.int64)


def is_weak(gram, offsets, nodes) -> bool:
    columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in nodes])
    return bool(np.linalg.eigvalsh(gram[np.ix_(columns, columns)])[0] <= SHIFT)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_every_weak_set_holds_one_that_is_listed(seed, dim):
    gram, offsets, graph = random_field(seed, dim=dim)
    pointer, neighbours = arrays(graph)
    out = np.full((500, 4), -1, dtype=np.int64)
    everywhere = np.arange(8)
    for roots, rank in ((everywhere, everywhere), (np.array([5, 2]), np.array([0, 0, -1, 0, 0, -2, 0, 0]))):
        count = weak_sets(gram, offsets, pointer, neighbours, 4, SHIFT, roots, rank, out)
        listed = [frozenset(int(i) for i in row if i >= 0) for row in out[:count]]
        assert len(set(listed)) == len(listed)
        assert all(is_weak(gram, offsets, sorted(nodes)) and nx.is_connected(graph.subgraph(nodes)) for nodes in listed)
        for size in (1, 2, 3, 4):
            for nodes in combinations(range(8), size):
                touches = len(roots) == 8 or 5 in nodes or 2 in nodes
                if touches and nx.is_connected(graph.subgraph(nodes)) and is_weak(gram, offsets, nodes):
                    assert any(found <= set(nodes) for found in listed)


def test_a_full_list_ends_the_search():
    gram, offsets, graph = random_field(0, dim=1)
    out = np.full((2, 4), -1, dtype=np.int64)
    everywhere = np.arange(8)
    assert weak_sets(gram, offsets, *arrays(graph), 4, 50.0, everywhere, everywhere, out) == 2


def test_sets_grow_by_neighbours_up_to_full_size():
    gram, offsets, graph = random_field(3, dim=1)
    sets = np.array([[int(max(graph, key=graph.degree)), -1, -1, -1]])
    grow_sets(gram, offsets, *arrays(graph), sets)
    assert len(set(sets[0].tolist())) == 4
    assert nx.is_connected(graph.subgraph(sets[0].tolist()))
