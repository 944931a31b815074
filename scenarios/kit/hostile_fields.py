"""Small fields that are hard on floating point, by family, and the forms in which people hand over
a matrix.

Every entry is a double and so a rational number: what a family's margin is can be decided exactly.
Families attack one thing each: products that cancel, columns and rows far apart, the ends of the
range of doubles, columns that are nearly or exactly dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse


def field(family: str, seed: int) -> tuple[Any, list[int], int]:
    """Matrix, node sizes and k of one small field of a family."""
    rng = np.random.default_rng([tuple(FAMILIES).index(family), seed])
    k = int(rng.integers(1, 3))
    nodes = int(rng.integers(3, 7))
    sizes = [int(rng.integers(1, 3)) for _ in range(nodes)] if family in ("typed", "cancelling blocks") else [1] * nodes
    return FAMILIES[family](rng, sizes), sizes, k


def handed_over(matrix: Any, seed: int) -> tuple[str, Any]:
    """The same numbers in one of the forms that a caller may choose, and its name."""
    coo = sparse.coo_array(matrix)
    form = seed % 6
    if form == 0:
        frozen = matrix.copy()
        frozen.setflags(write=False)
        return "read-only array", frozen
    if form == 1:
        return "array by columns", np.asfortranarray(matrix)
    if form == 2:
        return "sparse rows", sparse.csr_array(matrix)
    if form == 3:
        return "sparse columns", sparse.csc_array(matrix)
    if form == 4:  # halves of numbers are exact unless they are subnormal
        halves = np.where(np.abs(coo.data) > 1e-300, coo.data / 2, coo.data)
        rest = coo.data - halves
        data = np.concatenate([halves, rest, [0.0]])
        rows, columns = np.append(np.tile(coo.row, 2), 0), np.append(np.tile(coo.col, 2), matrix.shape[1] - 1)
        return "entries given twice, and a zero", sparse.coo_array((data, (rows, columns)), shape=matrix.shape)
    rows = sparse.csr_array(matrix)
    for row in range(matrix.shape[0]):
        span = slice(rows.indptr[row], rows.indptr[row + 1])
        rows.indices[span], rows.data[span] = rows.indices[span][::-1].copy(), rows.data[span][::-1].copy()
    rows.has_sorted_indices = False
    return "indices out of order", rows


def _gaussian(rng: Any, sizes: list[int]) -> Any:
    width = sum(sizes)
    return rng.standard_normal((width + int(rng.integers(0, 3)), width))


def _graph(rng: Any, sizes: list[int]) -> Any:
    """Relations between random nodes, and one anchored coordinate; transports where nodes have
    several coordinates.
    """
    width, starts = sum(sizes), np.cumsum([0, *sizes])
    rows = [np.eye(width)[rng.integers(width)][None, :] * rng.choice([1.0, 0.1, 3.0])]
    for _ in range(2 * len(sizes)):
        a, b = rng.choice(len(sizes), 2, replace=False)
        part = np.zeros((sizes[b], width))
        part[:, starts[b] : starts[b + 1]] = np.eye(sizes[b])
        transport = rng.standard_normal((sizes[b], sizes[a])) if max(sizes) > 1 else -np.eye(1)
        part[:, starts[a] : starts[a + 1]] = transport
        rows.append(part)
    return np.vstack(rows)


def _integer(rng: Any, sizes: list[int]) -> Any:
    return rng.integers(-2, 3, (sum(sizes) + 1, sum(sizes))).astype(float)


def _near_singular(rng: Any, sizes: list[int]) -> Any:
    matrix = _gaussian(rng, sizes)
    matrix[:, 1] = matrix[:, 0] + rng.standard_normal(len(matrix)) * 2.0 ** -int(rng.integers(10, 56))
    return matrix


def _ill_scaled(rng: Any, sizes: list[int]) -> Any:
    return _gaussian(rng, sizes) * 10.0 ** rng.integers(-9, 10, sum(sizes))


def _last_bit(rng: Any, sizes: list[int]) -> Any:
    matrix, width = _gaussian(rng, sizes), sum(sizes)
    return np.repeat(matrix[:, :1], width, axis=1) * (1 + 2.0**-52 * rng.integers(-3, 4, (len(matrix), width)))


def _rank_deficient(rng: Any, sizes: list[int]) -> Any:
    matrix, width = _gaussian(rng, sizes), sum(sizes)
    matrix[:, -1] = matrix[:, :-1] @ rng.integers(-1, 2, width - 1)
    return matrix


def _cancelling(rng: Any, sizes: list[int]) -> Any:
    """Large entries of both signs beside ones: sums of products lose the ones, or everything."""
    width, large = sum(sizes), float(rng.choice([1e7, 3e7, 1e8, 3e8, 1e12, 1e16]))
    if rng.random() < 0.5:
        return rng.choice([large, -large, large, -large, 0.0, 1.0, -1.0], (int(rng.integers(2, 7)), width))
    core = np.array([[large] * 4, [0.0, 1.0, 0.0, 1.0], [large, large, -large, -large]])
    matrix = np.hstack([core, rng.integers(0, 2, (3, max(width - 4, 0)))])[:, :width]
    return matrix[rng.permutation(3)][:, rng.permutation(width)] * 2.0 ** int(rng.integers(-3, 4))


def _far_columns(rng: Any, sizes: list[int]) -> Any:
    return _gaussian(rng, sizes) * 10.0 ** rng.choice([-30, 0, 30, 60, 90, 120], sum(sizes))


def _far_rows(rng: Any, sizes: list[int]) -> Any:
    matrix = _gaussian(rng, sizes)
    return matrix * 10.0 ** rng.integers(-70, 71, (len(matrix), 1))


def _far_entries(rng: Any, sizes: list[int]) -> Any:
    matrix = _gaussian(rng, sizes)
    return matrix * 10.0 ** rng.integers(-70, 71, matrix.shape)


def _ends_of_range(rng: Any, sizes: list[int]) -> Any:
    """Subnormal numbers, and numbers next to the largest."""
    if rng.random() < 0.5:
        return rng.integers(-9, 10, (sum(sizes) + 2, sum(sizes))) * 5e-324
    return _gaussian(rng, sizes) * 10.0 ** int(rng.choice([-320, -310, -300, -160, 160, 298]))


def _nearly_dependent(rng: Any, sizes: list[int]) -> Any:
    """Whole numbers whose last column is a combination of the others, up to a hair in some rows."""
    width = sum(sizes)
    matrix = rng.integers(-3, 4, (width + 1, width)).astype(float)
    matrix[:, -1] = matrix[:, :-1] @ rng.integers(-2, 3, width - 1)
    matrix[:, -1] += rng.integers(-1, 2, width + 1) * 2.0 ** -int(rng.integers(20, 52))
    return matrix


def _empty_and_repeated(rng: Any, sizes: list[int]) -> Any:
    """Columns without an entry, rows that stand three times."""
    matrix = rng.integers(-2, 3, (int(rng.integers(2, 6)), sum(sizes))).astype(float)
    if rng.random() < 0.5:
        matrix[:, int(rng.integers(sum(sizes)))] = 0.0
    return np.repeat(matrix, 3, axis=0)


def _vandermonde(rng: Any, sizes: list[int]) -> Any:
    """Powers of a few points, or Hilbert's matrix: columns that are nearly dependent all
    together.
    """
    width = sum(sizes)
    if rng.random() < 0.5:
        return np.vander(rng.integers(-6, 7, width + 1) / float(rng.choice([1, 3, 7, 64])), width)
    rows = width + int(rng.integers(0, 3))
    return np.array([[1.0 / (i + j + 1) for j in range(width)] for i in range(rows)]) * 2.0 ** rng.integers(
        -20, 21, width
    )


def _faint_links(rng: Any, sizes: list[int]) -> Any:
    """Nodes that hang together by entries whose products underflow, or vanish beside ones."""
    width = sum(sizes)
    if rng.random() < 0.5:
        matrix = rng.integers(-1, 2, (width + 2, width)).astype(float)
        faint = rng.random(matrix.shape) < 0.5
        matrix[faint] *= float(rng.choice([2.0**-53, 2.0**-54, 2.0**-27, 1e-17]))
        return matrix
    size = float(rng.choice([1e-150, 1e-140, 1e-120]))
    matrix = np.vstack([np.diag(rng.choice([1.0, 3.0, 0.1], width)), np.zeros((3, width))])
    for row in matrix[width:]:
        row[rng.choice(width, 2, replace=False)] = size * rng.choice([1.0, -1.0, 3.0], 2)
    matrix[0, 0] = float(rng.choice([1.0, size]))
    return matrix


def _chain(rng: Any, sizes: list[int]) -> Any:
    """Each link takes a power of two: what closes the chain decides, and is lost beside the
    rest.
    """
    width, ratio = sum(sizes), 2.0 ** int(rng.integers(1, 30))
    matrix = np.zeros((width, width))
    for i in range(width - 1):
        matrix[i, i : i + 2] = -ratio, 1.0
    matrix[-1, 0] = float(rng.choice([0.0, 1.0, 2.0**-30, 2.0**-60]))
    return matrix


def _long_integers(rng: Any, sizes: list[int]) -> Any:
    """Whole numbers whose squares no double holds, and a column that is off by one."""
    width = sum(sizes)
    matrix = (rng.integers(2**26, 2**27, (width + 1, width)) * rng.choice([-1, 1], (width + 1, width))).astype(float)
    matrix[:, -1] = matrix[:, 0] + rng.integers(-1, 2, width + 1)
    return matrix


FAMILIES: dict[str, Callable[[Any, list[int]], Any]] = {
    "gaussian": _gaussian,
    "graph": _graph,
    "typed": _graph,
    "integer": _integer,
    "near-singular": _near_singular,
    "ill-scaled": _ill_scaled,
    "last-bit": _last_bit,
    "rank-deficient": _rank_deficient,
    "cancelling": _cancelling,
    "cancelling blocks": _cancelling,
    "far-apart columns": _far_columns,
    "far-apart rows": _far_rows,
    "far-apart entries": _far_entries,
    "ends of the range": _ends_of_range,
    "nearly dependent": _nearly_dependent,
    "empty and repeated": _empty_and_repeated,
    "vandermonde and hilbert": _vandermonde,
    "faint links": _faint_links,
    "chains": _chain,
    "long integers": _long_integers,
}
