"""Random fields of every kind, and exact arithmetic to check claims about them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
from scipy.sparse import csgraph

KINDS = ("dense", "wide", "sparse", "graph", "disconnected", "zero column", "deficient", "ill-scaled", "integer")


def random_field(kind: str, seed: int, *, n: int | None = None, dims: str = "mixed"):
    """(B, sizes) of a small random field of the given kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.integers(2, 8)) if n is None else n
    sizes = rng.integers(1, 4, size=n) if dims == "mixed" else np.full(n, int(dims))
    width = int(sizes.sum())
    B = rng.standard_normal((int(rng.integers(width, 2 * width + 2)), width))
    if kind == "wide":
        B = B[: max(1, width // 2)]
    elif kind == "sparse":
        B *= rng.random(B.shape) < 0.3
    elif kind == "graph":
        B = graph_field(n, rng, sizes=np.full(n, sizes[0]))
        sizes = np.full(n, sizes[0])
    elif kind == "disconnected":
        half = width // 2
        B[: len(B) // 2, half:] = 0.0
        B[len(B) // 2 :, :half] = 0.0
    elif kind == "zero column":
        B[:, int(rng.integers(width))] = 0.0
    elif kind == "deficient":
        B[:, -1] = B[:, 0] * 2.0
    elif kind == "ill-scaled":
        B *= 10.0 ** rng.uniform(-8, 8, size=width)
    elif kind == "integer":
        B = rng.integers(-3, 4, size=B.shape)
    return B, sizes.tolist()


def graph_field(n: int, rng: np.random.Generator, *, sizes=None, degree: float = 3.0, anchors: float = 0.3):
    """Identity relations on random pairs, and anchors on some nodes."""
    d = 1 if sizes is None else int(sizes[0])
    rows = []
    for i, j in combinations(range(n), 2):
        if rng.random() < degree / max(n - 1, 1):
            row = np.zeros(n)
            row[i], row[j] = -1.0, 1.0
            rows.append(row)
    rows += [np.eye(n)[i] for i in range(n) if rng.random() < anchors]
    if not rows:
        rows = [np.eye(n)[0]]
    return np.kron(np.array(rows), np.eye(d))


def definite_above(block: np.ndarray, theta: Fraction) -> bool:
    """BᵀB − θI is positive semidefinite, in exact rational arithmetic."""
    exact = [[Fraction(float(x)) for x in row] for row in block]
    width = block.shape[1]
    gram = [[sum((row[i] * row[j] for row in exact), Fraction(0)) for j in range(width)] for i in range(width)]
    for i in range(width):
        gram[i][i] -= theta
    for p in range(width):
        if gram[p][p] < 0:
            return False
        if gram[p][p] == 0:
            if any(gram[i][p] != 0 for i in range(p, width)):
                return False
            continue
        for i in range(p + 1, width):
            factor = gram[i][p] / gram[p][p]
            for j in range(p + 1, width):
                gram[i][j] -= factor * gram[p][j]
    return True


def lower_bound_holds(B: np.ndarray, sizes: list[int], size: int, lower: float) -> bool:
    """σ_min(B_S) ≥ lower for every support of `size` nodes, in exact arithmetic."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    theta = Fraction(lower) ** 2
    for support in combinations(range(len(sizes)), min(size, len(sizes))):
        columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in support])
        if not definite_above(np.asarray(B, dtype=float)[:, columns], theta):
            return False
    return True


def dependent(columns: np.ndarray) -> bool:
    """Are the columns linearly dependent? Gauss in fractions."""
    rows = [[Fraction(float(x)) for x in row] for row in columns]
    for column in range(columns.shape[1]):
        pivot = next((row for row in rows[column:] if row[column] != 0), None)
        if pivot is None:
            return True
        rest = [row for row in rows[column:] if row is not pivot]
        rest = [[x - row[column] / pivot[column] * y for x, y in zip(row, pivot, strict=True)] for row in rest]
        rows = [*rows[:column], pivot, *rest]
    return False


def upper_bound_holds(B: np.ndarray, direction: np.ndarray, upper: float) -> bool:
    """‖Bh‖ ≤ upper ‖h‖ in exact arithmetic; an upper bound of 0 says that the columns under h are
    dependent.
    """
    if upper == 0.0:
        return dependent(np.asarray(B, dtype=float)[:, np.flatnonzero(direction)])
    h = [Fraction(float(x)) for x in direction]
    image = sum(
        (sum((Fraction(float(c)) * x for c, x in zip(row, h, strict=True)), Fraction(0)) ** 2 for row in B), Fraction(0)
    )
    return image <= Fraction(upper) ** 2 * sum((x * x for x in h), Fraction(0))


def brute(field, size, theta, *, connected):
    """({supports with λ_min below θ}, λ_min of every support), of all or of the connected ones."""
    gram = field.gram.toarray()
    result = {}
    for support in combinations(range(field.n), size):
        columns = field.columns_of(support)
        block = gram[np.ix_(columns, columns)]
        if connected:
            local = field.graph[list(support)][:, list(support)]
            if csgraph.connected_components(local, directed=False)[0] > 1:
                continue
        result[support] = np.linalg.eigvalsh(block)[0]
    return {s for s, value in result.items() if value < theta}, result


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
