"""Which supports are hard to see: thresholds and least eigenvalues against numpy, one matrix at a time."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from small import random_problem

from rrf_design.planning.arena import Arena
from rrf_design.planning.supports import by_engine, definite, least_eigenvalues


def stack(seed: int, width: int, count: int = 40) -> np.ndarray:
    rng = np.random.default_rng([seed, width])
    half = rng.integers(-2, 3, size=(count, width, width)) if seed % 2 else rng.normal(size=(count, width, width))
    return half.transpose(0, 2, 1) @ half


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_least_eigenvalues_and_thresholds(seed, width):
    blocks = stack(seed, width)
    plain = np.array([np.linalg.eigvalsh(block)[0] for block in blocks])
    scale = np.trace(blocks, axis1=1, axis2=2).max()
    np.testing.assert_allclose(least_eigenvalues(blocks), plain, atol=1e-12 * scale)
    entries = [[blocks[:, i, j] for j in range(i + 1)] for i in range(width)]
    for level in (0.1, 0.7):
        clear = np.abs(plain - level) > 1e-9 * scale
        np.testing.assert_array_equal(definite(entries, level)[clear], (plain > level)[clear])
    assert (entries[0][0] == blocks[:, 0, 0]).all()  # the lists are not changed


def test_two_by_two_keeps_its_relative_accuracy():
    small = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-13]], [[0.0, 0.0], [0.0, 0.0]]])
    exact = 1e-13 / (2.0 + 1e-13)
    found = least_eigenvalues(small)
    assert found[0] == pytest.approx(exact, rel=1e-2)
    assert found[1] == 0.0


def plain_values(arena: Arena, mask: np.ndarray) -> dict[tuple[int, ...], float]:
    """σ_min − η of every support of the size that counts, by the definition."""
    rows = arena.operator.matrix.toarray()[arena.rows(arena.active(mask))]
    active = np.flatnonzero(arena.active(mask))
    graph = nx.empty_graph(arena.n)
    for j in active:
        graph.add_edges_from(combinations(arena.block_nodes[j], 2))
    opened = np.flatnonzero(arena.opened(mask))
    size = min(arena.size, len(opened))
    result = {}
    for count in range(1, size + 1) if arena.robust else (size,):
        for support in combinations(opened.tolist(), count):
            part = rows[:, arena.columns_of(support)]
            sigma = np.sqrt(max(np.linalg.eigvalsh(part.T @ part)[0], 0.0))
            if arena.robust:
                if not nx.is_connected(graph.subgraph(support)):
                    continue
                radii = [arena.radii[j] for j in active if set(arena.block_nodes[j]) & set(support)]
                sigma -= np.sqrt(np.sum(np.square(radii)))
            result[support] = sigma
    return result


@pytest.mark.parametrize("features", [(), ("dims",), ("nodes",), ("radii",), ("radii", "dims")], ids="-".join)
@pytest.mark.parametrize("seed", range(2))
def test_the_table_finds_the_worst_supports(seed, features):
    arena = Arena(random_problem(seed, features=features, blocks=6))
    rng = np.random.default_rng(seed)
    for _ in range(6):
        mask = arena.market.close(rng.random(len(arena.market.items)) < 0.6)
        if not arena.opened(mask).any():
            continue
        plain = plain_values(arena, mask)
        found = arena.evaluate(mask, count=5)
        least = min(plain.values())
        assert found.value == pytest.approx(max(least, 0.0), abs=1e-6)
        worst = found.witnesses[0]
        assert plain[worst.support] == pytest.approx(least, abs=1e-6)
        below = arena.evaluate(mask, count=100, below=least + 0.3)
        assert {w.support for w in below.witnesses} >= {s for s, value in plain.items() if value < least + 0.3 - 1e-6}


def test_at_margin_zero_the_whole_null_space_is_there():
    arena = Arena(random_problem(0, features=("dims",), blocks=4))
    mask = arena.market.empty()
    rows = arena.operator.matrix.toarray()[arena.rows(arena.active(mask))]
    found = arena.evaluate(mask, count=1)
    assert found.value == 0.0
    support = found.witnesses[0].support
    part = rows[:, arena.columns_of(support)]
    null = part.shape[1] - np.linalg.matrix_rank(part, tol=1e-7)
    here = [w for w in found.witnesses if w.support == support]
    assert len(here) == null
    for witness in here:
        assert np.linalg.norm(part @ witness.vector) < 1e-9


@pytest.mark.parametrize("features", [(), ("dims",), ("nodes",)], ids="-".join)
def test_the_engine_says_the_same(features):
    arena = Arena(random_problem(2, features=features, blocks=6))
    mask = np.ones(len(arena.market.items), dtype=bool)
    plain = plain_values(arena, mask)
    for count in (1, 6):
        found = by_engine(arena, mask, count=count, below=None)
        assert found.value == pytest.approx(min(plain.values()), rel=1e-7, abs=1e-9)
        for witness in found.witnesses:
            assert plain[tuple(sorted(witness.support))] == pytest.approx(witness.value, rel=1e-6, abs=1e-8)


def test_fractional_designs():
    arena = Arena(random_problem(1, features=("dims",), blocks=6))
    assert arena.table is not None
    rng = np.random.default_rng(0)
    shares = rng.random(len(arena.variable))
    weights = arena.permanent.astype(float)
    weights[arena.variable] = shares
    dense = arena.operator.matrix.toarray()
    gram = dense.T @ (arena.rows(weights)[:, None] * dense)
    plain = {}
    for support in combinations(range(arena.n), min(arena.size, arena.n)):
        columns = arena.columns_of(support)
        plain[support] = np.linalg.eigvalsh(gram[np.ix_(columns, columns)])[0]
    level = float(np.median(list(plain.values())))
    weak = arena.table.weakest(shares, below=level, count=100)
    assert set(weak) == {support for support, value in plain.items() if value < level}
    for witness in arena.table.fractional(shares, below=level, count=100):
        columns = arena.columns_of(witness.support)
        energy = witness.vector @ gram[np.ix_(columns, columns)] @ witness.vector
        assert energy == pytest.approx(plain[witness.support], abs=1e-12)
