"""Weak sets with radii: every one that what is held connects, by looking at all sets."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from solvers.kernels.uncertain import uncertainty, weak_uncertain_sets

N, SIZE = 6, 3


class Field:
    """Relations and anchors at random, some of them held, each with a radius of its own."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        pairs = [pair for pair in combinations(range(N), 2) if rng.random() < 0.5]
        self.nodes = [*pairs, *((i,) for i in range(N))]
        self.held = rng.random(len(self.nodes)) < 0.7
        self.squares = np.where(self.held, rng.choice([0.0, 0.01, 0.05], size=len(self.nodes)), 0.0)
        self.gram = np.zeros((N, N))
        for j, nodes in enumerate(self.nodes):
            if self.held[j]:
                row = np.zeros(N)
                row[list(nodes)] = rng.choice([1.0, -1.0, 0.5], size=len(nodes))
                self.gram += np.outer(row, row)
        touching = [[j for j, nodes in enumerate(self.nodes) if i in nodes] for i in range(N)]
        self.joins = (
            np.cumsum([0, *map(len, touching)]),
            np.array([j for each in touching for j in each]),
            np.cumsum([0, *map(len, self.nodes)]),
            np.array([i for nodes in self.nodes for i in nodes]),
        )
        self.graph = nx.Graph([nodes for j, nodes in enumerate(self.nodes) if self.held[j] and len(nodes) == 2])
        self.graph.add_nodes_from(range(N))

    def eta(self, some) -> float:
        return sum(float(self.squares[j]) for j, nodes in enumerate(self.nodes) if set(nodes) & set(some))

    def fails(self, some, root: float) -> bool:
        level = np.linalg.eigvalsh(self.gram[np.ix_(some, some)])[0]
        return bool(level <= (root + np.sqrt(self.eta(some))) ** 2)

    def look(self, root: float, most: int = 500) -> list[tuple[int, ...]]:
        out, everywhere = np.full((most, SIZE), -1), np.arange(N)
        offsets = np.arange(N + 1)
        count = weak_uncertain_sets(
            self.gram, offsets, self.joins, self.held, self.squares, SIZE, root, everywhere, everywhere, out
        )
        return [tuple(sorted(int(i) for i in row if i >= 0)) for row in out[:count]]


@pytest.mark.parametrize("seed", range(20))
def test_sets_listed_are_weak_and_every_weak_set_has_a_listed_part(seed):
    field = Field(seed)
    for root in (0.1, 0.4):
        listed = field.look(root)
        assert len(set(listed)) == len(listed)
        assert all(field.fails(some, root) and nx.is_connected(field.graph.subgraph(some)) for some in listed)
        connected = [
            some
            for size in range(1, SIZE + 1)
            for some in combinations(range(N), size)
            if nx.is_connected(field.graph.subgraph(some))
        ]
        for some in connected:
            if field.fails(some, root):
                assert any(set(part) <= set(some) for part in listed)


def test_a_block_counts_once_however_many_of_its_nodes_are_there():
    field = Field(3)
    for some in combinations(range(N), 3):
        assert uncertainty(field.joins, field.squares, np.array(some), 3) == pytest.approx(field.eta(some))


def test_no_more_are_listed_than_there_is_room_for():
    field = Field(5)
    assert len(field.look(5.0)) > 2
    assert len(field.look(5.0, most=2)) == 2
