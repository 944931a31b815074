"""Where a fractional design is weak: connected supports only, weakest first, each really below the level."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.proof.weak import WeakSupports


def plain_gram(arena: Arena, shares: np.ndarray) -> np.ndarray:
    held = arena.permanent.astype(float)
    held[arena.variable] = shares
    dense = arena.operator.matrix.toarray()
    return dense.T @ (arena.rows(held)[:, None] * dense)


def least(arena: Arena, gram: np.ndarray, support) -> float:
    columns = arena.columns_of(tuple(support))
    return float(np.linalg.eigvalsh(gram[np.ix_(columns, columns)])[0])


def graph_of(arena: Arena, held: np.ndarray) -> nx.Graph:
    graph = nx.empty_graph(arena.n)
    for j in np.flatnonzero(held):
        graph.add_edges_from(combinations(arena.block_nodes[j], 2))
    return graph


@pytest.mark.parametrize("features", [(), ("dims",), ("noise",)], ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_every_weak_connected_set_holds_one_that_is_found(seed, features):
    arena = Arena(random_problem(seed, features=features, blocks=7, k=2))
    rng = np.random.default_rng(seed)
    shares = np.where(rng.random(len(arena.variable)) < 0.3, 0.0, rng.random(len(arena.variable)))
    weak = WeakSupports(arena)
    held = arena.permanent.astype(float)
    held[arena.variable] = shares
    gram = plain_gram(arena, shares)
    np.testing.assert_allclose(weak.gram(held), gram, atol=1e-12)
    graph = graph_of(arena, held > 1e-9)
    level = 0.4
    prefixes, grown = weak.look(shares, level)
    found = [frozenset(int(i) for i in row if i >= 0) for row in prefixes]
    assert len(set(found)) == len(found)
    for nodes in found:
        assert nx.is_connected(graph.subgraph(nodes))
        assert least(arena, gram, sorted(nodes)) <= level + 1e-9
    for size in range(1, min(arena.size, arena.n) + 1):
        for nodes in combinations(range(arena.n), size):
            if nx.is_connected(graph.subgraph(nodes)) and least(arena, gram, nodes) < level - 1e-9:
                assert any(one <= set(nodes) for one in found)
    values = [least(arena, gram, [int(i) for i in row if i >= 0]) for row in grown]
    assert values == sorted(values) or np.allclose(values, np.sort(values), atol=1e-12)
    for prefix, whole in zip(prefixes, grown, strict=True):
        assert {int(i) for i in prefix if i >= 0} <= {int(i) for i in whole if i >= 0}


def test_the_graph_is_that_of_the_blocks_held():
    arena = Arena(random_problem(4, blocks=7))
    weak = WeakSupports(arena)
    held = np.arange(len(arena.block_nodes)) % 2 == 0
    pointer, neighbours = weak.graph(held)
    plain = graph_of(arena, held)
    for i in range(arena.n):
        assert neighbours[pointer[i] : pointer[i + 1]].tolist() == sorted(plain[i])
    nothing = weak.graph(np.zeros(len(held), dtype=bool))
    assert len(nothing[1]) == 0
