"""Units that can stand for each other: for what is delivered, one of each kind is enough.

Let u and v be units without delivered columns whose columns are equal up to sign, one by one. B_u and B_v span the same
space, so a support with both hides no more than without u, and one with u alone no more than with v in its place. A sum of
a hundred parts (one row, a hundred equal columns) then has one part to look at instead of every pair, triple and so on of
them, none of which floating point could decide: two equal columns are an exactly singular Gram matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.gram import Field, within


def superfluous(field: Field, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Units without wanted columns that have a twin of lower number."""
    matrix, offsets = field.matrix, field.offsets
    if not matrix.nnz:
        return np.zeros(0, np.int64)
    candidates = np.flatnonzero(~np.logical_or.reduceat(wanted, offsets[:-1]))
    if len(candidates) < 2:
        return np.zeros(0, np.int64)
    prints = _fingerprints(field)
    ordered = np.sort(prints[candidates])
    if not (ordered[1:] == ordered[:-1]).any():  # as in most fields
        return np.zeros(0, np.int64)
    order = candidates[np.argsort(prints[candidates], kind="stable")]
    equal = np.flatnonzero(prints[order][1:] == prints[order][:-1])
    dropped: list[int] = []
    kept: dict[bytes, int] = {}
    for unit in np.unique(np.concatenate([order[equal], order[equal + 1]])):
        name = b"".join(_name(field, int(c)) for c in range(offsets[unit], offsets[unit + 1]))
        if kept.setdefault(name, int(unit)) != unit:
            dropped.append(int(unit))
    return np.array(dropped, np.int64)


def _fingerprints(field: Field) -> NDArray[np.float64]:
    """One number per unit, equal for twins (and for few others): each column against one fixed random vector."""
    matrix = field.matrix
    rng = np.random.default_rng(0)
    sums = np.zeros(matrix.shape[1])
    filled = np.flatnonzero(np.diff(matrix.indptr))
    products = matrix.data * rng.random(matrix.shape[0])[matrix.indices]
    sums[filled] = np.abs(np.add.reduceat(products, matrix.indptr[:-1][filled]))
    weights = rng.random(int(field.dims.max()))
    return np.asarray(np.add.reduceat(sums * weights[within(field.dims)], field.offsets[:-1]))


def _name(field: Field, column: int) -> bytes:
    """A column up to sign, as bytes that start with its length (0.0 never occurs, so −x and x differ in sign only)."""
    span = slice(int(field.matrix.indptr[column]), int(field.matrix.indptr[column + 1]))
    data = field.matrix.data[span]
    if len(data) and data[0] < 0.0:
        data = -data
    rows: NDArray[np.int64] = field.matrix.indices[span].astype(np.int64)
    return len(data).to_bytes(8, "big") + rows.tobytes() + bytes(data.tobytes())
