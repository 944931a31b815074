"""Compile every kernel once, so that the first real question is answered at once: `python -m
solvers.warm`.

Kernels are compiled where that pays and kept in a cache; all of them, that is more than a minute
of one core.
Small fields of each kind (scalar or blocks, dense or sparse) make the compiler meet every
signature; two processes share the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from solvers import margin, supports_below, suspect_margin, worst_supports
from solvers._delivered import delivered_margin
from solvers._gram import make_field
from solvers._hubs import HubSearch
from solvers.decoding import SupportDecoder
from solvers.kernels.kernel import all_compiled

KINDS = ((1, False), (1, True), (2, False), (2, True))
"""Dimension of the nodes, and whether the field is sparse."""


def _small_field(dim: int, thin: bool) -> tuple[Any, list[int]]:
    """A matrix of this kind with its groups: random rows, or a ring with an anchor at every third
    node.
    """
    nodes = 40 if thin else 14
    if not thin:
        return np.random.default_rng(0).normal(size=(nodes * dim + 4, nodes * dim)), [dim] * nodes
    ring = sparse.eye_array(nodes) - sparse.eye_array(nodes, k=1) - sparse.eye_array(nodes, k=1 - nodes)
    anchors = sparse.eye_array(nodes).tocsr()[::3]
    return sparse.csr_array(sparse.kron(sparse.vstack([ring, anchors]), np.eye(dim))), [dim] * nodes


def _ask_everything(dim: int, thin: bool) -> None:
    """Ask every kind of question of a small field."""
    matrix, groups = _small_field(dim, thin)
    for k in (1, 2, 3):
        margin(matrix, groups, k=k)
    margin(matrix, groups, k=4, method="completion")
    worst_supports(matrix, groups, size=2, count=4)
    supports_below(matrix, groups, size=2, threshold=0.5)
    delivered_margin(matrix, groups, [0], k=1)
    suspect_margin(matrix, groups, k=1, suspects=1)
    if thin:  # the first node for a hub; and small matrices are decoded as dense ones
        HubSearch(make_field(matrix, groups), 4, np.zeros(1, np.int64)).below(1e-3, limit=16)
        matrix, groups = sparse.csr_array(sparse.kron(np.eye(3), matrix)), groups * 3
    _warm_decoder(matrix, groups)
    _warm_rows(dim)
    if dim == 1 and not thin:  # columns of different size; and large enough for the scan through a few rows
        margin(matrix * 10.0 ** np.arange(matrix.shape[1]), groups, k=1)
        _warm_decoder(np.random.default_rng(1).normal(size=(64, 64)), [1] * 64)


def _warm_decoder(matrix: Any, groups: list[int]) -> None:
    """Repair has kernels of its own: one wrong node, and data that nothing explains."""
    decoder = SupportDecoder(matrix, groups)
    for e in (np.eye(matrix.shape[1])[0], np.arange(matrix.shape[1]) % 7.0):
        decoder.decode(matrix @ e, k=2, epsilon=1e-3)


def _warm_rows(dim: int) -> None:
    """Hull rows, weak sets and exchanges: two joined nodes and an anchor at each on sale."""
    from solvers.kernels.connected import grow_sets, weak_sets
    from solvers.kernels.counts import least_weight
    from solvers.kernels.covers import separate
    from solvers.kernels.exchange import exchange_rows, mend, tidy
    from solvers.kernels.uncertain import uncertainty, weak_uncertain_sets

    width, two = 2 * dim, np.arange(2)
    base, parts = np.kron([[1.0, -1.0], [-1.0, 1.0]], np.eye(dim)), np.zeros((2, width, width))
    for i in two:
        parts[i, i * dim : (i + 1) * dim, i * dim : (i + 1) * dim] = np.eye(dim)
    sizes, whole, none = np.ones(2, dtype=np.int64), np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    spread = (two + 1, np.zeros(2), none, np.zeros(0), none, np.repeat(two, dim))
    separate(whole, spread, base, parts, sizes, np.zeros(2), 0.1, 0.3, 1.0, False)
    least_weight(whole, spread, base, parts, sizes, np.array([0, 1, 0, 1, 0]), np.array([0, 2]), 0.1, 0.3)
    offsets, pointer, neighbours = np.array([0, dim, width]), np.array([0, 1, 2]), np.array([1, 0])
    out = np.full((64, 2), -1, dtype=np.int64)
    weak_sets(base, offsets, pointer, neighbours, 2, 0.1, two, two, out)
    grow_sets(base, offsets, pointer, neighbours, np.array([[0, -1]]))
    state = (base, offsets, pointer, neighbours)
    ends, square = np.array([0, dim, width]), np.array([0, dim * dim, 2 * dim * dim])
    blocks = (np.arange(width), ends, np.concatenate([np.eye(dim).ravel()] * 2), square, np.array([0, 1, 2]), two)
    held, prices, rank = np.zeros(2, dtype=bool), np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    reach, joins = (np.zeros(0), two, np.arange(3)), (np.arange(3), two, np.arange(3), two)
    weak_uncertain_sets(base, offsets, joins, held, np.zeros(2), 2, 0.3, two, two, out)
    uncertainty(joins, np.zeros(2), two, 2)
    changed, dice = np.zeros(8, dtype=np.int64), np.ones(1, dtype=np.int64)
    mend(state, blocks, reach, 2, 0.1, held, prices, two, rank, out, changed, 9, 0.0, dice)
    tidy(state, blocks, reach, 2, 0.1, held, prices, two, rank, out, dice)
    exchange_rows(state, blocks, reach, 2, 0.1, held, prices, 0, 2, 0)


def main(n_jobs: int = 2) -> None:
    """All kinds, one process per dimension: kernels for blocks and for scalars have nothing in
    common.
    """
    from joblib import Parallel, delayed

    Parallel(n_jobs=n_jobs)(delayed(_warm_all)(dim) for dim in sorted({dim for dim, _ in KINDS}))


def _warm_all(dim: int) -> None:
    with all_compiled():
        for thin in (thin for each, thin in KINDS if each == dim):
            _ask_everything(dim, thin)


if __name__ == "__main__":
    main()
