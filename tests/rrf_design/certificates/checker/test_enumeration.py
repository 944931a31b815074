"""The walker visits every connected support of the target size exactly once."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from rrf_design.certificates.checker.enumeration import COUNT, DONE, TESTED, new_walk, walk
from rrf_design.certificates.checker.gram import field_of

from ..conftest import make_record


def incidence(graph: nx.Graph) -> np.ndarray:
    matrix = np.zeros((graph.number_of_edges() + 1, graph.number_of_nodes()))
    for row, (a, b) in enumerate(graph.edges):
        matrix[row, a], matrix[row, b] = -1.0, 1.0
    return matrix


def connected_sets(graph: nx.Graph, size: int) -> set[frozenset[int]]:
    found = set()
    for component in nx.connected_components(graph):
        for nodes in combinations(sorted(component), min(size, len(component))):
            if nx.is_connected(graph.subgraph(nodes)):
                found.add(frozenset(nodes))
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_each_connected_support_once(seed: int, size: int) -> None:
    graph = nx.gnp_random_graph(9, 0.25, seed=seed)
    gram = field_of(make_record(incidence(graph)), size, np.zeros(0), plain=True).gram
    assert gram is not None
    w = new_walk(gram, capacity=7)
    seen = []
    while True:  # an impossible threshold rejects everything, so `rejected` lists what was visited
        status = walk(gram, w, 1e9, 1e9, 5)
        seen += [frozenset(int(i) for i in row if i >= 0) for row in w.rejected[: w.state[COUNT]]]
        w.state[COUNT] = 0
        if status == DONE:
            break
    assert len(seen) == len(set(seen)) == w.state[TESTED]
    assert set(seen) == connected_sets(graph, size)
