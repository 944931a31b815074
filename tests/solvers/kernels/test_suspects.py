"""Supports with row blocks taken away, against plain eigenvalues: every harmful pair is listed, and
no harmless one.
"""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from solvers.kernels.suspects import _largest, _traces, scan_suspects

UNITS = 5


def field(seed: int, dims: list[int], *, integer: bool):
    """(B, which suspect block each row belongs to, units that share a row)."""
    rng = np.random.default_rng([seed, sum(dims)])
    offsets = np.concatenate([[0], np.cumsum(dims)])
    rows, owner = [], []
    pairs = [(i, (i + 1) % UNITS) for i in range(UNITS)] + [(i, i) for i in range(UNITS)]
    for number, (i, j) in enumerate(pairs):
        for _ in range(2):
            row = np.zeros(offsets[-1])
            for unit in {i, j}:
                width = dims[unit]
                row[offsets[unit] : offsets[unit + 1]] = (
                    rng.integers(-2, 3, size=width) if integer else rng.normal(size=width)
                )
            rows.append(row)
            owner.append(number if number % 2 else -1)
    names = np.unique([o for o in owner if o >= 0])
    suspect_of = np.array([-1 if o < 0 else int(np.flatnonzero(names == o)[0]) for o in owner])
    return np.array(rows), suspect_of, offsets


def units_graph(B: np.ndarray, offsets: np.ndarray) -> nx.Graph:
    touches = np.array([[row[offsets[i] : offsets[i + 1]].any() for i in range(UNITS)] for row in B])
    graph = nx.empty_graph(UNITS)
    graph.add_edges_from((i, j) for i, j in combinations(range(UNITS), 2) if (touches[:, i] & touches[:, j]).any())
    return graph


def scan(B, suspect_of, offsets, *, size, removed, theta, ratio, wanted=None, room=4000, stop=False):
    graph = units_graph(B, offsets)
    lists = [sorted(graph[i]) for i in range(UNITS)]
    adjacency = (np.cumsum([0, *map(len, lists)]), np.array([j for each in lists for j in each], dtype=np.int64))
    matrix = sparse.csc_array(B)
    columns = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
    out = np.full((room, size + removed), -1, np.int64)
    selective = wanted is not None
    marks = np.ones(B.shape[1]) if wanted is None else wanted
    order, goal = np.arange(UNITS), np.full(UNITS, size, np.int64)
    count, done = scan_suspects(
        adjacency, columns, offsets, suspect_of, marks, order, goal, order, theta, ratio, removed, selective, 1e-14,
        np.array([int(stop)]), out,
    )  # fmt: skip
    pairs = []
    for row in out[: min(count, room)]:
        units, blocks = row[:size], row[size:]
        pairs.append((tuple(sorted(units[units >= 0].tolist())), tuple(sorted(blocks[blocks >= 0].tolist()))))
    return pairs, count, done


def plain(B, suspect_of, offsets, *, size, removed, theta, ratio, slack, wanted=None):
    """By the definition: N_R = G_SS − θP − (1 + ρ) Σ B_bSᵀB_bS has an eigenvalue below the
    slack.
    """
    found = set()
    marks = np.ones(B.shape[1]) if wanted is None else wanted
    for support in combinations(range(UNITS), size):
        if not nx.is_connected(units_graph(B, offsets).subgraph(support)):
            continue
        columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in support])
        if not marks[columns].any():
            continue
        part = B[:, columns]
        touching = sorted({int(b) for b in suspect_of[part.any(axis=1)] if b >= 0})
        for choice in combinations(touching, min(removed, len(touching))):
            gone = np.isin(suspect_of, choice)
            matrix = part.T @ part - theta * np.diag(marks[columns]) - (1.0 + ratio) * part[gone].T @ part[gone]
            if np.linalg.eigvalsh(matrix)[0] < slack:
                found.add((support, choice))
    return found


@pytest.mark.parametrize("dims", [[1] * UNITS, [2, 1, 1, 2, 1]])
@pytest.mark.parametrize(("size", "removed"), [(1, 1), (2, 0), (2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("integer", [False, True])
def test_every_harmful_pair_is_listed_once(dims, size, removed, integer):
    for seed, theta in ((0, 1.5), (1, 4.0)):
        given = field(seed, dims, integer=integer)
        options = {"size": size, "removed": removed, "theta": theta, "ratio": 0.2}
        found, _, done = scan(*given, **options)
        assert done == UNITS
        assert len(found) == len(set(found))
        assert plain(*given, slack=-1e-9, **options) <= set(found) <= plain(*given, slack=1e-6, **options)


def test_only_supports_with_something_wanted_count():
    given = field(3, [1] * UNITS, integer=False)
    wanted = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    options = {"size": 2, "removed": 1, "theta": 0.5, "ratio": 0.0, "wanted": wanted}
    found, *_ = scan(*given, **options)
    assert all(2 in support for support, _ in found)
    assert plain(*given, slack=-1e-9, **options) <= set(found) <= plain(*given, slack=1e-6, **options)


def test_traces_are_those_of_the_inverse():
    rng = np.random.default_rng(0)
    part, block_of = rng.normal(size=(6, 3)), np.array([0, 0, 1, -1, 1, 2])
    matrix = part.T @ part + np.eye(3)
    trace = np.full(3, 9.0)
    _traces(np.linalg.cholesky(matrix), part, block_of, 6, 3, 1.5, trace)
    inverse = np.linalg.inv(matrix)
    for b in range(3):
        rows = part[block_of == b]
        assert trace[b] == pytest.approx(1.5 * np.trace(inverse @ rows.T @ rows))
    assert _largest(trace, np.array([2, 0, 1]), 1, 3, 1) == pytest.approx(max(trace[0], trace[1]))
    assert _largest(trace, np.arange(3), 0, 3, 9) == pytest.approx(trace.sum())
    assert _largest(trace, np.arange(3), 3, 3, 2) == 0.0


def test_a_full_list_or_a_stop_ends_the_search():
    given = field(1, [1] * UNITS, integer=True)
    _, count, done = scan(*given, size=2, removed=1, theta=50.0, ratio=0.0, room=1)
    assert count > 1
    assert done < UNITS
    assert scan(*given, size=2, removed=1, theta=0.1, ratio=0.0, stop=True)[1:] == (0, 0)
