"""γ of small fields, from the least eigenvalue of every support at once: NumPy alone, nothing to
compile, no graph to build.

Supports of full size are all there is to look at (Cauchy interlacing), connected or not. Two nodes
of one coordinate have a closed form; larger supports are one stack of matrices for LAPACK. The
proof is that of `solvers._gram`: with the diagonal of Ĝ multiplied by `shrink`, a Cholesky of Ĝ_SS
− θI that runs through proves λ_min(G_SS) ≥ θ in exact arithmetic. For a pair it is (Ĝ_ii − θ)(Ĝ_jj
− θ) > Ĝ_ij² with both factors positive; the products' own rounding, 4u of Ĝ_ij², is in `PRODUCTS`.
What floats leave open is decided in ball arithmetic; a field that is too large, too uneven or not
plain numbers is left to `solvers._minimiser`, which says the same of it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import atan2, comb, cos, inf, sin, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._exact import (
    diagonal_share,
    null_vector,
    proves_at_least,
    smallest_singular_pair,
    sqrt_below,
    witness_of,
)
from solvers._gram import NodeColumns, column_groups
from solvers.result import DOUBTFUL, ULP_ROOM, ZERO, Bounds, Margin

Array = NDArray[np.float64]

MOST_PAIRS = 50_000
"""Pairs of single coordinates: up to 316 nodes."""
MOST_ENTRIES = 8_000
"""Entries of all blocks together: from there on the compiled search is faster."""
LARGEST_MATRIX = 200_000  # entries of B
LARGEST_SPARSE = 10_000  # the same where B is sparse, and the search profits from that
MOST_CANDIDATES = 16  # supports near the least, or not proven, that are looked at one by one
PRODUCTS = 1.0 + 2.0**-48
RANGE = 1e60  # squared lengths of columns between this and its inverse: no product of four leaves the range of doubles
SPREAD = 1e-20  # of the longest, at least: nor do squares of entries matter that underflow
PLAIN = 1e-6  # eigenvalues above this share of the largest square have ten digits


def small_margin(B: Any, groups: Any, size: int) -> Margin | None:
    """The margin over supports of `size` nodes, as `solvers.support_margin` returns it; None: not a
    field for this.
    """
    matrix = _as_array(B)
    if matrix is None:
        return None
    if groups is None:
        columns = _single_columns(matrix.shape[1])
    else:
        columns = column_groups(groups, matrix.shape[1])
        if not np.array_equal(columns.order, np.arange(len(columns.order))):
            matrix = matrix[:, columns.order]
    n, widest = len(columns), 1 if groups is None else int(columns.sizes.max())
    pairs = size == 2 < n and widest == 1
    count = comb(n, min(size, n))
    if count > MOST_PAIRS if pairs else count * (size * widest) ** 2 > MOST_ENTRIES:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        gram = matrix.T @ matrix
    squares = gram.diagonal()
    top = float(squares.max())
    if not 1.0 / RANGE <= top <= RANGE:  # nor where it is not a number
        return None
    if float(squares.min()) < SPREAD * top and matrix[:, squares < SPREAD * top].any():
        return None
    stack: _Pairs | _Blocks = (_Pairs if pairs else _Blocks)(matrix, gram, columns, size)
    return _minimum(matrix, columns, size, stack, top)


def _as_array(B: Any) -> Array | None:
    """B as an array of doubles, where it is one or a small canonical sparse matrix of them."""
    if type(B) is not np.ndarray:
        if getattr(B, "format", "") not in ("csr", "csc") or B.shape[0] * B.shape[1] > LARGEST_SPARSE:
            return None
        if B.dtype != np.float64 or not B.has_canonical_format:
            return None
        B = B.toarray()
    plain = B.dtype == np.float64 and B.ndim == 2 and 0 < B.size <= LARGEST_MATRIX
    return B if plain else None


@lru_cache(maxsize=64)
def _single_columns(n: int) -> NodeColumns:
    """A node for each column; the arrays are read-only, for they are shared."""
    columns = column_groups(None, n)
    columns.order.setflags(write=False)
    columns.offsets.setflags(write=False)
    return columns


@lru_cache(maxsize=64)
def _supports(n: int, size: int) -> NDArray[np.int64]:
    """(count, size): every support, in lexicographic order."""
    if size == 2:
        return np.ascontiguousarray(np.array(np.triu_indices(n, 1)).T)
    return np.array(list(combinations(range(n), size)), np.int64)


class _Pairs:
    """All pairs of nodes with one coordinate each."""

    def __init__(self, matrix: Array, gram: Array, groups: NodeColumns, size: int) -> None:
        self.supports = _supports(len(groups), 2)
        self.gram, self.squares = gram, gram.diagonal()
        self.first, self.second = self.supports[:, 0], self.supports[:, 1]
        self.products = gram[self.first, self.second]
        self.products *= self.products
        self.share = diagonal_share(2, 1, len(matrix))

    def vector(self, i: int) -> Array:
        """The eigenvector of λ_min of one block: half the angle of (G_ii − G_jj, 2G_ij), turned."""
        a, b = int(self.first[i]), int(self.second[i])
        angle = 0.5 * atan2(2.0 * self.gram[a, b], self.squares[a] - self.squares[b])
        return np.array([-sin(angle), cos(angle)])

    def least(self) -> Array:
        """λ_min of each block of Ĝ, in plain floating point."""
        a, b = self.squares[self.first], self.squares[self.second]
        difference = a - b
        return np.asarray(0.5 * (a + b - np.sqrt(difference * difference + 4.0 * self.products)))

    def unproven(self, theta: float) -> NDArray[np.int64]:
        """Supports that are not proven to have λ_min(G_SS) ≥ θ."""
        left = self.squares * self.share - theta
        np.maximum(left, 0.0, out=left)  # a factor that is not positive proves nothing
        return np.flatnonzero(left[self.first] * left[self.second] <= self.products * PRODUCTS)


class _Blocks:
    """All supports of any size, as one stack: nodes with fewer coordinates than others are filled
    up with long ones of their own.
    """

    def __init__(self, matrix: Array, gram: Array, groups: NodeColumns, size: int) -> None:
        self.order = len(gram)
        sizes, size = groups.sizes, min(size, len(groups))
        self.supports = _supports(len(groups), size)
        widest = int(sizes.max())
        self.share = diagonal_share(min(size * widest, self.order), widest, len(matrix))
        width = size * widest
        at = groups.offsets[:-1][self.supports][:, :, None] + np.arange(widest)
        there = np.arange(widest) < sizes[self.supports][:, :, None]
        filled = np.where(there, at, self.order + np.arange(width).reshape(size, widest))
        self.places = filled.reshape(len(filled), width)
        self.gram = np.zeros((self.order + width, self.order + width))
        self.gram[: self.order, : self.order] = gram
        self.gram.flat[self.order * (self.order + width + 1) :: self.order + width + 1] = 2.0 * gram.diagonal().max()

    def vector(self, i: int) -> None:
        """Not known."""

    def least(self) -> Array:
        """λ_min of each block of Ĝ, in plain floating point."""
        blocks = self.gram[self.places[:, :, None], self.places[:, None, :]]
        return np.asarray(np.linalg.eigvalsh(blocks)[:, 0])

    def unproven(self, theta: float) -> NDArray[np.int64]:
        """Supports that are not proven to have λ_min(G_SS) ≥ θ."""
        shifted = self.gram.copy()
        corner = np.arange(self.order)
        shifted[corner, corner] = shifted[corner, corner] * self.share - theta
        blocks = shifted[self.places[:, :, None], self.places[:, None, :]]
        if _definite(blocks):
            return np.zeros(0, np.int64)
        return np.array([i for i, block in enumerate(blocks) if not _definite(block)], np.int64)


def _definite(blocks: Array) -> bool:
    try:
        np.linalg.cholesky(blocks)
    except np.linalg.LinAlgError:
        return False
    return True


class _Incumbent:
    """The support of least σ seen so far, without the nodes that do not matter to it."""

    def __init__(self, matrix: Array, groups: NodeColumns, scale: float) -> None:
        self.matrix, self.groups, self.scale = matrix, groups, scale
        self.support: tuple[int, ...] = ()
        self.sigma, self.vector = inf, np.zeros(0)
        self.zero = False

    def block(self, support: tuple[int, ...]) -> Array:
        return self.matrix[:, self._columns(support)]

    def _columns(self, support: tuple[int, ...]) -> Any:
        if len(self.groups) == len(self.groups.order):
            return list(support)
        return np.concatenate([np.arange(self.groups.offsets[i], self.groups.offsets[i + 1]) for i in support])

    def offer(self, support: tuple[int, ...], vector: Array | None = None) -> None:
        """The better of the two: λ_min of a support in parts is that of one part. `vector`: the one
        that attains it, where that is known.
        """
        block = self.block(support)
        if len(support) > 1 and not (block != 0.0).all():
            parts = self._parts(support, block)
            if len(parts) > 1:
                for part in parts:
                    self.offer(part)
                return
        if vector is None:
            sigma, vector = smallest_singular_pair(block)
        else:
            image = block @ vector
            sigma = sqrt(image @ image)
        if sigma < self.sigma:
            self.support, self.sigma, self.vector = support, sigma, vector

    def _parts(self, support: tuple[int, ...], block: Array) -> list[tuple[int, ...]]:
        """The support's components: nodes that share a row belong together."""
        owner = np.repeat(np.arange(len(support)), [len(self.groups[i]) for i in support])
        held = np.zeros((len(block), len(support)))
        np.add.at(held.T, owner, (block != 0.0).T)
        near = held.T @ held
        reached = np.linalg.matrix_power(near + np.eye(len(support)), len(support)) > 0.0
        return sorted({tuple(support[i] for i in np.flatnonzero(row)) for row in reached})

    def settle_zero(self) -> None:
        """Whether it is a zero: by the paper's rule, or exactly, where its columns are dependent in
        exact arithmetic.
        """
        self.zero = self.sigma <= ZERO * self.scale and self.sigma <= ZERO
        if self.sigma > DOUBTFUL * self.scale or self.zero:
            return
        exact = null_vector(self.block(self.support))
        if exact is not None:
            self.sigma, self.vector, self.zero = 0.0, exact, True


def _minimum(matrix: Array, groups: NodeColumns, size: int, stack: _Pairs | _Blocks, top: float) -> Margin | None:
    """The margin; None where ball arithmetic would have too much to do."""
    least = stack.least()
    lowest = float(least.min())
    best = _Incumbent(matrix, groups, sqrt(top))
    if lowest > PLAIN * top:
        first = int((least <= lowest * (1.0 + 1e-12)).argmax())
        best.offer(tuple(stack.supports[first].tolist()), stack.vector(first))
    else:
        for i in np.flatnonzero(least <= lowest + 1e-12 * top)[:MOST_CANDIDATES].tolist():
            best.offer(tuple(stack.supports[i].tolist()))
            best.settle_zero()
            if best.zero:
                break
    theta = 0.0
    while not best.zero:
        theta = best.sigma * best.sigma * (1.0 - ULP_ROOM)
        open_ones = [tuple(stack.supports[i].tolist()) for i in stack.unproven(theta)]
        if len(open_ones) > MOST_CANDIDATES:
            return None
        before = best.sigma
        for support in open_ones:
            best.offer(support)
        if best.sigma < before:
            best.settle_zero()
        elif all(proves_at_least(best.block(support), theta) for support in open_ones):
            break
        else:
            return None
    return _told(best, theta, size, len(least))


def _told(best: _Incumbent, theta: float, size: int, tested: int) -> Margin:
    block, vector = best.block(best.support), best.vector
    vector, upper = witness_of(block, vector, zero=best.zero)
    proven = 0.0 if best.zero else sqrt_below(theta)
    told = Bounds.settled(best.sigma, proven, upper, zero=best.zero, scale=best.scale, exponent=0)
    direction = np.zeros(len(best.groups.order))
    direction[best.groups.order[best._columns(best.support)]] = vector
    return Margin(
        value=told.value,
        lower=told.lower,
        upper=told.upper,
        support=best.support,
        direction=direction,
        status=told.status,
        method="search",
        support_size=size,
        groups=best.groups,
        tested=tested,
    )
