"""Compile every kernel once, so that the first real question is answered at once: `python -m solvers.warm`.

Kernels are compiled on first use and kept in a cache; cold, that is more than a minute of one core. Small fields of each
kind (scalar or blocks, dense or sparse) make the compiler meet every signature; two processes share the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from solvers.decoding import SupportDecoder
from solvers.margin import margin, supports_below, worst_supports

KINDS = ((1, False), (1, True), (2, False), (2, True))
"""Dimension of the nodes, and whether the field is sparse."""


def small_field(dim: int, thin: bool) -> tuple[Any, list[int]]:
    """A matrix of this kind with its groups: random rows, or a ring with an anchor at every third node."""
    nodes = 40 if thin else 14
    if not thin:
        return np.random.default_rng(0).normal(size=(nodes * dim + 4, nodes * dim)), [dim] * nodes
    ring = sparse.eye_array(nodes) - sparse.eye_array(nodes, k=1) - sparse.eye_array(nodes, k=1 - nodes)
    anchors = sparse.eye_array(nodes).tocsr()[::3]
    return sparse.csr_array(sparse.kron(sparse.vstack([ring, anchors]), np.eye(dim))), [dim] * nodes


def warm(dim: int, thin: bool) -> None:
    """Ask every kind of question of a small field."""
    matrix, groups = small_field(dim, thin)
    for k in (1, 2, 3):
        margin(matrix, groups, k=k)
    worst_supports(matrix, groups, size=2, count=4)
    supports_below(matrix, groups, size=2, threshold=0.5)
    if thin:  # small matrices are decoded as dense ones
        matrix, groups = sparse.csr_array(sparse.kron(np.eye(3), matrix)), groups * 3
    _warm_decoder(matrix, groups)
    if dim == 1 and not thin:  # large enough for the scan through a few rows
        _warm_decoder(np.random.default_rng(1).normal(size=(64, 64)), [1] * 64)


def _warm_decoder(matrix: Any, groups: list[int]) -> None:
    """Repair has kernels of its own: one wrong node, and data that nothing explains."""
    decoder = SupportDecoder(matrix, groups)
    for e in (np.eye(matrix.shape[1])[0], np.arange(matrix.shape[1]) % 7.0):
        decoder.decode(matrix @ e, k=2, epsilon=1e-3)


def main(n_jobs: int = 2) -> None:
    """All kinds, one process per dimension: kernels for blocks and for scalars have nothing in common."""
    from joblib import Parallel, delayed

    Parallel(n_jobs=n_jobs)(delayed(_warm_all)(dim) for dim in sorted({dim for dim, _ in KINDS}))


def _warm_all(dim: int) -> None:
    for thin in (thin for each, thin in KINDS if each == dim):
        warm(dim, thin)


if __name__ == "__main__":
    main()
