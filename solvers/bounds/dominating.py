"""Coherence after group whitening, with optimal scaling: a lower bound on γ for any size, in one sweep over the pairs.

For a threshold τ let D_i = G_ii − τI and c_ij = ‖D_i^(-1/2) G_ij D_j^(-1/2)‖. If for some w > 0 the s − 1 largest c_ij w_j of
every row sum to at most w_i, every G_SS − τI with |S| = s is positive semidefinite. The best w is the Perron vector of
the map w → (sum of the s − 1 largest c_ij w_j)_i, which is monotone and homogeneous, so power iteration finds it; the
largest τ by bisection. With w = 1 and s = 2 this is the coherence bound, with τ in the diagonal Gershgorin's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers.bounds.result import Relaxation
from solvers.groups import NodeColumns, column_groups

Array = NDArray[np.float64]


def dominance(B: Any, groups: Any = None, *, size: int, steps: int = 40) -> Relaxation:
    """γ(size) ≥ the estimate, by scaled block dominance; `data` are the weights."""
    matrix = sparse.csr_array(B, dtype=np.float64)
    columns = column_groups(groups, matrix.shape[1])
    pairs = _Pairs(matrix, columns)
    low, weights = 0.0, np.ones(len(columns))
    top = pairs.least_diagonal()
    if top <= 0.0 or pairs.excess(0.0, size, weights)[0] > 1.0:
        return Relaxation(0.0, "dominance", weights, True)
    _, weights = pairs.excess(0.0, size, weights)
    high = top
    for _ in range(steps):
        middle = (low + high) / 2
        excess, better = pairs.excess(middle, size, weights)
        if excess <= 1.0:
            low, weights = middle, better
        else:
            high = middle
    return Relaxation(float(np.sqrt(low)), "dominance", weights.copy(), True)


class _Pairs:
    """Blocks of G = BᵀB for pairs of nodes that share a row, batched by shape."""

    def __init__(self, matrix: sparse.csr_array, columns: NodeColumns) -> None:
        sizes = columns.sizes
        order = columns.order
        gram = (matrix[:, order].T @ matrix[:, order]).tocsr()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        owner = np.repeat(np.arange(len(sizes)), sizes)
        coo = gram.tocoo()
        keys = np.unique(owner[coo.coords[0]] * len(sizes) + owner[coo.coords[1]])
        heads, tails = keys // len(sizes), keys % len(sizes)
        self.nodes = len(sizes)
        self.sizes = sizes
        self.diagonal = {}
        for a in np.unique(sizes):
            nodes = np.flatnonzero(sizes == a)
            self.diagonal[int(a)] = (nodes, _gather(gram, starts[nodes], starts[nodes], int(a), int(a)))
        keep = heads != tails
        self.heads, self.tails = heads[keep], tails[keep]
        self.batches = []
        for a in np.unique(sizes):
            for b in np.unique(sizes):
                pick = np.flatnonzero((sizes[self.heads] == a) & (sizes[self.tails] == b))
                if len(pick):
                    blocks = _gather(gram, starts[self.heads[pick]], starts[self.tails[pick]], int(a), int(b))
                    self.batches.append((pick, blocks))
        self.rank = np.arange(len(self.heads)) - np.searchsorted(self.heads, self.heads)

    def least_diagonal(self) -> float:
        return min(float(np.linalg.eigvalsh(blocks)[:, 0].min()) for _, blocks in self.diagonal.values())

    def couplings(self, tau: float) -> Array | None:
        """c_ij for all pairs, or None where a diagonal block is not above τ."""
        scales: dict[int, Array] = {}
        place = np.zeros(self.nodes, dtype=np.int64)
        for a, (nodes, blocks) in self.diagonal.items():
            try:
                factor = np.linalg.cholesky(blocks - tau * np.eye(a))
            except np.linalg.LinAlgError:
                return None
            scales[a] = np.swapaxes(np.linalg.inv(factor), 1, 2)
            place[nodes] = np.arange(len(nodes))
        result = np.zeros(len(self.heads))
        for pick, blocks in self.batches:
            left = scales[blocks.shape[1]][place[self.heads[pick]]]
            right = scales[blocks.shape[2]][place[self.tails[pick]]]
            image = np.swapaxes(left, 1, 2) @ blocks @ right
            one = 1 in blocks.shape[1:]
            norms = np.sqrt(np.square(image).sum(axis=(1, 2))) if one else np.linalg.norm(image, 2, axis=(1, 2))
            # the prover bounds norms of larger blocks from above by a power of the Gram matrix
            result[pick] = norms if one else norms * 1.006
        return result

    def excess(self, tau: float, size: int, weights: Array, iterations: int = 60) -> tuple[float, Array]:
        """Least found max_i (sum of the size − 1 largest c_ij w_j)/w_i, and its weights."""
        couplings = self.couplings(tau)
        if couplings is None:
            return float("inf"), weights
        best, best_weights = float("inf"), weights
        for _ in range(iterations):
            pulls = couplings * weights[self.tails]
            order = np.lexsort((-pulls, self.heads))
            kept = order[self.rank < size - 1]
            sums = np.bincount(self.heads[kept], weights=pulls[kept], minlength=self.nodes)
            ratio = float((sums / weights).max(initial=0.0))
            if ratio < best:
                best, best_weights = ratio, weights
            if best <= 1.0 - 1e-9:
                break
            # a node without neighbours keeps a small weight; the shift damps the oscillation on bipartite fields
            mixed = weights + sums / max(ratio, 1e-300)
            weights = np.maximum(mixed / mixed.max(), 1e-9)
        return best * (1 + 1e-10), best_weights


def _gather(gram: Any, rows: NDArray[np.int64], columns: NDArray[np.int64], a: int, b: int) -> Array:
    result = np.zeros((len(rows), a, b))
    for p in range(a):
        for q in range(b):
            result[:, p, q] = np.asarray(gram[rows + p, columns + q]).ravel()
    return result
