"""Small fields for the threshold kernels, and the plain answer: which supports are not positive
definite.
"""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np


def shifted(dims: list[int], seed: int, *, theta: float, density: float = 1.0, integer: bool = False) -> np.ndarray:
    """N = G − θI of a random field; integer fields have many ties and exact zeros."""
    rng = np.random.default_rng([seed, len(dims), sum(dims)])
    width = sum(dims)
    rows = rng.integers(-2, 3, size=(2 * width, width)) if integer else rng.normal(size=(2 * width, width))
    rows = rows * np.repeat(rng.random((2 * width, len(dims))) < density, dims, axis=1)
    gram = rows.T @ rows / (2.0 * width)
    return gram - theta * np.eye(width)


def offsets_of(dims: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(dims)]).astype(np.int64)


def block(matrix: np.ndarray, offsets: np.ndarray, support) -> np.ndarray:
    columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in support])
    return matrix[np.ix_(columns, columns)]


def adjacency(matrix: np.ndarray, offsets: np.ndarray) -> nx.Graph:
    n = len(offsets) - 1
    graph = nx.empty_graph(n)
    for i, j in combinations(range(n), 2):
        if matrix[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]].any():
            graph.add_edge(i, j)
    return graph


def harmful(matrix: np.ndarray, offsets: np.ndarray, size: int, *, room: float, connected: bool = False) -> set:
    """Supports whose least eigenvalue is below `room`; of the connected ones, if so wished."""
    graph = adjacency(matrix, offsets)
    return {
        support
        for support in combinations(range(len(offsets) - 1), size)
        if (not connected or nx.is_connected(graph.subgraph(support)))
        and np.linalg.eigvalsh(block(matrix, offsets, support))[0] < room
    }


def listed(out: np.ndarray, count: int) -> list[tuple[int, ...]]:
    return [tuple(sorted(int(i) for i in row if i >= 0)) for row in out[:count]]


def csr(matrix: np.ndarray, offsets: np.ndarray):
    """(pointer, index, value, starts, dims, diagonal) of the blocks that are not zero."""
    n = len(offsets) - 1
    dims = np.diff(offsets)
    pointer, index, value, starts = [0], [], [], []
    diagonal = np.zeros((n, dims.max(), dims.max()))
    for i in range(n):
        diagonal[i, : dims[i], : dims[i]] = block(matrix, offsets, (i,))
        for j in range(n):
            part = matrix[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
            if i != j and part.any():
                index.append(j)
                starts.append(len(value))
                value.extend(part.ravel())
        pointer.append(len(index))
    return (
        np.array(pointer),
        np.array(index, dtype=np.int64),
        np.array(value, dtype=float),
        np.array(starts, dtype=np.int64),
        dims,
        diagonal,
    )
