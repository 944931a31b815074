"""Tables of pieces against every connected set, one by one."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from solvers.kernels.pieces import (
    MOST,
    affordable_pieces,
    extend_by_trees,
    piece_tables,
    reverse_edges,
    shortest_cycles,
)

GO = np.zeros(1, np.int64)


def random_graph(seed: int, *, nodes: int = 8, chance: float = 0.3):
    """(networkx graph, N as CSR and diagonal, N as an array), positive definite and with signs of
    both kinds.
    """
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(nodes, chance, seed=seed)
    matrix = np.zeros((nodes, nodes))
    for i, j in graph.edges:
        matrix[i, j] = matrix[j, i] = rng.standard_normal()
    np.fill_diagonal(matrix, 0.3 + rng.random(nodes) - np.linalg.eigvalsh(matrix)[0])
    pointer, index, value = [0], [], []
    for i in range(nodes):
        for j in sorted(graph.neighbors(i)):
            index.append(j)
            value.append(matrix[i, j])
        pointer.append(len(index))
    arrays = (np.array(pointer), np.array(index, dtype=np.int64), np.array(value, dtype=np.float64))
    return graph, (*arrays, np.diag(matrix).copy()), matrix


def connected_sets(graph: nx.Graph, size: int) -> list[tuple[int, ...]]:
    return [s for s in combinations(graph, size) if nx.is_connected(graph.subgraph(s))]


def truth(graph: nx.Graph, matrix, u: int, f: int, size: int, attachments: int) -> float:
    """The least λ_min of the Schur complement onto A over T ∋ f without u and A ∋ f on T's
    boundary, by the definition.
    """
    least = np.inf
    for b in range(attachments, size + 1):
        for piece in connected_sets(graph, b):
            if f not in piece or u in piece:
                continue
            inverse = np.linalg.inv(matrix[np.ix_(piece, piece)])
            boundary = [p for p, i in enumerate(piece) if i != f and set(graph.neighbors(i)) - set(piece)]
            for others in combinations(boundary, attachments - 1):
                at = [piece.index(f), *others]
                least = min(least, 1.0 / np.linalg.eigvalsh(inverse[np.ix_(at, at)])[-1])
    return least


@pytest.mark.parametrize("seed", range(3))
def test_tables_bound_every_piece_and_are_tight_where_signs_allow(seed):
    graph, edges, matrix = random_graph(seed, chance=0.22)
    largest = 3
    single, several, harmful = piece_tables(*edges, reverse_edges(*edges[:2]), largest, GO)
    assert not len(harmful)
    pointer, index = edges[:2]
    forest = nx.is_forest(graph)
    for u in graph:
        for e in range(pointer[u], pointer[u + 1]):
            f = int(index[e])
            for b in range(1, largest + 1):
                assert single[e, b] == pytest.approx(truth(graph, matrix, u, f, b, 1), rel=1e-9)
                for m in range(2, b + 1):
                    exact = min(truth(graph, matrix, u, f, b, t) for t in range(2, m + 1))
                    assert several[e, b, min(m, MOST + 1)] <= exact * (1.0 + 1e-9)
                    if forest and m == 2 and np.isfinite(exact):
                        assert several[e, b, m] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_larger_pieces_are_bounded_too_exactly_in_trees(seed):
    graph, edges, matrix = random_graph(seed, chance=0.2 if seed % 2 else 0.14)
    pointer, index = edges[:2]
    cycles = shortest_cycles(pointer, index, 7)
    single, _, _ = piece_tables(*edges, reverse_edges(pointer, index), 2, GO)
    floors = np.array(
        [-np.inf] + [min(np.linalg.eigvalsh(matrix[np.ix_(s, s)])[0] for s in connected_sets(graph, b) or [(0,)])
                     for b in range(1, 7)]
    )  # fmt: skip
    floors = np.minimum.accumulate(np.append(np.inf, floors[1:]))
    longer = extend_by_trees(*edges, single, cycles, floors)
    closed = 0
    for u in graph:
        rest = graph.subgraph(set(graph) - {u})
        for e in range(pointer[u], pointer[u + 1]):
            f = int(index[e])
            through = [len(c) for c in nx.simple_cycles(rest, length_bound=7) if f in c]
            assert min(cycles[e], 8) == min([8, *through])
            for b in range(3, 7):
                exact = truth(graph, matrix, u, f, b, 1)
                assert longer[e, b] <= exact * (1.0 + 1e-9)
                if nx.is_tree(graph.subgraph(nx.node_connected_component(graph, f))):
                    closed += 1
                    assert longer[e, b] == pytest.approx(exact, rel=1e-6)
    assert closed or seed % 2


def test_a_set_that_is_not_definite_is_named():
    graph, edges, matrix = random_graph(1)
    worst = min(connected_sets(graph, 3), key=lambda s: np.linalg.eigvalsh(matrix[np.ix_(s, s)])[0])
    level = np.linalg.eigvalsh(matrix[np.ix_(worst, worst)])[0] + 1e-3
    _, _, harmful = piece_tables(*edges[:3], edges[3] - level, reverse_edges(*edges[:2]), 3, GO)
    block = matrix[np.ix_(harmful, harmful)]
    assert 1 <= len(harmful) <= 3
    assert np.linalg.eigvalsh(block)[0] < level


def test_nearly_singular_pieces_count_as_nothing_left():
    value = 1.0 - 1e-16
    edges = (np.array([0, 1, 2]), np.array([1, 0]), np.array([value, value]), np.array([1.0, 1.0]))
    single, several, harmful = piece_tables(*edges, reverse_edges(*edges[:2]), 2, GO)
    assert not len(harmful)
    assert (single[:, 2] <= 1.0).all()
    assert (single >= 0.0).all()
    assert (several >= 0.0).all()


def test_affordable_pieces_counts_connected_sets():
    graph, edges, _ = random_graph(3)
    counts = [len(connected_sets(graph, b)) for b in range(1, 6)]
    for size in range(2, 6):
        assert affordable_pieces(*edges[:2], 5, sum(counts[:size])) >= size
        assert affordable_pieces(*edges[:2], 5, sum(counts[:size]) - 1) == size - 1
