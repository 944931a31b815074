"""Growth with completion bounds: a harmful set is found where there is one, and nothing else is
ever claimed.
"""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from threshold_fields import csr, offsets_of

from solvers.kernels.growth import grow

N = 9
OFFSETS = offsets_of([1] * N)


def field(seed: int) -> tuple[np.ndarray, nx.Graph]:
    """A Gram matrix of relations along a connected graph, a few of them repeated, and some
    anchors.
    """
    rng = np.random.default_rng(seed)
    graph = nx.random_labeled_tree(N, seed=seed)
    graph.add_edges_from((int(a), int(b)) for a, b in rng.integers(0, N, size=(4, 2)) if a != b)
    rows = [rng.normal() * np.eye(N)[a] + rng.normal() * np.eye(N)[b] for a, b in graph.edges]
    rows += [np.eye(N)[i] for i in rng.permutation(N)[:6]]
    stacked = np.array(rows)
    return stacked.T @ stacked + 0.05 * np.eye(N), graph


def least(gram: np.ndarray, nodes) -> float:
    return float(np.linalg.eigvalsh(gram[np.ix_(nodes, nodes)])[0])


def connected(graph: nx.Graph, sizes: range):
    return [s for size in sizes for s in combinations(range(N), size) if nx.is_connected(graph.subgraph(s))]


def tables(matrix: np.ndarray, graph: nx.Graph, size: int):
    """The tables by their definition: a node's own Schur complement for one attachment, λ_min of
    the piece for several.
    """
    pointer, index, *_ = csr(matrix, OFFSETS)
    pieces = connected(graph, range(1, size))
    floors = np.full(size, np.inf)
    for piece in pieces:
        floors[len(piece) :] = np.minimum(floors[len(piece) :], least(matrix, piece))
    single = np.full((len(index), size), np.inf)
    for u in range(N):
        for e in range(pointer[u], pointer[u + 1]):
            for piece in pieces:
                if index[e] in piece and u not in piece:
                    inverse = np.linalg.inv(matrix[np.ix_(piece, piece)])
                    own = 1.0 / inverse[piece.index(index[e]), piece.index(index[e])]
                    single[e, len(piece) :] = np.minimum(single[e, len(piece) :], own)
    grouped = np.empty((len(index), size, size + 1))
    for gap in range(size):
        for most in range(size + 1):
            grouped[:, gap, most] = floors[min(gap + most, size - 1)]
    return single * (1.0 - 1e-12), grouped * (1.0 - 1e-12), floors * (1.0 - 1e-12)


def search(matrix: np.ndarray, graph: nx.Graph, size: int, *, stop: bool = False):
    pointer, index, value, *_ = csr(matrix, OFFSETS)
    order = np.arange(N)
    flag = np.array([stop])
    goal = np.full(N, size, np.int64)
    return grow(pointer, index, value, np.diag(matrix).copy(), order, goal, order, tables(matrix, graph, size), flag)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_it_finds_a_harmful_set_or_proves_that_there_is_none(size, seed):
    gram, graph = field(seed)
    lowest = min(least(gram, s) for s in connected(graph, range(size, size + 1)))
    smaller = min(least(gram, s) for s in connected(graph, range(1, size)))
    assert lowest < smaller
    done, found, visited = search(gram - (lowest - 1e-6) * np.eye(N), graph, size)
    assert (done, len(found)) == (N, 0)
    assert visited > 0
    theta = lowest + 0.3 * (smaller - lowest)
    done, found, _ = search(gram - theta * np.eye(N), graph, size)
    assert done < N
    assert len(set(found.tolist())) == len(found) == size
    assert nx.is_connected(graph.subgraph(found.tolist()))
    assert least(gram, found.tolist()) < theta


def test_most_of_the_tree_is_never_visited():
    gram, graph = field(1)
    sets = connected(graph, range(5, 6))
    _, _, visited = search(gram - 0.2 * min(least(gram, s) for s in sets) * np.eye(N), graph, 5)
    assert visited < len(sets)


def test_a_root_without_a_positive_pivot_is_a_harmful_set_of_its_own():
    gram, graph = field(0)
    gram[4, 4] = -1.0
    pointer, index, value, *_ = csr(gram, OFFSETS)
    empty = (np.ones((len(index), 3)), np.ones((len(index), 3, 4)), np.ones(3))
    order, goal = np.arange(4, N), np.full(N, 3, np.int64)
    done, found, _ = grow(
        pointer, index, value, np.diag(gram).copy(), np.arange(N), goal, order, empty, np.zeros(1, np.bool_)
    )
    assert (done, found.tolist()) == (0, [4])
    assert graph.number_of_nodes() == N


def test_a_stop_claims_nothing():
    gram, graph = field(2)
    done, found, _ = search(gram, graph, 4, stop=True)
    assert (done, len(found)) == (0, 0)
