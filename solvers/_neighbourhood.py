"""The part of a field that supports through the delivered columns can reach: all that γ_{k,D}
depends on.

A connected support of s units that meets D lies within s − 1 steps of D. So a field of a million
nodes is never put in order, squared or scaled: a few passes over the indices of B find the units
nearby, and their columns (with every row that touches them) become the field that is searched. A
component larger than s units still shows at least s of them.

Some units can stand for each other: for what is delivered, one of each kind is enough. Let u and v
be units without delivered columns whose columns are equal up to sign, one by one. B_u and B_v span
the same space, so a support with both hides no more than without u, and one with u alone no more
than with v in its place. A sum of a hundred parts (one row, a hundred equal columns) then has one
part to look at instead of every pair, triple and so on of them, none of which floating point could
decide: two equal columns are an exactly singular Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._components import Support
from solvers._gram import Field, make_field, within
from solvers._groups import NodeColumns, column_groups

SMALL = 2_000  # columns up to which the whole field is taken


@dataclass(frozen=True)
class LocalField:
    """Some units of a field as a field of their own, with the way back."""

    field: Field
    wanted: NDArray[np.bool_]  # (coordinates of `field`,) delivered or not
    members: NDArray[np.int64]  # (units of `field`,) their numbers in the whole
    groups: NodeColumns  # of the whole
    rows: NDArray[np.int64]  # (rows of `field`,) their numbers in the whole

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Units of `field` that hold a delivered column."""
        return np.flatnonzero(np.logical_or.reduceat(self.wanted, self.field.offsets[:-1]))

    def wanted_in(self, support: Any) -> NDArray[np.bool_]:
        return np.asarray(self.wanted[self.field.columns_of(support)])

    def names(self, support: Support) -> Support:
        return tuple(int(self.members[i]) for i in support)

    def embed(self, support: Support, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """A vector on a support as a vector over the caller's coordinates."""
        result = np.zeros(len(self.groups.order))
        result[_own(self.groups, self.members[np.asarray(support, np.int64)])] = vector
        return result


def delivered_columns(deliver: Any, columns: int) -> NDArray[np.int64]:
    """Check D: column numbers in range, at least one; sorted, each once."""
    try:
        given = np.asarray(deliver if isinstance(deliver, np.ndarray) else list(deliver))
    except TypeError:
        raise ValueError(f"deliver: must be a list of column numbers, not {deliver!r}") from None
    if given.size == 0:
        raise ValueError("deliver: names no column; at least one value must be delivered")
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"deliver: must be a list of column numbers, not {deliver!r}")
    wrong = given[(given < 0) | (given >= columns)]
    if len(wrong):
        raise ValueError(f"deliver: there is no column {int(wrong[0])}; the matrix has {columns}")
    return _marked(given, columns)


def _marked(places: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Numbers below `count`, sorted, each once: many of them, so without sorting."""
    mask = np.zeros(count, np.bool_)
    mask[places] = True
    return np.flatnonzero(mask)


def neighbourhood_of(B: Any, groups: Any, deliver: Any, *, radius: int, thin: bool = True) -> LocalField:
    """All units within `radius` steps of the delivered columns, as a field; ValueError for what is
    no field or no D.

    `thin` leaves out units that a twin stands for (`solvers._neighbourhood`): right for a minimum,
    wrong for a list of supports.
    """
    near = _surroundings(B, groups, deliver, radius)
    return _thinned(near) if thin else near


def _surroundings(B: Any, groups: Any, deliver: Any, radius: int) -> LocalField:
    if not sparse.issparse(B) or B.shape[1] <= SMALL:
        field = make_field(B, groups)
        inside = delivered_columns(deliver, len(field.groups.order))
        return _whole(field, inside)
    matrix = B if B.format in ("csr", "csc") else sparse.csr_array(B)
    columns = column_groups(groups, matrix.shape[1])
    inside = delivered_columns(deliver, matrix.shape[1])
    if not np.isfinite(matrix.data).all():
        raise ValueError("B: holds a NaN or an infinity")
    members = _reached(matrix, columns, inside, radius)
    if len(members) == len(columns):
        return _whole(make_field(matrix, columns), inside)
    sizes = columns.sizes[members]
    own = _own(columns, members)
    part, rows = _columns_of(matrix, own)
    return LocalField(make_field(part, sizes.tolist()), np.isin(own, inside), members, columns, rows)


def _whole(field: Field, inside: NDArray[np.int64]) -> LocalField:
    wanted = np.zeros(len(field.groups.order), np.bool_)
    wanted[inside] = True
    return LocalField(
        field, wanted[field.groups.order], np.arange(field.n), field.groups, np.arange(field.matrix.shape[0])
    )


def _thinned(near: LocalField) -> LocalField:
    """Without units that a twin stands for."""
    dropped = _superfluous(near.field, near.wanted)
    if not len(dropped):
        return near
    kept = np.setdiff1d(np.arange(near.field.n), dropped)
    columns = near.field.columns_of(kept)
    field = Field(
        matrix=sparse.csc_array(near.field.matrix[:, columns]),
        exponent=near.field.exponent,
        groups=NodeColumns.of_sizes(near.field.dims[kept]),
    )
    return LocalField(field, near.wanted[columns], near.members[kept], near.groups, near.rows)


def _own(groups: NodeColumns, units: NDArray[np.int64]) -> NDArray[np.int64]:
    """All columns of some units, unit by unit."""
    sizes = groups.sizes[units]
    return np.asarray(groups.order[np.repeat(groups.offsets[units], sizes) + within(sizes)])


def _reached(matrix: Any, groups: NodeColumns, inside: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Units within `radius` steps; two units are one step apart when a row has entries at both."""
    if 4 * len(inside) > len(groups.order):
        return np.arange(len(groups))
    owner = np.empty(len(groups.order), np.int64)
    owner[groups.order] = np.repeat(np.arange(len(groups)), groups.sizes)
    reached = np.zeros(len(groups), np.bool_)
    fresh = _marked(owner[inside], len(groups))
    reached[fresh] = True
    for _ in range(radius):
        if 4 * np.count_nonzero(reached) > len(groups):
            return np.arange(len(groups))  # most of it anyway
        near = np.unique(owner[_beside(matrix, _own(groups, fresh))])
        fresh = near[~reached[near]]
        if not len(fresh):
            break
        reached[fresh] = True
    return np.flatnonzero(reached)


def _beside(matrix: Any, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns that share a row with the given ones."""
    if matrix.format == "csc":
        rows = np.unique(_entries(matrix, columns))
        mask = np.zeros(matrix.shape[0], np.bool_)
        mask[rows] = True
        entries = np.flatnonzero(mask[matrix.indices])
        return np.unique(np.searchsorted(matrix.indptr, entries, side="right") - 1)
    mask = np.zeros(matrix.shape[1], np.bool_)
    mask[columns] = True
    entries = np.flatnonzero(mask[matrix.indices])
    rows = np.unique(np.searchsorted(matrix.indptr, entries, side="right") - 1)
    return np.unique(_entries(matrix, rows))


def _entries(matrix: Any, lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices in some lines (rows, or columns) of a compressed matrix."""
    start = matrix.indptr[lines].astype(np.int64)
    sizes = matrix.indptr[lines + 1].astype(np.int64) - start
    return np.asarray(matrix.indices[np.repeat(start, sizes) + within(sizes)])


def _columns_of(matrix: Any, columns: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """The columns with every row that touches them (and no other), and the numbers of these
    rows.
    """
    if matrix.format == "csc":
        part = matrix[:, columns].tocsr()
        rows = np.flatnonzero(np.diff(part.indptr) > 0)
        return part[rows], rows
    place = np.full(matrix.shape[1], -1, np.int64)
    place[columns] = np.arange(len(columns))
    at = place[matrix.indices]
    entries = np.flatnonzero(at >= 0)
    rows, row = np.unique(np.searchsorted(matrix.indptr, entries, side="right") - 1, return_inverse=True)
    return sparse.csr_array((matrix.data[entries], (row, at[entries])), shape=(len(rows), len(columns))), rows


def _superfluous(field: Field, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
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
    """One number per unit, equal for twins (and for few others): each column against one fixed
    random vector.
    """
    matrix = field.matrix
    rng = np.random.default_rng(0)
    sums = np.zeros(matrix.shape[1])
    filled = np.flatnonzero(np.diff(matrix.indptr))
    products = matrix.data * rng.random(matrix.shape[0])[matrix.indices]
    sums[filled] = np.abs(np.add.reduceat(products, matrix.indptr[:-1][filled]))
    weights = rng.random(int(field.dims.max()))
    return np.asarray(np.add.reduceat(sums * weights[within(field.dims)], field.offsets[:-1]))


def _name(field: Field, column: int) -> bytes:
    """A column up to sign, as bytes that start with its length (0.0 never occurs, so −x and x
    differ in sign only).
    """
    span = slice(int(field.matrix.indptr[column]), int(field.matrix.indptr[column + 1]))
    data = field.matrix.data[span]
    if len(data) and data[0] < 0.0:
        data = -data
    rows: NDArray[np.int64] = field.matrix.indices[span].astype(np.int64)
    return len(data).to_bytes(8, "big") + rows.tobytes() + bytes(data.tobytes())
