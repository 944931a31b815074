"""Pairs and single nodes: gains, projections, and supports with row blocks taken away."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from exact_matrices import floats, projector, rationals
from scipy import sparse

from solvers._gram import column_groups
from solvers.decoding.spans import build_spans
from solvers.kernels.support_pairs import _adjacent, scan_pairs, scan_rows
from solvers.kernels.support_spans import column_products, node_grams, orthonormal, sparse_overlap
from solvers.kernels.suspects import _largest, _traces, scan_suspects


def residual(B, columns, s):
    return float(np.linalg.norm(B[:, columns] @ np.linalg.lstsq(B[:, columns], s, rcond=1e-10)[0] - s))


def scan(spans, s, top, *, allowed=None, seek=False):
    """The pairs that may gain `top` (or the best one), with the smallest shifts that make sense."""
    pointers, neighbours, blocks = spans.overlap
    parts = spans.project(s)
    gains = np.einsum("ij,ij->i", parts, parts)
    found = np.zeros((100, 2), dtype=np.int64)
    allowed = np.ones(spans.nodes, dtype=bool) if allowed is None else allowed
    full = len(neighbours) == spans.nodes**2
    count, i, j = scan_pairs(
        pointers,
        neighbours,
        blocks,
        parts,
        gains,
        allowed,
        spans.shift,
        1e-14,
        top,
        float(s @ s),
        full,
        seek,
        found,
    )
    return (i, j) if seek else {tuple(pair) for pair in found[:count].tolist()}


@pytest.mark.parametrize("dims", [[1] * 7, [2, 1, 3, 2, 1]])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_against_projections(dims, share):
    rng = np.random.default_rng(len(dims))
    B = rng.normal(size=(40, sum(dims))) * (rng.random((40, sum(dims))) < share)
    spans = build_spans(B, column_groups(dims, sum(dims)))
    s = rng.normal(size=40)
    groups = np.split(np.arange(sum(dims)), np.cumsum(dims)[:-1])
    pairs = [(i, j) for i in range(len(dims)) for j in range(i + 1, len(dims))]
    gains = {(i, j): float(s @ s) - residual(B, np.r_[groups[i], groups[j]], s) ** 2 for i, j in pairs}
    top = float(np.sort(list(gains.values()))[len(gains) // 2]) - 1e-9
    assert scan(spans, s, top) == {pair for pair, gain in gains.items() if gain >= top}
    assert gains[scan(spans, s, top, seek=True)] == pytest.approx(max(gains.values()))


def test_dependent_pairs_are_left_to_the_caller_and_others_add_up() -> None:
    from scipy import sparse

    spans = build_spans(sparse.csc_array(np.eye(6)[:, :5]), column_groups(None, 5))
    s = np.array([1.0, 3.0, 2.0, 0.5, 0.1, 9.0])
    assert scan(spans, s, 9.9) == {(1, 2), (0, 1)}
    assert scan(spans, s, 0.0, seek=True) == (1, 2)
    allowed = np.array([True, False, True, True, True])
    assert scan(spans, s, 0.0, allowed=allowed, seek=True) == (0, 2)
    spans = build_spans(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]), column_groups(None, 3))
    assert (0, 1) in scan(spans, np.array([1.0, 0.0]), 1e9)


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_on_the_threshold_is_never_lost(seed):
    """The shift outweighs rounding: the pair whose exact gain is the threshold is reported, though
    the scan is in floats.
    """
    rng = np.random.default_rng(seed)
    for _ in range(50):
        B = rng.normal(size=(9, 5))
        B[:, 1] = B[:, 0] + 10.0 ** -int(rng.integers(1, 8)) * rng.normal(size=9)
        s = B[:, :2] @ rng.normal(size=2) + 0.1 * rng.normal(size=9)
        spans = build_spans(B, column_groups(None, 5))
        assert (0, 1) in scan(spans, s, float(s @ s) - residual(B, [0, 1], s) ** 2)


def test_few_rows_exclude_only_what_all_rows_exclude():
    rng = np.random.default_rng(1)
    B = rng.normal(size=(40, 20))
    s = B[:, [3, 8]] @ np.array([1.0, -2.0]) + 0.01 * rng.normal(size=40)
    loud = B[:8] / np.linalg.norm(B[:8], axis=0)
    parts = s[:8] @ loud
    found = np.zeros((200, 2), dtype=np.int64)
    energy = float(s[:8] @ s[:8])
    count = scan_rows(loud, parts, parts * parts, 1e-14, energy - 0.2**2, energy, found)
    left = {tuple(pair) for pair in found[:count].tolist()}
    pairs = [(i, j) for i in range(20) for j in range(i + 1, 20)]
    assert {pair for pair in pairs if residual(B, list(pair), s) <= 0.2} == {(3, 8)} <= left
    assert left == {pair for pair in pairs if residual(B[:8], list(pair), s[:8]) <= 0.2}
    assert scan_rows(loud, parts, parts * parts, 1e-14, 0.0, energy, found[:5]) == 190  # more than the buffer holds


def test_adjacency():
    pointers, neighbours = np.array([0, 2, 3]), np.array([1, 4, 0])
    assert _adjacent(pointers, neighbours, 0, 4)
    assert not _adjacent(pointers, neighbours, 0, 3)
    assert not _adjacent(pointers, neighbours, 1, 9)


@pytest.mark.parametrize("closeness", [1.0, 1e-3, 1e-7])
def test_the_error_bound_holds_and_is_small(closeness):
    rng = np.random.default_rng(3)
    for _ in range(5):
        columns = rng.normal(size=(3, 7))
        columns[1] = columns[0] + closeness * rng.normal(size=7)
        columns /= np.linalg.norm(columns, axis=1)[:, None]
        basis, error, dropped = orthonormal(columns, 0.0, 1e-10)
        U = rationals(basis)
        true = float(np.linalg.norm(floats(U.transpose() * U - projector(columns.T)), 2))
        assert not dropped
        assert true <= error <= 1e-13 / closeness


def test_dependent_columns_and_zeros_are_dropped_and_errors_carried() -> None:
    columns = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1e-12, 0.0], [0.0, 0.0, 1.0]])
    basis, _, dropped = orthonormal(columns, 0.0, 1e-10)
    assert dropped
    assert len(basis) == 2
    assert not orthonormal(columns[[0, 1, 3]], 0.0, 1e-10)[2]
    _, error, _ = orthonormal(np.eye(4)[:2], 0.25, 1e-10)
    assert 0.25 <= error < 1.0


@pytest.mark.parametrize("width", [1, 3])
def test_sparse_products(width):
    rng = np.random.default_rng(width)
    dense = rng.normal(size=(50, 40 * width)) * (rng.random((50, 40 * width)) < 0.08)
    Q = sparse.csc_array(dense)
    v = rng.normal(size=50)
    np.testing.assert_allclose(column_products(Q.indptr, Q.indices, Q.data, v), dense.T @ v, atol=1e-13)
    gram = (dense.T @ dense).reshape(40, width, 40, width).transpose(0, 2, 1, 3)
    blocks = node_grams(Q.indptr, Q.indices, Q.data, 50, width)
    np.testing.assert_allclose(blocks, gram[np.arange(40), np.arange(40)], atol=1e-13)
    pointers, neighbours, overlaps = sparse_overlap(Q.indptr, Q.indices, Q.data, 50, width)
    listed = np.zeros((40, 40), dtype=bool)
    for i in range(40):
        row = neighbours[pointers[i] : pointers[i + 1]]
        assert (np.diff(row) > 0).all()
        listed[i, row] = True
        np.testing.assert_allclose(overlaps[pointers[i] : pointers[i + 1]], gram[i, row], atol=1e-13)
    touched = np.abs(dense).reshape(50, 40, width).max(axis=2) > 0
    np.testing.assert_array_equal(listed, np.triu(touched.T.astype(int) @ touched > 0, 1))


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


def suspects_scan(B, suspect_of, offsets, *, size, removed, theta, ratio, wanted=None, room=4000, stop=False):
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
        found, _, done = suspects_scan(*given, **options)
        assert done == UNITS
        assert len(found) == len(set(found))
        assert plain(*given, slack=-1e-9, **options) <= set(found) <= plain(*given, slack=1e-6, **options)


def test_only_supports_with_something_wanted_count():
    given = field(3, [1] * UNITS, integer=False)
    wanted = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    options = {"size": 2, "removed": 1, "theta": 0.5, "ratio": 0.0, "wanted": wanted}
    found, *_ = suspects_scan(*given, **options)
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
    _, count, done = suspects_scan(*given, size=2, removed=1, theta=50.0, ratio=0.0, room=1)
    assert count > 1
    assert done < UNITS
    assert suspects_scan(*given, size=2, removed=1, theta=0.1, ratio=0.0, stop=True)[1:] == (0, 0)
