"""The walker visits every connected support of the target size exactly once."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from rrf_design.checker._enumeration import COUNT, DONE, TESTED, new_walk, walk
from rrf_design.checker._gram import field_of

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


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("size", [2, 3, 4])
def test_nodes_of_several_coordinates_are_judged_by_their_least_eigenvalue(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(7, 0.35, seed=seed)
    widths = rng.integers(2, 4, size=7).tolist()
    ends = np.cumsum([0, *widths])
    rows = []
    for a, b in [*graph.edges, *((i, i) for i in graph.nodes)]:
        row = np.zeros((3, ends[-1]))
        for node in (a, b):
            row[:, ends[node] : ends[node + 1]] = rng.integers(-2, 3, size=(3, widths[node]))
        rows.append(row)
    matrix = np.vstack(rows)
    coordinates = {i: range(ends[i], ends[i + 1]) for i in graph.nodes}
    least = {
        nodes: float(np.linalg.svd(matrix[:, [c for i in nodes for c in coordinates[i]]], compute_uv=False)[-1])
        for nodes in connected_sets(graph, size)
    }
    floor = float(np.median(list(least.values()))) + 1e-3
    gram = field_of(make_record(matrix, widths), size, np.zeros(0), plain=True).gram
    assert gram is not None
    w = new_walk(gram, capacity=1000)
    w.factor[:] = np.nan  # what is not written may not be read
    assert walk(gram, w, floor * floor, floor, 1_000_000) == DONE
    rejected = {frozenset(int(i) for i in row if i >= 0) for row in w.rejected[: w.state[COUNT]]}
    assert rejected == {nodes for nodes, value in least.items() if value < floor}
