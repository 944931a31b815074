"""Peeling, against every set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from solvers.kernels.core_numbers import child_order, peel, peeling_order

GO = np.zeros(1, np.int64)


def shifted(seed: int, size: int, share: float):
    """A random Gram matrix minus a share of the least eigenvalue over sets of `size`, and that
    eigenvalue.
    """
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((10, 11)) * (rng.random((10, 11)) < rng.choice([0.6, 1.0]))
    B = np.vstack([B, 0.3 * np.eye(11)])
    gram = B.T @ B
    least = min(np.linalg.eigvalsh(gram[np.ix_(s, s)])[0] for s in combinations(range(11), size))
    return gram - share * least * np.eye(11), least


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shares", [1, 3])
def test_nothing_harmful_is_missed_and_nothing_harmless_is_named(seed, shares):
    size = 5 + seed % 4
    for share, harmful in ((1.0 - 1e-9, False), (1.0 + 1e-9, True)):
        matrix, _ = shifted(seed, size, share)
        order = peeling_order(matrix, size)
        children = child_order(matrix, order, size)
        met = []
        for item in range(len(order) * shares):
            done, found, _ = peel(matrix, order, children, np.array([item]), shares, size, GO)
            assert (done == 1) == (len(found) == 0)
            if len(found):
                met.append(found)
                assert len(set(found.tolist())) == len(found) <= size
                assert np.linalg.eigvalsh(matrix[np.ix_(found, found)])[0] <= 1e-8
        assert bool(met) == harmful


def test_nodes_without_a_positive_pivot_are_met_at_once():
    matrix = np.eye(8)
    matrix[3, 3] = -1.0
    order = peeling_order(matrix, 6)
    assert order.tolist() == [3]
    done, found, _ = peel(matrix, order, child_order(matrix, order, 6), np.arange(1), 1, 6, GO)
    assert (done, found.tolist()) == (0, [3])


def test_a_stop_is_obeyed():
    matrix, _ = shifted(0, 5, 0.99)
    order = peeling_order(matrix, 5)
    assert len(order)
    done, found, _ = peel(
        matrix, order, child_order(matrix, order, 5), np.arange(len(order)), 1, 5, np.ones(1, np.int64)
    )
    assert (done, len(found)) == (0, 0)


@pytest.mark.parametrize(
    "seed", [*range(40), 260]
)  # 260: a support that was left out where each threshold had its own order
def test_pieces_of_a_root_done_at_different_thresholds_leave_nothing_out(seed):
    """What is clean at a higher threshold is not asked again at a lower one: the least support must
    turn up all the same.
    """
    rng = np.random.default_rng(seed)
    size, n, shares = 5 + seed % 3, 11, 3
    B = np.vstack([rng.standard_normal((8, n)), 0.3 * np.eye(n)])
    gram = B.T @ B
    least = min(np.linalg.eigvalsh(gram[np.ix_(s, s)])[0] for s in combinations(range(n), size))
    high, low = (gram - least * factor * np.eye(n) for factor in (1.03, 1.0 + 1e-6))
    order = peeling_order(high, size)
    children = child_order(high, order, size)
    items = [np.array([t]) for t in range(len(order) * shares)]
    left = [item for item in items if peel(high, order, children, item, shares, size, GO)[0] == 0]
    assert any(peel(low, order, children, item, shares, size, GO)[0] == 0 for item in left)
