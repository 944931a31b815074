"""The verifier's tables of pieces, against every connected set."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from rrf_design.checker._pieces import (
    TOLD_APART,
    Links,
    backward_edges,
    girths,
    last_pivot,
    lengthen,
    tabulate,
)


def random_graph(seed: int, *, nodes: int = 8, chance: float = 0.22):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(nodes, chance, seed=seed)
    matrix = np.zeros((nodes, nodes))
    for i, j in graph.edges:
        matrix[i, j] = matrix[j, i] = rng.standard_normal()
    np.fill_diagonal(matrix, 0.3 + rng.random(nodes) - np.linalg.eigvalsh(matrix)[0])
    starts = np.append(0, np.cumsum([graph.degree(i) for i in range(nodes)]))
    ends = [(i, j) for i in range(nodes) for j in sorted(graph.neighbors(i))]
    neighbours = np.array([j for _, j in ends], dtype=np.int64)
    entries = np.array([matrix[i, j] for i, j in ends], dtype=np.float64)
    arrays = Links(starts, neighbours, entries, np.diag(matrix).copy(), backward_edges(starts, neighbours))
    return graph, arrays, matrix, ends


def pieces_of(graph: nx.Graph, u: int, f: int, most: int) -> list[tuple[int, ...]]:
    rest = [i for i in graph if i not in (u, f)]
    sets = (tuple(sorted((f, *more))) for b in range(most) for more in combinations(rest, b))
    return [s for s in sets if nx.is_connected(graph.subgraph(s))]


@pytest.mark.parametrize("seed", range(4))
def test_every_bound_is_below_what_it_bounds(seed: int) -> None:
    graph, arrays, matrix, ends = random_graph(seed)
    largest = 3
    tables = tabulate(arrays, largest, 10**9)
    assert not len(tables.broken)
    for e, (u, f) in enumerate(ends):
        assert ends[arrays.backward[e]] == (f, u)
        for piece in pieces_of(graph, u, f, largest):
            inverse = np.linalg.inv(matrix[np.ix_(piece, piece)])
            at = piece.index(f)
            b = len(piece)
            assert tables.alone[e, b] <= 1.0 / inverse[at, at]
            beside = [p for p, i in enumerate(piece) if i != f and set(graph.neighbors(i)) - set(piece)]
            for m in range(2, b + 1):
                for more in combinations(beside, m - 1):
                    both = [at, *more]
                    exact = 1.0 / np.linalg.eigvalsh(inverse[np.ix_(both, both)])[-1]
                    assert tables.among[e, b, min(m, TOLD_APART + 1)] <= exact
        single = min(1.0 / np.linalg.inv(matrix[np.ix_(p, p)])[p.index(f), p.index(f)]
                     for p in pieces_of(graph, u, f, largest))  # fmt: skip
        assert tables.alone[e, largest] == pytest.approx(single, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_longer_pieces_are_bounded_too(seed: int) -> None:
    graph, arrays, matrix, ends = random_graph(seed, chance=0.2)
    most = 6
    girth = girths(arrays, most)
    least = np.full(most + 1, np.inf)
    for b in range(1, most + 1):
        sets = (s for s in combinations(graph, b) if nx.is_connected(graph.subgraph(s)))
        least[b] = min([least[b - 1], *(np.linalg.eigvalsh(matrix[np.ix_(s, s)])[0] for s in sets)])
    longer = lengthen(arrays, tabulate(arrays, 2, 10**9).alone, girth, least)
    for e, (u, f) in enumerate(ends):
        rest = graph.subgraph(set(graph) - {u})
        through = [len(c) for c in nx.simple_cycles(rest, length_bound=most) if f in c]
        assert min(girth[e], most + 1) == min([most + 1, *through])
        for piece in pieces_of(graph, u, f, most):
            inverse = np.linalg.inv(matrix[np.ix_(piece, piece)])
            assert longer[e, len(piece)] <= 1.0 / inverse[piece.index(f), piece.index(f)]


def test_a_set_that_is_not_definite_is_handed_back() -> None:
    _, arrays, matrix, _ = random_graph(1)
    level = np.linalg.eigvalsh(matrix)[0] + 1.0
    broken = tabulate(arrays._replace(pivots=arrays.pivots - level), 4, 10**9).broken
    assert np.linalg.eigvalsh(matrix[np.ix_(broken, broken)])[0] < level


def test_too_many_sets_are_given_up() -> None:
    graph, arrays, _, _ = random_graph(2)
    sets = sum(nx.is_connected(graph.subgraph(s)) for b in (1, 2, 3) for s in combinations(graph, b))
    assert not len(tabulate(arrays, 3, sets).broken)
    assert tabulate(arrays, 3, sets - 1).broken.tolist() == [-1]


def test_the_last_pivot_is_what_elimination_leaves() -> None:
    matrix = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 1.0]])
    for last in range(3):
        exact = 1.0 / np.linalg.inv(matrix)[last, last]
        assert last_pivot(matrix, 3, last, np.zeros((3, 3))) == pytest.approx(exact, rel=1e-11)
    assert last_pivot(matrix - 2.5 * np.eye(3), 3, 0, np.zeros((3, 3))) == 0.0
