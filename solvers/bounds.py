"""Relaxations of γ that enumerate no supports: each value comes with the data another program can
prove it from.

These are floating-point results. A `Relaxation` says what it suggests and carries the proof data
(weights, a dual matrix); whoever prints a bound proves it first, with the rounding paid for.

`dominance`: coherence after group whitening, with optimal scaling: a lower bound on γ for any size,
in one sweep over the pairs.

For a threshold τ let D_i = G_ii − τI and c_ij = ‖D_i^(-1/2) G_ij D_j^(-1/2)‖. If for some w > 0 the
s − 1 largest c_ij w_j of every row sum to at most w_i, every G_SS − τI with |S| = s is positive
semidefinite. The best w is the Perron vector of the map w → (sum of the s − 1 largest c_ij w_j)_i,
which is monotone and homogeneous, so power iteration finds it; the largest τ by bisection. With w =
1 and s = 2 this is the coherence bound, with τ in the diagonal Gershgorin's.

`semidefinite`: the dual for group-sparse smallest eigenvalues (d'Aspremont's relaxation with
groups).

γ² ≥ min ⟨G, X⟩ over X ⪰ 0, tr X = 1, Σ‖X_ij‖_F ≤ s, since X = hhᵀ of a unit h on s nodes is among
them. It is solved by splitting: X is projected on the spectraplex, its copy on the ball of the
block norm, and the multiplier U of their equality is the dual matrix: γ² ≥ λ_min(G + U) − b(U) for
every U whatsoever, where b(U) is the smaller of s·max‖U_ij‖ and the largest sum of s block norms in
a row. The best U met is kept, so stopping early is sound.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._gram import NodeColumns, column_groups


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A lower bound on γ as floating point sees it: an estimate until it is proven from its
    data.
    """

    estimate: float
    method: str
    data: NDArray[np.float64] | None
    """What a proof needs: weights of the dominance, the lower triangle of the dual matrix; None:
    prove it otherwise.
    """
    finished: bool
    """False: stopped by the time limit; the estimate is valid, but a longer run may give a better
    one.
    """
    told: str = ""
    """What it took, in words, where that is worth knowing."""

    def __post_init__(self) -> None:
        if self.data is not None:
            self.data.setflags(write=False)


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


def dominance_sums(
    matrix: sparse.csr_array, columns: NodeColumns, *, size: int, tau: float
) -> tuple[Array, NDArray[np.float64]]:
    """Weights w for a threshold, and for every node the sum of its size − 1 largest c_ij w_j, from
    above: where that is at most w_i, no support below the threshold has an eigenvector that is
    largest at i, beside w.
    """
    pairs = _Pairs(matrix, columns)
    _, weights = pairs.excess(tau, size, np.ones(len(columns)))
    return weights, pairs.sums(tau, size, weights) * (1 + 1e-10)


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
            sums = self._largest(couplings * weights[self.tails], size)
            ratio = float((sums / weights).max(initial=0.0))
            if ratio < best:
                best, best_weights = ratio, weights
            if best <= 1.0 - 1e-9:
                break
            # a node without neighbours keeps a small weight; the shift damps the oscillation on
            # bipartite fields
            mixed = weights + sums / max(ratio, 1e-300)
            weights = np.maximum(mixed / mixed.max(), 1e-9)
        return best * (1 + 1e-10), best_weights

    def sums(self, tau: float, size: int, weights: Array) -> Array:
        """Σ of the size − 1 largest c_ij w_j of every node."""
        couplings = self.couplings(tau)
        if couplings is None:
            return np.full(self.nodes, np.inf)
        return self._largest(couplings * weights[self.tails], size)

    def _largest(self, pulls: Array, size: int) -> Array:
        order = np.lexsort((-pulls, self.heads))
        kept = order[self.rank < size - 1]
        return np.bincount(self.heads[kept], weights=pulls[kept], minlength=self.nodes).astype(np.float64)


def _gather(gram: Any, rows: NDArray[np.int64], columns: NDArray[np.int64], a: int, b: int) -> Array:
    result = np.zeros((len(rows), a, b))
    for p in range(a):
        for q in range(b):
            result[:, p, q] = np.asarray(gram[rows + p, columns + q]).ravel()
    return result


RELAXED_COORDINATES = 600  # coordinates: beyond it one eigenvalue decomposition per step no longer pays


def semidefinite(
    B: Any, groups: Any = None, *, size: int, iterations: int = 1500, time_limit: float | None = None
) -> Relaxation:
    """γ(size) ≥ the estimate; `data` is the lower triangle of U, row by row, in the order of the
    nodes' columns.
    """
    dense = np.asarray(B.toarray() if sparse.issparse(B) else B, dtype=np.float64)
    columns = column_groups(groups, dense.shape[1])
    if dense.shape[1] > RELAXED_COORDINATES:
        raise ValueError(f"{dense.shape[1]} coordinates are more than {RELAXED_COORDINATES}")
    order = columns.order
    owner = np.repeat(np.arange(len(columns)), columns.sizes)
    gram = dense[:, order].T @ dense[:, order]
    scale = float(np.abs(gram).max()) or 1.0
    problem = _Dual(gram / scale, owner, min(size, len(columns)))
    finished = problem.solve(iterations, None if time_limit is None else time.monotonic() + time_limit)
    value = float(np.sqrt(max(0.0, problem.best) * scale))
    return Relaxation(value, "semidefinite", (problem.dual * scale)[np.tril_indices(len(gram))], finished)


class _Dual:
    """ADMM on the primal; every tenth step the multiplier is evaluated as a dual bound."""

    def __init__(self, gram: Array, owner: NDArray[np.int64], size: int) -> None:
        self.gram, self.owner, self.size = gram, owner, size
        self.nodes = int(owner[-1]) + 1
        self.best = 0.0
        self.dual = np.zeros_like(gram)
        self.starts = np.searchsorted(owner, np.arange(self.nodes))
        for candidate in (np.zeros_like(gram), -self._off_diagonal(gram)):
            self._offer(candidate)

    def solve(self, iterations: int, deadline: float | None) -> bool:
        order = len(self.gram)
        rho = 0.5
        copy = np.eye(order) / order
        scaled = np.zeros_like(self.gram)
        quiet = 0
        for step in range(1, iterations + 1):
            x = _spectraplex(copy - scaled - self.gram / rho)
            before = copy
            copy = self._ball(x + scaled)
            scaled = scaled + x - copy
            if step % 10 == 0:
                held = self.best
                self._offer(-rho * scaled)
                self._offer(rho * scaled)
                quiet = quiet + 1 if self.best <= held * (1 + 1e-5) + 1e-12 else 0
                if quiet >= 15:
                    return True
                primal, dual = np.linalg.norm(x - copy), rho * np.linalg.norm(copy - before)
                if primal > 5 * dual:
                    rho, scaled = rho * 1.5, scaled / 1.5
                elif dual > 5 * primal:
                    rho, scaled = rho / 1.5, scaled * 1.5
                if deadline is not None and time.monotonic() > deadline:
                    return False
        return True

    def _offer(self, dual: Array) -> None:
        value = self.evaluate(dual)
        if value > self.best:
            self.best, self.dual = value, dual

    def evaluate(self, dual: Array) -> float:
        """λ_min(G + U) − b(U)."""
        norms = self._norms(dual)
        cover = min(float(norms.max()) * self.size, float(np.sort(norms, axis=1)[:, -self.size :].sum(axis=1).max()))
        return float(np.linalg.eigvalsh(self.gram + dual)[0]) - cover

    def _norms(self, matrix: Array) -> Array:
        """Block norms: Frobenius, which is at least the spectral norm the bound needs."""
        squares = np.add.reduceat(np.add.reduceat(np.square(matrix), self.starts, axis=0), self.starts, axis=1)
        return np.asarray(np.sqrt(squares))

    def _off_diagonal(self, matrix: Array) -> Array:
        return np.where(self.owner[:, None] == self.owner[None, :], 0.0, matrix)

    def _ball(self, matrix: Array) -> Array:
        """Projection on Σ‖X_ij‖_F ≤ s: block norms shrink by one amount, found by sorting."""
        norms = self._norms(matrix)
        flat = np.sort(norms.ravel())[::-1]
        if flat.sum() <= self.size:
            return matrix
        partial = (np.cumsum(flat) - self.size) / np.arange(1, len(flat) + 1)
        threshold = partial[np.flatnonzero(flat > partial)[-1]]
        factors = np.maximum(0.0, 1.0 - threshold / np.maximum(norms, 1e-300))
        return np.asarray(matrix * factors[np.ix_(self.owner, self.owner)])


def _spectraplex(matrix: Array) -> Array:
    """Projection on {X ⪰ 0, tr X = 1}."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    falling = values[::-1]
    partial = (np.cumsum(falling) - 1.0) / np.arange(1, len(falling) + 1)
    threshold = partial[np.flatnonzero(falling > partial)[-1]]
    kept = np.maximum(values - threshold, 0.0)
    positive = kept > 0
    return np.asarray((vectors[:, positive] * kept[positive]) @ vectors[:, positive].T)
